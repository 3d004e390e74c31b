"""What the fan-out is measured on: one sshd on loopback that is reached under many addresses.

The sshd is the tests' own (tests/host.py), on 127.0.0.0/8 alone. Every address has its own line in
known_hosts, so host keys are verified. All peers send the script that clustercheck itself sends.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.host import Host, make_keys
from tools.fetch import TOOLS, fetch

PROJECT = Path(__file__).resolve().parent.parent
CLUSTERCHECK = PROJECT / ".venv/bin/clustercheck"
CHECKS = "selinux,tmp"  # whose script has some 20 KB; nothing is asked of the network
DONE = "- done"  # stands, behind the random mark, in the last line of each answer

# The kex that all peers have; OpenSSH's default of today costs its client 70 ms more.
SSH_CONFIG = """Host *
  Port {port}
  User {user}
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
  KexAlgorithms curve25519-sha256
"""


@dataclass(frozen=True)
class Rig:
    """The files and words that peers need.

    home: a home directory whose .ssh is that of the rig.
    script: what a node is sent.
    """

    folder: Path
    home: Path
    port: int
    user: str
    key: Path
    known_hosts: Path
    ssh_config: Path
    script: Path
    addresses: tuple[str, ...]

    def inventory(self, nodes: int, dead: int = 0, rest: str = "") -> Path:
        """An inventory of so many nodes; the first `dead` of them are where nothing answers."""
        lines = [f"node{i:05} host={a}" for i, a in enumerate(self.addresses[:nodes])]
        # 240.0.0.0/4 is routed nowhere; a packet filter that drops is not to be had without root.
        lines[:dead] = [f"node{i:05} host=198.51.100.{i + 1}" for i in range(dead)]
        words = f"user={self.user}\nport={self.port}\nkey={self.key}\n"
        path = self.folder / f"inventory-{nodes}-{dead}.ini"
        path.write_text("[node]\n" + "\n".join(lines) + f"\n[all:vars]\n{words}{rest}")
        return path

    def words(self) -> list[str]:
        """What makes clustercheck independent of the caller's own ~/.ssh."""
        return ["--known-hosts", str(self.known_hosts), "-F", os.devnull]


@contextmanager
def rig(nodes: int) -> Iterator[Rig]:
    """Bring it up for so many addresses; all is gone at the end."""
    fetch()
    os.environ["PATH"] += os.pathsep + str(TOOLS / "bin")
    with tempfile.TemporaryDirectory(prefix="clustercheck-bench-") as name:
        folder = Path(name)
        (folder / "keys").mkdir()
        (folder / "host").mkdir()
        keys = make_keys(folder / "keys")
        host = Host(folder / "host", keys, ("MaxStartups 10000", "LoginGraceTime 600"))
        try:
            yield _write(folder, host, nodes)
        finally:
            host.close()


def _write(folder: Path, host: Host, nodes: int) -> Rig:
    addresses = tuple(f"127.{1 + i // 64516}.{i // 254 % 254}.{i % 254 + 1}" for i in range(nodes))
    known_hosts = folder / "known_hosts"
    known_hosts.write_text("".join(map(host.known_hosts_line, addresses)))
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    text = SSH_CONFIG.format(
        port=host.port, user=host.user, key=host.keys.plain, known_hosts=known_hosts
    )
    for path in (folder / "ssh_config", home / ".ssh/config"):
        path.write_text(text)
    (home / ".ssh/known_hosts").write_text(known_hosts.read_text())
    script = folder / "script.sh"
    command = [str(CLUSTERCHECK), "script", "-w", "node", "-c", CHECKS]
    script.write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return Rig(
        folder,
        home,
        host.port,
        host.user,
        host.keys.plain,
        known_hosts,
        folder / "ssh_config",
        script,
        addresses,
    )
