"""What a run found out, folded as people and programs want it. The exit code is decided here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clustercheck.check import Finding, Remedy, Status
from clustercheck.verdict import worst

# The monitoring plug-ins' numbers; nothing checked counts as UNKNOWN.
EXIT_CODES = {
    Status.PASS: 0,
    Status.SKIP: 0,
    Status.WARN: 1,
    Status.FAIL: 2,
    Status.UNKNOWN: 3,
}
EXIT_USAGE = 64
EXIT_CONFIG = 78

# From how many nodes on, and from what share, equal trouble points at something common to them.
COMMON_NODES = 3
COMMON_SHARE = 0.5


@dataclass(frozen=True)
class NodeResult:
    """One node's findings by check, in the order in which they are to be shown.

    seconds: from the connection's start to the last answer; None where it was never tried.
    """

    node: str
    findings: Mapping[str, Sequence[Finding]]
    seconds: float | None = None

    @property
    def status(self) -> Status:
        """The worst of all findings; UNKNOWN where there is none."""
        return worst(f for findings in self.findings.values() for f in findings)


@dataclass(frozen=True)
class Report:
    """All that a run found out.

    started: with its time zone.
    seconds: wall time of the whole run.
    checks: names of the checks that were asked for.
    nodes: every node that was asked for, also those that did not answer.
    stopped: why the run ended before its time ("Ctrl-C", "--max-time 60 s"), or "".
    notes: what else the reader ought to know (options ignored, a node's own remarks).
    """

    started: datetime
    seconds: float
    checks: Sequence[str]
    nodes: Mapping[str, NodeResult]
    stopped: str = ""
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def counts(self) -> dict[Status, int]:
        """How many nodes have each status as their worst; SKIP counts as PASS for a node that
        passed another check, and every status has an entry."""
        counts = dict.fromkeys(Status, 0)
        for result in self.nodes.values():
            counts[_node_status(result)] += 1
        return counts

    @property
    def exit_code(self) -> int:
        """0 all pass or skip, 1 worst is WARN, 2 any FAIL, 3 any UNKNOWN and no FAIL, or nothing
        checked at all."""
        statuses = {_node_status(result) for result in self.nodes.values()}
        return EXIT_CODES[max(statuses, default=Status.UNKNOWN)]


def _node_status(result: NodeResult) -> Status:
    status = result.status
    passed = any(f.status is Status.PASS for fs in result.findings.values() for f in fs)
    return Status.PASS if status is Status.SKIP and passed else status


@dataclass(frozen=True)
class Group:
    """Equal findings of several nodes, to be shown once.

    nodes: in the order of the report; a node stands once, however many peers it has trouble with.
    peers: the other nodes of pairwise findings.
    messages: the different messages, the first node's first; more than one where only figures
        differ ("clock is 0.71 s fast", "clock is 0.74 s fast").
    common: so many nodes have it that what they share is to be looked at first.
    """

    status: Status
    check: str
    code: str
    messages: Sequence[str]
    nodes: Sequence[str]
    peers: Sequence[str]
    remedy: Remedy | None
    common: bool


# How many different messages of one code are still shown one by one.
SHOWN_APART = 3


def groups(report: Report) -> list[Group]:
    """Findings folded, the worst first, then by number of nodes and check.

    Findings are one group when status, code and message are equal; where a code has more than
    SHOWN_APART messages, all of that code are one group.
    """
    by_code: dict[tuple[Status, str, str], dict[str, list[tuple[str, Finding]]]] = {}
    for node, check, finding in each(report):
        messages = by_code.setdefault((finding.status, check, finding.code), {})
        messages.setdefault(finding.message, []).append((node, finding))
    answered = len(report.nodes)
    found: list[Group] = []
    for (status, check, code), messages in by_code.items():
        if len(messages) > SHOWN_APART:
            parts = [[pair for pairs in messages.values() for pair in pairs]]
        else:
            parts = list(messages.values())
        for pairs in parts:
            nodes = list(dict.fromkeys(node for node, _ in pairs))
            trouble = status not in (Status.PASS, Status.SKIP)
            found.append(
                Group(
                    status,
                    check,
                    code,
                    list(dict.fromkeys(f.message for _, f in pairs)),
                    nodes,
                    list(dict.fromkeys(f.peer for _, f in pairs if f.peer)),
                    next((f.remedy for _, f in pairs if f.remedy), None),
                    trouble
                    and len(nodes) >= COMMON_NODES
                    and len(nodes) > COMMON_SHARE * answered,
                )
            )
    order = {check: place for place, check in enumerate(report.checks)}
    found.sort(key=lambda g: (_rank(g.status), -len(g.nodes), order.get(g.check, -1)))
    return found


def _rank(status: Status) -> int:
    """Worst first."""
    return -list(Status).index(status)


def each(report: Report) -> Iterator[tuple[str, str, Finding]]:
    """(node, check, finding) for every finding, in the report's order."""
    for node, result in report.nodes.items():
        for check, findings in result.findings.items():
            for finding in findings:
                yield node, check, finding


