"""Every node's name resolves, on every node and to the same address.

A name that one node resolves otherwise loses jobs in ways that name no name: the controller does
not reach a node, one rank of an MPI job waits for the others, a mount hangs, a login takes ten
seconds.
The usual causes: the node's own name on a loopback address (installers write `127.0.1.1 NAME` into
/etc/hosts), a node whose /etc/hosts missed the last change, a name server that does not answer, so
that each look-up waits for it first.

Each node is asked by getent, the resolver that Slurm uses: for its own name, for the way back
from its addresses, and for the names of all nodes of the run. It sends sums of the table of
addresses; only nodes whose sums differ from those of most, and two that do not, are asked for the
table itself. From this machine, each name server is asked directly: those of this machine's
resolv.conf and those of the option servers. What one of them says counts for the nodes that use
it, as their resolv.conf says, and for all nodes where it is named by the option.

Slurm needs addresses for the names that it uses (NodeName, NodeAddr) and short host names that
match them. It needs neither full names nor reverse records; other services do. A node that is
called otherwise in the inventory than it calls itself is not held to that name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Gt

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    MissingFact,
    Target,
    ok,
    option,
)

from ._dns_answers import split_server
from ._dns_compare import judge_between, judge_shared
from ._dns_lookup import is_helpless, judge_files, judge_lookup, lookup, resolv_of, servers_of
from ._dns_own import judge_own, judge_reverse, own, worse
from ._dns_probe import FOLLOW_PROBE, PROBE
from ._dns_records import judge_records
from ._dns_remedies import (
    ADD_RECORD,
    ADD_REVERSE,
    ALLOW_QUESTIONS,
    HOSTS_OR_DNS,
    LESS_NAMES,
    MEND_SERVER,
    MEND_ZONE,
    ONE_SEARCH,
    OWN_ADDRESS,
    OWN_LINE,
    REACHED_ADDRESS,
    READABLE,
    SAME_TABLE,
    SAME_ZONE,
    THREE_SERVERS,
)
from ._dns_view import local_addresses, view_of, whom_to_ask


@dataclass(frozen=True)
class Options:
    own_loopback: Literal["fail", "warn", "allow"] = option(
        "fail", "what it is when the node's own name is a loopback address: fail, warn or allow"
    )
    reverse: Literal["required", "wanted", "ignored"] = option(
        "wanted", "reverse records: required (their lack is a failure), wanted (a warning), ignored"
    )
    family: Literal["any", "ipv4", "ipv6"] = option(
        "any", "the kind of address that the node's own name must have: any, ipv4 or ipv6"
    )
    all_names: bool = option(True, "each node tries the names of all nodes of the run")
    max_seconds: Annotated[float, Gt(0)] = option(
        1.0, "a look-up on the node that takes longer: warn", unit="s"
    )
    servers: tuple[str, ...] = option(
        (),
        "name servers to ask directly, besides those of this machine's resolv.conf: 10.0.0.53, "
        "10.0.0.53:5353, [2001:db8::53]:5353",
    )
    domain: str = option(
        "",
        "the domain of short names when name servers are asked directly; none: those that this "
        "machine searches",
    )

    def __post_init__(self) -> None:
        for server in self.servers:
            split_server(server)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    node = own(facts)
    resolv = resolv_of(facts)
    view = view_of(facts) if options.all_names else None
    dead = lookup(facts, resolv).dead or is_helpless(facts, resolv, view)
    cut = view is not None and view.asked < view.total
    unresolved = not node.addresses or cut or bool(view and view.missing_count)
    # Where no server answers, all that does not resolve has this one cause.
    found: list[Finding] = []
    if node.addresses or not dead:
        found += judge_own(facts, node, options.own_loopback, options.family)
        if not (dead and facts.get("reverse") == "late"):
            found += judge_reverse(facts, node, options.reverse)
    yield from found
    yield from judge_files(facts, resolv, short_fails=not node.addresses and "." not in node.name)
    yield from judge_lookup(
        facts, resolv, options.servers, options.max_seconds, view, unresolved=unresolved
    )
    yield from judge_records(
        facts,
        node,
        _counting(facts, options),
        options.reverse,
        reverse_known=worse(found, "reverse"),
    )
    if view and view.total and not (dead or cut or view.missing_count):
        yield ok("names", f"all {view.total} names of nodes have addresses")


def _counting(facts: Facts, options: Options) -> list[str]:
    """The servers whose word counts for the node."""
    return [*dict.fromkeys([*servers_of(facts, resolv_of(facts)), *options.servers])]


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    able = _able(facts)
    servers = {node: _counting(able[node], options[node]) for node in able}
    for node, finding in judge_between(able, servers):
        if finding.code != "own_family" or options[node].family != "ipv6":
            yield node, finding
    yield from judge_shared(able)


def follow(facts: Mapping[str, Facts], options: Mapping[str, Options]) -> list[str]:
    """The nodes that are asked for their table."""
    return whom_to_ask(_able(facts))


def _able(facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """Without the nodes whose view of names shows nothing, for a reason that is said already."""
    able = {}
    for node, told in facts.items():
        try:
            own(told)
            local_addresses(told)
            view = view_of(told) if "names" in told else None
            resolv = resolv_of(told)
            dead = lookup(told, resolv).dead or is_helpless(told, resolv, view)
        except (MissingFact, ValueError):  # its own judge says so
            continue
        if not (dead and view and view.missing_count):
            able[node] = told
    return able


def probe_from_here(targets: Sequence[Target], options: Options) -> dict[str, dict[str, str]]:
    """What each name server says of each node."""
    # dnspython takes 0.1 s to load, which no other command needs
    from . import _dns_servers

    return _dns_servers.facts(targets, options.servers, options.domain)


CODES = {
    "own": Code("The node's own name is an address that one of its interfaces has."),
    "own_unread": Code("The node's own name could not be read."),
    "own_unresolved": Code("The node's own name has no address on the node.", (ADD_RECORD,)),
    "own_made_up": Code(
        "The node resolves its own name without any record: other nodes may not find it.",
        (ADD_RECORD,),
    ),
    "own_loopback": Code(
        "The node's own name is a loopback address: a program that tells others where it listens "
        "tells them an address of their own.",
        (OWN_LINE,),
    ),
    "own_elsewhere": Code("The node's own name is an address of another machine.", (OWN_ADDRESS,)),
    "own_link_local": Code(
        "The node's own name is an address of one link, which no other node reaches.",
        (REACHED_ADDRESS,),
    ),
    "own_shared": Code(
        "The node's own name is an address that other nodes have as well, as of a bridge.",
        (REACHED_ADDRESS,),
    ),
    "own_addresses": Code("The addresses of the node's interfaces could not be read."),
    "own_family": Code("The own name lacks an address of the family asked for.", (ADD_RECORD,)),
    "reverse": Code("Whether the node's addresses lead back to its name.", (ADD_REVERSE,)),
    "unreadable": Code("A file that all users need cannot be read.", (READABLE,)),
    "search": Code("Several search or domain lines, of which one counts.", (ONE_SEARCH,)),
    "too_many": Code("More name servers than are ever asked.", (THREE_SERVERS,)),
    "lookup": Code("How long the node takes for a name that is in no file."),
    "slow": Code("A look-up takes long, and no time-out explains it.", (MEND_SERVER,)),
    "no_server": Code("No name server answers the node.", (MEND_SERVER,)),
    "dead_server": Code(
        "A name server does not answer; where it is the first, every look-up waits for it.",
        (MEND_SERVER,),
    ),
    "refused": Code("A name server refuses questions about nodes (REFUSED).", (ALLOW_QUESTIONS,)),
    "servfail": Code("A name server fails at questions about nodes (SERVFAIL).", (MEND_ZONE,)),
    "no_answer": Code("A name server loses questions about the node.", (MEND_SERVER,)),
    "not_asked": Code("The name servers could not be asked from this machine."),
    "servers_disagree": Code("Name servers say different things of the node.", (SAME_ZONE,)),
    "records": Code("What DNS says of the node, asked directly."),
    "hosts_contradict": Code(
        "Nodes resolve the name otherwise than DNS does: by /etc/hosts, mostly.", (HOSTS_OR_DNS,)
    ),
    "not_in_dns": Code("Most nodes are in DNS, and this one is not.", (ADD_RECORD,)),
    "names": Code("All names of nodes resolve on the node."),
    "cut": Code("The time was too short to try all names.", (LESS_NAMES,)),
    "differs": Code("The node resolves names otherwise than most nodes do.", (SAME_TABLE,)),
    "unresolved": Code("Other nodes find no address for the node's name.", (ADD_RECORD,)),
    "elsewhere": Code("Other nodes have an old or wrong address for the node.", (OWN_ADDRESS,)),
}

CHECK = Check(
    title="Names of nodes, resolvers and name servers",
    stale="time",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    probe_options=("all_names",),
    needs=("getent", "awk"),
    limit=60,
    probe_nodes=True,
    follow_probe=FOLLOW_PROBE,
    follow=follow,
    probe_from_here=probe_from_here,
    compare=compare,
)
