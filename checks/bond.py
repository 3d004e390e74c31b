"""Bonds have all their members, and every member carries traffic.

A bond hides its first fault: with one cable out, or with a switch port that is in no channel
group, all goes on at half the bandwidth until the second fault takes the node away. What each
member's MTU should be is looked at by the check mtu, its speed against other nodes' by link.

The LACP states are those of IEEE 802.1AX: a member takes part when both ends are in step, collect
and distribute (61 or 63 in all). "Churned" is not used: a kernel that runs well may say
"monitoring" for good.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from annotated_types import Ge

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._bond_read import LACP, TAKES_PART, Bond, Member, parse_bonds
from ._bond_remedies import (
    ADD_MEMBER,
    BRING_BACK,
    BRING_UP,
    MAKE_BOND,
    SAME_SPEED,
    SEE_AS_ROOT,
    SET_UP_CHANNEL,
    WATCH,
)

PROBE = r"""
# The kernel's file on each bond, and what /sys adds. "@" begins the lines that are ours:
# "@bond NAME up|off|? read|unread", "@aggregator NUMBER", "@member NAME CARRIER ACTOR PARTNER
# AGGREGATOR" with - for what is not there.
one_bond() {
    name=$1 proc=$ROOT/proc/net/bonding/$1 sys=$ROOT/sys/class/net/$1 flags='' state='?'
    read -r flags 2>/dev/null <"$sys/flags"
    case $flags in
    0x*[13579bdf]) state=up ;;
    0x*) state=off ;;
    esac
    if [ ! -r "$proc" ]; then
        printf '@bond %s %s unread\n' "$name" "$state"
        return
    fi
    printf '@bond %s %s read\n' "$name" "$state"
    while read -r line; do
        printf '%s\n' "$line"
    done <"$proc"
    value=''
    read -r value 2>/dev/null <"$sys/bonding/ad_aggregator"
    [ -n "$value" ] && printf '@aggregator %s\n' "$value"
    members=''
    read -r members 2>/dev/null <"$sys/bonding/slaves"
    for member in $members; do
        carrier='' actor='' partner='' aggregator=''
        read -r carrier 2>/dev/null <"$ROOT/sys/class/net/$member/carrier"
        of=$ROOT/sys/class/net/$member/bonding_slave
        read -r actor 2>/dev/null <"$of/ad_actor_oper_port_state"
        read -r partner 2>/dev/null <"$of/ad_partner_oper_port_state"
        read -r aggregator 2>/dev/null <"$of/ad_aggregator_id"
        printf '@member %s %s %s %s %s\n' "$member" "${carrier:--}" "${actor:--}" \
            "${partner:--}" "${aggregator:--}"
    done
}
names=''
for place in "$ROOT"/proc/net/bonding/*; do
    [ -e "$place" ] && names="$names ${place##*/}"
done
for place in "$ROOT"/sys/class/net/*/bonding; do
    [ -d "$place" ] || continue
    place=${place%/bonding}
    case " $names " in
    *" ${place##*/} "*) ;;
    *) names="$names ${place##*/}" ;;
    esac
done
if [ -z "$names" ]; then
    fact bonds none
    return
fi
set -f
for name in $names; do
    one_bond "$name"
