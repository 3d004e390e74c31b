"""Bytes to and from an SSH server, with an end in time, and a paramiko transport over them.

paramiko reads and writes without a limit and looks at its own state only between waits. The end
in time is therefore kept where all its bytes pass: in what it takes for a socket.
"""

import contextlib
import errno
import math
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol, cast

import paramiko
from paramiko.common import (
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_DISCONNECT,
    MSG_USERAUTH_BANNER,
    MSG_USERAUTH_FAILURE,
)
from paramiko.packet import Packetizer

from clustercheck.transport import check_flood

POLL = 1.0  # seconds after which paramiko's thread looks at its own state
BUFFER = 65536
LARGEST_PACKET = 1 << 18  # bytes, as OpenSSH's; paramiko would wait for 4 GiB
MUCH = 1 << 19  # bytes; whoever sends more is read at leisure, for it takes others' time
PAUSE = 0.01
GREETING_LIMIT = 262144  # bytes that a peer may send before it has shown a host key

# Authenticated ciphers first: with the others paramiko compares each packet's MAC byte by byte.
FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
RSA = ("rsa-sha2-512", "rsa-sha2-256")


class Stream(Protocol):
    """What a socket and a paramiko channel have in common."""

    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def settimeout(self, timeout: float, /) -> None: ...
    def close(self) -> None: ...


class Wire:
    """A byte stream that ends at its deadline. paramiko takes it for a socket.

    deadline: of time.monotonic(); may be moved while the wire is in use.
    head: the first bytes that came, for telling what kind of peer it is.
    expired: the deadline has ended it.
    step_bytes: how many came since the login or a script was begun; None where nobody counts.
    """

    def __init__(self, stream: Stream, deadline: float, let_go: Callable[[], None]) -> None:
        """let_go: ends the stream at once from another thread, without waiting."""
        self.deadline = deadline
        self.head = b""
        self.expired = False
        self.step_bytes: int | None = None
        self.greeting = True
        self._stream = stream
        self._let_go = let_go
        self._ended = False
        self._received = 0
        self._timeout = 0.0
        self._buffer = b""
        self._used = 0

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes; b"" at the end; TimeoutError when there are none for now."""
        if size > LARGEST_PACKET:
            raise _aborted(f"a packet of {size} bytes was announced")
        if self._used == len(self._buffer):
            self._fill()
        piece = self._buffer[self._used : self._used + size]
        self._used += len(piece)
        return piece

    def wait(self, until: float) -> bool:
        """Wait for something to read, or for its end; False at `until` (time.monotonic())."""
        if self._used < len(self._buffer):
            return True
        while True:
            left = until - time.monotonic()
            try:
                self._fill(max(left, 0.001))
                return True
            except TimeoutError:
                if left <= 0:
                    return False

    def _fill(self, at_most: float = POLL) -> None:
        self._wait_at_most(at_most)
        data = self._stream.recv(BUFFER)
        self._buffer, self._used = data, 0
        if len(self.head) < 256:
            self.head = (self.head + data)[:256]
        if self.greeting:
            self._received += len(data)
            if self._received > GREETING_LIMIT:
                raise _aborted("too much was sent before the key exchange was done")
        elif self.step_bytes is not None:
            self.step_bytes += len(data)
            check_flood(self.step_bytes)
            if self.step_bytes > MUCH:
                time.sleep(PAUSE)

    def begin_step(self, deadline: float) -> None:
        """Somebody logs in or a script runs, until the deadline: what comes is counted anew."""
        self.deadline = deadline
        self.step_bytes = 0

    def send(self, data: bytes) -> int:
        """Write some of the data; TimeoutError when none can be written for now."""
        self._wait_at_most()
        return self._stream.send(data)

    def _wait_at_most(self, seconds: float = POLL) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.expired = True
        if self.expired or self._ended:
            raise _aborted("the connection was ended on this side")
        timeout = min(seconds, left)
        if timeout != self._timeout:  # each setting is a call of the kernel
            self._timeout = timeout
            self._stream.settimeout(timeout)

    @property
    def _closed(self) -> bool:
        """paramiko looks at this name of Python's own sockets before it waits for its thread."""
        return self._ended

    def settimeout(self, timeout: float) -> None:
        """paramiko asks for 0.1 s, which keeps a core busy with a thousand connections."""

    def abort(self) -> None:
        """End it from any thread, at once. Whoever waits on it is woken."""
        if not self._ended:
            self._ended = True
            self._let_go()

    def close(self) -> None:
        """Called by paramiko's thread as its last act."""
        self.abort()
        self._stream.close()


def _aborted(reason: str) -> OSError:
    """paramiko goes on after a TimeoutError, and trips over an OSError without a number."""
    return ConnectionAbortedError(errno.ECONNABORTED, reason)


