"""InfiniBand ports are active, at full rate, and as many as there should be.

A port whose cable is out is silent: programs fall back to Ethernet and run at a tenth of the speed.
A port that is up and not Active has no subnet manager, and nothing runs over it at all. Ports of
the same adapters that are set to Ethernet do not count: the check link looks at those.

Source of the limit of errors: the InfiniBand specification wants less than one wrong bit in 10^12
(NVIDIA's DGX SuperPOD guide to cabling says so of it). Ten losses of the link in a day are ours.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt

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

from ._ib_ports import Port, names, parse_ibstat, parse_ports, rates
from ._ib_remedies import (
    CLEAN,
    FASTER,
    FIND_ADAPTER,
    HOLD_LINK,
    PLUG_IN,
    SAME_FIRMWARE,
    START_MANAGER,
)

FEW = 100  # errors since boot that are never spoken of: any plugging in makes some
MOST = 65535  # where the counter of symbol errors ends

PROBE = r"""
# "ADAPTER PORT word=value …": what the kernel does not tell is left out.
number() {
    value='' rest=''
    read -r value rest 2>/dev/null <"$2"
    [ -n "$value" ] && line="$line $1=$value"
}
one_port() {
    adapter=${1%/ports/*} line="${1%/ports/*}" state='' physical='' rate='' width=''
    line="${line##*/} ${1##*/}"
    read -r _ state 2>/dev/null <"$1/state"
    read -r _ physical 2>/dev/null <"$1/phys_state"
    read -r rate _ width _ 2>/dev/null <"$1/rate"
    line="$line state=${state:-?} physical=${physical:-?} rate=${rate:-?} width=${width#\(}"
    number layer "$1/link_layer"
    number model "$adapter/hca_type"
    number board "$adapter/board_id"
    number firmware "$adapter/fw_ver"
    for counter in symbol_error link_downed port_rcv_errors port_rcv_data; do
        number "$counter" "$1/counters/$counter"
    done
    printf '%s\n' "$line"
}
seen=$(
    for place in "$ROOT"/sys/class/infiniband/*/ports/*; do
        # what is meant for a virtual machine is that machine's affair
        [ -d "$place" ] && [ ! -e "${place%/ports/*}/device/physfn" ] && one_port "$place"
    done
)
uptime=''
[ -r "$ROOT/proc/uptime" ] && read -r uptime _ <"$ROOT/proc/uptime"
if [ -n "$seen" ]; then
    fact source sys
    fact ports "$seen"
    fact uptime "$uptime"
elif have ibstat; then
    seen=$(within 5 ibstat 2>/dev/null)
    fact source "ibstat $?"
    fact ports "$seen"
else
    fact source none
fi
"""


@dataclass(frozen=True)
class Options:
    ports: Annotated[int, Ge(0)] = option(
        0, "InfiniBand ports that should be active; 0 lets unplugged ones be", unit="ports"
    )
    rate: Annotated[float, Ge(0)] = option(
        0, "rate that they should have at least; 0 asks only that they agree", unit="Gb/s"
    )
    errors: Annotated[float, Gt(0)] = option(
        1, "errors that may come, for each 10^12 bits", unit="per 10^12 bits"
    )
    flaps: Annotated[float, Gt(0)] = option(
        10, "how often a port may lose its link", unit="per day"
    )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    source = facts["source"]
    text = "" if source == "none" else facts["ports"]
    every = _ports(facts)
    ports = _infiniband(every)
    if source not in ("none", "sys") and not source.startswith("ibstat "):
        yield unknown("ports", f"what is told of them cannot be read: {source[:80]!r}")
    elif source == "sys" and not every:
        yield unknown("ports", "what is below /sys/class/infiniband cannot be read")
    elif not ports and options.ports:
        message = f"there is no InfiniBand port, should be {options.ports}"
        yield fail("ports", message, FIND_ADAPTER, value=_count(0))
    elif not every and (text.strip() or source in ("ibstat 124", "ibstat 137")):
        yield unknown("ports", "ibstat gave no answer that can be read")
    elif not ports:
        yield skip("ports", "there is no InfiniBand port")
    else:
        yield from _states(ports, options.ports)
        yield from _rates(ports, options.rate)
        if source == "sys":
            yield from _counted(ports, facts, options)


def _ports(facts: Facts) -> list[Port]:
    """The ports of a node's adapters, Ethernet ones among them."""
    text = facts.get("ports", "")
    return parse_ports(text) if facts.get("source") == "sys" else parse_ibstat(text)


def _infiniband(ports: Iterable[Port]) -> list[Port]:
    return [port for port in ports if port.layer in ("InfiniBand", "")]


def _count(ports: int) -> Quantity:
    return Quantity(ports, "ports", less_is_worse=True)


def _states(ports: Sequence[Port], wanted: int) -> Iterator[Finding]:
    active = [port for port in ports if port.is_active]
    unmanaged = [port for port in ports if port.state in ("INIT", "ARMED")]
    down = [port for port in ports if port.is_down]
    unclear = [port for port in ports if port not in (*active, *unmanaged, *down)]
    if unclear:
        message = f"the state of {names(port.name for port in unclear)} could not be read"
        yield unknown("ports", message)
    for port in unmanaged:
        word = "Initializing" if port.state == "INIT" else "Armed"
        message = f"{port.name} is {word}, should be Active: no subnet manager has set it up"
        yield fail("manager", message, START_MANAGER)
    for port in active:
        if port.is_retrained:
            message = (
                f"{port.name} is {port.state} and {port.physical}, should be Active and LinkUp"
            )
            yield warn("flaps", f"{message}: its link has failed, and is set up anew", HOLD_LINK)
    causes = f": {', '.join(port.why_down for port in down)}" if down else ""
    value = _count(len(active))
    # a port that only lacks its manager has been told
    if len(active) + len(unmanaged) + len(unclear) < wanted:
        of = f"{len(active)} of {len(ports)} InfiniBand ports"
        message = f"{of} active, should be {wanted}{causes}"
        remedy = PLUG_IN if len(ports) >= wanted else FIND_ADAPTER
        yield fail("ports", message, remedy, value=value)
    elif wanted and len(active) >= wanted:
        yield ok("ports", f"{len(active)} InfiniBand ports active, should be {wanted}", value=value)
    elif not wanted and down and len(down) == len(ports):
        yield warn("ports", f"no InfiniBand port is active{causes}", PLUG_IN, value=value)
    elif not wanted:
        for port in down:
            if port.physical not in ("Polling", "Disabled", "Sleep"):
                yield warn("ports", port.why_down, PLUG_IN, value=value)
        if active:
            message = f"{len(active)} of {len(ports)} InfiniBand ports active"
            yield ok("ports", message, value=value)


def _rates(ports: Sequence[Port], wanted: float) -> Iterator[Finding]:
    slow = _slower(ports)
    right = []
    for port in ports:
        if not port.is_active:
            continue
        value = Quantity(port.rate or 0, "Gb/s", less_is_worse=True)
        if not port.rate:
            should = f", should be {wanted:g} Gb/s" if wanted else ""
            yield unknown("rate", f"the rate of {port.name} could not be read{should}")
        elif port.rate < wanted:
            message = f"{port.name} runs at {port.rate:g} Gb/s, should run at {wanted:g}"
            yield fail("rate", message, FASTER, value=value)
        elif port.name in slow and not wanted:
            message = f"{port.name} runs at {port.rate:g} Gb/s, should run at {slow[port.name]}"
            yield warn("rate", message, FASTER, value=value)
        else:
            right.append(port)
    if right:
        as_wanted = ", as it should be" if wanted else ""
        slowest = min(port.rate or 0 for port in right)
        value = Quantity(slowest, "Gb/s", less_is_worse=True)
        yield ok("rate", f"{rates(right)}{as_wanted}", value=value)


def _slower(ports: Iterable[Port]) -> dict[str, str]:
    """Active ports that are slower than the same card's others, or have one lane of several."""
    best: dict[str, float] = {}
    ports = list(ports)
    for port in ports:
        if not port.is_down:
            best[port.model] = max(port.rate or 0, best.get(port.model, 0))
    slow = {}
    for port in ports:
        if port.is_active and port.rate and port.rate < best[port.model]:
            slow[port.name] = f"{best[port.model]:g} as others here do"
        elif port.is_active and port.width == "1X":
            slow[port.name] = "four times that: it uses one lane"
    return slow


def _counted(ports: Iterable[Port], facts: Facts, options: Options) -> Iterator[Finding]:
    """Counters since boot, against what has passed since."""
    try:
        seconds = float(facts["uptime"])
    except ValueError:
        seconds = -1
    if not 0 < seconds < 1e10:
        yield unknown("errors", "how long the counters run is not told: no /proc/uptime")
        return
    for port in ports:
        if not port.is_active:
            continue
        damaged = port.counters.get("port_rcv_errors", 0)
        bits = 32 * port.counters.get("port_rcv_data", 0)  # counted in words of 4 bytes
        symbols = port.counters.get("symbol_error", 0)
        passed = (port.rate or 0) * 1e9 * seconds  # a port without work sends idle symbols
        share = damaged * 1e12 / max(bits, 1)
        if damaged >= FEW and share > options.errors:
            message = (
                f"{port.name} has received {damaged} damaged packets in {bits / 8e9:.0f} GB,"
                f" {share:.3g} for each 10^12 bits, should be {options.errors:g} at most"
            )
            yield warn("errors", message, CLEAN, value=Quantity(share, "per 10^12 bits"))
        elif symbols >= FEW and passed and symbols * 1e12 / passed > options.errors:
            share = symbols * 1e12 / passed
            least = "at least " if symbols >= MOST else ""
            message = (
                f"{port.name} has had {least}{symbols} symbol errors since boot, {least}{share:.3g}"
                f" for each 10^12 bits, should be {options.errors:g} at most"
            )
            yield warn("errors", message, CLEAN, value=Quantity(share, "per 10^12 bits"))
        downs = port.counters.get("link_downed", 0)
        rate = downs / max(seconds / 86400, 1)
        if downs >= options.flaps and rate >= options.flaps:
            message = (
                f"{port.name} has lost its link {downs} times in {seconds / 86400:.1f} days since"
                f" boot, should be fewer than {options.flaps:g} a day"
            )
            yield warn("flaps", message, HOLD_LINK, value=Quantity(rate, "per day"))


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes whose port is down or slower than on most, or whose adapters have other firmware."""
    of_node = {node: _infiniband(_ports(of)) for node, of in facts.items()}
    same: dict[tuple[str, str], dict[str, Port]] = {}
    firmware: dict[str, dict[str, set[str]]] = {}
    for node, ports in of_node.items():
        for port in ports:
            same.setdefault((port.name, port.card), {})[node] = port
            if port.firmware:
                firmware.setdefault(port.card, {}).setdefault(node, set()).add(port.firmware)
    for (name, _), found in same.items():
        active = sum(port.is_active for port in found.values())
        told = Counter(port.rate for port in found.values() if port.is_active and port.rate)
        usual, count = told.most_common(1)[0] if told else (0.0, 0)
        slow_here = {node: _slower(of_node[node]) for node in found}
        for node, port in found.items():
            some = any(not other.is_down for other in of_node[node])  # else `judge` has said it
            if port.is_down and some and 2 * active > len(found) and not options[node].ports:
                message = f"{port.why_down}, and is active on {active} of {len(found)} nodes"
                yield node, warn("differs", message, PLUG_IN)
            elif (
                port.is_active
                and 0 < (port.rate or 0) < (usual or 0)
                and 2 * count > len(found)
                and not options[node].rate
                and name not in slow_here[node]
            ):
                message = f"{name} runs at {port.rate:g} Gb/s, and at {usual:g} on {count} of"
                yield node, warn("differs", f"{message} {len(found)} nodes", FASTER)
    for card, versions in firmware.items():
        usual_ones, count = Counter(map(frozenset, versions.values())).most_common(1)[0]
        for node, mine in versions.items():
            if mine != usual_ones and 2 * count > len(versions):
                message = (
                    f"adapters {card.partition('/')[0]} have firmware {names(sorted(mine))}, and"
                    f" {names(sorted(usual_ones))} on {count} of {len(versions)} nodes"
                )
                yield node, warn("firmware", message, SAME_FIRMWARE)


CHECK = Check(
    title="InfiniBand ports: state, rate, errors",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "ports": Code(
            "How many InfiniBand ports are active. Without `ports`, one that is not plugged in is"
            " no finding as long as another is active.",
            (PLUG_IN, FIND_ADAPTER),
        ),
        "manager": Code("A port that no subnet manager has set up.", (START_MANAGER,)),
        "rate": Code(
            "The rate of active ports, against what is wanted, and other ports of the same kind of"
            " adapter.",
            (FASTER,),
        ),
        "errors": Code(
            f"Damaged packets and symbol errors, {FEW} or more and more than a sound link makes.",
            (CLEAN,),
        ),
        "flaps": Code("A link that is lost again and again.", (HOLD_LINK,)),
        "differs": Code(
            "The port is down, or slower, where that of the same name and adapter is active on most"
            " nodes.",
            (PLUG_IN, FASTER),
        ),
        "firmware": Code(
            "Adapters that have other firmware than the same ones on most nodes.", (SAME_FIRMWARE,)
        ),
    },
    probe=PROBE,
)
