"""What the controller has of a node, judged with what was seen on the node."""

import ipaddress
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clustercheck.check import Facts, Finding, Remedy, fail, ok, skip, unknown, warn

from ._df import parse_df, size_words
from ._slurm_read import (
    ASLEEP,
    BROKEN,
    KNOWN,
    REBOOT,
    Controller,
    Record,
    count_gpus,
    read_states,
)
from ._slurm_remedies import (
    ASK_WHO,
    BACKUP,
    CONTROLLER,
    GRES,
    HARDWARE,
    KILL_TASK,
    KILL_TASK_GONE,
    LOOK_FIRST,
    OWN_ADDRESS,
    OWN_DRAIN,
    OWN_NAME,
    PLANNED,
    REBOOTED,
    REGISTER,
    SILENT,
    SPOOL_FULL,
    SPOOL_GONE,
    START_SLURMD,
    VERSION,
)
from ._slurm_size import judge_size, judge_version, size_now, version_trouble

# A reason that a script of the site gave after a finding of ours.
OWN = "clustercheck"

_LOW = re.compile("low (real ?memory|cpus|socket|tmpdisk|core)")

# What slurmd and slurmctld themselves write as a reason (their source, 22.05 to 24.11), and health
# check programs: such a drain is nobody's decision, whoever it is written down for.
_BY_PROGRAM = re.compile(
    r"kill task failed|slurmdspooldir is full|not responding|node unexpectedly rebooted"
    r"|low (real ?memory|cpus|socket|tmpdisk|core)|gres/|(prolog|epilog)( error|_| failed)"
    r"|duplicate jobid|batch job complete failure|step not running|launch failed"
    r"|NHC\b|healthcheck|health[ _-]?check",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Tolerance:
    """allow: states that are no fault. programs: users whose drains are no person's decision."""

    allow: Collection[str]
    programs: Collection[str]


class Cause(NamedTuple):
    """What the node itself shows of a reason: words to add, and the remedy for it."""

    words: str
    remedy: Remedy


def judge_record(facts: Facts, record: Record, tolerance: Tolerance) -> Iterator[Finding]:
    """The findings about one node, from the controller's record and the node's facts."""
    allowed = {state for word in tolerance.allow for state in read_states(word)}
    states = set(record.states) - allowed
    yield from _judge_names(facts, record, states)
    stopped = facts.get("installed") == "yes" and facts.get("slurmd") == "stopped"
    if stopped and not states & (ASLEEP | REBOOT | {"FUTURE"}):
        if facts.get("enabled") != "yes":  # otherwise it is said of the node itself
            message = f"slurmd does not run, and Slurm has the node as {record.state}"
            yield fail("not_running", message, START_SLURMD)
        if states & {"NOT_RESPONDING", "UNKNOWN"} and not states & {"DRAIN", "ERROR", "FAIL"}:
            return
    yield _judge_state(facts, record, states, tolerance)
    if states & (ASLEEP | {"FUTURE"}):
        return
    yield from _judge_gres(facts, record)
    if not _LOW.search(record.reason.lower()[:500]):  # else it is the state's cause
        yield from judge_size(facts, record)
    if not (version_trouble(facts) and "NOT_RESPONDING" in states):  # the same
        yield from judge_version(facts)


def _judge_names(facts: Facts, record: Record, states: set[str]) -> Iterator[Finding]:
    """The names and the address by which Slurm knows the node, against the node's own.

    A name that NodeAddr may be is looked up by the daemons: that is the check dns's.
    """
    own, wanted = facts.get("host", "").lower(), record.host.lower()
    stopped = facts.get("installed") == "yes" and facts.get("slurmd") == "stopped"
    if stopped and own and wanted and own.partition(".")[0] != wanted.partition(".")[0]:
        message = f"the host name is {own[:100]}, should be {record.host[:100]} by NodeHostname"
        yield fail("name", f"{message}: slurmd does not know which node it is", OWN_NAME)
    address, addresses = _address(record.address), facts.get("addresses", "").split()
    mine = {one for one in map(_address, addresses) if one}
    if address is None or not mine or states & ASLEEP:
        return
    if address in mine or address.is_loopback:
        yield ok("address", f"NodeName {record.names[0]}, NodeAddr {address}, which is here")
        return
    shown = [str(one) for one in sorted(mine, key=lambda one: (one.version, int(one)))]
    shown = [one for one in shown if not one.startswith("fe80:") and one != "::1"]
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    message = (
        f"Slurm looks for the node at {address} (NodeAddr), and no interface here has that, only"
        f" {', '.join(shown[:4])}{more}"
    )
    make = fail if states & {"NOT_RESPONDING", "UNKNOWN", "DOWN"} else warn
    yield make("address", message, OWN_ADDRESS)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as it is written, or as 32 digits; None for what is none."""
    if re.fullmatch("[0-9a-f]{32}", text):
        return ipaddress.IPv6Address(int(text, 16))
    try:
        return ipaddress.ip_address(text[:64])
    except ValueError:
        return None


def _judge_state(
    facts: Facts, record: Record, states: Collection[str], tolerance: Tolerance
) -> Finding:
    states = set(states)
    said = record.state
    if not record.states:
        return unknown("state", "the controller told no state that can be read")
    if "FUTURE" in states:
        return skip("state", f"{said}: kept for a node that is to come")
    if states & REBOOT:
        return warn("state", f"{said}, a reboot is planned; {_why(record, 'asked for')}", PLANNED)
    if states & BROKEN or ("NOT_RESPONDING" in states and not states & ASLEEP):
        cause = _cause(facts, record, SILENT if "NOT_RESPONDING" in states else LOOK_FIRST)
        if "NOT_RESPONDING" in states and (trouble := version_trouble(facts)):
            cause = Cause(f"; {trouble}", VERSION)
        message = f"{said}, should be in service; {_why(record, 'set')}{cause.words}"
        return fail("state", message, cause.remedy)
    if "DRAIN" in states:
        return _judge_drain(facts, record, states, tolerance)
    if "UNKNOWN" in states:
        message = f"{said}: the node has not registered since its controller was started"
        return warn("state", message, REGISTER)
    if "MAINTENANCE" in states:
        return warn("state", f"{said}, kept for maintenance", PLANNED)
    if not states <= KNOWN:
        other = ", ".join(sorted(states - KNOWN))
        return unknown("state", f"{said}: what {other} means is not known here")
    if states & ASLEEP:
        return ok("state", f"{said}: power saving, woken when there is work")
    tolerated = ", as is allowed" if set(record.states) - states else ""
    return ok("state", f"{said}{tolerated}")


def _judge_drain(facts: Facts, record: Record, states: set[str], tolerance: Tolerance) -> Finding:
    busy = states & {"ALLOCATED", "MIXED", "COMPLETING"}
    word = "draining (work still runs there)" if busy else "drained"
    if record.reason.lower().startswith(OWN):
        return warn("state", f"{record.state}, {_why(record, word)}", OWN_DRAIN)
    by_program = not record.by or record.by in tolerance.programs
    if by_program or _BY_PROGRAM.search(record.reason[:500]):
        cause = _cause(facts, record, LOOK_FIRST)
        message = f"{record.state}, should be in service; {_why(record, word)}{cause.words}"
        return fail("state", message, cause.remedy)
    return warn("state", f"{record.state}, {_why(record, word)}", ASK_WHO)


def _why(record: Record, word: str) -> str:
    """ "drained by alice since 2026-11-30T17:51:08: new PSU"."""
    words = f"{word} by {record.by}" if record.by else word
    words += f" since {record.since}" if record.since else ""
    if record.reason:
        return f"{words}: {record.reason}"
    return f"{words}, no reason is told"


def _cause(facts: Facts, record: Record, otherwise: Remedy) -> Cause:
    """The node's own side of the reason, where Slurm or a health check gave it."""
    reason = record.reason.lower()
    if "kill task failed" in reason:
        return _unkillable(facts)
    if "spooldir is full" in reason:
        return _spool(facts)
    if "gres/" in reason:
        return Cause(_devices(facts), GRES)
    if "unexpectedly rebooted" in reason:
        return Cause("", REBOOTED)
    if _LOW.search(reason[:500]):
        return Cause(size_now(facts, record), HARDWARE)
    if "not responding" in reason:
        return Cause("", SILENT)
    return Cause("", otherwise)


def _unkillable(facts: Facts) -> Cause:
    waiting = facts.get("waiting", "")
    if not waiting:
        return Cause("", KILL_TASK)
    found = []
    for line in waiting.splitlines()[:20]:
        words = line.split(None, 3)
        if len(words) == 4 and words[0].isdigit():
            found.append(f"{words[3]} (process {words[0]}, in {words[2]}{_what(words[2])})")
    if not found:
        return Cause("; no process waits in the kernel any more", KILL_TASK_GONE)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Cause(f"; still waiting in the kernel: {', '.join(found[:3])}{more}", KILL_TASK)


def _what(place: str) -> str:
    """What a place in the kernel's code waits for, where its name says it."""
    for starts, words in (
        (("rpc_", "nfs", "__rpc"), "NFS"),
        (("cl_", "ptlrpc", "ll_", "osc_", "ldlm"), "Lustre"),
        (("nv_", "nvidia", "uvm_", "os_acquire"), "a GPU's driver"),
        (("io_schedule", "blk_", "wait_on_page", "folio_wait", "bit_wait_io", "jbd2"), "a disk"),
        (("fuse_", "request_wait_answer"), "FUSE"),
    ):
        if place.startswith(starts):
            return f", {words}"
    return ""


def _spool(facts: Facts) -> Cause:
    path = facts.get("spool", "")
    space = parse_df(facts.get("space", ""), path)
    if space is None or not space.total:
        return Cause("", SPOOL_FULL)
    words = f"; {path} is {math.ceil(space.percent)} % full now"
    words += f" ({size_words(space.free)} free)"
    inodes = parse_df(facts.get("inodes", ""), path)
    out_of_inodes = inodes is not None and inodes.total > 0 and inodes.free < 100
    if out_of_inodes:
        words += ", and no inodes are free"
    full = space.percent >= 98 or out_of_inodes
    return Cause(words, SPOOL_FULL if full else SPOOL_GONE)


def _judge_gres(facts: Facts, record: Record) -> Iterator[Finding]:
    wanted = count_gpus(record.gres)
    devices = _nvidia_devices(facts)
    # instances of a GPU that is cut in slices have no device file of that name
    if not wanted.number or wanted.sliced or devices is None or facts.get("installed") != "yes":
        return
    gpus = "1 GPU" if wanted.number == 1 else f"{wanted.number} GPUs"
    said = f"{gpus} in Slurm's configuration ({record.gres[:200]})"
    if devices < wanted.number and "gres/" not in record.reason:  # else it is the state's cause
        yield fail("gres", f"{said}, {devices} device files /dev/nvidiaN", GRES)
    elif devices >= wanted.number:
        yield ok("gres", f"{said}, {devices} device files /dev/nvidiaN")


def _devices(facts: Facts) -> str:
    devices = _nvidia_devices(facts)
    return "" if devices is None else f"; {devices} device files /dev/nvidiaN are there now"


def _nvidia_devices(facts: Facts) -> int | None:
    """None where the GPUs, if any, are of another maker, or nobody counted."""
    kind, _, number = facts.get("gpus", "").partition(" ")
    if kind == "none":
        return 0
    return int(number) if kind == "nvidia" and re.fullmatch("[0-9]{1,4}", number) else None


def judge_controllers(controllers: Sequence[Controller], error: str) -> Iterator[Finding]:
    """One finding, the same on all nodes, so that it is shown once.

    error: what there was instead of the nodes' states, "" where they were told.
    """
    up = [c for c in controllers if c.up]
    words = ", ".join(f"{c.role} {c.host} {'UP' if c.up else 'DOWN'}" for c in controllers[:9])
    if controllers and not up:
        yield fail("controller", f"no slurmctld answers ({words})", CONTROLLER)
    elif len(up) < len(controllers):
        yield warn("controller", f"slurmctld: {words}", BACKUP)
    elif not controllers and _is_silence(error):
        yield fail("controller", f"no slurmctld answers: {error}", CONTROLLER)
    elif up:
        yield ok("controller", f"slurmctld: {words}")


def _is_silence(error: str) -> bool:
    return bool(re.search(r"(?i)unable to contact|timed out|no answer within|refused", error[:500]))
