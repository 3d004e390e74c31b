"""What is asked on this machine without sh, beside the fan-out over the nodes."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clustercheck.answer import Answer
from clustercheck.check import Facts, Target
from clustercheck.facts import Told

if TYPE_CHECKING:
    from clustercheck.run import Plan

# What probe_from_here may take on this machine before its checks are judged without it.
FROM_HERE_SECONDS = 15.0


class FromHere:
    """What is asked on this machine without sh, beside the fan-out.

    That is `probe_from_here` for all nodes, once, and `probe_here` where a node is this machine.
    """

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._is_node = any(node.local for node in plan.nodes)
        self._until = time.monotonic() + FROM_HERE_SECONDS
        self._from_here: dict[str, list[Aside[Mapping[str, Mapping[str, str]]]]] = {}
        self._here: dict[tuple[str, str], Aside[Mapping[str, str]]] = {}
        for name, check in plan.checks.items():
            if check.probe_from_here is not None:
                self._from_here[name] = [
                    Aside(partial(check.probe_from_here, targets, options))
                    for options, targets in _alike(plan, name)
                ]
            if check.probe_here is not None:
                for node in plan.nodes:
                    if node.local and name in plan.checks_of(node.name):
                        options = plan.options_of(name, node.name)
                        self._here[node.name, name] = Aside(partial(check.probe_here, options))

    def add_to(self, answer: Answer) -> None:
        """Put the facts taken here, and the clock's, with those of the node."""
        if answer.code and not answer.told:
            return
        for name, check in self._plan.checks_of(answer.node).items():
            if (answer.node, name) in self._here:
                answer.told[name] = self._told_here(answer.node, name)
            elif not check.probe.strip():
                answer.told[name] = Told(whole=True, status="0")
            told = answer.told.get(name)
            if told is None:
                continue
            if check.clock and answer.clock is not None:
                offset, uncertainty = answer.clock
                told.facts["clock.offset"] = f"{offset:.9f}"
                told.facts["clock.uncertainty"] = f"{uncertainty:.9f}"
            for aside in self._from_here.get(name, ()):
                found = aside.result(self._until)
                if aside.error:
                    told.error = told.error or aside.error
                elif found is not None:
                    told.facts.update(found.get(answer.node, {}))

    def notes(self) -> list[str]:
        """What `probe_from_here` says of this machine; its findings say it where it is a node."""
        if self._is_node:
            return []
        found = [
            aside.result(time.monotonic())
            for asides in self._from_here.values()
            for aside in asides
        ]
        return list(
            dict.fromkeys(line for told in found if told for line in told.get("", {}).values())
        )

    def _told_here(self, node: str, name: str) -> Told:
        aside = self._here[node, name]
        found = aside.result(self._until)
        if found is None:
            return Told(status="1", error=aside.error)
        return Told(Facts(found), whole=True, status="0")


FoundT = TypeVar("FoundT")


class Aside(Generic[FoundT]):
    """A function that runs in a thread of its own and may never come back.

    error: why there is no result, in words, or "".
    """

    def __init__(self, function: Callable[[], FoundT]) -> None:
        self.error = ""
        self._found: FoundT | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], FoundT]) -> None:
        try:
            self._found = function()
        except Exception as error:  # the check's own fault, shown as its finding
            self.error = f"{type(error).__name__}: {error}"

    def result(self, until: float) -> FoundT | None:
        """What the function gave, waiting until `until` (time.monotonic()); None with `error`."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self.error = f"no answer on this machine within {FROM_HERE_SECONDS:g} s"
            return None
        return self._found


def _alike(plan: "Plan", check: str) -> list[tuple[Any, list[Target]]]:
    """The nodes with equal options that are asked the check; the options are the same object."""
    groups: dict[int, tuple[Any, list[Target]]] = {}
    for node in plan.nodes:
        if check not in plan.checks_of(node.name):
            continue
        options = plan.options_of(check, node.name)
        targets = groups.setdefault(id(options), (options, []))[1]
        targets.append(Target(node.name, node.host or node.name, node.port))
    return list(groups.values())
