"""The clock is right, and a daemon keeps it so.

A node whose clock is off loses jobs in ways that name no clock: credentials of Slurm expire, Munge
and Kerberos refuse, make rebuilds at random, logs cannot be put in order. A daemon's "synchronised"
is not enough: it may follow itself, or a wrong server. So two things are asked. What the daemon
says: chronyd, ntpd (classic and NTPsec), systemd-timesyncd, or PTP. And what the clock is: the
node's clock against this machine's over the connection, with its uncertainty, and this machine's
against the reference by NTP; together, the node's true offset.

An offset counts as beyond a limit only where it is so with all of its uncertainty. Where the
uncertainty spans the lower limit, nobody can tell, and that is said: unknown.

What breaks at which difference: Slurm's job credentials live 120 s (slurm.conf(5), cred_expire);
Munge accepts credentials for 300 s (munge_defs.h), Kerberos clocks within 300 s (krb5.conf(5)).
Nothing that is documented breaks at 1 s: the default limits are for order, well before that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Gt

from clustercheck.check import Check, Code, Facts, Finding, Target, option, unknown, warn

from . import _ntp_chrony, _ntp_ntpq, _ntp_timesyncd
from ._ntp_clock import Limits, is_settled, judge_clock, judge_spread, measured, own_clock
from ._ntp_daemon import judge_without_word, judge_word, running
from ._ntp_remedy import (
    ASK_AS_ROOT,
    DISAGREE,
    FIND_OUT,
    INSTALL_TOOL,
    LOOK_ON_HOST,
    NEARER,
    ONE_DAEMON,
    REAL_SOURCE,
    SET_REFERENCE,
    SOURCES,
    START,
    WHICH_IS_WRONG,
    WRONG_SOURCE,
)
from ._ntp_word import NotUnderstood, Word

PROBE = r"""
running='' nl='
'
for file in "$ROOT"/proc/[0-9]*/comm; do
    name=''
    read -r name 2>/dev/null <"$file" || continue
    case $name in
    chronyd | ntpd | systemd-timesyn | ptp4l | phc2sys | timemaster)
        words=$name
        if [ -r "${file%comm}cmdline" ]; then
            words=$(tr '\0' ' ' <"${file%comm}cmdline")
            [ -n "$words" ] || continue # it has ended, and nobody has noticed yet
        fi
        inner=$(sed -n 's/^NSpid:[^0-9]*[0-9]*[^0-9]*//p' "${file%comm}status" 2>/dev/null)
        [ -n "$inner" ] && continue # a daemon in a container of the node keeps no clock of it
        running="$running$name $words$nl"
        ;;
    esac
done
fact running "$running"
# With hidepid, an ordinary user sees his own processes only.
processes=own
[ -r "$ROOT/proc/1/comm" ] && processes=all
fact processes "$processes"
for file in /run/systemd/container /.dockerenv /run/.containerenv; do
    [ -e "$ROOT$file" ] && fact container "$file"
done

heard=''
if have chronyc; then
    said=$(within 3 chronyc -n -c tracking 2>&1)
    status=$?
    as_user=1
    case $status/$said/$running in
    0/*) ;;
    124/*) said='no answer within 3 s' ;;
    */*"Cannot talk"*/*chronyd*)
        # "cmdport 0" leaves the socket, which is for root
        as_user=''
        told=$(as_root chronyc -n -c tracking 2>&1) && said=$told status=0
        ;;
    */*"Cannot talk"*/*) ;;
    *) # before chrony 2.2 there was no -c
        told=$(within 3 chronyc -n tracking 2>&1) && said=$told status=0
        ;;
    esac
    fact chrony.tracking "$said"
    if [ "$status" = 0 ]; then
        heard=1
        if [ -n "$as_user" ]; then
            told=$(within 3 chronyc -n -c sources 2>&1 || within 3 chronyc -n sources 2>&1)
        else
            told=$(as_root chronyc -n -c sources 2>&1)
        fi && fact chrony.sources "${told:-none}"
    fi
fi

# chronyd would not answer ntpq, who would wait.
ntpd=''
case $running in *"ntpd "*) ntpd=1 ;; esac
if have ntpq && [ "$ntpd/$heard" != /1 ]; then
    said=$(within 4 ntpq -n -w -c rv -c peers 2>&1)
    case $?/$said in
    124/*) said='no answer within 4 s' ;;
    *stratum=*) ;;
    *usage* | *Usage* | *illegal* | *unrecognized*) said=$(within 4 ntpq -n -c rv -c peers 2>&1) ;;
    esac
    fact ntpq "$said"
    case $said in *stratum=* | *refid*) heard=1 ;; esac
elif [ -n "$ntpd" ]; then
    command=$(command -v ntpd) && case $(ls -l "$command") in
    *busybox*) fact ntpd busybox ;;
    esac
fi

said=''
if have timedatectl; then
    said=$(within 2 timedatectl show 2>&1)
    case $?/$said in
    124/* | *NTPSynchronized*) ;;
    *) said=$(within 2 timedatectl status 2>&1) ;; # before systemd 239
    esac
    fact timedatectl "$said"
    # Asking for timesyncd may start it: asked only where a service is active.
    case $running/$heard/$nl$said in
    *systemd-timesyn* | */"/$nl"*"${nl}NTP=yes"*)
        fact timesyncd "$(
            within 2 timedatectl timesync-status 2>&1
            within 2 timedatectl show-timesync 2>&1
        )"
        ;;
    esac
