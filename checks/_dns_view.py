"""How the nodes see each other's names: a sum for the whole table, and the tables of a few.

Each row of a node's table ("node07 10.0.0.7") gives two hashes, and the node sends their sums. The
sums of two healthy nodes may still differ by one row each: the node's own name may be a loopback
address to itself, or all of its addresses (nss-myhostname). So each node also sends the rows that
are about itself, and its sum is tried again with them replaced by each of its own addresses. The
sum that most nodes can reach in this way is that of the common table.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from clustercheck.check import Facts, MissingFact

_PRIMES = (67108859, 33554393)
_TIMES = (131, 137)
_MOST_ADDRESSES = 6  # of which all combinations are tried
_MOST_LOCAL = 10_000  # more than the services of a large Kubernetes, which a node may all have
MOST_FOLLOWED = 50

Sum = tuple[int, int]
Row = dict[int, str]
"""Addresses by family (4 and 6), sorted and joined by commas; a family without any is left out."""


class View(NamedTuple):
    """What a node told of all names.

    sums: by family, for families of which it saw an address.
    mine: rows that are about the node itself by address or name.
    missing: names without an address, the first fifty; missing_count: how many there are in all.
    asked, total: names that were resolved, and that should have been.
    waits: where they were not all resolved, the far ends of sockets that look-ups waited at.
    """

    sums: dict[int, Sum]
    mine: dict[str, Row]
    missing: tuple[str, ...]
    missing_count: int
    asked: int
    total: int
    waits: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """All names were asked for."""
        return 0 < self.total == self.asked

    @property
    def blind(self) -> bool:
        """No name has an address but those that are about the node itself."""
        return self.whole and 0 < self.missing_count >= self.total - len(self.mine)


def view_of(facts: Facts) -> View:
    """The fact "names". Raises MissingFact, also where its end or a number of it is missing."""
    sums: dict[int, Sum] = {}
    mine: dict[str, Row] = {}
    missing: list[str] = []
    waits: list[str] = []
    end: tuple[int, int, int] | None = None
    for line in facts["names"].splitlines():
        kind, *words = line.split() or [""]
        if kind in ("sum4", "sum6"):
            rows, first, second = _three(words)
            if rows:
                sums[int(kind[3])] = (first, second)
        elif kind == "mine":
            mine |= parse_table(" ".join(words))
        elif kind == "missing":
            missing += words
        elif kind == "waits":
            waits += words
        elif kind == "names":
            end = _three(words)
    if end is None:
        raise MissingFact("names")
    asked, total, missing_count = end
    return View(sums, mine, tuple(missing), missing_count, asked, total, tuple(waits))


def _three(words: list[str]) -> tuple[int, int, int]:
    if len(words) != 3 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise MissingFact("names")
    first, second, third = map(int, words)
    return first, second, third


def parse_table(text: str) -> dict[str, Row]:
    """Rows "NAME IPv4,… IPv6,…" by name, in lines or with ";" between; "-" is no address."""
    table = {}
    for line in text.replace(";", "\n").splitlines():
        words = line.split()
        if len(words) == 3:
            name, four, six = words
            table[name] = {f: a for f, a in ((4, four), (6, six)) if a != "-"}
    return table


def local_addresses(facts: Facts) -> tuple[str, ...]:
    """The addresses of the node's interfaces, loopback left out. Raises MissingFact."""
    four = [
        address
        for address in facts["addresses.four"].split()[:_MOST_LOCAL]
        if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", address) and not address.startswith("127.")
    ]
    six = [
        str(ipaddress.IPv6Address(int(digits, 16)))
        for digits in facts.get("addresses.six", "").split()[:_MOST_LOCAL]
        if re.fullmatch("[0-9a-f]{32}", digits)
    ]
    return tuple(four + [a for a in six if a != "::1"])


def row_hash(name: str, addresses: str) -> Sum:
    """As the probe's awk has it."""
    found = []
    for prime, times in zip(_PRIMES, _TIMES, strict=True):
        value = 7
        for char in f"{name} {addresses}":
            value = (value * times + ord(char)) % prime
        found.append(pow(value, 3, prime))
    return found[0], found[1]


def _plus(one: Sum, other: Sum, sign: int = 1) -> Sum:
    a, b = ((x + sign * y) % p for x, y, p in zip(one, other, _PRIMES, strict=True))
    return a, b


def _reachable(view: View, name: str, local: tuple[str, ...], family: int) -> set[Sum]:
    """The sums that the view has, or would have if its own name had others of its addresses."""
    seen = view.sums[family]
    sums = {seen}
    own = view.mine.get(name.lower(), {} if name.lower() in view.missing else None)
    if own is None:
        return sums
    if family in own:
        seen = _plus(seen, row_hash(name.lower(), own[family]), -1)
    addresses = sorted(a for a in local if (":" in a) == (family == 6))
    counts = range(len(addresses) + 1) if len(addresses) <= _MOST_ADDRESSES else (0, 1)
    for count in counts:
        for some in combinations(addresses, count):
            row = ",".join(some)
            sums.add(_plus(seen, row_hash(name.lower(), row)) if row else seen)
    return sums


class Comparison(NamedTuple):
    """reference: a node that sees what most see; "" where no node saw all names.
    witness: another one of those, which tells what the reference's own name is to others; "" where
        there is none.
    outliers: nodes that see something else.
    majority: more than half of the nodes see the same.
    views: of the nodes that saw all names.
    """

    reference: str
    witness: str
    outliers: tuple[str, ...]
    majority: bool
    views: dict[str, View]


def compare_views(facts: Mapping[str, Facts]) -> Comparison:
    """Who sees what most nodes see, from the sums alone.

    IPv6 is compared between those nodes only that see any: glibc leaves it out on a node that has
    no IPv6 address itself.
    """
    views: dict[str, View] = {}
    for node, told in facts.items():
        if "names" in told:
            view = view_of(told)
            if view.whole:
                views[node] = view
    outliers: set[str] = set()
    majority = True
    for family in (4, 6):
        reachable = {
            node: _reachable(view, node, local_addresses(facts[node]), family)
            for node, view in views.items()
            if family in view.sums
        }
        votes = Counter(total for sums in reachable.values() for total in sums)
        if not votes:
            continue
        common, count = votes.most_common(1)[0]
        majority = majority and 2 * count > len(reachable)
        outliers |= {node for node, sums in reachable.items() if common not in sums}
    agreeing = [node for node in views if node not in outliers]
    reference = agreeing[0] if agreeing else next(iter(views), "")
    rest = tuple(node for node in views if node in outliers and node != reference)
    witness = agreeing[1] if len(agreeing) > 1 else ""
    return Comparison(reference, witness, rest, majority and bool(agreeing), views)


def whom_to_ask(facts: Mapping[str, Facts]) -> list[str]:
    """The nodes whose table is wanted: two that agree with most, and those that do not."""
    found = compare_views(facts)
    return [
        *filter(None, (found.reference, found.witness)),
        *found.outliers[:MOST_FOLLOWED],
    ]
