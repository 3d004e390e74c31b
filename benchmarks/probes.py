"""What each check's probe costs a node: CPU, wall time and processes.

    python -m benchmarks.probes [ROUNDS]

The script of one check at a time, and that of all, is run here by each sh that there is; "nothing"
is the script with a probe that does nothing, which is what all have in common. CPU is that of the
whole process tree. Processes are counted by the number of the last one in a PID namespace of the
script's own, which needs the right to make one.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

from clustercheck import planning
from clustercheck.check import Check, NoOptions
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.planning import Wanted
from clustercheck.script import Asked, Frame, build
from tools.fetch import TOOLS

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
NOTHING = Check(
    title="nothing",
    options=NoOptions(),
    judge=lambda facts, options: (),
    codes={},
    probe=":",
)


def scripts() -> dict[str, str]:
    """By name of the check."""
    chosen = planning.choose(Wanted(nodes="node01"))
    plan = planning.plan(chosen, [Node("node01")], None, Bounds(1, 60), None)
    asked = plan.asked(plan.nodes[0])
    groups = {a.name: [a] for a in asked}
    groups["all"] = list(asked)
    made = {name: build(plan.frame(), group) for name, group in groups.items()}
    return {"nothing": build(Frame(), [Asked("nothing", NOTHING, NoOptions())]), **made}


def run(shell: list[str], script: str) -> tuple[float, float]:
    """CPU and wall seconds."""
    before, began = children(), time.monotonic()
    done = subprocess.run([*shell, "-s"], input=script, stdout=subprocess.PIPE, text=True)
    wall = time.monotonic() - began
    assert "- done" in done.stdout, done.stdout[-300:]
    return children() - before, wall


def children() -> float:
    """CPU seconds of all that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processes(shell: list[str], script: str) -> int:
    """How many the script made; 0 where a namespace is not to be had."""
    last = "cat /proc/sys/kernel/ns_last_pid"
    words = [*NAMESPACE, "sh", "-c", f"$0 $* -s >/dev/null; {last}", *shell]
    done = subprocess.run(words, input=script, capture_output=True, text=True)
    return int(done.stdout) - 3 if done.returncode == 0 else 0  # less sh, cat and the shell itself


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    os.environ["PATH"] += os.pathsep + str(TOOLS / "bin")
    print("| check | sh | CPU ms | wall ms | processes | script bytes |\n|---|---|---|---|---|---|")
    for name, script in scripts().items():
        for title, shell in SHELLS.items():
            if not shutil.which(shell[0]):
                continue
            times = [run(shell, script) for _ in range(rounds)]
            cpu, wall = (statistics.median(one) * 1000 for one in zip(*times, strict=True))
            print(
                f"| {name} | {title} | {cpu:.0f} | {wall:.0f} | {processes(shell, script)} "
                f"| {len(script.encode()):,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
