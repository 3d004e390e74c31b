"""Asks many nodes at once: a bounded pool of workers with one shared queue.

Answers are handed over as they come. What loads something shared is asked for in a second step
over the same connection, one node at a time for each shared thing.
"""

import contextlib
import logging
import queue
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clustercheck.answer import KEPT_LIMIT, Answer
from clustercheck.ask import ask
from clustercheck.check import Target
from clustercheck.facts import Reader
from clustercheck.node import Node
from clustercheck.script import Asked, Frame, Step, build
from clustercheck.transport import Connection, Transport, Unreachable

# A worker that is due asks the one that runs to make way this often, which with many workers on a
# busy machine is most of what they do. The one that runs soon waits for its node anyway.
SWITCH_SECONDS = 0.05

# A shared thing that so many nodes in a row found gone is asked for by no further one: each would
# wait for it as long. One node alone may be at fault itself.
GONE_FOR_ALL = 2

NOT_TAKEN_YET = 32  # answers that may wait to be judged

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """What one node is asked."""

    node: Node
    asked: Sequence[Asked]
    peers: Sequence[Target]
    nodes: Sequence[str]
    transport: Transport

    def script(self, frame: Frame, asked: Sequence[Asked], step: Step) -> str:
        """What the node is sent for a step."""
        become = self.node.become
        return build(frame, asked, become=become, peers=self.peers, nodes=self.nodes, step=step)


@dataclass(frozen=True)
class Bounds:
    """Limits of a run.

    parallel: nodes at a time.
    node_seconds: for all of a node's light probes, the connection included.
    heavy_parallel: nodes that load one shared thing at a time.
    """

    parallel: int
    node_seconds: float
    heavy_parallel: int = 1


class Workers(Protocol):
    """What asks nodes elsewhere, as `processes.Processes` and `at_once.AtOnce` do.

    frame, jobs: what they are asked.
    said: a node's name when it is begun, and its answer when it comes.
    close: ends what still runs.
    """

    frame: Frame
    jobs: Sequence[Job]

    def said(self) -> Iterator[str | Answer]: ...

    def close(self) -> None: ...


@dataclass
class _Heavy:
    job: Job
    answer: Answer
    connection: Connection | None
    things: deque[tuple[str, list[Asked]]]


