"""The one sh script that a node is asked by: the probes of all its checks and what runs them.

It is text that an admin can read first (`clustercheck script`). Only the mark, the options that
probes read and the names of peers differ between nodes.
"""

import math
import re
import secrets
import shlex
from collections.abc import Sequence
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
) -> str:
    """The script for one node.

    become: "sudo" where probes that need root may use `sudo -n`.
    peers: the other nodes that `probe_peers` checks are told of.
    nodes: all nodes of the run, which `probe_nodes` checks are told of.
    step: which of the checks' probes; the clock is asked for with the light ones.
    """
    probes = {a.name: probe_of(a.check, step) for a in asked}
    asked = [a for a in asked if probes[a.name].strip()]
    wants_root = any(a.check.needs_root or "as_root " in probes[a.name] for a in asked)
    limits = {a.name: limit_of(a.check, step) for a in asked}
    clock = frame.clock if step == "light" else 0
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
        f"ROOT={shlex.quote(frame.root)}",
        f"PATH={shlex.quote(frame.path)}",
        "LC_ALL=C LANG=C",
        "export PATH LC_ALL LANG",
        "unset LANGUAGE ENV BASH_ENV CDPATH IFS",
        "",
        "write_probes() {",
        f"cat >\"$1\" <<'{end}'",
        f"cc_mark={shlex.quote(frame.mark)}",
        f"ROOT={shlex.quote(frame.root)}",
        _text("prelude.sh"),
    ]
    for a in asked:
        parts.append(f'if [ "$cc_name" = {shlex.quote(a.name)} ]; then')
        parts += [f"{k}={shlex.quote(v)}" for k, v in variables(a).items()]
        if a.check.probe_peers:
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
    parts += [":", "}", "", _text("main.sh"), "}", "main", ""]
    return "\n".join(parts)


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
