"""Go or no-go? From a report, and what a caller needs, to a decision with its reasons.

A node is healthy where something was checked and nothing failed or stayed unknown; a warning does
not keep work away. Only what is known to be healthy is counted, and nothing checked is never a go.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Literal

from clustercheck import reach
from clustercheck.check import Finding, Remedy, Status, fail, unknown
from clustercheck.digest import hash_of
from clustercheck.fold import fold
from clustercheck.report import COMMON_NODES, NodeResult, Report, groups

SLURM = "slurm"
MOST_DRIFT = 50  # fields in which nodes differ that are told

SEE_STATE = Remedy(
    "See why with `scontrol show node NAME` (Reason, and who set it), and ask them before anything"
    " is changed. Once the cause is mended, `scontrol update NodeName=NAME State=RESUME` brings it"
    " back."
)

OnUnknown = Literal["", "go", "no-go"]


class Answer(Enum):
    """What the gate says."""

    GO = "go"
    NO_GO = "no-go"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Need:
    """What the caller asks for.

    nodes: how many healthy ones. spare: how many more are to be named.
    on_unknown: what is said where too little is known; "" says that.
    suspect_percent: a failure on more than this share of the nodes, and on three at least, is
        held to be the check's own, or of something that all of them share.
    """

    nodes: int
    spare: int = 0
    on_unknown: OnUnknown = ""
    suspect_percent: float = 50


@dataclass(frozen=True)
class Reason:
    """What speaks against nodes, once for all that have it.

    suspect: nobody is excluded for it.
    """

    nodes: tuple[str, ...]
    check: str
    code: str
    status: Status
    message: str
    remedy: Remedy | None
    suspect: bool = False

    @property
    def name(self) -> str:
        """As reports show it and `explain` takes it: "ntp.offset"."""
        return f"{self.check}.{self.code}"


@dataclass(frozen=True)
class Decision:
    """The answer, and each node's part in it; nodes in the order of the set.

    why: one sentence.
    healthy, excluded, unreported: every node is in one of them. Of an unreported one too little
        is known.
    chosen: exactly as many as are needed, of those that may be used; empty unless it is a go.
    spares: further ones, no more than were asked for.
    reasons: the worst first.
    """

    answer: Answer
    why: str
    need: Need
    healthy: tuple[str, ...]
    excluded: tuple[str, ...]
    unreported: tuple[str, ...]
    chosen: tuple[str, ...]
    spares: tuple[str, ...]
    reasons: tuple[Reason, ...]

    @property
    def degraded(self) -> bool:
        """It is a go, and not all nodes, or fewer spares than wanted, can be had."""
        lacking = len(self.spares) < self.need.spare
        return self.answer is Answer.GO and bool(self.excluded or self.unreported or lacking)


def decide(
    report: Report,
    need: Need,
    trouble: Mapping[str, str] | None = None,
    first: Collection[str] | None = None,
) -> Decision:
    """The decision on a report.

    trouble: by node, why Slurm gives it no work.
    first: nodes that are chosen before others; None makes no difference.
    """
    report = _with_trouble(report, trouble or {})
    suspects = _suspects(report, need.suspect_percent)
    statuses = {name: _status(result, suspects) for name, result in report.nodes.items()}
    excluded = [name for name, status in statuses.items() if status is Status.FAIL]
    unreported = [name for name, status in statuses.items() if status is Status.UNKNOWN]
    bad = (Status.FAIL, Status.UNKNOWN)
    healthy = [name for name, status in statuses.items() if status not in bad]
    usable = _in_order(healthy, first)
    if need.on_unknown == "go":
        usable += _in_order(unreported, first)
    if len(healthy) + len(unreported) < need.nodes or not report.nodes:
        answer = Answer.NO_GO
    elif suspects and need.on_unknown != "go" or len(usable) < need.nodes:
        answer = Answer.NO_GO if need.on_unknown == "no-go" else Answer.UNDECIDED
    else:
        answer = Answer.GO
    go = answer is Answer.GO
    chosen = set(usable[: need.nodes]) if go else set()
    spares = set(usable[need.nodes : need.nodes + need.spare]) if go else set()
    return Decision(
        answer=answer,
        why=_why(report, need, len(healthy), len(unreported), suspects),
        need=need,
        healthy=tuple(healthy),
        excluded=tuple(excluded),
        unreported=tuple(unreported),
        chosen=tuple(name for name in report.nodes if name in chosen),
        spares=tuple(name for name in report.nodes if name in spares),
        reasons=tuple(_reasons(report, suspects)),
    )


def cannot_decide(need: Need, why: str, nodes: Sequence[str] = ()) -> Decision:
    """The decision where nothing could be asked. It is never a go: nothing was checked."""
    answer = Answer.NO_GO if need.on_unknown == "no-go" else Answer.UNDECIDED
    return Decision(answer, why, need, (), (), tuple(nodes), (), (), ())


def _in_order(names: Iterable[str], first: Collection[str] | None) -> list[str]:
    return sorted(names, key=lambda name: first is not None and name not in first)


def _with_trouble(report: Report, trouble: Mapping[str, str]) -> Report:
    """The report with a failure on each node that Slurm gives no work."""
    nodes = dict(report.nodes)
    for name, why in trouble.items():
        known = nodes[name].findings.get(SLURM, ()) if name in nodes else ()
        if name in nodes and why and not any(_fails(finding) for finding in known):
            finding = fail("state", f"Slurm gives it no work: {why}", SEE_STATE)
            findings = {**nodes[name].findings, SLURM: [*known, finding]}
            nodes[name] = replace(nodes[name], findings=findings)
    return replace(report, nodes=nodes)


def _suspects(report: Report, percent: float) -> dict[str, tuple[int, int]]:
    """Failures that so many nodes have that none is blamed: name to how many of how many."""
    asked: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    for result in report.nodes.values():
        asked.update(list(result.findings))
        failing.update(
            {f"{c}.{f.code}" for c, of in result.findings.items() for f in of if _fails(f)}
        )
    whole = len(report.nodes)
    found = {}
    for name, count in failing.items():
        check = name.partition(".")[0]
        # what belongs to no check is only there where there is trouble
        of = asked[check] if check in report.checks else whole
        if count >= COMMON_NODES and count * 100 > percent * of and name != f"{SLURM}.state":
            found[name] = (count, of)
    return found


def _fails(finding: Finding) -> bool:
    return finding.status is Status.FAIL


def _status(result: NodeResult, suspects: Collection[str]) -> Status:
    """The worst of what counts; UNKNOWN where nothing at all was checked."""
    statuses = {
        finding.status
        for check, found in result.findings.items()
        for finding in found
        if not (_fails(finding) and f"{check}.{finding.code}" in suspects)
    }
    # of a node with nothing but what is suspect, nothing is known either
    return max(statuses - {Status.SKIP}, default=Status.UNKNOWN)


def _why(
    report: Report,
    need: Need,
    healthy: int,
    unreported: int,
    suspects: Mapping[str, tuple[int, int]],
) -> str:
    total = len(report.nodes)
    words = [f"{healthy} of {total} node{'s are' if total > 1 else ' is'} healthy"]
    if unreported:
        words.append(f"too little is known of {unreported}")
    if need.nodes:
        words.append(f"{need.nodes} {'is' if need.nodes == 1 else 'are'} needed")
    if suspects:
        fails = " and ".join(f"{name} fails on {n} of {of}" for name, (n, of) in suspects.items())
        one, it = ("the check", "it") if len(suspects) == 1 else ("one of these checks", "them")
        words.append(
            f"{fails}: {one}, or what the nodes share, is suspect, and no node is excluded for {it}"
        )
    if report.stopped:
        words.append(f"the run ended before its time ({report.stopped})")
    return "; ".join(words)


def _reasons(report: Report, suspects: Collection[str]) -> Iterable[Reason]:
    for group in groups(report):
        if group.status in (Status.FAIL, Status.UNKNOWN):
            yield Reason(
                group.nodes,
                group.check,
                group.code,
                group.status,
                group.messages[0],
                group.remedy,
                group.status is Status.FAIL and group.name in suspects,
            )
    for name, result in report.nodes.items():
        if result.status is Status.SKIP:
            nothing = unknown("nothing_checked", "nothing was checked: every check was skipped")
            yield Reason((name,), reach.NAME, nothing.code, nothing.status, nothing.message, None)


@dataclass(frozen=True)
class Drift:
    """A field in which nodes differ.

    majority: the value that most have; None where no value is that of more than half.
    outliers: the other values, each with its nodes.
    """

    field: str
    majority: str | None
    outliers: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True)
class Fingerprint:
    """What the nodes are and have, in numbers.

    digest: of the nodes that are handed out, or of the healthy ones; "" where nothing is known. It
        depends on what they are, and neither on their names nor on how many there are.
    classes: nodes that are alike, with their number.
    left_out: how many fields that differ are not in `drift`.
    """

    digest: str
    classes: tuple[tuple[tuple[str, ...], str], ...]
    drift: tuple[Drift, ...]
    left_out: int = 0


def fingerprint(
    fields: Mapping[str, Mapping[str, Mapping[str, str]]], decision: Decision
) -> Fingerprint | None:
    """The fingerprint of the nodes; None where no check tells what they are.

    fields: by check and node, what `Check.fields` made of the facts.
    """
    order = (*decision.healthy, *decision.excluded, *decision.unreported)
    alike: dict[tuple[int, ...], list[str]] = {}  # what is kept once for several is one object
    for node in order:
        found = [of_nodes[node] for of_nodes in fields.values() if node in of_nodes]
        if found:
            alike.setdefault(tuple(map(id, found)), []).append(node)
    classes: dict[str, tuple[dict[str, str], list[str]]] = {}
    for nodes in alike.values():
        whole: dict[str, str] = {}
        for of_nodes in fields.values():
            whole.update(of_nodes.get(nodes[0], {}))
        classes.setdefault(hash_of(whole), (whole, []))[1].extend(nodes)
    if not classes:
        return None
    meant = {*(decision.chosen or decision.healthy)}
    those = sorted(number for number, (_, nodes) in classes.items() if not meant.isdisjoint(nodes))
    digest = (those[0] if len(those) == 1 else hash_of(those)) if those else ""
    drift = _drift(list(classes.values()))
    return Fingerprint(
        digest,
        tuple((tuple(nodes), number) for number, (_, nodes) in classes.items()),
        tuple(drift[:MOST_DRIFT]),
        max(0, len(drift) - MOST_DRIFT),
    )


def _drift(classes: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> list[Drift]:
    """In what the classes differ; of each, its fields and nodes."""
    count = sum(len(nodes) for _, nodes in classes)
    found = []
    for name in sorted({name for fields, _ in classes for name in fields}):
        nodes_by_value: dict[str, list[str]] = {}
        for fields, nodes in classes:
            nodes_by_value.setdefault(fields.get(name, "absent"), []).extend(nodes)
        if len(nodes_by_value) < 2:
            continue
        most = max(nodes_by_value, key=lambda value: len(nodes_by_value[value]))
        majority = most if 2 * len(nodes_by_value[most]) > count else None
        outliers = [
            (tuple(nodes), value) for value, nodes in nodes_by_value.items() if value != majority
        ]
        found.append(Drift(name, majority, tuple(outliers)))
    return found


@dataclass(frozen=True)
class SlurmWords:
    """The decision as Slurm's commands take it, in Slurm's own names of nodes.

    args: options of sbatch, salloc and srun; empty unless it is a go. plain: the same, with every
        node named by itself, so that no shell finds a pattern in them.
    strangers: nodes that Slurm does not know, and so are in none of these.
    """

    exclude: tuple[str, ...]
    nodelist: tuple[str, ...]
    args: tuple[str, ...]
    plain: tuple[str, ...]
    strangers: tuple[str, ...]


def slurm_words(decision: Decision, names: Mapping[str, str], partition: str = "") -> SlurmWords:
    """The words for Slurm.

    names: Slurm's NodeName by ours; what is not in it Slurm does not know.
    partition: the set is all of it: Slurm may choose among its healthy nodes, as long as it leaves
        the others out. Of any other set it is told which nodes to take, for it would add others
        that nobody looked at.
    """
    left_out = (*decision.excluded, *decision.unreported)
    used = {*decision.chosen, *decision.spares}
    exclude = tuple(names[name] for name in left_out if name in names and name not in used)
    nodelist = tuple(names[name] for name in decision.chosen if name in names)
    args: list[tuple[str, tuple[str, ...]]] = []
    if decision.answer is Answer.GO:
        if partition:
            args.append(("--partition", (partition,)))
        else:
            args += [("--nodes", (str(len(nodelist)),)), ("--nodelist", nodelist)]
        if exclude:
            args.append(("--exclude", exclude))
    everybody = (*decision.healthy, *left_out)
    strangers = tuple(name for name in everybody if name not in names)
    return SlurmWords(
        exclude,
        nodelist,
        tuple(f"{name}={fold(values)}" for name, values in args),
        tuple(f"{name}={','.join(values)}" for name, values in args),
        strangers,
    )


@dataclass(frozen=True)
class Verdict:
    """A decision with all that is handed out with it.

    id: stands in no other verdict. expires: when it should be asked for again.
    from_cache: no node was asked for it.
    profile: its name, or "" for none. digest: of how nodes are judged.
    slurm: None where there is no Slurm.
    notes: what else the reader ought to know.
    lines: for the job's shell, which takes over what has become of the job.
    """

    decision: Decision
    id: str
    created: datetime
    expires: datetime
    from_cache: bool
    profile: str
    digest: str
    fingerprint: Fingerprint | None = None
    slurm: SlurmWords | None = None
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
