"""The command `history`: what past sweeps found."""

import itertools
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from tabulate import tabulate

from clustercheck import changes, history, planning, reach
from clustercheck.check import Status
from clustercheck.errors import ConfigError, UsageError, nearest
from clustercheck.fold import fold
from clustercheck.history import History, Past, Run
from clustercheck.nodeset import shorten
from clustercheck.parts import SWEEP
from clustercheck.planning import Chosen, Wanted
from clustercheck.render.escape import visible
from clustercheck.render.layout import wrap
from clustercheck.render.terminal import look
from clustercheck.settings import NOBODY
from clustercheck.sweep import cluster_of

SHOWN_RUNS = 30  # of which a strip has a sign each
LAST_CHANGES = 12
SIGNS = {
    Status.PASS: ".",
    Status.SKIP: "-",
    Status.WARN: "w",
    Status.UNKNOWN: "u",
    Status.FAIL: "F",
}
NOT_LOOKED = "_"
LEGEND = (
    "one sign a sweep, the newest last: . pass, - skip, w warn, u unknown, F fail, _ not looked at"
)
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Place:
    """Where the history is. state: the folder, None for the usual one."""

    inventory: Path | None
    state: Path | None


def open_history(place: Place) -> History:
    """The cluster's history. Without an inventory, the only one that there is.

    Raises ConfigError, and UsageError where there are several.
    """
    return open_of(place, chosen_in(place))


def chosen_in(place: Place) -> Chosen:
    """The checks, and the inventory where there is one."""
    return planning.choose_all(Wanted(place.inventory))


def open_of(place: Place, chosen: Chosen) -> History:
    """As open_history, with what was chosen."""
    if place.inventory is not None:
        options = chosen.inventory.options(SWEEP, NOBODY)
        cluster = cluster_of(options, place.inventory)
        return history.open_to_read(history.file_of(place.state, cluster))
    folder = place.state or history.folder()
    found = sorted(folder.glob("*.db"))
    if not found:
        raise ConfigError(f"{folder}: there is no history yet; `clustercheck sweep` begins it")
    if len(found) > 1:
        names = ", ".join(path.stem for path in found)
        raise UsageError(f"of which cluster? Give its inventory with -i; there are {names}")
    return history.open_to_read(found[0])


def show(place: Place, word: str, check: str, *, runs: bool) -> int:
    """Print what is known: of all, of a node, of a check, of a check on a node."""
    chosen = chosen_in(place)
    kept = open_of(place, chosen)
    try:
        _print(kept.notes)
        if runs:
            text = _runs(kept.runs())
        elif not word:
            text = _now(kept)
        elif kept.knows(word):
            text = _check_of_node(kept, word, check) if check else _node(kept, word)
        elif word in chosen.checks or kept.of_check(word):
            if check:
                raise UsageError(f"{shorten(word)} is no node of the history")
            text = _check(kept, word)
        else:
            known = [*chosen.checks, *(kept.last() or (None, []))[1]]
            raise UsageError(
                f"{shorten(word)} is neither a node of the history nor a check"
                f"{nearest(word, known)}"
            )
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"{kept.path}: cannot be read ({error})") from None
    finally:
        kept.close()
    sys.stdout.write(text)
    return 0


def _print(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {visible(note)}", file=sys.stderr)


def _day(when: datetime) -> str:
    return f"{when.astimezone():%Y-%m-%d %H:%M}"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], last: str = "") -> str:
    """As all tables here look, without columns that say nothing; `last` stands below it."""
    full = [place for place, head in enumerate(headers) if head or any(r[place] for r in rows)]
    headers = [headers[place] for place in full]
    rows = [[row[place] for place in full] for row in rows]
    text = tabulate(rows, headers, tablefmt="simple", disable_numparse=True)
    text = "\n".join(line.rstrip() for line in text.splitlines())
    return text + (f"\n\n{last}\n" if last else "\n")


def _runs(runs: Sequence[Run]) -> str:
    if not runs:
        return "no sweep is kept yet\n"
    rows = [
        [
            str(run.number),
            _day(run.started),
            str(run.nodes) if run.state == "done" else "",
            *(str(run.wrong.get(s, 0)) for s in (Status.FAIL, Status.UNKNOWN, Status.WARN)),
            "" if run.seconds is None else f"{run.seconds:.0f} s",
            visible(run.stopped) or {"done": "", "running": "goes on"}.get(run.state, "broken off"),
        ]
        for run in runs
    ]
    return table(["run", "began", "nodes", "fail", "unknown", "warn", "took", ""], rows)


def _now(kept: History) -> str:
    last = kept.last()
    if last is None:
        return "no sweep is kept yet\n"
    width, _ = look(sys.stdout, os.environ)
    accepted = [one for one in kept.acceptances() if one.until >= date.today()]
    groups: dict[tuple[Status, str, str, str], list[str]] = {}
    turns: dict[tuple[Status, str, str, str], int] = {}
    for (node, check, _, _), one in kept.standing().items():
        if one.there and node in last[1]:
            found = one.finding
            until = max(
                (
                    f"accepted until {a.until:%Y-%m-%d}"
                    for a in accepted
                    if changes.is_accepted(a, node, check, found.code, found.status)
                ),
                default="",
            )
            day = f"{one.since.astimezone():%Y-%m-%d}"
            key = (found.status, f"{check}.{found.code}", day, until)
            groups.setdefault(key, []).append(node)
            turns[key] = max(turns.get(key, 0), one.turns)
    rows = [
        [
            status.value,
            visible(name),
            "\n".join(wrap(visible(fold(tuple(dict.fromkeys(nodes)))), max(20, width - 85))),
            since,
            str(turns[status, name, since, until]),
            until,
        ]
        for (status, name, since, until), nodes in sorted(
            groups.items(), key=lambda item: (item[0][3], -item[0][0].place, *item[0][1:])
        )
    ]
    counted = f"{len(last[1])} node{'s' * (len(last[1]) != 1)}"
    said = f"as of the sweep of {_day(last[0])}, {counted}; --runs lists all sweeps"
    if not rows:
        return f"nothing is wrong, {said}\n"
    said += f"\nchanges: of its status in the last {changes.FLAPPING_NIGHTS} sweeps that looked"
    return table(["status", "finding", "nodes", "since", "changes", ""], rows, said)


