"""However much a node tells, it costs a bounded part of our memory and time, and no other node."""

import time
import tracemalloc
from collections.abc import Iterable, Mapping

import pytest

from clustercheck import answer, facts, verdict
from clustercheck.answer import Answer
from clustercheck.ask import ask
from clustercheck.check import Facts, Finding, NoOptions, Remedy, Status, ok, warn
from clustercheck.facts import Flood, Reader, Told
from clustercheck.judging import compare, judge_node
from clustercheck.node import Node
from clustercheck.report import NodeResult
from clustercheck.run import Watch, run
from clustercheck.transport import Unreachable
from clustercheck.transport.here import Here
from tests.made_up_run import check, plan
from tests.made_up_run import told as told_by_node

MARK = "@mark"
MIB = 2**20


def fed(*lines: str | bytes, checks: list[str] | None = None) -> Reader:
    reader = Reader(MARK, time.time, ["a", "b"] if checks is None else checks)
    for line in lines:
        text = line.encode() if isinstance(line, str) else line
        reader.feed(text.replace(b"@", b"@mark ") + b"\n")
    return reader


FLOODS = {
    "a line without end": b"x" * 30_000,
    "words of a login": b"welcome\n" * 4000,
    "one fact without end": b"@mark a : k\n" + b"@mark a + \xff\xff\xff\xff\n" * 2000,
    "one fact, again and again": b"@mark a = k " + b"v" * 30_000 + b"\n",
    "many facts": b"".join(b"@mark a = k%d v\n" % i for i in range(2000)),
    "checks nobody asked": b"".join(b"@mark x%d ! root\n" % i for i in range(2000)),
    "what a probe waits on": b"@mark a ! hung 5 1/D/nfs/cat\n" * 1000,
    "turns of the clock": b"@mark - clock 0\n@mark - time 0 17\n" * 1000,
    "escapes of sixteen times their size": "@mark a = k \U0001f600".encode() + b"\xff" * 30_000,
}


