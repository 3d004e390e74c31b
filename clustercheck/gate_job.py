"""What the gate does in a job of Slurm's where it was told to: give nodes back, or start again."""

import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustercheck import slurm_job
from clustercheck.decision import Answer, Decision
from clustercheck.fold import fold
from clustercheck.render.escape import visible
from clustercheck.slurm_job import Job, JobTrouble


def act(
    decision: Decision, names: Mapping[str, str], shrink: bool, most: int | None
) -> tuple[Decision, Sequence[str]]:
    """The decision after it was acted upon, and lines for the job's shell.

    names: Slurm's NodeName by ours.
    shrink: give back what is not chosen. most: how often the job may have been started again, None
        where it is not to be.
    """
    try:
        return _act(decision, names, slurm_job.current(), shrink, most)
    except JobTrouble as trouble:
        return _closed(decision, str(trouble)), ()


def _act(
    decision: Decision, names: Mapping[str, str], job: Job, shrink: bool, most: int | None
) -> tuple[Decision, Sequence[str]]:
    usable = {*decision.healthy, *decision.chosen, *decision.spares}
    able = [names[name] for name in usable if name in names]
    bad = [names[name] for name in decision.excluded if name in names and name not in usable]
    go = decision.answer is Answer.GO
    # of what is not known nobody can say that another start would do better
    again = decision.answer is Answer.NO_GO or (go and shrink and slurm_job.must_leave(job, able))
    if again and most is not None and bad:
        # told before: Slurm ends this process with the job
        without = f"no-go: {decision.why}; job {job.ident} is to start again without {fold(bad)}"
        print(visible(without), file=sys.stderr, flush=True)
        return _closed(decision, _again(job, bad, most)), ()
    if not (go and shrink):
        return decision, ()
    keep = slurm_job.kept(job, able, decision.need.nodes)
    lines = slurm_job.shrink(job, keep)
    chosen = tuple(name for name in names if name in usable and names[name] in keep)
    back = [name for name in job.nodes if name not in keep]
    why = f"{decision.why}; {fold(back)} given back" if back else decision.why
    return replace(decision, why=why, chosen=chosen, spares=()), lines


def _again(job: Job, bad: Sequence[str], most: int) -> str:
    """Start the job again. That Slurm ends this process for it is no interruption, for which the
    exit code would be 75, and that may stand for "start again" at the site (RequeueExit)."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        return slurm_job.requeue(job, bad, most)
    except JobTrouble:
        signal.signal(signal.SIGTERM, before)
        raise


def _closed(decision: Decision, why: str) -> Decision:
    answer = Answer.NO_GO if decision.answer is Answer.GO else decision.answer
    return replace(decision, answer=answer, why=f"{decision.why}; {why}", chosen=(), spares=())
