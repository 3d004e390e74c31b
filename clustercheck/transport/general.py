"""The general way to a connection that is logged in: through fabric.Connection.

For nodes behind a jump host or a ProxyCommand. Imported only where there are such nodes, since
fabric takes its time.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import fabric  # type: ignore[import-untyped]
import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, SourceResult

from clustercheck.transport.login import log_in
from clustercheck.transport.opening import Tools, check_host_key, peers_doing
from clustercheck.transport.route import Route
from clustercheck.transport.session import SshConnection
from clustercheck.transport.wire import Wire, new_transport


def _config() -> fabric.Config:
    """Empty and lazy: neither fabric's own files nor ssh_config are read for each node.

    One for each connection: it may not be read by two threads, for it is filled anew now and then.
    """
    return fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)


class _Policy(paramiko.MissingHostKeyPolicy):
    """paramiko is given no known_hosts of its own, so it asks this one about every host."""

    def __init__(self, stages: "_Stages") -> None:
        self._stages = stages

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        self._stages.check_host_key(client)


class _Login(AuthStrategy):
    """Our login in place of paramiko's."""

    def __init__(self, stages: "_Stages") -> None:
        super().__init__(paramiko.SSHConfig())
        self._stages = stages

    def get_sources(self) -> Iterator[AuthSource]:
        return iter(())

    def authenticate(self, transport: paramiko.Transport) -> list[SourceResult]:
        self._stages.log_in(transport)
        return []


@dataclass
class _Stages:
    """What fabric and paramiko call back on the way to an open connection."""

    wire: Wire
    route: Route
    tools: Tools
    kinds: tuple[str, ...]
    deadline: float
    transport: paramiko.Transport | None = None

    def make_transport(
        self,
        sock: object,
        gss_kex: object = None,
        gss_deleg_creds: object = None,
        disabled_algorithms: object = None,
    ) -> paramiko.Transport:
        """Called by paramiko, before 5.0 with the two of GSS, which are off."""
        self.transport = new_transport(self.wire, self.kinds)
        return self.transport

    def check_host_key(self, client: paramiko.SSHClient) -> None:
        assert self.transport
        self.wire.greeting = False
        check_host_key(self.transport, self.route, self.tools, self.kinds)

    def log_in(self, transport: paramiko.Transport) -> None:
        self.wire.begin_step(self.deadline)
        log_in(transport, self.wire, self.route, self.tools.keyring, self.tools.password)


def open_general(
    wire: Wire, route: Route, tools: Tools, kinds: tuple[str, ...], deadline: float
) -> SshConnection:
    """Greet, check the host key and log in, as `open_plain` does."""
    began = time.monotonic()
    stages = _Stages(wire, route, tools, kinds, deadline)
    connection = fabric.Connection(
        host=route.host,
        user=route.user,
        port=route.port,
        config=_config(),
        gateway=False,
        connect_kwargs={
            "sock": wire,
            "transport_factory": stages.make_transport,
            "auth_strategy": _Login(stages),
        },
    )
    connection.client.set_missing_host_key_policy(_Policy(stages))
    try:
        connection.open()
    except BaseException as error:
        cause = peers_doing(error, wire, stages.transport, began)
        wire.abort()
        if cause:
            raise cause from error
        raise
    transport = connection.transport
    assert isinstance(transport, paramiko.Transport)
    return SshConnection(transport, wire, keep=connection)
