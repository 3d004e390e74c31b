"""Real name servers (dnsmasq), and nodes that use them: namespaces with their own /etc and network.

A node has its own host name, addresses, /etc/hosts, resolv.conf and nsswitch.conf, and the real
getent in them. The machine's are not touched.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clustercheck.node import Node
from clustercheck.transport import Channel, Connection
from clustercheck.transport.here import HereChannel
from tests.time_daemons import free_port, libraries, tool

# $0: the node's folder; the words: what is run in it.
SETUP = r"""
set -eu
mount -t tmpfs node "$0/memory"
mkdir "$0/memory/upper" "$0/memory/work"
cp "$0/etc/"* "$0/memory/upper"
mount -t overlay -o "lowerdir=/etc,upperdir=$0/memory/upper,workdir=$0/memory/work" etc /etc
mkdir -p /run/systemd/resolve
mount -t tmpfs run /run/systemd/resolve
cat /etc/hostname >/proc/sys/kernel/hostname
ip link set lo up
. "$0/start"
"$@"
"""


def dnsmasq(address: str, port: int, *config: str) -> list[str]:
    """The words that start a name server in the foreground.

    config: options of dnsmasq without their "--": "host-record=node01,10.0.0.1".
    """
    return [
        tool("dns", "dnsmasq"),
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--pid-file=",
        "--no-resolv",
        "--no-hosts",
        "--bind-interfaces",
        f"--user={'root' if os.geteuid() == 0 else ''}",
        f"--listen-address={address}",
        f"--port={port}",
        *(f"--{words}" for words in config),
    ]


@contextlib.contextmanager
def name_server(*config: str) -> Iterator[str]:
    """A server on this machine, as the option `servers` names it."""
    for _ in range(10):
        port = free_port()  # for UDP; for TCP, which dnsmasq wants as well, it may be taken
        words = dnsmasq("127.0.0.1", port, *config)
        process = subprocess.Popen(words, env=libraries("dns"), stderr=subprocess.DEVNULL)
        try:
            if _answers(process, port):
                yield f"127.0.0.1:{port}"
                return
        finally:
            process.terminate()
            process.wait(10)
    raise AssertionError(f"no port was free for {words}")


def _answers(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until it does; False where it has ended."""
    question = b"\0\1\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1"  # for the name servers of "."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        trial.settimeout(0.2)
        trial.connect(("127.0.0.1", port))
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError):
                trial.send(question)
                if trial.recv(512):
                    return True
            time.sleep(0.05)
    return False


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A socket that takes questions and never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@dataclass(frozen=True)
class Setting:
    """What a node has.

    addresses: on its loopback device, each with all of its bits.
    servers: by address, dnsmasq's options; None is a server that takes questions and is silent.
    """

    hostname: str
    addresses: Sequence[str]
    hosts: str = "127.0.0.1 localhost\n"
    resolv: str = ""
    nsswitch: str = "files dns"
    servers: Mapping[str, Sequence[str] | None] = field(default_factory=dict)


def before(folder: Path, node: Setting) -> list[str]:
    """The words that start a command on the node; `folder` is to be new."""
    if os.geteuid():
        pytest.skip("makes namespaces: run the tests as root")
    unshare = ["unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc"]
    unshare += ["--kill-child", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("cannot here: root may not make namespaces on this machine")
    (folder / "etc").mkdir(parents=True)
    (folder / "memory").mkdir()
    files = {
        "hostname": node.hostname + "\n",
        "hosts": node.hosts,
        "resolv.conf": node.resolv,
        "nsswitch.conf": f"passwd: files\ngroup: files\nhosts: {node.nsswitch}\n",
    }
    for name, text in files.items():
        (folder / "etc" / name).write_text(text)
    lines = []
    for address in [*node.addresses, *(a for a in node.servers if not a.startswith("127."))]:
        lines.append(f"ip address add {address} dev lo")
    for address, config in node.servers.items():
        words = shlex.join(dnsmasq(address, 53, *(config or ())))
        path = libraries("dns")["LD_LIBRARY_PATH"]
        lines.append(f"LD_LIBRARY_PATH={shlex.quote(path)} {words} </dev/null >&2 2>/dev/null &")
        lines.append(f"until ss -lun | grep -q '{address}:53 '; do sleep 0.05; done")
        if config is None:
            lines.append("kill -STOP $!")
    (folder / "start").write_text("\n".join(lines) + "\n")
    return [*unshare, "sh", "-c", SETUP, str(folder)]


class Nodes:
    """A transport to nodes that are made anew for each script."""

    def __init__(self, folder: Path, settings: Mapping[str, Setting]) -> None:
        self._words = {name: before(folder / name, s) for name, s in settings.items()}

    def connect(self, node: Node, deadline: float) -> Connection:
        return _Connection(self._words[node.name])

    def close(self) -> None:
        """Nothing is shared."""


class _Connection:
    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def start(self, script: bytes, deadline: float) -> Channel:
        pipe = subprocess.PIPE
        process = subprocess.Popen([*self._words, "sh", "-s"], stdin=pipe, stdout=pipe, stderr=pipe)
        channel = HereChannel(process)
        channel.send(script)
        return channel

    def close(self) -> None:
        """Each script has a process of its own."""
