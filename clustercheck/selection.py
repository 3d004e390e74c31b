"""Which nodes are meant by `-w` and `-x`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TextIO

from clustercheck.errors import UsageError, nearest
from clustercheck.node import Node
from clustercheck.nodeset import NodeSetError, check_name, evaluate, expand, shorten
from clustercheck.settings import Inventory

MOST_NAMED = 12  # groups, where one is asked for that is not there

# An IPv6 address is in brackets there, which are not those of a range.
_URL_OF_ADDRESS = re.compile(r"ssh://(?:[^@/]+@)?\[[0-9A-Fa-f:.]+\](?::[0-9]+)?/?")
_URL = re.compile(r"ssh://(?:([^/]+)@)?(\[[^\]]+\]|[^:/@]+)(?::([0-9]{1,5}))?/?")


def select(
    inventory: Inventory, nodes: str | None, exclude: str | None, stdin: TextIO
) -> list[Node]:
    """The nodes of `-w` without those of `-x`: in the order of the inventory, others as named.

    nodes: a node set over names, `@GROUP`, `@all` or `@*`, and wildcards (`gpu*`); blanks do for
        commas; "-" reads it from `stdin`. None means all of the inventory.
    exclude: the same; None or "" leaves out nothing.
    A node that is not in the inventory is named as with ssh: `node`, `user@node`,
    `ssh://user@node:port`, an address.

    Raises UsageError for what cannot be read, for an unknown group, and where no node is left.
    """
    if nodes == "-" and exclude == "-":
        raise UsageError("-x -: standard input is read by -w already; give one of them as text")
    if nodes is None:
        chosen = dict(inventory.nodes)
    else:
        chosen = _find(inventory, "-w", text_of(nodes, stdin))
    if exclude:
        left_out = _find(inventory, "-x", text_of(exclude, stdin))
        chosen = {name: node for name, node in chosen.items() if name not in left_out}
    if not chosen:
        asked = "" if nodes is None else f" -w {shorten(nodes)}"
        asked += f" -x {shorten(exclude)}" if exclude else ""
        raise UsageError(
            f"{asked.strip() or 'an inventory without nodes'} selects no node; "
            "name nodes with -w, as -w 'gpu[01-16]'"
        )
    places = {name: place for place, name in enumerate(inventory.nodes)}
    return sorted(chosen.values(), key=lambda node: places.get(node.name, len(places)))


def text_of(asked: str, stdin: TextIO) -> str:
    """The node set itself: lines of standard input, without comments, for "-"."""
    if asked.strip() != "-":
        return asked
    try:
        lines = stdin.read().split("\n")
    except UnicodeDecodeError:
        raise UsageError("-: standard input is not UTF-8; write one name a line") from None
    return "\n".join(re.sub(r"(?:^|\s)#.*", "", line) for line in lines)


def _find(inventory: Inventory, option: str, text: str) -> dict[str, Node]:
    """The nodes of a node set by name, as named."""
    text = re.sub(r"\s*([,!&^])\s*", r"\1", text.strip())
    if not text:
        return {}
    try:
        return evaluate(re.sub(r"\s+", ",", text), lambda operand: _operand(inventory, operand))
    except NodeSetError as error:
        raise UsageError(f"{option}: {error}") from None


def _operand(inventory: Inventory, operand: str) -> dict[str, Node]:
    if operand in ("@*", "@all"):
        return dict(inventory.nodes)
    if operand.startswith("@"):
        return {
            name: inventory.nodes[name]
            for group in expand(operand[1:])
            for name in _group(inventory.groups, group)
        }
    found = {}
    for name in [operand] if _URL_OF_ADDRESS.fullmatch(operand) else expand(operand):
        if "*" in name or "?" in name:
            found.update(_matching(inventory, name))
        else:
            node = inventory.nodes.get(name) or _as_with_ssh(inventory, name)
            found[node.name] = node
    return found


def _group(groups: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    if name not in groups:
        known = [group for group in groups if group != "all"]
        there_are = f"; the groups are {', '.join(known[:MOST_NAMED])}" if known else ""
        there_are += ", …" if len(known) > MOST_NAMED else ""
        hint = nearest(name, groups) or there_are or "; an inventory (-i) has groups as [GROUP]"
        raise NodeSetError(f"no group is called {name!r}{hint}")
    return groups[name]


def _matching(inventory: Inventory, pattern: str) -> dict[str, Node]:
    user, _, names = pattern.rpartition("@")
    found = {
        name: replace(node, user=user) if user else node
        for name, node in inventory.nodes.items()
        if fnmatchcase(name, names)
    }
    if not found:
        raise NodeSetError(f"no node of the inventory is like {shorten(pattern)}")
    return found


def _as_with_ssh(inventory: Inventory, text: str) -> Node:
    """`node`, `user@node`, `ssh://[user@]node[:port]`: with what the inventory says of it."""
    user, port = "", 0
    if text.startswith("ssh://"):
        match = _URL.fullmatch(text)
        if not match or not 0 < int(match[3] or 22) < 65536:
            raise NodeSetError(f"{shorten(text)} is not a node; write ssh://user@node:port")
        user, host, port = match[1] or "", match[2].strip("[]"), int(match[3] or 0)
    else:
        user, at, host = text.rpartition("@")
        if at and not user:
            raise NodeSetError(f"{shorten(text)} is not a node; write user@node")
    check_name(host)
    if host.count(":") == 1:
        raise NodeSetError(f"{shorten(text)} is not a node; write ssh://{host}")
    if user.startswith("-") or not user.isprintable():
        raise NodeSetError(f"{shorten(user)} cannot be a user; write user@node")
    known = inventory.nodes.get(host)
    if known:
        return replace(known, user=user or known.user, port=port or known.port)
    if port in (0, 22):
        return Node(name=host, port=port, user=user)
    # Two ports of one address are two nodes: each needs a name of its own in the report.
    shown = f"[{host}]" if ":" in host else host
    return Node(name=f"{shown}:{port}", host=host, port=port, user=user)
