"""The command `accept`: what somebody lives with until a day."""

import getpass
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from clustercheck import reach
from clustercheck.changes import Acceptance
from clustercheck.check import Status
from clustercheck.errors import ConfigError, UsageError, nearest
from clustercheck.fold import fold
from clustercheck.history import History, Trouble
from clustercheck.history_file import now
from clustercheck.nodeset import shorten
from clustercheck.past import Place, chosen_in, open_history, open_of, table
from clustercheck.planning import Chosen
from clustercheck.render.escape import visible
from clustercheck.render.layout import wrap
from clustercheck.render.terminal import look
from clustercheck.selection import select


@dataclass(frozen=True)
class Accepted:
    """What the command line says of a new acceptance."""

    code: str
    nodes: str
    until: str
    why: str


def accept(place: Place, asked: Accepted) -> int:
    """Keep that somebody lives with a finding."""
    if not asked.why.strip():
        raise UsageError("--why: say in a few words why it may stay, for who reads the mail")
    until = _until(asked.until)
    chosen = chosen_in(place)
    check, _, code = asked.code.partition(".")
    if check not in (*chosen.checks, reach.NAME):
        raise UsageError(f"no check is called {shorten(check)}{nearest(check, chosen.checks)}")
    kept = open_of(place, chosen)
    try:
        nodes = _nodes(chosen, kept, asked.nodes)
        there = [
            one.finding.status
            for (node, name, _, _), one in kept.standing().items()
            if one.there and node in nodes and name == check and code in ("", one.finding.code)
        ]
        known = {f"{check}.{word}" for word in getattr(chosen.checks.get(check), "codes", ())}
        if code and not there and known and asked.code not in known:
            raise UsageError(f"no finding is called {asked.code!r}{nearest(asked.code, known)}")
        status = max(there, default=Status.FAIL)
        one = Acceptance(asked.code, nodes, until, asked.why.strip(), _who(), now(), status)
        number = _written(lambda: kept.accept(one))
    finally:
        kept.close()
    what = f"{visible(asked.code)} on {visible(fold(nodes))}"
    print(f"{number}: {what} is accepted until {until:%Y-%m-%d}")
    if not there:
        print("note: the last sweep did not find it there", file=sys.stderr)
    elif status is not Status.FAIL:
        print(f"note: it is {status.value} now; what is worse comes back", file=sys.stderr)
    return 0


def _nodes(chosen: Chosen, kept: History, text: str) -> tuple[str, ...]:
    if not text.strip():
        raise UsageError("on which nodes? Give -w NODES, as -w node03")
    names = tuple(node.name for node in select(chosen.inventory, text, "", sys.stdin))
    strange = [name for name in names if not kept.knows(name)]
    if strange:
        raise UsageError(f"no sweep has asked {shorten(fold(strange))}")
    return names


def _until(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise UsageError(f"--until: {shorten(text)} is not a day; write such as 2027-01-15")
    try:
        until = date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--until: there is no day {text}") from None
    if until < date.today():
        raise UsageError(f"--until: {text} has passed")
    return until


def _who() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a user whom nothing knows by name
        return f"user {os.getuid()}"


def accepted(place: Place) -> int:
    """List what is accepted, also what was."""
    kept = open_history(place)
    try:
        found = kept.acceptances()
    finally:
        kept.close()
    if not found:
        print("nothing is accepted")
        return 0
    width, _ = look(sys.stdout, os.environ)
    today = date.today()
    rows = [
        [
            str(one.number),
            visible(one.code)
            + ("" if one.status is Status.FAIL else f", up to {one.status.value}"),
            "\n".join(wrap(visible(fold(one.nodes)), 24)),
            f"{one.until:%Y-%m-%d}" + (" (passed)" if one.until < today else ""),
            visible(f"{one.who}, {one.when.astimezone():%Y-%m-%d}"),
            "\n".join(wrap(visible(one.why), max(20, width - 90))),
        ]
        for one in found
    ]
    sys.stdout.write(table(["no.", "finding", "nodes", "until", "by", "why"], rows))
    return 0


def _up_to(status: Status) -> str:
    return "" if status is Status.FAIL else f", up to {status.value}"


def remove(place: Place, number: int) -> int:
    """Take an acceptance back."""
    kept = open_history(place)
    try:
        if not _written(lambda: kept.no_more(number)):
            raise UsageError(
                f"nothing is accepted under {number}; see `clustercheck accept --list`"
            )
    finally:
        kept.close()
    print(f"{number}: no more accepted")
    return 0


def _written(write: Callable[[], int]) -> int:
    try:
        return write()
    except Trouble as trouble:
        raise ConfigError(str(trouble)) from None
