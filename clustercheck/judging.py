"""From answers to results: each node's checks in order, then what only shows between nodes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from clustercheck import reach, verdict
from clustercheck.answer import Answer
from clustercheck.check import AnyCheck, Facts, Finding, Status, skip, unknown
from clustercheck.report import TROUBLE, NodeResult

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
    others = _answered_by_others(answers, results)
    answers = [answer for answer in answers if answer.node not in others]
    _excuse(results)
    for name, check in checks.items():
        if check.compare is None:
            continue
        for answer in answers:
            if name in answer.forgotten:
                words = "its answer is too long to be kept for comparing it with other nodes"
                _add(results, answer.node, name, unknown("not_compared", words))
        facts = whole_facts(name, answers)
        if not facts:
            continue
        options = {node: options_of(name, node) for node in facts}
        for node, finding in _compared(check.compare, facts, options, results):
            _add(results, node, name, *verdict.bounded([finding]))
    for answer in answers:
        _unblock(answer, checks, options_of, results)
        _put_down(answer.node, checks, results)


def _compared(
    compare: Callable[[Mapping[str, Facts], Mapping[str, Any]], Iterable[tuple[str, Finding]]],
    facts: Mapping[str, Facts],
    options: Mapping[str, Any],
    known: Collection[str],
) -> list[tuple[str, Finding]]:
    """What a check finds between nodes. Its fault is a finding, not the end of the run, and a
    node whose facts it cannot bear is left out, where it is one by itself.
    """

    def of(nodes: Collection[str]) -> list[tuple[str, Finding]]:
        found = list(compare({n: facts[n] for n in nodes}, {n: options[n] for n in nodes}))
        if strangers := {node for node, _ in found}.difference(known):
            raise ValueError(f"it compares {', '.join(sorted(strangers))}, not asked")
        return found

    try:
        return of(facts)
    except Exception as error:
        faults = {node: error for node in facts}
    for node in facts:
        with suppress(Exception):
            of([node])
            del faults[node]
    try:
        found = of([node for node in facts if node not in faults])
    except Exception as error:
        faults, found = dict.fromkeys(facts, error), []
    return found + [(node, verdict.crashed(error)) for node, error in faults.items()]


def _unblock(
    answer: Answer,
    checks: Mapping[str, AnyCheck],
    options_of: OptionsOf,
    results: dict[str, NodeResult],
) -> None:
    """Judge what was blocked by a failure that has turned out to be another node's."""
    found = results[answer.node].findings
    blocked = {
        name: cause
        for name in answer.asked
        if name not in answer.forgotten
        for cause in found.get(name, ())
        if cause.code == "blocked" and not cause.peer
    }
    for name, cause in blocked.items():
        if any(verdict.worst(found.get(one, ())) is Status.FAIL for one in checks[name].after):
            continue
        judged = verdict.judge(
            checks[name], answer.told.get(name), options_of(name, answer.node), peers=answer.peers
        )
        result = results[answer.node]
        added = [finding for finding in result.findings[name] if finding is not cause]
        findings = {**result.findings, name: judged}
        results[answer.node] = NodeResult(answer.node, findings, result.seconds)
        for finding in added:
            _add(results, answer.node, name, finding)


def _put_down(node: str, checks: Mapping[str, AnyCheck], results: dict[str, NodeResult]) -> None:
    """Put what only follows from another check's failure on the node down to that."""
    result = results[node]
    failed = {
        name
        for check, found in result.findings.items()
        for f in found
        if f.status is Status.FAIL
        for name in (check, f"{check}.{f.code}")
    }
    if not failed:
        return
    for name in result.findings:
        follows = checks[name].follows if name in checks else {}
        if not follows:
            continue
        found: list[Finding] = []
        for f in result.findings[name]:
            causes = [cause for cause in follows.get(f.code, ()) if cause in failed]
            if causes and f.status in TROUBLE:
                own = f"{name}."
                names = dict.fromkeys(
                    cause if cause.startswith(own) else cause.partition(".")[0] for cause in causes
                )
                f = skip("blocked", f"{f.code}: blocked by {', '.join(names)}", peer=f.peer)
            if f not in found or f.code != "blocked":
                found.append(f)
        if found != result.findings[name]:
            result = NodeResult(node, {**result.findings, name: found}, result.seconds)
            results[node] = result


def _answered_by_others(answers: Sequence[Answer], results: dict[str, NodeResult]) -> set[str]:
    """Name the nodes that another node seems to have answered for. Returns those of which it is
    certain: what was found is not theirs, and is taken out of `results`.
    """
    certain = set()
    names = {name.lower(): name for name in results}
    boots = {answer.node: answer.boot_id for answer in answers}
    for answer in answers:
        called = answer.host_name.lower()
        alike = [names[name] for name in (called, called.partition(".")[0]) if name in names]
        if not alike or answer.node in (*alike, "localhost"):
            continue
        before = results[answer.node]
        if answer.boot_id and boots.get(alike[0]) == answer.boot_id:
            words = "another node of this run answered in its place, by its name and its boot"
            kept: Mapping[str, Sequence[Finding]] = {}
            certain.add(answer.node)
        else:
            words = "the machine that answered has the host name of another node of this run"
            kept = before.findings
        found = [*kept.get(reach.NAME, ()), reach.finding("other_node", words, peer=alike[0])]
        results[answer.node] = NodeResult(answer.node, {**kept, reach.NAME: found}, before.seconds)
    return certain


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
