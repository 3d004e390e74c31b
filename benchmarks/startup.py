"""How much CPU `clustercheck --version` takes, beside bare Python and `import typer`.

    .venv/bin/python benchmarks/startup.py [ROUNDS]

CPU seconds of the child, user and system, as the median of the rounds (default 15), which take
turns so that a busy machine is the same for all. The claim is less than 0.2 s.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

CLUSTERCHECK = str(Path(sys.executable).with_name("clustercheck"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "clustercheck --version": [CLUSTERCHECK, "--version"],
    "clustercheck checks": [CLUSTERCHECK, "checks"],
}


def cpu_seconds(words: list[str]) -> float:
    before = os.times()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, words in COMMANDS.items():
            taken[name].append(cpu_seconds(words))
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}  # 1st: cold
    for name, median in medians.items():
        ratio = median / medians["import typer"]
        print(f"{name:24} {median:.3f} s of CPU, {ratio:.2f} of import typer")


if __name__ == "__main__":
    main()
