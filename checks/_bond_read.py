"""Bonds and their members, from /proc/net/bonding and /sys."""

import re
from dataclasses import dataclass, field

LACP = "802.3ad"

# How the kernel names the modes in /proc/net/bonding, and how an admin sets them.
MODES = {
    "load balancing (round-robin)": "balance-rr",
    "fault-tolerance (active-backup)": "active-backup",
    "load balancing (xor)": "balance-xor",
    "fault-tolerance (broadcast)": "broadcast",
    "IEEE 802.3ad Dynamic link aggregation": LACP,
    "transmit load balancing": "balance-tlb",
    "adaptive load balancing": "balance-alb",
}

# Bits of an LACP port state (IEEE 802.1AX): it is in step, takes packets and sends them.
TAKES_PART = 0b0011_1000
DEFAULTED, EXPIRED = 0b0100_0000, 0b1000_0000


@dataclass
class Member:
    """An interface of a bond. What is not told is None, or "".

    state: "up", "down", "going back", …: what the bond's own watch says.
    speed: in Mb/s; of one that is down it may be what it had before.
    carrier: what the interface says itself.
    actor, partner: LACP port states, this end's and the switch's.
    """

    name: str
    state: str = ""
    speed: int | None = None
    failures: int | None = None
    aggregator: int | None = None
    carrier: bool | None = None
    actor: int | None = None
    partner: int | None = None

    @property
    def is_up(self) -> bool:
        return self.state == "up"

    @property
    def is_answered(self) -> bool | None:
        """Does the switch speak LACP with it? None where that cannot be seen."""
        if self.actor is None or self.partner is None:
            return None
        return self.partner != 0 and not self.actor & (DEFAULTED | EXPIRED)


@dataclass
class Bond:
    """A bond.

    is_read: False where the kernel's file on it could not be read.
    is_on: it is set up.
    aggregator: the one whose members carry the traffic.
    partner: the switch's MAC address, which only root is told.
    """

    name: str
    is_read: bool = True
    is_on: bool | None = None
    mode: str = ""
    state: str = ""
    active: str = ""
    is_watched: bool = False
    aggregator: int | None = None
    partner: str = ""
    members: dict[str, Member] = field(default_factory=dict)


def parse_bonds(text: str) -> list[Bond]:
    """The bonds of the probe's text; lines of another form are passed over."""
    bonds: list[Bond] = []
    member: Member | None = None
    end = ""  # of an LACP link: whose state is told
    for line in text.splitlines():
        words = line.split()
        key, _, value = line.strip().partition(": ")
        value = value.strip()
        if words[:1] == ["@bond"] and len(words) == 4:
            is_on = {"up": True, "off": False}.get(words[2])
            bonds.append(Bond(words[1], is_read=words[3] == "read", is_on=is_on))
            member, end = None, ""
        elif not bonds:
            continue
        elif words[:1] == ["@member"] and len(words) == 6:
            _own_words(bonds[-1], words[1:])
        elif words[:1] == ["@aggregator"] and len(words) == 2:
            bonds[-1].aggregator = number(words[1]) or bonds[-1].aggregator
        elif key == "Slave Interface":
            member = bonds[-1].members.setdefault(value, Member(value))
            end = ""
        elif member is None:
            _of_bond(bonds[-1], key, value)
        elif key == "details actor lacp pdu:":
            end = "actor"
        elif key == "details partner lacp pdu:":
            end = "partner"
        elif key == "port state" and end:
            setattr(member, end, number(value))
        else:
            _of_member(member, key, value)
    return bonds


def _of_bond(bond: Bond, key: str, value: str) -> None:
    if key == "Bonding Mode":
        name, _, rest = value.partition(" (fail_over_mac")
        bond.mode = MODES.get(name, value if not rest else name)
    elif key == "MII Status":
        bond.state = value
    elif key == "Currently Active Slave":
        bond.active = "" if value == "None" else value
    elif key in ("MII Polling Interval (ms)", "ARP Polling Interval (ms)"):
        bond.is_watched = bond.is_watched or bool(number(value))
    elif key == "Aggregator ID":
        bond.aggregator = number(value)
    elif key == "Partner Mac Address":
        bond.partner = value


def _of_member(member: Member, key: str, value: str) -> None:
    if key == "MII Status":
        member.state = value
    elif key == "Speed":
        member.speed = number(value.removesuffix(" Mbps")) or None
    elif key == "Link Failure Count":
        member.failures = number(value)
    elif key == "Aggregator ID":
        member.aggregator = number(value)


def _own_words(bond: Bond, words: list[str]) -> None:
    """What /sys has of a member: to an ordinary user it tells more than /proc."""
    name, carrier, actor, partner, aggregator = words
    member = bond.members.setdefault(name, Member(name))
    member.carrier = {"1": True, "0": False}.get(carrier)
    for key, value in (("actor", actor), ("partner", partner), ("aggregator", aggregator)):
        if getattr(member, key) is None:
            setattr(member, key, number(value))


def number(text: str) -> int | None:
    """A number that the kernel may have told; None for what is none."""
    return int(text) if re.fullmatch("[0-9]{1,10}", text) else None
