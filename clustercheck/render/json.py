"""The report as one JSON object; `clustercheck/report.schema.json` says what each key means.

What other commands write as JSON has a schema of its own beside it.
"""

import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

from clustercheck import __version__
from clustercheck.check import Finding, Remedy
from clustercheck.fold import fold
from clustercheck.render.escape import sound
from clustercheck.report import TROUBLE, NodeResult, Report, groups

REPORT = "clustercheck.report/1"
SCHEMAS = ("report", "admission", "diff", "verdict")


def schema(of: str = "report") -> dict[str, Any]:
    """A JSON Schema (draft 2020-12), one of SCHEMAS; that of reports is of the JSON form and of
    each line of the JSON-lines form."""
    text = resources.files("clustercheck").joinpath(f"{of}.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def render(report: Report) -> str:
    """One object, with a line for each of its keys and for each node."""
    nodes = {sound(name): node(result) for name, result in report.nodes.items()}
    keys = {"schema": REPORT, **head(report)}
    return _object([*_items(keys), f'"nodes": {_object(_items(nodes))}']) + "\n"


def _items(found: dict[str, Any]) -> list[str]:
    return [f"{dumps(key)}: {dumps(value)}" for key, value in found.items()]


def _object(items: list[str]) -> str:
    return "{\n" + ",\n".join(items) + "\n}"


def dumps(value: object) -> str:
    """JSON in ASCII, so that nothing in it can act on a terminal; never NaN."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def head(report: Report) -> dict[str, Any]:
    """All of a report but what each node said."""
    return {
        "version": __version__,
        "started": report.started.isoformat(timespec="milliseconds"),
        "seconds": rounded(report.seconds),
        "exit_code": report.exit_code,
        "stopped": sound(report.stopped),
        "checks": [sound(name) for name in report.checks],
        "counts": {status.value: count for status, count in report.counts.items()},
        "groups": _groups(report),
        "notes": [sound(note) for note in report.notes],
    }


def _groups(report: Report) -> list[dict[str, Any]]:
    """What is wrong, folded; the message is that of the node whose figure is worst."""
    return [
        {
            "status": group.status.value,
            "code": sound(group.name),
            "message": sound(group.messages[0]),
            "messages": len(group.messages),
            "node": sound(group.worst),
            "nodes": [sound(name) for name in group.nodes],
            "nodeset": sound(fold(group.nodes)),
            "common": group.common,
            **({"peers": [sound(name) for name in group.peers]} if group.peers else {}),
            **({"remedy": _remedy(group.remedy)} if group.remedy else {}),
        }
        for group in groups(report)
        if group.status in TROUBLE
    ]


def node(result: NodeResult) -> dict[str, Any]:
    """What was found out on one node."""
    return {
        "status": result.status.value,
        "seconds": rounded(result.seconds),
        "checks": {
            sound(check): {
                "status": result.status_of(check).value,
                "findings": _findings(check, findings),
            }
            for check, findings in result.findings.items()
        },
    }


def _findings(check: str, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    found = []
    for finding in findings:
        shown: dict[str, Any] = {
            "status": finding.status.value,
            "code": sound(f"{check}.{finding.code}"),
            "message": sound(finding.message),
        }
        if finding.peer:
            shown["peer"] = sound(finding.peer)
        if finding.value and math.isfinite(finding.value.number):
            shown["value"] = {"number": finding.value.number, "unit": sound(finding.value.unit)}
        if finding.remedy:
            shown["remedy"] = _remedy(finding.remedy)
        found.append(shown)
    return found


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "text": sound(remedy.text),
        "see": sound(remedy.see),
        "disturbs": remedy.disturbs,
    }


def rounded(seconds: float | None) -> float | None:
    """Seconds to the millisecond; None for what is no number."""
    return None if seconds is None or not math.isfinite(seconds) else round(seconds, 3)
