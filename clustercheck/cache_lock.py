"""One refresher at a time: a lock that also works on a shared file system.

A lock is only there to save work. Where two hold it, by a file system that tells an old story, the
same nodes are asked twice and nothing is wrong.
"""

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from clustercheck.freshness import host_and_boot

# The owner touches the lock as answers come, at most this often. From elsewhere, one that was not
# touched for so long has no owner any more: a node may be silent for a minute or two.
TOUCH_SECONDS = 5.0
DEAD_SECONDS = 300.0

SHORTEST_WAIT, LONGEST_WAIT = 0.02, 0.5


class Lock:
    """A lock in a file. Not for several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mine = ""
        self._touched = 0.0
        self._seen: tuple[str, int, float] | None = None  # text, touched, since when by our clock

    def try_to_get(self) -> bool:
        """Get the lock if nobody has it, or its owner is dead. Raises OSError."""
        text = _owner()
        for _ in range(2):
            if self.path.exists() and not self._remove_dead():
                return False
            if _create(self.path, text):
                self._mine = text
                self._touched = time.monotonic()
                return True
        return False

    def wait(self, seconds: float) -> Iterator[None]:
        """Yields now and then, until it is got or so many seconds have passed."""
        until, pause = time.monotonic() + seconds, SHORTEST_WAIT
        while not self.try_to_get():
            if time.monotonic() >= until:
                return
            yield
            time.sleep(pause)
            pause = min(LONGEST_WAIT, pause * 1.5)

    @property
    def held(self) -> bool:
        """Is it ours?"""
        return bool(self._mine)

    def release(self) -> None:
        """Let go of it, if it is ours."""
        if not self._mine:
            return
        if _read(self.path) == self._mine:  # else somebody took us for dead
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._mine = ""

    def touch(self) -> None:
        """Show that its owner lives; to be called often. No thread does it, for a run may fork."""
        now = time.monotonic()
        if self._mine and now - self._touched >= TOUCH_SECONDS:
            self._touched = now
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def owner(self) -> str:
        """Who has it, in words."""
        try:
            content = json.loads(_read(self.path))
            return f"process {content['pid']} on {content['host']}"
        except (ValueError, KeyError, TypeError):
            return "another process"

    def _remove_dead(self) -> bool:
        """Remove the lock if its owner is dead; True where it may be tried again."""
        text = _read(self.path)
        if not text and not self.path.exists():
            return True
        if not self._is_dead(text):
            return False
        with _alone(self.path.with_suffix(".guard")):
            if _read(self.path) != text:  # somebody else was quicker
                return True
            grave = self.path.with_name(f".{secrets.token_hex(8)}")
            with contextlib.suppress(OSError):
                os.rename(self.path, grave)
                grave.unlink()
        return True

    def _is_dead(self, text: str) -> bool:
        try:
            content = json.loads(text)
            there = (content["host"], content["boot_id"], content["pids"])
            pid, started = int(content["pid"]), str(content["started"])
        except (ValueError, KeyError, TypeError):
            there, pid, started = None, 0, ""
        host, boot_id = host_and_boot()
        if there == (host, boot_id, _pids()):
            return _started(pid) != started
        if there and there[0] == host and boot_id and there[1] and there[1] != boot_id:
            return True  # this machine has booted since
        return self._is_silent(text)

    def _is_silent(self, text: str) -> bool:
        """Was it not touched for long, by our own clock?"""
        try:
            touched = self.path.stat().st_mtime_ns
        except OSError:
            return False
        now = time.monotonic()
        if self._seen is None or self._seen[:2] != (text, touched):
            self._seen = (text, touched, now)
        return now - self._seen[2] > DEAD_SECONDS


def _owner() -> str:
    host, boot_id = host_and_boot()
    pid = os.getpid()
    owner = {
        "host": host,
        "boot_id": boot_id,
        "pids": _pids(),
        "pid": pid,
        "started": _started(pid),
        "time": time.time(),
    }
    return json.dumps(owner)


def _pids() -> str:
    """The name space of our process numbers: in a container, those of others mean nothing."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When the process started, as the kernel counts; "" where there is none, or it is dead."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[:1] in (["Z"], ["X"]) else fields[19]


def _create(path: Path, text: str) -> bool:
    """Make the file with its text at once, if it is not there."""
    whole = path.with_name(f".{secrets.token_hex(8)}")
    descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            os.link(whole, path)
        except FileExistsError:
            return False
        except OSError:  # no hard links there: without its text for a moment
            return _create_bare(path, text)
        return True
    finally:
        with contextlib.suppress(OSError):
            whole.unlink()


def _create_bare(path: Path, text: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(10_000)
    except OSError:
        return ""


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Alone on this machine, where the file system can do it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
