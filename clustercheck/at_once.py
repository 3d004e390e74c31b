"""Many nodes asked by few programs: steps of Slurm, each with one script for many nodes.

A step's nodes answer as they come, and each has its own limits; that one does not start or dies
costs the others a second try at most.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustercheck.answer import Answer
from clustercheck.ask import SECONDS_OF_SILENCE, ended_early, late
from clustercheck.facts import Flood, Reader
from clustercheck.fanout import Bounds, Fanout, Job
from clustercheck.script import START, Frame, build
from clustercheck.transport import Unreachable
from clustercheck.transport.slurm import Place
from clustercheck.transport.srun import Srun, Step

# Nodes of a step, and steps at a time: one that cannot be started holds up so many.
STEP_NODES = 256
STEPS = 4

# Slurm's own limits (MessageTimeout, 10 s, some times over) come before this one.
LAUNCH_SECONDS = 90

# The clock is asked for where all nodes are ready; those that are late are not waited for longer
# than so many seconds after the first one.
SECONDS_FOR_ALL = 3

# A line of srun of so many bytes may be a piece of a longer one: Slurm cuts at 1,024.
PIECE = 900


@dataclass
class _Asking:
    """One node of a step.

    ended: its answer is whole, or it is known why it will not come.
    """

    job: Job
    reader: Reader
    heard: float = 0.0
    pending: bool = False  # the line that came last may go on
    ended: bool = False
    trouble: Unreachable | None = None


class AtOnce:
    """Asks nodes by steps of Slurm, and other nodes of the run by their own way."""

    def __init__(self, frame: Frame, bounds: Bounds, jobs: Sequence[Job]) -> None:
        self.frame = frame
        self.jobs = jobs
        self._bounds = bounds
        self._said: queue.Queue[str | Answer | BaseException | None] = queue.Queue()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def said(self) -> Iterator[str | Answer]:
        """A node's name when it is begun, and its answer when it comes."""
        others: list[Job] = []
        groups: dict[object, list[tuple[Job, Place]]] = {}
        for job in self.jobs:
            if not isinstance(job.transport, Srun):
                others.append(job)
                continue
            try:
                place = job.transport.place(job.node)
            except Unreachable as refused:
                yield job.node.name
                yield self._refused(job, refused)
                continue
            alike = tuple((asked.name, id(asked.options)) for asked in job.asked)
            key = (place.job, place.gpus, place.hidden, job.node.become, alike)
            groups.setdefault(key, []).append((job, place))
        turns: queue.SimpleQueue[list[tuple[Job, Place]]] = queue.SimpleQueue()
        for group in groups.values():
            for start in range(0, len(group), STEP_NODES):
                turns.put(group[start : start + STEP_NODES])
        self._threads = [
            threading.Thread(target=self._work, args=(turns,), daemon=True)
            for _ in range(min(STEPS, turns.qsize()))
        ]
        if others:
            self._threads.append(threading.Thread(target=self._ask_others, args=(others,)))
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        left = len(self._threads)
        while left:
            said = self._said.get()
            if said is None:
                left -= 1
            elif isinstance(said, BaseException):
                raise said
            else:
                yield said

    def close(self) -> None:
        """End what still runs; the nodes tidy up."""
        self._closed.set()
        for thread in self._threads:
            thread.join(15)

    def _work(self, turns: "queue.SimpleQueue[list[tuple[Job, Place]]]") -> None:
        try:
            while not self._closed.is_set():
                with contextlib.suppress(queue.Empty):
                    self._ask(turns.get_nowait())
                    continue
                break
        except BaseException as error:  # a fault of ours must be seen, not hang the run
            self._said.put(error)
        self._said.put(None)

    def _ask_others(self, jobs: Sequence[Job]) -> None:
        try:
            for answer in Fanout(self.frame, self._bounds, self._said.put, heavy=False).answers(
                jobs, None
            ):
                self._said.put(answer)
        except BaseException as error:
            self._said.put(error)
        self._said.put(None)

    def _ask(self, turn: Sequence[tuple[Job, Place]]) -> None:
        """Ask nodes of one job that are asked the same, until each has its answer."""
        for job, _ in turn:
            self._said.put(job.node.name)
        left = {place.name: job for job, place in turn}
        places = {place.name: place for _, place in turn}
        began = time.monotonic()
        while left and not self._closed.is_set():
            asking = {
                name: _Asking(job, Reader(self.frame.mark, time.time, [a.name for a in job.asked]))
                for name, job in left.items()
            }
            self._step([places[name] for name in asking], asking, began)
            if not any(one.ended for one in asking.values()):
                return  # closed
            left = {name: one.job for name, one in asking.items() if not one.ended}

    def _refused(self, job: Job, trouble: Unreachable) -> Answer:
        answer = _answer(job)
        answer.code, answer.message = trouble.code, trouble.message
        return answer

    def _step(self, places: Sequence[Place], asking: Mapping[str, _Asking], began: float) -> None:
        """One step; those whose `ended` is unset afterwards are to be asked again."""
        script = self._script(asking)
        try:
            step = Step(places)
        except Unreachable as trouble:
            for one in asking.values():
                self._end(one, began, trouble)
            return
        try:
            self._listen(step, script, asking, began)
        finally:
            step.close()

    def _script(self, asking: Mapping[str, _Asking]) -> str:
        one = next(iter(asking.values())).job
        peers = {name: each.job.peers for name, each in asking.items()}
        become = one.node.become
        return build(self.frame, one.asked, become=become, nodes=one.nodes, at_once=peers)

    def _listen(self, step: Step, script: str, asking: Mapping[str, _Asking], began: float) -> None:
        launched = time.monotonic()
        first = told = 0.0  # when the first node was ready, and when all were told to begin
        step.send(script.removesuffix(START).encode())
        while not self._closed.is_set():
            left = {name: one for name, one in asking.items() if not one.ended}
            if not left:
                return
            lines = step.receive(0.5)
            now = time.monotonic()
            if lines is None:
                self._over(step, left, began)
                return
            for name, line in lines:
                if not asking[name].ended:
                    self._hear(asking[name], line, now, began)
            if not told:
                ready = [one.reader.ready for one in left.values()]
                first = first or (now if any(ready) else 0.0)
                if first and (all(ready) or now - first > SECONDS_FOR_ALL):
                    told = now
                    for one in left.values():
                        one.reader.note_asked()
                    step.send(START.encode(), last=True)
            self._hold_to_limits(step, left, told, launched, began)

    def _hear(self, one: _Asking, line: bytes, now: float, began: float) -> None:
        """A line of a node, or a piece of one."""
        starts = line.startswith(self.frame.mark.encode())
        data = b"\n" + line if one.pending and (starts or not line) else line
        one.pending = len(line) >= PIECE
        one.heard = now
        try:
            one.reader.feed(data if one.pending else data + b"\n")
        except Flood as flood:
            self._end(one, began, Unreachable("flood", str(flood)))
            return
        if one.reader.done:
            self._end(one, began, None)

    def _hold_to_limits(
        self, step: Step, left: Mapping[str, _Asking], told: float, launched: float, began: float
    ) -> None:
        now = time.monotonic()
        if not told and any(task.failed for task in step.tasks.values()):
            return  # srun ends the step for the sake of one: `_over` tells them apart
        for name, one in left.items():
            if one.ended:
                continue
            exit = step.exit_of(name)
            if exit and now - max(one.heard, launched) > 1:  # what it said has come before
                self._end(one, began, ended_early(exit, one.reader))
            elif told and step.tasks[name].failed:
                self._end(one, began, Unreachable("cut", f"Slurm says: {step.tasks[name].failed}"))
            elif one.reader.begun and now - one.heard > SECONDS_OF_SILENCE:
                words = f"nothing more was heard of it for {now - one.heard:.0f} s"
                self._end(one, began, Unreachable("cut", words))
            elif told and now - told > self._bounds.node_seconds:
                self._end(one, began, _late(one.reader, now - told, now - one.heard))
            elif not told and now - launched > LAUNCH_SECONDS:
                words = f"Slurm has not started the script within {LAUNCH_SECONDS} s"
                self._end(one, began, Unreachable("slurm_launch", words))

    def _over(self, step: Step, left: Mapping[str, _Asking], began: float) -> None:
        """srun has ended and these have no whole answer: theirs is the fault, or another node's."""
        culprits = {name for name in left if step.tasks[name].failed}
        aborted = bool(culprits)
        for name, one in left.items():
            exit = step.exit_of(name)
            if name in culprits:
                words = f"Slurm could not start the script: {step.tasks[name].failed}"
                self._end(one, began, Unreachable("slurm_launch", words))
            elif aborted:
                continue  # ended for another's sake: it is asked again
            elif exit:
                self._end(one, began, ended_early(exit, one.reader))
            else:
                words = step.words() or "srun ended and gives no reason"
                self._end(one, began, Unreachable("slurm_launch", f"Slurm did not run it: {words}"))

    def _end(self, one: _Asking, began: float, trouble: Unreachable | None) -> None:
        answer = _answer(one.job)
        if trouble:
            answer.code, answer.message = trouble.code, trouble.message
        answer.take(one.reader)
        answer.seconds = time.monotonic() - began
        one.ended = True
        self._said.put(answer)


def _answer(job: Job) -> Answer:
    names = [asked.name for asked in job.asked]
    return Answer(job.node.name, names, peers=[peer.name for peer in job.peers])


def _late(reader: Reader, seconds: float, silence: float) -> Unreachable:
    if not reader.begun:
        words = f"Slurm started it, and the script had not begun in {seconds:.0f} s"
        return Unreachable("no_start", words)
    return late(reader, seconds, silence)
