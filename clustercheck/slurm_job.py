"""What a job does about its own nodes: give back the bad ones, or start again without them.

Any user may do both to his own job, without an admin. `gate --shrink --requeue N` uses it so:

    job = slurm_job.current()                       # JobTrouble outside of a job
    healthy = [n for n in job.nodes if …]           # by Slurm's names
    if slurm_job.must_leave(job, healthy):          # the batch host itself is bad
        slurm_job.requeue(job, bad, most=N)         # this process is ended soon after
    else:
        lines = slurm_job.shrink(job, slurm_job.kept(job, healthy, need))
        # for the job's shell: from now on a plain srun is on the kept nodes

JobTrouble has Slurm's reason, or ours, in words for the user. Nothing has been done then, unless it
says so.
"""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustercheck.fold import fold
from clustercheck.nodeset import NodeSetError, evaluate, expand, shorten
from clustercheck.transport.slurm_says import SlurmTrouble, said, words_of

# Of `scontrol show job`; what a user may write himself is left out first.
_FIELD = re.compile(r"(?:^| )([A-Za-z/:]+)=(\S*)")
_OWN_WORDS = re.compile(r" JobName=.*? UserId=| (?:Command|Comment|AdminComment)=.*")

# Lines of the script that scontrol writes for the job's shell once it has shrunk.
_EXPORT = re.compile(r'export (SLURM_[A-Z_]+)="?([^"$`\\]*)"?')
_UNSET = re.compile(r"unset (SLURM_[A-Z_]+)")

# What ends a job's processes first is a signal that this shell and its children do not hear; for
# what comes after it (KillWait, 30 s) it is done. When to start is left to Slurm, which waits for
# two minutes: told to start sooner, it may take the new start for the old one, and the job fails.
REQUEUE = """\
trap '' HUP INT TERM
id=$1 excluded=$2
scontrol requeuehold "$id" || exit 1
echo held
turn=0
until scontrol update JobId="$id" ExcNodeList="$excluded" && scontrol release "$id"; do
    turn=$((turn + 1))
    [ "$turn" -lt 15 ] || exit 1
    sleep 1
done
echo released
"""


class JobTrouble(Exception):
    """It cannot be done; the message says why."""


@dataclass(frozen=True)
class Job:
    """The job that this process is in, as Slurm has it now.

    nodes: by NodeName, in Slurm's order. batch_host: where its script runs, "" for one of salloc
        or srun. excluded: what the user does not want himself. required: nodes that he does.
    restarts: how often it has been started again. may_requeue: he has not forbidden it.
    """

    ident: str
    nodes: tuple[str, ...]
    batch_host: str
    excluded: tuple[str, ...]
    required: tuple[str, ...]
    restarts: int
    may_requeue: bool


def current(variables: Mapping[str, str] = os.environ) -> Job:
    """The job that SLURM_JOB_ID names. Raises JobTrouble."""
    ident = variables.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]+", ident):
        raise JobTrouble("this is not inside a job of Slurm: SLURM_JOB_ID is not set")
    if variables.get("SLURM_HET_SIZE"):
        raise JobTrouble("the job is a heterogeneous one, of several parts, which is not supported")
    return read(_scontrol("show", "job", "--oneliner", ident), ident)


