"""From a wire to a connection that is logged in, in two ways by paramiko alone.

The fast way has no thread for the connection; the plain way drives a paramiko transport by its
public calls. The third way, by fabric, is in `general.py`. All use the same keys, the same check of
host keys and the same login.
"""

import re
import threading
import time
from dataclasses import dataclass, field

import paramiko

from clustercheck.known_hosts import HostKey
from clustercheck.transport import Connection, Unreachable
from clustercheck.transport.host_keys import AskFor, HostKeys
from clustercheck.transport.keys import Keyring
from clustercheck.transport.login import log_in
from clustercheck.transport.password import Password
from clustercheck.transport.route import Route
from clustercheck.transport.session import SshConnection
from clustercheck.transport.threadless import Threadless
from clustercheck.transport.threadless_session import ThreadlessConnection
from clustercheck.transport.wire import Wire, listener, new_transport, prepare

GREETING = re.compile(rb"^SSH-.*\n", re.MULTILINE)
REFUSED_EARLY = (b"Exceeded MaxStartups", b"Not allowed at this time")


@dataclass(frozen=True)
class Tools:
    """What all connections of a run share."""

    host_keys: HostKeys
    keyring: Keyring
    password: Password = field(repr=False)


def open_fast(
    wire: Wire, route: Route, tools: Tools, kinds: tuple[str, ...], deadline: float
) -> Connection:
    """Greet, check the host key and log in without a thread for the connection.

    kinds: of host key, to be asked for first.
    The wire's deadline is that of the key exchange; `deadline` is that of the login.

    Raises Unreachable or AskFor; the wire is then ended.
    """
    transport = Threadless(wire)
    prepare(transport, kinds)
    try:
        _greet_and_log_in(transport, wire, route, tools, kinds, deadline)
    except BaseException:
        wire.close()  # there is no thread whose last act it is
        raise
    return ThreadlessConnection(transport, wire)


def open_plain(
    wire: Wire, route: Route, tools: Tools, kinds: tuple[str, ...], deadline: float
) -> SshConnection:
    """The same by paramiko's public calls."""
    transport = new_transport(wire, kinds)
    _greet_and_log_in(transport, wire, route, tools, kinds, deadline)
    return SshConnection(transport, wire)


def _greet_and_log_in(
    transport: paramiko.Transport,
    wire: Wire,
    route: Route,
    tools: Tools,
    kinds: tuple[str, ...],
    deadline: float,
) -> None:
    began = time.monotonic()
    done = threading.Event()
    try:
        transport.start_client(event=done)
        # The wire ends the transport at its deadline; the second is for a thread that is slow.
        done.wait(wire.deadline - began + 1)
        if not done.is_set() or not transport.is_active():
            raise no_handshake(wire, transport, transport.get_exception(), began)
        wire.greeting = False
        check_host_key(transport, route, tools, kinds)
        wire.begin_step(deadline)
        log_in(transport, wire, route, tools.keyring, tools.password)
    except BaseException as error:
        cause = peers_doing(error, wire, transport, began)
        wire.abort()
        if cause:
            raise cause from error
        raise


def peers_doing(
    error: BaseException, wire: Wire, transport: paramiko.Transport | None, began: float
) -> Unreachable | None:
    """The cause, where the error is not one already and the peer has ended paramiko's thread."""
    if isinstance(error, Unreachable | AskFor) or not isinstance(error, Exception):
        return None
    if transport and not transport.is_active():
        return no_handshake(wire, transport, error, began)
    return None


def check_host_key(
    transport: paramiko.Transport, route: Route, tools: Tools, kinds: tuple[str, ...]
) -> None:
    """Return if the key that the server has shown may be trusted; raises as HostKeys.check does."""
    shown = transport.get_remote_server_key()
    tools.host_keys.check(route, HostKey(shown.get_name(), shown.asbytes()), kinds)


def no_handshake(
    wire: Wire, transport: paramiko.Transport | None, error: BaseException | None, began: float
) -> Unreachable:
    """Why there is no secure connection on a wire: told by what the peer has sent so far."""
    waited = f"{time.monotonic() - began:.1f} s"
    late = wire.expired or time.monotonic() >= wire.deadline
    greeted = GREETING.search(wire.head) is not None
    if greeted and late:
        return Unreachable("handshake", f"the key exchange did not come to an end within {waited}")
    if greeted:
        farewell = listener(transport).farewell if transport else ""
        reason = farewell or str(error or "") or "the server closed the connection"
        return Unreachable("handshake", f"the key exchange failed: {reason}")
    said = wire.head[:60].decode(errors="backslashreplace").strip()
    if late:
        what = f"only {said!r}" if said else "nothing"
        return Unreachable("no_banner", f"the port is open, and {what} came within {waited}")
    if not wire.head:
        return Unreachable("max_startups", "the server closed the connection without a greeting")
    if wire.head.startswith(REFUSED_EARLY):
        return Unreachable("max_startups", f"the server closed the connection: {said}")
    return Unreachable("no_banner", f"the port belongs to no SSH server: it sent {said!r}")
