"""Nodes on a switch, each a network namespace of its own: real interfaces, real lost packets.

Nothing of the machine's own network is touched, and all is gone when the processes end that hold
the namespaces. A node also has its own /sys, /etc/hosts and /usr/local/sbin (for ping).
"""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from clustercheck import facts, script
from clustercheck.check import Target
from clustercheck.node import Node
from clustercheck.transport import Channel, Connection
from clustercheck.transport.here import HereChannel
from tests.made_up import CHECKS, options_of
from tests.shells import SHELLS, sh_folder, shell_words
from tools.fetch import CannotFetch, fetch, program

INIT = """
set -e
mount -t sysfs sysfs /sys
mount -t tmpfs tools /usr/local/sbin
ln -s "$1" /usr/local/sbin/ping
mount --bind "$2" /etc/hosts
ip link set lo up
echo ready
cat >/dev/null
"""


def needed(command: str) -> str:
    """The path of a command; skips the test where it cannot be had."""
    path = program(command)
    if path is None:
        try:
            fetch()
        except CannotFetch as why:
            pytest.skip(str(why))
        path = program(command)
    assert path is not None
    return str(path)


class Namespace:
    """A network of its own with one host on it."""

    def __init__(self, hosts: Path) -> None:
        ping = needed("ping")
        command = [
            needed("unshare"),
            "--net",
            "--mount",
            "sh",
            "-c",
            INIT,
            "init",
            ping,
            str(hosts),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout and self._process.stderr
        if self._process.stdout.readline() != "ready\n":
            pytest.skip(f"cannot here: no network namespaces: {self._process.stderr.read()}")
        self.pid = self._process.pid
        self.enter = [needed("nsenter"), "--net", "--mount", "--target", str(self.pid)]

    def run(self, commands: str) -> None:
        """Lines of sh, in it; all must succeed."""
        done = subprocess.run(
            [*self.enter, "sh", "-ec", commands], capture_output=True, text=True, timeout=60
        )
        if done.returncode:
            raise RuntimeError(f"{commands}: {done.stderr}")

    def await_answer(self, *hosts: str) -> None:
        """Wait until each host answers a ping: IPv6 needs some time to come up."""
        for host in hosts:
            self.run(
                f"for turn in 1 2 3 4 5 6 7 8 9; do ping -c 1 -w 3 {host} && exit; done; false"
            )

    def close(self) -> None:
        """Let go of it: its interfaces go with it."""
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._process.stderr.close()

    def told(
        self,
        peers: Sequence[Target],
        *,
        shell: str = "sh",
        before: Sequence[str] = (),
        check: str = "mtu",
        **changed: Any,
    ) -> facts.Told:
        """What a check's probe tells there; before: words that start the shell otherwise."""
        path = f"{sh_folder(shell)}:{script.PATH}" if shell in SHELLS else script.PATH
        frame = script.Frame(path=path)
        asked = [script.Asked(check, CHECKS[check], options_of(check, **changed))]
        done = subprocess.run(
            [*self.enter, *before, *(shell_words(shell) if shell in SHELLS else [shell]), "-s"],
            input=script.build(frame, asked, peers=peers).encode(),
            capture_output=True,
            timeout=110,
            check=False,
        )
        reader = facts.Reader(frame.mark, time.time)
        reader.feed(done.stdout)
        assert reader.done, done.stderr.decode(errors="replace")
        return reader.told[check]


class Switch:
    """A switch with nodes on it: NAME has 10.77.0.NUMBER and fd77::NUMBER, by the order made."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("networks of its own need root: run the tests as root")
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.nodes: dict[str, Namespace] = {}
        self._apart: list[Namespace] = []
        self._own = Namespace(self.hosts)
        self._own.run("ip link add br0 type bridge mcast_snooping 0; ip link set br0 mtu 9000 up")

    def node(
        self, name: str, *, mtu: int = 9000, port: int = 9000, bridge: str = "br0"
    ) -> Namespace:
        """A node whose eth0 has an MTU, on a port that has one too."""
        number = len(self.nodes) + 1
        node = self.nodes[name] = Namespace(self.hosts)
        self._own.run(
            f"ip link add p{number} mtu {port}"
            f" type veth peer name eth0 mtu {mtu} netns {node.pid}\n"
            f"ip link set p{number} master {bridge} up"
        )
        node.run(
            f"ip address add 10.77.0.{number}/24 dev eth0\n"
            f"ip address add fd77::{number}/64 dev eth0 nodad\n"
            "ip link set eth0 up"
        )
        with self.hosts.open("a") as hosts:
            hosts.write(f"10.77.0.{number} {name}\nfd77::{number} {name}-six\n")
        return node

    def apart(self) -> Namespace:
        """A host that is on no switch."""
        self._apart.append(Namespace(self.hosts))
        return self._apart[-1]

    def trunk(self, mtu: int) -> None:
        """A second switch, br1, behind a link of that MTU."""
        self._own.run(
            "ip link add br1 type bridge mcast_snooping 0; ip link set br1 mtu 9000 up\n"
            f"ip link add t0 mtu {mtu} type veth peer name t1 mtu {mtu}\n"
            "ip link set t0 master br0 up; ip link set t1 master br1 up"
        )

    def close(self) -> None:
        """End all of it."""
        for namespace in (*self.nodes.values(), *self._apart, self._own):
            namespace.close()

    def __enter__(self) -> "Switch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def connect(self, node: Node, deadline: float) -> Connection:
        """It is a transport too: a node's script runs in the node's namespaces."""
        return _Entered(self.nodes[node.name])


class _Entered:
    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def start(self, script: bytes, deadline: float) -> Channel:
        process = subprocess.Popen(
            [*self._namespace.enter, "sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        channel = HereChannel(process)
        channel.send(script)
        return channel

    def close(self) -> None: ...
