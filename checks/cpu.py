"""The processors are free for the work that they are given, and nothing holds their clock down.

A load that exceeds the processors makes every job slow, and before a benchmark any load at all
spoils the numbers. The load average alone is late: a minute after a job has ended it still tells
of it. So a node is busy only where the processors are in use at this moment as well. By default
that is more work than there are processors, since a node that runs jobs is busy on purpose; the
profile benchmark wants 10 %.

The governor `powersave` keeps the clock at its lowest, but for the drivers that choose the speed by
themselves (intel_pstate and amd_pstate in their active mode), where it is the usual one. Where
`governor` names some, any other is a warning. A virtual machine mostly has no governor.

Source: kernel documentation, admin-guide/pm/cpufreq.rst, intel_pstate.rst and amd-pstate.rst.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    ok,
    option,
    skip,
    unknown,
    warn,
)

PROBE = r"""
load='' cpus='' busy='' first=''
read -r load 2>/dev/null <"$ROOT/proc/loadavg"
read -r cpus 2>/dev/null <"$ROOT/sys/devices/system/cpu/online"
[ -n "$cpus" ] || cpus=$(within 2 getconf _NPROCESSORS_ONLN 2>/dev/null)
fact load "$load"
fact cpus "$cpus"
# whether the processors are in use now is looked at only where the load may be too much: it takes
# a fifth of a second
one=${load%%.*}
case $one in
'' | 0 | *[!0-9]*) ;;
*)
    read -r first 2>/dev/null <"$ROOT/proc/stat"
    sleep 0.2 2>/dev/null || sleep 1
    read -r busy 2>/dev/null <"$ROOT/proc/stat"
    fact first "$first"
    fact second "$busy"
    ;;
esac

governors='' driver='' value=''
for place in "$ROOT"/sys/devices/system/cpu/cpu[0-9]*/cpufreq; do
    value=''
    read -r value 2>/dev/null <"$place/scaling_governor"
    case " $governors " in
    *" $value "*) ;;
    *) governors="$governors${governors:+ }$value" ;;
    esac
    [ -n "$driver" ] || read -r driver 2>/dev/null <"$place/scaling_driver"
done
fact governors "$governors"
fact driver "$driver"
"""

# They choose the speed by themselves, and `powersave` lets them (active mode; in the passive one
# intel_pstate calls itself intel_cpufreq, and amd_pstate amd-pstate).
BY_THEMSELVES = ("intel_pstate", "amd-pstate-epp")
GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")
# Of few processors, asking makes so many busy for a moment by itself.
OF_OUR_OWN = 2


@dataclass(frozen=True)
class Options:
    busy_percent: Annotated[float, Gt(0)] = option(
        150, "load, in percent of the processors, above which the node is busy", unit="%"
    )
    governor: tuple[str, ...] = option(
        (), "frequency governors that are allowed (performance, schedutil); none named: any"
    )


FIND_WORK = Remedy(
    "See what runs (`ps -eo pcpu,pid,user,comm --sort=-pcpu | head`), and whether it belongs to a"
    " job (`squeue -w NODE`). What was left behind by a job or started over SSH is its owner's to"
    " end; a job that uses more processors than it asked for is kept to its own by task/cgroup"
    " with ConstrainCores. Where the node is to be busy, raise busy_percent for its group.",
)
SET_GOVERNOR = Remedy(
    "Set the governor by what sets it at boot: a profile of tuned (throughput-performance or"
    " hpc-compute) or the service cpupower. `cpupower frequency-set -g performance` holds until the"
    " next boot, and until a daemon such as tuned or power-profiles-daemon sets another.",
)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    yield _busy(facts, options)
    yield from _governor(facts, options)


def _busy(facts: Facts, options: Options) -> Finding:
    words = facts["load"].split()
    cpus = _count(facts["cpus"])
    if not words or not re.fullmatch(r"[0-9]{1,7}\.[0-9]{1,4}", words[0]):
        return unknown("busy", "how many tasks there are cannot be read from /proc/loadavg")
    if not cpus:
        return unknown("busy", "how many processors there are cannot be read")
    load = float(words[0])
    processors = f"{cpus} processor{'s' if cpus > 1 else ''}"
    found = f"{load:g} tasks at a time on {processors} in the last minute"
    value = Quantity(load, "tasks")
    most = max(cpus * options.busy_percent / 100, OF_OUR_OWN)
    if load <= most:
        return ok("busy", found, value=value)
    used = _used(facts.get("first", ""), facts.get("second", ""))
    if used is None:
        return unknown("busy", f"{found}, and whether it still is cannot be read from /proc/stat")
    found += f", and {100 * used:.0f} % of all processors are in use"
    # a share of the processors cannot exceed 1, as the load can
    if used * cpus <= min(most, cpus * 0.9):
        return ok("busy", f"{found}: it is going down", value=value)
    message = f"{found}; should be {most:g} tasks at most"
    return warn("busy", message, FIND_WORK, value=value)


def _count(text: str) -> int:
    """How many processors: "0-63,128" or a number alone as getconf gives it; 0 for no answer."""
    if re.fullmatch("[1-9][0-9]{0,5}", text):
        return int(text)  # what is online is "0" where it is one
    count = 0
    for part in text.split(","):
        match = re.fullmatch("([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if not match:
            return 0
        count += int(match[2] or match[1]) - int(match[1]) + 1
    return max(count, 0)


def _used(first: str, second: str) -> float | None:
    """The share of all processors that was in use between two looks; None where it is not told."""
    looks = [re.findall("[0-9]{1,18}", text)[:8] for text in (first, second)]
    if any(len(look) < 5 for look in looks) or not first.startswith("cpu "):
        return None
    past = [int(b) - int(a) for a, b in zip(*looks, strict=False)]
    total = sum(past)
    idle = past[3] + past[4]  # idle and iowait
    return (total - idle) / total if total > 0 and idle >= 0 else None


def _governor(facts: Facts, options: Options) -> Iterator[Finding]:
    found = facts["governors"].split()
    if not {*found} <= {*GOVERNORS, *options.governor}:
        yield unknown("governor", f"no frequency governor is known as {' '.join(found)[:40]!r}")
        return
    driver = facts["driver"] or "its driver"
    if not found:
        yield skip("governor", "no frequency governor: the firmware or the host decides")
        return
    told = f"the frequency governor is {' and '.join(found)} of {driver}"
    if options.governor:
        wrong = [name for name in found if name not in options.governor]
        should = f", should be {' or '.join(options.governor)}"
    else:
        wrong = ["powersave"] if "powersave" in found and driver not in BY_THEMSELVES else []
        should = ", which keeps the clock at its lowest; should be any other"
    if wrong:
        yield warn("governor", told + should, SET_GOVERNOR)
    else:
        yield ok("governor", told)


CHECK = Check(
    title="processors: load, and the governor of their clock",
    options=Options(),
    judge=judge,
    codes={
        "busy": Code(
            "Whether more work is on the processors than should be, now and not only in the last"
            " minute.",
            (FIND_WORK,),
        ),
        "governor": Code("What decides the clock of the processors.", (SET_GOVERNOR,)),
    },
    probe=PROBE,
    stale="use",
)
