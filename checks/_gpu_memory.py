"""Memory of a GPU that is in use: by whom, and whether it will ever be given back."""

import re
from collections.abc import Iterator

from clustercheck.check import Facts, Finding, Quantity, fail, ok, skip, unknown, warn

from ._gpu_read import Gpu, Process, User, columns, processes, short, users
from ._gpu_remedies import END_PARENT, FIND_HOLDER, LOOK_AS_ROOT, SEE_WHOSE

# They have each GPU open and take none of its memory: the driver's own daemons, DCGM, monitors.
DAEMONS = re.compile(
    r"nvidia-(persist|smi|power|fabric|device)|nv-(hostengine|fabricm)|dcgm|nvtop|gpud|telegraf|nvidia_gpu"
)
# "On systems where GPUs are NUMA nodes [...] pages allocated from FB memory are not released even
# after the process terminates" (NVML, nvmlDeviceGetMemoryInfo_v2): Grace Hopper, Grace Blackwell.
OF_SYSTEM = re.compile(r"\bG[HB][23]00\b")
# a container's or a job's control group, and how it is called
PLACES = (
    (re.compile(r"\bjob_(\d+)"), "Slurm job {}"),
    (re.compile(r"docker[-/]([0-9a-f]{12})"), "Docker container {}"),
    (re.compile(r"libpod-([0-9a-f]{12})"), "Podman container {}"),
    (re.compile(r"containerd[-:]([0-9a-f]{12})"), "containerd container {}"),
    (re.compile(r"\blxc(?:\.payload)?[./]([\w-]+)"), "LXC container {}"),
    (re.compile(r"kubepods[^:]{0,200}?pod([0-9a-f]{8})"), "Kubernetes pod {}"),
    (re.compile(r"machine-([\w\\-]+)\.scope"), "machine {}"),
)


def judge_memory(facts: Facts, gpus: list[Gpu], held_mib: int) -> Iterator[Finding]:
    """Findings on the memory of GPUs that answer.

    held_mib: MiB that may be in use on a GPU without a process.
    """
    denied = [gpu for gpu in gpus if gpu.denied]
    if denied:
        message = f"{names(denied)}: the login user may not see how much memory is in use"
        yield unknown("memory", message, LOOK_AS_ROOT)
    apart = [gpu for gpu in gpus if (gpu.used is None or gpu.total is None) and not gpu.denied]
    if apart:
        yield skip(
            "memory",
            f"{names(apart)}: memory is not reported, as of a GPU that shares it with the CPU",
        )
    counted = [gpu for gpu in gpus if gpu.used is not None and gpu.total is not None]
    of_machines = [gpu for gpu in counted if _of_machines(gpu)]
    if of_machines:
        yield skip("memory", f"{names(of_machines)}: the memory is virtual machines' (vGPU)")
    counted = [gpu for gpu in counted if not _of_machines(gpu)]
    listed, seen = users(facts), processes(facts)
    stuck = list(_stuck(facts, gpus, listed, seen))
    yield from stuck
    if not counted:
        return
    full = [gpu for gpu in counted if gpu.used is not None and gpu.used > held_mib]
    if not full:
        most = max(gpu.used or 0 for gpu in counted)
        yield ok(
            "memory",
            f"no GPU has more than {held_mib} MiB in use",
            value=Quantity(most * 1024 * 1024, "B"),
        )
        return
    of_system = [gpu for gpu in full if OF_SYSTEM.search(gpu.name)]
    if of_system:
        said = "this memory is a NUMA node of the system, which keeps files and pages in it"
        yield skip("memory", f"{_amounts(of_system)}; {said}")
        full = [gpu for gpu in full if gpu not in of_system]
        if not full:
            return
    if facts["apps_status"] != "0" or (facts["apps"].strip() and not _is_table(facts["apps"])):
        yield unknown(
            "memory", f"{_amounts(full)}; nvidia-smi does not tell by which processes", LOOK_AS_ROOT
        )
        return
    findings = list(_whose(facts, full, listed, seen, held_mib))
    yield from findings
    if not findings and not stuck:
        yield ok("memory", f"{_amounts(full)}, by processes that nvidia-smi lists")


def _of_machines(gpu: Gpu) -> bool:
    return "host" in gpu.host_of.lower()


def _is_table(apps: str) -> bool:
    """Can the list of processes be read? With none, it is its header alone."""
    words = ("| Processes:", "No running processes found")
    return any(word in apps for word in words) or bool(columns(apps))


