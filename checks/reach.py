"""Nodes reach each other at the port of SSH, and at slurmd's, from each to a few others.

That this machine reaches a node says nothing of the other nodes: a firewall that lets in the
admin's network alone, a service that listens on one address only, a wrong address on one side. MPI
and many tools start their processes on other nodes by SSH, and slurmd hands messages on to the
slurmd of other nodes. No login is tried: only whether somebody listens, and with which host key.

On many clusters nodes are not to log in to each other. So with `ssh = auto` it is no fault where
most connections do not come about; a node that alone differs is a warning, or a failure to `admit`,
which holds it against nodes of its kind. The other nodes' keys are held against
/etc/ssh/ssh_known_hosts where the site keeps such a file and most of them are in it. Names that
have no address are left to the check dns.

slurmd's port is tried with `slurmd = yes` (`admit` does so), between nodes on which slurmd listens:
each try leaves a line in the log of the slurmd that is tried.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from clustercheck.check import Check, Code, Facts, Finding, ok, option, skip, unknown, warn

from ._reach_keys import judge_keys
from ._reach_ports import WORDS, judge_nodes, judge_pairs, slurmd_port, ssh_port
from ._reach_probe import PROBE
from ._reach_remedies import (
    ADD_KEYS,
    INSTALL,
    OPEN_HERE,
    OPEN_OUT,
    OTHER_KEYS,
    SAME_FILE,
    SEE_PAIR,
    SEE_PEER,
)


@dataclass(frozen=True)
class Options:
    ssh: Literal["auto", "yes", "no"] = option(
        "auto",
        "whether nodes must reach each other by SSH: yes, no (not tried), or auto: who differs from"
        " most nodes is told of",
    )
    alone: Literal["warn", "fail"] = option(
        "warn",
        "what it is with `ssh = auto` when one node is not reached, or reaches none, and others do:"
        " warn or fail (`admit` takes fail)",
    )
    port: Annotated[int, Ge(0), Le(65535)] = option(
        0, "port of SSH on other nodes; 0: the one of the inventory, or 22", unit="TCP port"
    )
    names: str = option(
        "{host}",
        "what other nodes are tried by: {node} is a node's name and {host} what it is reached by,"
        " so {node}-data tries the data network",
    )
    peers: Annotated[int, Ge(1), Le(12)] = option(
        3, "other nodes that each node tries", unit="nodes"
    )
    known_hosts: Literal["auto", "yes", "no"] = option(
        "auto",
        "whether host keys of other nodes must be known: yes (for all users or the login user), no,"
        " or auto: where most are in /etc/ssh/ssh_known_hosts",
    )
    slurmd: bool = option(False, "slurmd's port of other nodes is tried where slurmd listens")
    slurm_port: Annotated[int, Ge(1), Le(65535)] = option(
        6818, "where slurmd listens (SlurmdPort)", unit="TCP port"
    )

    def __post_init__(self) -> None:
        if "{node}" not in self.names and "{host}" not in self.names:
            raise ValueError(f"names = {self.names} holds neither {{node}} nor {{host}}")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    if facts["peers"] == "0":
        yield skip("ssh", "no other node to try")
        return
    if facts["slurmd"] == "untried":
        yield unknown("no_tool", "bash is not installed, and needed to try slurmd's port", INSTALL)
    if options.ssh == "no":
        for peer in facts.at("target"):
            yield skip("ssh", "not asked for (`ssh = no`)", peer=peer)
        return
    if facts["tool"] == "none":
        message = "neither ssh-keyscan nor bash is installed, and one is needed to try the port"
        for peer in facts.at("target"):
            yield unknown("no_tool", message, INSTALL, peer=peer)
        return
    words = facts.at("ssh")
    for peer in facts.at("target"):
        word = words.get(peer, "")
        port = f"port {facts.get(f'port@{peer}', '')[:5]} (SSH)"
        if word == "open":
            yield ok("ssh", f"{port} answers", peer=peer)
        elif word == "no_name":
            yield skip("ssh", "the name to try has no address on this node", peer=peer)
        elif word in WORDS:
            yield warn("ssh", f"{port}: {WORDS[word]}", SEE_PEER, peer=peer)


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterable[tuple[str, Finding]]:
    wanted = {node for node, of in options.items() if of.ssh != "no"}
    ssh = ssh_port(facts, wanted, {node for node in wanted if options[node].ssh == "yes"})
    slurmd = slurmd_port(facts, next((of.slurm_port for of in options.values()), 0))
    failing = {node for node, of in options.items() if of.alone == "fail"}
    yield from judge_nodes([ssh, slurmd], failing)
    yield from judge_pairs(ssh)
    for node, finding in judge_pairs(slurmd):
        if ssh.tries.get((node, finding.peer), "open") == "open":  # else it is said already
            yield node, finding
    for node, told in facts.items():
        answers = [w for (one, _), w in slurmd.tries.items() if one == node and w == "open"]
        if told.get("slurmd") == "yes" and answers and node not in slurmd.blamed:
            count = "1 other node" if len(answers) == 1 else f"{len(answers)} other nodes"
            yield node, ok("slurmd", f"{slurmd.what} of {count} answers")
    yield from judge_keys(facts, {node: of.known_hosts for node, of in options.items()})
    yield from _not_held_against(facts, wanted)


def _not_held_against(
    facts: Mapping[str, Facts], wanted: set[str]
) -> Iterator[tuple[str, Finding]]:
    """Tries at nodes that are not to be reached, or have said nothing: theirs is another fault."""
    for node, told in facts.items():
        for peer, word in told.at("ssh").items():
            if word in WORDS and peer not in wanted:
                why = "that node could not be asked to its end"
                why = "it is not asked for there (`ssh = no`)" if peer in facts else why
                yield node, skip("ssh", f"{WORDS[word]}; {why}", peer=peer)


CODES = {
    "ssh": Code(
        "Whether SSH's port of another node answers this one.", (SEE_PEER, SEE_PAIR, OPEN_HERE)
    ),
    "slurmd": Code("Whether slurmd's port of other nodes answers this one.", (SEE_PAIR, OPEN_HERE)),
    "unreached": Code("Other nodes do not reach this one, and reach each other.", (OPEN_HERE,)),
    "reaches_none": Code("This node reaches no other, and they reach each other.", (OPEN_OUT,)),
    "known_hosts": Code(
        "A host key that is not known, where most are or all should be.", (ADD_KEYS, SAME_FILE)
    ),
    "host_key": Code(
        "Another host key is known than the node shows: logins there are refused.",
        (OTHER_KEYS, SAME_FILE),
    ),
    "no_tool": Code("The node has nothing to try a port with.", (INSTALL,)),
}

CHECK = Check(
    title="Other nodes at the ports of SSH and slurmd, and their host keys",
    stale="time",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    probe_options=("ssh", "port", "names", "known_hosts", "slurmd", "slurm_port"),
    limit=20,
    probe_peers=True,
    most_peers=lambda options: options.peers,
    compare=compare,
)
