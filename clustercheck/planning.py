"""From what the user asked for to a plan: which nodes, which checks, which way."""

import dataclasses
import os
import resource
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from clustercheck import inventory, plugin, registry
from clustercheck.check import AnyCheck
from clustercheck.errors import UsageError, nearest
from clustercheck.fanout import Bounds
from clustercheck.fold import fold
from clustercheck.node import Node
from clustercheck.nodeset import shorten
from clustercheck.run import Plan
from clustercheck.selection import select
from clustercheck.settings import Inventory
from clustercheck.transport import Transport
from clustercheck.transport.here import Here
from clustercheck.wanted import Wanted as Wanted

HERE = Node("localhost", local=True)

# Descriptors that a node may need at a time: the socket, or the pipes of a ProxyCommand.
FILES_PER_NODE = 8
FILES_OF_OUR_OWN = 64
DEFAULT_PARALLEL = 64
MOST_PARALLEL = 1024

# Up to so many nodes, processes beside our own cost more than they save. More than so many
# processes would wait for ours, which judges what they ask.
NODES_OF_ONE_PROCESS = 2000
MOST_PROCESSES = 4

# What a node may take beyond its slowest probe: the connection, sudo, gathering.
SECONDS_AROUND_PROBES = 15


@dataclass(frozen=True)
class Chosen:
    """The nodes and checks that a command is about, and the inventory that says how."""

    inventory: Inventory
    nodes: Sequence[Node]
    checks: Mapping[str, AnyCheck]


def choose(wanted: Wanted, stdin: TextIO | None = None) -> Chosen:
    """Read the inventory and find the nodes and checks.

    Without an inventory and without nodes, it is this machine.
    Raises ConfigError and UsageError.
    """
    all_of_it = choose_all(wanted)
    found = all_of_it.inventory
    if wanted.inventory is None and wanted.nodes is None:
        if wanted.exclude:
            raise UsageError("-x needs nodes to exclude from: give -i FILE or -w NODES")
        nodes: Sequence[Node] = [HERE]
    else:
        nodes = select(found, wanted.nodes, wanted.exclude, stdin or sys.stdin)
    return dataclasses.replace(all_of_it, nodes=nodes)


def strangers(chosen: Chosen, inventory: Path | None) -> str:
    """A note on nodes that the inventory in use does not have, which may be a slip; or ""."""
    names = [node.name for node in chosen.nodes if node.name not in chosen.inventory.nodes]
    if inventory is None or not names:
        return ""
    return f"not in {inventory}, and reached as with ssh: {fold(names)}"


def choose_all(wanted: Wanted) -> Chosen:
    """The checks and the inventory alone, for commands that touch no node."""
    known = registry.load()
    if wanted.inventory is None:
        found = inventory.empty(known, wanted.options)
    else:
        found = inventory.load(wanted.inventory, known, wanted.options)
    found = found.with_checks(plugin.checks_of(found)).with_profile(wanted.profile)
    checks, skip = wanted.checks, wanted.skip
    if found.profile:
        checks = checks or ",".join(found.profile.checks)
        skip = ",".join((skip, *found.profile.skip))
    return Chosen(found, (), choose_checks(found.checks, checks, skip))


def choose_checks(known: Mapping[str, AnyCheck], names: str, skip: str) -> dict[str, AnyCheck]:
    """The checks named by -c less those of --skip; all without -c. Raises UsageError."""
    wanted = _names(known, "-c", names) or list(known)
    left_out = _names(known, "--skip", skip)
    chosen = {name: known[name] for name in known if name in wanted and name not in left_out}
    if not chosen:
        raise UsageError("no check is left: --skip takes away all that were chosen")
    return chosen


def _names(known: Mapping[str, AnyCheck], flag: str, text: str) -> list[str]:
    names = [name.strip() for name in text.replace(",", " ").split()]
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"; the checks are {', '.join(known)}"
            raise UsageError(f"{flag}: no check is called {shorten(name)}{hint}")
    return names


def with_defaults(nodes: Sequence[Node], defaults: Mapping[str, Any]) -> list[Node]:
    """The nodes with `defaults` where they say nothing themselves (user, port, key, …)."""
    given = {name: value for name, value in defaults.items() if value}
    return [
        dataclasses.replace(
            node, **{name: value for name, value in given.items() if not getattr(node, name)}
        )
        for node in nodes
    ]


def parallel(wanted: int, nodes: int) -> tuple[int, str]:
    """How many nodes at a time, and a note where it is fewer than was asked for.

    The limit of open files is raised as far as this process may, before the first connection.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(wanted or DEFAULT_PARALLEL, nodes, MOST_PARALLEL)
    needed = count * FILES_PER_NODE + FILES_OF_OUR_OWN
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY:
        possible = max(1, (soft - FILES_OF_OUR_OWN) // FILES_PER_NODE)
        if possible < count:
            return possible, (
                f"{possible} nodes at a time instead of {count}: "
                f"only {soft} files may be open here (ulimit -n)"
            )
    return max(1, count), ""


def processes(wanted: int, nodes: int) -> int:
    """How many processes share the nodes; 1 is our own alone."""
    if wanted or nodes <= NODES_OF_ONE_PROCESS:
        return min(max(wanted, 1), nodes)
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)))


def node_seconds(checks: Mapping[str, AnyCheck], wanted: float, connect_timeout: float) -> float:
    """The time limit of a node: as asked for, or the slowest probe's and what goes round it."""
    slowest = max((check.limit for check in checks.values()), default=0.0)
    return wanted or slowest + connect_timeout + SECONDS_AROUND_PROBES


def plan(
    chosen: Chosen,
    nodes: Sequence[Node],
    ssh: Transport | None,
    bounds: Bounds,
    max_seconds: float | None,
    last: Collection[str] = (),
) -> Plan:
    """The plan of a run; nodes that are this machine go by its own sh.

    ssh: may be None where every node is this machine.
    last: names of nodes that are asked after all others.
    """
    here = Here()

    def transport_for(node: Node) -> Transport:
        if node.local:
            return here
        assert ssh is not None
        return ssh

    return Plan(
        nodes=nodes,
        checks=chosen.checks,
        options_of=chosen.inventory.options,
        transport_for=transport_for,
        bounds=bounds,
        max_seconds=max_seconds,
        last=last,
    )
