"""Many processes that put one question to one cache at once: `python -m tests.crowd FOLDER COUNT`.

Each is a real process, forked from this one before it has a thread. What nodes are asked is counted
in FOLDER/asked, a line each. The first COUNT lines of output are what each found, as JSON.

With a third argument, one process begins before the others, gets the lock, and stays in the middle
of its work until it is killed with SIGKILL.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from clustercheck import cached_run, inventory, slurm_nodes
from clustercheck.answer import Answer
from clustercheck.cache import Cache
from clustercheck.cached_run import Asking
from clustercheck.judging import OptionsOf
from clustercheck.planning import Chosen
from clustercheck.report import Report
from clustercheck.run import Watch, run
from tests.made_up_run import check, plan

KEY = "c" * 32
SECONDS = 100


def asking(folder: Path) -> Asking:
    checks = {"c": check(f"fact said yes; echo >>{folder}/asked", stale="time")}
    whole = plan(checks, 2)

    def ask(
        chosen: Chosen,
        watch: Watch,
        options_of: OptionsOf,
        only: Mapping[str, Collection[str]],
        known: Mapping[str, Answer],
    ) -> Report:
        part = replace(whole, checks=chosen.checks, options_of=options_of, only=only, known=known)
        return run(part, watch)

    return Asking(Chosen(inventory.empty(checks), whole.nodes, checks), whole.options_of, ask)


def question(folder: Path, prepare: Callable[[], Asking]) -> None:
    cache = Cache(folder / "cache")
    outcome = cached_run.results(cache, KEY, 900, SECONDS, prepare, slurm_nodes.Answer)
    found = {name: node.status.value for name, node in outcome.kept.report.nodes.items()}
    words = {"found": found, "asked": len(outcome.asked), "notes": cache.notes}
    os.write(1, json.dumps(words).encode() + b"\n")


def fork(work: Callable[[], None]) -> int:
    if child := os.fork():
        return child
    try:
        work()
    except BaseException as error:
        os.write(1, f"{type(error).__name__}: {error}\n".encode())
    os._exit(0)


def killed_owner(folder: Path) -> int:
    """A process that has the lock, and will do nothing more."""
    ours, theirs = os.pipe()

    def stay() -> Asking:
        os.write(theirs, b"!")
        time.sleep(SECONDS)
        raise AssertionError

    child = fork(lambda: question(folder, stay))
    os.read(ours, 1)
    return child


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    owner = killed_owner(folder) if sys.argv[3:] else 0
    gate, opened = os.pipe()

    def work() -> None:
        os.close(opened)
        os.read(gate, 1)  # until the gate is opened for all
        question(folder, lambda: asking(folder))

    children = [fork(work) for _ in range(count)]
    os.close(gate)
    os.close(opened)
    if owner:
        # those that wait have looked at the lock, of which none is left when all is done
        os.kill(owner, signal.SIGKILL)
        children.append(owner)
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
