"""Judging and showing 10,000 nodes' recorded answers to ten checks.

    python -m benchmarks.judging [NODES]

One real answer of this machine to all checks, and to plug-ins that make them ten, is recorded and
copied under other names; every hundredth node is unreachable, every twentieth has other facts.
CPU and peak memory are those of `clustercheck judge`, from its start to the last line.
"""

import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.rig import CLUSTERCHECK, PROJECT
from clustercheck import registry

CHECKS = 10
FORMS = ("text", "json", "jsonl", "csv")


def inventory(folder: Path) -> Path:
    """An inventory that adds as many plug-ins as ten checks need."""
    path = folder / "inventory.ini"
    sections = [
        f"[check:plugin{i}]\ncommand = echo 'OK - {i} | load={i}'\n"
        for i in range(CHECKS - len(registry.own()))
    ]
    path.write_text("localhost ansible_connection=local\n" + "\n".join(sections))
    return path


def copied(answer: dict[str, Any], number: int) -> dict[str, Any]:
    """The answer as another node might have given it."""
    answer = {**answer, "node": f"node{number:05}"}
    if number % 100 == 1:
        return {**answer, "told": {}, "code": "refused", "message": "nothing listens on port 22"}
    if number % 20 == 2:
        answer["told"] = copy.deepcopy(answer["told"])
        for told in answer["told"].values():
            told["facts"] = {
                key: value.replace("1", str(number % 7)) for key, value in told["facts"].items()
            }
    return answer


def record(folder: Path, nodes: int) -> tuple[Path, Path]:
    """The inventory and the recorded run of so many nodes."""
    words, kept = inventory(folder), folder / "recorded"
    run = [str(CLUSTERCHECK), "run", "-i", str(words), "--record", str(kept)]
    subprocess.run(run, stdout=subprocess.DEVNULL, check=False)
    (one,) = (kept / "nodes").glob("*.json")
    answer = json.loads(one.read_text())
    one.unlink()
    names = []
    for number in range(nodes):
        other = copied(answer, number)
        names.append(other["node"])
        (kept / "nodes" / f"{other['node']}.json").write_text(json.dumps(other, indent=1) + "\n")
    about = json.loads((kept / "run.json").read_text())
    (kept / "run.json").write_text(json.dumps({**about, "nodes": names}, indent=1) + "\n")
    return words, kept


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory(prefix="clustercheck-bench-") as name:
        folder = Path(name)
        words, kept = record(folder, nodes)
        size = sum(path.stat().st_size for path in (kept / "nodes").iterdir())
        print(f"{nodes} nodes, {CHECKS} checks; {size / nodes:,.0f} bytes recorded a node\n")
        print("| form | CPU s | wall s | memory MB | report bytes |\n|---|---|---|---|---|")
        for form in FORMS:
            output = folder / "output"
            judge = map(str, (CLUSTERCHECK, "judge", kept, "-i", words, "--format", form))
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.measure", str(output), "--", *judge],
                stdout=subprocess.PIPE,
                check=True,
                cwd=PROJECT,
            )
            row = json.loads(done.stdout)
            assert row["status"] in (0, 1, 2, 3), Path(f"{output}.err").read_text()
            print(
                f"| {form} | {row['cpu']:.1f} | {row['wall']:.1f} | {row['memory_mb']:.0f} "
                f"| {output.stat().st_size:,} |"
            )


if __name__ == "__main__":
    main()
