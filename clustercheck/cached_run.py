"""A run of which only that is asked that does not hold any more; the rest is as it was kept.

Where all holds, nothing is loaded that asking needs: one file is read, and Slurm's controller is
asked once. Of several callers with one question, one asks and the others take what it found.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from clustercheck import slurm_nodes
from clustercheck.cache import Cache, question
from clustercheck.freshness import JUST_NOW_SECONDS, Moment, NodeState, Stamp, fresh
from clustercheck.kept import Kept, KeptAnswer, without_forgotten
from clustercheck.report import NodeResult, Report

if TYPE_CHECKING:
    from clustercheck.answer import Answer
    from clustercheck.check import AnyCheck
    from clustercheck.judging import OptionsOf
    from clustercheck.node import Node
    from clustercheck.planning import Chosen
    from clustercheck.run import Watch


class StillAsking(Exception):
    """Somebody else asks the same, and was not done in the time that may be waited."""


class Ask(Protocol):
    """Asks as `execute.ask` does, by the way and within the limits of the command line."""

    def __call__(
        self,
        chosen: "Chosen",
        watch: "Watch",
        options_of: "OptionsOf",
        only: Mapping[str, Collection[str]],
        known: Mapping[str, "Answer"],
    ) -> Report: ...


@dataclass(frozen=True)
class Asking:
    """All that asking needs; made only where something has to be asked.

    ask: see there.
    way: what decides how nodes are reached and as whom, in any words.
    more: to be found again in `Kept.more`, as JSON.
    """

    chosen: "Chosen"
    options_of: "OptionsOf"
    ask: Ask
    way: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


class Outcome(NamedTuple):
    """What is so now.

    asked: by node, the checks that were asked for it; empty where all was kept.
    slurm: what Slurm's controller said.
    """

    kept: Kept
    asked: Mapping[str, tuple[str, ...]]
    slurm: slurm_nodes.Answer

    @property
    def slurm_of(self) -> dict[str, slurm_nodes.SlurmNode]:
        """Slurm's nodes by our names."""
        return slurm_nodes.by_our_names(self.kept.hosts, self.slurm.nodes)


def results(
    cache: Cache,
    key: str,
    max_age: float,
    wait: float,
    prepare: Callable[[], Asking],
    slurm: Callable[[], slurm_nodes.Answer] = slurm_nodes.ask,
) -> Outcome:
    """What is so now, asking as little as possible.

    key: `cache.question` of all that the answer depends on: nodes, checks, contents of the
        inventory, options, profile, user.
    max_age: seconds that results hold which may change at any moment; 0 asks all anew.
    wait: seconds for another caller who asks the same; then StillAsking is raised.
    """
    return _Run(cache, key, max_age, wait, prepare, slurm).outcome()


class _Run:
    def __init__(
        self,
        cache: Cache,
        key: str,
        max_age: float,
        wait: float,
        prepare: Callable[[], Asking],
        slurm: Callable[[], slurm_nodes.Answer],
    ) -> None:
        self.cache, self.key, self.max_age, self.wait = cache, key, max_age, wait
        self.prepare, self.ask_slurm = prepare, slurm
        self.since = time.time()
        self.slurm, self.slurm_asked = slurm(), time.monotonic()
        self.lock = cache.lock(key)

    def outcome(self) -> Outcome:
        if self.slurm.trouble:
            said = f"Slurm does not say when nodes booted ({self.slurm.trouble})"
            self.cache.note(f"{said}: they are asked themselves")
        seen = self.cache.changed(self.key)
        if kept := self.holding():
            return Outcome(kept, {}, self.slurm)
        with self.alone(seen) as found:
            if found:
                return Outcome(found, {}, self.slurm)
            refresh = _Refresh(self, self.prepare())
            kept, asked = refresh.outcome()
        self.renew_slurm()
        return Outcome(kept, asked, self.slurm)

    def renew_slurm(self) -> None:
        """Ask Slurm again after a while: a node may have been drained meanwhile."""
        if self.slurm.nodes and time.monotonic() - self.slurm_asked > JUST_NOW_SECONDS:
            self.slurm, self.slurm_asked = self.ask_slurm(), time.monotonic()

    @contextlib.contextmanager
    def alone(self, seen: tuple[int, int]) -> Iterator[Kept | None]:
        """As the only one who asks this; with what holds, if another has found it meanwhile."""
        if not self.cache.usable:
            yield None
            return
        lock = self.lock
        try:
            for _ in lock.wait(self.wait):
                if self.cache.changed(self.key) != seen:
                    seen = self.cache.changed(self.key)
                    if found := self.holding():
                        yield found
                        return
            if not lock.held:
                raise StillAsking(
                    f"{lock.owner()} asks the same nodes, and was not done within {self.wait:g} s"
                )
        except OSError as error:
            self.cache.note(f"no lock can be had in {str(self.cache.folder)!r}: {error.strerror}")
        try:
            yield self.holding() if self.cache.changed(self.key) != seen else None
        finally:
            lock.release()

    def holding(self) -> Kept | None:
        """What was kept, if all of it holds."""
        self.renew_slurm()
        kept = self.cache.read(self.key)
        if kept is None or kept.not_fresh(self.states(kept.hosts, kept.seen), self.moment()):
            return None
        return kept

    def moment(self) -> Moment:
        return Moment(time.time(), self.since, self.max_age)

    def states(
        self, hosts: Mapping[str, str], seen: tuple[float, Mapping[str, NodeState]]
    ) -> dict[str, NodeState]:
        """The nodes' states, by Slurm, or as they were seen just now."""
        when, by_probe = seen
        states = dict(by_probe) if when >= self.since - JUST_NOW_SECONDS else {}
        return states | slurm_nodes.states(hosts, self.slurm.nodes)


