"""A set of nodes as the page shows it: few as links, many as one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustercheck.fold import fold, shorten

# Up to so many nodes, each is a link to what is said of it.
LINKS = 8

# Characters of a set before only its beginning is shown, and the rest on demand.
LONGEST = 300
BEGINNING = 100


@dataclass(frozen=True)
class Nodes:
    """links: each node and its place in the report; none where they are many, or not there.

    whole: as `-w` takes it. short: its beginning, where it is long.
    """

    links: tuple[tuple[str, int], ...]
    whole: str
    short: str


def nodes(names: Sequence[str], places: Mapping[str, int]) -> Nodes:
    """The set of these nodes."""
    there = len(names) <= LINKS and all(name in places for name in names)
    whole = fold(names)
    return Nodes(
        tuple((name, places[name]) for name in names) if there else (),
        whole,
        shorten(whole, len(names), BEGINNING) if len(whole) > LONGEST else "",
    )
