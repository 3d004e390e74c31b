"""What a run found out, folded as people and programs want it. The exit code is decided here."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from clustercheck import exit_codes, reach
from clustercheck.check import Finding, Quantity, Remedy, Status, unknown
from clustercheck.verdict import worst

# From how many nodes on, and from what share, equal trouble points at something common to them.
COMMON_NODES = 3
COMMON_SHARE = 0.5

# How many different messages of one code are still shown one by one.
SHOWN_APART = 3

TROUBLE = (Status.FAIL, Status.UNKNOWN, Status.WARN)

# Stands where a check or a node has no finding at all: nothing said is no success.
_NOTHING = unknown("not_answered", "nothing was found out")


@dataclass(frozen=True)
class NodeResult:
    """One node's findings by check, in the order in which they are to be shown.

    findings: where there are none, for a check or for the node, UNKNOWN is put in their place.
    seconds: from the connection's start to the last answer; None where it was never tried.
    """

    node: str
    findings: Mapping[str, Sequence[Finding]]
    seconds: float | None = None

    def __post_init__(self) -> None:
        whole = {check: found or (_NOTHING,) for check, found in self.findings.items()}
        object.__setattr__(self, "findings", whole or {reach.NAME: (_NOTHING,)})

    @cached_property
    def status(self) -> Status:
        """The worst of all findings; SKIP only where nothing at all was checked."""
        statuses = {f.status for found in self.findings.values() for f in found}
        return max(statuses - {Status.SKIP}, default=Status.SKIP)

    def status_of(self, check: str) -> Status:
        """The worst of one check's findings."""
        return worst(self.findings[check])


@dataclass(frozen=True)
class Report:
    """All that a run found out.

    started: with its time zone.
    seconds: wall time of the whole run.
    checks: names of the checks that were asked for.
    nodes: every node that was asked for, also those that did not answer.
    stopped: why the run ended before its time ("interrupted", "--max-time of 60 s"), or "".
    notes: what else the reader ought to know (options ignored, a node's own remarks).
    members: the inventory's groups with all their nodes, also those that were not asked for.
    """

    started: datetime
    seconds: float
    checks: Sequence[str]
    nodes: Mapping[str, NodeResult]
    stopped: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[Status, int]:
        """How many nodes have each status; every status has an entry."""
        return dict.fromkeys(Status, 0) | Counter(r.status for r in self.nodes.values())

    @property
    def nothing_checked(self) -> bool:
        """There is no node, or every check was skipped on every node."""
        return all(result.status is Status.SKIP for result in self.nodes.values())

    @property
    def exit_code(self) -> int:
        """0 all pass or skip, 1 worst is WARN, 2 any FAIL, 3 any UNKNOWN and no FAIL, or nothing
        checked at all."""
        if self.nothing_checked:
            return exit_codes.NOTHING_CHECKED
        return exit_codes.OF_STATUS[max(result.status for result in self.nodes.values())]


@dataclass(frozen=True)
class Group:
    """Findings of several nodes that are alike, to be shown once.

    nodes: in the order of the report; a node stands once, however many peers it has trouble with.
    peers: the other nodes of pairwise findings.
    worst: the node whose figure is worst; the first where there are no figures.
    messages: the different messages, that of `worst` first; more than one where only figures
        differ ("clock is 0.71 s fast", "clock is 0.74 s fast").
    span: the smallest and the largest figure where they differ.
    common: so many nodes have it that what they share is to be looked at first.
    """

    status: Status
    check: str
    code: str
    nodes: tuple[str, ...]
    peers: tuple[str, ...]
    worst: str
    messages: tuple[str, ...]
    span: tuple[Quantity, Quantity] | None
    remedy: Remedy | None
    common: bool

    @property
    def name(self) -> str:
        """The finding's name as reports show it and `explain` takes it: "ntp.offset"."""
        return f"{self.check}.{self.code}"


_Found = tuple[str, Finding]


def groups(report: Report, *, apart: int = SHOWN_APART) -> list[Group]:
    """Findings folded, the worst first, then by number of nodes and check.

    Findings are one group when status, check, code, remedy and message are equal. Where a code has
    more than `apart` messages, the message need not be equal.
    """
    kinds: dict[tuple[Status, str, str, Remedy | None], dict[str, list[_Found]]] = {}
    for node, check, finding in each(report):
        messages = kinds.setdefault((finding.status, check, finding.code, finding.remedy), {})
        messages.setdefault(finding.message, []).append((node, finding))
    asked = Counter(check for result in report.nodes.values() for check in result.findings)
    found: list[Group] = []
    for (status, check, code, remedy), messages in kinds.items():
        parts = list(messages.values())
        if len(parts) > apart:
            parts = [[pair for part in parts for pair in part]]
        # What belongs to no check is only there where there is trouble.
        of = asked[check] if check in report.checks else len(report.nodes)
        for part in parts:
            nodes = tuple(dict.fromkeys(node for node, _ in part))
            ranked, span = _ranked(part)
            found.append(
                Group(
                    status=status,
                    check=check,
                    code=code,
                    nodes=nodes,
                    peers=tuple(dict.fromkeys(f.peer for _, f in part if f.peer)),
                    worst=ranked[0][0],
                    messages=tuple(dict.fromkeys(f.message for _, f in ranked)),
                    span=span,
                    remedy=remedy,
                    common=status in TROUBLE
                    and len(nodes) >= COMMON_NODES
                    and len(nodes) > COMMON_SHARE * of,
                )
            )
    severity = {status: -place for place, status in enumerate(Status)}
    order = {check: place for place, check in enumerate(report.checks)}
    found.sort(key=lambda g: (severity[g.status], -len(g.nodes), order.get(g.check, -1)))
    return found


def _ranked(found: list[_Found]) -> tuple[list[_Found], tuple[Quantity, Quantity] | None]:
    """The findings with the worst first, and the smallest and largest figure if they differ.

    Only figures in the unit of the first one are compared.
    """
    figures = [(pair, pair[1].value) for pair in found]
    unit = next((value.unit for _, value in figures if value), "")
    valued = [(pair, v) for pair, v in figures if v and v.unit == unit and math.isfinite(v.number)]
    if not valued:
        return found, None
    low = min((v for _, v in valued), key=lambda v: v.number)
    high = max((v for _, v in valued), key=lambda v: v.number)
    first = max(valued, key=lambda p: -p[1].number if p[1].less_is_worse else abs(p[1].number))[0]
    return [first, *found], (low, high) if low.number != high.number else None


def each(report: Report) -> Iterator[tuple[str, str, Finding]]:
    """(node, check, finding) for every finding, in the report's order."""
    for node, result in report.nodes.items():
        for check, findings in result.findings.items():
            for finding in findings:
                yield node, check, finding