class _Refresh:
    """Asks what does not hold any more."""

    def __init__(self, run: _Run, asking: Asking) -> None:
        self.run, self.cache, self.asking = run, run.cache, asking
        self.nodes = {node.name: node for node in asking.chosen.nodes}
        self.checks = asking.chosen.checks
        self.hosts = {name: node.host for name, node in self.nodes.items()}
        self.digests = _digests(asking)
        self.known: dict[str, Answer] = {}
        self.stamps: dict[str, dict[str, Stamp]] = {}
        self.fields: dict[str, dict[str, Mapping[str, str]]] = {}
        self.seen: dict[str, NodeState] = {}
        self.began = time.time()

    def outcome(self) -> tuple[Kept, Mapping[str, tuple[str, ...]]]:
        """What is so now, and what was asked for it."""
        self.load()
        self.states = self.run.states(self.hosts, (0.0, {}))
        stale, before = self.stale()
        report = before if before and not stale else self.ask(stale, time.time())
        kept = self.kept(report)
        if not kept.report.stopped:
            self.cache.write(self.run.key, kept)
        self.cache.tidy()
        return kept, stale

    def kept(self, report: Report) -> Kept:
        return Kept(
            report=report,
            stamps=self.stamps,
            stale={name: check.stale for name, check in self.checks.items()},
            hosts=self.hosts,
            fields=self.fields,
            more=self.asking.more,
            seen=(self.began, self.seen),
        )

    def load(self) -> None:
        """What the nodes have answered before, of what is asked for now and in the same way."""
        whole = question(*self.nodes)
        for name in self.nodes:
            before = self.cache.answer(name)
            if before is None:
                continue
            digests = self.digests[name]
            alike = [
                check
                for check in self.checks
                if check in before.stamps and before.digests.get(check) == digests[check]
            ]
            told = {c: told for c, told in before.answer.told.items() if c in alike}
            same = before.digests.get("") == whole
            peers = before.answer.peers if same else []  # else they were told of other nodes
            self.known[name] = replace(before.answer, told=told, peers=peers)
            self.stamps[name] = {check: before.stamps[check] for check in alike}
            for check in told:
                self.note_fields(self.known[name], check)

    def stale(self) -> tuple[dict[str, tuple[str, ...]], Report | None]:
        """By node, what has to be asked; nodes whose state nobody knows are asked for it.

        Also what is so if that is nothing.
        """
        moment = self.run.moment()
        if not any(
            fresh(stamp, self.checks[check].stale, False, stamp.state, moment)
            for stamps in self.stamps.values()
            for check, stamp in stamps.items()
        ):
            return {name: tuple(self.checks) for name in self.nodes}, None
        before = self.kept(self.ask({}, 0))
        stale = before.not_fresh(self.states, moment)
        unknown = [name for name in stale if name not in self.states and self.stamps.get(name)]
        as_before = {n: next(iter(self.stamps[n].values())).state for n in unknown}
        hoped = before.not_fresh({**self.states, **as_before}, moment)
        if worth := [name for name in unknown if hoped.get(name) != stale[name]]:
            before = self.look(worth, before)
            stale = before.not_fresh(self.states, self.run.moment())
        return stale, before.report

    def look(self, names: Collection[str], before: Kept) -> Kept:
        """Ask nodes for their state alone. Those that cannot be reached have their result."""
        from clustercheck import node_use

        asked = time.time()
        chosen = self.asking.chosen
        few = replace(
            chosen,
            nodes=[self.nodes[name] for name in names],
            checks={node_use.NAME: node_use.CHECK},
        )
        watch = self.watch()
        gone: dict[str, NodeResult] = {}

        def ended(answer: "Answer", result: NodeResult) -> None:
            self.run.lock.touch()
            if state := node_use.state(answer):
                self.states[answer.node] = self.seen[answer.node] = state
            elif answer.code and not answer.told:
                gone[answer.node] = result
                self.known[answer.node] = replace(answer, asked=list(self.checks))
                self.take(self.known[answer.node], self.checks, asked)

        watch.ended = ended
        everything = {name: (node_use.NAME,) for name in names}
        self.asking.ask(few, watch, self.options_of, everything, {})
        return replace(before, report=replace(before.report, nodes={**before.report.nodes, **gone}))

    def ask(self, stale: Mapping[str, Collection[str]], asked: float) -> Report:
        """Ask what is stale, and judge all from that and what is known."""
        from clustercheck import node_use

        watch = self.watch()
        only: dict[str, Collection[str]] = dict(stale)
        checks = dict(self.checks)
        if without := [name for name in stale if name not in self.run.states(self.hosts, (0, {}))]:
            checks[node_use.NAME] = node_use.CHECK
            only |= {name: (*stale[name], node_use.NAME) for name in without}

        def ended(answer: "Answer", result: NodeResult) -> None:
            self.take(answer, stale[answer.node], asked)

        watch.ended = ended
        watch.followed = lambda answer: self.take(answer, (), asked)
        chosen = replace(self.asking.chosen, checks=checks)
        report = self.asking.ask(chosen, watch, self.options_of, only, self.known)
        return _without(report, node_use.NAME)

    def take(self, answer: "Answer", checks: Collection[str], asked: float) -> None:
        """Keep what a node has said now of these checks."""
        from clustercheck import node_use

        self.run.lock.touch()
        name = answer.node
        state = self.states.get(name, NodeState())
        if said := node_use.state(answer):
            if node_use.NAME in answer.told:
                self.seen[name] = said
            state = state._replace(boot_id=said.boot_id, cpu=said.cpu)
        away = bool(answer.code and not answer.told)
        now = Stamp(asked, state._replace(trouble="", in_use=False))
        stamps = self.stamps.setdefault(name, {})
        stamps |= dict.fromkeys(self.checks if away else checks, now)
        told = {c: told for c, told in answer.told.items() if c in self.checks}
        kept = replace(answer, told=told, asked=list(self.checks), forgotten=[])
        for of_nodes in self.fields.values():
            of_nodes.pop(name, None)
        for check in told:
            self.note_fields(kept, check)
        kept.forget()
        for check in kept.forgotten:
            stamps.pop(check, None)
        self.cache.keep(self.with_others(without_forgotten(kept), stamps))

    def with_others(self, answer: "Answer", stamps: Mapping[str, Stamp]) -> KeptAnswer:
        """With what the node has answered to checks that are not asked for here."""
        all_stamps = dict(stamps)
        digests = {check: self.digests[answer.node][check] for check in stamps}
        digests[""] = question(*self.nodes)
        if before := self.cache.answer(answer.node):
            others = [check for check in before.stamps if check not in self.checks]
            told = {c: before.answer.told[c] for c in others if c in before.answer.told}
            answer = replace(answer, told={**told, **answer.told})
            all_stamps |= {check: before.stamps[check] for check in others}
            digests |= {check: before.digests[check] for check in others}
        return KeptAnswer(answer, all_stamps, digests)

    def watch(self) -> "Watch":
        from clustercheck.run import Watch

        self.run.lock.touch()
        return Watch()

    def note_fields(self, answer: "Answer", check: str) -> None:
        make, told = self.checks[check].fields, answer.told[check]
        if make is not None and told.whole:
            with contextlib.suppress(Exception):  # the check's own fault: its finding says so
                found = dict(make(told.facts))
                self.fields.setdefault(check, {})[answer.node] = found

    def options_of(self, check: str, node: str) -> Any:
        from clustercheck import node_use

        if check == node_use.NAME:
            return node_use.CHECK.options
        return self.asking.options_of(check, node)


