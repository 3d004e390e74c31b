"""How much CPU a start of `clustercheck` takes, beside bare Python and `import typer`.

    .venv/bin/python benchmarks/startup.py [ROUNDS]

CPU seconds of the child, user and system, as the median of the rounds (default 15), which take
turns so that a busy machine is the same for all; and the seconds that it took, of the fastest.
"""

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

CLUSTERCHECK = str(Path(sys.executable).with_name("clustercheck"))
# the node of the last refuses at once: what is measured is what stands before asking
SSH = ["-w", "127.0.0.1", "-p", "1", "-F", "/dev/null"]
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "--version": [CLUSTERCHECK, "--version"],
    "--help": [CLUSTERCHECK, "--help"],
    "checks": [CLUSTERCHECK, "checks"],
    "run -c tmp,selinux": [CLUSTERCHECK, "run", "-c", "tmp,selinux"],
    "run": [CLUSTERCHECK, "run"],
    "run by ssh": [CLUSTERCHECK, "run", "-c", "tmp,selinux", *SSH],
}


def taken(words: list[str]) -> tuple[float, float]:
    """CPU seconds and seconds of one run; how it ends is the machine's affair."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, ended - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, words in COMMANDS.items():
            times[name].append(taken(words))
    cpu = {name: statistics.median(c for c, _ in many[1:]) for name, many in times.items()}
    for name, many in times.items():  # the first of each was cold
        ratio, fastest = cpu[name] / cpu["import typer"], min(wall for _, wall in many[1:])
        print(f"{name:20} {cpu[name]:.3f} s of CPU, {ratio:4.1f} of import typer, {fastest:.2f} s")


if __name__ == "__main__":
    main()
