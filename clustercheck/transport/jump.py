"""Jump hosts: one connection each, shared by all nodes behind it."""

import threading
import time
from collections.abc import Callable

import paramiko
from paramiko.common import OPEN_FAILED_CONNECT_FAILED

from clustercheck.transport import Unreachable
from clustercheck.transport.route import Route
from clustercheck.transport.session import SshConnection
from clustercheck.transport.wire import Wire, channel_wire, listener

Open = Callable[[str, tuple[str, ...], float], SshConnection]
"""Connect to a jump host, given as ssh's -J, through those before it, until a deadline."""


class _Shared:
    """One jump host: its connection, or why there is none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: SshConnection | None = None
        self.failure = ""


class Jumps:
    """The jump hosts of the run. Thread-safe."""

    def __init__(self, open_hop: Open) -> None:
        self._open = open_hop
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, ...], _Shared] = {}

    def wire(self, route: Route, deadline: float) -> Wire:
        """A wire to the route's host and port through its jump hosts.

        Raises Unreachable: jump when a jump host fails, else what the last one says of the node.
        """
        via = self._connection(route.jumps, deadline)
        began = time.monotonic()
        until = min(deadline, began + route.connect_timeout)
        try:
            channel = via.transport.open_channel(
                "direct-tcpip",
                (route.host, route.port),
                ("", 0),
                timeout=max(until - began, 0.001),
            )
        except paramiko.ChannelException as error:
            # paramiko keeps the server's words to itself, and not to which channel they belong.
            heard = {words for when, words in listener(via.transport).unopened if when >= began}
            raise _not_reached(error, heard, route) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            if via.transport.is_active():
                text = f"the jump host {route.jumps[-1]} got no answer from port {route.port}"
                raise Unreachable("timeout", f"{text} of {route.host}") from error
            text = f"the connection to the jump host {route.jumps[-1]} broke"
            raise Unreachable("jump", text) from error
        return channel_wire(channel, until)

    def _connection(self, hops: tuple[str, ...], deadline: float) -> SshConnection:
        with self._lock:
            shared = self._shared.setdefault(hops, _Shared())
        if not shared.lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise Unreachable("jump", f"the jump host {hops[-1]} was not there in time")
        try:
            if shared.connection and not shared.connection.transport.is_active():
                shared.connection = None
            if shared.failure:
                raise Unreachable("jump", shared.failure)
            if not shared.connection:
                try:
                    shared.connection = self._open(hops[-1], hops[:-1], deadline)
                except Unreachable as error:
                    text = f"the jump host {hops[-1]} cannot be used: {error.message}"
                    if error.code == "jump":
                        text = error.message
                    # All nodes behind it get the same words, and it is not tried for each.
                    shared.failure = text
                    raise Unreachable("jump", text) from error
            return shared.connection
        finally:
            shared.lock.release()

    def broke(self, hops: tuple[str, ...]) -> bool:
        """Whether a connection to one of these jump hosts, one behind the other, has ended."""
        with self._lock:
            chains = [self._shared.get(hops[: n + 1]) for n in range(len(hops))]
        used = [shared.connection for shared in chains if shared and shared.connection]
        return not all(connection.transport.is_active() for connection in used)

    def close(self) -> None:
        """End all connections to jump hosts, the nearest last."""
        with self._lock:
            for hops in sorted(self._shared, key=len, reverse=True):
                connection = self._shared[hops].connection
                if connection:
                    connection.close()


def _not_reached(error: paramiko.ChannelException, heard: set[str], route: Route) -> Unreachable:
    """What sshd on a jump host says when it does not connect further.

    heard: its words for all channels that it refused meanwhile.
    """
    said = " or ".join(sorted(heard))
    text = f"the jump host {route.jumps[-1]} says of port {route.port} of {route.host}: {said}"
    if error.code != OPEN_FAILED_CONNECT_FAILED:
        return Unreachable("jump", text)
    for words, code in (("refused", "refused"), ("timed out", "timeout"), ("name", "no_name")):
        if len(heard) == 1 and words in said.lower():
            return Unreachable(code, text)
    return Unreachable("no_route", text)
