"""What the page says of a night beside the one before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from clustercheck.changes import Acceptance, Changed, Kind, Night, Point
from clustercheck.check import Finding, Status
from clustercheck.render.html_nodes import Nodes, nodes
from clustercheck.render.html_trend import POINTS, Trend, trend
from clustercheck.render.view import sentence
from clustercheck.report import NodeResult, Report, groups

# In which order the kinds stand, with their headings.
TITLES = {
    Kind.NEW: "New",
    Kind.WORSE: "Worse",
    Kind.FLAPPING: "Comes and goes",
    Kind.BETTER: "Better",
    Kind.GONE: "Gone",
    Kind.STILL: "Still there",
}


# With more values than so many, those of what passes are drawn by fewer points.
MANY_TRENDS = 1_000
FEWER_POINTS = 12

# With more than so many, they are not drawn at all: the page would not be under 5 MB.
MOST_TRENDS = 12_000


@dataclass(frozen=True)
class Change:
    """One thing that became of findings on some nodes. status: None where it is gone."""

    status: Status | None
    name: str
    message: str
    nodes: Nodes
    told: str = ""


@dataclass(frozen=True)
class Part:
    """Changes of one kind."""

    title: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Changes:
    """compared: with which run, or why with none."""

    compared: str
    parts: tuple[Part, ...]


def changes(night: Night) -> Changes:
    """All that changed, what is accepted, and which nodes came, went or were silent."""
    places = {node: place for place, node in enumerate(night.report.nodes)}
    parts = [
        Part(title, tuple(_folded(night, places, [c for c in night.of(kind) if not c.unseen])))
        for kind, title in TITLES.items()
    ]
    unseen = [c for c in night.changed if c.unseen]
    parts += [
        Part("Was there, and could not be looked at", tuple(_folded(night, places, unseen))),
        Part("Accepted", tuple(_accepted(night, places))),
        *_nodes(night, places),
    ]
    return Changes(_compared(night), tuple(part for part in parts if part.changes))


def without_accepted(night: Night) -> Report:
    """The report with what nobody has accepted; nodes that have only that are not in it."""
    left = {}
    for node, result in night.report.nodes.items():
        kept = {
            check: [f for f in found if (node, check, f.code, f.peer) not in night.accepted_keys]
            for check, found in result.findings.items()
        }
        kept = {check: found for check, found in kept.items() if found}
        if kept:
            left[node] = NodeResult(node, kept, result.seconds)
    return replace(night.report, nodes=left)


class Marks:
    """What is to be said beside a node's finding: what became of it, and how its value went."""

    def __init__(self, night: Night | None) -> None:
        self._trends = night.trends if night else {}
        self._many = sum(map(len, self._trends.values())) > MANY_TRENDS
        self._too_many = sum(map(len, self._trends.values())) > MOST_TRENDS
        self._at: tuple[str, Mapping[tuple[str, str], Sequence[Point]]] = ("", {})
        self._words: dict[tuple[str, str, str, str], str] = {}
        if night:
            for one in night.changed:
                self._words[_key(one)] = _word(one)
            for one, acceptance in night.accepted:
                self._words[_key(one)] = f"accepted until {acceptance.until:%Y-%m-%d}"

    def word(self, node: str, check: str, finding: Finding) -> str:
        """ "new", "since 2026-03-01"; "" where nothing is to be said."""
        return self._words.get((node, check, finding.code, finding.peer), "")

    def trend(self, node: str, check: str, finding: Finding) -> Trend | None:
        """How the value went.

        What passes mostly has another code than what does not. So the values of all codes of the
        check are one line, if they have one unit and no run has two of them.
        """
        value = finding.value
        if value is None or node not in self._trends:
            return None
        if finding.status is Status.PASS and self._too_many:
            return None
        most = FEWER_POINTS if finding.status is Status.PASS and self._many else POINTS
        alike = [p for p in self._points_of(node)[check, finding.peer] if p.unit == value.unit]
        if len({point.when for point in alike}) == len(alike):
            return trend(sorted(alike), most)
        end = f" {finding.peer}" if finding.peer else ""
        return trend(self._trends[node].get(f"{check}.{finding.code}{end}", ()), most)

    def _points_of(self, node: str) -> Mapping[tuple[str, str], Sequence[Point]]:
        """All points of a node by check and peer; the nodes come one after the other."""
        if self._at[0] != node:
            found: dict[tuple[str, str], list[Point]] = defaultdict(list)
            for name, points in self._trends[node].items():
                code, _, peer = name.partition(" ")
                found[code.rpartition(".")[0], peer] += points
            self._at = (node, found)
        return self._at[1]


