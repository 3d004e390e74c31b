"""Reports of made-up nights, for tests of what changes from one to the next."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from clustercheck.changes import Changed, Key, Standing, compare
from clustercheck.check import Finding, Quantity, Remedy, Status, fail, ok, unknown, warn
from clustercheck.report import NodeResult, Report

LOOK = Remedy("Look at the server.", "§4.1.3")
FIRST = datetime(2026, 12, 1, 3, 0, tzinfo=timezone.utc)

GOOD = ok("speed", "900 MB/s", value=Quantity(900, "MB/s", less_is_worse=True))
SLOW = warn("speed", "200 MB/s", LOOK, value=Quantity(200, "MB/s", less_is_worse=True))
DEAD = fail("speed", "1 MB/s", LOOK, value=Quantity(1, "MB/s", less_is_worse=True))
HUNG = unknown("limit", "the probe did not end within 10 s")
SILENT = {"access": [unknown("timeout", "nothing came back")]}

Found = Mapping[str, Sequence[Finding]]


def night(
    number: int,
    nodes: Mapping[str, Found | Finding] | None = None,
    *,
    checks: Sequence[str] = ("nfs", "ntp"),
    **named: Found | Finding,
) -> Report:
    """The report of the night of that number; a finding alone is one of nfs."""
    results = {
        name: NodeResult(name, {"nfs": [found]} if isinstance(found, Finding) else found, 1.5)
        for name, found in {**(nodes or {}), **named}.items()
    }
    return Report(FIRST + timedelta(days=number), 4.0, list(checks), results)


def last_of(*nights: Report) -> list[Changed]:
    """What the last night says, after those before."""
    standing: dict[Key, Standing] = {}
    changed: list[Changed] = []
    for report in nights:
        changed, standing = compare(report, standing)
    return changed


def said(changed: Sequence[Changed]) -> list[str]:
    """In words: "new n1 nfs.speed warn (was pass)"."""
    return [
        f"{c.kind.value} {c.node} {c.name}"
        + (f" {_word(c.now.status)}" if c.now else "")
        + (f" (was {_word(c.before)})" if c.before else "")
        for c in changed
    ]


def _word(status: Status) -> str:
    return status.value
