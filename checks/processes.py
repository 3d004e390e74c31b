"""Processes that cannot go on, are dead and stay, or belong to nobody's job.

A process that waits in the kernel (state D) cannot be ended by any signal: when its job ends,
Slurm drains the node ("Kill task failed"). For an instant many are in that state; stuck is what
stays in it and never runs for two seconds. Threads of the kernel are left out, since some of them
wait so for ever, and so are processes that were frozen on purpose. Of a process with many threads
the first is looked at.

Strays are processes of ordinary users that lost their parent and belong to no job, container,
service or user's session manager, while their user has no job on the node. They are looked for
where slurmd runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    ok,
    option,
    unknown,
    warn,
)

from ._processes_probe import PROBE

# What a process waits on, by the name of the function in the kernel.
WAITS = (
    (r"_?_?rpc_|nfs\d?_|nfsd", "an NFS server"),
    (r"ptlrpc|ll_|ldlm_|osc_|lov_|cl_", "a Lustre server"),
    (r"fuse_|request_wait_answer", "a file system in user space (FUSE)"),
    (r"cifs_|smb2_|wait_for_response", "an SMB server"),
    (r"cxi|mmfs|gpfs", "GPFS"),
    (r"_?nv\d|nv_|nvidia|uvm_|os_acquire", "the GPU's driver"),
    (r"io_schedule|blk_|jbd2|xfs_|ext4_|submit_bio|bt_get|rq_qos", "a disk"),
    (r"folio_wait|wait_on_page|bit_wait", "a page of a file, on a disk or a file server"),
)
# Frozen on purpose (a suspended job, a paused container), or waiting for a child's start.
BY_DESIGN = re.compile(r"__refrigerator|.*freezer.*|.*vfork.*")
# Control groups of what is not a stray: jobs, containers, services, a user's session manager.
OWNED = re.compile(
    r"slurmstepd|/slurm/|job_|pbs|lsf|docker|libpod|kubepods|containerd|lxc|machine"
    r"|/user@\d{1,10}\.service"
)
SERVICE = re.compile(r"/([^/,]{1,200})\.service(?:[/,]|$)")
NOBODY = 65534
DYNAMIC = range(61184, 65520)  # systemd's own users for services
SIGKILL = 1 << 8


@dataclass(frozen=True)
class Options:
    zombies: Annotated[int, Ge(0)] = option(
        20, "dead processes that nobody collects that may be there", unit="processes"
    )
    strays: Literal["slurmd", "always", "never"] = option(
        "slurmd",
        "where processes of users without a job are looked for: slurmd (where it runs), always,"
        " never",
    )
    stray_minutes: Annotated[int, Ge(0)] = option(
        60, "how old such a process is at least", unit="min"
    )
    first_uid: Annotated[int, Ge(1)] = option(
        1000, "where ordinary users' ids begin (UID_MIN of login.defs)", unit="uid"
    )


class Stuck(NamedTuple):
    """A process in state D; killed: it was told to end and cannot."""

    pid: str
    uid: str
    wait: str
    killed: bool
    command: str


class Stray(NamedTuple):
    """A process without a parent; age in seconds, None where it is not told."""

    pid: str
    uid: int
    age: int | None
    groups: str
    command: str


SEE_WAIT = Remedy(
    "Look at what it waits on: for NFS, whether the server answers and the mount is hard (`cat"
    " /proc/PID/stack` as root, `nfsstat -m`, `dmesg | grep 'not responding'`); for a disk or a"
    " GPU, the kernel's log. It goes on by itself when that comes back; no signal ends it"
    " before. If it does not come back, drain the node and boot it. Where Slurm drained the node"
    " over this (Kill task failed), resume it by hand only after it has gone.",
    "§4.4",
    disturbs=True,
)
SEE_PARENT = Remedy(
    "A dead process goes when its parent collects it or ends; no signal to the dead one helps. See"
    " to the parent: tell its owner, or restart the service when it is convenient. In a container"
    " without an init, start it with one (`docker run --init`).",
    disturbs=True,
)
ASK_OWNER = Remedy(
    "See whose it is and what it does (`ps -fp PID`), and whether it was left behind by a job or"
    " started over SSH; ask its owner before anything is ended. pam_slurm_adopt and"
    " proctrack/cgroup keep such processes from staying. If users may have processes here without"
    " a job, set strays = never for this node or group.",
    "§5.5",
    disturbs=True,
)
SEE_ALL = Remedy(
    "Run it as root (become = sudo), or give the login user the group that hidepid's gid= names."
)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    counts = _counts(facts["counts"])
    if not counts.get("total"):
        yield unknown("hidden", "no process can be seen in /proc", SEE_ALL)
        return
    if facts["seen"] != "all":
        message = "only what the login user runs can be seen (/proc hides the rest: hidepid)"
        yield unknown("hidden", message, SEE_ALL)
        return
    yield _stuck(facts, counts)
    yield _zombies(facts, counts, options)
    if options.strays == "always" or (options.strays == "slurmd" and counts.get("slurmd")):
        yield _strays(facts, options)


def _counts(text: str) -> dict[str, int]:
    words = text.split(" ")
    pairs = zip(words[::2], words[1::2], strict=False)
    return {name: int(n) for name, n in pairs if re.fullmatch("[0-9]{1,9}", n)}


def _stuck(facts: Facts, counts: dict[str, int]) -> Finding:
    found = []
    for line in facts["stuck"].splitlines():
        words = line.split(" ", 4)
        if len(words) == 5 and words[0].isdigit():
            pid, uid, wait, signals, command = words
            if not BY_DESIGN.fullmatch(wait):
                found.append(Stuck(pid, uid, wait, _is_killed(signals), command))
        elif line:
            return unknown("stuck", f"what the probe found cannot be read: {line[:80]!r}")
    if not found:
        message = f"nothing of {counts['total']} is stuck in the kernel (state D)"
        return ok("stuck", message, value=Quantity(0, "processes"))
    each = "; ".join(_told(process) for process in found[:5])
    seen = counts.get("waiting", 0)
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    if seen > 40:  # as many as were looked at
        more += f"; {seen} wait in all"
    message = f"{len(found)} stuck in the kernel (state D) for 2 s and more: {each}{more}"
    return warn("stuck", message, SEE_WAIT, value=Quantity(len(found), "processes"))


def _is_killed(signals: str) -> bool:
    masks = [mask for mask in signals.split("/") if re.fullmatch("[0-9a-f]{1,32}", mask)]
    return any(int(mask, 16) & SIGKILL for mask in masks)


def _told(process: Stuck) -> str:
    what = next((w for pattern, w in WAITS if re.match(pattern, process.wait)), "")
    where = "on what, only root is told" if process.wait == "-" else f"in {process.wait[:60]}"
    if what:
        where = f"for {what} ({process.wait[:60]})"
    of = "" if process.uid == "-" else f" of uid {process.uid[:12]}"
    killed = ", and cannot be ended though it was killed" if process.killed else ""
    return f"{process.command[:40]} ({process.pid}{of}) waits {where}{killed}"


def _zombies(facts: Facts, counts: dict[str, int], options: Options) -> Finding:
    parents: dict[tuple[str, str], list[str]] = {}
    for line in facts["zombies"].splitlines():
        words = line.split(" ", 2)
        if len(words) == 3 and words[0].isdigit():
            above, _, command = words[2].partition("/")
            parents.setdefault((words[1], above), []).append(command)
        elif line:
            return unknown("zombies", f"what the probe found cannot be read: {line[:80]!r}")
    number = sum(map(len, parents.values()))
    if number >= 400:  # as many as were looked at
        number = max(number, counts.get("dead", 0))
    most = sorted(parents.items(), key=lambda item: -len(item[1]))[:4]
    of = ", ".join(
        f"{len(dead)} of {above[:40]} ({pid}; {dead[0][:40]})" for (pid, above), dead in most
    )
    value = Quantity(number, "processes")
    if number > options.zombies:
        message = f"{number} are dead and not collected by their parents: {of}; should be"
        return warn("zombies", f"{message} {options.zombies} at most", SEE_PARENT, value=value)
    if number:
        return ok("zombies", f"{number} dead and not collected: {of}", value=value)
    return ok("zombies", "none is dead and not collected", value=value)


def _strays(facts: Facts, options: Options) -> Finding:
    found: dict[int, list[Stray]] = {}
    for line in facts["strays"].splitlines():
        words = line.split(" ", 4)
        if len(words) != 5 or not re.fullmatch("[0-9]{1,10}", words[1]):
            return unknown("strays", f"what the probe found cannot be read: {line[:80]!r}")
        age = int(words[2]) if re.fullmatch("[0-9]{1,10}", words[2]) else None
        stray = Stray(words[0], int(words[1]), age, words[3], words[4])
        if _is_stray(stray, options):
            found.setdefault(stray.uid, []).append(stray)
    number = sum(map(len, found.values()))
    if not number:
        return ok(
            "strays", "no user has a process here without a job", value=Quantity(0, "processes")
        )
    each = "; ".join(
        f"uid {uid}: "
        + ", ".join(_one(stray) for stray in some[:3])
        + (f" and {len(some) - 3} more" if len(some) > 3 else "")
        for uid, some in list(found.items())[:4]
    )
    more = f"; and of {len(found) - 4} more users" if len(found) > 4 else ""
    message = f"left by users without a job here: {each}{more}; should be none"
    return warn("strays", message, ASK_OWNER, value=Quantity(number, "processes"))


def _one(stray: Stray) -> str:
    age = "" if stray.age is None else f", {stray.age / 3600:.1f} h old"
    return f"{stray.command[:40]} ({stray.pid[:10]}{age})"


def _is_stray(stray: Stray, options: Options) -> bool:
    if stray.uid < options.first_uid or stray.uid == NOBODY or stray.uid in DYNAMIC:
        return False
    if stray.age is not None and stray.age < options.stray_minutes * 60:
        return False
    if OWNED.search(stray.groups):
        return False
    service = SERVICE.search(stray.groups)  # what slurmd left behind is in its own service
    return service is None or service[1].startswith(("slurm", "ssh"))


CHECK = Check(
    title="processes that are stuck, dead and not collected, or without a job",
    stale="use",
    options=Options(),
    judge=judge,
    codes={
        "hidden": Code("Whether all processes can be seen.", (SEE_ALL,)),
        "stuck": Code("Processes that wait in the kernel and cannot be ended.", (SEE_WAIT,)),
        "zombies": Code("Dead processes that their parents do not collect.", (SEE_PARENT,)),
        "strays": Code(
            "Processes of ordinary users without a parent, a job or a service.", (ASK_OWNER,)
        ),
    },
    probe=PROBE,
    probe_options=("strays", "first_uid"),
    root_adds="what stuck processes of other users wait on, and all processes where /proc hides"
    " them",
    limit=20,
    follows={"stuck": ("nfs.hung", "nfs.server", "nfs.rpc"), "limit": ("nfs.hung", "nfs.server")},
)
