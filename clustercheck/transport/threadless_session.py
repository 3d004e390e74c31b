"""A script running over a connection that has no thread."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator

import paramiko
from paramiko.common import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_OPEN_SUCCESS,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_WINDOW_ADJUST,
)

from clustercheck.transport import Exit, Unreachable
from clustercheck.transport.session import COMMAND, STATUS_WAIT, STDERR_KEPT, broken
from clustercheck.transport.threadless import Threadless
from clustercheck.transport.wire import Wire

log = logging.getLogger(__name__)

WINDOW = 1 << 21  # bytes that the server may send before any of them is taken
PACKET = 1 << 15  # bytes in one message at most, which every server must take


class ThreadlessConnection:
    """A connection that is logged in. To be used by one thread at a time."""

    def __init__(self, transport: Threadless, wire: Wire) -> None:
        self._transport = transport
        self._wire = wire
        self._channels: list[ThreadlessChannel] = []

    def start(self, script: bytes, deadline: float) -> "ThreadlessChannel":
        """Run `sh -s`. Raises Unreachable: channel_refused, cut or limit."""
        self._wire.begin_step(deadline)
        channel = ThreadlessChannel(self._transport, self._wire, len(self._channels))
        with _naming_the_cause(self._transport, self._wire):
            for before in self._channels:
                before.say_closed()
            channel.open()
        self._channels.append(channel)
        channel.send(script)
        return channel

    def close(self) -> None:
        """Let go at once."""
        self._transport.let_go()
        self._wire.close()


class ThreadlessChannel:
    """A running `sh -s`. What the server says is taken in while a method waits for it."""

    def __init__(self, transport: Threadless, wire: Wire, number: int) -> None:
        self._transport = transport
        self._wire = wire
        self._number = number
        self._theirs: int | None = None
        self._refused = ""
        self._room = 0  # bytes that the server still takes
        self._largest = 0  # bytes that it takes in one message
        self._allowed = WINDOW  # bytes that it may still send
        self._taken = 0  # bytes that it has not been allowed anew yet
        self._output: deque[bytes] = deque()
        self._stderr = b""
        self._ended = False
        self._closed = False
        self._said_closed = False
        self._status: int | None = None
        self._signal = ""
        transport.ears[number] = self

    def open(self) -> None:
        """Open it and ask for `sh -s`. Raises Unreachable, or what reading raises."""
        opening = paramiko.Message()
        opening.add_byte(bytes([MSG_CHANNEL_OPEN]))
        opening.add_string("session")
        for number in (self._number, WINDOW, PACKET):
            opening.add_int(number)
        self._transport.tell(opening)
        self._transport.read_until(lambda: self._theirs is not None or self._refused != "")
        self._check()
        request = self._message(MSG_CHANNEL_REQUEST)
        request.add_string("exec")
        request.add_boolean(True)
        request.add_string(COMMAND)
        self._transport.tell(request)

    def send(self, data: bytes) -> None:
        """Write to the script's standard input; nowhere, if the script has ended."""
        with _naming_the_cause(self._transport, self._wire):
            while data and not self._closed:
                self._transport.read_until(lambda: self._room > 0 or self._is_over())
                self._check()
                piece = data[: min(self._room, self._largest)]
                data = data[len(piece) :]
                self._room -= len(piece)
                if not self._closed:
                    self._transport.tell(self._message(MSG_CHANNEL_DATA, piece))

    def receive(self, timeout: float) -> bytes | None:
        """The next piece of standard output; b"" at its end; None after `timeout` seconds.

        A message that has begun to come is waited for as long as the deadline allows.
        """
        end = time.monotonic() + timeout
        with _naming_the_cause(self._transport, self._wire):
            while not self._output:
                self._check()
                if self._ended or self._closed:
                    return b""
                if not self._wire.wait(end):
                    return None
                self._transport.read_one()
            self._make_room()
        data = b"".join(self._output)
        self._output.clear()
        self._taken += len(data)
        return data

    def finish(self) -> Exit:
        """How it ended. Waits two seconds at most."""
        end = time.monotonic() + STATUS_WAIT
        # The connection may break now: what has been said so far is all there is.
        with contextlib.suppress(Unreachable), _naming_the_cause(self._transport, self._wire):
            while not self._closed and self._wire.wait(end):
                self._transport.read_one()
        stderr = self._stderr.decode(errors="backslashreplace")
        return Exit(None if self._signal else self._status, self._signal, stderr)

    def close(self) -> None:
        """Let go at once: the server is told when the connection is used again, or by its end."""
        self._ended = True
        self._output.clear()

    def say_closed(self) -> None:
        """Tell the server, if it does not know. Raises what sending raises."""
        if not self._said_closed:
            self._said_closed = True
            self._transport.tell(self._message(MSG_CHANNEL_CLOSE))

    def hear(self, kind: int, message: paramiko.Message) -> None:
        """Take in what the server says of this channel."""
        if kind == MSG_CHANNEL_DATA:
            data = self._allow(message.get_binary())
            if not self._ended:
                self._output.append(data)
        elif kind == MSG_CHANNEL_EXTENDED_DATA:
            message.get_int()  # standard error; there is no other kind
            data = self._allow(message.get_binary())
            self._stderr = (self._stderr + data)[-STDERR_KEPT:]
            self._taken += len(data)
            self._make_room()
        elif kind == MSG_CHANNEL_WINDOW_ADJUST:
            self._room += message.get_int()
        elif kind == MSG_CHANNEL_OPEN_SUCCESS:
            self._theirs, self._room = message.get_int(), message.get_int()
            self._largest = max(1, min(message.get_int(), PACKET))
        elif kind == MSG_CHANNEL_OPEN_FAILURE:
            message.get_int()
            reason = message.get_binary().decode(errors="backslashreplace")
            self._refused = f"the server opens no session ({reason or 'it gave no reason'})"
        elif kind == MSG_CHANNEL_FAILURE:
            self._refused = f"the server does not run {COMMAND!r}"
        elif kind == MSG_CHANNEL_EOF:
            self._ended = True
        elif kind == MSG_CHANNEL_CLOSE:
            self._closed = True
            self.say_closed()
        elif kind == MSG_CHANNEL_REQUEST:
            self._hear_request(message)

    def _hear_request(self, message: paramiko.Message) -> None:
        name, wants_answer = message.get_binary(), message.get_boolean()
        if name == b"exit-status":
            self._status = message.get_int()
        elif name == b"exit-signal":
            self._signal = message.get_binary().decode(errors="backslashreplace")
        if wants_answer:  # as OpenSSH does to see whether somebody is there
            self._transport.tell(self._message(MSG_CHANNEL_FAILURE))

    def _allow(self, data: bytes) -> bytes:
        """The data, if the server was allowed to send it: else it would fill our memory."""
        self._allowed -= len(data)
        if self._allowed < 0:
            raise paramiko.SSHException("the server sent more than it was allowed to")
        return data

    def _make_room(self) -> None:
        if self._taken > WINDOW // 2 and not self._ended and not self._closed:
            room, self._taken = self._taken, 0
            self._allowed += room
            adjust = self._message(MSG_CHANNEL_WINDOW_ADJUST)
            adjust.add_int(room)
            self._transport.tell(adjust)

    def _message(self, kind: int, data: bytes | None = None) -> paramiko.Message:
        if self._theirs is None:
            raise paramiko.SSHException("the server speaks of a channel that is not open")
        message = paramiko.Message()
        message.add_byte(bytes([kind]))
        message.add_int(self._theirs)
        if data is not None:
            message.add_string(data)
        return message

    def _is_over(self) -> bool:
        return self._closed or self._refused != ""

    def _check(self) -> None:
        if self._refused:
            raise Unreachable("channel_refused", self._refused)


@contextlib.contextmanager
def _naming_the_cause(transport: Threadless, wire: Wire) -> Iterator[None]:
    """Unreachable in place of whatever a peer that breaks off, hangs or makes no sense gives rise
    to."""
    try:
        yield
    except Unreachable:
        raise
    except Exception as error:
        if transport.is_active() and time.monotonic() < wire.deadline:
            raise
        log.debug("a connection ended", exc_info=error)
        raise broken(transport, wire) from error
