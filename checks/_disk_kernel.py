"""What the kernel says of disks and arrays: its log, the drivers' states, md RAID."""

import re
from collections.abc import Iterator

from clustercheck.check import Facts, Finding, fail, ok, unknown, warn

from ._disk_remedies import FIND_DISK, MEND_ARRAY, READ_LOG, START_ARRAY

LINE = re.compile(r"(?:<[0-9]{1,3}>)?\[ *([0-9]{1,12})(?:\.[0-9]{1,9})?\] (.*)", re.DOTALL)
DEVICES = (
    re.compile(
        r"\bdev (sd[a-z]+|nvme[0-9]+(?:c[0-9]+)?n[0-9]+|vd[a-z]+|hd[a-z]|dm-[0-9]+|md[0-9]+)"
    ),
    re.compile(r"\b(nvme[0-9]+): "),
    re.compile(r"\[(sd[a-z]+)\]"),
    re.compile(r"\((sd[a-z]+[0-9]*|nvme[0-9]+n[0-9]+(?:p[0-9]+)?|vd[a-z]+[0-9]*|dm-[0-9]+)\)"),
)
ARRAY = re.compile(r"(md\S{0,60}) : (active|inactive)\b([^\n]{0,4000})")
MEMBERS = re.compile(r"\[([0-9]{1,4})/([0-9]{1,4})\]")
PROGRESS = re.compile(r"\b(recovery|resync|reshape|check) *= *([0-9.]{1,6}%)")


def judge_log(facts: Facts, log_hours: int) -> Iterator[Finding]:
    """Errors of disks in the kernel's log, one finding a disk."""
    if log_hours == 0 or facts["log_from"] == "refused":
        return  # not wanted, or said once for the node as what root adds
    lines = facts["log"].split("\n")
    tail = dict(line.split(" ", 1) for line in lines[-3:] if " " in line)
    if facts["log_from"] == "none":
        yield unknown("log", "the kernel's log: there is neither dmesg nor journalctl")
        return
    if tail.get("ended") != "0":
        ended = tail.get("ended", "unknown")[:20]
        yield unknown("log", f"the kernel's log cannot be read (exit status {ended})")
        return
    if facts["log_from"] == "dmesg" and not re.fullmatch("[1-9][0-9]{0,9}", tail.get("lines", "")):
        yield unknown("log", "the kernel's log is empty, should begin with the boot")
        return
    now = _seconds(facts["uptime"])
    span = _span(now, _seconds(tail.get("first", "")), log_hours, facts["log_from"])
    seen: dict[str, tuple[int, str]] = {}
    for line in lines[:200]:
        match = LINE.fullmatch(line[:600])
        disk = match and _disk_of(match[2])
        if not match or not disk:
            continue
        if now is not None and now - int(match[1]) > log_hours * 3600:
            continue
        seen[disk] = (seen.get(disk, (0, ""))[0] + 1, match[2].strip())
    for disk, (count, last) in seen.items():
        times = "once" if count == 1 else f"{count} times"
        message = f"{disk} gave errors {times} {span} by the kernel's log: {last}"
        yield warn("log", message[:400], READ_LOG)
    if not seen:
        yield ok("log", f"no errors of disks {span} by the kernel's log")


def _seconds(text: str) -> int | None:
    match = re.fullmatch(r"\s*([0-9]{1,12})(?:\.[0-9]{1,9})?", text)
    return int(match[1]) if match else None


def _span(now: int | None, first: int | None, hours: int, source: str) -> str:
    """How far back the log was looked at: it may begin later than asked for."""
    if now is not None and first is not None and source == "dmesg" and first > 60:
        covered = max(now - first, 0)
        if covered < hours * 3600:
            return f"in the last {covered / 3600:.1f} h (the log goes no further back)"
    return f"in the last {hours} h"


def _disk_of(text: str) -> str:
    """The device that a line is about, without its partition; "" for none."""
    for pattern in DEVICES:
        if match := pattern.search(text):
            name = match[1]
            if name.startswith("nvme"):
                return re.sub("p[0-9]+$", "", name)
            return name if name.startswith(("dm-", "md")) else name.rstrip("0123456789")
    return ""


def judge_states(facts: Facts) -> Iterator[Finding]:
    """What the drivers say: "live" and "running" are as they should be."""
    gone, waiting = [], []
    for line in facts["states"].split("\n")[:300]:
        disk, _, state = line.partition(" ")
        if state in ("offline", "transport-offline", "dead", "cancel", "deleted"):
            gone.append(f"{disk} ({state})")
        elif state in ("blocked", "quiesce", "resetting", "connecting", "deleting"):
            waiting.append(f"{disk} ({state})")
    if gone:
        yield fail("state", f"given up by the kernel: {', '.join(gone)}", FIND_DISK)
    if waiting:
        yield warn("state", f"not ready, by the kernel: {', '.join(waiting)}", FIND_DISK)


def judge_arrays(facts: Facts) -> Iterator[Finding]:
    """Arrays of /proc/mdstat; the line below an array's says how many members it has."""
    name, rest, whole = "", "", []
    lines = facts["mdstat"].split("\n")[:500]
    for number, line in enumerate(lines):
        match = ARRAY.fullmatch(line[:4200])
        if match is None:
            continue
        name, state, rest = match.groups()
        below = " ".join(lines[number + 1 : number + 4])[:1000].partition(" : ")[0]
        failed = re.findall(r"(\S{1,60}?)\[[0-9]{1,4}\]\(F\)", rest)
        members = MEMBERS.search(below)
        progress = PROGRESS.search(below)
        busy = f"; {progress[1]} at {progress[2]}" if progress else ""
        who = f"; failed: {', '.join(failed)}" if failed else ""
        if state == "inactive":
            yield fail("array", f"{name} is inactive, should be active{who}", START_ARRAY)
        elif members and int(members[2]) < int(members[1]):
            message = f"{name} has {members[2]} of {members[1]} members{who}{busy}"
            yield warn("array", message, MEND_ARRAY)
        elif failed:
            yield warn("array", f"{name}{who}{busy}", MEND_ARRAY)
        else:
            whole.append(f"{name}{busy}")
    if whole:
        yield ok("array", f"RAID with all its members: {', '.join(whole)}")
