"""Live progress on a real terminal, and silence elsewhere."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from clustercheck.check import Status
from clustercheck.render.progress import Progress

HEAD = """
import sys, threading, time
from clustercheck.check import Status
from clustercheck.render.progress import Progress
"""
RUN = """
with Progress(sys.stderr) as progress:
    progress.start(64)
    progress.began("gpu07\\x1b[2J")
    progress.began("gpu08")
    progress.ended("gpu01", Status.PASS)
    progress.ended("gpu02", Status.FAIL)
    progress.ended("gpu03", Status.UNKNOWN)
    time.sleep(WAIT)
print("the report", flush=True)
"""
SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"


class Terminal:
    """A program on a terminal of its own, Ctrl-C and all."""

    def __init__(self, program: str, **environ: str) -> None:
        self.seen = ""
        env = {"PATH": os.environ["PATH"], "TERM": "xterm", **environ}
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.execve(sys.executable, [sys.executable, "-c", HEAD + program], env)

    def until(self, found: Callable[[str], object], seconds: float = 60) -> str:
        """What was seen, as soon as `found` or at the program's end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not found(self.seen):
            if not select.select([self._master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            self.seen += data.decode()
        return self.seen

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._master)


@contextlib.contextmanager
def terminal(program: str, **environ: str) -> Iterator[Terminal]:
    started = Terminal(program, **environ)
    try:
        yield started
    finally:
        started.close()


def test_what_is_seen_on_a_terminal() -> None:
    began = time.monotonic()
    with terminal(RUN.replace("WAIT", "1.5"), NO_COLOR="1", COLUMNS="120") as screen:
        seen = screen.until(lambda seen: "the report" in seen)
    took = time.monotonic() - began
    line = r"3/64 nodes  2 running  1 fail  1 unknown  [0-9]+ s  slowest gpu07\\x1b\[2J [0-9]+ s"
    assert re.search(line, seen), seen
    assert "\x1b[2J" not in seen
    assert seen.count("nodes") <= took * 8 + 4  # redraws; some more for the start and the end
    assert seen.rindex(SHOW) > seen.rindex(HIDE)
    # The line is gone before the report comes.
    assert "\x1b[2K" in seen[seen.rindex("3/64") : seen.index("the report")]


def test_ctrl_c_gives_the_cursor_back() -> None:
    with terminal(RUN.replace("WAIT", "60")) as screen:
        screen.until(lambda seen: "3/64" in seen)
        screen.press(b"\x03")
        seen = screen.until(lambda seen: "KeyboardInterrupt" in seen)
    assert "KeyboardInterrupt" in seen
    assert seen.rindex(SHOW) > seen.rindex(HIDE)


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_cannot_move_its_cursor_sees_nothing(environ: dict[str, str]) -> None:
    with terminal(RUN.replace("WAIT", "0.3"), **environ) as screen:
        assert screen.until(lambda seen: False) == "the report\r\n"


def test_nothing_is_written_or_loaded_where_there_is_no_terminal() -> None:
    program = HEAD + RUN.replace("WAIT", "0.3") + "print('rich' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert (done.stdout, done.stderr) == ("the report\nFalse\n", "")


def test_ten_thousand_nodes_cost_next_to_nothing() -> None:
    master, slave = pty.openpty()
    with open(slave, "w") as stream, Progress(stream, {"TERM": "xterm"}) as progress:
        progress.start(10_000)
        began = time.process_time()
        for number in range(10_000):
            progress.began(f"gpu{number}")
        for number in range(10_000):
            progress.ended(f"gpu{number}", Status.PASS)
        assert time.process_time() - began < 1
    os.close(master)
