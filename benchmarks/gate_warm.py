"""What a gate costs that was answered a moment ago, beside one that asks every node.

    python -m benchmarks.gate_warm [--nodes N] [--rounds R] [--checks NAMES]

Nodes are addresses of one sshd (benchmarks/rig.py). Slurm is a `scontrol` that gives N idle nodes
in the form of 24.11, so that the warm gate needs no connection; the key is taken away once the cold
one is done, so that it can make none. Times are medians of the rounds, in turn with those of bare
Python. The claim, for 512 nodes: under 0.3 s of wall time, Python's start included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.rig import CLUSTERCHECK, Rig, rig

CHECKS = "cpu,memory,selinux"  # one of each kind that a kept result may be: by use, and by boot
BARE = "python -c pass"


class Cost(NamedTuple):
    """Wall and CPU seconds of a command."""

    wall: float
    cpu: float


def cost(words: list[str], env: dict[str, str]) -> tuple[Cost, str]:
    """What the command costs, and its standard output."""
    before, began = os.times(), time.monotonic()
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, os.times()
    if done.returncode not in (0, 1, 75):
        sys.exit(done.stderr)
    user = after.children_user - before.children_user
    return Cost(wall, user + after.children_system - before.children_system), done.stdout


def write_scontrol(here: Rig, nodes: int) -> Path:
    """A folder with a `scontrol` that has so many idle nodes."""

    def number(value: float) -> dict[str, object]:
        return {"set": True, "infinite": False, "number": int(value)}

    hour_ago = time.time() - 3600
    about = {
        "architecture": "x86_64",
        "boot_time": number(hour_ago),
        "slurmd_start_time": number(hour_ago + 60),
        "last_busy": number(hour_ago + 60),
        "state": ["IDLE"],
        "partitions": ["main"],
        "reason": "",
        "reason_set_by_user": "",
        "operating_system": "Linux 6.8.0-90-generic #91-Ubuntu SMP PREEMPT_DYNAMIC",
        "tres": "cpu=64,mem=515000M,billing=64",
        "version": "24.11.5",
    }
    names = [f"node{place:05}" for place in range(nodes)]
    content = [{"name": name, "hostname": name, "address": name, **about} for name in names]
    folder = here.folder / "slurm"
    folder.mkdir()
    (folder / "nodes.json").write_text(json.dumps({"nodes": content, "errors": []}, indent=2))
    (folder / "scontrol").write_text(f"#!/bin/sh\nexec cat {folder}/nodes.json\n")
    (folder / "scontrol").chmod(0o755)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--checks", default=CHECKS)
    asked = parser.parse_args()
    with rig(asked.nodes) as here:
        slurm = write_scontrol(here, asked.nodes)
        path = f"{slurm}:{os.environ['PATH']}"
        env = {"HOME": str(here.home), "PATH": path, "PYTHONWARNINGS": "ignore"}
        words = [
            *(str(CLUSTERCHECK), "gate", "-i", str(here.inventory(asked.nodes))),
            *(*here.words(), "-c", asked.checks, "--format", "json", "--on-unknown", "go"),
            *("--cache", str(here.folder / "cache")),
        ]
        cold, said = cost(words, env)
        assert json.loads(said)["from_cache"] is False, said
        here.key.rename(here.key.with_suffix(".away"))
        warm: list[Cost] = []
        bare: list[Cost] = []
        for _ in range(asked.rounds):
            found, said = cost(words, env)
            assert json.loads(said)["from_cache"] is True, said
            warm.append(found)
            bare.append(cost([sys.executable, "-c", "pass"], env)[0])
        (kept,) = (here.folder / "cache/questions").glob("*.json")
        print(
            f"{asked.nodes} nodes, {asked.checks}; the file of results has {kept.stat().st_size} B"
        )
    rows = {"cold gate": [cold], "warm gate": warm, BARE: bare}
    for name, costs in rows.items():
        wall = statistics.median(each.wall for each in costs)
        cpu = statistics.median(each.cpu for each in costs)
        print(f"{name:16} {wall:8.3f} s wall {cpu:8.3f} s CPU {wall / cold.wall:8.4f} of cold")


if __name__ == "__main__":
    main()
