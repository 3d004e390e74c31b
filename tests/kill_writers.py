"""python -m tests.kill_writers FILE ROUNDS: writers of a history that are killed at any moment.

In each round a process stores nights until it is killed with SIGKILL; then the file is opened as
the next sweep does, and all that was said to be stored must be there. Prints what came of it.
"""

import os
import random
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

from clustercheck.changes import compare
from clustercheck.history import open_for_sweep
from tests.past_runs import DEAD, GOOD, SLOW, night

KEEP = timedelta(days=20)  # so that old ones are forgotten while it goes on


def write(path: Path, told: int, first: int) -> None:
    """Store nights until the end comes; the number of each goes to the descriptor `told`.

    first: the number of the first night.
    """
    kept = open_for_sweep(path)
    standing = kept.standing()
    for number in range(first, first + 10_000):
        nodes = {f"n{place}": (GOOD, SLOW, DEAD)[(number + place) % 3] for place in range(20)}
        report = night(number, nodes)
        run = kept.begin(report.started, report.checks)
        standing = compare(report, standing).standing
        told_facts = {name: {"nfs": os.urandom(300)} for name in nodes}
        kept.store(run, report, standing, told_facts, KEEP)
        os.write(told, run.to_bytes(4, "big"))


def one_round(path: Path, chance: random.Random, first: int) -> tuple[int, str]:
    """Returns the last run that was stored, and what state the run in progress was in."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write(path, writing, first)
        finally:
            os._exit(1)
    os.close(writing)
    last = int.from_bytes(os.read(reading, 4), "big")  # it has begun
    time.sleep(chance.uniform(0, 0.012))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while said := os.read(reading, 4):
        last = int.from_bytes(said, "big")
    os.close(reading)
    kept = open_for_sweep(path)
    (sound,) = kept.database.execute("PRAGMA integrity_check").fetchone()
    assert sound == "ok" and not kept.damage, (sound, kept.damage)
    runs = {run.number: run for run in kept.runs()}
    assert runs[last].state == "done" and len(kept.report(last).nodes) == 20
    lost = [run for run in runs.values() if run.number > last]
    assert len(lost) <= 1, lost
    assert all(run.nodes == 20 for run in runs.values() if run.state == "done")
    assert not any(run.nodes for run in runs.values() if run.state != "done")
    kept.close()
    return last, lost[0].state if lost else "none"


def main() -> None:
    path, rounds = Path(sys.argv[1]), int(sys.argv[2])
    chance, found = random.Random(8), dict[str, int]()
    last = 0
    for _ in range(rounds):
        last, state = one_round(path, chance, last)
        found[state] = found.get(state, 0) + 1
    print(f"{rounds} rounds, {last} runs; the run in progress: {dict(sorted(found.items()))}")


if __name__ == "__main__":
    main()