@dataclass
class Fanout:
    """The workers and their queue. `answers` yields each node's answer as it comes.

    step: "light", after which the heavy probes take their turns, or "follow".
    heavy: whether they do.
    """

    frame: Frame
    bounds: Bounds
    began: Callable[[str], None] = lambda node: None
    step: Step = "light"
    heavy: bool = True
    _light: deque[Job] = field(default_factory=deque)
    _heavy: list[_Heavy] = field(default_factory=list)
    _busy: Counter[str] = field(default_factory=Counter)
    _gone: Counter[str] = field(default_factory=Counter)
    _faults: set[tuple[str, int | None]] = field(default_factory=set)
    _elsewhere: bool = False
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._change = threading.Condition()
        self._answers: queue.Queue[Answer | BaseException] = queue.Queue(NOT_TAKEN_YET)

    def answers(self, jobs: Sequence[Job], until: float | None) -> Iterator[Answer]:
        """Every job's answer, in the order in which they come.

        until: of time.monotonic(); ends early then, and at KeyboardInterrupt: what is still
        running is let go of (the nodes notice and tidy up).
        """
        self._light.extend(jobs)
        return self._until_all_came(len(jobs), until, self._workers(len(jobs)))

    def answers_from(self, workers: Workers, until: float | None) -> Iterator[Answer]:
        """The same of jobs whose light step is done elsewhere."""
        jobs = {job.node.name: job for job in workers.jobs}
        self._elsewhere = True
        gather = threading.Thread(target=self._gather, args=(workers, jobs), daemon=True)
        heavy = self.heavy and any(a.check.heavy_probe for job in jobs.values() for a in job.asked)
        threads = [gather, *(self._workers(len(jobs)) if heavy else ())]
        return self._until_all_came(len(jobs), until, threads)

    def _gather(self, workers: Workers, jobs: Mapping[str, Job]) -> None:
        try:
            for said in workers.said():
                if isinstance(said, Answer):
                    self._asked(jobs[said.node], said, None)
                else:
                    self.began(said)
        except BaseException as error:
            self._hand_over(error)
        with self._change:
            self._elsewhere = False
            self._change.notify_all()

    def _workers(self, jobs: int) -> list[threading.Thread]:
        return [
            threading.Thread(target=self._work, daemon=True, name=f"node-{i}")
            for i in range(min(self.bounds.parallel, jobs))
        ]

    def _until_all_came(
        self, jobs: int, until: float | None, workers: Sequence[threading.Thread]
    ) -> Iterator[Answer]:
        for started, worker in enumerate(workers):
            try:
                worker.start()
            except RuntimeError:  # no more threads can be had here: those that there are will do
                if not started:
                    raise
                break
        switch = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            for _ in range(jobs):
                left = None if until is None else max(0.0, until - time.monotonic())
                try:
                    answer = self._answers.get(timeout=left)
                except queue.Empty:
                    return
                if isinstance(answer, BaseException):
                    raise answer
                yield answer
        finally:
            sys.setswitchinterval(switch)
            self._stopped = True
            with self._change:
                self._change.notify_all()

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                if isinstance(task, Job):
                    self._ask_light(task)
                else:
                    self._ask_heavy(task)
        except BaseException as error:  # a fault of ours must be seen, not hang the run
            self._hand_over(error)

    def _hand_over(self, answer: Answer | BaseException) -> None:
        """Wait where judging does not keep up: long answers that wait would fill the memory."""
        while not self._stopped:
            with contextlib.suppress(queue.Full):
                self._answers.put(answer, timeout=1)
                return

    def _next(self) -> Job | _Heavy | None:
        with self._change:
            while not self._stopped:
                if self._light:
                    return self._light.popleft()
                for task in self._heavy:
                    if self._busy[task.things[0][0]] < self.bounds.heavy_parallel:
                        self._heavy.remove(task)
                        self._busy[task.things[0][0]] += 1
                        return task
                # A light job that leads to a heavy one has its worker, unless that is elsewhere.
                if not self._heavy and not self._elsewhere:
                    return None
                self._change.wait()
            return None

    def _ask_light(self, job: Job) -> None:
        self.began(job.node.name)
        began = time.monotonic()
        peers = [peer.name for peer in job.peers]
        answer = Answer(job.node.name, [a.name for a in job.asked], peers=peers)
        reader = Reader(self.frame.mark, time.time, answer.asked)
        deadline = began + self.bounds.node_seconds
        connection = None
        try:
            connection = job.transport.connect(job.node, deadline)
            ask(connection, job.script(self.frame, job.asked, self.step), reader, deadline)
        except Unreachable as error:
            answer.code, answer.message = error.code, error.message
        except Exception as error:
            answer.code, answer.message = "crashed", self._fault(error)
        answer.take(reader)
        answer.seconds = time.monotonic() - began
        self._asked(job, answer, connection)

    def _asked(self, job: Job, answer: Answer, connection: Connection | None) -> None:
        """The light step is done: the heavy one comes, or the answer is whole."""
        things: deque[tuple[str, list[Asked]]] = deque()
        if self.heavy and self.step == "light" and not answer.code:
            things = _shared_things(job, answer)
        with self._change:
            if things:
                keep = len(self._heavy) < self.bounds.parallel
                self._heavy.append(_Heavy(job, answer, connection if keep else None, things))
                connection = None if keep else connection
                self._change.notify_all()
        if connection is not None:
            connection.close()
        if not things:
            self._hand_over(answer)

    def _fault(self, error: Exception) -> str:
        """A fault of ours costs one node its answer, not the run its report; it is shown once."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        if (place.filename, place.lineno) not in self._faults:
            self._faults.add((place.filename, place.lineno))
            logger.error("a fault of clustercheck's own, please report it", exc_info=error)
        return f"clustercheck itself failed: {type(error).__name__}: {error}"

    def _ask_heavy(self, task: _Heavy) -> None:
        thing, asked = task.things.popleft()
        limit = max(a.check.heavy_limit for a in asked) + self.bounds.node_seconds
        deadline = time.monotonic() + limit
        reader = Reader(self.frame.mark, time.time, [a.name for a in asked])
        job = task.job
        text = job.script(self.frame, asked, "heavy")
        trouble = ""
        try:
            if self._gone[thing] < GONE_FOR_ALL:
                task.connection = _ask_again(task.connection, job, text, reader, deadline)
                gone = any("heavy.gone" in told.facts for told in reader.told.values())
                self._gone[thing] = self._gone[thing] + 1 if gone else 0
            else:
                trouble = "what it loads no longer answered the nodes whose turn was before"
        except Unreachable as error:
            task.connection = None
            trouble = error.message
        except Exception as error:
            task.connection = None
            trouble = self._fault(error)
        for a in asked:
            _merge(task.answer, a.name, reader, trouble)
        with self._change:
            self._busy[thing] -= 1
            if task.things:
                self._heavy.append(task)
            self._change.notify_all()
        if not task.things:
            if task.connection is not None:
                task.connection.close()
            self._hand_over(task.answer)


def _ask_again(
    connection: Connection | None, job: Job, text: str, reader: Reader, deadline: float
) -> Connection:
    """Ask over the connection that was kept, or over a new one where it has gone."""
    if connection is not None:
        try:
            ask(connection, text, reader, deadline)
            return connection
        except Unreachable as error:
            connection.close()
            if error.code != "cut" or reader.begun:  # it went away in mid-run, not before
                raise
    connection = job.transport.connect(job.node, deadline)
    try:
        ask(connection, text, reader, deadline)
    except Unreachable:
        connection.close()
        raise
    return connection


def _shared_things(job: Job, answer: Answer) -> deque[tuple[str, list[Asked]]]:
    """What the heavy probes would load, with the checks that ask for it."""
    things: dict[str, list[Asked]] = {}
    too_long = sum(answer.sizes().values()) > KEPT_LIMIT
    for asked in job.asked:
        told = answer.told.get(asked.name)
        if asked.check.heavy_probe and asked.check.shared and told and told.whole:
            try:
                thing = asked.check.shared(told.facts, asked.options)
            except Exception as error:
                told.facts["heavy.status"] = f"the check itself failed: {error!r}"
                continue
            if thing and too_long:  # it would be kept until its turn comes
                told.facts["heavy.status"] = "its answer is too long to be kept until its turn"
            elif thing:
                things.setdefault(thing, []).append(asked)
    return deque(things.items())


def _merge(answer: Answer, check: str, reader: Reader, trouble: str) -> None:
    """Add a heavy probe's facts; "heavy.status" is "whole" or why it is not."""
    facts = answer.told[check].facts
    told = reader.told.get(check)
    if told is not None:
        facts.update(told.facts)
    if told is not None and told.whole:
        facts["heavy.status"] = "whole"
    elif told is not None and told.status == "limit":
        facts["heavy.status"] = f"did not end within its limit; it waits on {told.hung}"
    else:
        facts["heavy.status"] = trouble or (told.error if told else "") or "no answer"
