"""Real time daemons for the tests, on free ports of 127.0.0.1. None of them touches the clock."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tools.fetch import TOOLS, CannotFetch, fetch


def tool(layer: str, name: str) -> str:
    """A command of the machine or of what tools/fetch.py unpacked; skips where it cannot be had."""
    try:
        fetch()
    except CannotFetch as why:
        pytest.skip(str(why))
    folders = [TOOLS / layer / "usr" / kind for kind in ("sbin", "bin")]
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin", *map(str, folders)])
    found = shutil.which(name, path=path)
    assert found, name
    return found


def libraries(layer: str) -> dict[str, str]:
    """The environment in which the unpacked programs of a layer find their libraries."""
    folders = [str(p.parent) for p in (TOOLS / layer).glob("usr/lib/*/*.so*")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(set(folders)))}


def free_port() -> int:
    """A UDP port of 127.0.0.1 that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


class Chronyd:
    """A `chronyd -x`: it serves its time on `address` and `port`, and answers chronyc."""

    def __init__(self, folder: Path, address: str, *config: str) -> None:
        """Start it in a new folder.

        address: of 127.0.0.0/8; of its own, for a source that follows our own is refused as a loop.
        config: lines of chrony.conf, the sources among them.
        """
        folder.mkdir(mode=0o700)
        self.address, self.port, self._command_port = address, free_port(), free_port()
        lines = [
            f"port {self.port}",
            f"bindaddress {address}",
            "allow 127.0.0.0/8",
            f"cmdport {self._command_port}",
            "bindcmdaddress 127.0.0.1",
            "bindcmdaddress /",
            f"pidfile {folder}/pid",
            *config,
        ]
        (folder / "chrony.conf").write_text("\n".join(lines) + "\n")
        user = pwd.getpwuid(os.geteuid()).pw_name
        command = [tool("chrony", "chronyd"), "-x", "-U", "-d", "-u", user]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, "-f", str(folder / "chrony.conf")],
                stdout=log,
                stderr=log,
                env=libraries("chrony"),
            )

    def source(self, *words: str) -> str:
        """The line of chrony.conf by which another follows this one."""
        options = " ".join(["iburst minpoll 0 maxpoll 2", *words])
        return f"server {self.address} port {self.port} {options}"

    @property
    def server(self) -> str:
        """How the option `reference` names it."""
        return f"{self.address}:{self.port}"

    def chronyc(self) -> str:
        """The words that start chronyc for this daemon, in sh."""
        environment = libraries("chrony")["LD_LIBRARY_PATH"]
        program = tool("chrony", "chronyc")
        return f"LD_LIBRARY_PATH={environment} {program} -h 127.0.0.1 -p {self._command_port}"

    def wait_until(self, word: str, command: str = "tracking", within: float = 60) -> None:
        """Until chronyc's answer contains the word."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            said = subprocess.run(
                ["sh", "-c", f"{self.chronyc()} -n -c {command}"], capture_output=True, text=True
            ).stdout
            if word in said:
                return
            time.sleep(0.2)
        raise AssertionError(
            f"chronyc {command} says {said!r}, no {word!r}: {self.log.read_text()}"
        )

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def chronyds(folder: Path) -> Iterator[dict[str, Chronyd]]:
    """A server, others that are off against it by what they are called, and who follows them."""
    made: dict[str, Chronyd] = {}

    def start(name: str, *config: str) -> None:
        made[name] = Chronyd(folder / str(len(made)), f"127.77.0.{len(made) + 1}", *config)

    nobody = f"server 127.0.0.1 port {free_port()} iburst minpoll 0 maxpoll 2"
    try:
        start("good", "local stratum 3")
        start("0.7", made["good"].source("offset 0.7"))
        start("3", made["good"].source("offset 3"))
        start("follows good", made["good"].source())
        start("follows 0.7", made["0.7"].source())
        start("follows 3", made["3"].source())
        start("follows all", *(made[name].source() for name in ("good", "0.7", "3")), nobody)
        start("follows nobody", nobody)
        start("has no source")
        start("follows itself", "local stratum 10")
        for name in ("0.7", "3", "follows good", "follows 0.7", "follows 3"):
            made[name].wait_until(",Normal")
        yield made
    finally:
        for daemon in made.values():
            daemon.close()


class Answers:
    """An NTP server of our own making, for answers that no real server gives on request."""

    def __init__(self, answer: Sequence[int]) -> None:
        """answer: leap, mode, stratum and reference identifier of each answer."""
        self._answer = answer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])

    def one(self) -> None:
        """Wait for a request and answer it."""
        request, client = self._socket.recvfrom(256)
        leap, mode, stratum, reference = self._answer
        head = bytes([leap << 6 | 4 << 3 | mode, stratum, 0, 0xEC]) + bytes(8)
        now = request[40:48]  # its own time of sending: we are right by its clock
        self._socket.sendto(head + reference.to_bytes(4, "big") + now * 4, client)
        self._socket.close()