def _whose(
    facts: Facts, full: list[Gpu], listed: list[User], seen: dict[str, Process], held_mib: int
) -> Iterator[Finding]:
    hidden: list[str] = []
    nobodys: list[str] = []
    partly: list[str] = []
    worst = 0
    for gpu in full:
        used = gpu.used or 0
        own = [user for user in listed if _is_on(user, gpu)]
        if own:
            amounts = [user.used for user in own]
            known = sum(amount for amount in amounts if amount is not None)
            if None not in amounts and used - known > held_mib:
                partly.append(f"{_amount(gpu)}, its processes hold {known} MiB of it")
            continue
        holders = [
            process
            for process in seen.values()
            if gpu.minor in process.minors and not DAEMONS.match(process.command)
        ]
        if holders:
            hidden.append(f"{_amount(gpu)}, {', '.join(who(process) for process in holders)}")
        else:
            nobodys.append(_amount(gpu))
            worst = max(worst, used)
    if nobodys and facts["container"]:
        message = f"{'; '.join(nobodys)}: by whom cannot be seen from within a container"
        yield unknown("memory", message, LOOK_AS_ROOT)
    elif nobodys:
        looked = "" if facts["seen"] == "all" else " (the open files of others were not looked at)"
        message = f"{'; '.join(nobodys)}, by no process{looked}; should be {held_mib} MiB or less"
        yield fail("memory", message, FIND_HOLDER, value=Quantity(float(worst) * 1024 * 1024, "B"))
    if partly:
        message = f"{'; '.join(partly)}; the rest should be {held_mib} MiB or less"
        yield warn("memory", message, FIND_HOLDER)
    if hidden:
        message = f"{'; '.join(hidden)}: has it open, and nvidia-smi does not list it"
        yield warn("hidden", message, SEE_WHOSE)


def _stuck(
    facts: Facts, gpus: list[Gpu], listed: list[User], seen: dict[str, Process]
) -> Iterator[Finding]:
    """Processes that have a GPU and will not let go of it by themselves."""
    pids = dict.fromkeys([user.pid for user in listed] + [p.pid for p in seen.values() if p.minors])
    dead: list[str] = []
    waiting: list[str] = []
    for pid in pids:
        process = seen.get(pid)
        if process is None:
            continue
        words = who(process)
        own = [user for user in listed if user.pid == pid]
        held = [user.used for user in own if user.used is not None]
        on = [gpu for gpu in gpus if any(_is_on(user, gpu) for user in own)]
        if held:
            words += f" holds {sum(held)} MiB" + (f" of {names(on)}" if on else "")
        if process.state in ("Z", "X"):
            dead.append(words)
        elif process.state == "gone":
            # where others' processes or the host's cannot be seen, that says nothing
            if facts["proc"] == "all" and not facts["container"]:
                dead.append(words)
        elif process.state == "D":
            (dead if process.parent == "1" else waiting).append(words)
    if dead:
        yield fail("stuck", f"memory is held by what cannot let go: {'; '.join(dead)}", END_PARENT)
    if waiting:
        yield warn(
            "stuck", f"memory is held, without progress, by {'; '.join(waiting)}", END_PARENT
        )


def _is_on(user: User, gpu: Gpu) -> bool:
    if user.address and gpu.address:
        return short(user.address) == short(gpu.address)
    if user.uuid and gpu.uuid:
        return user.uuid == gpu.uuid or (gpu.mig and user.uuid.startswith("MIG-"))
    return False


def who(process: Process) -> str:
    """A process in words: its command, id, owner, state, and the job or container it is in."""
    if process.state == "gone":
        return f"process {process.pid} (no longer there)"
    parts = [f"process {process.pid}"]
    if process.user != "-":
        parts[0] += f" of {process.user}"
    if process.place != "-":
        parts.append(place_words(process.place))
    above = f" {process.parent_command}" if process.parent_command else ""
    if process.state in ("Z", "X"):
        parts.append(f"zombie of its parent{above} {process.parent}")
    elif process.state == "D":
        waits = "" if process.waits in ("-", "0") else f" on {process.waits}"
        parts.append(f"in D state: waits in the kernel{waits}")
        if process.parent == "1":
            parts.append("without a parent")
    return f"{process.command} ({', '.join(parts)})"


def place_words(group: str) -> str:
    """What a control group belongs to, in words."""
    for pattern, words in PLACES:
        if found := pattern.search(group):
            return words.format(found[1])
    return f"control group {group}"


def names(gpus: list[Gpu]) -> str:
    """`GPU 0, 1 and 3`."""
    numbers = [gpu.index for gpu in gpus]
    first = ", ".join(numbers[:-1])
    return f"GPU {first} and {numbers[-1]}" if first else f"GPU {numbers[-1]}"


def _amount(gpu: Gpu) -> str:
    return f"{gpu.title}: {gpu.used} MiB of {gpu.total} MiB in use"


def _amounts(gpus: list[Gpu]) -> str:
    return f"{names(gpus)}: {', '.join(f'{g.used} of {g.total}' for g in gpus)} MiB in use"
