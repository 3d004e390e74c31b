"""Made-up checks and plans over this machine's own sh, for the tests of runs."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from clustercheck.check import (
    AnyCheck,
    Check,
    Code,
    Facts,
    Finding,
    NoOptions,
    Remedy,
    fail,
    ok,
)
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan
from clustercheck.transport import Connection, Transport, Unreachable
from clustercheck.transport.here import Here

REMEDY = Remedy("Do what is right.")
CODES = {"found": Code("What was found.", (REMEDY,))}


def check(probe: str = "fact said yes", **about: Any) -> AnyCheck:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        if facts["said"] == "yes":
            yield ok("found", "it said yes")
        else:
            yield fail("found", f"it said {facts['said']}, should say yes", REMEDY)

    whole: dict[str, Any] = {
        "title": "made up",
        "options": NoOptions(),
        "judge": judge,
        "codes": CODES,
        "probe": probe,
        **about,
    }
    return Check(**whole)


def plan(
    checks: Mapping[str, AnyCheck],
    nodes: int = 1,
    *,
    transport: Transport | None = None,
    bounds: Bounds | None = None,
    max_seconds: float | None = None,
    local: bool = False,
) -> Plan:
    way = transport or Here()
    return Plan(
        nodes=[Node(f"n{i}", local=local) for i in range(nodes)],
        checks=checks,
        options_of=lambda name, node: checks[name].options,
        transport_for=lambda node: way,
        bounds=bounds or Bounds(8, 30),
        max_seconds=max_seconds,
    )


def told(report: Report) -> dict[str, list[str]]:
    return {
        node: [
            f"{f.status.value} {check}.{f.code}: {f.message}"
            for check, findings in result.findings.items()
            for f in findings
        ]
        for node, result in report.nodes.items()
    }


class Unwell:
    """A transport whose nodes n1 and n2 are out of reach, each in its own way."""

    def connect(self, node: Node, deadline: float) -> Connection:
        if node.name == "n1":
            raise Unreachable("refused", "nothing listens on port 22 of 10.0.0.1")
        if node.name == "n2":
            time.sleep(max(0, deadline - time.monotonic()))
            raise Unreachable("timeout", "no answer from 10.0.0.2 within 1 s")
        return Here().connect(node, deadline)

    def close(self) -> None: ...
