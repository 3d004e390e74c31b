"""The interfaces of a node as the check link sees them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

ETHERNET = "1"

# What drivers say that know no speed: -1 as a number of 32 or of 16 bits, by the kernel's age.
NO_SPEED = (65535, 4294967295)


@dataclass(frozen=True)
class Port:
    """An interface. What the kernel did not tell is None, or "".

    kind: "real" for one of a card, "function" for a part of a card that is meant for a virtual
        machine, "usb", "wireless", "bond", "virtual".
    is_on: it is set up; whether it has a link is another matter (`carrier`).
    speed: in Mb/s.
    route: "default" where the default route goes by it, "yes" where it has an address or a route.
    card: the numbers of its maker and model.
    downs: how often it lost its link since boot.
    counters: since boot, by the kernel's names.
    """

    name: str
    kind: str
    type: str
    carrier: bool | None
    is_on: bool | None
    speed: int | None
    duplex: str
    route: str
    card: str
    bond: str
    downs: int | None
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_ethernet(self) -> bool:
        return self.kind == "real" and self.type == ETHERNET

    @property
    def is_used(self) -> bool:
        """Do packets of the node itself leave by it, as far as it can be told from itself?"""
        if self.kind in ("usb", "function"):
            return self.type == ETHERNET and bool(self.route)
        return self.is_ethernet and (self.carrier is True or bool(self.route))

    @property
    def damaged(self) -> int:
        """Packets that arrived damaged since boot, since only they speak of cables.

        rx_errors also counts packets that are too long, and with some drivers those for which the
        node had no room.
        """
        of = self.counters
        other = of.get("rx_length_errors", 0) + of.get("rx_over_errors", 0)
        other += of.get("rx_fifo_errors", 0) + of.get("rx_missed_errors", 0)
        told = of.get("rx_crc_errors", 0) + of.get("rx_frame_errors", 0)
        return max(told, of.get("rx_errors", 0) - other)

    @property
    def missed(self) -> int:
        """Packets for which the node had no room; drivers count one loss under several names."""
        names = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")
        return max(self.counters.get(name, 0) for name in names)

    @property
    def unsent(self) -> int:
        """Packets that could not be sent."""
        return self.counters.get("tx_errors", 0)


def parse_ports(text: str) -> dict[str, Port]:
    """The interfaces by name, of the probe's lines; lines of another form are passed over."""
    ports = {}
    for line in text.splitlines():
        name, *rest = line.split(" ")
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        if not name or "kind" not in words:
            continue
        downs = number(words.get("downs", ""))
        changes = number(words.get("changes", ""))
        if downs is None and changes is not None:
            downs = changes // 2
        ports[name] = Port(
            name,
            words["kind"],
            words.get("type", ""),
            {"1": True, "0": False}.get(words.get("carrier", "")),
            {"up": True, "down": False}.get(words.get("set", "")),
            speed(words.get("speed", "")),
            words.get("duplex", ""),
            words.get("route", ""),
            f"{words.get('vendor', '')}:{words.get('model', '')}",
            words.get("bond", ""),
            downs,
            _counters(words),
        )
    return ports


def with_modes(ports: Mapping[str, Port], modes: Mapping[str, "Modes"]) -> dict[str, Port]:
    """The ports, with speed and duplex of ethtool where the kernel's files have none."""
    whole = dict(ports)
    for name, of in modes.items():
        if name in ports and ports[name].speed is None and of.speed:
            whole[name] = replace(ports[name], speed=of.speed, duplex=of.duplex)
    return whole


def grown(text: str, ports: Mapping[str, Port]) -> dict[str, Port]:
    """What the counters grew by between the probe's two looks, for the interfaces looked at."""
    found = {}
    for line in text.splitlines():
        name, *rest = line.split(" ")
        if name in ports:
            later = _counters(dict(word.split("=", 1) for word in rest if "=" in word))
            before = ports[name].counters
            growth = {key: max(0, value - before.get(key, value)) for key, value in later.items()}
            port = ports[name]
            found[name] = Port(
                name, port.kind, port.type, None, None, None, "", "", "", "", None, growth
            )
    return found


def _counters(words: Mapping[str, str]) -> dict[str, int]:
    told = {key: number(value) for key, value in words.items() if key.startswith(("rx_", "tx_"))}
    return {key: value for key, value in told.items() if value is not None}


def number(text: str) -> int | None:
    """A number that the kernel may have told; None for what is none."""
    return int(text) if re.fullmatch("[0-9]{1,20}", text) else None


def speed(text: str) -> int | None:
    """A speed in Mb/s; None for what stands for "unknown"."""
    told = number(text)
    return None if told in (None, 0, *NO_SPEED) else told


def matching(ports: Mapping[str, Port], pattern: str) -> list[str]:
    """The interfaces whose name fits a pattern ("bond1", "ens*")."""
    return [name for name in ports if fnmatchcase(name, pattern)]


def speeds(ports: Iterable[Port]) -> str:
    """ "1000 Mb/s on eno1, 100000 Mb/s on ens1f0 and ens1f1": speeds with who has them."""
    by_speed: dict[int, list[str]] = {}
    for port in ports:
        by_speed.setdefault(port.speed or 0, []).append(port.name)
    return ", ".join(f"{told} Mb/s on {names(of)}" for told, of in sorted(by_speed.items()))


def names(of: list[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, (", ".join(of[:-1]), of[-1])))


@dataclass(frozen=True)
class Modes:
    """What `ethtool NAME` says: speeds in Mb/s; partner: those that the other end offers."""

    speed: int | None
    duplex: str
    advertised: frozenset[int]
    partner: frozenset[int]
    negotiates: bool

    def least(self) -> int | None:
        """The speed that should come of it at least; None where that cannot be told."""
        if not self.negotiates or not self.advertised:
            return None
        if self.partner:
            return max(self.advertised & self.partner, default=None)
        return min(self.advertised)


def parse_modes(text: str) -> dict[str, Modes]:
    """What ethtool printed for several interfaces, by name."""
    found: dict[str, Modes] = {}
    name, key = "", ""
    told: dict[str, list[str]] = {}

    def put() -> None:
        if name:
            found[name] = Modes(
                speed("".join(told.get("Speed", [])).removesuffix("Mb/s")),
                "".join(told.get("Duplex", [])).lower(),
                _offered(told.get("Advertised link modes", [])),
                _offered(told.get("Link partner advertised link modes", [])),
                told.get("Auto-negotiation") == ["on"],
            )

    for line in text.splitlines():
        start = re.match(r"Settings for (\S+):", line)
        if start:
            put()
            name, key, told = start[1], "", {}
            continue
        before, colon, after = line.partition(":")
        if colon:
            key = before.strip()
            told[key] = after.split()
        elif key:  # modes go on in the next line
            told[key] += line.split()
    put()
    return found


def _offered(words: Iterable[str]) -> frozenset[int]:
    found = (re.match(r"([0-9]{1,7})base", word) for word in words)
    return frozenset(int(match[1]) for match in found if match)