def _key(one: Changed) -> tuple[str, str, str, str]:
    return one.node, one.check, one.code, one.peer


def _word(one: Changed) -> str:
    if one.kind is Kind.STILL:
        return f"since {_day(one.since)}"
    if one.kind in (Kind.WORSE, Kind.BETTER) and one.before:
        return f"{one.kind.value}, was {one.before.value}"
    if one.kind is Kind.FLAPPING:
        return _turns([one])
    return str(one.kind.value)


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d}"


def _turns(found: Sequence[Changed]) -> str:
    most = max(found, key=lambda one: one.turns)
    return f"{most.turns} changes in {most.nights} runs"


def _folded(night: Night, places: dict[str, int], found: Sequence[Changed]) -> Iterable[Change]:
    """Alike ones together, the worst first."""
    by_node: dict[str, dict[str, list[Finding]]] = {}
    for one in found:
        finding = one.now or one.earlier
        if finding is None:
            finding = Finding(one.before or Status.UNKNOWN, one.code, "", None, one.peer)
        by_node.setdefault(one.node, {}).setdefault(one.check, []).append(finding)
    made = replace(
        night.report, nodes={node: NodeResult(node, each) for node, each in by_node.items()}
    )
    for group in groups(made):
        of = [one for one in found if one.name == group.name and one.node in group.nodes]
        gone = of[0].now is None
        yield Change(
            status=None if gone else group.status,
            name=group.name,
            message=sentence(group) if any(group.messages) else "",
            nodes=nodes(group.nodes, places),
            told=_told(of),
        )


def _told(found: Sequence[Changed]) -> str:
    kind = found[0].kind
    before = sorted({one.before for one in found if one.before}, reverse=True)
    was = f"was {' or '.join(status.value for status in before)}" if before else ""
    if kind is Kind.FLAPPING:
        return _turns(found)
    if kind is Kind.STILL:
        days = sorted({_day(one.since) for one in found})
        return f"since {days[0]}" + (f", the last since {days[-1]}" if len(days) > 1 else "")
    return "" if kind is Kind.NEW else was


def _accepted(night: Night, places: dict[str, int]) -> Iterable[Change]:
    together: dict[Acceptance, list[Changed]] = {}
    for one, acceptance in night.accepted:
        together.setdefault(acceptance, []).append(one)
    for acceptance, found in together.items():
        about = f"until {acceptance.until:%Y-%m-%d}, says {acceptance.who}: {acceptance.why}"
        for change in _folded(night, places, found):
            yield replace(change, told=about)


def _nodes(night: Night, places: dict[str, int]) -> Iterable[Part]:
    for title, names in (
        ("Nodes that gave no answer", night.silent),
        ("Nodes that are new", night.joined),
        ("Nodes that are not asked any more", night.left),
    ):
        if names:
            yield Part(title, (Change(None, "", "", nodes(names, places)),))


def _compared(night: Night) -> str:
    if night.before is None:
        return "This is the first run; there is none to compare it with."
    told = f"Compared with the run of {night.before:%Y-%m-%d %H:%M %Z}".rstrip()
    kinds = (Kind.NEW, Kind.WORSE, Kind.FLAPPING, Kind.BETTER, Kind.GONE)
    different = night.of(*kinds) or night.joined or night.left
    return f"{told}." if different else f"{told}: nothing changed."
