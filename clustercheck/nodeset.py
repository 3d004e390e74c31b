"""Node sets in text: `gpu[01-16]!gpu07`, to names.

ClusterShell expands the ranges. What is asked of it is looked at first: its range sets are made
whole in memory, so that one slip of the finger (`gpu[1-99999999]`) would take all of it.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from ClusterShell.NodeSet import (  # type: ignore[import-untyped]
    RESOLVER_NOGROUP,
    NodeSet,
    NodeSetException,
)

LIMIT = 100_000  # nodes; ten times the largest cluster that one machine is meant to reach
LONGEST_NAME = 255  # characters; a name of DNS has 253 at most

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_OPERAND = re.compile(r"(?:\[[^\[\]]*\]|[^,!&^\[])+")
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?:/([0-9]{1,15}))?)?")
_ANSIBLE_RANGE = re.compile(r"([0-9]{0,15}|[a-zA-Z]):([0-9]{1,15}|[a-zA-Z])(?::([0-9]{1,15}))?")
_NAME = re.compile(r"(?:\w|::)[\w.:%+-]*")

ValueT = TypeVar("ValueT")


class NodeSetError(ValueError):
    """A node set or a name that cannot be read: the message says why and what to write."""


def shorten(text: str, longest: int = 60) -> str:
    """`text` in quotes, escaped and cut, for a message."""
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")


def check_name(name: str) -> None:
    """Raise NodeSetError unless `name` is safe as an argument of ssh and as a file's name."""
    if len(name) > LONGEST_NAME:
        raise NodeSetError(f"{shorten(name)} is longer than {LONGEST_NAME} characters")
    if name.startswith("-"):
        raise NodeSetError(f"{shorten(name)} would be an option of ssh, not a node's name")
    if not _NAME.fullmatch(name):
        raise NodeSetError(
            f"{shorten(name)} is not a node's name; write letters, digits and . - _ only"
        )


