"""Network interfaces have a link, at full speed, and packets arrive whole.

A cable that is loose or of the wrong kind, a switch port set by hand: the link still comes up, at
a tenth of the speed or with packets damaged, and one slow node holds up a whole parallel job. So
each interface is held to what is wanted, to what both ends offer each other, and to the interface
of the same name and card on the other nodes.

Sources of the limits: Ethernet promises one wrong bit in 10^12 (IEEE 802.3; the InfiniBand
specification has the same, see NVIDIA's DGX SuperPOD guide to cabling). A share of 0.1 % of
packets lost holds one TCP stream to 4.5 Gb/s at 0.1 ms (Mathis and others, 1997: 1.22 MSS / (RTT
√loss)). Ten losses of the link in a day are ours: a boot makes one to four.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

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

from ._link_ports import (
    Modes,
    Port,
    grown,
    matching,
    names,
    parse_modes,
    parse_ports,
    speeds,
    with_modes,
)
from ._link_probe import PROBE
from ._link_remedies import (
    CLEAN,
    FASTER,
    HOLD_LINK,
    MAKE_ROOM,
    NAME_INTERFACE,
    NEGOTIATE,
    PLUG_IN,
    TELL_SPEED,
)

FEW = 100  # errors since boot that are never spoken of: any plugging in makes some


@dataclass(frozen=True)
class Options:
    speed: Annotated[int, Ge(0)] = option(
        0, "speed that interfaces should have at least; 0 asks only that they agree", unit="Mb/s"
    )
    interfaces: tuple[str, ...] = option(
        (),
        "interfaces that should have a link, at that speed (bond1, ens*); none named: those of"
        " cards that have a link, an address or a route",
    )
    errors: Annotated[float, Gt(0)] = option(
        1, "damaged packets that may arrive, for each 10^12 bits", unit="per 10^12 bits"
    )
    losses: Annotated[float, Gt(0), Le(100)] = option(
        0.1, "packets that the node may lose for want of room, or fail to send", unit="%"
    )
    flaps: Annotated[float, Gt(0)] = option(
        10, "how often an interface may lose its link", unit="per day"
    )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    modes = parse_modes(facts["modes"])
    ports = with_modes(parse_ports(facts["interfaces"]), modes)
    if not ports:
        yield unknown("interface", "no interface could be seen in /sys/class/net")
        return
    chosen = [port for port in ports.values() if port.is_used]
    if options.interfaces:
        chosen = []
        for pattern in options.interfaces:
            found = matching(ports, pattern)
            chosen += [ports[name] for name in found if ports[name] not in chosen]
            if not found:
                message = f"there is no interface {pattern}, should be one with a carrier"
                yield fail("interface", message, NAME_INTERFACE)
    yield from _carriers(chosen, wanted=bool(options.interfaces))
    linked = [port for port in chosen if port.carrier]
    least = _least(modes, linked)
    yield from _speeds(linked, least, options.speed)
    if not chosen and not options.interfaces:
        yield skip("speed", "no interface of a card has a carrier")
    for port in linked:
        if port.duplex == "half" and port.speed in (10, 100, 1000):  # others only call it so
            message = f"{port.name} runs at half duplex, should be full: each waits for the other"
            yield warn("duplex", message, NEGOTIATE)
    used = [port for port in ports.values() if port.is_used or port in chosen]
    yield from _counted([p for p in used if p.carrier], facts, options)
    yield from _flaps(used, facts, options.flaps)


def _carriers(ports: Iterable[Port], *, wanted: bool) -> Iterator[Finding]:
    for port in ports:
        if port.carrier:
            continue
        if port.carrier is None and port.is_on:
            yield unknown("carrier", f"whether {port.name} has a carrier could not be read")
            continue
        lacks = "is off" if port.is_on is False else "has no carrier"
        if wanted:
            yield fail("carrier", f"{port.name} {lacks}, should have a carrier", PLUG_IN)
        elif port.route == "default":
            yield fail("carrier", f"{port.name} {lacks}, and has the default route", PLUG_IN)
        else:
            yield warn("carrier", f"{port.name} {lacks}, and has an address or a route", PLUG_IN)


def _least(modes: Mapping[str, Modes], ports: Iterable[Port]) -> dict[str, tuple[Port, int]]:
    """Those that are slower than what their two ends offer, and what that is."""
    slow = {}
    for port in ports:
        least = modes[port.name].least() if port.name in modes else None
        if port.speed and least and port.speed < least:
            slow[port.name] = port, least
    return slow


def _speeds(
    ports: Sequence[Port], least: Mapping[str, tuple[Port, int]], wanted: int
) -> Iterator[Finding]:
    right, silent = [], []
    for port in ports:
        if port.speed is None:
            silent.append(port.name)
        elif port.speed < wanted:
            message = f"{port.name} runs at {port.speed} Mb/s, should run at {wanted}"
            yield fail("speed", message, FASTER, value=_value(port))
        elif port.name in least:
            message = f"{port.name} runs at {port.speed} Mb/s, and {least[port.name][1]} is offered"
            yield warn("speed", message, FASTER, value=_value(port))
        else:
            right.append(port)
    if silent and wanted:
        message = f"{names(silent)} does not tell its speed, should be {wanted} Mb/s"
        yield unknown("speed", message, TELL_SPEED)
    elif silent and not right:
        yield skip("speed", f"{names(silent)} is up and tells no speed, as virtual cards do")
    if right:
        as_wanted = ", as it should be" if wanted else ""
        slowest = min(right, key=lambda port: port.speed or 0)
        yield ok("speed", f"{speeds(right)}{as_wanted}", value=_value(slowest))


def _value(port: Port) -> Quantity:
    return Quantity(port.speed or 0, "Mb/s", less_is_worse=True)


def _counted(ports: Iterable[Port], facts: Facts, options: Options) -> Iterator[Finding]:
    """Counters since boot, against what has passed since."""
    ports = list(ports)
    growth = grown(facts.get("again", ""), {port.name: port for port in ports})
    for port in ports:
        of = port.counters
        later = growth.get(port.name)
        bits = 8 * of.get("rx_bytes", 0)
        rate = port.damaged * 1e12 / max(bits, 1)
        if port.damaged >= FEW and rate > options.errors:
            message = (
                f"{port.name} has received {port.damaged} damaged packets since boot in"
                f" {bits / 8e9:.0f} GB, {rate:.3g} for each 10^12 bits, should be"
                f" {options.errors:g} at most{_more(later.damaged if later else None)}"
            )
            yield warn("errors", message, CLEAN, value=Quantity(rate, "per 10^12 bits"))
        for words, lost, passed, more in (
            ("had no room for", port.missed, "rx_packets", later.missed if later else None),
            ("failed to send", port.unsent, "tx_packets", later.unsent if later else None),
        ):
            share = 100 * lost / max(lost + of.get(passed, 0), 1)
            if lost >= FEW and share > options.losses:
                message = (
                    f"{port.name} {words} {lost} packets since boot, {share:.2g} % of them, should"
                    f" be {options.losses:g} % at most{_more(more)}"
                )
                yield warn("losses", message, MAKE_ROOM, value=Quantity(share, "%"))


def _more(count: int | None) -> str:
    if count is None:
        return ""
    return f"; {count or 'none'} more within 1 s"


def _flaps(ports: Iterable[Port], facts: Facts, most: float) -> Iterator[Finding]:
    for port in ports:
        if not port.downs or port.downs < most:
            continue
        try:
            days = float(facts["uptime"]) / 86400
        except ValueError:
            days = -1
        if not 0 <= days < 36500:
            message = (
                f"{port.name} has lost its carrier {port.downs} times, in what time is not told"
            )
            yield unknown("flaps", message)
            continue
        rate = port.downs / max(days, 1)
        if rate >= most:
            message = (
                f"{port.name} has lost its carrier {port.downs} times in {days:.1f} days since"
                f" boot, should be fewer than {most:g} a day"
            )
            yield warn("flaps", message, HOLD_LINK, value=Quantity(rate, "per day"))


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes whose interface is slower than that of the same name and card on most, or unplugged."""
    same: dict[tuple[str, str], dict[str, Port]] = {}
    modes = {node: parse_modes(of.get("modes", "")) for node, of in facts.items()}
    of_node = {
        node: with_modes(parse_ports(of.get("interfaces", "")), modes[node])
        for node, of in facts.items()
    }
    for node, ports in of_node.items():
        for port in ports.values():
            if port.is_ethernet:
                same.setdefault((port.name, port.card), {})[node] = port
    for (name, _), found in same.items():
        told = Counter(port.speed for port in found.values() if port.carrier and port.speed)
        usual, count = told.most_common(1)[0] if told else (0, 0)
        linked = sum(port.carrier is True for port in found.values())
        for node, port in found.items():
            if any(name in matching(of_node[node], p) for p in options[node].interfaces):
                unplugged = False  # `judge` has said it
            else:
                unplugged = port.carrier is False and not port.route and not port.bond
            if unplugged and linked > 1 and 2 * linked > len(found):
                message = f"{name} has no carrier, and has one on {linked} of {len(found)} nodes"
                yield node, warn("differs", message, PLUG_IN)
            elif (
                port.carrier
                and port.speed
                and usual
                and port.speed < usual
                and count > 1
                and 2 * count > len(found)
                and not options[node].speed
                and not _is_said(modes[node], port, of_node[node])
            ):
                message = (
                    f"{name} runs at {port.speed} Mb/s, and at {usual} on {count} of {len(found)}"
                    " nodes"
                )
                yield node, warn("differs", message, FASTER, value=_value(port))


