"""What becomes of a run whose standard streams are closed, full, or read by nobody any more."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import clustercheck

COMMANDS = [
    "run -i {} -c fine",
    "run -i {} -c fine --format jsonl",
    "schema",
    "script",
    "--version",
]


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.ini"
    path.write_text("here ansible_connection=local\n[check:fine]\ncommand = echo fine\n")
    return path


def by_shell(words: str, streams: str) -> "subprocess.CompletedProcess[str]":
    """A command whose streams are as the shell is told, as with `>&-`."""
    line = f"exec {sys.executable} -m clustercheck {words} {streams}"
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("streams", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_cannot_be_written_is_one_line(
    inventory: Path, command: str, streams: str, why: str
) -> None:
    done = by_shell(command.format(inventory), streams)
    assert done.returncode == 64
    assert done.stderr == f"clustercheck: cannot write standard output: {why}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_gone_is_no_warning(inventory: Path, command: str) -> None:
    """Exit code 1 would say that a node is to be warned of."""
    words = [sys.executable, "-m", "clustercheck", *command.format(inventory).split()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_words_for_people_may_have_nowhere_to_go(inventory: Path) -> None:
    fine = f"run -i {inventory} -c fine"
    assert by_shell(fine, "<&- 2>&-").returncode == 0
    assert "here: pass; 1 check; " in by_shell(fine, "<&- 2>&-").stdout
    for streams in ("2>&-", "2>/dev/full"):
        assert by_shell("run -i nonexistent.ini", streams).returncode == 78


def test_no_standard_input_names_no_nodes(inventory: Path) -> None:
    done = by_shell(f"run -i {inventory} -w -", "<&-")
    assert done.returncode == 64
    assert done.stderr.startswith("clustercheck: -w '-' selects no node")
    done = by_shell(f"run -i {inventory} -k", "<&-")
    assert done.returncode == 64 and "no terminal to ask on" in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--max-time", "inf"], "less than or equal to 1000000"),
        (["--timeout", "1e300"], "less than or equal to 1000000"),
        (["--connect-timeout", "1e10"], "less than or equal to 1000000"),
        (["--max-time", "nan"], "'--max-time'"),
        (["--port", "65536"], "less than or equal to 65535"),
        (["--port", "-1"], "greater than or equal to 0"),
        (["--output", "x" * 300], "File name too long"),
    ],
)
def test_numbers_that_no_system_takes_are_refused(
    inventory: Path, words: list[str], line: str
) -> None:
    done = clustercheck("run", "-i", inventory, "-c", "fine", *words)
    assert done.status == 64 and done.out == ""
    assert line in done.err and len(done.err.splitlines()) == 1, done.err


def test_the_longest_limits_there_are(inventory: Path) -> None:
    limits = ["--max-time", "1000000", "--timeout", "1000000", "--connect-timeout", "1000000"]
    done = clustercheck("run", "-i", inventory, "-c", "fine", *limits)
    assert (done.status, done.err) == (0, "")
