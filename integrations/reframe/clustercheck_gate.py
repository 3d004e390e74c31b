"""ReFrame tests that run on nodes which are fit for them.

Put this file where ReFrame's tests find it (PYTHONPATH), and derive:

    import reframe as rfm
    from clustercheck_gate import Gated

    @rfm.simple_test
    class Stream(rfm.RunOnlyRegressionTest, Gated):
        gate_words = ["--partition", "gpu", "--profile", "benchmark"]

Before the test is submitted, `clustercheck gate` is asked for as many nodes as the job needs. Nodes
that are not fit are excluded; where too few are left, or nothing could be found out, the test fails
and says why. It does not skip: with skipped tests alone ReFrame ends with 0, as if all was well.
The gate's answers are kept (`--max-age`), so a session with many tests asks the nodes once.
"""

import json
import subprocess
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_before, variable
from reframe.core.exceptions import ReframeError
from reframe.utility.typecheck import List as ListOf


class Gated(rfm.RegressionMixin):
    """A test whose job leaves out nodes that are not fit.

    gate_words: what `clustercheck gate` is given: which nodes, what profile, how old an answer may
        be.
    gate_need: nodes that the job needs; 0 for as many as its tasks make.
    gate_command: the command and what stands before its own words.
    """

    gate_words = variable(ListOf[str], value=[])
    gate_need = variable(int, value=0)
    gate_command = variable(ListOf[str], value=["clustercheck", "gate"])

    @run_before("run")
    def leave_out_unfit_nodes(self) -> None:
        """Raises ReframeError where the gate does not open."""
        need = self.gate_need or nodes_of(self.num_tasks, self.num_tasks_per_node)
        verdict = ask([*self.gate_command, *self.gate_words, "--need", str(need)])
        slurm = verdict["slurm"]  # None where there is no Slurm
        if slurm and slurm["exclude"]:
            self.job.options += [f"--exclude={slurm['exclude']}"]


def nodes_of(tasks: int, tasks_per_node: "int | None") -> int:
    """How many nodes a job's tasks take; one where ReFrame is to find out itself."""
    return max(1, -(-tasks // (tasks_per_node or 1)))


def ask(command: list[str]) -> Any:
    """The gate's verdict, where it is "go"."""
    done = subprocess.run(
        [*command, "--format", "json"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = done.stderr.strip() or "no word of it"
        raise ReframeError(f"the gate is shut (exit code {done.returncode}): {said}")
    return json.loads(done.stdout)
