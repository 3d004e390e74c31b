"""A probe so small that it costs next to nothing: has the node booted or worked since last time?

It stands in where there is no Slurm to say so. The boot's number comes with every answer.
"""

from collections.abc import Iterator

from clustercheck.answer import Answer
from clustercheck.check import Check, Code, Facts, Finding, NoOptions, ok
from clustercheck.freshness import NodeState

NAME = "node_use"

# /proc/stat counts in USER_HZ, which is 100 wherever Linux runs nodes (time(7)).
TICKS = 100

PROBE = r"""
if read -r _ user nice system _ _ irq softirq steal _ <"$ROOT/proc/stat"; then
    fact cpu "$((user + nice + system + ${irq:-0} + ${softirq:-0} + ${steal:-0}))"
fi
"""


def judge(facts: Facts, options: NoOptions) -> Iterator[Finding]:
    yield ok("seen", f"{facts['cpu']} ticks of work since the boot")


CHECK = Check(
    title="what a node has worked since its boot",
    options=NoOptions(),
    judge=judge,
    codes={"seen": Code("What its processors have worked since the boot.")},
    probe=PROBE,
    limit=5,
)


def state(answer: Answer) -> NodeState | None:
    """What the node has said of its boot and its work; None where it has not."""
    told = answer.told.get(NAME)
    ticks = told.facts.get("cpu", "") if told and told.whole else ""
    if not answer.boot_id:
        return None
    cpu = int(ticks) / TICKS if ticks.isdecimal() and len(ticks) < 20 else -1.0
    return NodeState(boot_id=answer.boot_id, cpu=cpu)
