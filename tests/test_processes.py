"""Worker processes that share the nodes of a run: the same report, and nothing left of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clustercheck import planning
from tests.command import clustercheck

NODES = 24


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Nodes that are all this machine; `slow` takes as long as the file `wait` is there."""
    path = tmp_path / "inventory.ini"
    wait = tmp_path / "wait"
    path.write_text(
        "".join(f"n{place:02} ansible_connection=local\n" for place in range(NODES))
        + "[check:fine]\ncommand = echo fine\n"
        + "[check:slow]\nlimit = 60\n"
        + f"command = while [ -e '{wait}' ]; do sleep 0.1; done; echo it went on\n"
    )
    return path


def without_times(text: str) -> dict[str, Any]:
    report = json.loads(text)
    return {name: node["checks"] for name, node in report["nodes"].items()}


def test_the_report_is_the_same(inventory: Path) -> None:
    words = ["run", "-i", str(inventory), "-c", "fine,slow,selinux", "--format", "json"]
    alone = clustercheck(*words)
    shared = clustercheck(*words, "--processes", "3")
    assert len(without_times(alone.out)) == NODES
    assert without_times(shared.out) == without_times(alone.out)
    assert shared.status == alone.status and shared.err == ""


def test_how_many_where_nobody_says() -> None:
    cores = len(os.sched_getaffinity(0))
    assert planning.processes(0, 2000) == 1
    assert planning.processes(0, 2001) == min(cores, 4)
    assert planning.processes(8, 3) == 3


class Running:
    """A run by two worker processes whose nodes all wait; `go` lets them end."""

    def __init__(self, inventory: Path, *words: str) -> None:
        self._wait = inventory.with_name("wait")
        self._wait.touch()
        command = [sys.executable, "-m", "clustercheck", "run", "-i", str(inventory), *words]
        self.process = subprocess.Popen(
            [*command, "-c", "slow", "--processes", "2", "--format", "json", "--parallel", "64"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.workers = self._until_there()

    def _until_there(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = [int(pid) for pid in children.read_text().split()]
            asked = [Path(f"/proc/{pid}/task").glob("*/children") for pid in found]
            busy = [any(file.read_text() for file in files) for files in asked]
            if len(found) == 2 and all(busy):
                return found
            time.sleep(0.05)
        raise AssertionError("the workers did not begin")

    def go(self) -> None:
        self._wait.unlink()

    def ended(self, within: float = 20) -> bool:
        """Whether all workers are gone, or go by then."""
        deadline = time.monotonic() + within
        while any(map(alive, self.workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not any(map(alive, self.workers))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def running(inventory: Path, *words: str) -> Iterator[Running]:
    made = Running(inventory, *words)
    with made.process:
        try:
            yield made
        finally:
            inventory.with_name("wait").unlink(missing_ok=True)
            made.process.kill()


def test_the_nodes_of_a_worker_that_was_killed_are_unknown(inventory: Path) -> None:
    with running(inventory) as run:
        os.kill(run.workers[0], signal.SIGKILL)
        run.go()
        out, err = run.process.communicate(timeout=60)
        assert run.process.returncode == 3, err
        assert run.ended()
    nodes = json.loads(out)["nodes"]
    lost = [node["checks"]["access"]["findings"][0] for node in nodes.values() if bad(node)]
    assert len(lost) == NODES // 2
    assert {finding["code"] for finding in lost} == {"access.crashed"}
    assert {finding["message"] for finding in lost} == {
        "the process that asked it ended (signal SIGKILL)"
    }


def bad(node: dict[str, Any]) -> bool:
    return bool(node["status"] == "unknown")


def test_ctrl_c_leaves_the_report_and_no_worker(inventory: Path) -> None:
    with running(inventory) as run:
        run.process.send_signal(signal.SIGINT)
        out, _ = run.process.communicate(timeout=60)
        assert run.ended()
    report = json.loads(out)
    assert report["stopped"] == "interrupted"
    assert all(bad(node) for node in report["nodes"].values())


def test_max_time_ends_them(inventory: Path) -> None:
    with running(inventory, "--max-time", "3") as run:
        out, _ = run.process.communicate(timeout=60)
        assert run.ended()
    assert json.loads(out)["stopped"] == "--max-time of 3 s"


def test_they_end_with_who_made_them(inventory: Path) -> None:
    with running(inventory) as run:
        run.process.kill()
        assert run.ended()


MADE_UP = """
import sys, time
from pathlib import Path
from clustercheck.fanout import Bounds
from clustercheck.run import Watch, run, workers
from clustercheck.transport.here import Here
from tests.made_up_run import plan, told
from tests.test_heavy import heavy_check
class Faulty(Here):
    def connect(self, node, deadline):
        if node.name == "n3" and sys.argv[2] == "fault":
            raise SystemExit("on purpose")
        return super().connect(node, deadline)
made = plan({"nfs": heavy_check(Path(sys.argv[1]))}, 6, transport=Faulty(), bounds=Bounds(4, 30))
shared = workers(made, 2)
for name, found in told(run(made, Watch(), shared)).items():
    print(name, *found)
shared.close()
"""


def made_up(log: Path, how: str) -> "subprocess.CompletedProcess[str]":
    """A process of its own, since here there may be threads."""
    words = [sys.executable, "-c", MADE_UP, str(log), how]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def test_what_loads_a_shared_thing_is_asked_by_one_node_at_a_time(tmp_path: Path) -> None:
    done = made_up(tmp_path / "log", "well")
    assert sorted(done.stdout.splitlines()) == [
        f"n{place} pass nfs.found: speed 100" for place in range(6)
    ], done.stderr
    turns = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert turns == ["+", "-"] * 6


def test_a_fault_of_ours_in_a_worker_is_seen(tmp_path: Path) -> None:
    done = made_up(tmp_path / "log", "fault")
    assert done.returncode == 1
    assert "in a worker process" in done.stderr and "SystemExit: on purpose" in done.stderr
