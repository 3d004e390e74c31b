"""What the page shows, in which order. Nothing is escaped here: the template does that."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustercheck.changes import Night
from clustercheck.check import Remedy, Status
from clustercheck.render.html_changes import Changes, Marks, changes, without_accepted
from clustercheck.render.html_nodes import Nodes, nodes
from clustercheck.render.html_parts import Part, Parts, Said, seconds_of
from clustercheck.render.view import sentence, summary, took
from clustercheck.report import TROUBLE, Group, NodeResult, Report, groups

# More nodes without trouble than so many are folded into one line.
GOOD_APART = 24

# Of those with trouble, more than so many are: a browser takes long for a table of a thousand rows.
BAD_APART = 200

# Up to so many nodes, the parts of those with trouble stand open.
OPEN = 4

SLOWEST = 10
BAR = 120  # pixels of the longest


@dataclass(frozen=True)
class Row:
    """A node's row of the table of nodes and checks.

    place: of the node in the report, which its links are made of.
    statuses: by check; None where it was not asked.
    groups: the places of its groups among the page's, with blanks between them.
    """

    place: int
    name: str
    statuses: tuple[Status | None, ...]
    seconds: str
    groups: str


@dataclass(frozen=True)
class OnNodes:
    """What is said of several nodes."""

    message: str
    nodes: Nodes


@dataclass(frozen=True)
class Wrong:
    """Trouble that several nodes share, with one remedy. several: it is said in several ways."""

    status: Status
    name: str
    said: tuple[OnNodes, ...]
    count: int
    remedy: Remedy | None
    common: bool

    @property
    def several(self) -> bool:
        return len(self.said) > 1


@dataclass(frozen=True)
class Time:
    """How long a node took. width: of its bar."""

    place: int
    name: str
    seconds: str
    width: int


@dataclass(frozen=True)
class Times:
    """How long the nodes took. told: in a sentence."""

    told: str
    slowest: tuple[Time, ...]


@dataclass(frozen=True)
class Fold:
    """Nodes that are folded away, in the table and below it. caption: how many, and which."""

    caption: str
    nodes: Nodes
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    """All that the template needs.

    rows, parts: nodes with trouble, the worst first, then the others, unless they are many: then
        those are in folds.
    extra: how many of the checks, the first ones, were not asked for and had something to say.
    """

    title: str
    cluster: str
    started: str
    started_iso: str
    took: str
    counts: tuple[tuple[Status, int], ...]
    verdict: str
    contents: tuple[tuple[str, str], ...]
    findings: tuple[Wrong, ...]
    nothing: str
    notes: tuple[str, ...]
    checks: tuple[str, ...]
    extra: int
    groups: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str
    parts: tuple[Part, ...]
    folds: tuple[Fold, ...]
    parts_open: bool
    usual: tuple[Said, ...]
    times: Times | None
    summary: str
    changes: Changes | None


def page(shown: Report | Night) -> Page:
    """The page of a report, or of a night."""
    night = shown if isinstance(shown, Night) else None
    report = shown.report if isinstance(shown, Night) else shown
    heading = _heading(report, _counts(report, night))
    places = {node: place for place, node in enumerate(report.nodes)}
    checks = _checks(report)
    found = _wrong(without_accepted(night) if night else report, places)
    bad, good = _ranked(report)
    seen, worse, well = bad[:BAD_APART], bad[BAD_APART:], good
    if not worse and len(good) <= GOOD_APART:
        seen, well = bad + good, []
    rows = {result.node: row for result, row in _rows(report, checks, places)}
    parts = Parts(report, checks, places, _steps(found), Marks(night))
    started = report.started
    return Page(
        title=f"{_named(night)}{heading}, {started:%Y-%m-%d %H:%M}",
        cluster=f"{_named(night)}{heading}",
        started=f"{started:%Y-%m-%d %H:%M %Z}",
        started_iso=started.isoformat(timespec="seconds"),
        took=took(report.seconds),
        counts=tuple(
            (status, count)
            for status, count in _counts(report, night).items()
            if count or status is not Status.SKIP
        ),
        verdict=_verdict(report),
        contents=_contents(night),
        findings=tuple(found),
        nothing=_nothing(report, night),
        notes=(*(night.troubles if night else ()), *report.notes),
        checks=checks,
        extra=len(checks) - len(report.checks),
        groups=tuple(_members(report)),
        rows=tuple(rows[result.node] for result in seen),
        caption=_caption(len(bad), len(seen)),
        parts=tuple(parts.of(result) for result in seen),
        folds=tuple(
            Fold(
                f"{_count(len(folded), word)} {which}",
                nodes([result.node for result in folded], {}),
                tuple(rows[result.node] for result in folded),
                tuple(parts.of(result) for result in folded),
            )
            for folded, word, which in (
                (worse, "more node", "with something wrong"),
                (well, "node", "where nothing is wrong"),
            )
            if folded
        ),
        parts_open=len(report.nodes) <= OPEN,
        usual=parts.usual_said(),
        times=_times(report, places),
        summary=summary(report),
        changes=changes(night) if night else None,
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _caption(bad: int, shown: int) -> str:
    if shown < bad:
        return f"The {shown:,} worst of {_count(bad, 'node')} with something wrong"
    if bad and shown > bad:
        return f"{_count(shown, 'node')}; those with something wrong stand first"
    return f"{_count(shown, 'node')} with something wrong, the worst first" if bad else ""


def _named(night: Night | None) -> str:
    return f"{night.cluster}, " if night and night.cluster else ""


def _counts(report: Report, night: Night | None) -> dict[Status, int]:
    """Nodes by their worst finding, but for what is accepted; the worst first."""
    counts = Counter(night.status_of(node) for node in report.nodes) if night else report.counts
    return {status: counts[status] for status in sorted(Status, reverse=True)}


def _heading(report: Report, counts: Mapping[Status, int]) -> str:
    if len(report.nodes) == 1:
        (status,) = (status for status, count in counts.items() if count)
        return f"{next(iter(report.nodes))}: {status.value}"
    told = [
        f"{count:,} {status.value}"
        for status, count in counts.items()
        if count and status is not Status.SKIP
    ]
    return f"{_count(len(report.nodes), 'node')}: {', '.join(told) or 'nothing was checked'}"


def _verdict(report: Report) -> str:
    if report.stopped:
        return f"Stopped early: {report.stopped}."
    if report.nothing_checked:
        return "Nothing was checked."
    return ""


def _nothing(report: Report, night: Night | None) -> str:
    if report.nothing_checked:
        return "Nothing was checked."
    return "Nothing but what is accepted." if night and night.accepted else "Nothing."


def _contents(night: Night | None) -> tuple[tuple[str, str], ...]:
    return (
        *([("changed", "What changed")] if night else []),
        ("findings", "What is wrong"),
        ("matrix", "Nodes and checks"),
        ("parts", "Each node"),
    )


def _checks(report: Report) -> tuple[str, ...]:
    """The columns: what was asked for, and before it what else has findings, as `access` has."""
    found = dict.fromkeys(check for result in report.nodes.values() for check in result.findings)
    return (*(check for check in found if check not in report.checks), *report.checks)


def _ranked(report: Report) -> tuple[list[NodeResult], list[NodeResult]]:
    """Nodes with trouble, the worst first, and the others as the report has them."""
    bad = [result for result in report.nodes.values() if result.status in TROUBLE]
    good = [result for result in report.nodes.values() if result.status not in TROUBLE]
    worst_of = {result.node: _severity(result) for result in bad}
    return sorted(bad, key=lambda result: worst_of[result.node], reverse=True), good


def _severity(result: NodeResult) -> tuple[int, ...]:
    """How many checks have each status, the worst one first."""
    counts = Counter(map(result.status_of, result.findings))
    return tuple(counts[status] for status in (Status.FAIL, Status.UNKNOWN, Status.WARN))


def _members(report: Report) -> Mapping[str, Sequence[str]]:
    """The groups that tell nodes apart."""
    return {
        group: members
        for group, members in report.members.items()
        if 0 < len(set(members) & set(report.nodes)) < len(report.nodes)
    }


def _rows(
    report: Report, checks: Sequence[str], places: Mapping[str, int]
) -> list[tuple[NodeResult, Row]]:
    groups_of: dict[str, list[str]] = {}
    for place, members in enumerate(_members(report).values()):
        for node in members:
            groups_of.setdefault(node, []).append(str(place))
    return [
        (
            result,
            Row(
                place=places[result.node],
                name=result.node,
                statuses=tuple(
                    result.status_of(check) if check in result.findings else None
                    for check in checks
                ),
                seconds=seconds_of(result.seconds),
                groups=" ".join(groups_of.get(result.node, ())),
            ),
        )
        for result in report.nodes.values()
    ]


def _wrong(report: Report, places: Mapping[str, int]) -> list[Wrong]:
    """The trouble, the worst first; what has the same name and remedy stands together."""
    together: dict[tuple[Status, str, Remedy | None], list[Group]] = {}
    for group in groups(report):
        if group.status in TROUBLE:
            together.setdefault((group.status, group.name, group.remedy), []).append(group)
    return [
        Wrong(
            status=status,
            name=name,
            said=tuple(OnNodes(sentence(group), nodes(group.nodes, places)) for group in alike),
            count=len({node for group in alike for node in group.nodes}),
            remedy=remedy,
            common=any(group.common for group in alike),
        )
        for (status, name, remedy), alike in together.items()
    ]


def _steps(found: Sequence[Wrong]) -> dict[Remedy, int]:
    """By remedy, the first of the findings that tell it, counted from 1."""
    steps: dict[Remedy, int] = {}
    for number, wrong in enumerate(found, 1):
        if wrong.remedy:
            steps.setdefault(wrong.remedy, number)
    return steps


def _times(report: Report, places: Mapping[str, int]) -> Times | None:
    timed = [(result.seconds, result.node) for result in report.nodes.values() if result.seconds]
    if len(timed) < 2:
        return None
    slowest = sorted(timed, key=lambda one: -one[0])[:SLOWEST]
    numbers = [seconds for seconds, _ in timed]
    longest = slowest[0][0]
    never = len(report.nodes) - len(timed)
    told = f"Half of the nodes took at most {took(statistics.median(numbers))}"
    if len(timed) >= 20:
        told += f", 95 of 100 at most {took(statistics.quantiles(numbers, n=20)[-1])}"
    told += f", the slowest {took(longest)}."
    if never:
        told += f" {_count(never, 'node')} {'was' if never == 1 else 'were'} never tried."
    return Times(
        told,
        tuple(
            Time(places[node], node, f"{seconds:.1f}", round(BAR * seconds / longest))
            for seconds, node in slowest
        ),
    )
