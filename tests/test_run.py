"""A run over made-up checks and this machine's own sh: order, limits, heavy steps, ends."""

import dataclasses
import re
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustercheck.answer import Answer
from clustercheck.check import (
    AnyCheck,
    Check,
    Code,
    Facts,
    Finding,
    NoOptions,
    Remedy,
    Status,
    fail,
    ok,
    unknown,
    warn,
)
from clustercheck.facts import Told
from clustercheck.fanout import Bounds
from clustercheck.judging import judge_node
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from clustercheck.transport import Connection, Transport, Unreachable
from clustercheck.transport.here import Here

REMEDY = Remedy("Do what is right.")
CODES = {"found": Code("What was found.", (REMEDY,))}


def check(probe: str = "fact said yes", **about: Any) -> AnyCheck:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        if facts["said"] == "yes":
            yield ok("found", "it said yes")
        else:
            yield fail("found", f"it said {facts['said']}, should say yes", REMEDY)

    whole: dict[str, Any] = {
        "title": "made up",
        "options": NoOptions(),
        "judge": judge,
        "codes": CODES,
        "probe": probe,
        **about,
    }
    return Check(**whole)


def plan(
    checks: Mapping[str, AnyCheck],
    nodes: int = 1,
    *,
    transport: Transport | None = None,
    bounds: Bounds | None = None,
    max_seconds: float | None = None,
    local: bool = False,
) -> Plan:
    way = transport or Here()
    return Plan(
        nodes=[Node(f"n{i}", local=local) for i in range(nodes)],
        checks=checks,
        options_of=lambda name, node: checks[name].options,
        transport_for=lambda node: way,
        bounds=bounds or Bounds(8, 30),
        max_seconds=max_seconds,
    )


def told(report: Report) -> dict[str, list[str]]:
    return {
        node: [
            f"{f.status.value} {check}.{f.code}: {f.message}"
            for check, findings in result.findings.items()
            for f in findings
        ]
        for node, result in report.nodes.items()
    }


def test_each_node_is_judged_by_each_check() -> None:
    report = run(plan({"good": check(), "bad": check("fact said no")}, 3), Watch())
    expected = [
        "pass good.found: it said yes",
        "fail bad.found: it said no, should say yes",
    ]
    assert told(report) == {"n0": expected, "n1": expected, "n2": expected}
    assert report.exit_code == 2


def test_a_missing_fact_and_a_crash_are_unknown_and_harm_no_other() -> None:
    def crashes(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "so far so good")
        raise ZeroDivisionError("on purpose")

    report = run(
        plan({"silent": check("fact other 1"), "crash": check(judge=crashes), "good": check()}),
        Watch(),
    )
    silent, crash, good = told(report)["n0"]
    assert silent == "unknown silent.not_answered: the probe did not report 'said'"
    assert crash.startswith("unknown crash.crashed: the check itself failed: ZeroDivisionError: on")
    assert "test_run.py:" in crash
    assert good == "pass good.found: it said yes"
    assert report.exit_code == 3


def test_one_cause_is_one_finding() -> None:
    checks = {
        "symptom": check(after=("cause",)),
        "cause": check("fact said no"),
        "other": check(),
    }
    assert told(run(plan(checks), Watch()))["n0"] == [
        "skip symptom.blocked: blocked by cause",
        "fail cause.found: it said no, should say yes",
        "pass other.found: it said yes",
    ]


def test_a_hung_probe_costs_its_limit_and_no_more() -> None:
    began = time.monotonic()
    report = run(plan({"hung": check("sleep 300", limit=1), "good": check()}), Watch())
    assert time.monotonic() - began < 15
    hung, good = told(report)["n0"]
    assert hung.startswith("unknown hung.limit: the probe did not end within 1 s; it waits on sh (")
    assert good == "pass good.found: it said yes"


class Unwell:
    """A transport whose nodes n1 and n2 are out of reach, each in its own way."""

    def connect(self, node: Node, deadline: float) -> Connection:
        if node.name == "n1":
            raise Unreachable("refused", "nothing listens on port 22 of 10.0.0.1")
        if node.name == "n2":
            time.sleep(max(0, deadline - time.monotonic()))
            raise Unreachable("timeout", "no answer from 10.0.0.2 within 1 s")
        return Here().connect(node, deadline)

    def close(self) -> None: ...


def test_an_unreachable_node_is_one_finding() -> None:
    checks = {"a": check(), "b": check()}
    report = run(plan(checks, 3, transport=Unwell(), bounds=Bounds(8, 5)), Watch())
    assert told(report)["n1"] == ["unknown access.refused: nothing listens on port 22 of 10.0.0.1"]
    assert [f.split(":")[0] for f in told(report)["n2"]] == ["unknown access.timeout"]
    assert len(told(report)["n0"]) == 2
    assert report.exit_code == 3
    finding = report.nodes["n1"].findings["access"][0]
    assert finding.remedy is not None


def pairwise(probe: str) -> AnyCheck:
    """It is UNKNOWN of every peer that the fact `silent` names, and speaks of the node itself."""

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "the node itself is well")
        for peer in facts["silent"].split():
            yield unknown("found", "no answer", peer=peer)

    return check(probe, judge=judge, probe_peers=True)


