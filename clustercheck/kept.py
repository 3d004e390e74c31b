"""What was found and when, as it is kept from one gate to the next, and its form in a file.

Equal things stand in a file once, and elsewhere as their place: most nodes are alike.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clustercheck import reach
from clustercheck.check import Finding, Quantity, Remedy, Stale, Status
from clustercheck.freshness import Moment, NodeState, Stamp, failed, fresh
from clustercheck.report import NodeResult, Report

if TYPE_CHECKING:
    from clustercheck.answer import Answer


@dataclass(frozen=True)
class Kept:
    """What was found, and when each part of it was asked.

    stamps: by node and check; what has none was not found out and does not hold.
    stale: by check, what makes it stale.
    hosts: by node, the address or name that it is reached by, "" for its own.
    fields: by check and node, what `Check.fields` made of the facts.
    more: whatever else the caller wants to find again, as JSON.
    seen: the nodes' states when a probe last asked for them, and when that was.
    """

    report: Report
    stamps: Mapping[str, Mapping[str, Stamp]]
    stale: Mapping[str, Stale]
    hosts: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[float, Mapping[str, NodeState]] = (0.0, {})

    @property
    def needs_states(self) -> bool:
        """May any of it only be believed where the node's state is known?"""
        return any(kind != "time" for kind in self.stale.values())

    def not_fresh(
        self, states: Mapping[str, NodeState], moment: Moment
    ) -> dict[str, tuple[str, ...]]:
        """By node, the checks whose results do not hold any more; nodes without such are not in it.

        states: the nodes' states now; one that is not in it is not known.
        """
        found: dict[str, tuple[str, ...]] = {}
        for node, result in self.report.nodes.items():
            state, stamps = states.get(node), self.stamps.get(node, {})
            # a node that cannot be reached has no result of any check, but one of its own
            away = failed(f for f in result.findings.get(reach.NAME, ()) if f.code != "root")
            old = []
            for check in self.report.checks:
                bad = away or _bad(result.findings.get(check, ()))
                stamp = stamps.get(check)
                if stamp is None or not fresh(stamp, self.stale[check], bad, state, moment):
                    old.append(check)
            if old:
                found[node] = tuple(old)
        return found


def _bad(findings: Sequence[Finding]) -> bool:
    return not findings or failed(findings)


@dataclass(frozen=True)
class KeptAnswer:
    """A node's answers from before: one for each check that it was asked.

    stamps: by check. digests: by check, of all that the answer depends on beside the node.
    """

    answer: "Answer"
    stamps: Mapping[str, Stamp]
    digests: Mapping[str, str]


class _Table:
    """Things that stand in a file once, and elsewhere as their place."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def place(self, thing: Any) -> int:
        return self.places.setdefault(thing, len(self.places))


def kept_as_json(kept: Kept, key: str) -> dict[str, Any]:
    """As plain values for a file; `kept_from_json` gives it back. key: of the question."""
    report, checks = kept.report, list(kept.report.checks)
    findings, states, rows = _Table(), _Table(), _Table()
    nodes: dict[str, Any] = {}
    for node, result in report.nodes.items():
        found = tuple(
            (check, tuple(findings.place(finding) for finding in of))
            for check, of in result.findings.items()
        )
        asked = tuple(
            (check, stamp.asked, states.place(stamp.state))
            for check, stamp in kept.stamps.get(node, {}).items()
        )
        nodes[node] = [result.seconds, rows.place(found), rows.place(asked)]
    fields = _Table()
    of_nodes = {
        check: {node: fields.place(tuple(has.items())) for node, has in by_node.items()}
        for check, by_node in kept.fields.items()
    }
    return {
        "key": key,
        "started": report.started.isoformat(),
        "seconds": report.seconds,
        "notes": list(report.notes),
        "checks": checks,
        "stale": dict(kept.stale),
        "hosts": {node: host for node, host in kept.hosts.items() if host},
        "more": kept.more,
        "nodes": nodes,
        "rows": list(rows.places),
        "findings": [_finding_as_json(f) for f in findings.places],
        "states": [list(state) for state in states.places],
        "fields": [of_nodes, list(fields.places)],
        "seen": [kept.seen[0], {node: list(state) for node, state in kept.seen[1].items()}],
    }


def _finding_as_json(f: Finding) -> list[Any]:
    remedy = list(f.remedy) if f.remedy else None
    value = list(f.value) if f.value else None
    return [f.status.value, f.code, f.message, remedy, f.peer, value]


def _finding(content: list[Any]) -> Finding:
    status, code, message, remedy, peer, value = content
    return Finding(
        Status(status),
        code,
        message,
        Remedy(*remedy) if remedy else None,
        peer,
        Quantity(*value) if value else None,
    )


def kept_from_json(content: dict[str, Any], key: str) -> Kept:
    """What `kept_as_json` was given. Raises ValueError, LookupError or TypeError for all else."""
    if content["key"] != key:
        raise ValueError("of another question")
    findings = [_finding(each) for each in content["findings"]]
    states = [NodeState(*each) for each in content["states"]]
    found_in: dict[int, dict[str, list[Finding]]] = {}
    stamps_in: dict[int, dict[str, Stamp]] = {}
    nodes, stamps = {}, {}
    for node, (seconds, found, asked) in content["nodes"].items():
        if found not in found_in:
            row = content["rows"][found]
            found_in[found] = {check: [findings[i] for i in of] for check, of in row}
        if asked not in stamps_in:
            row = content["rows"][asked]
            stamps_in[asked] = {check: Stamp(when, states[i]) for check, when, i in row}
        nodes[node] = NodeResult(node, found_in[found], seconds)
        stamps[node] = stamps_in[asked]
    of_nodes, fields = content["fields"]
    fields = [dict(each) for each in fields]
    report = Report(
        started=datetime.fromisoformat(content["started"]),
        seconds=content["seconds"],
        checks=content["checks"],
        nodes=nodes,
        notes=content["notes"],
    )
    when, seen = content["seen"]
    return Kept(
        report=report,
        stamps=stamps,
        stale=content["stale"],
        hosts={node: content["hosts"].get(node, "") for node in nodes},
        fields={check: {n: fields[i] for n, i in by.items()} for check, by in of_nodes.items()},
        more=content["more"],
        seen=(when, {node: NodeState(*state) for node, state in seen.items()}),
    )


def answer_as_json(kept: KeptAnswer) -> dict[str, Any]:
    """The answer as plain values for a file; `answer_from_json` gives it back."""
    return {
        "node": kept.answer.node,
        "answer": kept.answer.to_json(),
        "stamps": {check: [s.asked, list(s.state)] for check, s in kept.stamps.items()},
        "digests": dict(kept.digests),
    }


def answer_from_json(content: dict[str, Any], node: str) -> KeptAnswer:
    """What `answer_as_json` was given. Raises as `kept_from_json` does, and ConfigError."""
    from clustercheck.answer import from_json

    answer = from_json(content["answer"], "the cache")
    if content["node"] != node or answer.node != node:
        raise ValueError("of another node")
    stamps = {c: Stamp(when, NodeState(*state)) for c, (when, state) in content["stamps"].items()}
    return KeptAnswer(answer, stamps, content["digests"])


def without_forgotten(answer: "Answer") -> "Answer":
    """The answer without what was too long to be kept: that is asked again."""
    told = {name: told for name, told in answer.told.items() if name not in answer.forgotten}
    return dataclasses.replace(answer, told=told)
