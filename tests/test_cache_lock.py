"""The lock of who refreshes: whose it is, when its owner is dead, and who gets it then."""

import errno
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustercheck.cache_lock import DEAD_SECONDS, TOUCH_SECONDS, Lock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "q.lock"


def test_one_at_a_time(path: Path) -> None:
    first, second = Lock(path), Lock(path)
    assert first.try_to_get() and not second.try_to_get()
    assert first.held and not second.held
    assert second.owner() == f"process {os.getpid()} on {os.uname().nodename}"
    first.release()
    assert second.try_to_get()
    second.release()
    assert list(path.parent.iterdir()) == []


def owned(path: Path, **others: Any) -> None:
    """A lock as another process would have it."""
    lock = Lock(path)
    assert lock.try_to_get()
    content = json.loads(path.read_text()) | others
    lock.release()
    path.write_text(json.dumps(content))


def ended_process() -> int:
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


@pytest.mark.parametrize(
    "about",
    [
        lambda: {"pid": ended_process()},
        lambda: {"started": "1"},  # the number is another process's now
        lambda: {"boot_id": "an earlier boot"},
    ],
)
def test_a_dead_owners_lock_is_taken_over(path: Path, about: Callable[[], dict[str, Any]]) -> None:
    owned(path, **about())
    assert Lock(path).try_to_get()


@pytest.mark.parametrize(
    "about", [{"host": "elsewhere", "pid": 1}, {"pids": "pid:[7]", "pid": 4_000_000}, {"pid": "x"}]
)
def test_of_an_owner_elsewhere_silence_tells(
    path: Path, about: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owned(path, **about)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lock = Lock(path)
    assert not lock.try_to_get()
    now += DEAD_SECONDS - 1
    assert not lock.try_to_get()
    os.utime(path)  # it is alive
    assert not lock.try_to_get()
    now += DEAD_SECONDS - 1
    assert not lock.try_to_get()
    now += 2
    assert lock.try_to_get()
    lock.release()


def test_the_owner_shows_that_it_lives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lock = Lock(path)
    lock.touch()
    assert not path.exists(), "what is not ours is let be"
    assert lock.try_to_get()
    os.utime(path, (1, 1))
    lock.touch()
    assert path.stat().st_mtime == 1, "not at each answer"
    now += TOUCH_SECONDS
    lock.touch()
    assert path.stat().st_mtime > 1
    lock.release()


def test_who_was_taken_for_dead_lets_the_next_ones_lock_be(path: Path) -> None:
    first = Lock(path)
    assert first.try_to_get()
    owned_by_next = '{"host": "elsewhere"}'
    path.write_text(owned_by_next)
    first.release()
    assert path.read_text() == owned_by_next


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0" * 5000])
def test_a_lock_that_cannot_be_read_is_somebodys(path: Path, text: str) -> None:
    path.write_text(text)
    lock = Lock(path)
    assert not lock.try_to_get()
    assert lock.owner() == "another process"


def test_it_needs_no_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    test_one_at_a_time(path)


def test_a_folder_that_cannot_be_written_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lock(path / "x" / "y").try_to_get()


def test_waiting_has_an_end(path: Path) -> None:
    first, second = Lock(path), Lock(path)
    assert first.try_to_get()
    assert len(list(second.wait(0.1))) >= 1 and not second.held
    waiting = second.wait(30)
    next(waiting)
    first.release()
    assert list(waiting) == [] or second.held
    assert second.held
    second.release()
