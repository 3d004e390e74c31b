"""A real sshd for the tests, on a free port of every loopback address.

As root, it runs in namespaces of its own: it has its own users, files, /tmp and processes, all in
memory, and may change neither the machine's clock nor its kernel. Otherwise it is an sshd of the
calling user, who is its only user; tests that need more call `Host.need_own_root`.
"""

import getpass
import os
import random
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.fetch import TOOLS, program

INIT = Path(__file__).with_name("host-init.sh")

PASSWORD = "open sesame"  # alice's and paula's
# openssl passwd -6 -salt clustercheck 'open sesame'
PASSWORD_HASH = (
    "$6$clustercheck$glZLromRdwnEZsTLgNZPwPDqe1hWhmYPSJ7GYX5lkzpjfxEO.s.gpqmD8hi3GySh9BIaetbeLzi54"
    "OdH1m26b0"
)
PASSPHRASE = "a fine day"  # of Keys.locked

# name -> (shell, password hash). "*" is no password and, other than "!", no locked account.
USERS = {
    "alice": ("/bin/bash", PASSWORD_HASH),
    "carol": ("/usr/bin/tcsh", "*"),
    "dave": ("/bin/dash", "*"),
    "ernie": ("/bin/bash", "*"),  # sudo without a password
    "fiona": ("/usr/bin/fish", "*"),
    "nora": ("/usr/sbin/nologin", "*"),
    "noisy": ("/bin/bash", "*"),  # .bashrc writes on both streams
    "paula": ("/bin/bash", PASSWORD_HASH),  # sudo with her password
}

FILES = {
    "etc/hostname": "node\n",
    "etc/hosts": "127.0.0.1 localhost node\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "etc/pam.d/sudo": (
        "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\n"
    ),
    "etc/sudoers": (
        "root ALL=(ALL:ALL) ALL\nernie ALL=(ALL:ALL) NOPASSWD: ALL\npaula ALL=(ALL:ALL) ALL\n"
    ),
    "home/noisy/.bashrc": 'echo "Welcome to node"\necho "module: command not found" >&2\n',
}

NAMESPACES = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
# Even root in the host has no way to the machine's clock and kernel.
LESS = "--bounding-set=-sys_time,-sys_module"

ADDRESSES = ["localhost", "::1", *(f"127.0.0.{last}" for last in range(1, 255))]


@dataclass(frozen=True)
class Keys:
    """Private keys, each with its .pub beside it. `plain` and `locked` let any user in."""

    plain: Path
    locked: Path
    stranger: Path
    host: Path


def make_keys(folder: Path) -> Keys:
    """Make the keys in an existing folder."""
    keys = Keys(*(folder / name for name in ("plain", "locked", "stranger", "host")))
    for key in (keys.plain, keys.stranger, keys.host):
        make_key(key)
    make_key(keys.locked, PASSPHRASE)
    return keys


