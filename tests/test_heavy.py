"""The second step of a run: what loads shared things, one node at a time for each of them."""

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clustercheck.check import (
    AnyCheck,
    Facts,
    Finding,
    NoOptions,
    Status,
    ok,
    warn,
)
from clustercheck.node import Node
from clustercheck.run import Watch, run
from clustercheck.transport import Connection
from clustercheck.transport.here import Here
from tests.made_up_run import REMEDY, check, plan, told


def heavy_check(log: Path, shared: str = "server", **about: Any) -> AnyCheck:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        if facts["heavy.status"] == "whole":
            yield ok("found", f"speed {facts['speed']}")
        else:
            yield warn("found", f"not measured: {facts['heavy.status']}", REMEDY)

    heavy = f'echo "+ $$" >>{log}; sleep 0.3; echo "- $$" >>{log}; fact speed 100'
    values: dict[str, Any] = {
        "judge": judge,
        "heavy_probe": heavy,
        "shared": lambda facts, options: shared,
        **about,
    }
    return check(**values)


def test_heavy_probes_take_turns_at_a_shared_thing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    report = run(plan({"nfs": heavy_check(log)}, 4), Watch())
    assert set(told(report)["n2"]) == {"pass nfs.found: speed 100"}
    turns = [line.split()[0] for line in log.read_text().splitlines()]
    assert turns == ["+", "-"] * 4, "two nodes at the same server at once"


def test_heavy_probes_of_different_things_go_side_by_side(tmp_path: Path) -> None:
    log = tmp_path / "log"
    checks = {
        "a": heavy_check(log, "one", heavy_probe=f"echo + >>{log}; sleep 3; fact speed 1"),
        "b": heavy_check(log, "two", heavy_probe=f"echo + >>{log}; sleep 3; fact speed 1"),
    }
    most = max_at_once(checks, tmp_path)
    assert most == 2


def max_at_once(checks: Mapping[str, AnyCheck], folder: Path) -> int:
    """How many heavy probes ran at once over two nodes."""
    threads = set()

    class Counting(Here):
        def connect(self, node: Node, deadline: float) -> Connection:
            threads.add(threading.get_ident())
            return super().connect(node, deadline)

    began = time.monotonic()
    report = run(plan(checks, 2, transport=Counting()), Watch())
    assert all(result.status is Status.PASS for result in report.nodes.values())
    # four turns of 3 s: two at a time take 6 s and something, one at a time 12 s
    return 2 if time.monotonic() - began < 11.5 else 1


def test_a_heavy_probe_is_not_run_where_there_is_nothing_to_load(tmp_path: Path) -> None:
    log = tmp_path / "log"
    report = run(plan({"nfs": heavy_check(log, "")}), Watch())
    assert told(report)["n0"][0].startswith("unknown nfs.not_answered")
    assert not log.exists()


def test_the_heavy_step_goes_over_the_same_connection(tmp_path: Path) -> None:
    connects: list[str] = []

    class Counting(Here):
        def connect(self, node: Node, deadline: float) -> Connection:
            connects.append(node.name)
            return super().connect(node, deadline)

    run(plan({"nfs": heavy_check(tmp_path / "log")}, 3, transport=Counting()), Watch())
    assert sorted(connects) == ["n0", "n1", "n2"]


def test_what_two_nodes_found_gone_no_further_one_waits_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    gone = heavy_check(log, heavy_probe=f"echo + >>{log}; fact speed 0; fact heavy.gone yes")
    report = run(plan({"nfs": gone}, 5), Watch())
    assert log.read_text() == "+\n" * 2
    found = sorted(found[0] for found in told(report).values())
    not_asked = "not measured: what it loads no longer answered the nodes whose turn was before"
    assert [words.partition("found: ")[2] for words in found] == ["speed 0"] * 2 + [not_asked] * 3


def test_a_heavy_probe_that_hangs_is_told_and_lets_the_next_in(tmp_path: Path) -> None:
    hangs = heavy_check(tmp_path / "log", heavy_probe="sleep 300", heavy_limit=1)
    report = run(plan({"nfs": hangs}, 2), Watch())
    for found in told(report).values():
        assert found[0].startswith("warn nfs.found: not measured: did not end within its limit")
