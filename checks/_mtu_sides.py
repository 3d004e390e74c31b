"""What only shows between nodes: whose MTU differs, and on which side a packet vanishes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clustercheck.check import Facts, Finding, Quantity, fail, skip, warn

from ._mtu_links import in_use, parse_links
from ._mtu_paths import Path, largest, paths
from ._mtu_remedies import LOOSE_LINK, SEE_SWITCH, SEE_UPLINK, SET_MTU

MOST_NAMED = 4


def leading(facts: Facts) -> list[str]:
    """The interfaces that lead to the peers, else to the default route."""
    devices = [name for name in facts.at("dev").values() if name]
    return list(dict.fromkeys(devices or facts["default"].split()))


def differing(nodes: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """Nodes whose interface has another MTU than most nodes' interface of that name."""
    found: dict[str, dict[str, int]] = {}
    for node, facts in nodes.items():
        links = parse_links(facts.get("interfaces", ""))
        for link in in_use(links, leading(facts) if "default" in facts else []):
            if link.mtu is not None:
                found.setdefault(link.name, {})[node] = link.mtu
    for name, sizes in found.items():
        (usual, count), *others = Counter(sizes.values()).most_common()
        if not others:
            continue
        even = others[0][1] == count
        for node, size in sizes.items():
            if even:
                all_sizes = ", ".join(map(str, sorted(set(sizes.values()))))
                message = f"{name} has MTU {size}; the {len(sizes)} nodes have {all_sizes}"
            else:
                message = f"{name} has MTU {size}, and {usual} on {count} of {len(sizes)} nodes"
            if even or size != usual:
                yield node, warn("differs", message, SET_MTU)


class _Tries:
    """All full packets that nodes sent each other.

    An answer is as large as the packet, so each pair tries both directions.

    passing: bytes that arrived, from the first node to the second.
    """

    def __init__(self, nodes: Mapping[str, Facts]) -> None:
        self.of = {node: [p for p in paths(told) if p.is_tried] for node, told in nodes.items()}
        self.passing: dict[tuple[str, str], int] = {}
        self._own = {node: _own_interface(found) for node, found in self.of.items()}
        self._groups: dict[int, dict[str, str]] = {}
        for node, found in self.of.items():
            for path in found:
                if path.full == "arrives":
                    self.passing[node, path.peer] = path.size

    def own(self, node: str) -> tuple[str, int]:
        """A node's interface towards its peers and its MTU; ("", 0) where not just one is known."""
        return self._own.get(node, ("", 0))

    def group(self, node: str, size: int) -> str:
        """A name for all nodes that are joined by paths on which the size passes.

        "" for a node that passes it to nobody.
        """
        if size not in self._groups:
            self._groups[size] = _joined([p for p, most in self.passing.items() if most >= size])
        return self._groups[size].get(node, "")

    def members(self, size: int) -> dict[str, list[str]]:
        """The nodes of each group, by their names."""
        found: dict[str, list[str]] = {}
        for node, group in sorted(self._groups.get(size, {}).items()):
            found.setdefault(group, []).append(node)
        return found


def sides(nodes: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """On which side a packet vanishes, where the other pairs tell.

    A node that passes full packets to and from others is not at fault, and one that does to none
    is. Nodes that pass them in groups and not from one to another are all well. What is said
    of a node or of groups is not said of each pair again.
    """
    tries = _Tries(nodes)
    blamed: dict[str, list[Path]] = {}
    between: dict[int, tuple[set[str], list[Path]]] = {}  # by size: the groups, and the paths
    for node, found in tries.of.items():
        for path in found:
            if path.full in ("arrives", "local", "router"):
                continue
            peer, size = path.peer, path.size
            group, other = tries.group(node, size), tries.group(peer, size)
            if tries.passing.get((peer, node), 0) >= size:
                message = f"packets of {size} bytes vanish, and arrive the other way: one link of"
                yield node, _pair(path, f"{message} several is at fault")
            elif 0 < tries.own(peer)[1] < size or (group and not other):
                blamed.setdefault(peer, []).append(path)
                if peer in nodes:
                    yield node, _said(path, "on the other side of the path")
            elif group and group == other:
                message = f"packets of {size} bytes vanish, and both pass them to other nodes: the"
                yield node, _pair(path, f"{message} fault is between their switches")
            elif group:
                groups, vanished = between.setdefault(size, (set(), []))
                groups |= {group, other}
                vanished.append(path)
                yield node, _said(path, "between groups of nodes")
            elif other:
                blamed.setdefault(node, []).append(path)
                yield node, _said(path, "as on all paths of this node")
    for node, vanished in blamed.items():
        if node in nodes:
            yield node, _blame(tries.own(node), vanished)
    for size, (groups, vanished) in between.items():
        of = tries.members(size)
        for node, finding in _parted([of[group] for group in groups], vanished):
            if node in nodes:
                yield node, finding


def _joined(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """By node, one of the nodes that it is joined with, the same for all of them."""
    group: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for pair in pairs:
        for node in pair:
            if node not in group:
                group[node], members[node] = node, [node]
        one, other = sorted((group[node] for node in pair), key=lambda name: -len(members[name]))
        if one != other:
            for node in members[other]:
                group[node] = one
            members[one] += members.pop(other)
    return group


def _own_interface(tried: list[Path]) -> tuple[str, int]:
    ways = {(path.device, path.mtu) for path in tried}
    return ways.pop() if len(ways) == 1 else ("", 0)


def _said(path: Path, where: str) -> Finding:
    """In the place of the judge's: the cause is said of a node, or of two groups."""
    message = f"packets of {path.size} bytes vanish {where}{largest([path])}"
    return skip("hole", message, peer=path.peer)


def _pair(path: Path, message: str) -> Finding:
    value = _value([path])
    return fail("hole", message + largest([path]), LOOSE_LINK, peer=path.peer, value=value)


def _blame(own: tuple[str, int], vanished: list[Path]) -> Finding:
    size, count = min(path.size for path in vanished), len(vanished)
    device, mtu = own
    if 0 < mtu < size:
        message = f"packets of {size} bytes from {count} other nodes end here, for {device} has MTU"
        return fail("side", f"{message} {mtu}", SET_MTU)
    message = (
        f"packets of {size} bytes pass between other nodes and to and from this one in none of"
        f" {count} tries{largest(vanished)}: its own switch port, cable or interface is at fault,"
        " or the uplink of a switch that no other node tried shares"
    )
    return fail("side", message, SEE_SWITCH, value=_value(vanished))


def _parted(groups: list[list[str]], vanished: list[Path]) -> Iterator[tuple[str, Finding]]:
    """For the nodes that are not in the largest group, or for all where that is not most."""
    groups = sorted(groups, key=lambda members: (-len(members), members[0]))
    named = "; ".join(map(_listed, groups[:MOST_NAMED]))
    if len(groups) > MOST_NAMED:
        named += f"; and {len(groups) - MOST_NAMED} more groups"
    count = "two" if len(groups) == 2 else str(len(groups))
    message = (
        f"packets of {vanished[0].size} bytes pass within {count} groups of nodes ({named}) and not"
        f" between them, in none of {len(vanished)} tries{largest(vanished)}"
    )
    finding = fail("side", message, SEE_UPLINK, value=_value(vanished))
    most = 2 * len(groups[0]) > sum(map(len, groups))
    for members in groups[most:]:
        for node in members:
            yield node, finding


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _value(found: Sequence[Path]) -> Quantity | None:
    passes = min(path.passes for path in found)
    return Quantity(passes, "B", less_is_worse=True) if passes else None
