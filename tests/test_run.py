"""A run over made-up checks and this machine's own sh: what becomes of each node and check."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from clustercheck.answer import Answer
from clustercheck.check import (
    Facts,
    Finding,
    NoOptions,
    fail,
    ok,
    skip,
    unknown,
    warn,
)
from clustercheck.facts import Told
from clustercheck.fanout import Bounds
from clustercheck.judging import judge_node
from clustercheck.node import Node
from clustercheck.run import Watch, run
from clustercheck.transport import Connection
from clustercheck.transport.here import Here
from tests.made_up_run import REMEDY, Unwell, check, plan, told


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


def test_what_only_follows_from_a_failure_is_put_down_to_it_and_the_rest_stands() -> None:
    """Whether the cause is found on the node or between nodes, and whatever its place."""

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield fail("state", "out of service", REMEDY)
        yield unknown("answer", "none")
        yield warn("file", "differs", REMEDY)

    def compare(facts: Mapping[str, Facts], options: object) -> Iterable[tuple[str, Finding]]:
        yield "n1", fail("key", "another", REMEDY)
        yield "n2", fail("mode", "open to all", REMEDY)

    checks = {
        "symptom": check(
            judge=judge, follows={"state": ("cause.key", "gone"), "answer": ("cause.key",)}
        ),
        "cause": check(compare=compare),
    }
    whole = [
        "fail symptom.state: out of service",
        "unknown symptom.answer: none",
        "warn symptom.file: differs",
    ]
    found = told(run(plan(checks, 3), Watch()))
    assert found["n0"] == [*whole, "pass cause.found: it said yes"]
    assert found["n1"] == [
        "skip symptom.blocked: state: blocked by cause",
        "skip symptom.blocked: answer: blocked by cause",
        "warn symptom.file: differs",
        "pass cause.found: it said yes",
        "fail cause.key: another",
    ]
    assert found["n2"] == [*whole, "pass cause.found: it said yes", "fail cause.mode: open to all"]


def test_a_failure_that_turns_out_to_be_anothers_blocks_nothing() -> None:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield fail("path", "packets vanish", REMEDY, peer="n1")

    def compare(facts: Mapping[str, Facts], options: object) -> Iterable[tuple[str, Finding]]:
        yield "n0", skip("path", "the other's fault", peer="n1")

    checks = {
        "symptom": check("fact said no", after=("cause",)),
        "cause": check(judge=judge, compare=compare),
    }
    report = run(plan(checks, 2), Watch())
    assert told(report) == {
        "n0": [
            "fail symptom.found: it said no, should say yes",
            "skip cause.path: the other's fault",
        ],
        "n1": [
            "skip symptom.blocked: blocked by cause",
            "fail cause.path: packets vanish",
        ],
    }


def test_an_unreachable_node_is_one_finding() -> None:
    checks = {"a": check(), "b": check()}
    report = run(plan(checks, 3, transport=Unwell(), bounds=Bounds(8, 5)), Watch())
    assert told(report)["n1"] == ["unknown access.refused: nothing listens on port 22 of 10.0.0.1"]
    assert [f.split(":")[0] for f in told(report)["n2"]] == ["unknown access.timeout"]
    assert len(told(report)["n0"]) == 2
    assert report.exit_code == 3
    finding = report.nodes["n1"].findings["access"][0]
    assert finding.remedy is not None


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


def test_facts_from_here_are_taken_once_and_given_to_each_node() -> None:
    calls = []

    def from_here(targets: Any, options: object) -> dict[str, dict[str, str]]:
        calls.append([t.name for t in targets])
        return {t.name: {"said": "yes" if t.name == "n0" else "nothing"} for t in targets}

    report = run(plan({"c": check("fact x 1", probe_from_here=from_here)}, 3), Watch())
    assert calls == [["n0", "n1", "n2"]]
    assert told(report)["n0"] == ["pass c.found: it said yes"]
    assert told(report)["n1"] == ["fail c.found: it said nothing, should say yes"]


@pytest.mark.parametrize("local", [False, True])
def test_what_is_wrong_with_this_machine_is_a_note_and_no_finding(local: bool) -> None:
    """Where this machine is itself a node, its findings say it."""

    def from_here(targets: Any, options: object) -> dict[str, dict[str, str]]:
        return {"": {"clock": "this machine's clock is off"}}

    made = check("fact said yes", probe_from_here=from_here)
    report = run(plan({"a": made, "b": made}, 2, local=local), Watch())
    assert report.notes == ([] if local else ["this machine's clock is off"])
    assert told(report)["n0"] == ["pass a.found: it said yes", "pass b.found: it said yes"]


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
