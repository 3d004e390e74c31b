"""SELinux runs in a mode that the site allows, now and after the next boot.

A node that was switched to permissive by hand comes back enforcing from its next boot, and slurmd
or munged may then be refused a file they had yesterday. Enforcing is no fault by itself: Slurm
runs under it where the policy fits, which the denials in the audit log show.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

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
    unknown,
    warn,
)

from ._selinux_modes import (
    CONFIG,
    NO_CONFIG,
    Config,
    Mode,
    mode_at_boot,
    mode_now,
    read_config,
    switched_by,
)

PROBE = r"""
kernel=unreadable
if [ -r "$ROOT/proc/filesystems" ]; then
    kernel=no
    while read -r kind name; do
        [ "$kind $name" = "nodev selinuxfs" ] && kernel=yes
    done <"$ROOT/proc/filesystems"
fi
fact kernel "$kernel"

where=
if [ -r "$ROOT/proc/mounts" ]; then
    while read -r _ target kind _; do
        [ "$kind" = selinuxfs ] && where=$target
    done <"$ROOT/proc/mounts"
fi
for target in /sys/fs/selinux /selinux; do
    [ -z "$where" ] && [ -e "$ROOT$target/enforce" ] && where=$target
done
fact mount "${where:-none}"
enforce=
policy=unknown
if [ -n "$where" ]; then
    read -r enforce 2>/dev/null <"$ROOT$where/enforce"
    fact enforce "${enforce:-unreadable}"
    # classes are there from the moment that a policy is loaded
    if [ -r "$ROOT$where/class" ]; then
        policy=none
        for entry in "$ROOT$where/class"/*; do
            [ -e "$entry" ] && policy=loaded
            break
        done
    fi
    fact policy "$policy"
fi
label=
read -r label 2>/dev/null <"$ROOT/proc/self/attr/current"
fact label "$label"
case $enforce in
0 | 1) ;;
*)
    if have getenforce; then
        fact getenforce "$(within 3 getenforce 2>/dev/null)"
    elif have sestatus; then
        within 3 sestatus 2>/dev/null | lines sestatus
    fi
    ;;
esac

lsm=
read -r lsm 2>/dev/null <"$ROOT/sys/kernel/security/lsm"
apparmor=
read -r apparmor 2>/dev/null <"$ROOT/sys/module/apparmor/parameters/enabled"
fact lsm "$lsm"
fact apparmor "$apparmor"

if [ -r "$ROOT/proc/cmdline" ]; then
    words='' all=''
    read -r all <"$ROOT/proc/cmdline"
    set -f
    for word in $all; do
        case $word in
        --) break ;;
        selinux=* | enforcing=*) words="$words $word" ;;
        esac
    done
    set +f
    fact cmdline "${words# }"
fi

# report what of a file of settings counts
settings() { sed '/^[[:space:]]*#/d; /^[[:space:]]*$/d' "$1" | head -n 50 | lines "$2"; }
config=$ROOT/etc/selinux/config
if [ -r "$config" ]; then
    fact config_state read
    settings "$config" config
elif [ -e "$config" ] || { [ -d "${config%/*}" ] && [ ! -x "${config%/*}" ]; }; then
    fact config_state unreadable
else
    fact config_state absent
fi
old=$ROOT/etc/sysconfig/selinux
if [ -f "$old" ] && [ ! -L "$old" ] && [ -r "$old" ]; then
    settings "$old" sysconfig
fi
for kept in "$ROOT"/etc/selinux/*/policy; do
    [ -d "$kept" ] || continue
    name=${kept%/policy}
    name=${name##*/}
    if [ ! -r "$kept" ] || [ ! -x "$kept" ]; then
        printf '%s unreadable\n' "$name"
        continue
    fi
    for entry in "$kept"/policy.*; do
        [ -e "$entry" ] && printf '%s %s\n' "$name" "${entry##*.}"
    done
done | lines policies

# "4 slurmd { read } file 0": denials by command, rights, class and permissive=; the last line
# of what comes in is the exit status of what read it
denials() {
    awk -v since="$since" '
        /^status [0-9]+$/ { if ($2 != 0) print "status " $2; next }
        !/avc:  *denied/ || !/comm="(slurm|munge)/ { next }
        match($0, /audit\([0-9]+/) && substr($0, RSTART + 6, RLENGTH - 6) + 0 < since { next }
        {
            comm = $0
            sub(/.* comm="/, "", comm); sub(/".*/, "", comm)
            rights = substr($0, index($0, "{")); rights = substr(rights, 1, index(rights, "}"))
            kind = ""; state = "?"
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^tclass=/) kind = substr($i, 8)
                if ($i ~ /^permissive=/) state = substr($i, 12)
            }
            seen[comm " " rights " " kind " " state]++
        }
        END { for (what in seen) print seen[what], what }' | sort -rn | head -n 40
}
if [ -n "$where" ] && [ "$policy" != none ] && [ -n "$denial_hours" ]; then
    since=$(($(date +%s) - denial_hours * 3600))
    log=$ROOT/var/log/audit/audit.log
    as_root test -f "$log"
    case $? in
    126) fact denials_from unreadable ;;
    0)
        fact denials_from "the audit log"
        for file in "$log.1" "$log"; do
            as_root test -f "$file" || continue
            as_root timeout -k 1 4 tail -c 4000000 "$file" 2>/dev/null
            echo "status $?"
        done | denials | lines denials
        ;;
    *)
        if have journalctl; then
            fact denials_from "the journal"
            {
                as_root timeout -k 1 5 journalctl -q --no-pager -o cat -n 50000 \
                    --since "@$since" _TRANSPORT=audit + _TRANSPORT=kernel 2>/dev/null
                echo "status $?"
            } | denials | lines denials
        else
            fact denials_from "the kernel's log"
            {
                as_root timeout -k 1 5 dmesg 2>/dev/null
                echo "status $?"
            } | denials | lines denials
        fi
        ;;
    esac
