"""Disks have room and are well: full file systems, quota, SMART, RAID, errors in the kernel's log.

How full the file system is that holds /tmp is said by the check tmp, and not again here, unless the
option `paths` names it. Network and cluster file systems are looked at only where `paths` names
them: all nodes share them, so that one node tells enough. What is read-only (images, snaps, discs)
is full by nature, and /boot/efi of no matter.

85 and 95 % are our own choice: between them is where Kubernetes begins to clear away images (85 %)
and to refuse work (90 %), and an ext4 keeps 5 % for root. 10 sectors, too, are ours: a few replaced
ones may stay few for years, while one that cannot be read is said at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from clustercheck.check import Check, Code, Facts, Finding, option, skip

from ._disk_kernel import judge_arrays, judge_log, judge_states
from ._disk_probe import PROBE
from ._disk_remedies import (
    COOL_DISK,
    FIND_DISK,
    FREE_INODES,
    FREE_SPACE,
    GET_SMARTCTL,
    MEND_ARRAY,
    NAME_PLACE,
    RAISE_QUOTA,
    READ_LOG,
    REPLACE_DISK,
    SEE_SYSTEM,
    START_ARRAY,
    WATCH_DISK,
)
from ._disk_smart import judge_smart
from ._disk_space import judge_quota, judge_space

Percent = Annotated[int, Ge(1), Le(100)]


@dataclass(frozen=True)
class Options:
    paths: tuple[str, ...] = option(
        (), "directories whose file systems are looked at; none: all local ones but /tmp's"
    )
    ignore: tuple[str, ...] = option((), "mount points that may be full")
    warn_percent: Percent = option(
        85, "space or inodes used from which on it is a warning", unit="%"
    )
    fail_percent: Percent = option(
        95, "space or inodes used from which on it is a failure", unit="%"
    )
    quota: bool = option(False, "whether the login user's quota is looked at")
    smart: Literal["auto", "yes", "no"] = option(
        "auto", "whether disks are asked by smartctl: where it is installed, always, never"
    )
    bad_sectors: Annotated[int, Ge(1)] = option(
        10, "sectors that were replaced by spare ones that are a warning", unit="sectors"
    )
    wear_percent: Annotated[int, Ge(1), Le(255)] = option(
        90, "share of a disk's rated writes used that is a warning", unit="%"
    )
    log_hours: Annotated[int, Ge(0)] = option(
        24, "how far back the kernel's log is read for disk errors; 0: not at all", unit="h"
    )

    def __post_init__(self) -> None:
        if self.warn_percent > self.fail_percent:
            lower, upper = self.warn_percent, self.fail_percent
            raise ValueError(f"warn_percent ({lower} %) is above fail_percent ({upper} %)")
        for name in ("paths", "ignore"):
            for path in getattr(self, name):
                if not path.startswith("/"):
                    raise ValueError(f"{path!r} in {name} must begin with /")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    found = [
        *judge_space(facts, options),
        *(judge_quota(facts) if options.quota else ()),
        *judge_states(facts),
        *judge_smart(facts, options.smart, options.bad_sectors, options.wear_percent),
        *judge_arrays(facts),
        *judge_log(facts, options.log_hours),
    ]
    yield from found
    if not found:
        yield skip("none", "no disks, and no local file system but the one that holds /tmp")


CHECK = Check(
    title="Disks: room on local file systems, quota, SMART, RAID, kernel errors",
    stale="time",
    options=Options(),
    judge=judge,
    codes={
        "space": Code(
            "How full the file systems are. /boot is a warning at most.", (FREE_SPACE, SEE_SYSTEM)
        ),
        "inodes": Code("How many inodes are used, where too many.", (FREE_INODES, SEE_SYSTEM)),
        "broken": Code("The file system gives an error.", (SEE_SYSTEM,)),
        "missing": Code("A directory of the option `paths` is not there.", (NAME_PLACE,)),
        "none": Code("Nothing of the kind is on this node."),
        "quota": Code("What the login user may still write (quota = yes).", (RAISE_QUOTA,)),
        "smart": Code(
            "Whether disks call themselves healthy, by smartctl; needs root.",
            (REPLACE_DISK, GET_SMARTCTL),
        ),
        "wear": Code(
            "A disk that works and has bad sectors, media errors or few writes left.",
            (WATCH_DISK, REPLACE_DISK),
        ),
        "hot": Code("A disk that says that it is too hot.", (COOL_DISK,)),
        "asleep": Code("Disks that sleep are not woken to be asked."),
        "hidden": Code(
            "Disks without SMART, virtual ones, or behind a RAID controller, which must be asked"
            " by its maker's tool."
        ),
        "state": Code("A disk that its driver has given up or waits for.", (FIND_DISK,)),
        "array": Code(
            "RAID by the kernel (md): members that are missing.", (MEND_ARRAY, START_ARRAY)
        ),
        "log": Code("Disk errors in the kernel's log.", (READ_LOG,)),
    },
    probe=PROBE,
    probe_options=("paths", "quota", "smart", "log_hours"),
    root_adds="how disks are by SMART, and the kernel's log where it is closed to users",
    limit=40,
)
