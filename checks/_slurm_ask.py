"""The controller asked by way of a node, where this machine cannot: by whom, and what it said."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from clustercheck.check import Facts, Finding, unknown

from ._slurm_here import names_of, record_for
from ._slurm_read import Controller, Record, read_nodes, read_ping
from ._slurm_remedies import ASKER, SAME_KEY, SAME_RELEASE
from ._slurm_state import Tolerance, judge_controllers, judge_record

# Of each cluster so many nodes ask: one that has a fault of its own is not believed alone.
ASKERS = 2


class Wishes(Protocol):
    """The options that matter here."""

    @property
    def ask(self) -> str: ...
    @property
    def allow(self) -> tuple[str, ...]: ...
    @property
    def program_users(self) -> tuple[str, ...]: ...


class Heard(NamedTuple):
    """What one asker heard of its controller.

    error: why there are no nodes, "" where there are.
    version: the controller's; "" where not told.
    """

    nodes: dict[str, Record]
    controllers: list[Controller]
    error: str
    version: str = ""


def tolerance_of(wishes: Wishes) -> Tolerance:
    return Tolerance(wishes.allow, wishes.program_users)


def has_slurm(told: Facts) -> bool:
    """Is the node one that Slurm runs on, as far as it shows?"""
    return told.get("installed") == "yes" or told.get("conf", "none") not in ("none", "")


def askers(facts: Mapping[str, Facts]) -> list[str]:
    """The nodes that shall ask: two of each cluster of which a node's state is not told yet.

    Those whose slurmd runs are preferred, and of them the first and one from the middle.
    """
    lacking = {_cluster(t) for t in facts.values() if _is_lacking(t)}
    chosen: list[str] = []
    for cluster in sorted(lacking):
        able = [node for node, t in facts.items() if _cluster(t) == cluster and t.get("tools", "")]
        best = [node for node in able if facts[node].get("slurmd", "stopped") != "stopped"]
        best = best or [node for node in able if has_slurm(facts[node])] or able
        chosen += dict.fromkeys([*best[:1], *best[len(best) // 2 : len(best) // 2 + ASKERS - 1]])
    return chosen


def _is_lacking(told: Facts) -> bool:
    """Has this machine not heard of the node? A login node is none that it would hear of."""
    asked_here = "here.ping" in told and "here.error" not in told
    return "here.node" not in told and (not asked_here or told.get("installed") == "yes")


def _cluster(told: Facts) -> str:
    return told.get("cluster", "")


def heard_by(told: Facts) -> Heard | None:
    """None where the node was not asked, or nothing came of it."""
    if "asked.status" not in told:
        return None
    records = read_nodes(told.get("asked.nodes", ""))
    error = ""
    if not records:
        status = told["asked.status"]
        hung = status in ("124", "137")  # ended, or killed as it did not end
        error = "no answer within 10 s" if hung else told.get("asked.error", "").strip()
        error = error.splitlines()[-1][:300] if error else "scontrol told no nodes"
    version = told.get("asked.version", "")
    return Heard(names_of(records), read_ping(told.get("asked.ping", "")), error, version)


def best_of(heard: Sequence[Heard]) -> Heard | None:
    """The one that heard most: nodes, then of controllers, then anything at all."""
    return max(heard, key=lambda h: (len(h.nodes), len(h.controllers)), default=None)


def compare_states(
    facts: Mapping[str, Facts], wishes: Mapping[str, Wishes]
) -> Iterator[tuple[str, Finding]]:
    """The findings of all nodes that this machine itself has not heard of."""
    by_cluster: dict[str, list[Heard]] = {}
    for told in facts.values():
        heard = heard_by(told)
        if heard is not None:
            by_cluster.setdefault(_cluster(told), []).append(heard)
    best = {cluster: best_of(heard) for cluster, heard in by_cluster.items()}
    for node, told in facts.items():
        if "here.node" in told or wishes[node].ask == "never":
            continue
        heard = best.get(_cluster(told))
        if heard is None or not heard.nodes:
            heard = _heard_here(told) or heard
        for finding in _of_node(node, told, heard, wishes[node]):
            yield node, finding


def _heard_here(told: Facts) -> Heard | None:
    """What this machine has heard, where it did not hear of the node."""
    controllers = read_ping(told.get("here.ping", ""))
    error = told.get("here.error", "")
    return Heard({}, controllers, error) if controllers and error else None


def _of_node(node: str, told: Facts, heard: Heard | None, wishes: Wishes) -> Iterator[Finding]:
    if heard is None:
        if told.get("slurmd", "stopped") != "stopped":
            error = told.get("here.error", "no scontrol on this machine, nor on any node")
            yield _not_told(error)
        return
    if "configuration source" in heard.error and not has_slurm(told):
        return  # Slurm's commands are installed, and nothing uses them
    names = [told.get("node", ""), node, told.get("host", "")]
    record = record_for(heard.nodes, [name for name in names if name])
    meant = told.get("slurmd", "stopped") != "stopped" or told.get("enabled") == "yes"
    if record is None and heard.nodes and not meant:
        return  # a login node, or the controller's
    silent = False
    for finding in judge_controllers(heard.controllers, heard.error):
        silent = silent or finding.status.value == "fail"
        yield finding
    if record is not None:
        known = Facts({**told, "controller_version": heard.version})
        yield from judge_record(known, record, tolerance_of(wishes))
    elif heard.nodes:
        message = "slurmd is to run here, and Slurm has no node of this name"
        yield unknown("state", message)
    elif not silent:
        yield _not_told(heard.error)


def _not_told(error: str) -> Finding:
    remedy = ASKER
    if re.search("(?i)munge|authentication|credential", error):
        remedy = SAME_KEY
    elif "ncompatible version" in error:
        remedy = SAME_RELEASE
    return unknown("state", f"the node's state was not told: {error}", remedy)
