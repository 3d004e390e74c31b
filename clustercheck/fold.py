"""Names of nodes to node sets, for output: `gpu[01-16],login1`.

ClusterShell folds. What is left to it is what it does well: names whose numbers differ. Names with
several numbers are folded along all of them only while they are few, as that takes long
(seconds for 10,000 names such as n17.rack3.example.com, and every group of a report is folded).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet  # type: ignore[import-untyped]
from ClusterShell.RangeSet import RangeSet  # type: ignore[import-untyped]

# Up to so many names are folded along all their numbers at once.
MANY = 200

_FOLDABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
_NUMBER = re.compile(r"[0-9]+")


def fold(names: Sequence[str]) -> str:
    """Different names to one node set; those that do not fold are listed after the others.

    Names with a colon or any sign that node sets do not know stand as they are.
    """
    return _fold(tuple(names))


@lru_cache(maxsize=256)  # the checks of a report mostly share their sets of nodes
def _fold(names: tuple[str, ...]) -> str:
    foldable = [n for n in names if _NUMBER.search(n) and _FOLDABLE.fullmatch(n)]
    alone = set(names).difference(foldable)
    if len(foldable) > MANY:
        parts = list(_along_one_number(foldable))
    else:
        parts = [str(NodeSet.fromlist(foldable, resolver=RESOLVER_NOGROUP))] if foldable else []
    return ",".join(parts + [name for name in names if name in alone])


def _along_one_number(names: Iterable[str]) -> Iterator[str]:
    """Node sets with one bracket each, at the number that leaves the fewest of them."""
    shapes: dict[str, list[str]] = {}
    for name in names:
        shapes.setdefault(_NUMBER.sub("0", name), []).append(name)
    for shape, alike in shapes.items():
        ways = [_at(place, alike) for place in range(len(_NUMBER.findall(shape)))]
        for (before, after), numbers in min(ways, key=len).items():
            ranges = str(RangeSet.fromlist(numbers))
            yield f"{before}[{ranges}]{after}" if len(numbers) > 1 else before + ranges + after


def _at(place: int, names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """The numbers at a place, by what stands before and after them."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        number = list(_NUMBER.finditer(name))[place]
        around = (name[: number.start()], name[number.end() :])
        found.setdefault(around, []).append(number[0])
    return found


def shorten(folded: str, count: int, longest: int) -> str:
    """A node set cut to about `longest` characters, with the number of its nodes where it is cut.

    "gpu[01-16],login1" becomes "gpu[01-16],… (17 nodes)".
    """
    if len(folded) <= longest:
        return folded
    cut = folded[: folded.rfind(",", 0, longest) + 1] or folded[:longest]
    end = "…]" if cut.count("[") > cut.count("]") else "…"
    return f"{cut}{end} ({count} nodes)"
