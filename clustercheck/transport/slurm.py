"""What Slurm knows of nodes, and the allocation in which they may be asked.

In a job, its nodes are what may be asked. Outside of one, the wanted nodes that are idle are
allocated, whole and at once or not at all: nobody's work is waited for, and none is held up for
longer than the questions take.
"""

import contextlib
import os
import re
import select
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ClusterShell.NodeSet import NodeSet, NodeSetParseError  # type: ignore[import-untyped]

from clustercheck.fold import fold
from clustercheck.node import Node
from clustercheck.nodeset import NodeSetError, evaluate, expand, shorten

# A controller that is stopped or swamped lets its commands wait.
COMMAND_SECONDS = 30

# An idle node is allocated in the controller's next turn, which is every few seconds.
IMMEDIATE_SECONDS = 8
MOST_TRIES = 12

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
    told = _said(["sinfo", "--all", "-h", "-N", "-o", "%N|%n|%o|%T|%P|%a|%G|%E"])
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
    return gpus_by_node(_said(["scontrol", "show", "job", "--details", "--oneliner", job]))


def gpus_by_node(details: str) -> dict[str, str]:
    """The GPUs by node, from the details of a job."""
    found = {}
    for nodes, gres in re.findall(r" Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)", details):
        with contextlib.suppress(NodeSetParseError):
            found.update(dict.fromkeys(NodeSet(nodes), gpus_of(gres)))
    return found


def hides_gpus() -> bool:
    """Does a job see no other GPUs than its own? So, where Slurm does not deny it."""
    try:
        told = _said(["scontrol", "show", "config"])
    except SlurmTrouble:
        return True
    return not re.search(r"(?im)^ConstrainDevices\s*=\s*no\s*$", told)


def job_nodes(job: str) -> list[str]:
    """The nodes that a running job has now. Raises SlurmTrouble.

    SLURM_JOB_NODELIST would still have those that it has given back.
    """
    told = _said(["squeue", "-h", "-j", job, "-o", "%N"]).strip()
    if not told:
        return []
    try:
        return list(evaluate(told, lambda operand: dict.fromkeys(expand(operand))))
    except NodeSetError as error:
        raise SlurmTrouble(f"squeue gives job {job} the nodes {shorten(told)}") from error


def _said(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            words,
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
        raise SlurmTrouble(words_of(done.stderr) or f"{words[0]}: exit status {done.returncode}")
    return done.stdout


def words_of(stderr: str) -> str:
    """What a command of Slurm complains of, as one line without its own name."""
    lines = [line.partition(": error: ")[2] or line for line in stderr.splitlines()]
    return "; ".join(dict.fromkeys(line.strip() for line in lines if line.strip()))[-500:]


@dataclass(frozen=True)
class Place:
    """Where a node is asked: in which job, and by which NodeName.

    gpus: what a step asks for to see the GPUs that the job has there; "" leaves it to Slurm.
    hidden: why there may be GPUs that are not to be seen, or "".
    """

    job: str
    name: str
    gpus: str = ""
    hidden: str = ""


@dataclass
class Places:
    """Where each node is asked, or why it cannot be; `close` gives back what was allocated.

    refused: by the node's own name.
    """

    of: dict[str, Place] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)
    _holders: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def hold(self, holder: "subprocess.Popen[bytes]") -> None:
        """Keep an allocation until `close`."""
        self._holders.append(holder)

    def close(self) -> None:
        """Give back what was allocated."""
        for holder in self._holders:
            let_go(holder)
        self._holders.clear()


def find_places(nodes: Sequence[Node], seconds: float) -> Places:
    """Where the nodes can be asked: in the job that this process is in, or in new ones.

    seconds: how long that takes at most; new jobs have this limit.
    """
    places = Places()
    job = os.environ.get("SLURM_JOB_ID", "")
    try:
        known = known_nodes()
        ours = job_nodes(job) if job else []
    except SlurmTrouble as trouble:
        refused = Refused("no_slurm", str(trouble))
        places.refused.update({node.name: refused for node in nodes})
        return places
    named = _names(nodes, known, places)
    if job:
        gpus = _gpus_in_job(job, [known[name] for name in named.values() if name in ours])
        for node, name in named.items():
            if name in ours:
                places.of[node] = Place(job, name, *gpus[name])
            else:
                told = f"it is not one of this job's nodes, {fold(ours)}"
                places.refused[node] = Refused("slurm_not_ours", told)
        return places
    try:
        _allocate(named, known, seconds, places)
    except BaseException:
        places.close()
        raise
    return places


def _gpus_in_job(job: str, nodes: Sequence[Listed]) -> dict[str, tuple[str, str]]:
    """`Place.gpus` and `Place.hidden` of the nodes of a job."""
    if not any(node.gpus for node in nodes):
        return {node.name: ("", "") for node in nodes}
    try:
        ours = job_gpus(job)
    except SlurmTrouble:
        return {node.name: ("", "which GPUs the job has is not known") for node in nodes}
    hides = hides_gpus()
    found = {}
    for node in nodes:
        gpus = ours.get(node.name, "")
        here, all_of_them = count_of(gpus), count_of(node.gpus)
        few = hides and here < all_of_them
        told = f"the job has {here} of the {all_of_them} GPUs of the node" if few else ""
        found[node.name] = (gpus, told)
    return found


