"""What Slurm's commands say of nodes and jobs, for whoever asks nodes through Slurm."""

import contextlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clustercheck.nodeset import NodeSetError, evaluate, expand, shorten

# A controller that is stopped or swamped lets its commands wait.
COMMAND_SECONDS = 30

# Long words of sinfo, without the marks behind them. A planned node waits for the other nodes of
# a job, and may be used until they are there.
FREE = ("idle", "planned")
# sinfo's marks of a node that is not there: no answer, powered down, up or off, rebooting.
ABSENT = "*~#!%@^"


class Refused(NamedTuple):
    """Why a node cannot be asked: a code of `clustercheck.reach`, and what is so."""

    code: str
    message: str


class SlurmTrouble(Exception):
    """Slurm itself gives no answer; the message is its words."""


@dataclass
class Listed:
    """A node as sinfo has it.

    name: NodeName, which srun wants; host, address: NodeHostName and NodeAddr.
    state: a long word, its marks too ("down*"). partitions: those that are up.
    gpus: as `--gres` wants all of them, "gpu:a100:8", or "".
    """

    name: str
    host: str
    address: str
    state: str
    reason: str
    partitions: list[str] = field(default_factory=list)
    gpus: str = ""

    def refused(self) -> Refused | None:
        """Why it cannot be allocated now, or None."""
        word = self.state.rstrip("*~#!%$@^-+")
        reason = f" ({self.reason})" if self.reason not in ("", "none") else ""
        if set(self.state) & set(ABSENT) or word in ("down", "drained", "fail", "unknown"):
            return Refused("slurm_out", f"Slurm gives it no work: {self.state}{reason}")
        if word not in FREE:
            return Refused("slurm_busy", f"Slurm has it in use: {self.state}{reason}")
        if not self.partitions:
            return Refused("slurm_out", "it is in no partition of Slurm that is up")
        return None


def known_nodes() -> dict[str, Listed]:
    """All nodes of Slurm's partitions, by NodeName. Raises SlurmTrouble."""
    told = said(["sinfo", "--all", "-h", "-N", "-o", "%N|%n|%o|%T|%P|%a|%G|%E"])
    found: dict[str, Listed] = {}
    for line in told.splitlines():
        words = line.split("|", 7)
        if len(words) < 8 or not words[0]:  # the rest of a reason of several lines, or no sinfo
            continue
        name, host, address, state, partition, up, gres, reason = words
        node = found.setdefault(name, Listed(name, host, address, state, reason.strip()))
        node.gpus = gpus_of(gres)
        if up == "up":
            # the default one, which has a star, first
            node.partitions.insert(0 if "*" in partition else 99, partition.rstrip("*"))
    if told.strip() and not found:
        raise SlurmTrouble(f"sinfo: its output has no node: {shorten(told.strip())}")
    return found


def gpus_of(gres: str) -> str:
    """The GPUs of "gpu:a100:8(S:0-1),mps:800(S:0)" or "gpu:2(IDX:0,3)", as `--gres` has them."""
    words = re.sub(r"\([^)]*\)", "", gres).split(",")
    return ",".join(word for word in words if re.fullmatch(r"gpu(:[^:]+)?(:[0-9]+)?", word))


def count_of(gpus: str) -> int:
    """How many they are."""
    counts = [word.rpartition(":")[2] for word in gpus.split(",") if word]
    return sum(int(count) if count.isdecimal() else 1 for count in counts)


def job_gpus(job: str) -> dict[str, str]:
    """The GPUs that a job has, by node. Raises SlurmTrouble."""
    return gpus_by_node(said(["scontrol", "show", "job", "--details", "--oneliner", job]))


def gpus_by_node(details: str) -> dict[str, str]:
    """The GPUs by node, from the details of a job."""
    found = {}
    for nodes, gres in re.findall(r" Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)", details):
        with contextlib.suppress(NodeSetError):
            found.update(dict.fromkeys(_unfolded(nodes), gpus_of(gres)))
    return found


def hides_gpus() -> bool:
    """Does a job see no other GPUs than its own? So, where Slurm does not deny it."""
    try:
        told = said(["scontrol", "show", "config"])
    except SlurmTrouble:
        return True
    return not re.search(r"(?im)^ConstrainDevices\s*=\s*no\s*$", told)


def job_nodes(job: str) -> list[str]:
    """The nodes that a running job has now. Raises SlurmTrouble.

    SLURM_JOB_NODELIST would still have those that it has given back.
    """
    told = said(["squeue", "-h", "-j", job, "-o", "%N"]).strip()
    if not told:
        return []
    try:
        return _unfolded(told)
    except NodeSetError as error:
        raise SlurmTrouble(f"squeue gives job {job} the nodes {shorten(told)}") from error


def _unfolded(nodes: str) -> list[str]:
    """The names of a node set; of too many NodeSetError, as of what is no node set."""
    return list(evaluate(nodes, lambda operand: dict.fromkeys(expand(operand))))


def said(
    words: Sequence[str], *, folder: str | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What a command of Slurm prints. Raises SlurmTrouble with its complaint.

    folder: where it runs, if not here. env: its environment, if not ours.
    """
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SlurmTrouble(f"{words[0]} had no answer within {COMMAND_SECONDS} s") from None
    except OSError as error:
        raise SlurmTrouble(f"{words[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise SlurmTrouble(
            words_of(done.stderr or done.stdout) or f"{words[0]}: exit status {done.returncode}"
        )
    return done.stdout


def words_of(stderr: str) -> str:
    """What a command of Slurm complains of, as one line without its own name."""
    lines = [line.partition(": error: ")[2] or line for line in stderr.splitlines()]
    return "; ".join(dict.fromkeys(line.strip() for line in lines if line.strip()))[-500:]
