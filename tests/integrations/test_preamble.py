"""The preamble of a job, on a real Slurm: the nodes are asked by steps of the job."""

import sys

from tests.slurm_cluster import SlurmCluster
from tools.fetch import PROJECT

PREAMBLE = PROJECT / "integrations/slurm/preamble.sh"


def lines(slurm: SlurmCluster, bad: str, *more: str) -> str:
    """A job's script in which a check of the site fails on the nodes `bad` (a pattern of sh)."""
    inventory = slurm.home / "inventory.ini"
    inventory.write_text(
        "n[1-6]\n[check:site]\n"
        f"command = sh -c 'case $SLURMD_NODENAME in {bad}) echo bad; exit 2 ;; esac; echo good'\n"
    )
    program = slurm.home / "clustercheck"
    program.write_text(
        f"#!/bin/sh\nshift\nexec '{sys.executable}' -m clustercheck gate -i '{inventory}' -c site "
        f"--cache '{slurm.home}/cache' \"$@\"\n"
    )
    program.chmod(0o755)
    return "\n".join(
        [f"CLUSTERCHECK='{program}'", *more, f". '{PREAMBLE}'", "echo went on $CC_NODELIST"]
        + ["srun sh -c 'echo on $SLURMD_NODENAME'"]
    )


def ran(slurm: SlurmCluster, body: str, *words: str) -> tuple[str, list[str]]:
    """How the job ended, and its output."""
    job = slurm.sbatch(body, *words)
    state = slurm.wait(job, "COMPLETED", "FAILED")
    return state, slurm.output(job).splitlines()


def test_a_job_goes_on_with_the_nodes_that_it_needs(slurm: SlurmCluster) -> None:
    state, output = ran(slurm, lines(slurm, "n3", "CC_NEED=4"), "-w", "n[1-5]")
    assert state == "COMPLETED", output
    assert "went on n[1-2,4-5]" in output
    assert sorted(line for line in output if line.startswith("on ")) == [
        *("on n1", "on n2", "on n4", "on n5")
    ]


def test_a_job_with_too_few_good_nodes_ends(slurm: SlurmCluster) -> None:
    state, output = ran(slurm, lines(slurm, "n[34]", "CC_NEED=4"), "-w", "n[1-5]")
    assert state == "FAILED"
    assert any("no-go: 3 of 5 nodes are healthy; 4 are needed" in line for line in output), output
    assert not any(line.startswith("went on") for line in output)


def test_a_job_on_a_bad_batch_host_starts_again_without_it(slurm: SlurmCluster) -> None:
    job = slurm.sbatch(lines(slurm, "n1", "CC_NEED=4", "CC_REQUEUE=1"), "-N5")
    slurm.until(lambda: (slurm.state(job), slurm.field(job, "Restarts")) == ("PENDING", "1"))
    assert "start again without n1" in slurm.output(job)
    assert slurm.field(job, "ExcNodeList") == "n1"
    slurm.start_again_now(job)
    assert slurm.wait(job) == "COMPLETED", slurm.output(job)
    assert "went on n[2-5]" in slurm.output(job).splitlines()


def test_the_need_must_be_said(slurm: SlurmCluster) -> None:
    state, output = ran(slurm, lines(slurm, "none"), "-N1")
    assert state == "FAILED"
    assert any("set CC_NEED to the number of nodes that the job needs" in line for line in output)
