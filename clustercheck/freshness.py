"""Whether a result that was kept still holds: what makes it stale, and by which clock.

Each check says what makes its result stale (`Check.stale`). Whatever it says, a boot ends all that
was known of a node, a failure is soon looked at again, and nothing holds for more than a few hours.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from clustercheck.check import Finding, Stale, Status

# A failure, or what could not be found out, is looked at again after so many seconds: a repaired
# node comes back soon, and a node that is gone does not cost every caller its time limit.
FAILED_SECONDS = 120.0

# Settings are changed by hand without a boot, too.
MOST_SECONDS = 8 * 3600.0

# What was seen so long ago was seen just now: callers that come at once share one look.
JUST_NOW_SECONDS = 10.0

# Clocks of machines that share a cache, and of Slurm's controller, may differ by so much.
CLOCKS_DIFFER_SECONDS = 5.0

# slurmd tells whole seconds of uptime, and the controller reckons the boot from them.
BOOT_DIFFERS_SECONDS = 2.0

# So many processors in use, on the average since it was looked at, are more than an idle node's
# daemons take.
BUSY_PROCESSORS = 0.5


class NodeState(NamedTuple):
    """What can be had of a node for next to nothing: from Slurm for all at once, or by one small
    probe. Times are in seconds since the epoch; 0 and "" stand for what is not known.

    boot_id: the kernel's own, another one after each boot.
    boot, slurmd: when the node booted and its slurmd started, by Slurm.
    busy: when it was last busy, by Slurm.
    in_use: a job is there now, by Slurm.
    cpu: seconds of all processors that were not idle since the boot, by the probe; -1 unknown.
    trouble: why Slurm gives it no work ("drained: bad disk"), or "".
    """

    boot_id: str = ""
    boot: float = 0
    slurmd: float = 0
    busy: float = 0
    in_use: bool = False
    cpu: float = -1
    trouble: str = ""


class Stamp(NamedTuple):
    """When a node was asked a check, and its state then. asked: seconds since the epoch."""

    asked: float
    state: NodeState = NodeState()


@dataclass(frozen=True)
class Moment:
    """When and how strictly results are looked at; seconds since the epoch, and seconds.

    since: when the caller came. What was asked after that cannot be had fresher.
    """

    now: float
    since: float
    max_age: float


def same_boot(before: NodeState, now: NodeState) -> bool | None:
    """Has the node run on, its slurmd too, as far as is known? None where nothing is known."""
    found: list[bool] = []
    if before.boot_id and now.boot_id:
        found.append(before.boot_id == now.boot_id)
    if before.boot and now.boot:
        found.append(abs(before.boot - now.boot) <= BOOT_DIFFERS_SECONDS)
    if before.slurmd and now.slurmd:
        found.append(before.slurmd == now.slurmd)
    return all(found) if found else None


def failed(findings: Iterable[Finding]) -> bool:
    """Is it to be looked at again soon: is it bad, not known, or hidden behind what is bad?"""
    return any(
        f.status in (Status.FAIL, Status.UNKNOWN)
        or (f.status is Status.SKIP and f.code in ("blocked", "needs_root"))
        for f in findings
    )


def fresh(stamp: Stamp, stale: Stale, bad: bool, state: NodeState | None, moment: Moment) -> bool:
    """Does a result still hold?

    bad: it `failed`.
    state: the node's now; None where it is not known.
    """
    age = moment.now - stamp.asked
    if age < -CLOCKS_DIFFER_SECONDS:  # the clock was set back: nothing is known of its age
        return False
    if stamp.asked >= moment.since:
        return True
    ran_on = same_boot(stamp.state, state) if state else None
    if moment.max_age <= 0 or age > MOST_SECONDS or ran_on is False:
        return False
    if bad:
        return age <= min(FAILED_SECONDS, moment.max_age)
    if stale == "time":
        return age <= moment.max_age
    if state is None or ran_on is None:
        return False
    return stale == "boot" or not _used_since(stamp, state, age, moment.max_age)


def _used_since(stamp: Stamp, state: NodeState, age: float, max_age: float) -> bool:
    if state.in_use:
        return age > JUST_NOW_SECONDS
    if state.busy:
        return state.busy > stamp.asked - CLOCKS_DIFFER_SECONDS
    if state.cpu < 0 or stamp.state.cpu < 0 or age > max_age:
        return True
    return state.cpu - stamp.state.cpu > BUSY_PROCESSORS * age + CLOCKS_DIFFER_SECONDS


class Clock(NamedTuple):
    """This machine's clock when something was written, and one that nobody sets.

    wall: seconds since the epoch. ran: seconds since the boot that `boot_id` names.
    """

    wall: float
    ran: float
    boot_id: str

    @classmethod
    def now(cls) -> "Clock":
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                boot_id = file.read().strip()
        except (OSError, ValueError):
            boot_id = ""
        return cls(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot_id)

    def set_back_since(self, before: "Clock") -> bool:
        """Was the clock set back since then, so that ages cannot be told?"""
        if self.wall < before.wall - CLOCKS_DIFFER_SECONDS:
            return True
        if not self.boot_id or self.boot_id != before.boot_id:
            return False
        passed = self.ran - before.ran
        return self.wall - before.wall < passed - CLOCKS_DIFFER_SECONDS


def host_and_boot() -> tuple[str, str]:
    """This machine's name and boot, for whoever finds a lock of ours."""
    return os.uname().nodename, Clock.now().boot_id