def test_every_peer_must_be_spoken_of_whatever_is_said_of_the_node() -> None:
    report = run(plan({"c": pairwise("fact silent ''")}, 3), Watch())
    assert told(report)["n0"] == [
        "pass c.found: the node itself is well",
        "unknown c.not_answered: nothing was reported",
        "unknown c.not_answered: nothing was reported",
    ]
    assert [f.peer for f in report.nodes["n0"].findings["c"]] == ["", "n1", "n2"]


def test_a_node_without_peers_is_judged_all_the_same() -> None:
    alone = pairwise("fact silent ''")
    assert told(run(plan({"c": alone}), Watch()))["n0"] == ["pass c.found: the node itself is well"]
    of_pairs = check("fact tried 0", judge=lambda facts, options: (), probe_peers=True)
    assert told(run(plan({"c": of_pairs}), Watch()))["n0"] == [
        "skip c.no_peers: no other node to try"
    ]


def test_a_comparison_may_say_better_whose_fault_it_is() -> None:
    def compare(facts: object, options: object) -> Iterable[tuple[str, Finding]]:
        yield "n0", ok("found", "it is the other side's fault", peer="n1")

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "the node itself is well")
        for peer in facts["peers"].split():
            yield fail("found", "no answer", REMEDY, peer=peer)

    checks = {"c": check('fact peers "$(echo $PEERS)"', judge=judge, probe_peers=True)}
    checks["c"] = dataclasses.replace(checks["c"], compare=compare)
    assert told(run(plan(checks, 3), Watch()))["n0"] == [
        "pass c.found: the node itself is well",
        "fail c.found: no answer",
        "pass c.found: it is the other side's fault",
    ]


def test_no_node_answers_for_a_peer_that_is_unreachable_itself() -> None:
    checks = {"c": pairwise('fact silent "$(echo $PEERS)"')}
    report = run(plan(checks, 4, transport=Unwell(), bounds=Bounds(8, 5)), Watch())
    assert {f.peer: f.status.value for f in report.nodes["n3"].findings["c"]} == {
        "": "pass",
        "n0": "unknown",
        "n1": "skip",
    }


def test_a_fault_of_our_own_costs_one_node_and_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Here):
        def connect(self, node: Node, deadline: float) -> Connection:
            if node.name != "n0":
                raise ZeroDivisionError("on purpose")
            return super().connect(node, deadline)

    report = run(plan({"a": check()}, 3, transport=Faulty()), Watch())
    assert told(report)["n0"] == ["pass a.found: it said yes"]
    assert told(report)["n1"] == [
        "unknown access.crashed: clustercheck itself failed: ZeroDivisionError: on purpose"
    ]
    assert caplog.text.count("Traceback") == 1


def test_the_nodes_limit_holds_whatever_hangs() -> None:
    """The script's own limit cannot help where the script itself is held up."""
    began = time.monotonic()
    report = run(
        plan({"a": check("sleep 300", limit=300)}, bounds=Bounds(1, 2)),
        Watch(),
    )
    assert time.monotonic() - began < 15
    (found,) = told(report)["n0"]
    assert found.startswith("unknown access.limit: no whole answer within 2 s")


def test_max_time_ends_the_run_and_names_who_was_not_reached() -> None:
    checks = {"slow": check("sleep 20; fact said yes", limit=60)}
    began = time.monotonic()
    report = run(plan(checks, 4, bounds=Bounds(2, 60), max_seconds=3), Watch())
    assert time.monotonic() - began < 15
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


def test_a_heavy_probe_that_hangs_is_told_and_lets_the_next_in(tmp_path: Path) -> None:
    hangs = heavy_check(tmp_path / "log", heavy_probe="sleep 300", heavy_limit=1)
    report = run(plan({"nfs": hangs}, 2), Watch())
    for found in told(report).values():
        assert found[0].startswith("warn nfs.found: not measured: did not end within its limit")


def test_what_only_shows_between_nodes(tmp_path: Path) -> None:
    def compare(
        facts: Mapping[str, Facts], options: Mapping[str, NoOptions]
    ) -> Iterable[tuple[str, Finding]]:
        assert set(facts) == {"n0", "n1", "n2"} and set(options) == set(facts)
        yield "n1", warn("found", "differs from the others", REMEDY)

    report = run(plan({"c": check(compare=compare)}, 3), Watch())
    assert told(report)["n0"] == ["pass c.found: it said yes"]
    assert told(report)["n1"][1] == "warn c.found: differs from the others"


def test_a_crash_of_a_comparison_is_unknown() -> None:
    def compare(facts: object, options: object) -> Iterable[tuple[str, Finding]]:
        raise ValueError("on purpose")

    report = run(plan({"c": check(compare=compare)}, 2), Watch())
    assert report.exit_code == 3
    assert told(report)["n1"][1].startswith("unknown c.crashed")


