"""Nodes that hang, fall silent or are not reached: each costs its limit and no more."""

import re
import signal
import time

import pytest

from clustercheck.answer import Answer
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.run import Watch, run
from clustercheck.transport import Connection
from clustercheck.transport.here import Here
from tests.made_up_run import check, plan, told


def test_a_hung_probe_costs_its_limit_and_no_more() -> None:
    began = time.monotonic()
    report = run(plan({"hung": check("sleep 300", limit=1), "good": check()}), Watch())
    assert time.monotonic() - began < 60
    hung, good = told(report)["n0"]
    assert hung.startswith("unknown hung.limit: the probe did not end within 1 s; it waits on sh (")
    assert good == "pass good.found: it said yes"


def test_the_nodes_limit_holds_whatever_hangs() -> None:
    """The script's own limit cannot help where the script itself is held up."""
    began = time.monotonic()
    report = run(
        plan({"a": check("sleep 300", limit=300)}, bounds=Bounds(1, 2)),
        Watch(),
    )
    assert time.monotonic() - began < 60
    (found,) = told(report)["n0"]
    assert found.startswith("unknown access.limit: no whole answer within 2 s")


def test_max_time_ends_the_run_and_names_who_was_not_reached() -> None:
    checks = {"slow": check("sleep 90; fact said yes", limit=90)}
    began = time.monotonic()
    report = run(plan(checks, 4, bounds=Bounds(2, 90), max_seconds=3), Watch())
    assert time.monotonic() - began < 60
    assert report.stopped == "--max-time of 3 s"
    words = [found[0] for found in told(report).values()]
    asked = "unknown access.not_reached: had not answered yet (--max-time of 3 s)"
    waiting = "unknown access.not_reached: its turn had not come (--max-time of 3 s)"
    assert words.count(asked) == 2 and words.count(waiting) == 2
    assert report.exit_code == 3


def test_ctrl_c_leaves_the_report_of_what_is_known() -> None:
    checks = {"c": check('[ "$(date +%s)" ]; fact said yes')}

    def ended(answer: Answer, result: object) -> None:
        if answer.node == "n0":
            signal.raise_signal(signal.SIGINT)

    report = run(plan(checks, 5, bounds=Bounds(1, 30)), Watch(ended=ended))
    assert report.stopped == "interrupted"
    assert told(report)["n0"] == ["pass c.found: it said yes"]
    assert told(report)["n4"][0].startswith("unknown access.not_reached: ")


class Mute(Here):
    """A way that takes the script and says nothing, or stops speaking after some lines."""

    def __init__(self, *said: bytes) -> None:
        self.said = list(said)

    def connect(self, node: Node, deadline: float) -> Connection:
        return self  # type: ignore[return-value]

    def start(self, script: bytes, deadline: float) -> "Mute":
        mark = re.search(rb"cc_mark=(\S+)", script)
        assert mark
        self.said = [line.replace(b"MARK", mark[1].strip(b"'")) for line in self.said]
        return self

    def receive(self, timeout: float) -> bytes | None:
        if self.said:
            return self.said.pop(0)
        time.sleep(timeout)
        return None

    def send(self, data: bytes) -> None: ...


def test_a_login_that_never_begins_is_told_from_a_slow_node() -> None:
    report = run(plan({"a": check()}, transport=Mute(), bounds=Bounds(1, 1)), Watch())
    assert told(report)["n0"] == [
        "unknown access.no_start: logged in, and the script had not begun in 1 s"
    ]


def test_a_node_that_falls_silent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It speaks once a second while it waits: nobody need wait for the whole limit."""
    monkeypatch.setattr("clustercheck.ask.SECONDS_OF_SILENCE", 1)
    gone = Mute(b"\nMARK - begin 0 b host\n", b"MARK - tick\n")
    report = run(plan({"a": check()}, transport=gone, bounds=Bounds(1, 60)), Watch())
    assert told(report)["n0"] == ["unknown access.cut: nothing more was heard of it for 1 s"]
