"""A run kept in a folder gives the same findings again, with no node; damage is told by name."""

import dataclasses
import json
import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from annotated_types import Ge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustercheck import reach, record
from clustercheck.answer import Answer
from clustercheck.check import (
    AnyCheck,
    Check,
    Code,
    Facts,
    Finding,
    NoOptions,
    Remedy,
    fail,
    ok,
    option,
    warn,
)
from clustercheck.errors import ConfigError, UsageError
from clustercheck.facts import Told
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from clustercheck.transport import Connection, Unreachable
from clustercheck.transport.here import Here

NODES = ["gpu02", "gpu01", "../odd name%", "fe80::1%eth0", "dead"]
FIX = Remedy("Make it smaller.")


@dataclasses.dataclass(frozen=True)
class Options:
    most: Annotated[int, Ge(0)] = option(5, "the largest that is tolerated", unit="s")


def judge_size(facts: Facts, options: Options) -> Iterator[Finding]:
    size = int(facts["size"])
    if size > options.most:
        yield fail("size", f"size is {size} s, should be {options.most} s", FIX)
    else:
        yield ok("size", f"size is {size} s, of {facts['host']}, {facts['clock.uncertainty'][0]}")


def compare_sizes(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    for node in facts:
        yield node, warn("alike", f"one of {len(facts)} nodes that are alike", FIX)


def plain(probe: str, **more: Any) -> AnyCheck:
    """A check that is content as soon as the probe reports anything."""
    return Check(
        title="plain",
        options=NoOptions(),
        judge=lambda facts, options: [ok("here", repr(sorted(facts.items())))],
        codes={"here": Code("It is there.")},
        probe=probe,
        **more,
    )


CHECKS: dict[str, AnyCheck] = {
    "size": Check(
        title="size",
        options=Options(),
        judge=judge_size,
        compare=compare_sizes,
        codes={"size": Code("Too large.", (FIX,)), "alike": Code("Alike.", (FIX,))},
        probe="fact size 9",
        clock=True,
        probe_from_here=lambda targets, options: {t.name: {"host": t.host} for t in targets},
    ),
    "followed": plain(
        "fact a b", follow_probe="fact again yes", follow=lambda facts, options: ["gpu02"]
    ),
    "after_size": plain("fact a b", after=("size",)),
    "text": plain("printf 'two\\nlines \\033[31m\\n\\303\\050' | lines text"),
    "hung": plain("fact a b; sleep 60", limit=1),
    "no_tool": plain("fact a b", needs=("no-such-tool",)),
    "silent": plain("", probe_here=lambda options: {"a": "b"}),
    "crash": Check(
        title="crash",
        options=3,
        judge=lambda f, o: [ok("x", f["y"][o])],
        codes={},
        probe="fact y x",
    ),
}


class HereOrDead(Here):
    """This machine under many names, but for one."""

    def connect(self, node: Node, deadline: float) -> Connection:
        if node.name == "dead":
            raise Unreachable("refused", "nothing listens on port 22")
        return super().connect(node, deadline)


def options_of(check: str, node: str) -> Any:
    return CHECKS[check].options


def recorded(directory: Path) -> Report:
    """A live run, kept in the folder."""
    nodes = [Node(name, local=name == "gpu01") for name in NODES]
    plan = Plan(nodes, CHECKS, options_of, lambda node: HereOrDead(), Bounds(4, 100))
    recorder = record.Recorder(directory, list(CHECKS), NODES)
    watch = Watch(ended=lambda answer, result: recorder.keep(answer), followed=recorder.keep)
    report = run(plan, watch)
    assert recorder.trouble == ""
    return report


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("recorded") / "run"
    return folder, recorded(folder)


def findings(report: Report) -> dict[str, Any]:
    return {
        name: {check: list(found) for check, found in result.findings.items()}
        for name, result in report.nodes.items()
    }


def test_the_same_findings_without_any_node(live: tuple[Path, Report]) -> None:
    folder, report = live
    again = record.rejudge(folder, CHECKS, options_of)
    assert findings(again) == findings(report)
    assert list(again.nodes) == NODES == list(report.nodes)
    assert again.checks == report.checks and again.exit_code == report.exit_code == 2
    assert abs((again.started - report.started).total_seconds()) < 60
    codes = {f.code for found in report.nodes["gpu02"].findings.values() for f in found}
    assert codes == {"size", "alike", "blocked", "here", "limit", "missing_tool", "crashed"}
    followed = [again.nodes[name].findings["followed"][0].message for name in ("gpu01", "gpu02")]
    assert followed == ["[('a', 'b')]", "[('a', 'b'), ('again', 'yes')]"]
    assert report.nodes["gpu01"].findings["silent"][0].message == "[('a', 'b')]"
    assert [f.code for f in again.nodes["dead"].findings[reach.NAME]] == ["refused"]


def test_other_thresholds(live: tuple[Path, Report]) -> None:
    again = record.rejudge(
        live[0], CHECKS, lambda check, node: Options(10 if node == "gpu01" else 5)
    )
    assert again.nodes["gpu01"].findings["size"][0].message == "size is 9 s, of gpu01, 0"
    assert again.nodes["gpu02"].findings["size"][0].message == "size is 9 s, should be 5 s"


def test_a_choice_of_checks(live: tuple[Path, Report]) -> None:
    only = {"text": CHECKS["text"], "new": CHECKS["text"]}
    again = record.rejudge(live[0], only, options_of, {**CHECKS, "new": CHECKS["text"]})
    assert again.checks == ["text"] and list(again.nodes["gpu01"].findings) == ["text"]
    assert again.exit_code == 3, "the dead node"
    assert again.notes[1:] == ["not recorded, so not judged: new"]
    with pytest.raises(UsageError, match="has nothing of new; it has size, followed, after_size"):
        record.rejudge(live[0], {"new": CHECKS["text"]}, options_of, {**CHECKS, **only})


def test_a_check_that_is_not_here_any_more(live: tuple[Path, Report]) -> None:
    fewer = {name: check for name, check in CHECKS.items() if name != "text"}
    again = record.rejudge(live[0], fewer, options_of)
    (finding,) = again.nodes["gpu01"].findings["text"]
    assert finding.status.value == "unknown"
    assert "no check is called 'text' here, and it was recorded" in finding.message


def test_a_run_that_was_killed(tmp_path: Path) -> None:
    recorder = record.Recorder(tmp_path / "run", ["text"], ["n1", "n2"])
    whole = Told(Facts({"a": "b"}), whole=True, status="0")
    recorder.keep(Answer("n2", ["text"], told={"text": whole}))
    (tmp_path / "run" / "nodes" / "n1.json.new").write_text("{")
    report = record.rejudge(tmp_path / "run", CHECKS, options_of)
    assert list(report.nodes) == ["n1", "n2"]
    (finding,) = report.nodes["n1"].findings[reach.NAME]
    assert (finding.code, finding.message) == (
        "not_reached",
        "no answer was recorded: the run had ended before",
    )
    assert report.nodes["n2"].findings["text"][0].message == "[('a', 'b')]"


def test_the_folder_is_for_the_user_only_and_names_are_safe(live: tuple[Path, Report]) -> None:
    folder = live[0]
    assert (folder.stat().st_mode & 0o777, folder.joinpath("nodes").stat().st_mode & 0o777) == (
        0o700,
        0o700,
    )
    assert sorted(os.listdir(folder)) == ["nodes", "run.json"]
    assert sorted(os.listdir(folder / "nodes")) == [
        "..%2Fodd%20name%25.json",
        "dead.json",
        "fe80%3A%3A1%25eth0.json",
        "gpu01.json",
        "gpu02.json",
    ]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    record.Recorder(tmp_path / "a/b", [], [])
    with pytest.raises(UsageError, match="a/b holds a recorded run already; name a new folder"):
        record.Recorder(tmp_path / "a/b", [], [])
    with pytest.raises(UsageError, match="is not empty; name a new folder"):
        record.Recorder(tmp_path, [], [])
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file: nothing can be recorded there: File exists"):
        record.Recorder(tmp_path / "file", [], [])


def test_a_disk_that_fills_up_does_not_end_the_run(tmp_path: Path) -> None:
    recorder = record.Recorder(tmp_path / "run", ["text"], ["n1", "n2"])
    (tmp_path / "run" / "nodes").rmdir()  # as good as a full disk, also for root
    recorder.keep(Answer("n1", ["text"]))
    recorder.keep(Answer("n2", ["text"]))
    assert recorder.trouble.startswith(
        "the answers of n1 and of all after it were not recorded: No such file"
    )


def test_half_an_answer_is_not_kept(tmp_path: Path) -> None:
    recorder = record.Recorder(tmp_path / "run", ["text"], ["n1"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        recorder.keep(Answer("n1", ["text"], message="x" * 100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert recorder.trouble.startswith(
        "the answers of n1 and of all after it were not recorded: File too large"
    )
    assert list((tmp_path / "run" / "nodes").iterdir()) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    facts=st.dictionaries(st.text(min_size=1), st.text()),
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300),
    words=st.text(),
    clock=st.none() | st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e9)),
    seconds=st.none() | st.floats(0, 1e6),
)
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    facts: dict[str, str],
    name: str,
    words: str,
    clock: tuple[float, float] | None,
    seconds: float | None,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    told = Told(Facts(facts), whole=True, status="0", error=words, hung=words)
    answer = Answer(
        name, ["text"], {"text": told}, [words], "cut", words, host_name=words, clock=clock
    )
    answer.seconds = seconds
    recorder = record.Recorder(folder / "run", ["text"], [name, name + "x"])
    recorder.keep(answer)
    recorder.keep(dataclasses.replace(answer, node=name + "x"))
    assert recorder.trouble == ""
    _, answers = record.read(folder / "run")
    assert answers == [answer, dataclasses.replace(answer, node=name + "x")]


def damaged(folder: Path, path: str, change: str) -> str:
    """The one line that is said of a run where a file's text has become another."""
    recorder = record.Recorder(folder / "run", ["text"], ["n1"])
    recorder.keep(Answer("n1", ["text"], {"text": Told(Facts({"a": "b"}))}, clock=(1.0, 2.0)))
    old, _, new = change.partition(" -> ")
    file = folder / "run" / path
    text = " ".join(file.read_text().split())
    assert old in text
    file.write_text(text.replace(old, new) if old else new)
    with pytest.raises(ConfigError) as raised:
        record.rejudge(folder / "run", CHECKS, options_of)
    (problem,) = raised.value.problems
    assert problem.startswith(f"{file}: ") and "\n" not in problem
    return problem.removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        ("run.json", " -> {", "is damaged (Expecting property name"),
        ("run.json", " -> []", "is damaged ("),
        ("run.json", ' -> {"schema": "clustercheck.record/1"}', "'checks' is missing"),
        ("run.json", "record/1 -> record/2", "recorded in the form 'clustercheck.record/2', and"),
        ("run.json", '"started": "20 -> "started": "x', "is damaged (Invalid isoformat"),
        ("run.json", '+00:00" -> "', "is damaged (started has no time zone)"),
        ("run.json", '[ "n1" ] -> [ 1 ]', "is damaged (nodes is not a list of names)"),
        ("run.json", '[ "n1" ] -> [ "n1", "n1" ]', "is damaged (nodes has a name twice)"),
        ("run.json", '[ "n1" ] -> [ "n1", "" ]', "is damaged (nodes has an empty name)"),
        ("nodes/n1.json", " -> ", "not a recorded answer (Expecting value"),
        ("nodes/n1.json", f" -> {'[' * 100_000}", "not a recorded answer ("),
        ("nodes/n1.json", "facts/1 -> facts/2", "not of the form clustercheck.facts/1"),
        ("nodes/n1.json", '"a": "b" -> "a": 5', "not a recorded answer (a fact is not text)"),
        ("nodes/n1.json", '"uid": "" -> "uid": 5', "not a recorded answer (uid cannot be 5)"),
        ("nodes/n1.json", '[ "text" ] -> "text"', "not a recorded answer (asked cannot be 'text')"),
        ("nodes/n1.json", '"uid" -> "take"', "not a recorded answer (take cannot be ''"),
        ("nodes/n1.json", '"uid" -> "new"', "not a recorded answer ('Answer' object has no"),
        ("nodes/n1.json", "[ 1.0, 2.0 ] -> [ 1.0 ]", "not a recorded answer (list index out"),
        ("nodes/n1.json", "[ 1.0, 2.0 ] -> [ NaN, 1 ]", "not a recorded answer (nan is not a"),
        ("nodes/n1.json", '"clock" -> "clack"', "not a recorded answer ('clock' is missing)"),
        ("nodes/n1.json", '"code": "" -> "code": "new"', "the code 'new' is not known; record"),
        ("nodes/n1.json", '"node": "n1" -> "node": "n2"', "holds the answer of 'n2'; take it out"),
    ],
)
def test_damage_is_one_line_with_the_files_name(
    tmp_path: Path, path: str, change: str, expected: str
) -> None:
    assert damaged(tmp_path, path, change).startswith(expected)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    record.Recorder(tmp_path / "run", [], ["n1"])
    (tmp_path / "run/nodes/n1.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"n1.json: is not UTF-8; record it again"):
        record.read(tmp_path / "run")


def test_a_file_without_end(tmp_path: Path) -> None:
    record.Recorder(tmp_path / "run", [], ["n1"])
    (tmp_path / "run/nodes/n1.json").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"n1.json: larger than 64 MiB"):
        record.read(tmp_path / "run")


def test_an_answer_of_another_run(tmp_path: Path) -> None:
    recorder = record.Recorder(tmp_path / "run", ["text"], ["n1"])
    recorder.keep(Answer("n2", ["text"]))
    with pytest.raises(ConfigError, match=r"n2.json: holds the answer of 'n2'; take it out"):
        record.read(tmp_path / "run")


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no recorded run; make one with run --record DIR"):
        record.read(tmp_path / "none")


def test_what_is_kept_can_be_read_by_people(live: tuple[Path, Report]) -> None:
    told = json.loads((live[0] / "nodes/gpu02.json").read_text())["told"]
    assert told["text"]["facts"]["text"] == "two\nlines \x1b[31m\n\\xc3("
