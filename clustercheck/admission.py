"""May a node join? From a run over candidates and nodes that are in already, to an answer.

What keeps a candidate out is what is wrong on it, and what existing nodes say of it: that they do
not reach it, or do not know its name. What is wrong with an existing node by itself keeps nobody
out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clustercheck.check import AnyCheck, Finding, Remedy, Status
from clustercheck.report import TROUBLE, NodeResult, Report

# What is the cause of what stands after it: mended in this order, the least is done twice. A check
# that is not named stands before what nodes should have alike.
CAUSES = (
    *("access", "login", "disk", "memory", "link", "bond", "ib", "mtu", "retrans", "dns"),
    *("reach", "ntp"),
    *("selinux", "mounts", "nfs", "tmp", "munge", "slurm", "services", "gpu", "gpu_health"),
    *("processes",),
)
LAST = "fingerprint"

# What a first admission looks at more closely than a run does, by check and option: on candidates,
# and on all its nodes what takes both sides.
CLOSER: Mapping[str, Mapping[str, object]] = {"nfs": {"throughput": True}}
# What is always so of candidates: what they are is not yet what nodes should be.
JOINING: Mapping[str, Mapping[str, object]] = {"fingerprint": {"joins": True}}
BOTH_SIDES: Mapping[str, Mapping[str, object]] = {
    "munge": {"across": True},
    "fingerprint": {"gpu_settings": True},  # to be held against each other
    "reach": {"slurmd": True, "alone": "fail"},
}


@dataclass(frozen=True)
class Remark:
    """Something that speaks against a candidate.

    by: the existing nodes that say so; empty where it was found on the candidate.
    """

    check: str
    finding: Finding
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A step of the work list: a remedy, and what it is for.

    names: of findings ("ntp.offset"). remarks: their places among the remarks, from 1.
    """

    remedy: Remedy
    names: tuple[str, ...]
    remarks: tuple[int, ...]


@dataclass(frozen=True)
class Admission:
    """The answer for one candidate.

    status: FAIL and UNKNOWN keep it out, SKIP too: then nothing at all was checked.
    remarks: the cause before what follows from it.
    tasks: what to do, in the order in which to do it.
    again: the checks to be run again afterwards.
    passed: checks without a remark, judged whole. skipped: reason by check. blocked: by check,
        what is not judged because of another failure.
    like: existing nodes that it was compared with; those that did not answer are in `silent`.
    kinds: the kinds of machines that these nodes and the candidate are, each with its existing
        nodes; the candidate's own is the first. Empty where the nodes' kinds were not asked for.
    alone: why it is not known whether it is like other nodes, or "".
    """

    node: str
    status: Status
    remarks: tuple[Remark, ...]
    tasks: tuple[Task, ...]
    again: tuple[str, ...]
    passed: tuple[str, ...]
    skipped: Mapping[str, str]
    like: tuple[str, ...]
    silent: tuple[str, ...]
    alone: str
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocked: Mapping[str, str] = field(default_factory=dict)

    @property
    def admitted(self) -> bool:
        return self.status in (Status.PASS, Status.WARN)

    @property
    def answer(self) -> str:
        """In words: "admit", "admit with 2 remarks", "do not admit: 1 failure, 3 remarks"."""
        if self.status is Status.SKIP:
            return "do not admit: nothing could be checked"
        if not self.remarks:
            return f"admit, but {self.alone}" if self.alone else "admit"
        count = {status: 0 for status in TROUBLE}
        for remark in self.remarks:
            count[remark.finding.status] += 1
        words = {Status.FAIL: "failure", Status.UNKNOWN: "unknown", Status.WARN: "remark"}
        parts = [
            f"{number} {words[status]}{'s' if number > 1 and status != Status.UNKNOWN else ''}"
            for status, number in count.items()
            if number
        ]
        return f"admit with {parts[0]}" if self.admitted else f"do not admit: {', '.join(parts)}"