fi
case $said in
*ynchronized*) ;;
*) # busybox's: without arguments it only shows
    if have busybox; then fact adjtimex "$(within 2 busybox adjtimex 2>&1)"; fi
    ;;
esac

# systemd tells everybody which services run
if [ "$processes/$heard" = own/ ] && have systemctl; then
    units=$(
        within 2 systemctl is-active chronyd chrony systemd-timesyncd ntpd ntp 2>/dev/null
        within 2 systemctl is-active ntpsec ptp4l phc2sys timemaster 2>/dev/null
    )
    [ -z "$units" ] || fact units "$units"
fi

case $running in
*ptp4l*)
    if have pmc; then
        fact pmc "$(as_root timeout 2 pmc -u -b 0 -i "${TMPDIR:-/tmp}/cc-pmc" \
            'GET CURRENT_DATA_SET' 'GET PORT_DATA_SET' 2>&1)"
    fi
    ;;
esac
"""

Seconds = Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Options:
    """Limits and the reference."""

    warn_offset: Seconds = option(0.5, "clock off the true time by more than this: warn", unit="s")
    fail_offset: Seconds = option(1.0, "clock off the true time by more than this: fail", unit="s")
    warn_spread: Seconds = option(
        1.0, "clock off the median of all nodes by more than this: warn", unit="s"
    )
    fail_spread: Seconds = option(
        60.0, "clock off the median of all nodes by more than this: fail", unit="s"
    )
    reference: tuple[str, ...] = option(
        (),
        "NTP servers that this machine's clock is held against; none: those that this machine "
        "follows itself",
    )
    require_daemon: bool = option(
        False, "warn where a container has no time daemon of its own, though its host keeps time"
    )
    allow_own_clock: bool = option(
        False, "the node may serve its own clock: the time server of a cluster without Internet"
    )

    def __post_init__(self) -> None:
        for name in ("offset", "spread"):
            low, high = getattr(self, f"warn_{name}"), getattr(self, f"fail_{name}")
            if low > high:
                raise ValueError(
                    f"warn_{name} ({low:g} s) is above fail_{name} ({high:g} s); "
                    "write the lower one as warn"
                )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    limits = Limits(options.warn_offset, options.fail_offset)
    clock = measured(facts, limits)
    words: list[Word] = []
    troubles: list[NotUnderstood] = []
    for read in (_chronyd, _ntpd, _timesyncd):
        try:
            word = read(facts)
        except NotUnderstood as trouble:
            troubles.append(trouble)
            yield unknown("garbled", f"the time daemon's answer cannot be read: {trouble}")
        else:
            words += [word] if word else []
    active = list(dict.fromkeys([*(w.daemon for w in words), *running(facts["running"])]))
    if len(active) > 1:
        yield warn("two_daemons", f"{' and '.join(active)} run at once, should be one", ONE_DAEMON)
    best = next((w for w in words if w.synchronised), words[0] if words else None)
    kernel = _ntp_timesyncd.kernel_synchronised(
        facts.get("timedatectl", ""), facts.get("adjtimex", "")
    )
    if best:
        if clock is None:  # then its last offset is the best that is known
            best = replace(best, lasting=True)
        yield from judge_word(
            best,
            limits,
            kernel=kernel,
            allow_own_clock=options.allow_own_clock,
            clock=clock,
        )
    elif not troubles:
        yield judge_without_word(facts, kernel, limits, require_daemon=options.require_daemon)
    error = facts.get("here.error", "")
    if options.reference and error:
        yield unknown("no_reference", f"the reference tells no time: {error}", SET_REFERENCE)
    if clock:
        yield from judge_clock(clock, limits, best)


def _chronyd(facts: Facts) -> Word | None:
    return _ntp_chrony.read(facts.get("chrony.tracking", ""), facts.get("chrony.sources", ""))


def _ntpd(facts: Facts) -> Word | None:
    return _ntp_ntpq.read(facts.get("ntpq", ""))


def _timesyncd(facts: Facts) -> Word | None:
    return _ntp_timesyncd.read(facts.get("timesyncd", ""))


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    limits = {name: Limits(o.warn_spread, o.fail_spread) for name, o in options.items()}
    for node, finding in judge_spread(facts, limits):
        of = options[node]
        if not is_settled(
            facts[node], finding, Limits(of.warn_offset, of.fail_offset), limits[node]
        ):
            yield node, finding


def probe_from_here(targets: Sequence[Target], options: Options) -> dict[str, dict[str, str]]:
    """This machine's clock against the reference: asked once, told for every node."""
    from . import _ntp_here

    here = _ntp_here.facts(options.reference)
    found = {target.name: here for target in targets}
    if note := own_clock(Facts(here), Limits(options.warn_offset, options.fail_offset)):
        found[""] = {"clock": note}
    return found


