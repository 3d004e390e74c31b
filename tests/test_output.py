"""A file that a report is written to is whole or as it was."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from clustercheck.errors import UsageError
from clustercheck.output import check_writable, write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o644)])
def test_a_new_file_obeys_the_umask(tmp_path: Path, umask: int, expected: int) -> None:
    old = os.umask(umask)
    try:
        write_atomically(tmp_path / "report", "§ new\n")
    finally:
        os.umask(old)
    assert (tmp_path / "report").read_text("utf-8") == "§ new\n"
    assert mode(tmp_path / "report") == expected
    assert os.listdir(tmp_path) == ["report"]


def test_an_existing_file_keeps_its_mode_and_its_readers_their_copy(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old")
    path.chmod(0o640)
    with open(path) as reader:
        write_atomically(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert mode(path) == 0o640


def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "today"
    link = tmp_path / "latest"
    link.symlink_to("data/today")
    write_atomically(link, "first")
    write_atomically(link, "second")
    assert link.is_symlink()
    assert target.read_text() == "second"
    assert os.listdir(tmp_path / "data") == ["today"]


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE, text=True) as cat:
        write_atomically(path, "x" * 20_000)
        assert cat.communicate(timeout=60)[0] == "x" * 20_000
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/report", "there is no folder"),
        ("folder", "is a folder; name a file in it"),
        ("file/report", "there is no folder"),
    ],
)
def test_where_nothing_can_be_written_it_is_said_before_the_run(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for act in (check_writable, lambda path: write_atomically(path, "x")):
        with pytest.raises(UsageError) as caught:
            act(tmp_path / name)
        message = str(caught.value)
        assert words in message and name in message and "\n" not in message
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_no_permission_is_one_line() -> None:
    with pytest.raises(UsageError, match="^cannot write '/proc/report': [^\n]+$"):
        write_atomically(Path("/proc/report"), "x")


def test_a_full_device_is_one_line() -> None:
    with pytest.raises(UsageError, match="No space left on device; make room or choose another"):
        write_atomically(Path("/dev/full"), "x")


FULL = """
import resource, signal, sys
from pathlib import Path
from clustercheck.errors import UsageError
from clustercheck.output import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), "x" * 5000)
except UsageError as error:
    print(error)
"""


def test_when_room_runs_out_half_way_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old")
    command = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == (
        f"cannot write {str(path)!r}: File too large; make room or choose another place\n"
    )
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_what_is_no_unicode_is_written_as_an_escape(tmp_path: Path) -> None:
    write_atomically(tmp_path / "report", "\udc80")
    assert (tmp_path / "report").read_text() == "\\udc80"