fi
"""


@dataclass(frozen=True)
class Options:
    allow: tuple[Mode, ...] = option(
        ("permissive", "disabled"),
        "modes that the site allows: enforcing, permissive, disabled",
    )
    denial_hours: Annotated[int, Ge(1)] = option(
        24, "how far back denials of slurmd and munged are counted", unit="h"
    )


ALLOW_IT = Remedy(
    "Decide which mode the site wants. Slurm and Munge run under Enforcing where the policy fits"
    " them: look for denials with `ausearch -m AVC -c slurmd`, and if there are none, say"
    " `allow = enforcing` for this check. Where no such policy is at hand, write"
    " SELINUX=permissive in /etc/selinux/config, which holds from the next boot on; a mode set"
    " with setenforce is lost at that boot.",
    "§4.1.5",
    disturbs=True,
)
SET_IT = Remedy(
    "Write the mode that the site wants as SELINUX= in /etc/selinux/config and boot the node when"
    " it is drained. From disabled go to permissive first: the first boot gives every file its"
    " label and takes long; go on to enforcing when a day's work left no denials.",
    "§4.1.5",
    disturbs=True,
)
CLEAR_LINE = Remedy(
    "Take the word off the kernel's command line, which goes before what /etc/selinux/config says"
    " (`grubby --update-kernel ALL --remove-args 'selinux enforcing'`; elsewhere"
    " GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub; nodes that boot from the network"
    " have it in the boot server's file). Let /etc/selinux/config say permissive for the first"
    " boot after that, which gives every file its label, and boot the node when it is drained.",
    "§4.1.5",
    disturbs=True,
)
SAME_AT_BOOT = Remedy(
    "Make the two agree: if the mode now is the right one, write it as SELINUX= in"
    " /etc/selinux/config (and take selinux= and enforcing= off the kernel command line);"
    " if the other is, boot the node when it is drained.",
    "§4.1.5",
)
PLAIN_LINE = Remedy(
    "Write the line as SELINUX=permissive (or the mode that is meant), at the very beginning of a"
    " line, without quotes and without blanks round the sign.",
    "§4.1.5",
)
ONE_FILE = Remedy(
    "Make /etc/sysconfig/selinux a link to /etc/selinux/config again, as it was delivered:"
    " an editor that works in place has made a file of it.",
    "§4.1.5",
)
GET_POLICY = Remedy(
    "Install the policy that SELINUXTYPE= in /etc/selinux/config names, or name one that is"
    " installed, without a comment behind it. Do it before the next boot: a node that is to"
    " enforce a policy it has not stops there.",
    "§4.1.5",
)
LOAD_POLICY = Remedy(
    "Find out why no policy was loaded at boot (`journalctl -b -g SELinux`), install the policy,"
    " and boot the node when it is drained.",
    "§4.1.5",
    disturbs=True,
)
FIT_POLICY = Remedy(
    "See what was refused with `ausearch -m AVC -c slurmd` and `ausearch -m AVC -c munged`:"
    " wrong labels are put right with `restorecon -Rv` on the files named; what is left needs a"
    " policy module of the site's own, made with audit2allow and read before it is loaded.",
    "§4.1.5",
)
READ_CONFIG = Remedy("Let the login user read /etc/selinux/config, or use become = sudo.")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    now, words = mode_now(facts)
    if now is None:
        yield unknown("mode", words)
        return
    if now not in options.allow:
        message = f"{words}, should be {_either(options.allow)}"
        if switch := switched_by(now, facts.get("cmdline", "").split()):
            yield fail("mode", f"{message}: {switch} is on the kernel command line", CLEAR_LINE)
        else:
            yield fail("mode", message, ALLOW_IT if now == "enforcing" else SET_IT)
    else:
        yield ok("mode", words)
    if now == "enforcing" and facts.get("policy") == "none":
        yield warn("policy", "enforcing, but no policy is loaded: nothing is refused", LOAD_POLICY)
    yield from _boot(facts, now, options)
    yield from _denials(facts, now, options)


def _either(modes: tuple[Mode, ...]) -> str:
    return " or ".join(modes)


def _boot(facts: Facts, now: Mode, options: Options) -> Iterator[Finding]:
    state = facts["config_state"]
    if state == "unreadable":
        yield unknown("boot", f"the mode at the next boot: {CONFIG} cannot be read", READ_CONFIG)
        return
    if "cmdline" not in facts:
        yield unknown("boot", "the mode at the next boot: /proc/cmdline cannot be read")
        return
    config = read_config(facts["config"]) if state == "read" else None
    lsm = [name for name in facts["lsm"].split(",") if name]
    mode, why = mode_at_boot(config, facts["cmdline"].split(), lsm)
    if mode != now and why == NO_CONFIG:
        message = f"{now} now, and nothing sets the mode for the next boot: {why}"
        yield warn("boot", message, SAME_AT_BOOT)
    elif mode != now:
        allowed = "" if mode in options.allow else f", should be {_either(options.allow)}"
        yield warn("boot", f"{now} now, {mode} after the next boot ({why}){allowed}", SAME_AT_BOOT)
    elif mode in options.allow:  # where it is not, that has been said of the mode now
        yield ok("boot", f"{mode} after the next boot, too")
    if config is not None:
        yield from _config(facts, config, mode, lsm)


def _config(facts: Facts, config: Config, mode: Mode, lsm: list[str]) -> Iterator[Finding]:
    if config.mode is None and config.passed_over:
        lines = ", ".join(repr(line) for line in config.passed_over[:3])
        yield warn("config", f"{CONFIG}: {lines} is not read as a mode", PLAIN_LINE)
    old = read_config(facts["sysconfig"]) if "sysconfig" in facts else config
    if old.mode != config.mode:
        message = f"/etc/sysconfig/selinux is a file of its own that says {old.mode}; nobody reads"
        yield warn("config", f"{message} it, and {CONFIG} says {config.mode}", ONE_FILE)
    kept = [line.split() for line in facts["policies"].splitlines()]
    if mode != "disabled" and config.policy not in [words[0] for words in kept if words]:
        then = "the boot stops" if mode == "enforcing" else "nothing is in force"
        message = f"the policy {config.policy!r} is not installed: {then} at the next boot"
        yield warn("boot_policy", message, GET_POLICY)


def _denials(facts: Facts, now: Mode, options: Options) -> Iterator[Finding]:
    source = facts.get("denials_from", "")
    if source in ("", "unreadable"):  # no policy, or said once for the node as what root adds
        return
    refused, recorded, sample = 0, 0, ""
    for line in facts["denials"].splitlines():
        count, _, what = line.partition(" ")
        if count == "status":
            yield unknown("denials", f"{source} could not be read (exit status {what})")
            return
        if not re.fullmatch("[0-9]{1,9}", count):
            yield unknown("denials", f"what {source} has cannot be read: {line[:80]!r}")
            return
        what, _, permissive = what.rpartition(" ")
        if permissive == "0" or (permissive == "?" and now != "permissive"):
            refused += int(count)
        else:
            recorded += int(count)
        sample = sample or f"most of all {what}"
    span = f"of slurmd and munged in the last {options.denial_hours} h of {source}"
    value = Quantity(refused + recorded, "denials")
    if refused:
        yield warn("denials", f"{refused} denials {span}, {sample}", FIT_POLICY, value=value)
    elif recorded:
        message = f"{recorded} denials {span}, recorded only, {sample}"
        yield ok("denials", f"{message}: enforcing would refuse them", value=value)
    else:
        yield ok("denials", f"no denials {span}", value=value)


CHECK = Check(
    title="SELinux mode now and after the next boot",
    stale="boot",
    options=Options(),
    judge=judge,
    codes={
        "mode": Code(
            "The mode now, and whether the site allows it.", (ALLOW_IT, SET_IT, CLEAR_LINE)
        ),
        "policy": Code("Whether the mode has a policy that it can enforce.", (LOAD_POLICY,)),
        "boot": Code(
            "Whether the next boot brings the same mode, by the file and the kernel's command"
            " line.",
            (SAME_AT_BOOT, READ_CONFIG),
        ),
        "config": Code("A setting that looks right and has no effect.", (PLAIN_LINE, ONE_FILE)),
        "boot_policy": Code("Whether the policy for the next boot is installed.", (GET_POLICY,)),
        "denials": Code("What slurmd and munged were refused, or would be.", (FIT_POLICY,)),
    },
    probe=PROBE,
    probe_options=("denial_hours",),
    root_adds="denials of slurmd and munged in the audit log",
    limit=20,
)