def _newest(kept: History) -> dict[int, datetime]:
    """The newest whole runs, the oldest of them first."""
    found = [run for run in kept.runs() if run.state == "done"][:SHOWN_RUNS]
    return {run.number: run.started for run in reversed(found)}


def _strip(numbers: Iterable[int], statuses: Mapping[int, Status]) -> str:
    return "".join(SIGNS[statuses[n]] if n in statuses else NOT_LOOKED for n in numbers)


def _worst(past: Iterable[Past], key: Callable[[Past], str]) -> dict[str, dict[int, Status]]:
    found: dict[str, dict[int, Status]] = {}
    for one in past:
        of = found.setdefault(key(one), {})
        of[one.run] = max(of.get(one.run, Status.PASS), one.finding.status)
    return found


def _node(kept: History, node: str) -> str:
    numbers = _newest(kept)
    if not numbers:
        return "no sweep is kept yet\n"
    width, _ = look(sys.stdout, os.environ)
    past = kept.of_node(node, min(numbers) - 1)
    last: dict[str, Past] = {}
    for one in past:
        known = last.get(one.check)
        newer = known is None or one.run > known.run
        if newer or (known and one.finding.status > known.finding.status):
            last[one.check] = one
    rows = []
    for check, statuses in _worst(past, lambda one: one.check).items():
        if check == reach.NAME:  # of which nothing is said where the node answered
            statuses = {one.run: Status.PASS for one in past} | statuses
        strip = _strip(numbers, statuses)
        left = max(20, width - 14 - len(numbers) - 4)
        rows.append(
            [visible(check), strip, "\n".join(wrap(visible(last[check].finding.message), left))]
        )
    return table(["check", "sweeps", "last said"], rows, LEGEND)


def _check_of_node(kept: History, node: str, check: str) -> str:
    width, _ = look(sys.stdout, os.environ)
    numbers = _newest(kept)
    past = [one for one in kept.of_node(node) if one.check == check]
    if not past:
        return f"no sweep has {visible(check)} of {visible(node)}\n"
    lines = [_strip(numbers, _worst(past, lambda one: one.check)[check]), LEGEND]
    lines += _sparklines(past)
    rows = []
    before: dict[tuple[str, str], Status] = {}
    for run, found in itertools.groupby(past, lambda one: one.run):
        now_there: dict[tuple[str, str], Status] = {}
        for one in found:
            key = (one.finding.code, one.finding.peer)
            # of a finding that goes on, only another status is news; messages differ in figures
            if before.get(key) is not one.finding.status:
                name = one.finding.code + (f" ({one.finding.peer})" if one.finding.peer else "")
                said = wrap(visible(one.finding.message), max(20, width - 55))
                status = one.finding.status.value
                rows.append([str(run), _day(one.when), status, visible(name), "\n".join(said)])
            now_there[key] = one.finding.status
        before = now_there
    headers = ["run", "sweep of", "status", "finding", "from then on"]
    return "\n".join(lines) + "\n\n" + table(headers, rows[-LAST_CHANGES:])


def _sparklines(past: Sequence[Past]) -> list[str]:
    series: dict[tuple[str, str, str], list[float]] = {}
    for one in past:
        value = one.finding.value
        if value is not None and value.number == value.number:
            key = (changes.key_code(one.finding.code), one.finding.peer, value.unit)
            series.setdefault(key, []).append(value.number)
    lines = []
    for (code, peer, unit), numbers in series.items():
        name = visible((code or "value") + (f" ({peer})" if peer else ""))
        low, high = min(numbers), max(numbers)
        said = f"{numbers[-1]:.4g} {unit}".rstrip()
        between = f"{low:.4g} to {high:.4g}" if low != high else "always the same"
        lines.append(f"{name}: {sparkline(numbers[-SHOWN_RUNS:])} {visible(said)} ({between})")
    return lines


def sparkline(numbers: Sequence[float]) -> str:
    """A bar for each number; equal numbers are bars of middle height."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return BARS[3] * len(numbers)
    top = len(BARS) - 1
    return "".join(BARS[round((number - low) / (high - low) * top)] for number in numbers)


def _check(kept: History, check: str) -> str:
    numbers = _newest(kept)
    past = kept.of_check(check, min(numbers, default=1) - 1)
    if not past:
        return f"{visible(check)} found nothing wrong in the last {len(numbers)} sweeps\n"
    width, _ = look(sys.stdout, os.environ)
    alike: dict[tuple[str, str], list[str]] = {}
    for both, statuses in _worst(past, lambda one: f"{one.node}\0{one.finding.code}").items():
        node, _, code = both.partition("\0")
        strip = "".join(SIGNS[statuses[n]] if n in statuses else "." for n in numbers)
        alike.setdefault((code, strip), []).append(node)
    left = max(20, width - 30 - len(numbers))
    rows = [
        [visible(f"{check}.{code}"), strip, "\n".join(wrap(visible(fold(tuple(nodes))), left))]
        for (code, strip), nodes in alike.items()
    ]
    legend = "one sign a sweep, the newest last: w warn, u unknown, F fail, . was not there"
    return table(["finding", "sweeps", "nodes"], rows, legend)
