"""Credentials of one node on another: who reads whose, and what that says.

Each node reads those of the next two, so that each is a maker and a reader, and one that differs
shows by the others that do not. A credential is read once on each node: munged refuses it a second
time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from clustercheck.check import Facts, Finding, fail, ok, skip, unknown

from ._munge_read import (
    EXPIRED,
    INVALID,
    REPLAYED,
    REWOUND,
    SUCCESS,
    UNAUTHORIZED,
    Unmunged,
    read_unmunge,
)
from ._munge_remedies import CLOCKS, RESTART, SAME_KEY

OFFSETS = (1, 2)

FOLLOW_PROBE = r"""
case $socket in
'/run/munge/munge.socket.2' | '/var/run/munge/munge.socket.2') set -- ;;
*) set -- -S "$ROOT$socket" ;;
esac
printf '%s\n' "$FOLLOW" | while read -r peer credential; do
    said=$(printf '%s\n' "$credential" | within 5 unmunge "$@" 2>&1)
    fact "theirs@$peer" "$said"
done
fact now "$(date +%s)"
"""


class Try(NamedTuple):
    """A credential of `maker` on `reader`.

    elapsed: seconds by the maker's own clock from its making until all were read.
    """

    maker: str
    reader: str
    said: Unmunged
    elapsed: int

    @property
    def ends(self) -> tuple[str, str]:
        return self.maker, self.reader

    @property
    def drift(self) -> int:
        """Seconds by which the reader's clock is ahead of the maker's, or nearly so."""
        return (self.said.age or 0) - self.elapsed


def _rings(facts: Mapping[str, Facts], nodes: set[str]) -> Iterator[list[str]]:
    """The nodes that offer a credential, by their cluster; those without one join the largest."""
    clusters: dict[str, list[str]] = {}
    for node, told in facts.items():
        if node in nodes and told.get("offered") == "1":
            clusters.setdefault(told.get("cluster", ""), []).append(node)
    homeless = clusters.pop("", [])
    largest = max(clusters, key=lambda name: len(clusters[name]), default="")
    clusters.setdefault(largest, []).extend(homeless)
    yield from clusters.values()


def _readers(facts: Mapping[str, Facts], nodes: set[str]) -> dict[str, list[str]]:
    """For each node, those whose credentials it is to read."""
    return {
        node: list(
            dict.fromkeys(
                ring[(place + offset) % len(ring)] for offset in OFFSETS if offset % len(ring)
            )
        )
        for ring in _rings(facts, nodes)
        for place, node in enumerate(ring)
    }


def hand_over(facts: Mapping[str, Facts], nodes: set[str]) -> dict[str, str]:
    """For each node, "MAKER CREDENTIAL" a line. What is no credential is handed to nobody."""
    texts = {}
    for node, makers in _readers(facts, nodes).items():
        lines = []
        for maker in makers:
            credential = facts[maker].get("credential", "")
            if re.fullmatch(r"MUNGE:[A-Za-z0-9+/=]{1,2000}:", credential) and " " not in maker:
                lines.append(f"{maker} {credential}")
        if lines:
            texts[node] = "\n".join(lines)
    return texts


def judge_across(
    facts: Mapping[str, Facts], nodes: set[str], known: set[str]
) -> Iterator[tuple[str, Finding]]:
    """What the tries say of each node.

    known: nodes of whose key it is said already that it differs.
    """
    wanted = _readers(facts, nodes)
    tries = [
        Try(maker, reader, read_unmunge(text), _elapsed(facts[maker]))
        for reader in wanted
        for maker, text in facts[reader].at("theirs").items()
        if maker in wanted
    ]
    tries = [one for one in tries if not known.intersection(one.ends)]
    found = dict(_other_keys(tries, facts))
    found |= {node: f for node, f in _other_times(tries) if node not in found}
    blamed = set(found)
    for node, makers in wanted.items():
        if node in known:
            continue
        mine = [one for one in tries if node in one.ends]
        if node in found:
            yield node, found[node]
        elif not makers:
            yield node, skip("across", "no other node with a credential to try")
        else:
            yield node, _rest(node, [o for o in mine if not blamed.intersection(o.ends)], mine)


def _elapsed(told: Facts) -> int:
    made, now = read_unmunge(told.get("read", "")).made, told.get("now", "")
    if made is None or not re.fullmatch("[0-9]{1,12}", now):
        return 0
    return max(0, int(now) - made)


def _is_read(said: Unmunged) -> bool:
    return said.number in (SUCCESS, REPLAYED, UNAUTHORIZED)


def _is_late(one: Try) -> bool:
    """Whether it was the run that took so long, more than the clocks' difference."""
    return one.said.number == EXPIRED and 2 * one.drift < one.said.ttl


