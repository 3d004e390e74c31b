"""What became of the packets that a node sent to its peers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clustercheck.check import Facts, Finding, Quantity, Remedy, fail, ok, skip, unknown

from ._mtu_links import number
from ._mtu_remedies import (
    FEWER,
    INSTALL_IP,
    INSTALL_PING,
    LET_ICMP,
    LET_PING,
    MAKE_NAME,
    MAKE_ROUTE,
    ONE_MTU,
    SEE_PEER,
    SEE_ROUTE,
)

# What ping cannot do on the node, by the probe's word for it.
CANNOT: dict[str, tuple[str, str, Remedy]] = {
    "none": ("no_ping", "ping is not installed, and needed to tell", INSTALL_PING),
    "no ip": ("no_ip", "ip (iproute2) is not installed, and needed to tell", INSTALL_IP),
    "without -M": (
        "no_df",
        "ping here cannot forbid fragments (it knows no -M, as busybox's), so a large packet"
        " that arrives proves nothing",
        INSTALL_PING,
    ),
    "not permitted": ("no_permission", "not permitted to send ICMP: ping needs a right", LET_PING),
}

# What became of the small packet, by the probe's word for it.
SMALL: dict[str, tuple[str, str, Remedy]] = {
    "silent": (
        "silent",
        "no answer, not even to a small packet: down, or echo requests are dropped",
        SEE_PEER,
    ),
    "filtered": (
        "filtered",
        "ICMP is filtered: the other side is there, and answers no echo request",
        LET_ICMP,
    ),
    "filtered_here": ("filtered", "ICMP is filtered by this node's own firewall", LET_ICMP),
    "no_name": ("no_name", "the name to try has no address on this node", MAKE_NAME),
    "no_route": ("no_route", "this node has no route there", MAKE_ROUTE),
    "untried": ("untried", "not tried: the time was over before its turn", FEWER),
}


@dataclass(frozen=True)
class Path:
    """The way from a node to a peer. Numbers are bytes with the IP header; 0 is not known.

    small, full: what became of a small packet and of one of `size`: "arrives", or why not.
    device, mtu: the node's interface on the way, and its MTU.
    passes, fails: the largest size that arrived, and the smallest above it that did not.
    """

    peer: str
    small: str
    full: str
    device: str
    size: int
    mtu: int
    passes: int
    fails: int

    @property
    def is_tried(self) -> bool:
        """Has a full packet been sent?"""
        return bool(self.full and self.size)


def paths(facts: Facts) -> list[Path]:
    """The ways that were tried, one for each peer."""

    def of(name: str, peer: str) -> int:
        return number(facts.get(f"{name}@{peer}", "")) or 0

    return [
        Path(
            peer,
            facts.get(f"small@{peer}", ""),
            facts.get(f"full@{peer}", ""),
            facts.get(f"dev@{peer}", ""),
            of("size", peer),
            of("mtu", peer),
            of("passes", peer),
            of("fails", peer),
        )
        for peer in facts.at("target")
    ]


def judge_paths(facts: Facts) -> Iterator[Finding]:
    """A finding for each peer; none for one about whom too little was reported."""
    if facts["peers"] == "0":
        yield skip("path", "no other node to try")
        return
    if facts["ping"] in CANNOT:
        code, message, remedy = CANNOT[facts["ping"]]
        for peer in facts.at("target"):
            yield unknown(code, message, remedy, peer=peer)
        return
    for path in paths(facts):
        if path.small in SMALL:
            code, message, remedy = SMALL[path.small]
            yield unknown(code, message, remedy, peer=path.peer)
        elif path.small == "self":
            yield skip("itself", "its name leads to this very node here", peer=path.peer)
        elif path.small == "arrives" and path.is_tried:
            yield _of_full(path)


def _of_full(path: Path) -> Finding:
    if path.full == "arrives":
        return ok("path", f"packets of {path.size} bytes arrive whole", peer=path.peer)
    value = _value(path)
    if path.full == "local" and path.mtu < path.size:
        if path.passes < path.mtu:
            message = f"not even packets of {path.mtu} bytes, the MTU of {path.device}, arrive"
            return fail("hole", message + largest([path]), ONE_MTU, peer=path.peer, value=value)
        message = f"packets of {path.size} bytes do not leave, for {path.device} has MTU {path.mtu}"
        return skip("local", f"{message}; those arrive", peer=path.peer)
    if path.full == "local":
        message = (
            f"this node itself refuses packets of {path.size} bytes there, though {path.device} has"
            f" MTU {path.mtu}: its route or a router's word allows less{largest([path])}"
        )
        return fail("local", message, SEE_ROUTE, peer=path.peer, value=value)
    if path.full == "router":
        message = f"a router on the path says that packets of {path.size} bytes are too big"
        return fail("router", message + largest([path]), ONE_MTU, peer=path.peer, value=value)
    message = f"packets of {path.size} bytes vanish on the path without a word"
    return fail("hole", message + largest([path]), ONE_MTU, peer=path.peer, value=value)


def _value(path: Path) -> Quantity | None:
    return Quantity(path.passes, "B", less_is_worse=True) if path.passes else None


def largest(found: Sequence[Path]) -> str:
    """What size arrives on paths on which larger ones vanish; "" where they do not agree."""
    sizes = {(path.passes, path.fails) for path in found}
    (passes, fails), *others = sizes
    if others or not passes or not fails:
        return ""
    if fails == passes + 1:
        return f"; the largest that arrives is {passes} bytes"
    return f"; {passes} bytes arrive, {fails} do not"