def _is_said(modes: Mapping[str, Modes], port: Port, ports: Mapping[str, Port]) -> bool:
    """Has the node said that it is slow: by what is offered, or as the slow one of a bond?"""
    if port.name in _least(modes, [port]):
        return True
    return any(
        port.bond and other.bond == port.bond and (other.speed or 0) > (port.speed or 0)
        for other in ports.values()
    )


CHECK = Check(
    title="links of network interfaces: speed, duplex, damaged packets",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "interface": Code("An interface that should be there.", (NAME_INTERFACE,)),
        "carrier": Code(
            "An interface without a link that should have one: it is named in `interfaces`, or has"
            " an address or a route. Other unplugged ports are no finding.",
            (PLUG_IN,),
        ),
        "speed": Code(
            "The speed of the interfaces, against what is wanted and, where ethtool is there, what"
            " both ends offer.",
            (FASTER, TELL_SPEED),
        ),
        "duplex": Code("A link that runs at half duplex.", (NEGOTIATE,)),
        "errors": Code(
            f"Packets that arrived damaged, {FEW} or more since boot and more than a sound link"
            " makes.",
            (CLEAN,),
        ),
        "losses": Code(
            f"Packets that the card had no room for or could not send, {FEW} or more since boot.",
            (MAKE_ROOM,),
        ),
        "flaps": Code("A link that is lost again and again.", (HOLD_LINK,)),
        "differs": Code(
            "The interface is slower than that of the same name and card on most nodes, or has no"
            " link where most have one.",
            (FASTER, PLUG_IN),
        ),
    },
    probe=PROBE,
)