class _Tcp:
    """A connected TCP socket as a stream whose time limits the kernel keeps.

    A limit of Python's own costs each call two more of the kernel, and before and after each of
    them a turn among all threads.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        self._socket = sock

    def settimeout(self, timeout: float) -> None:
        seconds, rest = divmod(max(timeout, 1e-6), 1)
        limit = struct.pack("ll", int(seconds), int(rest * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def recv(self, size: int) -> bytes:
        try:
            data = self._socket.recv(size)
        except BlockingIOError as error:
            raise TimeoutError(errno.ETIMEDOUT, "nothing came") from error
        # Else the server's next small packet waits up to 40 ms for our delayed ACK.
        with contextlib.suppress(OSError, AttributeError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data

    def send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError as error:
            raise TimeoutError(errno.ETIMEDOUT, "nothing could be sent") from error

    def close(self) -> None:
        self._socket.close()


def tcp_wire(sock: socket.socket, deadline: float) -> Wire:
    """A wire over a connected TCP socket."""

    def let_go() -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    return Wire(_Tcp(sock), deadline, let_go)


class _Forward:
    """A channel of a jump host's connection as a stream.

    paramiko may put data on the way after the end of a channel when both come from two threads;
    sshd then ends the whole connection, with all other nodes on it.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._turn = threading.Lock()
        self.recv = channel.recv
        self.settimeout = channel.settimeout

    def send(self, data: bytes) -> int:
        with self._turn:
            return self._channel.send(data)

    def close(self) -> None:
        with self._turn, contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()


def channel_wire(channel: paramiko.Channel, deadline: float) -> Wire:
    """A wire over a channel of a jump host's connection."""
    forward = _Forward(channel)

    def let_go() -> None:
        # Closing sends a message, which may have to wait for the jump host.
        threading.Thread(target=forward.close, daemon=True).start()

    return Wire(forward, deadline, let_go)


HEARD = {
    *(MSG_CHANNEL_OPEN_FAILURE, MSG_CHANNEL_REQUEST, MSG_DISCONNECT),
    *(MSG_USERAUTH_BANNER, MSG_USERAUTH_FAILURE),
}
BANNER_KEPT = 1000  # bytes


class Listener(Packetizer):
    """Remembers what servers say and paramiko does not pass on.

    farewell: the text of the server's disconnect message.
    banner: the end of what the server said last during the login.
    methods: ways to log in that the server offers.
    signals: by channel, the signal that ended its command.
    unopened: when (time.monotonic()) a channel was refused, and the server's words for it.
    """

    def __init__(self, socket: Any) -> None:
        super().__init__(socket)
        self.farewell = ""
        self.banner = ""
        self.methods: tuple[str, ...] = ()
        self.signals: dict[int, str] = {}
        self.unopened: deque[tuple[float, str]] = deque(maxlen=1000)

    def start_handshake(self, timeout: float) -> None:
        """Nothing: it would start a timer thread for each node, and the wire has its own end."""

    def read_message(self) -> tuple[int, paramiko.Message]:
        kind, message = super().read_message()
        if kind in HEARD:
            copy = paramiko.Message(message.asbytes())
            if kind == MSG_DISCONNECT:
                copy.get_int()
                self.farewell = copy.get_binary().decode(errors="replace")
            elif kind == MSG_USERAUTH_BANNER:
                self.banner = copy.get_binary()[-BANNER_KEPT:].decode(errors="replace")
            elif kind == MSG_USERAUTH_FAILURE:
                self.methods = tuple(copy.get_list())
            elif kind == MSG_CHANNEL_OPEN_FAILURE:
                copy.get_int()
                copy.get_int()
                words = copy.get_binary().decode(errors="replace")
                self.unopened.append((time.monotonic(), words))
            else:
                channel = copy.get_int()
                if copy.get_binary() == b"exit-signal":
                    copy.get_boolean()
                    self.signals[channel] = copy.get_binary().decode(errors="replace")
        return kind, message


def new_transport(wire: Wire, host_key_kinds: Sequence[str] = ()) -> paramiko.Transport:
    """A paramiko transport over the wire, not started yet.

    host_key_kinds: kinds of key known for the host, to be asked for first.
    """
    # paramiko documents "a socket-like object"; its type stubs name three classes.
    sock = cast(socket.socket, wire)
    transport = paramiko.Transport(sock, packetizer_class=Listener)
    prepare(transport, host_key_kinds)
    return transport


def prepare(transport: paramiko.Transport, host_key_kinds: Sequence[str]) -> None:
    """What to ask the server for first."""
    options = transport.get_security_options()
    options.ciphers = _first(FAST_CIPHERS, options.ciphers)
    wanted = (x for kind in host_key_kinds for x in (RSA if kind == "ssh-rsa" else (kind,)))
    options.key_types = _first(tuple(wanted), options.key_types)
    transport.banner_timeout = math.inf  # the wire's deadline ends this wait


def listener(transport: paramiko.Transport) -> Listener:
    """What the server of a transport made by `new_transport` has said."""
    packetizer = transport.packetizer
    assert isinstance(packetizer, Listener)
    return packetizer


@cache
def _first(wanted: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    front = [name for name in wanted if name in known]
    return (*front, *(name for name in known if name not in front))
