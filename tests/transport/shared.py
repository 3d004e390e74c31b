"""What the tests of transports share: settings for a host, and a whole answer of a script."""

import time
from pathlib import Path

from clustercheck.node import Node
from clustercheck.transport import Channel, Connection, Exit, Transport
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.ssh import Ssh
from tests.host import Host

PATIENCE = 60.0  # seconds: other work may be going on on the machine


def later(seconds: float = PATIENCE) -> float:
    """A deadline."""
    return time.monotonic() + seconds


def node(
    host: Host, *, name: str = "node01", at: str = "127.0.0.1", user: str = "", key: str = "plain"
) -> Node:
    """The host as a node; key is a field of `Keys`, or "" for none."""
    path = str(getattr(host.keys, key)) if key else ""
    return Node(name, host=at, port=host.port, user=user or host.user, key=path)


def ssh(host: Host, *, config: Path | None = None, password: str = "", passphrase: str = "") -> Ssh:
    """A transport that knows the host's key and nothing of the developer's own set-up."""
    return Ssh(
        SshSettings(
            config=(str(config),) if config else (),
            known_hosts=(str(host.known_hosts),),
            password=password,
            passphrase=passphrase,
            agent=False,
        )
    )


def everything(channel: Channel) -> bytes:
    """All of standard output."""
    output = b""
    end = later()
    while time.monotonic() < end:
        piece = channel.receive(5)
        if piece == b"":
            return output
        output += piece or b""
    raise AssertionError(f"no end of output, after {output[-200:]!r}")


def run(transport: Transport, to: Node, script: str, seconds: float = PATIENCE) -> tuple[str, Exit]:
    """Run a script that ends by itself; its output and its end."""
    connection = transport.connect(to, later(seconds))
    try:
        return answer(connection, script, seconds)
    finally:
        connection.close()


def answer(connection: Connection, script: str, seconds: float = PATIENCE) -> tuple[str, Exit]:
    """The same over a connection that is there already."""
    channel = connection.start(f"{script}\nexit\n".encode(), later(seconds))
    try:
        return everything(channel).decode(), channel.finish()
    finally:
        channel.close()
