"""A whole run: plan, ask, judge, report."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from clustercheck.answer import Answer
from clustercheck.check import AnyCheck, Facts, Target
from clustercheck.facts import Told
from clustercheck.fanout import Bounds, Fanout, Job
from clustercheck.judging import OptionsOf, compare, judge_node
from clustercheck.node import Node
from clustercheck.report import NodeResult, Report
from clustercheck.script import CLOCK_EXCHANGES, Asked, Frame, choose_peers
from clustercheck.transport import Transport

# What probe_from_here may take on this machine before its checks are judged without it.
FROM_HERE_SECONDS = 15.0


@dataclass(frozen=True)
class Plan:
    """What is to be asked of whom.

    transport_for: the way to a node (this machine's own sh, or SSH).
    """

    nodes: Sequence[Node]
    checks: Mapping[str, AnyCheck]
    options_of: OptionsOf
    transport_for: Callable[[Node], Transport]
    bounds: Bounds
    max_seconds: float | None = None

    def frame(self) -> Frame:
        """What surrounds the probes: the node's clock is asked for where a check wants it."""
        clock = any(check.clock for check in self.checks.values())
        return Frame(clock=CLOCK_EXCHANGES if clock else 0)

    def asked(self, node: Node) -> list[Asked]:
        """The node's checks with its own options."""
        return [Asked(n, c, self.options_of(n, node.name)) for n, c in self.checks.items()]

    def peers(self, node: Node) -> list[str]:
        """The peers that pairwise checks on the node are told of."""
        if not any(check.probe_peers for check in self.checks.values()):
            return []
        return choose_peers([n.name for n in self.nodes], node.name)


@dataclass
class Watch:
    """Is told what happens while a run goes on; every part may be called from any thread."""

    began: Callable[[str], None] = lambda node: None
    ended: Callable[[Answer, NodeResult], None] = lambda answer, result: None
    notes: list[str] = field(default_factory=list)


def run(plan: Plan, watch: Watch) -> Report:
    """Ask every node, judge as the answers come, and report on all, also on those not reached.

    KeyboardInterrupt ends the asking, not the report.
    """
    started, began = datetime.now(timezone.utc), time.monotonic()
    until = None if plan.max_seconds is None else began + plan.max_seconds
    here = FromHere(plan)
    asked_names: set[str] = set()

    def note_begun(node: str) -> None:
        asked_names.add(node)
        watch.began(node)

    fanout = Fanout(plan.frame(), plan.bounds, note_begun)
    jobs = [Job(n, plan.asked(n), plan.peers(n), plan.transport_for(n)) for n in plan.nodes]
    answers: dict[str, Answer] = {}
    results: dict[str, NodeResult] = {}
    stopped = ""
    try:
        for answer in fanout.answers(jobs, until):
            here.add_to(answer)
            answers[answer.node] = answer
            results[answer.node] = judge_node(answer, plan.checks, plan.options_of)
            watch.ended(answer, results[answer.node])
    except KeyboardInterrupt:
        stopped = "interrupted"
    if not stopped and len(answers) < len(jobs):
        stopped = f"--max-time of {plan.max_seconds:g} s"
    for node in plan.nodes:
        if node.name not in results:
            answer = _not_reached(node, list(plan.checks), node.name in asked_names, stopped)
            results[node.name] = judge_node(answer, plan.checks, plan.options_of)
    compare(list(answers.values()), plan.checks, plan.options_of, results)
    return Report(
        started=started,
        seconds=time.monotonic() - began,
        checks=list(plan.checks),
        nodes={node.name: results[node.name] for node in plan.nodes},
        stopped=stopped,
        notes=watch.notes,
    )


def _not_reached(node: Node, checks: list[str], begun: bool, stopped: str) -> Answer:
    state = "had not answered yet" if begun else "its turn had not come"
    return Answer(node.name, checks, code="not_reached", message=f"{state} ({stopped})")


class FromHere:
    """What only this machine can see, taken once beside the fan-out."""

    def __init__(self, plan: Plan) -> None:
        self._facts: dict[str, dict[str, Mapping[str, str]]] = {}
        self._errors: dict[str, str] = {}
        self._checks = plan.checks
        self._threads: dict[str, list[threading.Thread]] = {}
        self._until = time.monotonic() + FROM_HERE_SECONDS
        for name, check in plan.checks.items():
            if check.probe_from_here is None:
                continue
            groups: dict[int, tuple[Any, list[Target]]] = {}
            for node in plan.nodes:
                options = plan.options_of(name, node.name)
                targets = groups.setdefault(id(options), (options, []))[1]
                targets.append(Target(node.name, node.host or node.name))
            for options, targets in groups.values():
                thread = threading.Thread(
                    target=self._probe, args=(name, check, targets, options), daemon=True
                )
                thread.start()
                self._threads.setdefault(name, []).append(thread)

    def _probe(self, name: str, check: AnyCheck, targets: list[Target], options: Any) -> None:
        assert check.probe_from_here is not None
        try:
            found = check.probe_from_here(targets, options)
        except Exception as error:
            self._errors[name] = f"{type(error).__name__}: {error}"
        else:
            self._facts.setdefault(name, {}).update(found)

    def add_to(self, answer: Answer) -> None:
        """Put the facts taken here, and the clock's, with those of the node."""
        if answer.code and not answer.told:
            return
        for name, check in self._checks.items():
            facts = self._of(name, answer.node)
            if check.clock and answer.clock is not None:
                offset, uncertainty = answer.clock
                facts["clock.offset"] = f"{offset:.9f}"
                facts["clock.uncertainty"] = f"{uncertainty:.9f}"
            if name not in answer.told and not check.probe.strip():
                answer.told[name] = Told(Facts(), whole=True, status="0")
            if name in answer.told:
                answer.told[name].facts.update(facts)
                answer.told[name].error = answer.told[name].error or self._errors.get(name, "")

    def _of(self, name: str, node: str) -> dict[str, str]:
        for thread in self._threads.get(name, ()):
            thread.join(max(0.0, self._until - time.monotonic()))
            if thread.is_alive():
                self._errors[name] = f"no answer on this machine within {FROM_HERE_SECONDS:g} s"
        return dict(self._facts.get(name, {}).get(node, {}))
