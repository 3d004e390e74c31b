"""slurm.conf and cgroup.conf compared between nodes: first by digest, then by what they say."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clustercheck.check import Facts, Finding, ok, warn

from ._slurm_remedies import SAME_CONF

# Nodes that are asked for the lines: one of each kind of file, so many kinds at most.
MOST_KINDS = 12
MOST_DIGESTS = 200  # characters apart, an include for each partition is plenty

Digest = tuple[tuple[str, str], ...]


def digest_of(facts: Facts) -> Digest:
    """(file's name, digest) for each file, in the order of their names; () where there are none.

    The folder does not count: a node that fetches its files keeps them below /run.
    """
    found = []
    for line in facts.get("digests", "").splitlines()[:MOST_DIGESTS]:
        digest, _, path = line.partition(" ")
        if path.strip():
            found.append((path.strip().rsplit("/", 1)[-1], digest))
    return tuple(sorted(found))


def groups(facts: Mapping[str, Facts]) -> list[list[list[str]]]:
    """For each cluster, its nodes by what their files are; the largest group first.

    Sites that say NO_CONF_HASH keep different files on purpose.
    """
    clusters: dict[str, dict[Digest, list[str]]] = {}
    for node, told in facts.items():
        digest = digest_of(told)
        if digest and "no_conf_hash" not in told.get("flags", "").lower():
            kinds = clusters.setdefault(told.get("cluster", ""), {})
            kinds.setdefault(digest, []).append(node)
    return [sorted(kinds.values(), key=len, reverse=True) for kinds in clusters.values()]


def whom_to_ask(facts: Mapping[str, Facts]) -> list[str]:
    """A node of each kind, where there is more than one."""
    return [
        kind[0] for kinds in groups(facts) if len(kinds) > 1 for kind in kinds[: MOST_KINDS + 1]
    ]


def compare_conf(facts: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """A finding for each node whose files say otherwise than those of most nodes."""
    for kinds in groups(facts):
        if len(kinds) == 1 and len(kinds[0]) == 1:
            continue  # nobody to compare it with
        most, *others = _merged(kinds, facts)
        count = len(most)
        for node in most if count > 1 or others else []:
            if others and len(others[0]) == count:
                continue  # no majority: said of all below
            yield node, ok("conf", "slurm.conf is the same as on most nodes" if others else SAME)
        for kind in others:
            same_size = len(kind) == count
            words = _difference(facts[kind[0]], facts[most[0]])
            other = "that of as many other nodes" if same_size else f"that of {count} nodes"
            for node in kind:
                yield node, warn("conf", f"slurm.conf differs from {other}{words}", SAME_CONF)
        if others and len(others[0]) == count:
            words = _difference(facts[most[0]], facts[others[0][0]])
            for node in most:
                message = f"slurm.conf differs from that of as many other nodes{words}"
                yield node, warn("conf", message, SAME_CONF)


SAME = "slurm.conf is the same on all nodes"


def _merged(kinds: Sequence[list[str]], facts: Mapping[str, Facts]) -> list[list[str]]:
    """The kinds with those put together that differ in comments and blanks only."""
    by_lines: dict[object, list[str]] = {}
    for number, kind in enumerate(kinds):
        lines = _lines(facts[kind[0]])
        key = frozenset(lines.items()) if lines else number
        by_lines.setdefault(key, []).extend(kind)
    return sorted(by_lines.values(), key=len, reverse=True)


def _lines(told: Facts) -> Counter[str]:
    """What the files say, as it was told when they turned out to differ."""
    return Counter(
        line for line in told.get("lines", "").splitlines() if not line.startswith("file ")
    )


def _difference(one: Facts, other: Facts) -> str:
    """The first lines that one has and the other has not, in words."""
    mine, theirs = _lines(one), _lines(other)
    if not mine or not theirs:
        names = [name for name, _ in set(digest_of(one)) ^ set(digest_of(other))]
        return f" (by digest of {', '.join(sorted(set(names))[:3])})" if names else ""
    here = _shown(mine - theirs)
    there = _shown(theirs - mine)
    return f": here {here}, there {there}"


def _shown(lines: Counter[str]) -> str:
    if not lines:
        return "nothing more"
    words = [f"{line[:100]!r}" for line in list(lines)[:2]]
    more = f" and {len(lines) - 2} lines more" if len(lines) > 2 else ""
    return ", ".join(words) + more
