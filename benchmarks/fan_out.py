"""What a node costs the machine that asks it: clustercheck and its peers over one sshd.

    python -m benchmarks.fan_out [--nodes N] [--window W] [--rounds R] [--peers "A;B"] [--keep FILE]

Each round runs the peers in random order, one at a time. The table has the medians; ratios are
taken within each round, for a shared machine drifts. Wall time on one machine is mostly sshd's and
the probe's, which on a cluster is work of the nodes.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.rig import DONE, PROJECT, Rig, rig

Row = dict[str, Any]


def answered(output: Path, name: str) -> int:
    """How many nodes' answers have come whole."""
    text = output.read_text(errors="replace")
    if name not in (peers.OURS, peers.OURS_SHARED):
        return text.count(DONE)
    nodes = json.loads(text)["nodes"].values()
    return sum(node["checks"].get("selinux") is not None for node in nodes)


def run_one(here: Rig, name: str, words: list[str]) -> Row:
    """One run of one peer."""
    output = here.folder / "output"
    command = [sys.executable, "-m", "benchmarks.measure", str(output), "--", *words]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        check=True,
        cwd=PROJECT,
        env={**os.environ, "HOME": str(here.home), "PYTHONWARNINGS": "ignore"},
    )
    row: Row = json.loads(done.stdout)
    row["answered"] = answered(output, name)
    row["said"] = Path(f"{output}.err").read_text(errors="replace")[-500:]
    return row


def table(rows: dict[str, list[Row]], nodes: int) -> str:
    """Medians of the rounds, the cheapest first; the ratio is ours by theirs."""
    ours = rows[peers.OURS]
    lines = [
        "| peer | CPU ms a node | ours / theirs | wall s | ours / theirs | memory MB "
        "| threads | processes | answered |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in sorted(rows.items(), key=lambda item: middle(item[1], "cpu")):
        ratios = [
            f"{statistics.median(o[what] / t[what] for o, t in zip(ours, runs, strict=True)):.2f}"
            for what in ("cpu", "wall")
        ]
        lines.append(
            f"| {name} | {middle(runs, 'cpu') * 1000 / nodes:.1f} | {ratios[0]} "
            f"| {middle(runs, 'wall'):.1f} | {ratios[1]} | {middle(runs, 'memory_mb'):.0f} "
            f"| {middle(runs, 'threads'):.0f} | {middle(runs, 'processes'):.0f} "
            f"| {min(run['answered'] for run in runs)} |"
        )
    return "\n".join(lines)


def middle(runs: list[Row], what: str) -> float:
    return float(statistics.median(run[what] for run in runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="", help="names joined by semicolons; all without it")
    parser.add_argument("--keep", type=Path, help="append every run as a line of JSON")
    wanted = parser.parse_args()
    versions = peers.install()
    names = [name.strip() for name in wanted.peers.split(";") if name]
    with rig(wanted.nodes) as here:
        words = peers.commands(here, wanted.nodes, wanted.window)
        if names:
            words = {name: words[name] for name in {peers.OURS, *names}}
        rows: dict[str, list[Row]] = {name: [] for name in words}
        for turn in range(wanted.rounds):
            for name in random.sample(list(words), len(words)):
                row = run_one(here, name, words[name])
                rows[name].append(row)
                shown = {what: row[what] for what in ("cpu", "wall", "memory_mb", "answered")}
                print(f"round {turn + 1}: {name}: {shown}", file=sys.stderr)
                if row["answered"] < wanted.nodes:
                    print(row["said"], file=sys.stderr)
                if wanted.keep:
                    about = {"peer": name, "nodes": wanted.nodes, "window": wanted.window}
                    with wanted.keep.open("a") as kept:
                        kept.write(json.dumps({**about, "round": turn, **row}) + "\n")
        size = here.script.stat().st_size
    print(
        f"{date.today()}: {wanted.nodes} nodes, {wanted.window} at a time, "
        f"{wanted.rounds} rounds; script {size:,} bytes; {os.cpu_count()} cores.\n"
    )
    print(table(rows, wanted.nodes))
    wanted_ones = {name.lower() for name in (*peers.PACKAGES, "paramiko")}
    print(
        "\n" + ", ".join(v for v in versions.split() if v.partition("==")[0].lower() in wanted_ones)
    )


if __name__ == "__main__":
    main()
