"""From answers to results: each node's checks in order, then what only shows between nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from clustercheck import reach, verdict
from clustercheck.answer import Answer
from clustercheck.check import AnyCheck, Facts, Finding, Status, skip
from clustercheck.report import NodeResult

OptionsOf = Callable[[str, str], Any]
"""The options of a check (by name) for a node (by name)."""


def judge_node(answer: Answer, checks: Mapping[str, AnyCheck], options_of: OptionsOf) -> NodeResult:
    """The result of one node.

    An unreachable node is one finding: its checks have none. Where the answer broke off, what had
    come whole before is judged all the same.
    """
    findings: dict[str, list[Finding]] = {}
    access = _access(answer, checks)
    if access:
        findings[reach.NAME] = access
    if not (answer.code and not answer.told):
        done: dict[str, list[Finding]] = {}
        failed: list[str] = []
        for name in in_order(checks, answer.asked):
            done[name] = verdict.judge(
                checks[name],
                answer.told.get(name),
                options_of(name, answer.node),
                failed=failed,
                peers=answer.peers,
            )
            if verdict.worst(done[name]) is Status.FAIL:
                failed.append(name)
        findings.update({name: done[name] for name in answer.asked})
    return NodeResult(answer.node, findings, answer.seconds)


def _access(answer: Answer, checks: Mapping[str, AnyCheck]) -> list[Finding]:
    """What the way to the node is to blame for, and what root would have added."""
    found = []
    if answer.code:
        found.append(reach.finding(answer.code, answer.message))
    needing = [n for n, told in answer.told.items() if told.needs_root]
    wanting = [n for n, told in answer.told.items() if told.wanted_root]
    if answer.root_refused and not (needing or wanting):
        found.append(skip("as_user", "sudo refused, and nothing that was asked needs root"))
    elif answer.root_refused:
        said = answer.root_refused.partition(" ")[2].strip() or "sudo did not answer within 5 s"
        names = ", ".join(dict.fromkeys(needing + wanting))
        found.append(reach.finding("root", f"sudo refused: {said}; not looked at: {names}"))
    elif needing:
        found.append(reach.finding("root", f"root is needed for {', '.join(needing)}"))
    elif wanting:
        added = "; ".join(f"{n}: {checks[n].root_adds or 'more'}" for n in wanting if n in checks)
        found.append(skip("as_user", f"asked as an ordinary user; root would add {added}"))
    return found


def in_order(checks: Mapping[str, AnyCheck], names: Iterable[str]) -> list[str]:
    """The names so that each comes after those that its `after` names."""
    names = list(names)
    ordered: list[str] = []

    def place(name: str, above: tuple[str, ...]) -> None:
        if name in ordered or name in above:
            return
        for cause in checks[name].after:
            if cause in names:
                place(cause, (*above, name))
        ordered.append(name)

    for name in names:
        place(name, ())
    return ordered


def whole_facts(check: str, answers: Iterable[Answer]) -> dict[str, Facts]:
    """The check's facts by node, of the nodes whose probe came to its own end."""
    told = {answer.node: answer.told.get(check) for answer in answers}
    return {node: t.facts for node, t in told.items() if t is not None and t.whole}


def compare(
    answers: Sequence[Answer],
    checks: Mapping[str, AnyCheck],
    options_of: OptionsOf,
    results: dict[str, NodeResult],
) -> None:
    """Add to `results` what only shows between nodes.

    A peer that could not be reached from here either is one finding, its own.
    """
    _excuse(results)
    for name, check in checks.items():
        if check.compare is None:
            continue
        facts = whole_facts(name, answers)
        if not facts:
            continue
        options = {node: options_of(name, node) for node in facts}
        try:
            found = list(check.compare(facts, options))
            if strangers := {node for node, _ in found} - results.keys():
                raise ValueError(f"it compares {', '.join(sorted(strangers))}, not asked")
        except Exception as error:  # one check's fault is a finding, not the end of the run
            found = [(node, verdict.crashed(error)) for node in facts]
        for node, finding in found:
            _add(results, node, name, finding)


def _excuse(results: dict[str, NodeResult]) -> None:
    """Let no node answer for what it could not find out of a peer that is unreachable itself."""
    gone = {node for node, result in results.items() if set(result.findings) == {reach.NAME}}
    for node, result in results.items():
        findings = {
            check: [
                skip("blocked", "not to be reached from here either", peer=f.peer)
                if f.status is Status.UNKNOWN and f.peer and f.peer in gone
                else f
                for f in found
            ]
            for check, found in result.findings.items()
        }
        if findings != result.findings:
            results[node] = NodeResult(node, findings, result.seconds)


def _add(results: dict[str, NodeResult], node: str, check: str, finding: Finding) -> None:
    """Add a finding; one about a peer takes the place of that of the same code and peer."""
    result = results[node]
    kept = [
        f
        for f in result.findings.get(check, ())
        if not finding.peer or (f.code, f.peer) != (finding.code, finding.peer)
    ]
    findings = {**result.findings, check: [*kept, finding]}
    results[node] = NodeResult(node, findings, result.seconds)