def _outside(good: Iterable[tuple[str, str]], bad: Iterable[tuple[str, str]]) -> Counter[str]:
    """Who is at fault for the bad pairs, with their number: who is not of the largest group.

    A group is what good pairs join; where two are the largest, all are named.
    """
    above: dict[str, str] = {}

    def top(node: str) -> str:
        while (next_one := above.setdefault(node, node)) != node:
            above[node] = node = above[next_one]
        return node

    bad = list(bad)
    for one, other in (*good, *((node, node) for ends in bad for node in ends)):
        above[top(one)] = top(other)
    group = {node: top(node) for node in list(above)}
    sizes = Counter(group.values()).most_common(2)
    tie = len(sizes) > 1 and sizes[0][1] == sizes[1][1]
    largest = "" if tie or not sizes else sizes[0][0]
    blamed: Counter[str] = Counter()
    for ends in bad:
        blamed.update([node for node in ends if group[node] != largest] or ends[1:])
    return blamed


def _other_keys(tries: list[Try], facts: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    good = [one.ends for one in tries if one.said.number is not None and one.said.number != INVALID]
    bad = [one.ends for one in tries if one.said.number == INVALID]
    for node, count in _outside(good, bad).items():
        others = {end for ends in bad if node in ends for end in ends} - {node}
        digests = {facts[one].get("digest", "") for one in (node, *others)}
        message = (
            f"{count} credentials between this node and {_nodes(len(others))} are refused as"
            " invalid: munged here has another key"
        )
        if len(digests) == 1 and "" not in digests:
            message += " in memory, though the file holds the same"
            yield node, fail("across", message, RESTART)
        else:
            yield node, fail("across", message, SAME_KEY)


def _other_times(tries: list[Try]) -> Iterator[tuple[str, Finding]]:
    good = [one.ends for one in tries if one.said.number == SUCCESS]
    bad = [o for o in tries if o.said.number in (EXPIRED, REWOUND) and not _is_late(o)]
    for node in _outside(good, [one.ends for one in bad]):
        mine = [one for one in bad if node in one.ends]
        others = {end for one in mine for end in one.ends} - {node}
        words = " and ".join(dict.fromkeys(one.said.word.split()[0].lower() for one in mine))
        ahead = [one.drift if node == one.reader else -one.drift for one in mine]
        middle = sorted(ahead)[len(ahead) // 2]
        way = "ahead of" if middle > 0 else "behind"
        message = (
            f"{len(mine)} credentials between this node and {_nodes(len(others))} are refused as"
            f" {words}: the clock here is about {abs(middle)} s {way} theirs"
        )
        yield node, fail("clock", message, CLOCKS)


def _rest(node: str, mine: list[Try], all_mine: list[Try]) -> Finding:
    """Of a node that is not to blame for any key or clock."""
    bad = [one for one in mine if not _is_read(one.said)]
    late = [one for one in bad if _is_late(one)]
    here = [one for one in bad if one.reader == node and one not in late]
    if here:
        return unknown("across", f"credentials of others cannot be read here: {here[0].said.word}")
    if late:
        took, life = late[0].elapsed, late[0].said.ttl
        message = f"the run took {took} s until credentials were tried, and they live for {life} s"
        return unknown("across", message)
    good = [one for one in mine if _is_read(one.said)]
    theirs = [one for one in good if one.reader == node]
    if not theirs:
        if all_mine and len(mine) < len(all_mine):
            return skip("across", "tried only with nodes that are at fault themselves")
        return unknown("across", "credentials of other nodes could not be tried here: no answer")
    ours = len(good) - len(theirs)
    return ok(
        "across",
        f"credentials of {_nodes(len(theirs))} are read here, and those of this node on {ours}",
    )


def _nodes(count: int) -> str:
    return "1 other node" if count == 1 else f"{count} other nodes"
