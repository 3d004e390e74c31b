"""The allocation of Slurm in which nodes may be asked.

In a job, its nodes are what may be asked. Outside of one, the wanted nodes that are idle are
allocated, whole and at once or not at all: nobody's work is waited for, and none is held up for
longer than the questions take.
"""

import contextlib
import os
import select
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from clustercheck.fold import fold
from clustercheck.node import Node
from clustercheck.transport.slurm_says import (
    COMMAND_SECONDS,
    Listed,
    Refused,
    SlurmTrouble,
    count_of,
    hides_gpus,
    job_gpus,
    job_nodes,
    known_nodes,
    words_of,
)

# An idle node is allocated in the controller's next turn, which is every few seconds.
IMMEDIATE_SECONDS = 8
MOST_TRIES = 12


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
