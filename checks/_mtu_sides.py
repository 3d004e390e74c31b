"""What only shows between nodes: whose MTU differs, and on which side a packet vanishes."""

from collections import Counter
from collections.abc import Iterator, Mapping

from clustercheck.check import Facts, Finding, fail, warn

from ._mtu_links import in_use, parse_links
from ._mtu_paths import Path, not_ours, paths
from ._mtu_remedies import LOOSE_LINK, SEE_SWITCH, SET_MTU


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


def sides(nodes: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """On which side a packet vanishes, where the other pairs tell.

    An answer is as large as the packet, so each pair tries both directions: a node that passes
    full packets to and from others is not at fault, and one that does to none is.
    """
    tried = {node: [p for p in paths(facts) if p.is_tried] for node, facts in nodes.items()}
    own = {node: _own_interface(found) for node, found in tried.items()}
    passing: dict[tuple[str, str], int] = {}  # bytes, from the first node to the second
    best: dict[str, int] = {}
    for node, found in tried.items():
        for path in found:
            if path.full == "arrives":
                passing[node, path.peer] = path.size
                for one in (node, path.peer):
                    best[one] = max(path.size, best.get(one, 0))
    blamed: dict[str, list[int]] = {}
    for node, found in tried.items():
        for path in found:
            if path.full in ("arrives", "local", "router"):
                continue
            peer, size = path.peer, path.size
            _, own_mtu = own.get(peer, ("", 0))
            node_is_well, peer_is_well = best.get(node, 0) >= size, best.get(peer, 0) >= size
            if passing.get((peer, node), 0) >= size:
                message = f"packets of {size} bytes arrive the other way: one link of several is at"
                yield node, fail("side", f"{message} fault", LOOSE_LINK, peer=peer)
            elif 0 < own_mtu < size or (node_is_well and not peer_is_well):
                blamed.setdefault(peer, []).append(size)
                if peer in nodes:
                    yield node, not_ours(path)
            elif node_is_well and peer_is_well:
                message = f"both pass packets of {size} bytes to other nodes: the fault is between"
                yield node, fail("side", f"{message} their switches", LOOSE_LINK, peer=peer)
            elif peer_is_well:
                blamed.setdefault(node, []).append(size)
    for node, sizes in blamed.items():
        if node in nodes:
            yield node, _blame(own[node], sizes)


def _own_interface(tried: list[Path]) -> tuple[str, int]:
    """A node's interface towards its peers and its MTU; ("", 0) where there is not just one."""
    ways = {(path.device, path.mtu) for path in tried}
    return ways.pop() if len(ways) == 1 else ("", 0)


def _blame(own: tuple[str, int], sizes: list[int]) -> Finding:
    size, count = min(sizes), len(sizes)
    device, mtu = own
    if 0 < mtu < size:
        message = f"packets of {size} bytes from {count} other nodes end here, for {device} has MTU"
        return fail("side", f"{message} {mtu}", SET_MTU)
    message = (
        f"packets of {size} bytes pass between other nodes and to and from this one in none of"
        f" {count} tries: its own switch port, cable or interface is at fault"
    )
    return fail("side", message, SEE_SWITCH)
