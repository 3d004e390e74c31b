"""Brings a cluster up on this machine and takes it down again.

All of it hangs on one process, the head's process 1: the nodes' processes, mounts and interfaces
end with it, however we end. The machine's own network, files, clock and kernel are not touched.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.host import LESS, Keys
from tests.lab.ending import born, end
from tests.lab.layout import cables, own_files, write_common, write_logins
from tests.lab.spec import (
    FIRST,
    FIRST_GUEST,
    Spec,
    address,
    address6,
    data_address,
    services,
)
from tools.fetch import TOOLS, program

HERE = Path(__file__).parent
LAYERS = ("root", "chrony", "dns")  # what the services and most nodes are made of
OWN = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
SH = ["/bin/sh", "-eus"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class DidNotComeUp(Exception):
    """A node, or all of it; the message has what it said."""


class Lab:
    """A cluster that is up.

    numbers: of the nodes by name; `address(number)` is the address.
    inventory, known_hosts, ssh_config: files for clustercheck and ssh, to be used in the head.
    """

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        specs: Sequence[Spec],
        *,
        guests: Sequence[Spec] = (),
        stays: bool = False,
    ) -> None:
        """Bring it up in an empty folder; raises DidNotComeUp.

        guests: nodes that guests.py brings up afterwards.
        stays: it outlives this process, until `end(folder)`; else it ends with it.
        """
        self.folder = folder
        self.keys = keys
        self.memory = folder / "memory"  # the head's: others see an empty folder
        self.numbers = {spec.name: FIRST + place for place, spec in enumerate(specs)}
        self.numbers |= {spec.name: FIRST_GUEST + place for place, spec in enumerate(guests)}
        self.inventory = folder / "inventory.ini"
        self.known_hosts = folder / "known_hosts"
        self.ssh_config = folder / "ssh_config"
        self._pids: dict[str, int] = {}
        self._processes: list[subprocess.Popen[str]] = []
        write_common(folder, keys)
        try:
            layers = dict.fromkeys([*LAYERS, *(name for spec in specs for name in spec.layers)])
            self.head = self._start_head(layers, stays=stays)
            (folder / "pid").write_text(f"{self.head} {born(self.head)}\n")
            named = {spec.name: (self.numbers[spec.name], spec) for spec in [*specs, *guests]}
            # The servers first: what follows them is to find them there.
            self._start_nodes(services(named))
            self._start_nodes({self.numbers[spec.name]: spec for spec in specs})
            self._settle(specs)
        except BaseException:
            self.close()
            raise
        write_logins(folder, keys, self.numbers, [*specs, *guests])

    def close(self) -> None:
        """End all of it."""
        end(self.folder)
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            process.wait(60)

    def in_head(self, words: Sequence[str]) -> list[str]:
        """The words that start a command in the head: its network, the machine's other files."""
        enter = ["--net", "--mount", "--uts", f"--wd={os.getcwd()}", "--target", str(self.head)]
        return [_needed("setpriv"), LESS, _needed("nsenter"), *enter, *words]

    def in_node(self, name: str, words: Sequence[str]) -> list[str]:
        """The words that start a command on a node, as root and without a login."""
        enter = ["--net", "--mount", "--uts", "--ipc", "--pid", "--root", "--wd=/", "--target"]
        target = [*enter, str(self._pids[name])]
        return [_needed("setpriv"), LESS, _needed("nsenter"), *target, *words]

    def run(self, name: str, script: str, *, timeout: float = 60) -> str:
        """What a script in sh prints that root runs on a node; it has to succeed."""
        return _run(self.in_node(name, SH), script, timeout, where=name)

    def login(self, name: str, script: str, *, timeout: float = 60) -> str:
        """What a script in sh prints that root runs on a node, by ssh; it has to succeed."""
        ssh = [_needed("ssh"), "-F", str(self.ssh_config), "-o", "BatchMode=yes"]
        words = [*ssh, address(self.numbers[name]), "sh", "-eus"]
        return _run(self.in_head(words), script, timeout, where=name)

    def run_in_head(self, script: str, *, timeout: float = 60) -> str:
        """The same in the head, where the switches are (`login3` is a port: see `port`)."""
        return _run(self.in_head(SH), script, timeout, where="the head")

    def port(self, name: str) -> str:
        """The switch port of a node on the network for logins; on that for data: "data" for it."""
        return f"login{self.numbers[name]}"

    def unplug(self, name: str) -> None:
        """Pull the cable of the network for logins."""
        self.run_in_head(f"ip link set {self.port(name)} down")

    def plug(self, name: str) -> None:
        """Put it back."""
        self.run_in_head(f"ip link set {self.port(name)} up")

    def cut_power(self, name: str) -> None:
        """The node is gone from one moment to the next."""
        os.kill(self._pids[name], signal.SIGKILL)

    def _start_head(self, wanted: Iterable[str], *, stays: bool) -> int:
        layers = [str(TOOLS / layer) for layer in wanted if (TOOLS / layer).exists()]
        command = [_needed("setpriv"), LESS, _needed("unshare"), *OWN]
        command += ["sh", str(HERE / "head-init.sh"), str(self.folder), *layers]
        process = self._start("head", command, stays=stays)
        return self._pid_told(process, "head")

    def _start(
        self, name: str, command: Sequence[str], *, stays: bool = False, cwd: str | None = None
    ) -> "subprocess.Popen[str]":
        stdin = subprocess.PIPE
        if stays:  # a pipe that never ends, for who reads it may write to it as well
            os.mkfifo(self.folder / "stdin")
            stdin = os.open(self.folder / "stdin", os.O_RDWR)
        with (self.folder / "log" / name).open("w") as log:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=cwd,
                start_new_session=True,  # Ctrl-C is for us to act on
            )
        if stays:
            os.close(stdin)
        self._processes.append(process)
        return process

    def _pid_told(self, process: "subprocess.Popen[str]", name: str) -> int:
        assert process.stdout
        told = process.stdout.readline()
        if not told.strip().isdigit():
            raise DidNotComeUp(f"{name}: {self.log(name)}")
        return int(told)

    def log(self, name: str) -> str:
        """What it said on standard error while it came up."""
        return (self.folder / "log" / name).read_text(errors="replace")

    def _start_nodes(self, specs: Mapping[int, Spec]) -> None:
        """All at once: the roots side by side, the cables in one go, then the rest."""
        processes = {}
        for number, spec in specs.items():
            here = self._write_node(number, spec)
            init = ["sh", "-c", 'cd "$1" && exec sh "$2" "$3"', "node", here]
            init += [str(HERE / "node-init.sh"), str(self.folder / "common")]
            processes[number] = self._start(spec.name, self._apart([*OWN, *init]))
        lines = []
        for number, spec in specs.items():
            self._pids[spec.name] = self._pid_told(processes[number], spec.name)
            lines += cables(number, spec, self._pids[spec.name])
        self.batch(lines)
        for process in processes.values():
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.close()
        for number, spec in specs.items():
            stdout = processes[number].stdout
            assert stdout
            if stdout.readline() != "up\n":
                raise DidNotComeUp(f"{spec.name}: {self.log(spec.name)}")
            stdout.close()

    def _apart(self, words: Sequence[str]) -> list[str]:
        """The words that start a process that the head's end ends; words: of unshare."""
        enter = ["--net", "--mount", "--uts", "--ipc", "--pid", "--target", str(self.head)]
        return [_needed("setpriv"), LESS, _needed("nsenter"), *enter, _needed("unshare"), *words]

    def start(self, name: str, words: Sequence[str]) -> None:
        """Start a node otherwise; words: of unshare, with a command that tells its process id."""
        self._pids[name] = self._pid_told(self._start(name, self._apart(words)), name)

    def seen(self, path: Path) -> Path:
        """A file of the head's memory as it is seen from here."""
        return Path(f"/proc/{self.head}/root{path}")

    def is_up(self, name: str) -> bool:
        """Whether a node has its power still."""
        return bool(born(self._pids[name]))

    def freeze(self, name: str) -> None:
        """A guest stands still from one moment to the next."""
        os.kill(self._pids[name], signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """It goes on."""
        os.kill(self._pids[name], signal.SIGCONT)

    def _settle(self, specs: Sequence[Spec], within: float = 60) -> None:
        waiting = {
            spec.name: subprocess.Popen(
                self.in_node(spec.name, ["/bin/sh", "-c", spec.settled]),
                env={"PATH": PATH},
                stderr=subprocess.DEVNULL,
            )
            for spec in specs
            if spec.settled
        }
        end_by = time.monotonic() + within
        for name, process in waiting.items():
            try:
                process.wait(max(end_by - time.monotonic(), 0))
            except subprocess.TimeoutExpired as trouble:
                raise DidNotComeUp(f"{name} has not come to rest in {within:g} s") from trouble

    def _write_node(self, number: int, spec: Spec) -> str:
        """Fill its folder in the head's memory; returns where the head sees it."""
        here = self.memory / "nodes" / spec.name
        there = self.seen(here)
        (there / "upper/tmp").mkdir(parents=True)
        # Below its own /tmp there is none of the machine's, should a test unmount it.
        os.setxattr(there / "upper/tmp", "trusted.overlay.opaque", b"y")
        layers = [name for name in (*spec.layers, "root") if (TOOLS / name).exists()]
        settings = {
            "name": spec.name,
            "address": address(number),
            "address6": address6(number),
            "data": data_address(number),
            "lower": ":".join([*(f"../../layers/{name}" for name in layers), "/"]),
            "tmp": spec.tmp,
            "memory": spec.memory,
            "sshd": "yes" if spec.sshd else "no",
        }
        lines = [f"{key}={shlex.quote(value)}\n" for key, value in settings.items()]
        (there / "settings").write_text("".join(lines))
        (there / "before").write_text(spec.before + "\n")
        (there / "after").write_text(spec.after + "\n")
        for path, text in {**own_files(number, spec.name), **spec.files}.items():
            file = there / "files" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o600 if path == "etc/ssh/host_key" else 0o644)
        return str(here)

    def batch(self, lines: Sequence[str]) -> None:
        """Lines for `ip -batch` in the head; raises DidNotComeUp."""
        command = self.in_head([_needed("ip"), "-batch", "-"])
        text = "\n".join(lines) + "\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise DidNotComeUp(f"ip: {done.stderr}")


def why_not() -> str:
    """Why there can be no cluster on this machine; "" where there can."""
    if os.geteuid() != 0:
        return "the laboratory needs root: run the tests as root"
    if sys.platform != "linux" or not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "cannot here: the laboratory is made of Debian's or Ubuntu's packages"
    command = [_needed("unshare"), *OWN, "true"]
    if subprocess.run(command, capture_output=True).returncode:
        return "cannot here: root may not make namespaces on this machine"
    return ""


def _needed(command: str) -> str:
    path = program(command)
    if path is None:
        raise DidNotComeUp(f"{command} is absent: tools/fetch.py gets it, or says what to install")
    return str(path)


def _run(command: Sequence[str], script: str, timeout: float, *, where: str) -> str:
    environment = {"PATH": f"{PATH}:{TOOLS / 'bin'}", "HOME": "/root", "LC_ALL": "C"}
    done = subprocess.run(
        command,
        input=script,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode} in {where}: {done.stderr}")
    return done.stdout
