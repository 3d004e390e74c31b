"""The services that the site wants run, and none that matters on a node has failed.

Name those that every node needs with `want`. Other failed units are shown; they count only where
`watch` names them, for sound machines have failed units that nobody misses. What another check
looks at itself (time daemons, slurmd, munge, mounts) is not watched by default.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from annotated_types import Ge

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Remedy,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

PROBE = r"""
init=other
if [ -d "$ROOT/run/systemd/system" ]; then
    init=systemd
elif [ -d "$ROOT/run/openrc/started" ]; then
    init=openrc
fi
fact init "$init"
first=
read -r first 2>/dev/null <"$ROOT/proc/1/comm"
fact first "$first"
set -f
IFS="|$cc_nl"
# shellcheck disable=SC2086 # one word for each name
set -- $want
unset IFS
case $init in
systemd)
    have systemctl || {
        fact failed_status 127
        return
    }
    said=$(within 5 systemctl list-units --state=failed,auto-restart,auto-restart-queued --all \
        --plain --no-legend --no-pager 2>&1)
    fact failed_status "$?"
    fact failed "$said"
    [ "$#" -gt 0 ] || return
    uptime=
    read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
    fact uptime "$uptime"
    # a template is shown for no instance: the name is handed over as it stands
    said=$(within 5 systemctl show --no-pager -p Id -p LoadState -p ActiveState -p SubState \
        -p UnitFileState -p Result -p Type -p NRestarts -p StateChangeTimestampMonotonic \
        -p ExecMainStartTimestampMonotonic -p TriggeredBy -p WantedBy -p RequiredBy -- "$@" 2>&1)
    fact units_status "$?"
    fact units "$said"
    ;;
openrc)
    for name; do
        state=stopped
        for kind in started starting failed inactive; do
            [ -e "$ROOT/run/openrc/$kind/$name" ] && state=$kind
        done
        [ -e "$ROOT/etc/init.d/$name" ] || state=not-found
        echo "$name $state"
    done | lines openrc
    ;;
esac
"""

# Units without which a node takes no work or its users cannot log in, and that no other check has.
WATCHED = (
    *("ssh.service", "sshd.service", "sssd*.service", "nslcd.service", "winbind.service"),
    *("autofs.service", "rpcbind.service", "rpc-gssd.service", "dbus*.service"),
    *("NetworkManager.service", "systemd-networkd.service", "wicked*.service", "network.service"),
    *("systemd-logind.service", "systemd-udevd.service", "systemd-journald.service"),
    *("openibd.service", "opensm.service", "rdma*.service", "lnet.service", "lustre*.service"),
    *("beegfs-client.service", "gpfs.service", "weka*.service"),
    *("nvidia-fabricmanager.service", "nvidia-dcgm.service", "slurmctld.service"),
    "slurmdbd.service",
)


@dataclass(frozen=True)
class Options:
    want: tuple[str, ...] = option(
        (),
        "services that must run: slurmd, munge, or sshd|ssh where the name differs; with systemd"
        " any unit, such as home.mount or backup.timer",
    )
    watch: tuple[str, ...] = option(
        WATCHED, "failed units that count though nobody has asked for them; * stands for anything"
    )
    start_seconds: Annotated[int, Ge(1)] = option(
        300, "how long a unit may take to start", unit="s"
    )
    restarts: Annotated[int, Ge(1)] = option(
        5, "so many restarts by itself, the last within an hour, are too many", unit="times"
    )


LOOK = Remedy(
    "See what it says with `systemctl status NAME` and `journalctl -u NAME -b`, mend that, and"
    " start it with `systemctl start NAME`. What is listed as failed stays so until `systemctl"
    " reset-failed NAME` or a start that succeeds.",
    "§4.4",
)
LOOP = Remedy(
    "See why it ends with `journalctl -u NAME -b`: it is started again and again, and ends each"
    " time. Mend that; systemd then leaves it alone.",
    "§4.4",
)
INSTALL = Remedy(
    "Install it, or correct the name in `want`: `systemctl list-unit-files` has the names of the"
    " node (munge, not munged; sshd here, ssh there)."
)
UNMASK = Remedy(
    "Somebody has forbidden its start. Find out who and why, and `systemctl unmask NAME` if it is"
    " to run."
)
ENABLE = Remedy("`systemctl enable NAME`, so that it runs after the next boot, too.")
OPENRC = Remedy(
    "See why with `rc-service NAME status` and the log, and start it with `rc-service NAME start`."
)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    init = facts["init"]
    if init == "systemd" and not _has_not_booted(facts):
        yield from _failed(facts, options)
        if options.want:
            yield from _wanted(facts, options)
    elif init == "openrc" and options.want:
        yield from _openrc(facts, options)
    elif init not in ("systemd", "openrc", "other"):
        yield unknown("manager", f"what starts services cannot be read: {init[:40]!r}")
    elif options.want:
        first = facts["first"][:40] or "unknown"
        message = f"neither systemd nor OpenRC runs here (process 1 is {first})"
        yield unknown("manager", f"{message}: whether the services run cannot be found out")
    else:
        yield skip("manager", "no systemd that could be asked, and no service is asked for")


def _has_not_booted(facts: Facts) -> bool:
    """A container into which the folder of the host's systemd is mounted."""
    return "not been booted with systemd" in facts.get("failed", "")[:2000]