CODES = {
    "synchronised": Code("The time daemon follows a source and is within the limits."),
    "own_clock": Code("The node serves its own clock, as allow_own_clock permits."),
    "host_keeps": Code("A container without a daemon, whose host keeps the clock synchronised."),
    "offset": Code("What the clock is by measurement, whatever its daemon says.", (FIND_OUT,)),
    "daemon_offset": Code(
        "The daemon itself says that the clock is off.", (FIND_OUT, WRONG_SOURCE)
    ),
    "daemon_wrong": Code(
        "The daemon says that all is well, and by measurement the clock is off.",
        (WRONG_SOURCE, WHICH_IS_WRONG),
    ),
    "uncertain": Code("The daemon's own bound of the error is beyond the limit.", (SOURCES,)),
    "name_only": Code("The daemon follows the node's own clock.", (REAL_SOURCE,)),
    "not_synchronised": Code("A daemon runs, and has not set the clock.", (SOURCES,)),
    "no_source": Code("The daemon has no source, or none whose name resolves.", (SOURCES,)),
    "silent": Code("Sources do not answer, or answer that they have no time.", (SOURCES,)),
    "falseticker": Code("Sources disagree with the majority, or with each other.", (DISAGREE,)),
    "variable": Code("Sources whose time varies too much to be used.", (DISAGREE,)),
    "two_daemons": Code("Two daemons set the same clock.", (ONE_DAEMON,)),
    "no_daemon": Code("No time daemon runs, and the clock is not kept.", (START,)),
    "unkept": Code("The clock was synchronised in the last hours, and no daemon runs.", (START,)),
    "no_answer": Code(
        "A daemon runs, and its state cannot be read; or nobody here can tell of one.",
        (ASK_AS_ROOT, INSTALL_TOOL, LOOK_ON_HOST),
    ),
    "garbled": Code("A daemon's answer is not understood."),
    "coarse": Code("The uncertainty of the measurement spans the limit.", (NEARER,)),
    "no_reference": Code("The reference that is set tells no time.", (SET_REFERENCE,)),
    "spread": Code("The clock differs from those of the other nodes.", (FIND_OUT,)),
}

CHECK = Check(
    title="Clock and time daemon",
    stale="time",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    root_adds="ptp4l's state, and chronyd's where it listens to root only",
    clock=True,
    probe_from_here=probe_from_here,
    compare=compare,
)
