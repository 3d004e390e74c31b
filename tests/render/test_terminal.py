"""How wide and how colourful, by the stream and the environment."""

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from clustercheck.render.terminal import Look, look

XTERM = {"TERM": "xterm-256color"}


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A real terminal of 72 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
    with open(slave, "w") as stream:
        yield stream
    os.close(master)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (XTERM, Look(72, True)),
        ({}, Look(72, False)),
        ({"TERM": "dumb"}, Look(72, False)),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, Look(72, True)),
        ({**XTERM, "NO_COLOR": "1"}, Look(72, False)),
        ({**XTERM, "NO_COLOR": ""}, Look(72, True)),
        ({**XTERM, "NO_COLOR": "1", "FORCE_COLOR": "1"}, Look(72, False)),
        ({**XTERM, "COLUMNS": "55"}, Look(55, True)),
        ({**XTERM, "COLUMNS": "wide"}, Look(72, True)),
    ],
)
def test_a_terminal(terminal: TextIO, environ: dict[str, str], expected: Look) -> None:
    assert look(terminal, environ) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (XTERM, Look(100, False)),
        ({**XTERM, "COLUMNS": "55"}, Look(100, False)),
        ({**XTERM, "FORCE_COLOR": "1"}, Look(100, True)),
        ({**XTERM, "FORCE_COLOR": "0"}, Look(100, False)),
    ],
)
def test_a_file(environ: dict[str, str], expected: Look) -> None:
    assert look(io.StringIO(), environ) == expected


def test_a_closed_stream() -> None:
    stream = io.StringIO()
    stream.close()
    assert look(stream, XTERM) == Look(100, False)