def _failed(facts: Facts, options: Options) -> Iterator[Finding]:
    status, said = facts["failed_status"], facts.get("failed", "")
    if status != "0":
        words = "no systemctl" if status == "127" else _last(said)
        words = "no answer within 5 s" if status == "124" else words
        yield unknown("failed", f"systemd gives no list of failed units: {words}")
        return
    rows = [re.sub(r"^[^\w-]+", "", line)[:400].split() for line in said.splitlines()[:2000]]
    good = [row for row in rows if len(row) >= 4 and re.fullmatch(r"\S+\.[a-z]+", row[0])]
    if any(rows) and not good:
        yield unknown("failed", f"the list of failed units is not understood: {_last(said)}")
        return
    if not said.strip() and said:
        yield unknown("failed", "the list of failed units is not understood")
        return
    names = {row[0]: row[3].startswith("auto-restart") for row in good}
    wanted = {_unit(name) for entry in options.want for name in entry.split("|")}
    watched = [
        name
        for name in names
        if name not in wanted and any(fnmatchcase(name, pattern) for pattern in options.watch)
    ]
    for name in watched[:20]:
        if names[name]:
            yield warn("failed", f"{name} ends and is started again and again", LOOP)
        else:
            yield warn("failed", f"{name} has failed", LOOK)
    others = [name for name in names if name not in watched and name not in wanted]
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        listed = ", ".join(others[:5])
        yield ok("failed", f"degraded, by units that are not watched: {listed}{more}")
    elif not watched:
        yield ok("failed", "no unit has failed" if not names else "no other unit has failed")


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:300] if lines else "no word"


def _unit(name: str) -> str:
    """The name with the suffix that systemctl takes for granted."""
    kinds = "service|socket|device|mount|automount|swap|target|path|timer|slice|scope"
    return name if re.search(rf"\.({kinds})$", name) else f"{name}.service"


def _wanted(facts: Facts, options: Options) -> Iterator[Finding]:
    names = [name for entry in options.want for name in entry.split("|") if name]
    if facts.get("units_status") == "124":
        yield unknown("wanted", "systemd does not say within 5 s how the services are")
        return
    blocks = [block for block in re.split(r"\n\s*\n", facts.get("units", "")[:300_000]) if block]
    shown = [dict(_pairs(block)) for block in blocks]
    if len(shown) != len(names) or not all(unit.get("LoadState") for unit in shown):
        said = _last(facts.get("units", ""))
        yield unknown("wanted", f"how the services are is not understood: {said}")
        return
    by_name = dict(zip(names, shown, strict=True))
    for entry in options.want:
        found = [
            list(_judge_unit(name, by_name[name], facts, options))
            for name in entry.split("|")
            if name
        ]
        yield from min(found, key=lambda fs: max(f.status for f in fs), default=[])


