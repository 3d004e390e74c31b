"""Nodes over SSH."""

import logging
import random
import time
from typing import Protocol, TypeVar

import paramiko

from clustercheck.node import Node
from clustercheck.transport import Connection, Unreachable
from clustercheck.transport.dial import Proxy, dial
from clustercheck.transport.host_keys import AskFor, HostKeys
from clustercheck.transport.jump import Jumps
from clustercheck.transport.keys import Keyring
from clustercheck.transport.opening import Tools, open_fast, open_plain
from clustercheck.transport.password import Password
from clustercheck.transport.route import Route, Router
from clustercheck.transport.session import SshConnection
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.threadless import MISSING
from clustercheck.transport.wire import Wire

__all__ = ["Ssh", "SshSettings"]

log = logging.getLogger(__name__)

OpenT = TypeVar("OpenT", covariant=True)


class Opener(Protocol[OpenT]):
    """Opens a connection over a wire, as `open_plain` does."""

    def __call__(
        self, wire: Wire, route: Route, tools: Tools, kinds: tuple[str, ...], deadline: float
    ) -> OpenT: ...


FIRST_PAUSE = 0.2  # seconds before a server that was too busy to greet is tried again
LONGEST_PAUSE = 3.0


class Ssh:
    """The transport over SSH. Thread-safe: one for all nodes and all threads of a run.

    Raises ConfigError where a file of ssh_config cannot be understood.
    """

    def __init__(self, settings: SshSettings) -> None:
        self._open_direct: Opener[Connection] = open_plain if MISSING else open_fast
        if MISSING:
            log.info("paramiko %s has no %s", paramiko.__version__, ", ".join(MISSING))
        self._router = Router(settings)
        keyring = Keyring(settings.passphrase, settings.agent)
        self._tools = Tools(HostKeys(settings), keyring, Password(settings.password))
        self._jumps = Jumps(self._hop)

    def connect(self, node: Node, deadline: float) -> Connection:
        """Connect to a node and log in. Raises Unreachable with one of `reach.CODES`."""
        return self._connect(node.name, self._router.node(node), self._open_direct, deadline)

    def close(self) -> None:
        """End the connections to jump hosts and to the agent."""
        self._jumps.close()
        self._tools.keyring.close()

    def _hop(self, hop: str, before: tuple[str, ...], deadline: float) -> SshConnection:
        # Many nodes use it at once, so it needs a thread of its own.
        connection = self._connect(hop, self._router.hop(hop, before), open_plain, deadline)
        connection.hold()
        return connection

    def _connect(
        self, name: str, route: Route, direct: Opener[OpenT], deadline: float
    ) -> OpenT | SshConnection:
        """direct: how to open a connection where nothing stands between."""
        kinds = self._tools.host_keys.kinds(route)
        pause = FIRST_PAUSE
        while True:
            try:
                return self._open(name, route, direct, kinds, deadline)
            except AskFor as other:
                kinds = other.kinds
            except Unreachable as error:
                wait = pause * random.uniform(0.5, 1.5)
                again = error.code == "max_startups" or self._jumps.broke(route.jumps)
                if not again or time.monotonic() + wait > deadline:
                    raise
                log.info("%s: %s; trying again in %.1f s", name, error.message, wait)
                time.sleep(wait)
                pause = min(pause * 1.5, LONGEST_PAUSE)

    def _open(
        self,
        name: str,
        route: Route,
        direct: Opener[OpenT],
        kinds: tuple[str, ...],
        deadline: float,
    ) -> OpenT | SshConnection:
        where = f"{route.user}@{route.host} port {route.port}"
        if route.jumps or route.proxy_command:
            from clustercheck.transport.general import open_general
        if route.jumps:
            log.info("%s: %s by fabric, jump host %s", name, where, ", ".join(route.jumps))
            wire = self._jumps.wire(route, deadline)
            return open_general(wire, route, self._tools, kinds, deadline)
        until = min(deadline, time.monotonic() + route.connect_timeout)
        if route.proxy_command:
            log.info("%s: %s by fabric, ProxyCommand %s", name, where, route.proxy_command)
            proxy = Proxy(route.proxy_command, until)
            try:
                return open_general(proxy.wire, route, self._tools, kinds, deadline)
            except Unreachable as error:
                failure = proxy.failure() if error.code in ("max_startups", "no_banner") else ""
                if failure:
                    raise Unreachable("proxy_command", failure) from error
                raise
        by = "paramiko without a thread" if direct is open_fast else "paramiko"
        log.info("%s: %s by %s", name, where, by)
        wire = dial(route.host, route.port, route.family, until)
        wire.deadline = min(deadline, time.monotonic() + route.connect_timeout)
        return direct(wire, route, self._tools, kinds, deadline)
