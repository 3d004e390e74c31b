"""A history of five weeks as the guide shows it."""

import contextlib
import io
import os
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from clustercheck.changes import Key, Standing, compare
from clustercheck.check import Finding, Quantity, Remedy, fail, ok, warn
from clustercheck.history import open_for_sweep
from clustercheck.past import Place, show
from tests.past_runs import SILENT, Found, night

NIGHTS = 34
LOOK = Remedy("Look at it.")


def shown() -> str:
    """What `history` prints, with the commands."""
    parts = []
    with tempfile.TemporaryDirectory() as folder, utc():
        _fill(Path(folder) / "hpc1.db")
        for words in ((), ("gpu03",), ("gpu03", "nfs"), ("gpu_health",)):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                show(Place(None, Path(folder)), *(*words, "", "")[:2], runs=False)
            parts.append(f"$ {' '.join(('clustercheck history', *words))}\n{out.getvalue()}")
    return "\n".join(parts)


@contextlib.contextmanager
def utc() -> Iterator[None]:
    """Times as they are at UTC, wherever this runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _fill(path: Path) -> None:
    kept = open_for_sweep(path)
    chance = random.Random(3)
    standing: dict[Key, Standing] = {}
    for number in range(NIGHTS):
        nodes = {f"gpu{place:02}": _node(number, place, chance) for place in range(1, 13)}
        report = night(number, nodes, checks=["nfs", "ntp", "gpu_health"])
        standing = compare(report, standing).standing
        run = kept.begin(report.started, report.checks)
        kept.store(run, report, standing, {}, timedelta(days=90))
    kept.close()


def _node(number: int, place: int, chance: random.Random) -> Found:
    rate = chance.uniform(100, 200) if place == 3 and number > 25 else chance.uniform(850, 950)
    offset = chance.gauss(0, 0.001)
    said = f"/home: {rate:.0f} MB/s"
    said += "; should be 500 MB/s or more" if rate < 500 else ""
    value = Quantity(round(rate), "MB/s", less_is_worse=True)
    fell = place == 7 and number in (20, 22, 24, 27, 30, 33)
    health: Finding = ok("gpus", "8 GPUs are well")
    if fell:
        health = fail("xid", "Xid 79: a GPU has fallen off the bus", LOOK)
    if place == 9 and number > 30:
        return SILENT
    return {
        "nfs": [
            ok("throughput", said, value=value)
            if rate > 500
            else warn("throughput", said, LOOK, value=value)
        ],
        "ntp": [
            ok("offset", f"the clock is {offset:+.6f} s off", value=Quantity(round(offset, 6), "s"))
        ],
        "gpu_health": [health],
    }
