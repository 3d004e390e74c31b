"""Nodes over SSH."""

import logging
import random
import time

import fabric  # type: ignore[import-untyped]
import paramiko

from clustercheck.node import Node
from clustercheck.transport import Unreachable
from clustercheck.transport.dial import Proxy, dial
from clustercheck.transport.host_keys import AskFor, HostKeys
from clustercheck.transport.jump import Jumps
from clustercheck.transport.keys import Keyring
from clustercheck.transport.opening import Tools, open_general, open_plain
from clustercheck.transport.password import Password
from clustercheck.transport.route import Route, Router
from clustercheck.transport.session import SshConnection
from clustercheck.transport.settings import SshSettings

__all__ = ["Ssh", "SshSettings"]

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2  # seconds before a server that was too busy to greet is tried again
LONGEST_PAUSE = 3.0


class Ssh:
    """The transport over SSH. Thread-safe: one for all nodes and all threads of a run.

    Raises ConfigError where a file of ssh_config cannot be understood.
    """

    def __init__(self, settings: SshSettings) -> None:
        self._router = Router(settings)
        keyring = Keyring(settings.passphrase, settings.agent)
        # Empty and lazy: neither fabric's own files nor ssh_config are read for each node.
        config = fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)
        self._tools = Tools(HostKeys(settings), keyring, Password(settings.password), config)
        self._jumps = Jumps(self._hop)

    def connect(self, node: Node, deadline: float) -> SshConnection:
        """Connect to a node and log in. Raises Unreachable with one of `reach.CODES`."""
        return self._connect(node.name, self._router.node(node), deadline)

    def close(self) -> None:
        """End the connections to jump hosts and to the agent."""
        self._jumps.close()
        self._tools.keyring.close()

    def _hop(self, hop: str, before: tuple[str, ...], deadline: float) -> SshConnection:
        connection = self._connect(hop, self._router.hop(hop, before), deadline)
        connection.hold()
        return connection

    def _connect(self, name: str, route: Route, deadline: float) -> SshConnection:
        kinds = self._tools.host_keys.kinds(route)
        pause = FIRST_PAUSE
        while True:
            try:
                return self._open(name, route, kinds, deadline)
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
        self, name: str, route: Route, kinds: tuple[str, ...], deadline: float
    ) -> SshConnection:
        where = f"{route.user}@{route.host} port {route.port}"
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
        log.info("%s: %s by paramiko", name, where)
        wire = dial(route.host, route.port, route.family, until)
        wire.deadline = min(deadline, time.monotonic() + route.connect_timeout)
        return open_plain(wire, route, self._tools, kinds, deadline)