def make_key(path: Path, passphrase: str = "") -> None:
    """Make an Ed25519 key at `path` and `path`.pub."""
    words = ["-q", "-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run([_needed("ssh-keygen"), *words], check=True)


class Host:
    """A running sshd.

    port: on every address of 127.0.0.0/8, and on ::1 where `ipv6`.
    user: somebody with a POSIX shell whom `keys` let in: alice, or oneself.
    known_hosts: a file with its host key for each of ADDRESSES.
    own_root: it has a root, users and processes of its own.
    ipv6: the machine has IPv6.
    """

    def __init__(
        self, folder: Path, keys: Keys, config: Sequence[str] = (), layers: Sequence[str] = ()
    ) -> None:
        """Start it in an empty folder.

        config: lines of sshd_config; they win over ours ("MaxStartups 2").
        layers: what more of tools/fetch.py's to put over its root: "chrony", "ntpsec".
        """
        self.own_root = os.geteuid() == 0
        self.user = "alice" if self.own_root else getpass.getuser()
        self.ipv6 = len(_loopbacks()) == 2
        self.keys = keys
        self.known_hosts = folder / "known_hosts"
        self._folder = folder
        self._log = folder / "sshd.log"
        self._inside = 0
        for _ in range(10):
            self.port = _free_port()
            self._process = self._start(config, layers)
            if self._listens():
                break
            self.close()
        else:
            raise RuntimeError(f"no port was free for sshd:\n{self.log()}")
        self.known_hosts.write_text("".join(map(self.known_hosts_line, ADDRESSES)))

    def known_hosts_line(self, address: str, key: Path | None = None) -> str:
        """The line of known_hosts for an address; `key` stands in for the right host key."""
        public = Path(f"{key or self.keys.host}.pub").read_text()
        kind, number, _ = public.split(" ", 2)
        return f"[{address}]:{self.port} {kind} {number}\n"

    def need_own_root(self) -> None:
        """Skip the test where there is nobody on the host but oneself."""
        if not self.own_root:
            pytest.skip("needs users and files of its own on the host: run the tests as root")

    def run(self, script: str, *, timeout: float = 60) -> str:
        """What a script in sh prints that root runs in the host; it has to succeed.

        timeout: in seconds.
        """
        self.need_own_root()
        enter = ["--mount", "--uts", "--ipc", "--pid", "--root", "--wd=/", "--target"]
        command = [_needed("setpriv"), LESS, _needed("nsenter"), *enter, str(self._inside)]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C"}
        done = subprocess.run(
            [*command, "/bin/sh", "-s"],
            input=script,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode} in the host: {done.stderr}")
        return done.stdout

    def log(self) -> str:
        """What sshd has said so far."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End it and everything in it."""
        if self._process.stdin and self._process.stdout:
            self._process.stdin.close()  # for process 1 this is the end, and for all in there
            self._process.stdout.close()
        else:
            self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self, config: Sequence[str], layers: Sequence[str]) -> subprocess.Popen[str]:
        if self.own_root:
            return self._start_in_own_root(config, layers)
        settings = _settings(config, self.port, self._folder)
        for name, text in _identity(self.keys).items():
            _write(self._folder / name, text, 0o600)
        _write(self._folder / "sshd_config", settings)
        sshd = [_needed("sshd"), "-D", "-e", "-f", str(self._folder / "sshd_config")]
        # sshd ends with us, however we end.
        command = [_needed("setpriv"), "--pdeathsig=TERM", *sshd]
        with self._log.open("w") as log:
            return subprocess.Popen(command, stderr=log, text=True)

    def _start_in_own_root(
        self, config: Sequence[str], layers: Sequence[str]
    ) -> subprocess.Popen[str]:
        unshare = [_needed("unshare"), *NAMESPACES]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode:
            pytest.skip("cannot here: root may not make namespaces on this machine")
        (self._folder / "memory").mkdir(exist_ok=True)
        files = self._folder / "files"
        write_files(files, self.keys)
        _write(files / "etc/ssh/sshd_config", _settings(config, self.port, Path("/etc/ssh")))
        over = [TOOLS / layer for layer in ("root", *layers) if (TOOLS / layer).exists()]
        init = ["sh", str(INIT), str(self._folder), *map(str, over)]
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [_needed("setpriv"), LESS, *unshare, *init],
                stdin=subprocess.PIPE,  # it ends when this is closed, however we end
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout
        number = process.stdout.readline()
        if not number:
            raise RuntimeError(f"the host did not come up:\n{self.log()}")
        self._inside = int(number)
        return process

    def _listens(self) -> bool:
        """Wait until it does; False where the port was taken meanwhile."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if "Address already in use" in self.log():
                return False
            if self.log().count("Server listening on") == len(_loopbacks()):
                return True
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        self.close()
        raise RuntimeError(f"sshd did not start:\n{self.log()}")


def _needed(command: str) -> str:
    path = program(command)
    if not path:
        pytest.skip(f"{command} is absent: tools/fetch.py gets it, or says what to install")
    return str(path)


def _loopbacks() -> list[str]:
    """The addresses to listen on: all, as sshd knows no networks, but on the loopback device."""
    six = Path("/proc/net/if_inet6")
    return ["0.0.0.0", "[::]"] if six.exists() and " lo\n" in six.read_text() else ["0.0.0.0"]


def _free_port() -> int:
    """A port that nobody listens on, below those that the kernel gives to connections."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as trial:
            try:
                trial.bind(("", port))
            except OSError:
                continue
            return port


def _settings(config: Sequence[str], port: int, folder: Path) -> str:
    """sshd_config; of two lines with one keyword, sshd takes the first."""
    lines = [
        *config,
        *(f"ListenAddress {address}:{port} rdomain lo" for address in _loopbacks()),
        f'HostKey "{folder}/host_key"',
        f'AuthorizedKeysFile "{folder}/authorized_keys"',
        f"StrictModes {'yes' if os.geteuid() == 0 else 'no'}",
        "PidFile none",
        "UsePAM no",
        "LogLevel VERBOSE",
    ]
    if not any(line.startswith("MaxStartups") for line in config):
        lines.append("MaxStartups 500")  # of this keyword, sshd takes the last line
    if sshd_version() >= (9, 8):
        lines.append("PerSourcePenalties no")  # all tests come from one address
    return "\n".join(lines) + "\n"


def sshd_version() -> tuple[int, int]:
    told = subprocess.run([_needed("sshd"), "-V"], capture_output=True, text=True).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", told)  # before 9.2, among complaints about -V
    if not found:
        raise RuntimeError(f"sshd -V names no version: {told}")
    return int(found[1]), int(found[2])


def _identity(keys: Keys) -> dict[str, str]:
    let_in = [Path(f"{key}.pub").read_text() for key in (keys.plain, keys.locked)]
    return {"host_key": keys.host.read_text(), "authorized_keys": "".join(let_in)}


def write_files(files: Path, keys: Keys) -> None:
    """Everything that the host has and the machine has not."""
    accounts = ["root:x:0:0::/root:/bin/bash", "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin"]
    accounts.append("nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin")
    groups = ["root:x:0:", "tty:x:5:", "nogroup:x:65534:"]
    hashes = ["root:*:19000::::::", "sshd:*:19000::::::", "nobody:*:19000::::::"]
    for number, (name, (shell, password)) in enumerate(USERS.items(), 2000):
        accounts.append(f"{name}:x:{number}:{number}::/home/{name}:{shell}")
        groups.append(f"{name}:x:{number}:")
        hashes.append(f"{name}:{password}:19000::::::")
        home = files / "home" / name
        home.mkdir(parents=True, exist_ok=True)
        os.chown(home, number, number)
    for name, text in FILES.items():
        _write(files / name, text, 0o440 if name == "etc/sudoers" else 0o644)
    _write(files / "etc/passwd", "\n".join(accounts) + "\n")
    _write(files / "etc/group", "\n".join(groups) + "\n")
    _write(files / "etc/shadow", "\n".join(hashes) + "\n", 0o600)
    for name, text in _identity(keys).items():
        _write(files / "etc/ssh" / name, text, 0o600 if name == "host_key" else 0o644)
    for folder in files.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
    files.chmod(0o755)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)
