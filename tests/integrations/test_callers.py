"""Programs that call the gate, on a real Slurm of six nodes of which n2 and n5 are sick."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.slurm_cluster import SlurmCluster
from tests.test_gate import Gate, gate, machines
from tools.fetch import PROJECT

__all__ = ["gate", "machines"]

SBATCH_GATED = PROJECT / "integrations/slurm/sbatch-gated"
REFRAME = Path(sys.executable).with_name("reframe")


@pytest.fixture
def command(gate: Gate, tmp_path: Path) -> Path:
    """A clustercheck whose gate looks at these nodes."""
    program, _, rest = shlex.join(gate.words).partition(" gate ")
    path = tmp_path / "clustercheck"
    path.write_text(f'#!/bin/sh\nshift\nexec {program} gate {rest} "$@"\n')
    path.chmod(0o755)
    return path


def job(slurm: SlurmCluster, *lines: str) -> Path:
    script = slurm.home / "job.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, 'echo "$SLURM_JOB_NODELIST"', ""]))
    return script


def gated(slurm: SlurmCluster, command: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, the job's output and what stands on standard error."""
    where = (f"--output={slurm.home}/job.out", "--wait")
    before, rest = words[: words.index("--") + 1], words[words.index("--") + 1 :]
    done = slurm.run(
        *("sh", str(SBATCH_GATED), *before, *where, *rest), env={"CLUSTERCHECK": str(command)}
    )
    output = slurm.home / "job.out"
    return done.returncode, output.read_text() if output.exists() else "", done.stderr


def test_sbatch_leaves_out_what_is_not_fit_and_what_the_user_leaves_out(
    slurm: SlurmCluster, command: Path
) -> None:
    script = job(slurm, "#SBATCH -N2 --exclude=n3")
    status, output, said = gated(
        slurm, command, "-w", "n[1-6]", "--need", "2", "--", "-x", "n1", str(script)
    )
    assert status == 0, said
    assert output == "n[4,6]\n"
    assert "go: 4 of 6 nodes are healthy; 2 are needed" in said


def test_nothing_is_submitted_through_a_shut_gate(slurm: SlurmCluster, command: Path) -> None:
    script = job(slurm)
    before = slurm.run("squeue", "-h", "-t", "all").stdout
    status, output, said = gated(slurm, command, "-w", "n[1-6]", "--need", "5", "--", str(script))
    assert (status, output) == (1, "")
    assert "no-go: 4 of 6 nodes are healthy; 5 are needed" in said
    assert slurm.run("squeue", "-h", "-t", "all").stdout == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-w", "n1"],
            "sbatch-gated: write -- between what is for the gate and what is for sbatch",
        ),
        (["-w", "n1", "--"], "sbatch-gated: after -- there is nothing for sbatch"),
    ],
)
def test_words_that_are_lacking(
    words: list[str], said: str, slurm: SlurmCluster, command: Path
) -> None:
    done = slurm.run("sh", str(SBATCH_GATED), *words, env={"CLUSTERCHECK": str(command)})
    assert done.returncode == 64
    assert done.stderr.splitlines()[-1] == said


TEST = """
import reframe as rfm
import reframe.utility.sanity as sn
from clustercheck_gate import Gated

@rfm.simple_test
class Host(rfm.RunOnlyRegressionTest, Gated):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "hostname"
    num_tasks = {tasks}
    num_tasks_per_node = 1
    gate_command = [{command!r}, "gate"]
    gate_words = ["-w", "n[1-6]"]

    @run_before("run")
    def show(self):
        self.prerun_cmds = ["echo nodes $SLURM_JOB_NODELIST"]

    @sanity_function
    def ran_on_good_nodes(self):
        return sn.assert_found(r"^nodes n\\[1,3-4,6\\]$", self.stdout)
"""

SETTINGS = """
site_configuration = {"systems": [{"name": "tests", "hostnames": [".*"], "partitions": [
    {"name": "main", "scheduler": "squeue", "launcher": "srun", "environs": ["builtin"]}]}]}
"""


@pytest.mark.parametrize(("tasks", "status"), [(4, 0), (5, 1)])
def test_reframe(
    tasks: int, status: int, slurm: SlurmCluster, command: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS)
    (tmp_path / "test.py").write_text(TEST.format(tasks=tasks, command=str(command)))
    done = slurm.run(
        *(str(REFRAME), "-C", str(tmp_path / "settings.py"), "-c", str(tmp_path / "test.py")),
        *("-r", "--nocolor", "--prefix", str(slurm.home / "reframe")),
        env={
            "PYTHONPATH": str(PROJECT / "integrations/reframe"),
            "RFM_REPORT_FILE": str(tmp_path / "report.json"),
            "RFM_LOG_FILES": str(tmp_path / "log"),
        },
    )
    assert done.returncode == status, done.stdout + done.stderr
    if status:
        assert "Reason: reframe error: the gate is shut (exit code 1): " in done.stdout
        assert "no-go: 4 of 6 nodes are healthy; 5 are needed" in done.stdout
    else:
        assert "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)" in done.stdout