def admissions(
    report: Report, candidates: Sequence[str], checks: Mapping[str, AnyCheck]
) -> list[Admission]:
    """The answer for each candidate; all other nodes of the report are existing ones."""
    existing = [name for name in report.nodes if name not in candidates]
    silent = tuple(name for name in existing if _is_silent(report.nodes[name]))
    like = tuple(name for name in existing if name not in silent)
    return [_admission(report, name, like, silent, checks) for name in candidates]


def _is_silent(result: NodeResult) -> bool:
    """Whether the node gave no answer at all."""
    return set(result.findings) == {"access"}


def _admission(
    report: Report,
    node: str,
    like: tuple[str, ...],
    silent: tuple[str, ...],
    checks: Mapping[str, AnyCheck],
) -> Admission:
    result = report.nodes[node]
    remarks = [*_own(result), *_of_others(report, node, like)]
    order = {check: place for place, check in enumerate(CAUSES)}
    order |= {LAST: len(order) + 1}
    statuses = {check: {f.status for f in found} for check, found in result.findings.items()}

    def place(remark: Remark) -> tuple[int, int]:
        return order.get(remark.check, len(CAUSES)), -remark.finding.status.place

    remarks.sort(key=place)
    alone = _alone(result, like)
    # Who was held against nobody is not admitted as one that is like the others.
    status = max(result.status, Status.WARN) if alone else result.status
    status = max([status, *(remark.finding.status for remark in remarks)])
    if result.status is Status.SKIP:
        status = Status.SKIP
    blamed = {remark.check for remark in remarks}
    blocked = _blocked(result)
    return Admission(
        node,
        status,
        tuple(remarks),
        tuple(_tasks(remarks)),
        tuple(name for name in checks if name in blamed or name in blocked),
        tuple(
            check
            for check, found in statuses.items()
            if Status.PASS in found and check not in blamed and check not in blocked
        ),
        {
            check: result.findings[check][0].message
            for check, found in statuses.items()
            if found == {Status.SKIP} and check not in blocked
        },
        like,
        silent,
        alone,
        _kinds(report, node, like),
        blocked,
    )


def _blocked(result: NodeResult) -> dict[str, str]:
    found = {
        check: [f.message for f in findings if f.code == "blocked" and not f.peer]
        for check, findings in result.findings.items()
    }
    return {check: ", ".join(messages) for check, messages in found.items() if messages}


def _kinds(report: Report, node: str, like: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name in (node, *like):
        for finding in report.nodes[name].findings.get(LAST, ()):
            if finding.code == "kind":
                found.setdefault(finding.message, []).extend([name] if name != node else [])
        if not found:  # the candidate's own is not known
            return {}
    return {kind: tuple(names) for kind, names in found.items()}


def _alone(result: NodeResult, like: Sequence[str]) -> str:
    """Why it was compared with nobody, or ""."""
    if not like:
        return "there is no other node to compare it with"
    for finding in result.findings.get(LAST, ()):
        if finding.code == "alone":
            return finding.message
    return ""


def _own(result: NodeResult) -> Iterator[Remark]:
    for check, findings in result.findings.items():
        for finding in findings:
            if finding.status in TROUBLE:
                yield Remark(check, finding)


def _of_others(report: Report, node: str, like: Sequence[str]) -> Iterator[Remark]:
    """What existing nodes say of the candidate, equal words once."""
    named = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w-])")
    by: dict[tuple[str, Finding], list[str]] = {}
    for other in like:
        for check, findings in report.nodes[other].findings.items():
            for finding in findings:
                about = finding.peer == node or named.search(finding.message)
                if finding.status in TROUBLE and about:
                    by.setdefault((check, replace(finding, value=None)), []).append(other)
    for (check, finding), others in by.items():
        yield Remark(check, finding, tuple(others))


def _tasks(remarks: Sequence[Remark]) -> Iterator[Task]:
    found: dict[Remedy, dict[int, str]] = {}
    for place, remark in enumerate(remarks, 1):
        if remark.finding.remedy:
            name = f"{remark.check}.{remark.finding.code}"
            found.setdefault(remark.finding.remedy, {})[place] = name
    for remedy, names in found.items():
        yield Task(remedy, tuple(dict.fromkeys(names.values())), tuple(names))