@pytest.mark.parametrize("kind", FLOODS)
def test_an_answer_that_never_ends_is_given_up_within_bounds(kind: str) -> None:
    reader = Reader(MARK, time.time, ["a", "b"])
    began = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(Flood, match="2 MiB of output|20000 facts"):
            for _ in range(2 * MIB // len(FLOODS[kind]) + 2):
                reader.feed(FLOODS[kind])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 7 * MIB, peak
    assert time.process_time() - began < 20


def test_errors_without_end_on_this_machine() -> None:
    deadline = time.monotonic() + 60
    connection = Here().connect(Node("here", local=True), deadline)
    try:
        with pytest.raises(Unreachable) as refusal:
            ask(connection, "yes >&2\n", Reader(MARK, time.time), deadline)
    finally:
        connection.close()
    assert refusal.value.code == "flood"


def test_a_byte_at_a_time_takes_no_more_time_than_many() -> None:
    """A line of 2 MiB in pieces of one byte: each of them must not cost the whole line again."""
    reader = Reader(MARK, time.time)
    began = time.process_time()
    for _ in range(facts.NODE_LIMIT // 4):
        reader.feed(b"x")
    assert time.process_time() - began < 10


def test_a_node_cannot_tell_of_checks_that_were_not_asked() -> None:
    reader = fed("@a ! root", "@\x1b[31mevil ! needs-root", "@b = said yes", "@- done")
    assert set(reader.told) == {"a", "b"}
    assert reader.noise


@pytest.mark.parametrize("key", ["clock.offset", "clock.uncertainty", "here.offset", "here.node"])
def test_a_node_cannot_tell_what_is_measured_here(key: str) -> None:
    reader = fed(f"@a = {key} 0", f"@a : {key}", "@a + 0", "@a = own 1", "@- done")
    assert dict(reader.told["a"].facts) == {"own": "1"}


def test_notes_are_cut() -> None:
    reader = fed(
        f"@- begin 0 {'b' * 9000} {'h' * 9000}",
        f"@- sudo 1 {'s' * 9000}",
        *["@- leftover /tmp/x"] * 100,
        *["@a ! hung 5 1/D/0/cat"] * 100,
        f"@a ! stderr {'e' * 9000}",
        f"@a ! missing {'m' * 9000}",
        f"@a ! end {'9' * 9000}",
    )
    told = reader.told["a"]
    for text in (reader.host_name, reader.root_refused, told.error, told.missing, told.status):
        assert len(text) <= facts.NOTE_LIMIT
    assert len(reader.leftovers) == told.hung.count("cat (process 1, state D)") == 20


def many(facts: Facts, options: NoOptions) -> Iterable[Finding]:
    for line in facts["lines"].splitlines():
        yield (
            warn("found", f"it says {line}", Remedy("Do what is right."))
            if "bad" in line
            else (ok("found", f"it says {line}"))
        )


def found_in(lines: str) -> list[Finding]:
    told = Told(Facts({"lines": lines}), whole=True, status="0")
    return verdict.judge(check(judge=many), told, NoOptions())


def test_a_message_of_a_megabyte_is_cut() -> None:
    (found,) = found_in("x" * MIB)
    assert found.message.startswith("it says xxx") and found.message.endswith("x…")
    assert len(found.message) < 2100


def test_a_million_findings_are_the_worst_of_them() -> None:
    *found, last = found_in("good\n" * 50_000 + "bad\n" + "good\n" * 50_000)
    assert "it says bad" in [f.message for f in found]
    assert (last.status, last.code) == (Status.UNKNOWN, "left_out")
    assert last.message == f"{100_001 - len(found)} more findings are left out"
    assert len(found) < 600


def test_an_ordinary_number_of_findings_is_left_as_it_is() -> None:
    assert [f.message for f in found_in("good\nbad\n" * 50)] == [
        f"it says {word}" for _ in range(50) for word in ("good", "bad")
    ]


def asked(node: str, lines: str, host_name: str = "", boot_id: str = "") -> Answer:
    told = {"c": Told(Facts({"lines": lines}), whole=True, status="0")}
    return Answer(node, ["c"], told=told, host_name=host_name, boot_id=boot_id)


def compared(*answers: Answer) -> dict[str, list[str]]:
    """Each node's findings, where a check compares nodes and cannot bear "poison"."""

    def differs(
        facts: Mapping[str, Facts], options: Mapping[str, NoOptions]
    ) -> Iterable[tuple[str, Finding]]:
        for node, told in facts.items():
            if told["lines"] == "poison":
                raise ValueError("poison")
            yield node, ok("same", f"as {len(facts) - 1} others")

    checks = {"c": check(judge=many, compare=differs)}
    results: dict[str, NodeResult] = {}
    for one in answers:
        results[one.node] = judge_node(one, checks, lambda name, node: NoOptions())
        one.forget()
    compare(answers, checks, lambda name, node: NoOptions(), results)
    return {
        node: [
            f"{f.status.value} {name}.{f.code}: {f.message}{f.peer and f' [{f.peer}]'}"
            for name, found in result.findings.items()
            for f in found
        ]
        for node, result in results.items()
    }


def test_one_nodes_facts_that_a_comparison_cannot_bear_spoil_no_others() -> None:
    found = compared(*(asked(f"n{i}", "poison" if i == 1 else "good") for i in range(4)))
    assert found["n1"][1].startswith("unknown c.crashed: ")
    for node in ("n0", "n2", "n3"):
        assert found[node] == ["pass c.found: it says good", "pass c.same: as 2 others"]


def test_a_long_answer_is_judged_and_then_not_compared() -> None:
    much = asked("n1", "x" * (answer.KEPT_LIMIT + 1))
    found = compared(asked("n0", "good"), much, asked("n2", "good"))
    assert [line[:25] for line in found["n1"]] == [
        "pass c.found: it says xxx",
        "unknown c.not_compared: i",
    ]
    assert found["n0"] == ["pass c.found: it says good", "pass c.same: as 1 others"]
    assert not much.told["c"].facts


def test_a_long_answer_does_not_wait_for_a_heavy_step() -> None:
    """Else the answers of many nodes would be kept until the last one's turn."""
    nodes: dict[str, list[str]] = {}
    for length in (10, answer.KEPT_LIMIT + 1):
        long = "head -c 400000 /dev/zero | tr '\\0' x" if length > 10 else "echo short"
        heavy = check(
            f'fact thing nas1; {long} | lines text; fact said "$?"',
            heavy_probe="fact said yes",
            shared=lambda facts, options: facts["thing"],
            judge=lambda facts, options: [ok("found", facts["heavy.status"])],
        )
        nodes[str(length)] = told_by_node(run(plan({"heavy": heavy}), Watch()))["n0"]
    assert list(nodes.values()) == [
        ["pass heavy.found: whole"],
        ["pass heavy.found: its answer is too long to be kept until its turn"],
    ]


CODE = "unknown access.other_node: "
SAME = CODE + "another node of this run answered in its place, by its name and its boot"
NAME = CODE + "the machine that answered has the host name of another node of this run"
GOOD = ["pass c.found: it says good"]


@pytest.mark.parametrize(
    ("host_name", "boot", "expected"),
    [
        ("n0", "b0", [f"{SAME} [n0]"]),
        ("N0.cluster.example", "b0", [f"{SAME} [n0]"]),
        ("n0", "b1", [f"{NAME} [n0]", *GOOD, "pass c.same: as 1 others"]),
        ("n0", "", [f"{NAME} [n0]", *GOOD, "pass c.same: as 1 others"]),
        ("n1.cluster.example", "b1", [*GOOD, "pass c.same: as 1 others"]),
        ("login1", "b0", [*GOOD, "pass c.same: as 1 others"]),
        ("", "", [*GOOD, "pass c.same: as 1 others"]),
    ],
)
def test_a_node_that_answers_for_another(host_name: str, boot: str, expected: list[str]) -> None:
    found = compared(asked("n0", "good", "n0", "b0"), asked("n1", "good", host_name, boot))
    assert sorted(found["n1"]) == sorted(expected)
    alone = "as 0 others" if boot == "b0" and host_name != "login1" else "as 1 others"
    assert found["n0"] == [*GOOD, f"pass c.same: {alone}"]