def read(text: str, ident: str) -> Job:
    """A job from a line of `scontrol show job --oneliner`. Raises JobTrouble."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(_OWN_WORDS.sub(" UserId=", text)):
        fields.setdefault(name, value)
    if fields.get("JobId") != ident or "NodeList" not in fields:
        raise JobTrouble(f"Slurm says nothing of job {ident} that can be understood")
    if fields.get("JobState") not in ("RUNNING", "CONFIGURING"):
        raise JobTrouble(f"job {ident} is {fields.get('JobState')}, should be RUNNING")
    restarts = fields.get("Restarts", "")
    return Job(
        ident=ident,
        nodes=_expand(fields["NodeList"]),
        batch_host=fields.get("BatchHost", "") if fields.get("BatchFlag") != "0" else "",
        excluded=_expand(fields.get("ExcNodeList", "")),
        required=_expand(fields.get("ReqNodeList", "")),
        restarts=int(restarts) if restarts.isdecimal() else 0,
        may_requeue=fields.get("Requeue") != "0",
    )


def _expand(text: str) -> tuple[str, ...]:
    if text in ("", "(null)"):
        return ()
    try:
        return tuple(evaluate(text, lambda operand: dict.fromkeys(expand(operand))))
    except NodeSetError as error:
        raise JobTrouble(f"Slurm's node list cannot be understood: {shorten(text)}") from error


def must_leave(job: Job, healthy: Collection[str]) -> bool:
    """Is the batch host bad? It cannot be given back: the job has to start again elsewhere."""
    return bool(job.batch_host) and job.batch_host not in healthy


def kept(job: Job, healthy: Collection[str], need: int) -> list[str]:
    """Exactly `need` healthy nodes of the job, the batch host among them, in Slurm's order.

    Raises JobTrouble where there are not so many, or the batch host is none of them.
    """
    if must_leave(job, healthy):
        raise JobTrouble(
            f"the job's script runs on {job.batch_host}, which is not fit and cannot be given "
            "back: the job has to start again without it"
        )
    able = [node for node in job.nodes if node in healthy]
    if len(able) < need:
        raise JobTrouble(f"{len(able)} healthy nodes in the job, {need} are needed")
    able.sort(key=lambda node: node != job.batch_host)
    chosen = set(able[:need])
    return [node for node in job.nodes if node in chosen]


def shrink(job: Job, keep: Sequence[str]) -> list[str]:
    """Give back all nodes but these; lines for the job's shell to take over.

    They set what tells a plain `srun` of the job's nodes (SLURM_JOB_NODELIST, SLURM_NNODES, …) and
    take away what counts tasks. None where the job has no others. Raises JobTrouble.
    """
    if strange := set(keep) - set(job.nodes):
        raise JobTrouble(f"not nodes of the job: {fold(sorted(strange))}")
    if not keep or (job.batch_host and job.batch_host not in keep):
        raise JobTrouble("the node on which the job's script runs cannot be given back")
    if len(keep) == len(job.nodes):
        return []
    if steps := _running_steps(job):
        raise JobTrouble(
            f"steps of the job run already ({', '.join(steps)}): they would lose nodes; "
            "shrink before the first srun"
        )
    with tempfile.TemporaryDirectory(prefix="clustercheck-") as folder:
        # in a job, it writes what the job's shell should read into the folder in which it runs
        _scontrol("update", f"JobId={job.ident}", f"NodeList={fold(keep)}", folder=folder)
        script = Path(folder, f"slurm_job_{job.ident}_resize.sh")
        told = script.read_text(encoding="utf-8") if script.exists() else ""
    now = read(_scontrol("show", "job", "--oneliner", job.ident), job.ident)
    if set(now.nodes) != set(keep):
        raise JobTrouble(f"Slurm was told to keep {fold(keep)}, and the job has {fold(now.nodes)}")
    return resized(told, keep)


def resized(told: str, keep: Sequence[str]) -> list[str]:
    """Lines for a shell from the script that scontrol wrote, quoted anew."""
    lines = []
    for line in told.splitlines():
        if match := _EXPORT.fullmatch(line.strip()):
            lines.append(f"export {match[1]}={shlex.quote(match[2])}")
        elif match := _UNSET.fullmatch(line.strip()):
            lines.append(f"unset {match[1]}")
    if not any("SLURM_JOB_NODELIST=" in line for line in lines):  # it could not be written
        names, count = shlex.quote(fold(keep)), len(keep)
        lines = [f"export {name}={names}" for name in ("SLURM_NODELIST", "SLURM_JOB_NODELIST")]
        lines += [f"export {name}={count}" for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")]
        lines += [f"unset {name}" for name in ("SLURM_NTASKS", "SLURM_NPROCS")]
        lines += [f"unset {name}" for name in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE")]
    return lines


def _running_steps(job: Job) -> list[str]:
    told = _run("squeue", "-h", "--steps", "-j", job.ident, "-o", "%i")
    own = (".batch", ".extern", ".interactive", ".Batch", ".Extern", ".Interactive")
    return [step for step in told.split() if not step.endswith((*own, ".TBD"))]


def requeue(job: Job, bad: Collection[str], most: int) -> str:
    """Start the job again without `bad` and without what the user had excluded himself.

    The job keeps its number; Slurm ends its processes, this one among them, within seconds, and
    starts it again two minutes later.
    most: how often it may have been started again before. Returns what was done. Raises
    JobTrouble; where it says that the job is held, `scontrol release` starts it.
    """
    if not job.batch_host:
        raise JobTrouble("only a job of sbatch can be started again")
    if job.restarts >= most:
        raise JobTrouble(
            f"the job has been started again {job.restarts} times, {most} at most were allowed"
        )
    if not job.may_requeue:
        raise JobTrouble("the job was submitted with --no-requeue, or the site's default is that")
    if wanted := [node for node in job.required if node in bad]:
        raise JobTrouble(f"the job was submitted for {fold(wanted)} by name (--nodelist)")
    excluded = fold(sorted({*job.excluded, *bad}))
    try:
        process = subprocess.Popen(
            ["sh", "-c", REQUEUE, "sh", job.ident, excluded],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )
    except OSError as error:
        raise JobTrouble(f"sh cannot be run: {error.strerror}") from error
    said, complaints = process.communicate()
    if "released" in said:
        return f"job {job.ident} starts again without {excluded}"
    why = words_of(complaints) or "scontrol gives no reason"
    if "held" in said:
        raise JobTrouble(f"the job is requeued and held, and could not be released: {why}")
    raise JobTrouble(f"the job cannot be requeued: {why}")


def _scontrol(*words: str, folder: str | None = None) -> str:
    return _run("scontrol", *words, folder=folder)


def _run(*words: str, folder: str | None = None) -> str:
    env = {**os.environ, "SLURM_JOBID": os.environ.get("SLURM_JOB_ID", "")}  # its older name
    try:
        return said(words, folder=folder, env=env)
    except SlurmTrouble as trouble:
        raise JobTrouble(str(trouble)) from trouble
