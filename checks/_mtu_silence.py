"""What only shows between nodes: whose fault it is that small packets get no answer."""

from collections.abc import Iterator, Mapping, Sequence

from clustercheck.check import Facts, Finding, Remedy, skip, unknown

from ._mtu_paths import Path, paths
from ._mtu_remedies import LET_ICMP, SEE_OWN

# What is at fault, by what the others saw.
CAUSES: dict[str, tuple[str, Remedy]] = {
    "filtered": ("ICMP is filtered on this node or before it", LET_ICMP),
    "silent": (
        "its interface, cable, switch port or address is at fault, or echo requests are dropped",
        SEE_OWN,
    ),
}


def silences(nodes: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """One finding for a node that nobody hears, instead of one for each that tried it.

    A node that drops echo requests and whose own full packets go to others and come back whole is
    no trouble: each of those was both ways.
    """
    tried = {node: paths(told) for node, told in nodes.items()}
    arrived = {(n, p.peer) for n, ps in tried.items() for p in ps if p.small == "arrives"}
    heard = {end for pair in arrived for end in pair}
    answering = {peer for _, peer in arrived}
    unheard = {n: [p for p in ps if p.small in CAUSES] for n, ps in tried.items()}
    blamed: dict[str, tuple[list[str], list[str]]] = {}  # what others saw, and what it saw itself
    for node, found in unheard.items():
        for path in found:
            peer = path.peer
            if node in heard and peer in nodes and peer not in answering:
                back = _most_whole(tried[peer])
                if not back or back < max(other.size for other in tried[node]):
                    blamed.setdefault(peer, ([], []))[0].append(path.small)
                    continue
                message = (
                    f"no answer to echo requests; its own packets of {back} bytes arrive whole"
                    " elsewhere and back"
                )
                yield node, skip(path.small, message, peer=peer)
            elif node not in heard and peer in answering:
                blamed.setdefault(node, ([], []))[1].append(path.small)
    for node, found in unheard.items():
        for path in found:
            if node in blamed or path.peer in blamed:
                where = "this node" if node in blamed else "the other node"
                message = f"no answer, as on all paths of {where}"
                yield node, skip(path.small, message, peer=path.peer)
    for node, (outside, inside) in blamed.items():
        # Its own neighbours may be there while it is not itself where they look for it.
        code = "filtered" if "filtered" in (outside or inside) else "silent"
        cause, remedy = CAUSES[code]
        message = (
            "small packets between other nodes and this one got no answer"
            f" ({len(outside + inside)} tries): {cause}"
        )
        if not any(path.small == "no_route" for path in tried[node]):  # else that is the cause
            yield node, unknown(code, message, remedy)


def _most_whole(found: Sequence[Path]) -> int:
    return max((path.size for path in found if path.full == "arrives"), default=0)
