"""A paramiko transport without a thread of its own: whoever waits for the server reads.

paramiko gives each connection a thread that polls, which is most of what a connection costs. Here
the worker that wants an answer takes the messages in itself, one by one, as that thread does. For
this, names of paramiko's are used that it does not promise to keep: `MISSING` says which of them
this paramiko has not, and where there is one the stock transport is used instead.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, cast

import paramiko
from paramiko.auth_handler import AuthHandler
from paramiko.common import (
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_OPEN_SUCCESS,
    MSG_CHANNEL_SUCCESS,
    MSG_DEBUG,
    MSG_DISCONNECT,
    MSG_IGNORE,
    MSG_KEXINIT,
    MSG_UNIMPLEMENTED,
)
from paramiko.packet import NeedRekeyException

from clustercheck.transport.wire import Listener, Wire

KEY_EXCHANGE = range(30, 42)  # messages that mean what the method of the exchange says
ABOUT_CHANNELS = {
    MSG_CHANNEL_OPEN_SUCCESS,
    MSG_CHANNEL_OPEN_FAILURE,
    *range(MSG_CHANNEL_OPEN_FAILURE + 1, MSG_CHANNEL_SUCCESS + 2),
}

METHODS = (
    "_check_banner",
    "_enforce_strict_kex",
    "_expect_packet",
    "_log",
    "_send_kex_init",
    "_send_message",
)
STATE = (
    "_expected_packet",
    "_handler_table",
    "active",
    "agreed_on_strict_kex",
    "auth_handler",
    "clear_to_send",
    "in_kex",
    "initial_kex_done",
    "kex_engine",
    "local_version",
    "packetizer",
)
AUTH = ("_handler_table", "auth_interactive", "auth_none", "auth_password", "auth_publickey")

Handler = Callable[[paramiko.Message], None]


class Ear(Protocol):
    """Takes in what the server says to one channel."""

    def hear(self, kind: int, message: paramiko.Message) -> None: ...


class Threadless(paramiko.Transport):
    """To be used by one thread at a time. The errors of its reading come out of each method.

    ears: by our number of the channel.
    """

    _expected_packet: tuple[int, ...]
    _handler_table: dict[int, Handler]
    _check_banner: Callable[[], None]
    _enforce_strict_kex: Callable[[int], None]
    _expect_packet: Callable[..., None]
    _send_kex_init: Callable[[], None]
    _send_message: Callable[[paramiko.Message], None]

    def __init__(self, wire: Wire) -> None:
        super().__init__(cast(Any, wire), packetizer_class=Listener)
        self.ears: dict[int, Ear] = {}
        self._chatty = self.logger.isEnabledFor(logging.DEBUG)

    def start_client(
        self, event: threading.Event | None = None, timeout: float | None = None
    ) -> None:
        """Greet and exchange keys."""
        self.active = True
        try:
            self.packetizer.write_all(f"{self.local_version}\r\n".encode())
            self._check_banner()
            self._send_kex_init()
        except Exception:
            self.active = False
            raise
        self._expect_packet(MSG_KEXINIT)
        self.read_until(lambda: self.initial_kex_done)
        if event:
            event.set()

    def read_until(self, done: Callable[[], bool]) -> None:
        """Take messages in until `done` says so."""
        while not done():
            self.read_one()

    def read_one(self) -> None:
        """Wait for a message and take it in. An error ends the transport."""
        try:
            if self.packetizer.need_rekey() and not self.in_kex:
                self._send_kex_init()
            try:
                kind, message = self.packetizer.read_message()
            except NeedRekeyException:
                return
            self._take_in(kind, message)
        except Exception:
            self.active = False
            raise

    def tell(self, message: paramiko.Message) -> None:
        """Send a message that may not come into the middle of an exchange of keys."""
        self.read_until(self.clear_to_send.is_set)
        try:
            self._send_message(message)
        except Exception:
            self.active = False
            raise

    def let_go(self) -> None:
        """It is not used any more; without the circles in it, its memory is free at once."""
        self.active = False
        self.ears.clear()
        self._handler_table.clear()
        self.auth_handler = None

    def _take_in(self, kind: int, message: paramiko.Message) -> None:
        if kind in (MSG_IGNORE, MSG_DEBUG):
            self._enforce_strict_kex(kind)
            return
        if kind == MSG_DISCONNECT:
            raise EOFError("the server ended the connection")
        if self._expected_packet:
            if kind not in self._expected_packet:
                raise paramiko.SSHException(f"message {kind} is out of its order")
            self._expected_packet = ()
            if kind in KEY_EXCHANGE:
                assert self.kex_engine
                self.kex_engine.parse_next(kind, message)
                return
        if kind in ABOUT_CHANNELS:
            number = message.get_int()
            if number not in self.ears:
                raise paramiko.SSHException(
                    f"message {kind} is for a channel that was never opened"
                )
            self.ears[number].hear(kind, message)
        elif kind in self._handler_table:
            self._handler_table[kind](message)
        elif self.auth_handler is not None and kind in self._auth_handlers():
            self._auth_handlers()[kind](message)
        elif kind != MSG_UNIMPLEMENTED:
            answer = paramiko.Message()
            answer.add_byte(bytes([MSG_UNIMPLEMENTED]))
            answer.add_int(message.seqno)
            self._send_message(answer)

    def _auth_handlers(self) -> dict[int, Handler]:
        handlers: dict[int, Handler] = cast(Any, self.auth_handler)._handler_table
        return handlers

    def auth_none(self, username: str) -> list[str]:
        return self._authenticate(lambda auth, done: auth.auth_none(username, done))

    def auth_publickey(
        self, username: str, key: paramiko.PKey, event: threading.Event | None = None
    ) -> list[str]:
        return self._authenticate(lambda auth, done: auth.auth_publickey(username, key, done))

    def auth_password(
        self,
        username: str,
        password: str,
        event: threading.Event | None = None,
        fallback: bool = True,
    ) -> list[str]:
        return self._authenticate(lambda auth, done: auth.auth_password(username, password, done))

    def auth_interactive(self, username: str, handler: Any, submethods: str = "") -> list[str]:
        return self._authenticate(
            lambda auth, done: auth.auth_interactive(username, handler, done, submethods)
        )

    def _authenticate(self, begin: Callable[[AuthHandler, threading.Event], None]) -> list[str]:
        """Ask to be let in and read until the server has decided; paramiko says what it was."""
        done = threading.Event()
        self.auth_handler = AuthHandler(self)
        begin(self.auth_handler, done)
        self.read_until(done.is_set)
        return self.auth_handler.wait_for_response(done)

    def _filter_algorithm(self, type_: str) -> tuple[str, ...]:
        """Nothing is disabled, which paramiko would look for whenever it reads a list."""
        names: tuple[str, ...] = getattr(self, f"_preferred_{type_}")
        return names

    def _log(self, level: int, msg: Any, *args: Any) -> None:
        if self._chatty or level > logging.DEBUG:
            super()._log(level, msg, *args)  # type: ignore[misc]


class _Nothing:
    """Stands in for a socket where a transport is only looked at."""

    def settimeout(self, timeout: float) -> None: ...


def _missing() -> tuple[str, ...]:
    sample = paramiko.Transport(cast(Any, _Nothing()))
    return tuple(
        f"{kind.__name__}.{name}"
        for kind, names, has in (
            (paramiko.Transport, METHODS, paramiko.Transport),
            (paramiko.Transport, STATE, sample),
            (AuthHandler, AUTH, AuthHandler),
        )
        for name in names
        if not hasattr(has, name)
    )


MISSING = _missing()
"""What this paramiko has not; empty where `Threadless` can be used."""