def _pairs(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines()[:100]:
        key, _, value = line.partition("=")
        yield key.strip(), value.strip()


def _judge_unit(
    name: str, unit: Mapping[str, str], facts: Facts, options: Options
) -> Iterator[Finding]:
    load, active, sub = (unit.get(key, "") for key in ("LoadState", "ActiveState", "SubState"))
    state = f"{name} is {active}" + (f" ({sub})" if sub not in ("", active) else "")
    since = _seconds_since(unit, facts)
    age = "" if since is None else f" for {_duration(since)}"
    count = unit.get("NRestarts", "")
    restarts = int(count) if re.fullmatch("[0-9]{1,9}", count) else 0
    if load == "not-found":
        yield fail("wanted", f"{name}: there is no such unit", INSTALL)
    elif load == "masked":
        yield fail("wanted", f"{name} is masked: it cannot be started", UNMASK)
    elif load != "loaded":
        yield fail("wanted", f"{name} cannot be loaded ({load[:40]})", LOOK)
    elif active in ("active", "reloading", "refreshing"):
        if restarts >= options.restarts and since is not None and since < 3600:
            message = f"{state}{age}, after {restarts} restarts by itself"
            yield warn("wanted", f"{message}, should be fewer than {options.restarts}", LOOP)
        else:
            yield ok("wanted", state)
        yield from _at_boot(name, unit)
    elif sub.startswith("auto-restart"):
        yield fail("wanted", f"{name} ends and is started again and again{_times(restarts)}", LOOP)
    elif active == "activating":
        message = f"{state}{age}, should be active within {options.start_seconds} s"
        if since is not None and since <= options.start_seconds:
            yield warn("wanted", message, LOOK)
        else:
            yield fail("wanted", message, LOOK)
    elif active == "inactive" and unit.get("TriggeredBy"):
        yield ok("wanted", f"{state}, and started by {unit['TriggeredBy'][:80]} when it is needed")
    elif active == "inactive" and unit.get("Type") == "oneshot" and _has_run(unit):
        yield ok("wanted", f"{name} has run and ended well")
    elif active in ("inactive", "failed", "deactivating", "maintenance"):
        result = unit.get("Result", "")
        why = f" ({result[:40]})" if result not in ("", "success") else ""
        yield fail("wanted", f"{state}{why}{age}, should be active", LOOK)
    else:
        yield unknown("wanted", f"{name}: the state {active[:40]!r} is not known here")


def _times(restarts: int) -> str:
    return f" ({restarts} times)" if restarts else ""


def _at_boot(name: str, unit: Mapping[str, str]) -> Iterator[Finding]:
    """Whether something starts it at the next boot; a unit that others pull in counts as such."""
    by_others = any(unit.get(key) for key in ("WantedBy", "RequiredBy", "TriggeredBy"))
    if unit.get("UnitFileState") == "disabled" and not by_others:
        yield warn("at_boot", f"{name} runs, and nothing starts it at the next boot", ENABLE)


def _has_run(unit: Mapping[str, str]) -> bool:
    began = unit.get("ExecMainStartTimestampMonotonic", "")
    return unit.get("Result") == "success" and began.strip("0") != ""


def _seconds_since(unit: Mapping[str, str], facts: Facts) -> float | None:
    """How long the unit is in its state; None where that cannot be told."""
    moment = unit.get("StateChangeTimestampMonotonic", "")
    uptime = facts.get("uptime", "")
    if not re.fullmatch("[1-9][0-9]{0,17}", moment):
        return None
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", uptime):
        return None
    seconds = float(uptime) - int(moment) / 1_000_000
    return seconds if seconds >= 0 else None


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _openrc(facts: Facts, options: Options) -> Iterator[Finding]:
    states = dict(_words(facts["openrc"].splitlines()))
    for entry in options.want:
        found = [_of_openrc(name, states.get(name)) for name in entry.split("|") if name]
        if found:
            yield min(found, key=lambda f: f.status)


def _words(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines[:1000]:
        name, _, state = line.rpartition(" ")
        yield name, state


def _of_openrc(name: str, state: str | None) -> Finding:
    if state == "started":
        return ok("wanted", f"{name} is started")
    if state == "not-found":
        return fail("wanted", f"{name}: there is no such service", INSTALL)
    if state in ("starting", "stopped", "failed", "inactive"):
        return fail("wanted", f"{name} is {state}, should be started", OPENRC)
    return unknown("wanted", f"{name}: how it is was not told")


CHECK = Check(
    title="Services that must run, and failed units",
    stale="time",
    options=Options(),
    judge=judge,
    codes={
        "manager": Code("Whether there is a systemd or OpenRC that can be asked."),
        "failed": Code("Units that have failed, or are started again and again.", (LOOK, LOOP)),
        "wanted": Code(
            "A service that `want` names, and how it is.", (LOOK, LOOP, INSTALL, UNMASK, OPENRC)
        ),
        "at_boot": Code("A wanted service that runs now, and not after the next boot.", (ENABLE,)),
    },
    probe=PROBE,
    probe_options=("want",),
    limit=15,
)
