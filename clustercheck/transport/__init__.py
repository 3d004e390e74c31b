"""How a script gets to a node and its answer back.

A transport opens a connection to a node; a connection runs a script in `sh -s` and gives a
channel: bytes both ways. What the bytes mean is not known here (see `facts.py`).
"""

import re
from dataclasses import dataclass
from typing import Protocol

from clustercheck.node import Node


class Unreachable(Exception):
    """No answer can be had from a node.

    code: the cause, a code of `clustercheck.reach` ("refused", "host_key_changed", …).
    message: what happened, with what should be ("nothing listens on port 22 of 10.0.0.7").
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Exit:
    """How `sh -s` ended, where it is known.

    status: exit status, or None when it was ended by a signal or the connection broke.
    signal: the signal's name without SIG, or "".
    stderr: the last 4 KiB of standard error.
    """

    status: int | None
    signal: str
    stderr: str


# What a node's PAM modules say where the user may not log in now, whatever his key.
ACCOUNT_CLOSED = re.compile("pam_[a-z_]+|not permitted to log in|[Aa]ccount .*expired")

SCRIPT_LIMIT = 4 << 20  # bytes that may come while a script runs, whatever becomes of them


def check_flood(count: int) -> None:
    """Raise Unreachable past SCRIPT_LIMIT.

    A node may keep us busy with what no reader of its answer ever sees, such as endless words on
    standard error.
    """
    if count > SCRIPT_LIMIT:
        text = f"more than {SCRIPT_LIMIT >> 20} MiB came, standard error included"
        raise Unreachable("flood", text)


class Channel(Protocol):
    """A running `sh -s`. Every method raises Unreachable("cut", …) when the connection breaks,
    and "flood" when more comes than any honest answer takes.
    """

    def send(self, data: bytes) -> None:
        """Write to the script's standard input."""

    def receive(self, timeout: float) -> bytes | None:
        """The next piece of standard output; b"" at its end; None after `timeout` seconds."""

    def finish(self) -> Exit:
        """How it ended; to be asked once after `receive` gave b"". Waits two seconds at most."""

    def close(self) -> None:
        """Let go of it at once, whatever state it is in. Never raises, never waits."""


class Connection(Protocol):
    """An open way to one node."""

    def start(self, script: bytes, deadline: float) -> Channel:
        """Run `sh -s` with `script` on its standard input, which stays open.

        deadline: of time.monotonic(); raises Unreachable after it.
        """

    def close(self) -> None:
        """Let go of it at once. Never raises, never waits."""


class Transport(Protocol):
    """A kind of way to nodes."""

    def connect(self, node: Node, deadline: float) -> Connection:
        """Open a way to the node; raises Unreachable, after `deadline` (time.monotonic()) too."""

    def close(self) -> None:
        """Let go of what is shared between connections (jump hosts)."""
