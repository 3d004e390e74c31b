"""What the command line asks for, as values: which nodes and checks, by what way, in what time.

It loads next to nothing, so that a command that need not ask anybody stays quick.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustercheck.errors import UsageError


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for; "" means that it does not say.

    nodes, exclude: node sets as text; nodes is None where -w is not given, for an empty -w is an
        empty shell variable and must not mean all. checks, skip: names joined by commas.
    options: texts of -o. profile: its name; -c is nearer than the profile's checks.
    """

    inventory: Path | None = None
    nodes: str | None = None
    exclude: str = ""
    checks: str = ""
    skip: str = ""
    options: Sequence[str] = ()
    profile: str = ""


@dataclass(frozen=True)
class Way:
    """What the command line says about SSH.

    defaults: user, port, key, jump and become, for nodes that say nothing themselves.
    ssh: "paramiko", or "openssh" for this machine's own.
    via: "ssh", or "srun" for steps of Slurm, for which of the rest only `become` counts.
    """

    defaults: Mapping[str, str | int]
    ssh_config: Path | None
    known_hosts: Path | None
    host_keys: str
    ssh: str
    password: str = field(repr=False)
    passphrase: str = field(repr=False)
    connect_timeout: float
    via: str = "ssh"

    def __post_init__(self) -> None:
        if self.via not in ("ssh", "srun"):
            raise UsageError(f"--via is ssh or srun, not {self.via!r}")
        if self.via == "srun" and not shutil.which("srun"):
            raise UsageError("--via srun: there is no srun on this machine's PATH")
        if self.host_keys not in ("strict", "accept-new"):
            raise UsageError(f"--host-keys is strict or accept-new, not {self.host_keys!r}")
        if self.ssh not in ("paramiko", "openssh"):
            raise UsageError(f"--ssh is paramiko or openssh, not {self.ssh!r}")
        if self.ssh == "openssh" and not shutil.which("ssh"):
            raise UsageError("--ssh openssh: there is no ssh on this machine's PATH; install it")
        if self.ssh == "openssh" and (self.password or self.passphrase):
            raise UsageError(
                "--ssh openssh: ssh takes no password or passphrase from here; load the key into "
                "an agent"
            )
        become = self.defaults["become"]
        if become not in ("", "sudo"):
            raise UsageError(f"--become: sudo is the only way, not {become!r}")
        # read as if empty, a name with a slip in it would be blamed on the nodes
        if self.ssh_config and not self.ssh_config.expanduser().exists():
            raise UsageError(
                f"-F: there is no file {str(self.ssh_config)!r}; /dev/null stands for none"
            )
        known = self.known_hosts
        if known and self.host_keys == "strict" and not known.expanduser().exists():
            hint = "--host-keys accept-new would make it"
            raise UsageError(f"--known-hosts: there is no file {str(known)!r}; {hint}")


@dataclass(frozen=True)
class Limits:
    """What the command line says about limits; 0 leaves one to us, None is no limit. Seconds."""

    parallel: int
    processes: int
    node_seconds: float
    max_seconds: float | None
    heavy_parallel: int
