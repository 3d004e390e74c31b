"""The one sh script that a node is asked by: the probes of all its checks and what runs them.

It is text that an admin can read first (`clustercheck script`). Only the mark, the options that
probes read and the names of peers differ between nodes.
"""

import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from clustercheck import __version__
from clustercheck.check import PEERS_AT_MOST, AnyCheck, Target

# System folders first: root's tools are not on the path of an ordinary login, nor of a
# non-interactive one.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"

CLOCK_EXCHANGES = 3

# The last line of a script: all before it only defines what is then done.
START = "main\n"

# What a probe is told of its peers, in the same order.
TOLD_OF_PEERS = ("PEERS", "HOSTS", "PORTS")

# Puts the first lines of a text into cc_some: checks are told of fewer peers than the node has.
FIRST_LINES = """
cc_first() {
    cc_some='' cc_left=$1 cc_rest=$2$cc_nl
    while [ "$cc_left" -gt 0 ] && [ -n "$cc_rest" ]; do
        cc_some=$cc_some${cc_some:+$cc_nl}${cc_rest%%"$cc_nl"*}
        cc_rest=${cc_rest#*"$cc_nl"} cc_left=$((cc_left - 1))
    done
}
"""

# light: every node, first. heavy: what loads shared things. follow: the few asked again at the end.
Step = Literal["light", "heavy", "follow"]


@dataclass(frozen=True)
class Asked:
    """One check as a node is asked it: its name, the check, and the node's options for it.

    follow: the text that its follow probe finds in $FOLLOW; it may come from other nodes.
    """

    name: str
    check: AnyCheck
    options: Any
    follow: str = ""


@dataclass(frozen=True)
class Frame:
    """What surrounds the probes, the same for all nodes of a run.

    mark: starts every line that counts; random, so that no other text can pose as an answer.
    ident: part of the directory's name on the node; visible there, so it must not be the mark.
    clock: how often the node's clock is asked for; 0 where nobody wants it.
    root, path: stand before the paths and commands that probes use; tests point them elsewhere.
    """

    mark: str = field(default_factory=lambda: "@" + secrets.token_hex(12))
    ident: str = field(default_factory=lambda: secrets.token_hex(8))
    clock: int = 0
    root: str = ""
    path: str = PATH


def build(
    frame: Frame,
    asked: Sequence[Asked],
    *,
    become: str = "",
    peers: Sequence[Target] = (),
    nodes: Sequence[str] = (),
    step: Step = "light",
    at_once: Mapping[str, Sequence[Target]] | None = None,
) -> str:
    """The script for one node.

    become: "sudo" where probes that need root may use `sudo -n`.
    peers: the other nodes that `probe_peers` checks are told of.
    nodes: all nodes of the run, which `probe_nodes` checks are told of.
    step: which of the checks' probes; the clock is asked for with the light ones.
    at_once: the peers of many nodes that all get this script, by $SLURMD_NODENAME. They say
        "ready" before they are sent the last line, `START`, and nothing more is sent to them.
    """
    probes = {a.name: probe_of(a.check, step) for a in asked}
    asked = [a for a in asked if probes[a.name].strip()]
    wants_root = any(a.check.needs_root or "as_root " in probes[a.name] for a in asked)
    limits = {a.name: limit_of(a.check, step) for a in asked}
    clock = frame.clock if step == "light" else 0
    if at_once is not None:
        clock = min(clock, 1)
    by_name = at_once if any(a.check.probe_peers for a in asked) else None
    writes = '{ printf "%s\\n" "$cc_mine" && cat; }' if by_name else "cat"
    end = f"END-{frame.ident}"
    while any(end in a.follow for a in asked):  # other nodes know the ident
        end += secrets.token_hex(8)
    names = ", ".join(a.name for a in asked) or "nothing"
    parts = [
        f"# clustercheck {__version__} asks: {names}",
        "# It changes nothing on this node and leaves nothing behind.",
        "main() {",
        f"cc_mark={shlex.quote(frame.mark)} cc_id={frame.ident}",
        f"cc_sudo={int(wants_root and become == 'sudo')} cc_clock={clock}",
        f"cc_at_once={'' if at_once is None else 1}",
        f"ROOT={shlex.quote(frame.root)}",
        f"PATH={shlex.quote(frame.path)}",
        "LC_ALL=C LANG=C",
        "export PATH LC_ALL LANG",
        "unset LANGUAGE ENV BASH_ENV CDPATH IFS",
        "",
        *_peers_by_name(by_name),
        "write_probes() {",
        f"{writes} >\"$1\" <<'{end}'",
        f"cc_mark={shlex.quote(frame.mark)}",
        f"ROOT={shlex.quote(frame.root)}",
        _text("prelude.sh"),
    ]
    for a in asked:
        parts.append(f'if [ "$cc_name" = {shlex.quote(a.name)} ]; then')
        parts += [f"{k}={shlex.quote(v)}" for k, v in variables(a).items()]
        if a.check.probe_peers and by_name:
            count = a.check.peer_count(a.options)
            parts += [f'cc_first {count} "$cc_{k.lower()}" && {k}=$cc_some' for k in TOLD_OF_PEERS]
        elif a.check.probe_peers:
            told = peers[: a.check.peer_count(a.options)]
            parts.append(f"PEERS={_lines([peer.name for peer in told])}")
            parts.append(f"HOSTS={_lines([peer.host for peer in told])}")
            parts.append(f"PORTS={_lines([str(peer.port) for peer in told])}")
        if a.check.probe_nodes:
            parts.append(f"NODES={_lines(nodes)}")
        if step == "follow":
            parts.append(f"FOLLOW={shlex.quote(a.follow)}")
        parts += [
            "probe() {",
            probes[a.name].strip("\n"),
            "}",
            "probe",
            'printf \'%s %s ! whole\\n\' "$cc_mark" "$cc_name" >&3',
            "fi",
            "",
        ]
    parts += [end, "}", "", "launch_probes() {"]
    for a in asked:
        words = [
            a.name,
            str(math.ceil(limits[a.name])),
            "1" if a.check.needs_root else "",
            *a.check.needs,
        ]
        parts.append(shlex.join(["launch", *words]))
    parts += [":", "}", "", _text("main.sh"), "}"]
    if at_once is not None:
        parts.append(f"printf '\\n%s - ready\\n' {shlex.quote(frame.mark)}")
    return "\n".join([*parts, START])


