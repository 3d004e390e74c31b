"""The interfaces of a node: which of them count, and which rest on which."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

ETHERNET = "1"
LOOPBACK = "772"

# Interfaces that rest on others, as the kernel calls them. A bridge is one only over a real port:
# what containers and virtual machines hang on it is their own affair.
STACKED = ("bond", "vlan", "macvlan", "ipvlan", "team")


@dataclass(frozen=True)
class Link:
    """An interface. mtu is None where it could not be read; the rest is as in /sys/class/net.

    kind: "real" for one of a device, "bond", "bridge", "vlan", …; "" for the rest (veth, tun).
    """

    name: str
    mtu: int | None
    up: bool
    type: str
    kind: str
    uppers: tuple[str, ...]

    @property
    def is_stacked(self) -> bool:
        return self.kind in STACKED or (not self.kind and self.name.startswith("team"))


def parse_links(text: str) -> dict[str, Link]:
    """The interfaces by name, of the probe's lines; lines of another form are passed over."""
    rows = [row for row in map(str.split, text.splitlines()) if len(row) == 10]
    names = {index: name for name, _, _, _, _, index, *_ in rows}
    uppers: dict[str, list[str]] = {row[0]: _list(row[8]) for row in rows}
    for name, _, _, _, _, index, link, kind, _, lowers in rows:
        below = _list(lowers)
        if not below and kind in STACKED and link not in (index, "-") and link in names:
            below = [names[link]]  # kernels that name no lower_ ones
        for lower in below:
            if lower in uppers and name not in uppers[lower]:
                uppers[lower].append(name)
    return {
        name: Link(
            name,
            number(mtu),
            state == "up"
            or (state not in ("down", "dormant", "lowerlayerdown") and carrier == "1"),
            kind_of_device,
            "" if kind == "-" else kind,
            tuple(uppers[name]),
        )
        for name, mtu, state, carrier, kind_of_device, _, _, kind, _, _ in rows
    }


def number(text: str) -> int | None:
    """A number of bytes; None for what is none."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _list(text: str) -> list[str]:
    return [word for word in text.split(",") if word and word != "-"]


def matching(links: Mapping[str, Link], pattern: str) -> list[str]:
    """The interfaces whose name fits a pattern ("bond1", "ens*")."""
    return [name for name in links if fnmatchcase(name, pattern)]


def in_use(links: Mapping[str, Link], leading: Sequence[str]) -> list[Link]:
    """The interfaces that packets of the node itself leave by.

    leading: those that lead somewhere for sure, whatever their kind: a container's only one is a
    veth. Loopback, bridges and veths of containers, tunnels, and members (judged by what rests on
    them) are left out, and what has no link.
    """
    return [
        link
        for link in links.values()
        if link.up
        and link.type != LOOPBACK
        and (link.name in leading or (_is_outward(link, links) and not _is_member(link, links)))
    ]


def _is_outward(link: Link, links: Mapping[str, Link]) -> bool:
    if link.kind == "real" or link.is_stacked:
        return True
    return link.kind == "bridge" and any(
        _is_outward(other, links)
        for other in links.values()
        if link.name in other.uppers and other.kind != "bridge"
    )


def _is_member(link: Link, links: Mapping[str, Link]) -> bool:
    above = [links[name] for name in link.uppers if name in links]
    return any(upper.kind in ("bond", "bridge") or upper.name.startswith("team") for upper in above)


def too_small_below(links: Mapping[str, Link]) -> Iterator[tuple[Link, Link]]:
    """(lower, upper) where what rests on an interface has a larger MTU than the interface."""
    for lower in links.values():
        for name in lower.uppers:
            upper = links.get(name)
            if upper is None or upper.mtu is None or lower.mtu is None:
                continue
            counts = upper.is_stacked or (upper.kind == "bridge" and _is_outward(lower, links))
            if counts and lower.mtu < upper.mtu:
                yield lower, upper


def relation(upper: Link) -> str:
    """What the lower interface is to `upper`, in words."""
    if upper.kind in ("bond", "bridge") or upper.name.startswith("team"):
        return f"member of {upper.name}"
    return f"below {upper.name}"


def sizes(links: Iterable[Link]) -> str:
    """ "1500 bytes on eth0, 9000 on ib0": the MTUs with the interfaces that have them."""
    by_size: dict[str, list[str]] = {}
    for link in links:
        by_size.setdefault("?" if link.mtu is None else str(link.mtu), []).append(link.name)
    parts = [f"{size} on {_and(names)}" for size, names in sorted(by_size.items())]
    return ", ".join(parts)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
