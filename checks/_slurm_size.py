"""What a node has by `slurmd -C`, against what Slurm's configuration says of it; and releases.

A node that registers with less is set to INVALID_REG and drained (slurmctld's
validate_node_specs): fewer CPUs, fewer sockets * cores * threads taken together, or less memory.
More than is configured is normal. How the CPUs are divided does not count: many sites configure
CPUs alone, which scontrol shows as so many sockets.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clustercheck.check import Facts, Finding, fail, ok, unknown

from ._slurm_read import Record, Size
from ._slurm_remedies import HARDWARE, VERSION

# Major releases whose slurmd a slurmctld takes, besides its own: two back, three from 24.11 on
# (https://slurm.schedmd.com/upgrades.html). Up to 23.11 nine months apart; then May and November.
_RELEASES = (
    *((19, 5), (20, 2), (20, 11), (21, 8), (22, 5), (23, 2), (23, 11)),
    *((year, month) for year in range(24, 60) for month in (5, 11)),
)
_THREE_FROM = (24, 11)


class Rules(NamedTuple):
    """What slurm.conf says of nodes with less than is configured.

    overrides: the option by which they are taken as they are; "" where they are not.
    percent: of the configured memory so much is enough.
    """

    overrides: str = ""
    percent: float = 100


def rules_of(facts: Facts) -> Rules:
    said = facts.get("parameters", "").lower()
    overrides = "config_overrides" if "config_overrides" in said else ""
    old = re.search(r"fastschedule ([02])\b", said)  # up to 20.02
    percent = re.search(r"node_reg_mem_percent=([0-9]{1,3}(?:\.[0-9]{1,4})?)", said)
    return Rules(
        overrides or (f"FastSchedule={old[1]}" if old else ""),
        min(float(percent[1]), 100) if percent else 100,
    )


def found_size(facts: Facts) -> Size | None:
    """What `slurmd -C` told."""
    numbers = dict(re.findall(r"(\w{1,40})=([0-9]{1,12})\b", facts.get("hardware", "")[:4000]))
    boards = int(numbers.get("Boards", 1))
    sockets = int(numbers.get("Sockets", 0)) or boards * int(numbers.get("SocketsPerBoard", 0))
    keys = ("CPUs", "CoresPerSocket", "ThreadsPerCore", "RealMemory")
    if not sockets or not set(keys) <= numbers.keys():
        return None
    cpus, cores, threads, memory = (int(numbers[key]) for key in keys)
    return Size(cpus, sockets, cores, threads, memory)


def lacking(found: Size, wanted: Size, percent: float) -> list[str]:
    """In words, what there is less of than is configured."""
    words = []
    if found.cpus < wanted.cpus:
        words.append(f"{found.cpus} CPUs, should be {wanted.cpus}")
    if found.units < wanted.units:
        words.append(f"{found.layout} threads, should be {wanted.layout}")
    if found.memory < wanted.memory * percent / 100:
        enough = f" ({percent:g} % is enough)" if percent < 100 else ""
        words.append(f"{found.memory} MiB of memory, should be {wanted.memory} MiB{enough}")
    return words


def judge_size(facts: Facts, record: Record) -> Iterator[Finding]:
    if record.size is None or "hardware" not in facts or facts.get("installed") != "yes":
        return
    found = found_size(facts)
    if found is None:
        status = facts.get("hardware_status", "")
        hung = status in ("124", "137")
        why = "gives no answer within 5 s" if hung else f"tells nothing (exit status {status[:9]})"
        yield unknown("size", f"whether the node has what Slurm counts on: slurmd -C {why}")
        return
    rules = rules_of(facts)
    less = lacking(found, record.size, rules.percent)
    if not less:
        yield ok("size", f"slurmd -C finds {found.words}, no less than Slurm counts on")
    elif rules.overrides:
        words = "; ".join(less)
        yield ok("size", f"slurmd -C finds {words}: taken as it is, by {rules.overrides}")
    else:
        words = "; ".join(less)
        yield fail("size", f"slurmd -C finds {words} by Slurm's configuration", HARDWARE)


def size_now(facts: Facts, record: Record) -> str:
    """What there is now, to be added to a reason of Slurm's that names less; or ""."""
    found = found_size(facts)
    if found is None or record.size is None:
        return ""
    less = lacking(found, record.size, rules_of(facts).percent)
    return f"; slurmd -C finds {'; '.join(less) if less else f'enough now ({found.words})'}"


def version_trouble(facts: Facts) -> str:
    """Why the controller does not take this slurmd, by their releases; or ""."""
    mine, theirs = slurmd_version(facts), facts.get("controller_version", "").strip()[:40]
    own, other = _release(mine), _release(theirs)
    if own is None or other is None or own == other:
        return ""
    if own > other:
        return f"slurmd {mine} is newer than its slurmctld {theirs}, which takes none that is"
    back = 3 if other >= _THREE_FROM else 2
    if other not in _RELEASES or own >= _RELEASES[max(0, _RELEASES.index(other) - back)]:
        return ""
    return f"slurmd {mine} is more than {back} major releases behind its slurmctld {theirs}"


def judge_version(facts: Facts) -> Iterator[Finding]:
    mine, theirs = slurmd_version(facts), facts.get("controller_version", "").strip()[:40]
    if trouble := version_trouble(facts):
        yield fail("version", trouble, VERSION)
    elif _release(mine) and _release(theirs):
        yield ok("version", f"slurmd {mine}, slurmctld {theirs}")


def slurmd_version(facts: Facts) -> str:
    """As the slurmd that runs told it; "" where none did."""
    said = re.search(r"(?m)^Version\s{0,40}=\s{0,5}(\S{1,40})", facts.get("answer", "")[:20_000])
    return said[1] if said else ""


def _release(version: str) -> tuple[int, int] | None:
    """ "23.11.4" to (23, 11)."""
    said = re.match(r"([0-9]{2})\.([0-9]{2})(?:\.|$)", version)
    return (int(said[1]), int(said[2])) if said else None
