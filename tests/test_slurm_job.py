"""What a job does about its own nodes, on a real cluster."""

import os
import re
import sys
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet  # type: ignore[import-untyped]

from clustercheck import slurm_job
from clustercheck.slurm_job import Job, JobTrouble
from tests.slurm_cluster import NODES, SlurmCluster

PROJECT = Path(__file__).resolve().parent.parent

# As Slurm 22.05.8 and 24.11 say it; the second has words of the user's own that look like fields.
PLAIN = (
    "JobId=7 JobName=sbatch UserId=daemon(1) JobState=RUNNING Reason=None Requeue=1 Restarts=0 "
    "BatchFlag=1 ReqNodeList=(null) ExcNodeList=(null) NodeList=n[1-4] BatchHost=n1 NumNodes=4 "
    "CPUs/Task=1 Command=(null) WorkDir=/home/a StdIn=/dev/null Power= \n"
)
ODD = (
    "JobId=7 ArrayJobId=6 ArrayTaskId=1 JobName=a NodeList=n9 UserId=daemon(1) JobState=RUNNING "
    "Requeue=0 Restarts=2 BatchFlag=1 ReqNodeList=n[1-2] ExcNodeList=n[5,7] NodeList=n[1-2] "
    "BatchHost=n2 SchedNodeList=(null) NumNodes=2-2 Command=/a b Restarts=9 Comment=NodeList=n8\n"
)


def test_a_job_as_slurm_says_it() -> None:
    assert slurm_job.read(PLAIN, "7") == Job(
        "7", ("n1", "n2", "n3", "n4"), "n1", (), (), 0, may_requeue=True
    )
    assert slurm_job.read(ODD, "7") == Job(
        "7", ("n1", "n2"), "n2", ("n5", "n7"), ("n1", "n2"), 2, may_requeue=False
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Slurm says nothing of job 7 that can be understood"),
        (PLAIN.replace("JobId=7", "JobId=8"), "Slurm says nothing of job 7"),
        (PLAIN.replace("n[1-4]", "n[1-"), "Slurm's node list cannot be understood: 'n[1-'"),
        (PLAIN.replace("n[1-4]", f"n[1-{10**9}]"), "cannot be understood: 'n[1-1000000000]'"),
        (PLAIN.replace("RUNNING", "COMPLETING"), "job 7 is COMPLETING, should be RUNNING"),
    ],
)
def test_what_is_no_running_job(text: str, why: str) -> None:
    with pytest.raises(JobTrouble, match=re.escape(why)):
        slurm_job.read(text, "7")


def test_outside_of_a_job() -> None:
    with pytest.raises(JobTrouble, match="not inside a job of Slurm"):
        slurm_job.current({})


def test_exactly_as_many_are_kept_as_are_needed() -> None:
    job = slurm_job.read(PLAIN.replace("BatchHost=n1", "BatchHost=n3"), "7")
    assert slurm_job.kept(job, NODES, 2) == ["n1", "n3"]
    assert slurm_job.kept(job, ["n3", "n4", "n6"], 2) == ["n3", "n4"]
    with pytest.raises(JobTrouble, match="2 healthy nodes in the job, 3 are needed"):
        slurm_job.kept(job, ["n3", "n4", "n6"], 3)
    assert slurm_job.must_leave(job, ["n1", "n2", "n4"])
    with pytest.raises(JobTrouble, match="runs on n3, which is not fit and cannot be given back"):
        slurm_job.kept(job, ["n1", "n2", "n4"], 2)


def test_lines_for_the_shell_hold_nothing_but_slurm_s_variables() -> None:
    told = (
        'export SLURM_NODELIST="n[1,3]"\nexport SLURM_JOB_NODELIST="n[1,3]"\n'
        'export SLURM_JOB_CPUS_PER_NODE="2(x2)"\nunset SLURM_NPROCS\n'
        'export PATH="/tmp"\nexport SLURM_X="$(reboot)"\nreboot\n'
    )
    assert slurm_job.resized(told, ["n1", "n3"]) == [
        "export SLURM_NODELIST='n[1,3]'",
        "export SLURM_JOB_NODELIST='n[1,3]'",
        "export SLURM_JOB_CPUS_PER_NODE='2(x2)'",
        "unset SLURM_NPROCS",
    ]
    ours = slurm_job.resized("", ["n1", "n3"])
    assert "export SLURM_JOB_NODELIST='n[1,3]'" in ours
    assert "export SLURM_NNODES=2" in ours
    assert "unset SLURM_NTASKS" in ours


def as_in_job(slurm: SlurmCluster, job: str, monkeypatch: pytest.MonkeyPatch, user: str) -> Job:
    """As if this process were in the job, and the user's."""
    slurm.wait(job, "RUNNING")
    slurm.use(monkeypatch, user)
    monkeypatch.setenv("SLURM_JOB_ID", job)
    return slurm_job.current()


