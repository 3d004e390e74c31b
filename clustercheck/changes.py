"""What is different from the run before: what the mail and the page are made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from clustercheck import exit_codes, reach
from clustercheck.check import Finding, Status
from clustercheck.report import TROUBLE, NodeResult, Report

# So many changes in so many runs that looked: it comes and goes. It came twice and went twice.
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
    since: the start of the run that first saw it, since when it was there each time.
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


# A monitoring plug-in's codes are its statuses: it is one finding, whatever they are.
OF_PLUGINS = ("ok", "warning", "critical", "unknown")

Key = tuple[str, str, str, str]
"""Node, check, code and peer: by these a finding of tonight is that of yesterday. The code is "" of
a monitoring plug-in."""

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
    def accepted_keys(self) -> frozenset[Key]:
        """What is accepted."""
        return frozenset((c.node, c.check, key_code(c.code), c.peer) for c, _ in self.accepted)

    def status_of(self, node: str) -> Status:
        """The node's worst status but for what is accepted.

        Where that is all there is, PASS; and SKIP where nothing was found out besides: that a node
        gives no answer may be accepted, and makes it no sound one.
        """
        found = [
            ((node, check, key_code(f.code), f.peer), f.status)
            for check, findings in self.report.nodes[node].findings.items()
            for f in findings
            if f.status is not Status.SKIP
        ]
        known = any(status is not Status.UNKNOWN for _, status in found)
        open_ = (status for key, status in found if key not in self.accepted_keys)
        return max(open_, default=Status.PASS if known else Status.SKIP)

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


# How a status stands in a track; "-" is: looked, and not there.
LETTERS = {Status.WARN: "w", Status.UNKNOWN: "u", Status.FAIL: "f"}
ABSENT = "-"


@dataclass(frozen=True)
class Standing:
    """What is remembered of something that is wrong, or lately was.

    finding: as it was last seen. there: it was, when somebody last looked. since: as in Changed.
    seen: the start of the last run that looked.
    track: a letter for each of the last runs that looked, the newest last.
    """

    finding: Finding
    there: bool
    since: datetime
    seen: datetime
    track: str

    @property
    def turns(self) -> int:
        """How often its status changed in the track."""
        return sum(one != other for one, other in zip(self.track, self.track[1:], strict=False))


class Compared(NamedTuple):
    """changed: in the order of the report. standing: to be held against the next run."""

    changed: list[Changed]
    standing: dict[Key, Standing]


def compare(report: Report, standing: Mapping[Key, Standing]) -> Compared:
    """Hold a run against what is remembered of those before.

    What nobody could look at tonight is not gone: the node was silent, the check was skipped or
    came to nothing. Of nodes and checks that were not asked, nothing is said, and all is kept.
    """
    tonight = _troubles(report)
    changed = []
    remembered = dict(standing)
    for key, finding in tonight.items():
        one, remembered[key] = _there(report, key, finding, standing.get(key))
        changed.append(one)
    for key, old in standing.items():
        node, check, _, peer = key
        result = report.nodes.get(node)
        if key in tonight or result is None or check not in (*report.checks, reach.NAME):
            continue
        if not _looked(result, check, peer, old.finding):
            if old.there:
                status = old.finding.status
                changed.append(_changed(Kind.STILL, key, None, status, old.since, old))
            continue
        new = replace(old, there=False, seen=report.started, track=_longer(old.track, ABSENT))
        if not old.there and set(new.track) == {ABSENT}:
            del remembered[key]
            continue
        remembered[key] = new
        if old.there and not _replaced(tonight, key, old.finding):
            changed.append(_changed(Kind.GONE, key, None, old.finding.status, old.since, new))
    order = {node: place for place, node in enumerate(report.nodes)}
    changed.sort(key=lambda one: order[one.node])
    return Compared(changed, remembered)


def key_code(code: str) -> str:
    """The code as a Key has it."""
    return "" if code in OF_PLUGINS else code


def _troubles(report: Report) -> dict[Key, Finding]:
    """What is wrong, by key; of several findings with one key the worst."""
    found: dict[Key, Finding] = {}
    for node, result in report.nodes.items():
        for check, findings in result.findings.items():
            for finding in findings:
                if finding.status in TROUBLE:
                    key = (node, check, key_code(finding.code), finding.peer)
                    if key not in found or found[key].status < finding.status:
                        found[key] = finding
    return found


def _there(
    report: Report, key: Key, finding: Finding, old: Standing | None
) -> tuple[Changed, Standing]:
    was_there = old is not None and old.there
    before = old.finding.status if old and old.there else None
    track = _longer(old.track if old else ABSENT, LETTERS[finding.status])
    since = old.since if old and was_there else report.started
    new = Standing(finding, True, since, report.started, track)
    if before is finding.status:
        kind = Kind.STILL
    elif new.turns >= FLAPPING_TURNS:
        kind = Kind.FLAPPING
    elif before is None:
        kind = Kind.NEW
    else:
        kind = Kind.WORSE if finding.status > before else Kind.BETTER
    return _changed(kind, key, finding, before, since, new, old), new


def _changed(
    kind: Kind,
    key: Key,
    now: Finding | None,
    before: Status | None,
    since: datetime,
    new: Standing,
    old: Standing | None = None,
) -> Changed:
    earlier = new.finding if now is None else old.finding if old else None
    turns, nights = new.turns, len(new.track) - 1
    node, check, _, peer = key
    code = (now or new.finding).code
    return Changed(kind, node, check, code, peer, now, before, since, turns, nights, earlier)


def _longer(track: str, letter: str) -> str:
    return (track + letter)[-FLAPPING_NIGHTS - 1 :]


def _looked(result: NodeResult, check: str, peer: str, old: Finding) -> bool:
    """Whether tonight's findings of the check would have it, if it were there."""
    if check == reach.NAME:
        answered = set(result.findings) != {reach.NAME}
        return answered or old.status is Status.UNKNOWN
    found = result.findings.get(check, ())
    own = [f for f in found if f.peer == peer] or [f for f in found if not peer or not f.peer]
    statuses = {f.status for f in own} - {Status.SKIP}
    if old.status is Status.UNKNOWN:
        return bool(statuses)
    return bool(statuses) and Status.UNKNOWN not in statuses


