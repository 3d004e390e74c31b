"""Who reaches whom at a port, and whose fault it is where that fails."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clustercheck.check import Facts, Finding, fail, skip, warn

from ._reach_remedies import OPEN_HERE, OPEN_OUT, SEE_PAIR, SEE_PEER

# What became of a try, by the probe's word for it.
WORDS = {
    "refused": "refused",
    "silent": "twice no answer",
    "no_route": "no way there, or a firewall that says so",
    "own": "not permitted by the node that tried",
}


@dataclass
class Port:
    """All tries at one port between the nodes of a run.

    what: the port in words. tries: by node and peer, the probe's word.
    strict: nodes for which it must be open; others that do not reach each other may be meant so.
    closed: nodes do not reach each other, as a rule: most tries fail, and by no one node's fault.
    outward, inward: what became of the tries of and at nodes that are at fault.
    """

    what: str
    code: str
    strict: set[str]
    tries: dict[tuple[str, str], str]
    closed: bool = False
    outward: dict[str, list[str]] = field(default_factory=dict)
    inward: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Blame a node that reaches nobody while others do, or is reached by none of those."""
        able = {node for (node, _), word in self.tries.items() if word == "open"}
        heard = {peer for (_, peer), word in self.tries.items() if word == "open"}
        for (node, peer), word in self.tries.items():
            if word == "open":
                continue
            if peer not in heard and node in able:
                self.inward.setdefault(peer, []).append(word)
            elif node not in able and peer in heard:
                self.outward.setdefault(node, []).append(word)
        if 2 * len(self.blamed) > len({node for pair in self.tries for node in pair}):
            self.inward, self.outward = {}, {}
        rest = [w for pair, w in self.tries.items() if not self.blamed.intersection(pair)]
        self.closed = 2 * rest.count("open") < len(rest) or "open" not in rest
        if self.closed:
            self.inward = {n: of for n, of in self.inward.items() if n in self.strict}
            self.outward = {n: of for n, of in self.outward.items() if n in self.strict}

    @property
    def blamed(self) -> set[str]:
        return {*self.inward, *self.outward}


def words_of(found: list[str]) -> str:
    """What became of tries, each kind once."""
    return " and ".join(WORDS.get(word, word) for word in dict.fromkeys(found))


def ssh_port(facts: Mapping[str, Facts], nodes: set[str], strict: set[str]) -> Port:
    """The tries at SSH's port between nodes; names without address are not among them."""
    tries = _tries(facts, "ssh", nodes)
    ports = {told.get(f"port@{peer}", "") for told in facts.values() for peer in told.at("ssh")}
    number = f"port {ports.pop()[:5]} (SSH)" if len(ports) == 1 else "the port of SSH"
    return Port(number, "ssh", strict, tries)


def slurmd_port(facts: Mapping[str, Facts], number: int) -> Port:
    """The tries at slurmd's port between nodes on which it listens."""
    nodes = {node for node, told in facts.items() if told.get("slurmd") == "yes"}
    return Port(f"port {number} (slurmd)", "slurmd", nodes, _tries(facts, "slurmd", nodes))


def _tries(facts: Mapping[str, Facts], name: str, nodes: set[str]) -> dict[tuple[str, str], str]:
    return {
        (node, peer): word
        for node, told in facts.items()
        if node in nodes
        for peer, word in told.at(name).items()
        if peer in nodes and (word == "open" or word in WORDS)
    }


def judge_nodes(ports: list[Port], failing: set[str]) -> Iterator[tuple[str, Finding]]:
    """One finding for a node that is cut off, whatever the ports and directions.

    failing: nodes for which it is a failure also where the port need not be open.
    """
    for node in dict.fromkeys(node for port in ports for node in port.blamed):
        theirs = [port for port in ports if node in port.inward]
        ours = [port for port in ports if node in port.outward]
        parts: list[str] = []
        for found, way in ((theirs, "inward"), (ours, "outward")):
            if not found:
                continue
            became = [getattr(port, way)[node] for port in found]
            count = max(len(words) for words in became)
            tries = "1 try" if count == 1 else f"{count} tries"
            where = "from other nodes to" if way == "inward" else "from here to others at"
            what = " and ".join(port.what for port in found)
            said = words_of([word for words in became for word in words])
            parts.append(f"{'nor any' if parts else 'none'} of {tries} {where} {what} ({said})")
        message = f"{', '.join(parts)} gets through, and other nodes reach each other"
        must = node in failing or any(node in port.strict for port in theirs + ours)
        remedy = OPEN_HERE if theirs else OPEN_OUT
        code = "unreached" if theirs else "reaches_none"
        yield node, (fail if must else warn)(code, message, remedy)


def judge_pairs(port: Port) -> Iterator[tuple[str, Finding]]:
    """In the place of what the judge says of a peer, where the other tries tell more."""
    able = {node for (node, _), word in port.tries.items() if word == "open"}
    heard = {peer for (_, peer), word in port.tries.items() if word == "open"}
    for (node, peer), word in port.tries.items():
        if word == "open":
            continue
        message = f"{port.what}: {WORDS[word]}"
        if port.blamed.intersection((node, peer)):
            where = "the other node" if peer in port.inward else "this node"
            finding = skip(port.code, f"{message}, as in all tries of {where}", peer=peer)
        elif port.closed and node not in port.strict:
            message += "; closed between nodes, as it seems (`ssh = yes` makes it a fault)"
            finding = skip(port.code, message, peer=peer)
        else:
            both = node in able and peer in heard
            message += ", and both have to do with other nodes" if both else ""
            finding = warn(port.code, message, SEE_PAIR if both else SEE_PEER, peer=peer)
        yield node, finding
