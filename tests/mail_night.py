"""A night with something of every kind, for the tests of mails and for their page in docs/."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

from clustercheck.changes import Acceptance, Changed, Kind, Night
from clustercheck.check import Finding, Quantity, Remedy, Status, fail, ok, warn
from clustercheck.render import mail
from clustercheck.render.mail_content import content
from clustercheck.report import NodeResult, Report

ZONE = timezone(timedelta(hours=1))
NOW = datetime(2026, 12, 1, 3, 1, tzinfo=ZONE)
STARTED = datetime(2026, 12, 1, 3, 0, tzinfo=ZONE)
BEFORE = STARTED - timedelta(days=1)

SLOW = Remedy("Look with `nfsiostat` at what the server does.", "§4.1.3")
LOST = Remedy("Reset the node.", "§4.2.1", disturbs=True)
STEP = Remedy("Step the clock with `chronyc makestep`.", "§4.1.1")


def slow(rate: int) -> Finding:
    value = Quantity(rate, "MB/s", less_is_worse=True)
    message = f"{rate} MB/s from fs1:/home, should be 100 MB/s at least"
    return fail("slow", message, SLOW, value=value)


def changed(kind: Kind, node: str, check: str, now: Finding | None, **more: Any) -> Changed:
    words = {"before": None, "since": STARTED, "turns": 1, "nights": 9, "code": "slow", **more}
    code = now.code if now else str(words["code"])
    del words["code"]
    return Changed(kind=kind, node=node, check=check, code=code, peer="", now=now, **words)


def night(found: Sequence[Changed] = (), nodes: int = 512, **more: Any) -> Night:
    """A night of gpu001 to gpu512; where nothing else is said a node passes."""
    results = {f"gpu{n:03}": [("nfs", ok("slow", "900 MB/s"))] for n in range(1, nodes + 1)}
    accepted = more.get("accepted", ())
    for one in (*found, *(pair[0] for pair in accepted)):
        if one.now:
            results.setdefault(one.node, []).append((one.check, one.now))
    told = {}
    for node, pairs in results.items():
        by_check: dict[str, list[Finding]] = {}
        for check, finding in pairs:
            by_check.setdefault(check, []).append(finding)
        told[node] = NodeResult(node, by_check, 1.0)
    report = Report(STARTED, 41.2, ["gpu", "nfs", "ntp", "tmp"], told)
    whole = {"before": BEFORE, "changed": tuple(found), **more}
    return Night("hpc1", report, **whole)


ALL_KINDS = [
    *(changed(Kind.NEW, f"gpu{n:03}", "nfs", slow(40 + n)) for n in (3, 4, 5, 6)),
    changed(Kind.NEW, "gpu017", "gpu", fail("hidden", "2 of 8 GPUs are not seen", LOST)),
    changed(Kind.NEW, "gpu018", "gpu", fail("stuck", "a GPU gives no answer", LOST)),
    changed(
        Kind.WORSE,
        "gpu019",
        "ntp",
        fail("offset", "clock is 2.1 s fast, should be within 1 s", STEP),
        before=Status.WARN,
    ),
    changed(
        Kind.FLAPPING,
        "gpu020",
        "ntp",
        warn("offset", "clock is 0.7 s fast, should be within 0.5 s", STEP),
        turns=5,
        nights=10,
    ),
    changed(
        Kind.BETTER,
        "gpu021",
        "tmp",
        warn("space", "85 % used", STEP),
        before=Status.FAIL,
    ),
    *(changed(Kind.GONE, n, "nfs", None, before=Status.FAIL) for n in ("gpu030", "gpu031")),
    changed(
        Kind.STILL,
        "gpu040",
        "tmp",
        warn("space", "85 % used", STEP),
        before=Status.WARN,
        since=STARTED - timedelta(days=12),
    ),
    changed(
        Kind.STILL, "gpu050", "nfs", None, before=Status.FAIL, since=STARTED - timedelta(days=3)
    ),
]
ACCEPTED = (
    changed(Kind.STILL, "gpu060", "nfs", slow(20), since=STARTED - timedelta(days=40)),
    Acceptance("nfs", ("gpu060",), date(2027, 1, 15), "disk ordered", "anna", BEFORE),
)


def shown() -> str:
    """Subject and text of a mail about most of it."""
    kinds = (Kind.NEW, Kind.WORSE, Kind.GONE, Kind.STILL)
    of = night([one for one in ALL_KINDS if one.kind in kinds and not one.unseen])
    shown = content(of, attached="Node by node: hpc1-2026-12-01.html, attached.")
    return f"Subject: {shown.subject}\n\n{mail.text(shown)}"