def test_an_ordinary_user_gives_nodes_back_and_goes_on(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain srun is then on the kept nodes alone."""
    lines_file = slurm.home / "lines"
    job = slurm.sbatch(
        f"while [ ! -e {lines_file}.whole ]; do sleep 0.1; done; . {lines_file}; "
        "echo $SLURM_NNODES $SLURM_JOB_NODELIST; srun printenv SLURMD_NODENAME",
        "-N5",
        user=slurm.user,
    )
    here = as_in_job(slurm, job, monkeypatch, slurm.user)
    keep = slurm_job.kept(here, [node for node in here.nodes if node not in ("n2", "n4")], 2)
    lines = slurm_job.shrink(here, keep)
    assert slurm_job.current().nodes == ("n1", "n3")
    states = slurm.states()
    assert [states[name] for name in ("n2", "n4", "n5")] == ["idle"] * 3
    lines_file.write_text("\n".join(lines))
    Path(f"{lines_file}.whole").touch()
    assert slurm.wait(job) == "COMPLETED"
    assert sorted(slurm.output(job).split()) == ["2", "n1", "n3", "n[1,3]"]
    assert not list(slurm.home.glob("*resize*"))  # nothing is left where the job runs


def test_what_may_not_be_given_back(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    job = slurm.sbatch("srun -N2 sleep 60", "-N3")
    here = as_in_job(slurm, job, monkeypatch, "")
    with pytest.raises(JobTrouble, match="on which the job's script runs cannot be given back"):
        slurm_job.shrink(here, ["n2", "n3"])
    with pytest.raises(JobTrouble, match="not nodes of the job: n6"):
        slurm_job.shrink(here, ["n1", "n6"])
    assert slurm_job.shrink(here, ["n1", "n2", "n3"]) == []
    slurm.until(lambda: f"{job}.0" in slurm.run("squeue", "-h", "-s", "-o", "%i").stdout)
    with pytest.raises(JobTrouble, match=rf"steps of the job run already \({job}\.0\)"):
        slurm_job.shrink(here, ["n1", "n2"])
    assert slurm_job.current().nodes == ("n1", "n2", "n3")


def test_a_job_on_a_bad_host_starts_again_elsewhere(slurm: SlurmCluster) -> None:
    """From inside the job, which Slurm ends meanwhile; once, as was allowed."""
    code = (
        "from clustercheck import slurm_job\n"
        "job = slurm_job.current()\n"
        "print('on', job.batch_host, job.restarts, flush=True)\n"
        "try: slurm_job.requeue(job, [job.batch_host], 1)\n"
        "except slurm_job.JobTrouble as trouble: print(trouble, flush=True)\n"
    )
    script = slurm.home / "ask.py"
    script.write_text(code)
    job = slurm.sbatch(
        f"cd {PROJECT} && PYTHONPATH={PROJECT} {sys.executable} {script}; sleep 1",
        "-N2",
        "--exclude=n2",
        "--open-mode=append",
    )
    slurm.start_again_now(job)
    first = slurm.output(job).split()[1]
    assert slurm.wait(job) == "COMPLETED", slurm.output(job)
    assert slurm.output(job).splitlines()[0] == f"on {first} 0"
    (second,) = re.findall(r"^on (n\d) 1$", slurm.output(job), re.M)
    assert second not in (first, "n2")
    assert slurm.output(job).splitlines()[-1] == (
        "the job has been started again 1 times, 1 at most were allowed"
    )
    excluded = slurm.field(job, "ExcNodeList")  # the user's own is among them
    assert set(NodeSet(excluded)) == {first, "n2"}


def test_an_ordinary_user_may_start_his_job_again(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = slurm.sbatch("sleep 60", "-N2", user=slurm.user)
    here = as_in_job(slurm, job, monkeypatch, slurm.user)
    bad = here.batch_host
    assert slurm_job.requeue(here, [bad], 1) == f"job {job} starts again without {bad}"
    slurm.start_again_now(job)
    assert slurm.wait(job, "RUNNING") == "RUNNING"
    assert bad not in slurm_job.current().nodes


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--no-requeue"], "submitted with --no-requeue"),
        (["--nodelist=n1"], "submitted for n1 by name"),
    ],
)
def test_a_job_that_cannot_start_again_goes_on(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    job = slurm.sbatch("sleep 60", "-N2", *words)
    here = as_in_job(slurm, job, monkeypatch, "")
    with pytest.raises(JobTrouble, match=why):
        slurm_job.requeue(here, ["n1"], 1)
    assert slurm.state(job) == "RUNNING"
    assert slurm.field(job, "Restarts") == "0"


def test_where_slurm_has_no_such_job(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm.use(monkeypatch)
    with pytest.raises(JobTrouble, match="Invalid job id specified"):
        slurm_job.current({"SLURM_JOB_ID": "999999"})
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(JobTrouble, match="scontrol cannot be run"):
        slurm_job.current({"SLURM_JOB_ID": "1"})