def test_facts_from_here_are_taken_once_and_given_to_each_node() -> None:
    calls = []

    def from_here(targets: Any, options: object) -> dict[str, dict[str, str]]:
        calls.append([t.name for t in targets])
        return {t.name: {"said": "yes" if t.name == "n0" else "nothing"} for t in targets}

    report = run(plan({"c": check("fact x 1", probe_from_here=from_here)}, 3), Watch())
    assert calls == [["n0", "n1", "n2"]]
    assert told(report)["n0"] == ["pass c.found: it said yes"]
    assert told(report)["n1"] == ["fail c.found: it said nothing, should say yes"]


def test_a_fault_here_is_the_cause_of_unknown() -> None:
    def from_here(targets: object, options: object) -> dict[str, dict[str, str]]:
        raise OSError("no route to the name server")

    report = run(plan({"c": check("fact x 1", probe_from_here=from_here)}), Watch())
    assert told(report)["n0"] == [
        "unknown c.not_answered: the probe did not report 'said' "
        "(OSError: no route to the name server)"
    ]


def test_this_machine_is_asked_without_sh_where_a_check_can() -> None:
    made = check("fact said no", probe_here=lambda options: {"said": "yes"})
    assert told(run(plan({"c": made}, local=True), Watch()))["n0"] == ["pass c.found: it said yes"]
    assert told(run(plan({"c": made}, local=False), Watch()))["n0"] == [
        "fail c.found: it said no, should say yes"
    ]


def test_a_crash_here_is_unknown_too() -> None:
    def breaks(options: object) -> Mapping[str, str]:
        raise PermissionError("not you")

    report = run(plan({"c": check(probe_here=breaks)}, local=True), Watch())
    assert told(report)["n0"] == [
        "unknown c.not_answered: the probe ended early (status 1): PermissionError: not you"
    ]


def test_a_check_that_needs_root_is_named_once_a_node() -> None:
    """Run by an ordinary user, made up by the transport's user where the tests run as root."""
    answer = Answer("n0", ["a", "b", "c"], uid="1000")
    checks = {"a": check(needs_root=True), "b": check(needs_root=True), "c": check()}
    answer.told = {
        "a": Told(needs_root=True),
        "b": Told(needs_root=True),
        "c": Told(Facts({"said": "yes"}), whole=True, status="0"),
    }
    result = judge_node(answer, checks, lambda name, node: NoOptions())
    lines = [
        f"{f.status.value} {name}.{f.code}: {f.message}"
        for name, findings in result.findings.items()
        for f in findings
    ]
    assert lines == [
        "unknown access.root: root is needed for a, b",
        "skip a.needs_root: not looked at: needs root",
        "skip b.needs_root: not looked at: needs root",
        "pass c.found: it said yes",
    ]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Told(wanted_root=True, whole=True), "unknown root: sudo refused: no such user; not looked"
         " at: a"),
        (Told(whole=True), "skip as_user: sudo refused, and nothing that was asked needs root"),
    ],
)  # fmt: skip
def test_sudo_refused_counts_where_root_was_wanted(told: Told, expected: str) -> None:
    answer = Answer("n0", ["a"], told={"a": told}, root_refused="1 no such user")
    found = judge_node(answer, {"a": check()}, lambda name, node: NoOptions()).findings["access"]
    assert [f"{f.status.value} {f.code}: {f.message}" for f in found] == [expected]


@pytest.mark.parametrize("nodes", [200])
def test_threads_are_no_more_than_the_window(nodes: int) -> None:
    most = 0

    def ended(answer: Answer, result: object) -> None:
        nonlocal most
        most = max(most, threading.active_count())

    before = threading.active_count()
    report = run(plan({"c": check()}, nodes, bounds=Bounds(16, 60)), Watch(ended=ended))
    assert most <= before + 16
    assert report.exit_code == 0 and len(report.nodes) == nodes


def test_the_few_that_differ_are_asked_again(tmp_path: Path) -> None:
    """A short answer of each; the long one only of the node that differs."""

    def follow(facts: Mapping[str, Facts], options: object) -> Iterable[str]:
        assert set(facts) == {"n0", "n1", "n2"}
        yield "n1"

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts.get("long", "short only"))

    made = check(judge=judge, follow=follow, follow_probe="fact long 'all of it'")
    grown: list[str] = []
    report = run(plan({"c": made}, 3), Watch(followed=lambda answer: grown.append(answer.node)))
    assert told(report) == {
        "n0": ["pass c.found: short only"],
        "n1": ["pass c.found: all of it"],
        "n2": ["pass c.found: short only"],
    }
    assert grown == ["n1"]


def test_a_crash_while_choosing_whom_to_ask_again_is_no_pass() -> None:
    def follow(facts: object, options: object) -> Iterable[str]:
        raise ValueError("on purpose")

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts["long"])

    report = run(
        plan({"c": check(judge=judge, follow=follow, follow_probe="fact long 1")}), Watch()
    )
    assert report.exit_code == 3


def test_all_nodes_are_named_to_a_probe_that_asks() -> None:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts["nodes"].replace("\n", "+"))

    report = run(
        plan({"c": check('fact nodes "$NODES"', judge=judge, probe_nodes=True)}, 3), Watch()
    )
    assert told(report)["n2"] == ["pass c.found: n0+n1+n2"]


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
