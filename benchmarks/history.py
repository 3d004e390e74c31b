"""How large the history becomes, and how long a question about one node takes.

    python -m benchmarks.history [NODES [NIGHTS]]

One real answer of this machine to all checks, and to plug-ins that make them thirty, is taken as
that of each node. So that nothing is too alike, each night each node has other digits in every
message that came with a figure, and in the facts of every third check; one node in fifty is silent,
and one in twenty has a warning more, for a few nights. Sizes are those of the file after its
journal is folded in; times are of the processor, so that what else runs here does not count.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from benchmarks.rig import CLUSTERCHECK
from clustercheck import registry
from clustercheck.answer import Answer
from clustercheck.changes import Key, Standing, compare
from clustercheck.check import Finding, Quantity, Remedy, Status, unknown, warn
from clustercheck.facts import Told
from clustercheck.history import open_for_sweep, packed
from clustercheck.record import read
from clustercheck.report import NodeResult, Report

CHECKS = 30
KEEP = timedelta(days=90)
FIRST = datetime(2026, 9, 1, 3, tzinfo=timezone.utc)
QUESTIONS = 50

Found = Mapping[str, list[Finding]]


def real(folder: Path) -> tuple[Found, dict[str, Told]]:
    """What this machine says, judged, and the facts."""
    inventory = folder / "inventory.ini"
    plugins = "".join(
        f"[check:plugin{number}]\ncommand = echo 'OK - {number} of 250 in use'\n"
        for number in range(CHECKS - len(registry.own()))
    )
    inventory.write_text(f"localhost ansible_connection=local\n{plugins}")
    words = ["run", "-i", str(inventory), "--record", str(folder / "kept"), "--format", "json"]
    done = subprocess.run([str(CLUSTERCHECK), *words], stdout=subprocess.PIPE, check=False)
    (node,) = json.loads(done.stdout)["nodes"].values()
    found = {
        check: [_finding(one) for one in said["findings"]] for check, said in node["checks"].items()
    }
    return found, read(folder / "kept")[1][0].told


def _finding(said: Mapping[str, object]) -> Finding:
    remedy, value = said.get("remedy"), said.get("value")
    return Finding(
        Status(str(said["status"])),
        str(said["code"]).partition(".")[2],
        str(said["message"]),
        Remedy(**remedy) if isinstance(remedy, dict) else None,
        "",
        Quantity(value["number"], value["unit"]) if isinstance(value, dict) else None,
    )


def other(text: str, chance: random.Random) -> str:
    """The text with other digits."""
    return "".join(str(chance.randrange(10)) if c.isdigit() else c for c in text)


def a_night(number: int, nodes: int, found: Found, chance: random.Random) -> Report:
    """What all nodes say that night."""
    results = {}
    for place in range(nodes):
        name = f"node{place:04}"
        if (place + number // 4) % 50 == 0:
            silent = {"access": [unknown("timeout", "nothing came back from port 22 within 10 s")]}
            results[name] = NodeResult(name, silent, 10.0)
            continue
        said = {
            check: [
                replace(
                    one,
                    message=other(one.message, chance),
                    value=one.value._replace(number=chance.uniform(0, 100)),
                )
                if one.value
                else one
                for one in findings
            ]
            for check, findings in found.items()
        }
        if (place + number // 5) % 20 == 0:
            slow = warn("slow", other("200 MB/s, should be 900", chance), Remedy("Look at it."))
            said["nfs"] = [*said.get("nfs", []), slow]
        results[name] = NodeResult(name, said, chance.uniform(1, 6))
    return Report(FIRST + timedelta(days=number), 60.0, list(found), results)


def facts_of(told: Mapping[str, Told], chance: random.Random) -> dict[str, Told]:
    """The facts as another night would have them."""
    return {
        check: Told(
            type(one.facts)({key: other(text, chance) for key, text in one.facts.items()}), True
        )
        if place % 3 == 0
        else one
        for place, (check, one) in enumerate(told.items())
    }


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    nodes, nights = (*given, *(1000, 90)[len(given) :])
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        found, told = real(Path(folder))
        path = Path(folder) / "history.db"
        kept = open_for_sweep(path)
        standing: dict[Key, Standing] = {}
        slowest = 0.0
        for number in range(nights):
            report = a_night(number, nodes, found, chance)
            compressed = {
                name: packed(Answer(name, [], facts_of(told, chance)))
                for name, result in report.nodes.items()
                if "access" not in result.findings or len(result.findings) > 1
            }
            began = time.process_time()
            run = kept.begin(report.started, report.checks)
            standing = compare(report, standing).standing
            kept.store(run, report, standing, compressed, KEEP)
            slowest = max(slowest, time.process_time() - began)
        size = os.path.getsize(path)
        kept.close()
        kept = open_for_sweep(path)
        times = []
        for _ in range(QUESTIONS):
            name = f"node{chance.randrange(nodes):04}"
            began = time.process_time()
            past = kept.of_node(name)
            trend = kept.trends()[name]
            times.append(time.process_time() - began)
        findings = sum(len(f) for f in found.values())
        half = sorted(times)[QUESTIONS // 2]
        print(
            f"{nodes} nodes, {len(found)} checks with {findings} findings, {nights} nights: "
            f"{size / 1e6:.0f} MB; storing a night took {slowest:.1f} s of CPU at most; "
            f"all of a node ({len(past)} findings, {len(trend)} trends) in {half * 1e3:.0f} ms "
            f"of CPU, {max(times) * 1e3:.0f} ms at most"
        )
        for table, bytes_ in kept.database.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 6"
        ):
            print(f"  {table}: {bytes_ / 1e6:.0f} MB")
        kept.close()


if __name__ == "__main__":
    main()
