"""What the mail of a sweep says: what changed first and whole, the rest in a line each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from clustercheck.changes import Acceptance, Changed, Kind, Night
from clustercheck.check import Finding, Remedy, Status
from clustercheck.fold import fold, shorten
from clustercheck.render.escape import visible
from clustercheck.render.view import LOOK_FIRST, sentence, summary
from clustercheck.report import (
    COMMON_NODES,
    COMMON_SHARE,
    TROUBLE,
    Group,
    NodeResult,
    Report,
    each,
    groups,
)

NODES_LONGEST = 100  # characters of a node set
MESSAGE_LONGEST = 400  # characters of what a finding says
MOST_ENTRIES = 40  # of a section; the page has all of them
NOTES = 20

ITSELF = "The sweep itself"  # what went wrong with it
TITLES = {
    Kind.NEW: "New",
    Kind.WORSE: "Worse",
    Kind.FLAPPING: "Comes and goes",
    Kind.BETTER: "Better, and not well yet",
    Kind.GONE: "Recovered",
    Kind.STILL: "Still there",
}
WHOLE = (Kind.NEW, Kind.WORSE, Kind.FLAPPING)  # these with message and remedy

Common = set[tuple[str, str, Status, Remedy | None]]

_NOUNS = {
    Status.FAIL: "new failure",
    Status.UNKNOWN: "new unknown",
    Status.WARN: "new warning",
}


@dataclass(frozen=True)
class Entry:
    """One thing that is so on some nodes. status is None for what is no finding.

    message, remedy: of what is shown whole; else "" and None. as_above: the name of the finding
    that the same remedy already stands with.
    remark: since when, how often.
    """

    status: Status | None
    name: str
    nodes: str
    remark: str = ""
    message: str = ""
    remedy: Remedy | None = None
    as_above: str = ""


@dataclass(frozen=True)
class Section:
    """entries of one kind; more is how many were left out."""

    title: str
    entries: tuple[Entry, ...]
    more: int = 0


@dataclass(frozen=True)
class Content:
    """All that a mail says. facts: sentences on the run as a whole. last: how to go on."""

    subject: str
    headline: str
    facts: tuple[str, ...]
    sections: tuple[Section, ...]
    last: tuple[str, ...]


def content(
    night: Night, *, reason: str = "", attached: str = "", only: Sequence[str] = ()
) -> Content:
    """What is to be said of a night.

    reason: why this mail comes, where it is not for what changed. attached: a sentence on the
    page, whether it comes with the mail or why not. only: the nodes, where it is not about all.
    """
    accepting = _passed(night)
    headline = _headline(night, accepting)
    facts = [_compared(night), summary(night.report)]
    if accepting != night.report.counts[Status.PASS]:
        facts.append(f"But for what is accepted, {accepting:,} pass.")
    facts += [f"This mail is about {_set(only)} only."] if only else []
    facts += [reason] if reason else []
    facts += [f"note: {_cut(note)}" for note in night.report.notes[:NOTES]]
    if len(night.report.notes) > NOTES:
        facts.append(f"and {len(night.report.notes) - NOTES:,} notes more")
    common = _common(night.report)
    itself = tuple(Entry(None, "", _cut(trouble)) for trouble in night.troubles)
    sections = [Section(ITSELF, itself[:NOTES], len(itself[NOTES:]))] if itself else []
    sections += [s for kind in TITLES if (s := _section(night, kind, common)).entries]
    sections += [s for s in (_accepted(night), _nodes(night)) if s.entries]
    last = [attached] if attached else []
    last.append(_commands(night))
    return Content(
        subject=visible(f"[{night.cluster}] {headline}"),
        headline=headline,
        facts=tuple(map(visible, facts)),
        sections=tuple(sections),
        last=tuple(map(visible, last)),
    )


def _headline(night: Night, passed: int) -> str:
    """ "2 new failures, 1 recovered, 509/512 pass"."""
    parts = [
        _counted(found, noun, f"{noun}s")
        for status, noun in _NOUNS.items()
        if (found := [c for c in night.of(Kind.NEW) if c.now and c.now.status is status])
    ]
    for kind, word in (
        (Kind.WORSE, "worse"),
        (Kind.FLAPPING, "flapping"),
        (Kind.BETTER, "better"),
        (Kind.GONE, "recovered"),
    ):
        if found := list(night.of(kind)):
            parts.append(_counted(found, word, word))
    parts += [
        f"{len(names):,} node{'s' * (len(names) != 1)} {word}"
        for names, word in ((night.joined, "joined"), (night.left, "left"))
        if names and night.before
    ]
    if not parts:
        parts.append("no change" if night.before else "first sweep")
    if night.report.stopped:
        parts.append("stopped early")
    if night.report.nothing_checked:
        return ", ".join((*parts, "nothing was checked"))
    return ", ".join((*parts, f"{passed}/{len(night.report.nodes)} pass"))


def _passed(night: Night) -> int:
    """How many nodes pass, but for what is accepted."""
    return sum(night.status_of(node) is Status.PASS for node in night.report.nodes)


def _commands(night: Night) -> str:
    """How to see more, of the first thing that the mail tells."""
    if not night.changed:
        return "More: clustercheck history"
    first = night.of(*WHOLE)[:1] or night.changed
    return f"More: clustercheck explain {first[0].name}; clustercheck history {first[0].node}"


def _counted(found: Sequence[Changed], one: str, many: str) -> str:
    """ "2 new failures"; "1 new failure on 1,000 nodes"."""
    kinds = len({change.name for change in found})
    nodes = len({change.node for change in found})
    words = f"{kinds:,} {one if kinds == 1 else many}"
    if kinds == len({(change.node, change.name) for change in found}):
        return words
    return f"{words} on {nodes:,} nodes"


def _compared(night: Night) -> str:
    when = f"Sweep of {_moment(night.report.started)}"
    if night.before is None:
        return f"{when}, the first: all that is not well stands below New."
    return f"{when}, compared with that of {_moment(night.before)}."


def _moment(when: datetime) -> str:
    return f"{when:%a} {when.day} {when:%b %Y %H:%M}"


def _day(when: datetime) -> str:
    return f"{when.day} {when:%b %Y}"


def _section(night: Night, kind: Kind, common: Common) -> Section:
    found = night.of(kind)
    entries = list(
        _recovered(found) if kind is Kind.GONE else _troubled(night, kind, found, common)
    )
    return Section(TITLES[kind], tuple(entries[:MOST_ENTRIES]), len(entries[MOST_ENTRIES:]))


def _troubled(
    night: Night, kind: Kind, found: Sequence[Changed], common: Common
) -> Iterator[Entry]:
    by_name: dict[tuple[str, str, str], list[Changed]] = {}
    for one in found:
        by_name.setdefault((one.node, one.check, one.code), []).append(one)
    shown: dict[Remedy, str] = {}
    for group in _folded(night.report, [(c.node, c.check, c.now) for c in found if c.now]):
        own = [c for node in group.nodes for c in by_name[node, group.check, group.code]]
        entry = Entry(group.status, visible(group.name), _set(group.nodes), _remark(kind, own))
        if kind in WHOLE:
            message = _cut(sentence(group))
            if (group.check, group.code, group.status, group.remedy) in common:
                message += f" → {LOOK_FIRST}"
            as_above = shown.get(group.remedy, "") if group.remedy else ""
            if group.remedy:
                shown.setdefault(group.remedy, entry.name)
            entry = Entry(
                entry.status,
                entry.name,
                entry.nodes,
                entry.remark,
                message,
                _harmless(group.remedy),
                as_above,
            )
        yield entry
    yield from _unseen(kind, [one for one in found if one.now is None])


def _unseen(kind: Kind, found: Sequence[Changed]) -> Iterator[Entry]:
    """What is neither there nor gone for good: nobody could look, or it comes and goes."""
    alike: dict[tuple[str, str], list[Changed]] = {}
    for one in found:
        was = f"was {one.before.value}" if one.before else "was there"
        remark = (
            f"{was}, gone tonight" if kind is Kind.FLAPPING else f"{was}, not looked at tonight"
        )
        alike.setdefault((one.name, remark), []).append(one)
    for (name, remark), own in alike.items():
        more = _remark(kind, own)
        nodes = tuple(dict.fromkeys(one.node for one in own))
        yield Entry(None, visible(name), _set(nodes), f"{remark}; {more}" if more else remark)


def _folded(report: Report, found: Iterable[tuple[str, str, Finding]]) -> list[Group]:
    """The findings folded as in the report, the worst first."""
    nodes: dict[str, dict[str, list[Finding]]] = {}
    for node, check, finding in found:
        nodes.setdefault(node, {}).setdefault(check, []).append(finding)
    results = {node: NodeResult(node, findings) for node, findings in nodes.items()}
    return groups(Report(report.started, 0.0, report.checks, results))


def _common(report: Report) -> Common:
    """What so many nodes have that what they share is to be looked at first."""
    found = Counter(check for result in report.nodes.values() for check in result.findings)
    # What belongs to no check is only there where there is trouble.
    asked = {c: found[c] if c in report.checks else len(report.nodes) for c in found}
    nodes: dict[tuple[str, str, Status, Remedy | None], set[str]] = {}
    for node, check, finding in each(report):
        if finding.status in TROUBLE:
            kind = (check, finding.code, finding.status, finding.remedy)
            nodes.setdefault(kind, set()).add(node)
    return {
        kind
        for kind, names in nodes.items()
        if len(names) >= COMMON_NODES and len(names) > COMMON_SHARE * asked[kind[0]]
    }


def _remark(kind: Kind, found: Sequence[Changed]) -> str:
    if kind is Kind.STILL:
        return _since(found)
    if kind in (Kind.WORSE, Kind.BETTER):
        before = sorted({one.before.value for one in found if one.before})
        return f"was {' or '.join(before)}" if before else ""
    if kind is Kind.FLAPPING:
        most = max(found, key=lambda one: one.turns)
        return f"{most.turns} changes in {most.nights} nights"
    return ""


def _since(found: Sequence[Changed]) -> str:
    first, last = min(one.since for one in found), max(one.since for one in found)
    if _day(first) == _day(last):
        return f"since {_day(first)}"
    return f"since {_day(first)} to {_day(last)}"


def _recovered(found: Sequence[Changed]) -> Iterator[Entry]:
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        was = f"was {one.before.value}" if one.before else ""
        alike.setdefault((one.check, one.code, was), []).append(one.node)
    for (check, code, was), nodes in sorted(alike.items(), key=lambda pair: -len(pair[1])):
        yield Entry(None, visible(f"{check}.{code}"), _set(tuple(dict.fromkeys(nodes))), was)


def _accepted(night: Night) -> Section:
    by: dict[Acceptance, list[Changed]] = {}
    for one, acceptance in night.accepted:
        by.setdefault(acceptance, []).append(one)
    entries = []
    for acceptance, found in by.items():
        nodes = tuple(dict.fromkeys(one.node for one in found))
        worst = max((one.now.status for one in found if one.now), default=None)
        why = f"until {_day_of(acceptance)}: {_cut(acceptance.why)} ({_cut(acceptance.who)})"
        entries.append(Entry(worst, visible(acceptance.code), _set(nodes), why))
    kept, left = entries[:MOST_ENTRIES], entries[MOST_ENTRIES:]
    return Section("Accepted", tuple(kept), len(left))


def _day_of(acceptance: Acceptance) -> str:
    return f"{acceptance.until.day} {acceptance.until:%b %Y}"


def _nodes(night: Night) -> Section:
    lists = (
        ("joined", night.joined if night.before else ()),
        ("left", night.left),
        ("gave no answer", night.silent),
    )
    entries = [Entry(None, "", _set(names), remark) for remark, names in lists if names]
    return Section("Nodes", tuple(entries))


def _harmless(remedy: Remedy | None) -> Remedy | None:
    if remedy is None:
        return None
    return remedy._replace(text=visible(remedy.text), see=visible(remedy.see))


def _set(nodes: Sequence[str]) -> str:
    return shorten(visible(fold(tuple(nodes))), len(nodes), NODES_LONGEST)


def _cut(said: str) -> str:
    said = visible(said[: 2 * MESSAGE_LONGEST])
    return said if len(said) <= MESSAGE_LONGEST else said[: MESSAGE_LONGEST - 1] + "…"