def _names(nodes: Sequence[Node], known: Mapping[str, Listed], places: Places) -> dict[str, str]:
    """NodeName by the nodes' own names: an inventory may have addresses and longer names."""
    also: dict[str, str] = {}
    for entry in known.values():
        for other in (entry.host, entry.address):
            # one address for many nodes (slurmd that share a machine) tells nothing
            also[other] = "" if also.get(other, entry.name) != entry.name else entry.name
    found: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        if node.local:
            continue
        tries = (node.name, node.host, node.name.partition(".")[0], node.host.partition(".")[0])
        name = next((n for n in tries if n in known), "")
        name = name or next((also[n] for n in tries if n and also.get(n)), "")
        if name and name not in taken:
            found[node.name] = name
            taken.add(name)
        elif name:
            told = f"it is Slurm's node {name}, as another of these nodes is"
            places.refused[node.name] = Refused("slurm_unknown", told)
        else:
            told = "Slurm has no node of this name or address in any partition"
            places.refused[node.name] = Refused("slurm_unknown", told)
    return found


def _allocate(
    named: Mapping[str, str], known: dict[str, Listed], seconds: float, places: Places
) -> None:
    own = {name: node for node, name in named.items()}
    left = set(own)

    def leave_out() -> bool:
        """Those that Slurm does not have free: were there any?"""
        gone = {name: known[name].refused() for name in left if known[name].refused()}
        for name, refused in gone.items():
            assert refused
            places.refused[own[name]] = refused
            left.discard(name)
        return bool(gone)

    leave_out()
    words: dict[str, str] = {}
    tried: dict[str, set[str]] = {}  # partitions, by node
    turns = _turns(left, known)
    # a step has no GPU that its job did not ask for
    gpus = {name: known[name].gpus for name in left}
    for _ in range(MOST_TRIES):
        if not turns:
            break
        partition, names = turns.pop(0)
        names &= left
        if not names:
            continue
        job, said = _hold(sorted(names), partition, gpus[min(names)], seconds, places)
        if job:
            places.of.update({own[name]: Place(job, name) for name in names})
            left -= names
            continue
        words.update(dict.fromkeys(names, said))
        for name in names:
            tried.setdefault(name, set()).add(partition)
        with contextlib.suppress(SlurmTrouble):
            known = {**known, **known_nodes()}
        if leave_out():
            turns.append((partition, names))
            continue
        for name in names:
            known[name].partitions = [p for p in known[name].partitions if p not in tried[name]]
        elsewhere = {name for name in names if known[name].partitions}
        if elsewhere and not os.environ.get("SALLOC_PARTITION"):
            turns += _turns(elsewhere, known)
            names -= elsewhere
        if len(names) > 1:  # one of them, or their number, is at fault
            half = sorted(names)[: len(names) // 2]
            turns += [(partition, set(half)), (partition, names - set(half))]
    for name in left:
        said = words.get(name) or "other nodes took all the tries"
        places.refused[own[name]] = Refused("slurm_busy", f"Slurm did not allocate it: {said}")


def _turns(left: Collection[str], known: Mapping[str, Listed]) -> list[tuple[str, set[str]]]:
    """Partitions that together have all the nodes; the nodes of a turn have the same GPUs."""
    turns: list[tuple[str, set[str]]] = []
    for gpus in sorted({known[name].gpus for name in left}):
        alike = {name for name in left if known[name].gpus == gpus}
        if os.environ.get("SALLOC_PARTITION"):
            turns.append(("", alike))
        else:
            turns += _by_partition(alike, known)
    return turns


def _by_partition(left: Collection[str], known: Mapping[str, Listed]) -> list[tuple[str, set[str]]]:
    """Those partitions first that have most of the nodes."""
    turns: list[tuple[str, set[str]]] = []
    rest = set(left)
    while rest:
        having: dict[str, set[str]] = {}
        for name in sorted(rest):
            for partition in known[name].partitions:
                having.setdefault(partition, set()).add(name)
        best = max(having, key=lambda partition: len(having[partition]))
        turns.append((best, having[best]))
        rest -= having[best]
    return turns


def _hold(
    names: Sequence[str], partition: str, gpus: str, seconds: float, places: Places
) -> tuple[str, str]:
    """Allocate nodes whole; returns the job, or why there is none.

    What holds the allocation ends with our end of its standard input, whatever ends us.
    """
    words = [
        "salloc",
        "--job-name=clustercheck",
        f"--nodes={len(names)}",
        f"--nodelist={fold(names)}",
        "--exclusive",
        "--mem=0",
        f"--immediate={IMMEDIATE_SECONDS}",
        f"--time={int(seconds // 60) + 1}",
        "--no-bell",
        *([f"--partition={partition}"] if partition else ()),
        *([f"--gres={gpus}"] if gpus else ()),
        *("sh", "-c", 'echo "$SLURM_JOB_ID"; exec cat'),
    ]
    holder = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert holder.stdout and holder.stderr
    job = ""
    try:
        ready, _, _ = select.select([holder.stdout], [], [], IMMEDIATE_SECONDS + COMMAND_SECONDS)
        if ready:
            job = holder.stdout.readline().decode(errors="replace").strip()
        else:
            holder.terminate()
    except BaseException:
        let_go(holder)
        raise
    if job.isdecimal():
        places.hold(holder)
        return job, ""
    said = holder.stderr.read().decode(errors="backslashreplace")
    let_go(holder)
    complaints = "\n".join(line for line in said.splitlines() if ": error: " in line)
    return "", words_of(complaints or said) or "salloc says nothing of why"


def let_go(holder: "subprocess.Popen[bytes]") -> None:
    """End an allocation."""
    assert holder.stdin and holder.stdout and holder.stderr
    with contextlib.suppress(OSError):
        holder.stdin.close()
    try:
        holder.wait(5)
    except subprocess.TimeoutExpired:
        holder.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            holder.wait(5)
    holder.stdout.close()
    holder.stderr.close()
