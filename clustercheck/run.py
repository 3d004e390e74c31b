"""A whole run: plan, ask, judge, report."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

from clustercheck.answer import Answer
from clustercheck.check import AnyCheck, Facts, Target
from clustercheck.fanout import Bounds, Fanout, Job, Workers
from clustercheck.from_here import FromHere
from clustercheck.judging import OptionsOf, compare, judge_node, whole_facts
from clustercheck.node import Node
from clustercheck.report import NodeResult, Report
from clustercheck.script import CLOCK_EXCHANGES, Asked, Frame, choose_peers
from clustercheck.transport import Transport

if TYPE_CHECKING:
    from clustercheck.processes import Processes


@dataclass(frozen=True)
class Plan:
    """What is to be asked of whom.

    transport_for: the way to a node (this machine's own sh, or SSH).
    last: names of nodes that are asked after all others.
    only: by node, the checks that it is asked; a node that is not in it is asked nothing. None asks
        every node all of them.
    known: by node, an answer from before: what is not asked now is judged from it.
    """

    nodes: Sequence[Node]
    checks: Mapping[str, AnyCheck]
    options_of: OptionsOf
    transport_for: Callable[[Node], Transport]
    bounds: Bounds
    max_seconds: float | None = None
    last: Collection[str] = ()
    only: Mapping[str, Collection[str]] | None = None
    known: Mapping[str, Answer] = field(default_factory=dict)

    def frame(self) -> Frame:
        """What surrounds the probes: the node's clock is asked for where a check wants it."""
        clock = any(c.clock for n in self.nodes for c in self.checks_of(n.name).values())
        return Frame(clock=CLOCK_EXCHANGES if clock else 0)

    def asked(self, node: Node) -> list[Asked]:
        """The checks that the script asks the node, with its own options.

        This machine is asked without sh where a check can.
        """
        return [
            Asked(name, check, self.options_of(name, node.name))
            for name, check in self.checks_of(node.name).items()
            if not (node.local and check.probe_here)
        ]

    def checks_of(self, node: str) -> Mapping[str, AnyCheck]:
        """The checks that the node is asked, in their order."""
        if self.only is None:
            return self.checks
        wanted = self.only.get(node, ())
        return {name: check for name, check in self.checks.items() if name in wanted}

    @property
    def asked_nodes(self) -> list[Node]:
        """The nodes that are asked anything."""
        return [node for node in self.nodes if self.checks_of(node.name)]

    def peers(self, node: Node) -> list[Target]:
        """The peers of the node, as many as the most curious of its checks is told of."""
        counts = [
            check.peer_count(self.options_of(name, node.name))
            for name, check in self.checks_of(node.name).items()
            if check.probe_peers
        ]
        if not counts:
            return []
        peers = choose_peers(self.names, self._places[node.name], max(counts))
        return [self._targets[peer] for peer in peers]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _targets(self) -> dict[str, Target]:
        return {n.name: Target(n.name, n.host or n.name, n.port) for n in self.nodes}

    @cached_property
    def names(self) -> list[str]:
        """The names of all nodes, which `probe_nodes` checks are told of."""
        return [node.name for node in self.nodes]

    def jobs(self) -> list[Job]:
        """What every node is asked, in the order of their turns."""
        in_turn = sorted(self.asked_nodes, key=lambda node: node.name in self.last)
        return [self.job(node, self.asked(node)) for node in in_turn]

    def job(self, node: Node, asked: Sequence[Asked]) -> Job:
        """What the fan-out needs to know to ask a node."""
        return Job(node, asked, self.peers(node), self.names, self.transport_for(node))


@dataclass
class Watch:
    """Is told what happens while a run goes on; `began` may be called from any thread.

    followed: a node's answer has grown, for it was asked again (`Check.follow_probe`).
    """

    began: Callable[[str], None] = lambda node: None
    ended: Callable[[Answer, NodeResult], None] = lambda answer, result: None
    followed: Callable[[Answer], None] = lambda answer: None
    notes: list[str] = field(default_factory=list)


def workers(plan: Plan, count: int) -> "Processes | None":
    """So many worker processes that ask the nodes of the plan; to be made before any thread.

    None where one process, our own, is enough, or where no other can be had.
    """
    if count < 2:
        return None
    from clustercheck.processes import Processes

    try:
        return Processes(plan.frame(), plan.bounds, plan.jobs(), count)
    except OSError:
        return None


def run(plan: Plan, watch: Watch, elsewhere: Workers | None = None) -> Report:
    """Ask every node, judge as the answers come, and report on all, also on those not reached.

    elsewhere: what asks the nodes, where that is not our own threads.
    KeyboardInterrupt ends the asking, not the report.
    """
    started, began = datetime.now(timezone.utc), time.monotonic()
    until = None if plan.max_seconds is None else began + plan.max_seconds
    here = FromHere(plan)
    asked_names: set[str] = set()

    def note_begun(node: str) -> None:
        asked_names.add(node)
        watch.began(node)

    if elsewhere:
        fanout = Fanout(elsewhere.frame, plan.bounds, note_begun)
        coming = fanout.answers_from(elsewhere, until)
    else:
        fanout = Fanout(plan.frame(), plan.bounds, note_begun)
        coming = fanout.answers(plan.jobs(), until)
    answers = {
        node.name: from_before(plan, node.name)
        for node in plan.nodes
        if not plan.checks_of(node.name)
    }
    results = {
        name: judge_node(answer, plan.checks, plan.options_of) for name, answer in answers.items()
    }
    secrets = Secrets(plan.checks)
    stopped = ""
    try:
        for answer in coming:
            secrets.take(answer)
            here.add_to(answer)
            complete(plan, answer)
            answers[answer.node] = answer
            results[answer.node] = judge_node(answer, plan.checks, plan.options_of)
            watch.ended(answer, results[answer.node])
            answer.forget()
        for answer in _follow(plan, fanout.frame, answers, secrets, until):
            results[answer.node] = judge_node(answer, plan.checks, plan.options_of)
            watch.followed(answer)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if not stopped and len(answers) < len(plan.nodes):
        stopped = f"--max-time of {plan.max_seconds:g} s"
    for node in plan.nodes:
        if node.name not in results:
            answer = _not_reached(node, list(plan.checks), node.name in asked_names, stopped)
            results[node.name] = judge_node(answer, plan.checks, plan.options_of)
    compare(list(answers.values()), plan.checks, plan.options_of, results)
    watch.notes += here.notes()
    return Report(
        started=started,
        seconds=time.monotonic() - began,
        checks=list(plan.checks),
        nodes={node.name: results[node.name] for node in plan.nodes},
        stopped=stopped,
        notes=watch.notes,
    )


def from_before(plan: Plan, node: str) -> Answer:
    """The answer of a node that is asked nothing now."""
    answer = Answer(node, list(plan.checks))
    if known := plan.known.get(node):
        told = {name: known.told[name] for name in plan.checks if name in known.told}
        answer = replace(known, asked=answer.asked, told=told, forgotten=[])
    return answer


def complete(plan: Plan, answer: Answer) -> None:
    """Add what is known of the node from before to what it has answered now."""
    answer.asked = list(plan.checks)
    known = plan.known.get(answer.node)
    if known is None or (answer.code and not answer.told):  # then nothing is known of it now
        return
    now = plan.checks_of(answer.node)
    for name in plan.checks:
        if name not in now and name in known.told:
            answer.told[name] = known.told[name]
    # of one set of nodes the shorter list is the beginning of the longer one
    answer.peers = max(answer.peers, known.peers, key=len)


class Secrets:
    """What nodes have said for `follow` alone: it is taken out of their answers."""

    def __init__(self, checks: Mapping[str, AnyCheck]) -> None:
        self._names = {name: check.secrets for name, check in checks.items() if check.secrets}
        self._kept: dict[tuple[str, str], dict[str, str]] = {}

    def take(self, answer: Answer) -> None:
        """Take the secrets out of a node's answer."""
        for check, names in self._names.items():
            told = answer.told.get(check)
            if told is None:
                continue
            for key in [key for key in told.facts if key.partition("@")[0] in names]:
                self._kept.setdefault((check, answer.node), {})[key] = told.facts.pop(key)

    def beside(self, check: str, facts: Mapping[str, Facts]) -> dict[str, Facts]:
        """The nodes' facts with the secrets among them."""
        return {
            node: Facts({**told, **self._kept[check, node]})
            if (check, node) in self._kept
            else told
            for node, told in facts.items()
        }


def _follow(
    plan: Plan,
    frame: Frame,
    answers: Mapping[str, Answer],
    secrets: Secrets,
    until: float | None,
) -> Iterator[Answer]:
    """Ask those nodes again that the checks' `follow` names; yields the answers that have grown."""
    again: dict[str, list[Asked]] = {}
    nodes = {node.name: node for node in plan.nodes}
    for name, check in plan.checks.items():
        if check.follow is None:
            continue
        facts = whole_facts(name, answers.values())
        options = {node: plan.options_of(name, node) for node in facts}
        try:
            found = check.follow(secrets.beside(name, facts), options) if facts else ()
            chosen = dict(found) if isinstance(found, Mapping) else dict.fromkeys(found, "")
            if strangers := set(chosen) - facts.keys():
                raise ValueError(f"it follows {', '.join(sorted(strangers))}, not asked")
            if any("\0" in text for text in chosen.values()):
                raise ValueError("what it tells a node holds a zero byte")
        except Exception as error:  # the check's own fault: `compare` and `judge` go without
            for node in facts:
                answers[node].told[name].error = f"{type(error).__name__}: {error}"
            continue
        for node, text in chosen.items():
            if answers[node].forgotten:  # there is not enough left of it to be judged again
                continue
            again.setdefault(node, []).append(Asked(name, check, options[node], text))
    fanout = Fanout(frame, plan.bounds, step="follow")
    jobs = [plan.job(nodes[name], asked) for name, asked in again.items()]
    for more in fanout.answers(jobs, until):
        secrets.take(more)
        answer = answers[more.node]
        for asked in again[more.node]:
            told = more.told.get(asked.name)
            if told is not None and told.whole:
                answer.told[asked.name].facts.update(told.facts)
        yield answer


def _not_reached(node: Node, checks: list[str], begun: bool, stopped: str) -> Answer:
    state = "had not answered yet" if begun else "its turn had not come"
    return Answer(node.name, checks, code="not_reached", message=f"{state} ({stopped})")