done | lines bonds
"""


@dataclass(frozen=True)
class Options:
    bonds: tuple[str, ...] = option((), "bonds that should be there (bond0, bond*)")
    members: Annotated[int, Ge(0)] = option(
        0, "members that each bond should have; 0 asks only that they agree", unit="interfaces"
    )
    spare: bool = option(
        False, "members in an LACP aggregator that is not the active one are a spare, as is meant"
    )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    told = facts["bonds"]
    bonds = parse_bonds(told)
    if not bonds and told != "none":
        yield unknown("members", f"what is told of them cannot be read: {told[:80]!r}")
        return
    for pattern in options.bonds:
        if not any(fnmatchcase(bond.name, pattern) for bond in bonds):
            yield fail("missing", f"there is no {pattern}, should be one", MAKE_BOND)
    asked = [bond for bond in bonds if not _is_idle(bond, options)]
    if bonds and not asked:
        names = " and ".join(bond.name for bond in bonds)
        yield skip("members", f"{names} has no members and is off")
    elif not bonds and not options.bonds:
        yield skip("members", "none is set up")
    for bond in asked:
        yield from _one(bond, options)


def _is_idle(bond: Bond, options: Options) -> bool:
    """Is it one that the kernel made when the module was loaded, and nobody wants?"""
    unused = bond.is_read and not bond.members and bond.is_on is False
    return unused and not any(fnmatchcase(bond.name, pattern) for pattern in options.bonds)


def _one(bond: Bond, options: Options) -> Iterator[Finding]:
    if not bond.is_read:
        yield unknown("members", f"/proc/net/bonding/{bond.name} cannot be read")
        return
    if not bond.mode or not all(member.state for member in bond.members.values()):
        yield unknown("members", f"what is told of {bond.name} cannot be read")
        return
    yield from _members(bond, options.members)
    if bond.mode == LACP:
        yield from _partners(bond, spare=options.spare)
    yield from _speeds(bond)
    if not bond.is_watched and bond.members and not _blind(bond):  # else it has been said
        message = f"{bond.name} does not watch its members (miimon 0), should every 100 ms"
        yield warn("watch", message, WATCH)


def _members(bond: Bond, least: int) -> Iterator[Finding]:
    members = bond.members.values()
    up = [member for member in members if member.is_up]
    count = f"{len(up)} of {len(members)} members"
    down = [_state(member) for member in members if not member.is_up]
    blind = _blind(bond)
    value = Quantity(len(up), "members", less_is_worse=True)
    if not members:
        yield warn("members", f"{bond.name} has no members", ADD_MEMBER, value=value)
    elif not up or bond.state == "down":
        message = f"{bond.name} is down: {count} up{_list(down)}"
        yield fail("members", message, BRING_UP, value=value)
    elif blind:
        message = f"{bond.name} still sends by {' and '.join(blind)}, which has no carrier"
        if not bond.is_watched:
            message += ": it does not watch its members (miimon 0), should every 100 ms"
        yield fail("members", message, BRING_UP, value=value)
    elif down:
        message = f"{bond.name} ({bond.mode}) has {count} up{_list(down)}"
        yield warn("members", message, BRING_BACK, value=value)
    elif len(members) < least:
        message = f"{bond.name} has {len(members)} members, should have {least}"
        yield warn("members", message, ADD_MEMBER, value=value)
    else:
        yield ok("members", f"{bond.name} ({bond.mode}) has {count} up", value=value)


def _blind(bond: Bond) -> list[str]:
    """Members that it takes for up, and that have no carrier."""
    return [m.name for m in bond.members.values() if m.is_up and m.carrier is False]


def _state(member: Member) -> str:
    if not member.failures:
        return f"{member.name} is {member.state}"
    times = "once" if member.failures == 1 else f"{member.failures} times"
    return f"{member.name} is {member.state} (failed {times})"


def _list(parts: list[str]) -> str:
    return f"; {', '.join(parts)}" if parts else ""


def _partners(bond: Bond, *, spare: bool) -> Iterator[Finding]:
    """Which members that are up take no part: the switch's side of LACP."""
    up = [
        member for member in bond.members.values() if member.is_up and member.carrier is not False
    ]
    if not up:
        return
    alone = [member for member in up if member.is_answered is False]
    if len(alone) == len(up) or (bond.partner and not bond.partner.strip("0:")):
        message = f"{bond.name} has no LACP partner: the switch ports are in no channel group"
        if len(up) > 1:
            message += f", and one of {len(up)} members carries all traffic"
        yield fail("partner", message, SET_UP_CHANNEL)
        return
    idle, unseen = [], 0
    for member in up:
        if member in alone:
            idle.append(f"{member.name} gets no answer from the switch")
        elif None not in (member.aggregator, bond.aggregator) and (
            member.aggregator != bond.aggregator
        ):
            if spare and member.is_answered:
                continue
            idle.append(
                f"{member.name} is in aggregator {member.aggregator}, and {bond.aggregator} is the"
                " active one"
            )
        elif member.actor is None or member.partner is None:
            unseen += 1
        elif member.actor & member.partner & TAKES_PART != TAKES_PART:
            states = f"{member.actor} here and {member.partner} at the switch"
            idle.append(f"{member.name} has LACP states {states}, should be 61 or 63")
    if idle:
        message = f"{bond.name} has members that carry nothing: {', '.join(idle)}"
        yield warn("partner", message, SET_UP_CHANNEL)
    elif unseen > 1 and bond.aggregator is not None:  # without a partner each has one of its own
        yield ok("partner", f"{bond.name} has all in aggregator {bond.aggregator}")
    elif unseen:
        message = f"whether {bond.name} has an LACP partner is told to root only"
        yield unknown("partner", message, SEE_AS_ROOT)
    else:
        yield ok("partner", f"{bond.name} has an LACP partner on every member that is up")


def _speeds(bond: Bond) -> Iterator[Finding]:
    known = {m.name: m.speed for m in bond.members.values() if m.speed}
    best = max(known.values(), default=0)
    if bond.mode == "active-backup":
        # a slow spare is well, and a slow one in use beside a faster one is not
        slow = [name for name in known if name == bond.active and known[name] < best]
    else:
        known = {name: speed for name, speed in known.items() if bond.members[name].is_up}
        best = max(known.values(), default=0)
        slow = [name for name, speed in known.items() if speed < best]
    if slow:
        of = ", ".join(f"{name} at {known[name]} Mb/s" for name in slow)
        message = f"{bond.name} uses {of}, should be {best} as of its other members"
        yield warn("speed", message, SAME_SPEED, value=_speed(min(known[name] for name in slow)))


def _speed(number: int) -> Quantity:
    return Quantity(number, "Mb/s", less_is_worse=True)


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes whose bond has fewer members than that of the same name on most."""
    found: dict[str, dict[str, int]] = {}
    for node, of in facts.items():
        for bond in parse_bonds(of.get("bonds", "")):
            if bond.is_read and bond.members:
                found.setdefault(bond.name, {})[node] = len(bond.members)
    for name, counts in found.items():
        usual, nodes = Counter(counts.values()).most_common(1)[0]
        for node, count in counts.items():
            if count < usual and 2 * nodes > len(counts) and not options[node].members:
                message = (
                    f"{name} has {count} of the {usual} members that it has on {nodes} of"
                    f" {len(counts)} nodes"
                )
                yield node, warn("differs", message, ADD_MEMBER)


CHECK = Check(
    title="bonds: members, LACP partner, speed",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "missing": Code("A bond that should be there.", (MAKE_BOND,)),
        "members": Code(
            "Whether all members are up: a warning where one is lost and the bond goes on, a"
            " failure where it is down, or sends by a member without a carrier.",
            (BRING_UP, BRING_BACK, ADD_MEMBER),
        ),
        "partner": Code(
            "Whether the switch speaks LACP with each member, and all are in one aggregator.",
            (SET_UP_CHANNEL, SEE_AS_ROOT),
        ),
        "speed": Code("A member in use that is slower than others.", (SAME_SPEED,)),
        "watch": Code("Whether it would notice a member that is lost.", (WATCH,)),
        "differs": Code(
            "It has fewer members than that of the same name on most nodes.", (ADD_MEMBER,)
        ),
    },
    probe=PROBE,
)
