"""The gate's command line, its exit codes and what it writes where: real sshd, no Slurm."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from clustercheck import gate, gate_nodes, slurm_nodes
from clustercheck.cli import main, ways
from clustercheck.decision import Answer
from clustercheck.errors import UsageError
from tests.command import Done, ssh_words, write_inventory
from tests.host import Host


class Runner:
    """Runs the command line in this process."""

    def __init__(self, folder: Path, host: Host, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd
        self.inventory = write_inventory(folder / "inventory.ini", host, ["127.0.0.[1-4]"])
        self.way = ssh_words(host)
        self.words = [
            *("gate", "-i", str(self.inventory), "--cache", str(folder / "cache")),
            *(*self.way, "-c", "selinux,cpu", "-o", "cpu.busy_percent=1e6"),
        ]

    def __call__(self, *words: str) -> Done:
        return self.bare(*self.words, *words)

    def bare(self, *words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = self.capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    def json(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*words, "--format", "json").out)
        return found


@pytest.fixture
def run(
    tmp_path: Path, host: Host, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Runner:
    for name in ("SLURM_JOB_NODELIST", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    without = [
        folder
        for folder in os.environ["PATH"].split(":")
        if not any(shutil.which(name, path=folder) for name in ("sinfo", "scontrol"))
    ]
    monkeypatch.setenv("PATH", ":".join(without))
    # what a process of its own would take with it
    monkeypatch.setattr(ways, "stop_with_report", lambda: None)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    return Runner(tmp_path, host, capfd)


FAILING = ("-o", "selinux.allow=enforcing")  # which no host of the tests is in


def test_exit_codes(run: Runner, tmp_path: Path) -> None:
    done = run("--need", "4")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("go: 4 of 4 nodes are healthy; 4 are needed\n  use: 127.0.0.[1-4]\n")
    # all nodes fail alike: that is no node's fault
    done = run(*FAILING)
    assert done.status == 75
    assert "selinux.mode fails on 4 of 4" in done.out and "suspect" in done.out
    assert run(*FAILING, "--on-unknown", "no-go").status == 1
    assert run(*FAILING, "--on-unknown", "go").status == 0
    assert run(*FAILING, "--suspect", "100").status == 1
    assert run(*FAILING, "--suspect", "100", "--exit", "no-go=99").status == 99
    assert run(*FAILING, "--exit", "undecided=0", "--exit", "no-go=2").status == 0


def test_one_line_of_json_and_prose_beside_it(run: Runner, tmp_path: Path) -> None:
    done = run("--need", "3", "--spare", "1", "--format", "json")
    assert done.err == "go: 4 of 4 nodes are healthy; 3 are needed\n"
    assert done.out.count("\n") == 1
    found = json.loads(done.out)
    assert (found["chosen"]["nodes"], found["spare"]["nodes"]) == ("127.0.0.[1-3]", "127.0.0.4")
    assert found["slurm"] is None and found["degraded"] is False
    file = tmp_path / "verdict.json"
    done = run("--format", "json", "--output", str(file))
    assert done.out == "" and json.loads(file.read_text())["from_cache"] is True


def test_a_profile_is_named_and_numbered(run: Runner) -> None:
    with run.inventory.open("a") as file:
        file.write("[profile:night]\nchecks = selinux\nfail_on = selinux.*\n")
    run.words = [word for word in run.words if word not in ("-c", "selinux,cpu")]
    named = run.json("--profile", "night")
    assert named["profile"]["name"] == "night"
    without = run.json("-c", "selinux")
    assert without["profile"]["name"] == ""
    assert without["profile"]["digest"] != named["profile"]["digest"]


def test_a_warning_that_the_profile_counts_as_a_failure(run: Runner) -> None:
    with run.inventory.open("a") as file:
        file.write("[profile:night]\nchecks = fingerprint\nfail_on = fingerprint.expected\n")
    words = ("-w", "127.0.0.1", "-o", "fingerprint.expect=kernel 0.0")
    assert run("-c", "fingerprint", *words).status == 0
    run.words = [word for word in run.words if word not in ("-c", "selinux,cpu")]
    done = run("--profile", "night", *words)
    assert done.status == 1
    assert "fail fingerprint.expected: kernel is " in done.out
    # and so do run, and judge of what run kept
    of_run = ("run", "-i", str(run.inventory), *run.way, *words)
    assert run.bare(*of_run, "-c", "fingerprint").status == 1
    kept = run.inventory.with_name("kept")
    assert run.bare(*of_run, "--profile", "night", "--record", str(kept)).status == 2
    again = ("judge", str(kept), "-i", str(run.inventory), *words[2:])
    assert run.bare(*again).status == 1
    assert run.bare(*again, "--profile", "night").status == 2


def test_the_fingerprint_of_nodes_that_are_one_machine(run: Runner) -> None:
    words = ("-c", "fingerprint", "-w", "127.0.0.[1-2]")
    first, second = run.json(*words), run.json(*words)
    print_of = first["fingerprint"]
    assert [one["nodes"] for one in print_of["classes"]] == ["127.0.0.[1-2]"]
    assert print_of["digest"] == print_of["classes"][0]["digest"] != ""
    assert print_of["drift"] == []
    assert second["from_cache"] and second["fingerprint"] == print_of


def test_a_runner_of_github_gets_outputs_a_summary_and_errors(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(*FAILING, "--suspect", "100", "--format", "github")
    assert done.out.startswith("::error title=clustercheck::no-go: 0 of 4 nodes are healthy")
    assert "\nverdict=no-go\n" in done.out
    outputs, summary = tmp_path / "outputs", tmp_path / "summary"
    outputs.write_text("before=1\n")
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = run(*FAILING, "--suspect", "100", "--format", "github")
    assert all(line.startswith("::error ") for line in done.out.splitlines())
    assert outputs.read_text().startswith("before=1\nverdict=no-go\n")
    assert summary.read_text().startswith("**no-go**: 0 of 4 nodes")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--format", "jsn"), "--format: there is no form 'jsn'; did you mean 'json'?"),
        (("--on-unknown", "maybe"), "--on-unknown is go or no-go, not 'maybe'"),
        (("--max-age", "soon"), "--max-age: 'soon' is no time; write 90s, 15m or 2h, or 0"),
        (("--max-age", "-1"), "--max-age: '-1' is no time"),
        (("--exit", "never=1"), "--exit: 'never=1' is not one of go, no-go, undecided and =CODE"),
        (("--exit", "no-go=256"), "--exit: '256' is no exit code; write no-go=0 to 255"),
        (("--need", "0"), "Invalid value for '--need'"),
        (("--partition", "main"), "--partition 'main': there is no sinfo on this machine's PATH"),
        (("--profile", "bench"), "--profile: no profile is called 'bench'; did you mean"),
        (("-w", "127.0.0.1", "--need", "2"), "--need 2: the set has 1 node"),
    ],
)
def test_wrong_usage(run: Runner, words: tuple[str, ...], expected: str) -> None:
    done = run(*words)
    assert (done.status, done.out) == (64, "")
    assert done.err.startswith(f"clustercheck: {expected}"), done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [("--neeed", "4"), ("--need", "many"), ("--host-keys", "no"), ("--max-age", "x"), ("-w", "")],
)
def test_a_slip_is_a_word_that_sbatch_refuses(run: Runner, words: tuple[str, ...]) -> None:
    done = run(*words, "--format", "args")
    assert (done.status, done.out) == (64, "--clustercheck-says-no-go\n")
    assert run(*words, "--format=args").out == done.out
    assert run(*words).out == ""
    assert run.bare("run", *words, "--format", "args").out == ""


def test_nobody_says_which_nodes(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run.bare("gate", "--need", "1")
    assert done.status == 64
    assert done.err.startswith("clustercheck: which nodes? Name them with -w, as -w 'gpu[01-16]'")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-")
    done = run.bare("gate")
    assert done.status == 64
    assert done.err.startswith("clustercheck: $SLURM_JOB_NODELIST: a bracket")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "$(id)")
    done = run.bare("gate")
    assert done.status == 64
    assert done.err.startswith("clustercheck: $SLURM_JOB_NODELIST: '$(id)' is not a node's name")


def test_a_node_that_is_away_closes_the_gate_only_where_it_is_needed(run: Runner) -> None:
    words = ("-w", "127.0.0.1,ssh://127.0.0.9:1")
    done = run(*words)
    assert done.status == 75
    assert done.out.startswith("undecided: 1 of 2 nodes are healthy; too little is known of 1; 2")
    assert run(*words, "--need", "1").status == 0


def test_interrupted_it_is_undecided(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(slurm_nodes, "ask", interrupted)
    done = run("--need", "2", "--format", "json")
    assert (done.status, done.err) == (75, "undecided: interrupted\n")
    assert json.loads(done.out)["verdict"] == "undecided"
    assert run("--on-unknown", "go").status == 75
    assert run("--on-unknown", "no-go").status == 1


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200)]
)
def test_times(text: str, number: float) -> None:
    assert gate.seconds(text) == number


def test_the_codes_of_exit() -> None:
    found = gate.exit_code_of(["no-go=99", "undecided=0"])
    assert found == {Answer.NO_GO: 99, Answer.UNDECIDED: 0}
    with pytest.raises(UsageError):
        gate.exit_code_of(["no-go"])


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("n[1-2,10]", ["n1", "n2", "n10"]),
        ("gpu[01-02]-ib,login", ["gpu01-ib", "gpu02-ib", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_the_nodes_of_a_job_as_slurm_folds_them(folded: str, names: list[str]) -> None:
    assert gate_nodes.nodes_of_job(folded) == names
