"""What is different from the run before: the types that the mail and the page are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from clustercheck import exit_codes, reach
from clustercheck.check import Finding, Status
from clustercheck.report import Report

# So many changes in so many runs that looked: it comes and goes. On two nights and off two.
FLAPPING_TURNS = 4
FLAPPING_NIGHTS = 14


class Kind(Enum):
    """What became of a finding since the run before."""

    NEW = "new"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"
    STILL = "still"
    FLAPPING = "flapping"


@dataclass(frozen=True)
class Changed:
    """Something that is wrong on a node, or was, and what became of it.

    now: None where it is gone, and where tonight nobody could look (then the kind is STILL): the
        node was silent, or the check was not asked or came to nothing.
    before: its status in the last run that looked; None where it was not there.
    since: the start of the run in which it was first seen; where it is gone, first seen gone.
    turns: how often its status changed in the last `nights` runs that looked.
    earlier: the finding as it was when it was last seen before tonight.
    """

    kind: Kind
    node: str
    check: str
    code: str
    peer: str
    now: Finding | None
    before: Status | None
    since: datetime
    turns: int
    nights: int
    earlier: Finding | None = None

    @property
    def name(self) -> str:
        """The finding's name as reports show it and `explain` takes it: "ntp.offset"."""
        return f"{self.check}.{self.code}"

    @property
    def unseen(self) -> bool:
        """It was there when somebody last looked, and tonight nobody could."""
        return self.now is None and self.kind is Kind.STILL


@dataclass(frozen=True)
class Acceptance:
    """Somebody has said that a finding is known and may stay until a day.

    code: "nfs.slow", or "nfs" for all of a check. until: the last day on which it counts.
    status: the worst status that was accepted; what is worse comes back.
    """

    code: str
    nodes: tuple[str, ...]
    until: date
    why: str
    who: str
    when: datetime
    status: Status = Status.FAIL
    number: int = 0


class Point(NamedTuple):
    """A measured value of one run."""

    when: datetime
    number: float
    unit: str


Trends = Mapping[str, Mapping[str, Sequence[Point]]]
"""By node and finding ("nfs.speed", or "mtu.path node02" of a pair), the oldest value first."""


@dataclass(frozen=True)
class Night:
    """A run beside the one before.

    before: the start of the run that it is compared with; None for the first.
    changed: all that is wrong or was until now, but for what is accepted: new things first.
    accepted: what is accepted, and by whom.
    joined, left: nodes that only this run asked, or only the one before.
    silent: nodes that gave no answer.
    troubles: what went wrong with the sweep itself: the history could not be written, and so on.
    number: of the run in the history; 0 where it could not be stored.
    """

    cluster: str
    report: Report
    before: datetime | None = None
    changed: tuple[Changed, ...] = ()
    accepted: tuple[tuple[Changed, Acceptance], ...] = ()
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    trends: Trends = field(default_factory=dict)
    troubles: tuple[str, ...] = ()
    number: int = 0

    def of(self, *kinds: Kind) -> tuple[Changed, ...]:
        """What is of one of these kinds."""
        return tuple(one for one in self.changed if one.kind in kinds)

    @cached_property
    def accepted_keys(self) -> frozenset[tuple[str, str, str, str]]:
        """(node, check, code, peer) of what is accepted."""
        return frozenset((c.node, c.check, c.code, c.peer) for c, _ in self.accepted)

    def status_of(self, node: str) -> Status:
        """The node's worst status but for what is accepted; PASS where that is all there is."""
        result = self.report.nodes[node]
        if result.status is Status.SKIP:
            return Status.SKIP
        return max(
            (
                f.status
                for check, found in result.findings.items()
                for f in found
                if f.status is not Status.SKIP
                and (node, check, f.code, f.peer) not in self.accepted_keys
            ),
            default=Status.PASS,
        )

    @property
    def exit_code(self) -> int:
        """As the report's, but for what is accepted."""
        if self.report.nothing_checked:
            return exit_codes.NOTHING_CHECKED
        return exit_codes.OF_STATUS[max(self.status_of(node) for node in self.report.nodes)]


def silent(report: Report) -> tuple[str, ...]:
    """The nodes of which nothing but the way to them is known."""
    return tuple(
        node for node, result in report.nodes.items() if set(result.findings) == {reach.NAME}
    )
