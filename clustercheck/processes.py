"""Worker processes for many nodes: each asks a share of them with threads of its own.

The threads of one process share one core. Worker processes are forked once all is loaded and
parsed, and before there is a thread; answers are sent back as they come and judged by who forked.
"""

import gc
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import ForkProcess

from clustercheck.answer import Answer
from clustercheck.fanout import Bounds, Fanout, Job
from clustercheck.script import Frame


@dataclass(frozen=True)
class _Fault:
    """What went wrong in a worker process: a traceback."""

    text: str


_Said = str | Answer | _Fault | None  # a node was begun, its answer, a fault, the end


class Processes:
    """Workers that have begun to ask. To be made before any thread; `close` ends them.

    frame, jobs: what they ask.
    """

    def __init__(self, frame: Frame, bounds: Bounds, jobs: Sequence[Job], count: int) -> None:
        """Fork. Raises OSError where no process can be had."""
        context = get_context("fork")
        self.frame = frame
        self.jobs = jobs
        self._lack: dict[connection.Connection, set[str]] = {}
        self._workers: dict[connection.Connection, ForkProcess] = {}
        gc.freeze()  # what is collected is written to, and memory that is written to is copied
        try:
            for place in range(count):
                share = jobs[place::count]
                parallel = max(1, (bounds.parallel + place) // count)
                ours, theirs = context.Pipe(duplex=False)
                words = (theirs, frame, replace(bounds, parallel=parallel), share)
                worker = context.Process(target=_work, args=words, daemon=True)
                worker.start()
                theirs.close()  # so that we hear of its end, and the next one does not keep it open
                self._workers[ours] = worker
                self._lack[ours] = {job.node.name for job in share}
        except BaseException:
            self.close()
            raise
        finally:
            gc.unfreeze()

    def said(self) -> Iterator[str | Answer]:
        """A node's name when it is begun, and its answer when it comes.

        The nodes of a worker that somebody killed have an answer that says so. Raises RuntimeError
        where a worker met a fault of ours.
        """
        open_ends = list(self._workers)
        while open_ends:
            for end in connection.wait(open_ends):
                assert isinstance(end, connection.Connection)
                try:
                    said: _Said = end.recv()
                except (EOFError, OSError):
                    yield from self._killed(end)
                    said = None
                if said is None:
                    open_ends.remove(end)
                elif isinstance(said, _Fault):
                    raise RuntimeError(f"in a worker process: {said.text}")
                else:
                    if isinstance(said, Answer):
                        self._lack[end].discard(said.node)
                    yield said

    def _killed(self, end: connection.Connection) -> Iterator[Answer]:
        worker = self._workers[end]
        worker.join()
        message = f"the process that asked it ended ({_how(worker.exitcode)})"
        for job in self.jobs:
            if job.node.name in self._lack[end]:
                names = [asked.name for asked in job.asked]
                yield Answer(job.node.name, names, code="crashed", message=message)

    def close(self) -> None:
        """End them; the nodes that are being asked notice, and tidy up."""
        for end, worker in self._workers.items():
            worker.kill()
            worker.join()
            end.close()


def _how(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exit status {status}"
    return f"signal {signal.Signals(-status).name}"


def _work(end: connection.Connection, frame: Frame, bounds: Bounds, jobs: Sequence[Job]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who forked us to act on
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    turn = threading.Lock()

    def say(said: _Said) -> None:
        with turn:
            end.send(said)

    try:
        for answer in Fanout(frame, bounds, say, heavy=False).answers(jobs, None):
            say(answer)
        say(None)
    except BrokenPipeError:  # nobody listens any more
        pass
    except BaseException:
        say(_Fault(traceback.format_exc()))
    end.close()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent:
        parent.join()
    os._exit(1)
