"""What the forms for people show, in which order: one place for the table and for Markdown.

Nothing is escaped here: that depends on where the text goes.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustercheck.check import Quantity, Remedy, Status
from clustercheck.fold import fold, shorten
from clustercheck.report import TROUBLE, Group, NodeResult, Report, groups

LOOK_FIRST = "look first at what these nodes share: a server, a policy, this machine"
DISTURBS = "disturbs running work"

# More reasons for what was skipped than so many are told by --verbose only.
SKIPS_APART = 3
LEFT_OUT = "does not apply (--verbose says why)"

# Characters of a node set inside a sentence.
PEERS_LONGEST = 60


_Well = tuple[Status, tuple[str, ...], str, str]
"""Status, nodes, what is said of them, and the check."""


@dataclass(frozen=True)
class Row:
    """A row of the table. finding is "" where checks passed and nobody asked for more."""

    status: Status
    checks: tuple[str, ...]
    nodes: tuple[str, ...]
    finding: str
    common: bool = False


@dataclass(frozen=True)
class Step:
    """A remedy with the findings' names ("ntp.offset") that it belongs to, and their nodes."""

    remedy: Remedy
    nodes_by_name: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class View:
    """rows: what is wrong, the worst first; then what was skipped, by reason; then what passed.

    steps: each remedy once, in the order of the rows.
    """

    rows: list[Row]
    steps: list[Step]


def view(report: Report, *, verbose: bool) -> View:
    """What is to be shown. verbose: every message on a row of its own, those of PASS too."""
    folded = groups(report, apart=sys.maxsize) if verbose else groups(report)
    return View(_rows(report, folded, verbose), _steps(folded))


def _rows(report: Report, folded: list[Group], verbose: bool) -> list[Row]:
    found = [
        Row(g.status, (g.check,), g.nodes, sentence(g), g.common)
        for g in folded
        if g.status in TROUBLE
    ]
    well = [(g.status, g.nodes, sentence(g), g.check) for g in folded if g.status not in TROUBLE]
    if not verbose:
        well = _skipped(report, [g for g in folded if g.status is Status.SKIP])
        well += [(Status.PASS, nodes, "", check) for check, nodes in _passed(report).items()]
    return found + list(_together(well))


def _skipped(report: Report, folded: list[Group]) -> list[_Well]:
    """What was skipped, with the reasons; where they are many, one line for all of them.

    In that line is what was skipped as a whole: of what was so in part, the rest says enough.
    """
    rows = [(g.status, g.nodes, sentence(g), g.check) for g in folded]
    if len({(nodes, sentence) for _, nodes, sentence, _ in rows}) <= SKIPS_APART:
        return rows
    found: list[_Well] = []
    for group, row in zip(folded, rows, strict=True):
        # What is blocked by another check's failure belongs to that.
        nodes = tuple(n for n in group.nodes if _is_skipped(report.nodes[n], group.check))
        if group.code == "blocked":
            found.append(row)
        elif nodes:
            found.append((group.status, nodes, LEFT_OUT, group.check))
    return found


def _is_skipped(result: NodeResult, check: str) -> bool:
    return all(finding.status is Status.SKIP for finding in result.findings[check])


def _together(
    parts: Iterable[_Well],
) -> Iterator[Row]:
    """One row for all checks of which the same is to be said of the same nodes."""
    checks: dict[tuple[Status, tuple[str, ...], str], list[str]] = {}
    for status, nodes, finding, check in parts:
        checks.setdefault((status, nodes, finding), []).append(check)
    for (status, nodes, finding), names in checks.items():
        yield Row(status, tuple(dict.fromkeys(names)), nodes, finding)


def _passed(report: Report) -> dict[str, tuple[str, ...]]:
    """By check, the nodes where it found what should be and nothing else but skipped parts."""
    passed: dict[str, list[str]] = {check: [] for check in report.checks}
    for node, result in report.nodes.items():
        for check, findings in result.findings.items():
            statuses = {f.status for f in findings}
            if max(statuses - {Status.SKIP}, default=Status.SKIP) is Status.PASS:
                passed.setdefault(check, []).append(node)
    return {check: tuple(nodes) for check, nodes in passed.items() if nodes}


def sentence(group: Group) -> str:
    """The worst message of a group, with the peers and what is alike."""
    remarks = []
    if group.peers:
        peers = shorten(fold(group.peers), len(group.peers), PEERS_LONGEST)
        remarks.append(f"peer{'s' * (len(group.peers) > 1)} {peers}")
    if len(group.messages) > 1:
        more = len(group.nodes) - 1
        if more:
            remarks.append(f"{group.worst}; {more} more node{'s' * (more > 1)} alike")
        else:
            remarks.append(f"{len(group.messages) - 1} more alike")
        if group.span:
            low, high = group.span
            remarks[-1] += f", {low.number:g} to {_quantity(high)}"
    return f"{group.messages[0]} ({'; '.join(remarks)})" if remarks else group.messages[0]


def _quantity(value: Quantity) -> str:
    """ "0.71 s", "12 %"."""
    return f"{value.number:g} {value.unit}".rstrip()


def _steps(folded: list[Group]) -> list[Step]:
    found: dict[Remedy, dict[str, dict[str, None]]] = {}
    for group in folded:
        if group.remedy:
            nodes = found.setdefault(group.remedy, {}).setdefault(group.name, {})
            nodes.update(dict.fromkeys(group.nodes))
    return [
        Step(remedy, {name: tuple(nodes) for name, nodes in by_name.items()})
        for remedy, by_name in found.items()
    ]


def summary(report: Report) -> str:
    """The one line that says how many nodes are well, and how long it took."""
    checks = f"{len(report.checks)} check{'s' * (len(report.checks) != 1)}"
    whole = took(report.seconds)
    if len(report.nodes) == 1:
        (result,) = report.nodes.values()
        parts = [f"{result.node}: {result.status.value}", checks, whole]
    else:
        counts = ", ".join(
            f"{report.counts[status]} {status.value}"
            for status in (Status.PASS, Status.SKIP, Status.WARN, Status.FAIL, Status.UNKNOWN)
            if report.counts[status] or status is Status.PASS
        )
        parts = [f"{len(report.nodes)} nodes: {counts}", checks, whole]
        slowest = _slowest(report)
        if slowest and slowest.seconds is not None:
            parts.append(f"slowest {slowest.node} {took(slowest.seconds)}")
    if report.nothing_checked:
        parts.append("nothing was checked")
    if report.stopped:
        parts.append(f"stopped early: {report.stopped}")
    return "; ".join(parts)


def _slowest(report: Report) -> NodeResult | None:
    timed = [result for result in report.nodes.values() if result.seconds is not None]
    return max(timed, key=lambda result: result.seconds or 0.0, default=None)


def took(number: float) -> str:
    """ "4.2 s"; from 100 s on "12 min 5 s"."""
    if number < 100:
        return f"{number:.1f} s"
    return f"{int(number) // 60} min {int(number) % 60} s"
