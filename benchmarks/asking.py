"""The fan-out alone: every node is asked, nothing is judged or shown.

    python -m benchmarks.asking INVENTORY KNOWN_HOSTS CHECKS WINDOW [--stock]

--stock: over paramiko's own transport, as with a paramiko that the fast way cannot use.
"""

import os
import sys
from pathlib import Path

from clustercheck import planning
from clustercheck.fanout import Bounds, Fanout
from clustercheck.planning import Wanted
from clustercheck.transport import ssh, threadless
from clustercheck.transport.settings import SshSettings


def main() -> None:
    inventory, known_hosts, checks, window = sys.argv[1:5]
    if "--stock" in sys.argv:
        ssh.MISSING = threadless.MISSING = ("left out on purpose",)  # type: ignore[attr-defined]
    chosen = planning.choose(Wanted(inventory=Path(inventory), checks=checks))
    transport = ssh.Ssh(SshSettings(config=(os.devnull,), known_hosts=(known_hosts,), agent=False))
    planning.parallel(int(window), len(chosen.nodes))
    plan = planning.plan(chosen, chosen.nodes, transport, Bounds(int(window), 600), None)
    jobs = [plan.job(node, plan.asked(node)) for node in plan.nodes]
    for answer in Fanout(plan.frame(), plan.bounds).answers(jobs, None):
        print("- done" if not answer.code else f"{answer.node}: {answer.message}")


if __name__ == "__main__":
    main()
