"""What changed from one sweep to the next, as mail and page show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from functools import cached_property

from clustercheck import exit_codes
from clustercheck.check import Finding, Status
from clustercheck.report import Report

# When, how much, in what unit: of a finding's figure in past runs, the newest last.
Trend = Sequence[tuple[datetime, float, str]]


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
    """A finding of one node tonight, or one that is gone.

    now: None where it is gone. before: None where it is new.
    since: the first run of the unbroken row that has it.
    turns: how often it came, went or changed its status in the last `nights` runs.
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


@dataclass(frozen=True)
class Acceptance:
    """A finding that somebody knows of and lives with until a day.

    code: a check or a finding, "nfs" or "nfs.slow". until: the last day on which it counts.
    who: the user who said so. when: and at what time.
    """

    code: str
    nodes: tuple[str, ...]
    until: date
    why: str
    who: str
    when: datetime


@dataclass(frozen=True)
class Night:
    """A sweep beside the one before.

    report: tonight's. before: when the run began that it is held against; None for the first.
    changed: what is new, worse, better, gone, flapping or still there, without what is accepted.
    accepted: what is there and accepted, and by whom.
    joined, left: nodes that are asked for the first time, or no more.
    silent: nodes that did not answer.
    trends: figures of past runs by node and "check.code", tonight's last.
    notes: what else the reader of mail or page is to know, such as a history that could not be kept.
    """

    cluster: str
    report: Report
    before: datetime | None = None
    changed: Sequence[Changed] = ()
    accepted: Sequence[tuple[Changed, Acceptance]] = ()
    joined: Sequence[str] = ()
    left: Sequence[str] = ()
    silent: Sequence[str] = ()
    trends: Mapping[str, Mapping[str, Trend]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @cached_property
    def exit_code(self) -> int:
        """As a report's, without what is accepted."""
        if self.report.nothing_checked:
            return exit_codes.NOTHING_CHECKED
        found = [one.now.status for one in self.changed if one.now]
        return exit_codes.OF_STATUS[max(found, default=Status.PASS)]
