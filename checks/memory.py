"""Memory: enough is available, it is all there, it makes no errors, and no process was lost to it.

A job rightly takes the memory of its node, so little of it is no fault while one runs; on a node
without a job it is: mostly files left in /dev/shm, which count as memory. What is judged is
MemAvailable and what ZFS would give back of its cache, which the kernel does not count. Slurm's
FreeMem leaves out what the page cache would give back, so that 0 there is no fault.

Errors are counted by the kernel's EDAC driver since it was loaded. An uncorrected one has hit a
process or will; of corrected ones a hundred a day and controller are taken for too many, as
mcelog takes them (mem-ce-error-threshold = 100 / 24h).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._memory_oom import RAISE_LIMIT, READ_LOG, SEE_OOM, judge_oom
from ._memory_probe import PROBE

GIB = 1024 * 1024  # in KiB, in which /proc/meminfo counts
# What the kernel and the firmware keep for themselves is less; a lost module is more.
KEPT = 0.05
# Of the time of all processes together that passes while none can run for want of memory.
MUCH_PRESSURE = 10.0


@dataclass(frozen=True)
class Options:
    available_percent: Annotated[float, Ge(0), Le(100)] = option(
        5.0, "least that is available on a node without a job, of all", unit="%"
    )
    available_gib: Annotated[float, Ge(0)] = option(
        0.0, "least that is available on a node without a job; 0: not looked at", unit="GiB"
    )
    total_gib: Annotated[float, Ge(0)] = option(
        0.0, "how much is installed; 5 % less passes; 0: not looked at", unit="GiB"
    )
    swap_percent: Annotated[float, Ge(0), Le(100)] = option(
        50.0, "most swap in use where little is available as well", unit="%"
    )
    huge_pages_percent: Annotated[float, Ge(0), Le(100)] = option(
        50.0, "most that is set aside as huge pages and not used", unit="%"
    )
    corrected_per_day: Annotated[int, Ge(0)] = option(
        100, "corrected errors a day and memory controller that pass", unit="errors"
    )
    oom_hours: Annotated[int, Ge(1), Le(8760)] = option(
        24, "how far back processes count that were ended for lack of memory", unit="h"
    )


FREE_IT = Remedy(
    "See what takes it: `free -h` (the available column), `ps axo pid,user,rss,args --sort=-rss |"
    " head`, `df -h /dev/shm /tmp` for files that live in it, and `slabtop -o` for the kernel."
    " Files in /dev/shm that no process has open (`fuser -v`) were left behind by dead jobs: ask"
    " their owners. Slurm's FreeMem is no measure of it.",
    "§1",
)
FIND_MODULE = Remedy(
    "Compare with the BMC's inventory or, as root, `dmidecode -t memory`: a module that failed its"
    " test at boot is left out. When the node is drained, reseat or replace it. Slurm's RealMemory"
    " must not be more than is there. If it is right as it is, set total_gib.",
    disturbs=True,
)
REPLACE_MODULE = Remedy(
    "Keep new jobs off the node: what ran may have got wrong data or was ended. Look at the BMC's"
    " event log (`ipmitool sel list`) and `ras-mc-ctl --errors` for the module, and replace it when"
    " the node is drained.",
    disturbs=True,
)
WATCH_MODULE = Remedy(
    "The errors were corrected, and no data is wrong. Look at `ras-mc-ctl --error-count` and the"
    " BMC's event log (`ipmitool sel list`) for the module; have it replaced at the next"
    " occasion, before an error comes that cannot be corrected.",
)
GIVE_BACK = Remedy(
    "See who needs them (`grep -i huge /proc/meminfo`, vm.nr_hugepages in /etc/sysctl.d, hugepages="
    " on the kernel's command line). If nobody does any more, take the setting away and boot the"
    " node when it is drained; if it is right as it is, set huge_pages_percent.",
    disturbs=True,
)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    kib = _meminfo(facts["meminfo"])
    total = kib.get("MemTotal", 0)
    if not total:
        yield unknown("available", "/proc/meminfo does not tell how much there is")
    else:
        if options.total_gib:
            yield _total(total, options.total_gib)
        yield from _available(facts, kib, total, options)
        yield from _huge_pages(kib, total, options)
    yield from _errors(facts, kib, options)
    yield from judge_oom(facts, options.oom_hours)


def _meminfo(text: str) -> dict[str, int]:
    pairs = (word.partition(":") for word in text.split(" "))
    return {key: int(value) for key, _, value in pairs if re.fullmatch("[0-9]{1,15}", value)}


def _gib(kib: float) -> str:
    return f"{kib / GIB:.1f} GiB" if kib < 10 * GIB else f"{kib / GIB:.0f} GiB"


def _total(total: int, wanted: float) -> Finding:
    message = f"{_gib(total)} installed"
    value = Quantity(total * 1024, "B", less_is_worse=True)
    if total < wanted * GIB * (1 - KEPT):
        message += f", should be {wanted:g} GiB (5 % less would pass)"
        return fail("total", message, FIND_MODULE, value=value)
    return ok("total", message, value=value)


def _available(
    facts: Facts, kib: dict[str, int], total: int, options: Options
) -> Iterator[Finding]:
    available = kib.get("MemAvailable")
    if available is None:
        yield unknown("available", "the kernel does not tell MemAvailable (it does from 3.14 on)")
        return
    cache = facts.get("zfs", "0")
    of_zfs = int(cache) // 1024 if re.fullmatch("[0-9]{1,18}", cache) else 0
    available = min(available + of_zfs, total)
    percent = available * 100 / total
    value = Quantity(round(percent, 1), "%", less_is_worse=True)
    message = f"{_gib(available)} of {_gib(total)} available ({percent:.1f} %)"
    message += f", {_gib(of_zfs)} of it the cache of ZFS" if of_zfs else ""
    wanted = []
    if percent < options.available_percent:
        wanted.append(f"{options.available_percent:g} %")
    if available < options.available_gib * GIB:
        wanted.append(f"{options.available_gib:g} GiB")
    swap, left = kib.get("SwapTotal", 0), kib.get("SwapFree", 0)
    used = (swap - left) * 100 / swap if swap and left <= swap else 0.0
    pressure = re.search(r"avg60=([0-9]{1,3}\.[0-9]{1,4})", facts["pressure"])
    waits = float(pressure[1]) if pressure else 0.0
    swapping = used > options.swap_percent and (percent < 10 or waits > MUCH_PRESSURE)
    if (wanted or swapping) and facts["job"]:
        in_swap = f", {used:.0f} % of the swap in use" if swapping else ""
        yield ok("available", f"{message}{in_swap}: a job may take it, and one runs", value=value)
    elif wanted:
        message += f", should be {' and '.join(wanted)} as no job runs; {_takers(kib)}"
        yield warn("available", message, FREE_IT, value=value)
    else:
        yield ok("available", message, value=value)
    if swapping and not facts["job"] and not wanted:
        message = f"{used:.0f} % of {_gib(swap)} of swap in use, should be"
        least = f"{options.swap_percent:g} % at most where so little is available"
        yield warn("swap", f"{message} {least} ({_gib(available)})", FREE_IT)


def _takers(kib: dict[str, int]) -> str:
    takers = {
        "what runs": kib.get("AnonPages", 0),
        "files in /dev/shm and other tmpfs": kib.get("Shmem", 0),
        "huge pages": _huge(kib),
        "the kernel itself": kib.get("SUnreclaim", 0),
    }
    name, most = max(takers.items(), key=lambda item: item[1])
    return f"most of it has {name} ({_gib(most)})"


def _huge(kib: dict[str, int]) -> int:
    of_one_size = kib.get("HugePages_Total", 0) * kib.get("Hugepagesize", 0)
    return kib.get("Hugetlb", of_one_size)


def _huge_pages(kib: dict[str, int], total: int, options: Options) -> Iterator[Finding]:
    aside = _huge(kib)
    if not aside:
        return
    free = min(kib.get("HugePages_Free", 0) * kib.get("Hugepagesize", 0), aside)
    message = f"{_gib(aside)} of {_gib(total)} set aside as huge pages, {_gib(free)} of it unused"
    if free * 100 > options.huge_pages_percent * total:
        most = f"should be {options.huge_pages_percent:g} % of all at most unused"
        yield warn("huge_pages", f"{message}; {most}", GIVE_BACK)
    else:
        yield ok("huge_pages", message)


def _errors(facts: Facts, kib: dict[str, int], options: Options) -> Iterator[Finding]:
    bad, many, total, controllers, labels = [], [], 0, 0, dict[str, list[str]]()
    for line in facts["edac"].splitlines():
        words = line.split(" ", 4)
        if words[0] == "dimm" and len(words) == 5:
            of = "".join(f"{n} {kind}, " for n, kind in ((words[3], "uncorrected"),) if n != "0")
            labels.setdefault(words[1], []).append(f"{words[4][:60]}: {of}{words[2]} corrected")
            continue
        if len(words) != 4 or not all(re.fullmatch("[0-9]{1,12}", w) for w in words[1:3]):
            yield unknown("errors", f"what EDAC counts cannot be read: {line[:80]!r}")
            return
        controllers += 1
        corrected, uncorrected = int(words[1]), int(words[2])
        seconds = int(words[3]) if re.fullmatch("[0-9]{1,12}", words[3]) else 0
        days = max(seconds / 86400, 1.0)
        total += corrected
        if uncorrected:
            bad.append((words[0], uncorrected))
        if corrected / days > options.corrected_per_day:
            many.append((words[0], corrected, days))
    lost = kib.get("HardwareCorrupted", 0)
    if bad:
        each = ", ".join(f"{count} on {name}{_labels(labels.get(name))}" for name, count in bad)
        worst = Quantity(sum(count for _, count in bad), "errors")
        message = f"uncorrected errors since the boot: {each}; should be none"
        yield fail("errors", message, REPLACE_MODULE, value=worst)
    elif many:
        each = ", ".join(
            f"{count} on {name} in {days:.1f} days{_labels(labels.get(name))}"
            for name, count, days in many
        )
        message = f"corrected errors: {each}; should be {options.corrected_per_day} a day at most"
        yield warn("errors", message, WATCH_MODULE, value=Quantity(total, "errors"))
    elif lost:
        message = f"{lost} KiB are out of use after errors (HardwareCorrupted), should be none"
        yield warn("errors", message, WATCH_MODULE)
    elif controllers:
        told = f"no uncorrected errors, {total or 'no'} corrected ones since the boot"
        yield ok("errors", told, value=Quantity(total, "errors"))
    else:
        yield skip("errors", "errors are not counted here (no EDAC driver has a controller)")


def _labels(some: list[str] | None) -> str:
    if not some:
        return ""
    return f" ({'; '.join(some[:3])}{f'; {len(some) - 3} more' if some[3:] else ''})"


CHECK = Check(
    title="Memory: available, installed, its errors, and processes lost for it",
    stale="use",
    options=Options(),
    judge=judge,
    codes={
        "available": Code(
            "Whether enough is available where no job runs; a job rightly takes it.", (FREE_IT,)
        ),
        "total": Code("Whether as much is installed as is wanted.", (FIND_MODULE,)),
        "swap": Code("Swap that is needed, not only used.", (FREE_IT,)),
        "huge_pages": Code("What is set aside and can be had by few programs.", (GIVE_BACK,)),
        "errors": Code(
            "Errors that the memory controllers count (EDAC).", (REPLACE_MODULE, WATCH_MODULE)
        ),
        "oom": Code(
            "Processes that the kernel ended. Those of a job at its own limit are its own fault.",
            (SEE_OOM, RAISE_LIMIT, READ_LOG),
        ),
    },
    probe=PROBE,
    probe_options=("oom_hours",),
    root_adds="who was ended for lack of memory, from the kernel's log",
    limit=25,
)