def operands(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a node set with the operator before each; "," before the first."""
    operator, place = ",", 0
    while True:
        match = _OPERAND.match(text, place)
        if not match or not match[0].strip():
            if text[place : place + 1] == "[":
                raise NodeSetError(f"a bracket is not closed in {shorten(text)}; write gpu[01-16]")
            where = "before" if place < len(text) else "at the end of"
            what = repr(text[place]) if place < len(text) else shorten(text)
            raise NodeSetError(f"a node is missing {where} {what}; write gpu[01-16]!gpu07")
        yield operator, match[0].strip()
        place = match.end()
        if place == len(text):
            return
        if text[place] == "[":
            raise NodeSetError(f"a bracket is not closed in {shorten(text)}; write gpu[01-16]")
        operator, place = text[place], place + 1


def evaluate(text: str, find: Callable[[str], Mapping[str, ValueT]]) -> dict[str, ValueT]:
    """The nodes of a node set, from left to right as ClusterShell does, in the order named.

    find: from one operand (`gpu[01-16]`, `@gpu`) to its nodes by name.
    Operators: `,` and, `!` without, `&` only those in both, `^` those in one of both.
    """
    chosen: dict[str, ValueT] = {}
    for operator, operand in operands(text):
        found = find(operand)
        if operator == ",":
            for name, value in found.items():
                if chosen.setdefault(name, value) != value:
                    raise NodeSetError(f"{name} is named twice, to be reached in different ways")
        elif operator == "!":
            chosen = {name: value for name, value in chosen.items() if name not in found}
        elif operator == "&":
            chosen = {name: value for name, value in chosen.items() if name in found}
        else:
            alone = {name: value for name, value in found.items() if name not in chosen}
            chosen = {name: v for name, v in chosen.items() if name not in found} | alone
        if len(chosen) > LIMIT:
            raise NodeSetError(f"{shorten(text)} has more than {LIMIT:,} nodes")
    return chosen


def expand(text: str) -> list[str]:
    """One operand to names: `gpu[01-16]`, `r[1-2]n[1,3-4]`, and Ansible's `gpu[01:16]`, `db-[a:f]`.

    Raises NodeSetError, before anything is expanded, where there would be more than LIMIT names.
    """
    rest = _BRACKETS.sub("", text)
    if len(rest) > LONGEST_NAME:
        raise NodeSetError(f"{shorten(text)} is longer than {LONGEST_NAME} characters")
    if "[" in rest or "]" in rest:
        raise NodeSetError(f"a bracket has no partner in {shorten(text)}; write gpu[01-16]")
    count = 1
    for match in _BRACKETS.finditer(text):
        count *= _size(match[1], text)
        if count > LIMIT:
            raise NodeSetError(f"{shorten(text)} has more than {LIMIT:,} nodes")
    return _expand(text)


def _expand(text: str) -> list[str]:
    for match in _BRACKETS.finditer(text):
        if ":" in match[1]:
            before, after = text[: match.start()], text[match.end() :]
            return [
                name
                for value in _ansible_values(match[1], text)
                for name in _expand(before + value + after)
            ]
    if "[" not in text:
        return [text]
    if "][" in text:
        raise NodeSetError(f"{shorten(text)} has brackets side by side; write r[1-2]n[01-16]")
    for match in _BRACKETS.finditer(text):
        if text[: match.start()][-1:].isdigit() and _widths_differ(match[1]):
            # ClusterShell reads n1[1-10] as n11 to n110, a hundred nodes; Slurm as ten.
            raise NodeSetError(
                f"{shorten(text)} can be read in two ways; put all digits inside the brackets"
            )
    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError) as error:
        raise NodeSetError(f"{shorten(text)} is not a node set: {shorten(str(error))}") from None


def _size(body: str, text: str) -> int:
    """How many values a bracket has."""
    if ":" in body:
        return len(_ansible_range(body, text))
    size = 0
    for part in body.split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise NodeSetError(
                f"{shorten(f'[{body}]')} in {shorten(text)} is not a range; write [01-16]"
            )
        first, last, step = match[1], match[2] or match[1], match[3] or "1"
        if int(last) < int(first) or int(step) == 0:
            raise NodeSetError(f"[{part.strip()}] in {shorten(text)} has no nodes; write [01-16]")
        if len(first) != len(last) and "0" in (first[0] if len(first) > 1 else "", last[0]):
            raise NodeSetError(
                f"[{part.strip()}] in {shorten(text)} mixes widths; "
                f"write [{first.zfill(len(last))}-{last.zfill(len(first))}]"
            )
        size += (int(last) - int(first)) // int(step) + 1
    return size


def _widths_differ(body: str) -> bool:
    return any(
        len({len(end) for end in part.split("/")[0].split("-")}) > 1 for part in body.split(",")
    )


def _ansible_range(body: str, text: str) -> range:
    """The numbers of `1:10:2`, or the places in the alphabet of `a:f`."""
    match = _ANSIBLE_RANGE.fullmatch(body)
    if not match:
        raise NodeSetError(
            f"{shorten(f'[{body}]')} in {shorten(text)} is not a range; write [01:16]"
        )
    first, last, step = match[1] or "0", match[2], int(match[3] or 1)
    if first.isalpha() != last.isalpha():
        raise NodeSetError(f"[{body}] in {shorten(text)} mixes letters and numbers")
    if first[0] == "0" and len(first) > 1 and len(first) != len(last):
        raise NodeSetError(
            f"[{body}] in {shorten(text)} mixes widths; "
            f"write [{first.zfill(len(last))}:{last.zfill(len(first))}]"
        )
    letters = string.ascii_letters
    ends = (letters.index(first), letters.index(last)) if first.isalpha() else (first, last)
    low, high = int(ends[0]), int(ends[1])
    if step == 0 or high < low:
        raise NodeSetError(f"[{body}] in {shorten(text)} has no nodes; write [01:16]")
    return range(low, high + 1, step)


def _ansible_values(body: str, text: str) -> Iterator[str]:
    first = body.split(":")[0]
    for number in _ansible_range(body, text):
        yield string.ascii_letters[number] if first.isalpha() else str(number).zfill(len(first))
