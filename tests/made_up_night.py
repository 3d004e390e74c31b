"""A made-up cluster of any size, and a night of it beside the one before."""

import random
from datetime import date, datetime, timedelta, timezone

from clustercheck.changes import Acceptance, Changed, Kind, Night, Point, silent
from clustercheck.check import Finding, Quantity, Remedy, Status, fail, ok, skip, unknown, warn
from clustercheck.report import TROUBLE, NodeResult, Report, each

STARTED = datetime(2026, 3, 1, 3, 0, tzinfo=timezone.utc)
BEFORE = STARTED - timedelta(days=1)

STEP = Remedy("Let chronyd step the clock with `chronyc makestep`.", "§4.1.1", disturbs=True)
SLOW = Remedy(
    "See whether the server is busy (`nfsiostat 1`), and whether the mount uses nconnect.", "§4.1.3"
)
POWER = Remedy("Look at the node's power and console.")

_USUAL = "it is as it should be, and that takes as many words as such messages mostly have"


def report(nodes: int, checks: int = 30) -> Report:
    """Of 100 nodes, about six have trouble; a third of them has GPUs."""
    dice = random.Random(nodes)
    names = ["ntp", "nfs", "gpu", *(f"check{number}" for number in range(3, checks))]
    results, members = {}, dict[str, list[str]]()
    for number in range(nodes):
        group = "gpu" if number % 3 == 0 else "compute"
        node = f"{group}{number:03}"
        members.setdefault(group, []).append(node)
        ill = dice.random() < 0.06
        if ill and dice.random() < 0.1:
            findings = {"access": [unknown("timeout", "no answer within 10 s", POWER)]}
        else:
            findings = {name: [_finding(dice, name, group, ill)] for name in names}
        results[node] = NodeResult(node, findings, 0.5 + dice.expovariate(1))
    return Report(STARTED, 42.0, names, results, members={"all": list(results), **members})


def _finding(dice: random.Random, name: str, group: str, ill: bool) -> Finding:
    if name == "gpu" and group != "gpu":
        return skip("none", "there is no GPU")
    if name == "nfs" and ill:
        rate = dice.randint(20, 90)
        message = f"{rate} MB/s from nfs01:/home, should be 200 MB/s or more"
        return warn("slow", message, SLOW, value=Quantity(rate, "MB/s", less_is_worse=True))
    if name == "ntp" and ill and dice.random() < 0.5:
        ahead = 1 + 8 * dice.random()
        message = f"the clock is {ahead:.2f} s ahead, should be within 1 s"
        return fail("offset", message, STEP, value=Quantity(ahead, "s"))
    if name[-1] in "0369":
        used = 40 * dice.random()
        message = f"{used:.1f} % of the 512 GB of /var/lib/{name} are used, should be 90 % at most"
        return ok("space", message, value=Quantity(used, "%"))
    return ok("mode", f"{name}: {_USUAL}")


def night(nodes: int, runs: int = 90, checks: int = 30) -> Night:
    """Trouble of every kind, and values of so many runs."""
    of = report(nodes, checks)
    dice = random.Random(nodes)
    trends: dict[str, dict[str, list[Point]]] = {}
    changed: list[Changed] = []
    kinds = (Kind.NEW, Kind.STILL, Kind.WORSE, Kind.FLAPPING, Kind.BETTER)
    for node, check, finding in each(of):
        if value := finding.value:
            trends.setdefault(node, {})[f"{check}.{finding.code}"] = [
                Point(
                    STARTED - timedelta(days=runs - 1 - run),
                    value.number * (1 if run == runs - 1 else 0.5 + dice.random()),
                    value.unit,
                )
                for run in range(runs)
            ]
        if finding.status in TROUBLE:
            kind = kinds[len(changed) % len(kinds)]
            before = None if kind is Kind.NEW else Status.WARN
            days = 0 if kind is Kind.NEW else 1 + len(changed) % 4
            changed.append(
                Changed(
                    kind,
                    node,
                    check,
                    finding.code,
                    finding.peer,
                    finding,
                    before,
                    STARTED - timedelta(days=days),
                    5 if kind is Kind.FLAPPING else 1,
                    14,
                )
            )
    accepted: tuple[tuple[Changed, Acceptance], ...] = ()
    if changed:
        why = Acceptance(
            changed[-1].name, (changed[-1].node,), date(2027, 1, 15), "disk ordered", "anna", BEFORE
        )
        accepted = ((changed.pop(), why),)
    return Night("hpc1", of, BEFORE, tuple(changed), accepted, silent=silent(of), trends=trends)
