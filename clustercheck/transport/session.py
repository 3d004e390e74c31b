"""A script running over an open SSH connection."""

import contextlib
import math
import threading
import time
from collections.abc import Callable

import paramiko

from clustercheck.transport import Exit, Unreachable, check_flood
from clustercheck.transport.wire import Wire, listener

COMMAND = "exec sh -s"  # understood by csh, fish and every POSIX login shell alike
PIECE = 1 << 20  # bytes taken at once
STDERR_KEPT = 4096  # bytes
STATUS_WAIT = 2.0  # seconds between the end of output and the exit status


class SshConnection:
    """A connection that is logged in. Closing it closes its channels.

    transport: for channels of other kinds.
    """

    def __init__(self, transport: paramiko.Transport, wire: Wire, keep: object = None) -> None:
        """keep: what must live as long as the connection."""
        self.transport = transport
        self._wire = wire
        self._keep = keep

    def hold(self) -> None:
        """Let it stand until it is closed: the deadline was for connecting only."""
        self._wire.deadline = math.inf
        self._wire.step_bytes = None  # all that the nodes behind it say

    def start(self, script: bytes, deadline: float) -> "SshChannel":
        """Run `sh -s`. Raises Unreachable: channel_refused, cut or limit."""
        self._wire.begin_step(deadline)
        try:
            left = max(deadline - time.monotonic(), 0.001)
            channel = self.transport.open_session(timeout=left)
            channel.exec_command(COMMAND)
        except paramiko.ChannelException as error:
            text = f"the server opens no session ({error.text or 'it gave no reason'})"
            raise Unreachable("channel_refused", text) from error
        except Exception as error:
            # Whatever ended paramiko's thread comes out here, also what garbage from the peer did.
            if not self.transport.is_active() or time.monotonic() >= deadline:
                raise broken(self.transport, self._wire) from error
            if not isinstance(error, paramiko.SSHException):
                raise
            text = f"the server does not run {COMMAND!r}"
            raise Unreachable("channel_refused", text) from error
        running = SshChannel(channel, self.transport, self._wire)
        running.send(script)
        return running

    def close(self) -> None:
        """Let go at once."""
        self._wire.abort()


class SshChannel:
    """A running `sh -s`."""

    def __init__(
        self, channel: paramiko.Channel, transport: paramiko.Transport, wire: Wire
    ) -> None:
        self._channel = channel
        self._transport = transport
        self._wire = wire
        self._stderr = b""
        # Set when either stream has something, so that one wait serves both. Cleared by reading
        # one of them empty; `receive` therefore looks at both after each read and before it waits.
        self._ready = threading.Event()
        channel.in_buffer.set_event(self._ready)
        channel.in_stderr_buffer.set_event(self._ready)

    def send(self, data: bytes) -> None:
        """Write to the script's standard input; nowhere, if the script has ended."""
        while data:
            self._channel.settimeout(0.2)
            try:
                data = data[self._channel.send(data) :]
            except TimeoutError:
                # The script may be waiting for room on standard error before it reads on.
                self._drain_stderr()
                self._check()
            except (paramiko.SSHException, EOFError, OSError) as error:
                if self._channel.closed and self._transport.is_active():
                    return  # what it said and how it ended is still to be read
                raise broken(self._transport, self._wire) from error

    def receive(self, timeout: float) -> bytes | None:
        """The next piece of standard output; b"" at its end; None after `timeout` seconds."""
        end = time.monotonic() + timeout
        self._channel.settimeout(0.0)
        while True:
            self._drain_stderr()
            try:
                data = self._channel.recv(PIECE)
            except TimeoutError:
                pass
            else:
                if not data and not self._channel.eof_received:
                    self._check()
                return data
            # The wire's end may come late where the peer does not read: it is looked at here too.
            now = time.monotonic()
            if now >= self._wire.deadline:
                self._wire.abort()
                raise broken(self._transport, self._wire)
            if not self._ready.wait(max(min(end, self._wire.deadline) - now, 0)) and (
                time.monotonic() >= end
            ):
                return None

    def _drain_stderr(self) -> None:
        while self._channel.recv_stderr_ready():
            self._stderr = (self._stderr + self._channel.recv_stderr(PIECE))[-STDERR_KEPT:]

    def _check(self) -> None:
        if not self._transport.is_active() or time.monotonic() >= self._wire.deadline:
            raise broken(self._transport, self._wire)

    def finish(self) -> Exit:
        """How it ended. Waits two seconds at most."""
        self._channel.status_event.wait(STATUS_WAIT)
        self._drain_stderr()
        status = self._channel.exit_status
        signal = listener(self._transport).signals.get(self._channel.get_id(), "")
        stderr = self._stderr.decode(errors="backslashreplace")
        return Exit(None if signal or status < 0 else status, signal, stderr)

    def close(self) -> None:
        """Let go at once."""
        if not self._channel.closed and self._transport.is_active():
            # Closing sends a message, which has to wait where the peer does not read.
            threading.Thread(
                target=_ignoring_ends, args=(self._channel.close,), daemon=True
            ).start()


def _ignoring_ends(action: Callable[[], None]) -> None:
    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        action()


def broken(transport: paramiko.Transport, wire: Wire) -> Unreachable:
    """Why a connection that was logged in is of no use any more."""
    try:
        check_flood(wire.step_bytes or 0)  # said in paramiko's thread, where nobody hears it
    except Unreachable as flood:
        return flood
    if wire.expired or time.monotonic() >= wire.deadline:
        return Unreachable("limit", "the script did not come to an end within the node's time")
    farewell = listener(transport).farewell
    return Unreachable("cut", f"the connection broke: {farewell or 'the other end closed it'}")
