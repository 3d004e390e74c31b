"""Processes that the kernel ended for lack of memory: of the node, or of a job at its own limit.

A job that reaches the limit of its control group loses a process, and that is its own fault. Where
the node itself ran out, the kernel takes the largest of all, and that may be a daemon.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clustercheck.check import Facts, Finding, Quantity, Remedy, ok, skip, unknown, warn

SEE_OOM = Remedy(
    "See who took it (`dmesg | grep -iE 'oom|out of memory'`; the table before the line lists all)"
    " and which daemons were ended: start those anew. Keep jobs to their share:"
    " ConstrainRAMSpace=yes in cgroup.conf with memory as a consumable resource, RealMemory in"
    " slurm.conf below what the node has, and MemSpecLimit for the node's own daemons.",
    "§5.4",
    disturbs=True,
)
RAISE_LIMIT = Remedy(
    "Start the daemon anew where that has not been done (`systemctl status`), and see why it grew."
    " If its limit is too low for this node, raise MemoryMax= of its unit (`systemctl edit`).",
    disturbs=True,
)
READ_LOG = Remedy(
    "Let the login user read the kernel's log (kernel.dmesg_restrict=0, or the group"
    " systemd-journal), or use become = sudo."
)

KILLED = re.compile(
    r"(?P<group>[Mm]emory cgroup )?[Oo]ut of memory[^:]{0,80}: Kill(?:ed)? process"
    r" (?P<pid>\d{1,10}) \((?P<command>.{1,32}?)\)(?:.{0,300} UID:(?P<uid>\d{1,10}))?"
)
BOUND = re.compile(r"oom-kill:constraint=(CONSTRAINT_\w{1,20}),.{0,500}pid=(\d{1,10}),uid=\d")
# A daemon of the node that was ended at the limit of its own service takes the node with it.
OF_SERVICE = re.compile(r"task_memcg=/system\.slice/[^,/]{1,99}\.service,task=.{1,32},pid=\d")
DAEMONS = re.compile(
    r"slurmd|munged|sshd|chronyd|ntpd|systemd|dbus-(daemon|broker)|sssd|nslcd|rpcbind|rpc\.|automount"
    r"|nvidia-persiste|nv-fabricmanage|nv-hostengine|kubelet|containerd|dockerd|multipathd|opensm"
)
TIME = re.compile(r"\[ {0,9}(\d{1,10}\.\d{1,9})\]")


class Killed(NamedTuple):
    """A process that was ended; own: at a limit of its own group or job. age in seconds.

    daemon: one of the node's, at the limit of its service.
    """

    pid: str
    command: str
    own: bool
    age: float | None
    daemon: bool = False


def judge_oom(facts: Facts, hours: int) -> Iterator[Finding]:
    """Findings on the last hours; the kernel's log tells whose fault it was."""
    count = facts["killed"]
    if count == "0":
        message = "nothing was ended for lack of RAM since the boot"
        yield ok("oom", message, value=Quantity(0, "processes"))
        return
    if count and not re.fullmatch("[0-9]{1,12}", count):
        yield unknown("oom", f"what the kernel counts cannot be read: {count[:40]!r}", READ_LOG)
        return
    since = f"{count} since the boot" if count else "the kernel does not count them"
    if facts["log_from"] == "refused":
        if count:
            message = f"{since} were ended for lack of RAM, by jobs' limits or the node's"
            yield skip("oom", f"{message}: the kernel's log, for root, tells which")
        return
    tail = dict(line.split(" ", 1) for line in facts["log"].splitlines()[-3:] if " " in line)
    if tail.get("ended") != "0" or not re.fullmatch("[1-9][0-9]{0,9}", tail.get("lines", "")):
        ended = tail.get("ended", "")[:20] or "unknown"
        why = "is empty" if ended == "0" else f"cannot be read (exit status {ended})"
        yield unknown("oom", f"ended for lack of RAM: {since}; the kernel's log {why}", READ_LOG)
        return
    found = [k for k in _killed(facts) if k.age is None or k.age <= hours * 3600]
    of_node = [killed for killed in found if not killed.own]
    daemons = [killed for killed in found if killed.daemon]
    own = len(found) - len(of_node) - len(daemons)
    at_limit = f"{own} at the limit of their own job or service" if own else ""
    span = f"in the last {hours} h{_reach(facts, tail.get('first', ''), hours)}"
    if of_node:
        besides = f"; besides, {at_limit}" if own else ""
        yield warn(
            "oom",
            f"the node ran out of RAM {span}, and the kernel ended {_listed(of_node)}{besides};"
            " should end none",
            SEE_OOM,
            value=Quantity(len(of_node), "processes"),
        )
    if daemons:
        message = f"ended at the limit of their own services {span}: {_listed(daemons)}"
        yield warn("oom", f"{message}; the node needs them", RAISE_LIMIT)
    if not of_node and not daemons:
        words = f"no lack of RAM of the node itself {span}"
        note = f"; {at_limit} ended" if own else f"; ended at all: {since}"
        yield ok("oom", words + note, value=Quantity(0, "processes"))


def _listed(some: list[Killed]) -> str:
    kinds: dict[str, list[Killed]] = {}
    for killed in some:
        kinds.setdefault(killed.command, []).append(killed)
    each = ", ".join(
        f"{command} ({of[-1].pid}{f' and {len(of) - 1} more' if of[1:] else ''})"
        for command, of in list(kinds.items())[:6]
    )
    return each + (f" and {len(kinds) - 6} kinds more" if len(kinds) > 6 else "")


def _killed(facts: Facts) -> list[Killed]:
    uptime = facts.get("uptime", "")
    now = float(uptime) if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?", uptime) else None
    bound: set[str] = set()
    of_services: set[str] = set()
    found = []
    for line in facts["log"].splitlines():
        if limit := BOUND.search(line):
            if limit[1] != "CONSTRAINT_NONE":
                bound.add(limit[2])
            else:
                bound.discard(limit[2])
            (of_services.add if OF_SERVICE.search(line) else of_services.discard)(limit[2])
        elif what := KILLED.search(line):
            time = TIME.search(line)
            age = max(now - float(time[1]), 0.0) if now is not None and time else None
            own = bool(what["group"]) or what["pid"] in bound
            daemon = own and what["pid"] in of_services and bool(DAEMONS.match(what["command"]))
            found.append(Killed(what["pid"], what["command"], own, age, daemon))
    return found


def _reach(facts: Facts, first: str, hours: int) -> str:
    uptime = facts.get("uptime", "")
    if facts["log_from"] != "dmesg":
        return ""
    if not all(re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?", text) for text in (uptime, first)):
        return ""
    back = float(uptime) - float(first)
    if float(first) > 60 and back < hours * 3600:
        return f" (the kernel's log goes back {max(back, 0) / 3600:.1f} h)"
    return ""