def _peers_by_name(peers: Mapping[str, Sequence[Target]] | None) -> list[str]:
    """The peers of each of many nodes, of which a node finds its own."""
    if not peers:
        return []
    parts = ["cc_mine=", 'case "$SLURMD_NODENAME" in']
    for name, told in peers.items():
        names, hosts = _lines([peer.name for peer in told]), _lines([peer.host for peer in told])
        ports = _lines([str(peer.port) for peer in told]) if any(p.port for p in told) else ""
        hosts = '"$cc_peers"' if hosts == names else hosts
        ports = ports or _lines(["0"] * len(told))
        text = f"cc_peers={names}\ncc_hosts={hosts}\ncc_ports={ports}"
        parts.append(f"{shlex.quote(name)}) cc_mine={shlex.quote(text)} ;;")
    return [*parts, "esac", f"cc_mine=$cc_mine{shlex.quote(FIRST_LINES)}", ""]


def probe_of(check: AnyCheck, step: Step) -> str:
    """The check's probe for a step, "" where it has none."""
    return {"light": check.probe, "heavy": check.heavy_probe, "follow": check.follow_probe}[step]


def limit_of(check: AnyCheck, step: Step) -> float:
    """Seconds after which the check's probe for a step is given up."""
    return check.heavy_limit if step == "heavy" else check.limit


def _lines(names: Sequence[str]) -> str:
    return shlex.quote("\n".join(names))


def variables(asked: Asked) -> dict[str, str]:
    """The options that the check's probe reads, as text for shell variables."""
    return {name: _shell_text(getattr(asked.options, name)) for name in asked.check.probe_options}


def _shell_text(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, (tuple, list)):
        return "\n".join(str(v) for v in value)
    return str(value)


@cache
def _text(name: str) -> str:
    return resources.files("clustercheck").joinpath(name).read_text(encoding="utf-8").strip("\n")


def choose_peers(names: Sequence[str], place: int, most: int = PEERS_AT_MOST) -> list[str]:
    """Peers of the node at a place: those 1, 2, 4, … places further round the list, never itself.

    That is n log n pairs in all, not n squared. Where more than PEERS_AT_MOST are wanted, the
    others follow, the nearest first.
    """
    count = len(names)
    steps = [1 << power for power in range((count - 1).bit_length())]
    if most > PEERS_AT_MOST:
        steps += [step for step in range(1, min(count, most + len(steps))) if step & (step - 1)]
    return [names[(place + step) % count] for step in steps[:most]]


def is_word(text: str) -> bool:
    """May it be a check's name: a word that is safe in sh, in sed and as a file name?"""
    return re.fullmatch(r"[a-z][a-z0-9_]*", text) is not None