def _replaced(tonight: Iterable[Key], key: Key, old: Finding) -> bool:
    """What could not be found out, and tonight is wrong in another way: that is not recovered."""
    return old.status is Status.UNKNOWN and any(
        (node, check) == key[:2] and peer in ("", key[3]) for node, check, _, peer in tonight
    )


def sorted_out(
    changed: Iterable[Changed], acceptances: Sequence[Acceptance], today: date, before: date | None
) -> tuple[list[Changed], list[tuple[Changed, Acceptance]]]:
    """What is to be told as wrong, and what is accepted.

    before: the day of the run before. What was accepted then and is no more is new.
    """
    told: list[Changed] = []
    accepted: list[tuple[Changed, Acceptance]] = []
    for one in changed:
        fitting = [a for a in acceptances if _fits(a, one)]
        valid = [a for a in fitting if a.until >= today]
        if valid and one.kind is not Kind.GONE:
            accepted.append((one, max(valid, key=lambda a: a.until)))
        elif one.kind is Kind.STILL and before and any(a.until >= before for a in fitting):
            told.append(replace(one, kind=Kind.NEW))
        else:
            told.append(one)
    return told, accepted


def _fits(acceptance: Acceptance, one: Changed) -> bool:
    status = one.now.status if one.now else one.before
    return status is not None and is_accepted(acceptance, one.node, one.check, one.code, status)


def is_accepted(acceptance: Acceptance, node: str, check: str, code: str, status: Status) -> bool:
    """Whether the finding is what was accepted, and not worse. Whether the day has passed is for
    the caller to say."""
    wanted, _, wanted_code = acceptance.code.partition(".")
    return (
        wanted == check
        and key_code(wanted_code) in ("", key_code(code))
        and (wanted_code not in OF_PLUGINS or code in OF_PLUGINS)
        and node in acceptance.nodes
        and status <= acceptance.status
    )