def _without(report: Report, check: str) -> Report:
    nodes = {
        name: replace(result, findings={c: f for c, f in result.findings.items() if c != check})
        for name, result in report.nodes.items()
    }
    return replace(report, checks=[c for c in report.checks if c != check], nodes=nodes)


def _digests(asking: Asking) -> dict[str, dict[str, str]]:
    """By node and check, all that an answer depends on beside the node itself."""
    nodes = asking.chosen.nodes
    everybody = question(*(f"{node.name} {node.host} {node.port}" for node in nodes))
    of_check = {name: _of_check(check, everybody) for name, check in asking.chosen.checks.items()}
    known: dict[tuple[str, int, str], str] = {}

    def digest(name: str, node: "Node", way: str) -> str:
        options = asking.options_of(name, node.name)
        key = name, id(options), way  # equal options are the same object
        if key not in known:
            known[key] = question(name, of_check[name], repr(options), way)
        return known[key]

    found = {}
    for node in nodes:
        way = repr(dataclasses.replace(node, groups=())) + asking.way
        found[node.name] = {name: digest(name, node, way) for name in asking.chosen.checks}
    return found


def _of_check(check: "AnyCheck", everybody: str) -> str:
    told_of = everybody if check.probe_peers or check.probe_nodes else ""
    return question(check.probe, check.heavy_probe, check.follow_probe, told_of)
