"""A made-up node with NFS mounts: directories of this machine stand in for what is mounted."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clustercheck import facts, script
from tests.made_up import CHECKS, MadeUpNode, options_of
from tests.shells import sh_folder, shell_words

V4 = (
    "rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,"
    "sec=sys,clientaddr=10.30.0.21,local_lock=none"
)
V3 = (
    "rw,vers=3,rsize=65536,wsize=65536,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,"
    "mountvers=3,local_lock=none"
)


def mount_line(
    target: str,
    *,
    number: int = 44,
    options: str = V4,
    source: str = "nas1:/export",
    top: str = "/",
) -> str:
    """A line of mountinfo."""
    kind = "nfs" if "vers=3" in options else "nfs4"
    return f"{number} 27 0:{number} {top} {target} rw,relatime shared:9 - {kind} {source} {options}"


class Server:
    """A listening socket in place of an NFS server; nobody there speaks NFS."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    @property
    def at(self) -> str:
        """The mount options that lead to it."""
        return f"addr=127.0.0.1,port={self.port}"

    def close(self) -> None:
        self._socket.close()


@contextmanager
def listening() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


class NfsNode(MadeUpNode):
    """Its kernel has the lines that `mounted` was given, before the local ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.file("/proc/sys/kernel/hostname", "node03\n")
        self.file("/proc/uptime", "90200.10 100.00\n")
        self.says("dmesg")
        self.hide("exportfs", "systemd-escape", "journalctl", "quota")
        self.mounted()

    def mounted(self, *lines: str, make: bool = True) -> None:
        """Set the NFS mounts; `make` makes their directories."""
        local = "27 1 8:3 / / rw,relatime shared:1 - ext4 /dev/sda3 rw"
        self.file("/proc/self/mountinfo", "\n".join([local, *lines]) + "\n")
        for line in lines if make else ():
            target = line.split(" ")[4].replace("\\040", " ").replace("\\011", "\t")
            place = self.root / target.replace("\\134", "\\").lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o1777)

    def left(self) -> list[str]:
        """Files of ours that are still there."""
        return [str(path) for path in self.root.rglob(".clustercheck*")]

    def asked(
        self,
        *,
        shell: str = "dash",
        step: script.Step = "light",
        before: Sequence[str] = (),
        home: str = "/nowhere",
        **changed: Any,
    ) -> facts.Told:
        """What a probe tells. before: words that start the shell as somebody else."""
        path = f"{sh_folder(shell)}:{self.bin}:{self.system_path}"
        frame = script.Frame(root=str(self.root), path=path)
        asked = [script.Asked("nfs", CHECKS["nfs"], options_of("nfs", **changed))]
        done = subprocess.run(
            [*before, *shell_words(shell), "-s"],
            input=script.build(frame, asked, step=step).encode(),
            capture_output=True,
            timeout=120,
            env={"HOME": home, "PATH": os.environ["PATH"]},
            check=False,
        )
        reader = facts.Reader(frame.mark, time.time)
        reader.feed(done.stdout)
        assert reader.done, done.stderr.decode(errors="replace")
        return reader.told["nfs"]

    def facts(self, **changed: Any) -> dict[str, str]:
        """The facts of `asked`; the probe must come to its own end, without an error."""
        told = self.asked(**changed)
        assert told.whole and told.error == "", told
        return dict(told.facts)
