#!/usr/bin/env python3
"""Slurm's HealthCheckProgram and Prolog: drains a node that fails its checks, and says why.

    node_health.py [--prolog] [--checks CHECK,…] [--inventory FILE] [--share PERCENT]

It runs on the node, as root, and checks that node alone, with `clustercheck run`. It takes no
more than what a Python brings. Slurm calls such programs without arguments: write two lines

    #!/bin/sh
    exec /opt/clustercheck/integrations/slurm/node_health.py --checks tmp,nfs,mounts,gpu

and name that file in slurm.conf. See README.md in this folder.

- FAIL drains, with a reason of its own: "clustercheck: nfs.hung, tmp.space".
- What is UNKNOWN drains nobody, and resumes nobody. A clustercheck that cannot run is UNKNOWN.
- Where a node has a reason already that is not ours, it stays as it is.
- A node is resumed only if the reason is ours, and no check fails or is UNKNOWN any more.
- No more than a share of all nodes is drained by it at any time, and one at least: where most nodes
  fail, something that they share is at fault, and a cluster without nodes is worse.

Exit code: 0; with --prolog 1 where the node is drained for what fails, so that the job does not
start here. Slurm then requeues the job. It is 0 too where nothing could be found out, and where the
node fails and is not drained: for a 1 Slurm itself would drain it, whatever the share.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

OURS = "clustercheck: "
CHECKS = "disk,gpu,gpu_health,ib,link,memory,mounts,munge,nfs,ntp,processes,services,tmp"
SECONDS = 50  # Slurm ends a HealthCheckProgram after 60
LONGEST_REASON = 200
SETTLED_SECONDS = 2.0  # nodes that fail at the same time have all drained themselves by then


class NodeState(NamedTuple):
    """A node as Slurm has it. since: when its reason was set, as text that sorts."""

    name: str
    state: str
    reason: str
    since: str

    @property
    def ours(self) -> bool:
        """Drained by this program."""
        return self.reason.startswith(OURS) and "drain" in self.state.lower()


class Trouble(Exception):
    """Something could not be found out; the text says what."""


def main() -> int:
    """One check of this node."""
    given = arguments()
    os.environ.setdefault("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin")  # Prolog has none
    try:
        failed, unknown = checked(given)
        said, drained = act(given, failed, unknown)
    except Trouble as trouble:
        print(f"node_health: {trouble}; nothing is changed", file=sys.stderr)
        return 0
    except Exception:  # a fault of ours: as a Prolog it would keep every job from every node
        traceback.print_exc()
        return 0
    if said:
        print(f"node_health: {said}", file=sys.stderr)
    return 1 if given.prolog and drained else 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Drain this node where a check fails.")
    parser.add_argument("--prolog", action="store_true", help="exit 1 where the node is drained")
    parser.add_argument("--checks", default=CHECKS, help=f"by comma; default {CHECKS}")
    parser.add_argument("--inventory", help="with options for the checks")
    parser.add_argument(
        "--share", type=float, default=5, help="percent of all nodes that it may drain; default 5"
    )
    parser.add_argument(
        "--node", default=os.environ.get("SLURMD_NODENAME", ""), help="this node's name in Slurm"
    )
    parser.add_argument("--clustercheck", default="clustercheck", help="the command")
    return parser.parse_args()


def checked(given: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The codes that fail on this node, and those that are not known."""
    words = [given.clustercheck, "run", "-c", given.checks, "--format", "json"]
    words += ["--max-time", str(SECONDS)]
    if given.inventory:  # for its options alone: this machine is asked, whatever nodes are there
        words += ["-i", given.inventory, "-w", "localhost"]
    answer = output(words, SECONDS + 5, good=(0, 1, 2, 3))
    try:
        (node,) = json.loads(answer)["nodes"].values()
        found: list[dict[str, Any]] = [
            finding for check in node["checks"].values() for finding in check["findings"]
        ]
        codes = {
            status: list(dict.fromkeys(one["code"] for one in found if one["status"] == status))
            for status in ("pass", "warn", "unknown", "fail")
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Trouble(f"clustercheck's report cannot be read ({error})") from None
    if not any(codes.values()):
        codes["unknown"] = ["nothing was checked"]
    return codes["fail"], codes["unknown"]


def act(
    given: argparse.Namespace, failed: Sequence[str], unknown: Sequence[str]
) -> tuple[str, bool]:
    """Drain or resume this node, or leave it; what was done, and whether it is drained for what
    fails."""
    nodes = states()
    name = given.node or own_name(nodes)
    if name not in nodes:
        raise Trouble(f"Slurm knows no node {name!r}; name it by --node")
    here = nodes[name]
    reason = (OURS + ", ".join(failed))[:LONGEST_REASON]
    if failed:
        if here.reason and not here.ours:
            return f"fails ({', '.join(failed)}), and is left as it is: {here.reason}", False
        if here.reason == reason:
            return "", True
        if here.ours:
            update(name, "DRAIN", reason)
            return f"is drained, for another reason than before: {reason}", True
        return drain(name, reason, len(nodes), given.share)
    if here.ours and not unknown:
        update(name, "RESUME")
        return f"is resumed: nothing fails any more of {here.reason.removeprefix(OURS)}", False
    if here.ours:
        return f"stays drained: {', '.join(unknown)} could not be found out", False
    return "", False


def drain(name: str, reason: str, total: int, share: float) -> tuple[str, bool]:
    """Drain the node, unless so many are drained by us that one more would be too many.

    Many nodes may fail at the same moment, and each sees the others only after it is drained:
    so each looks again, and those that were not among the first take it back.
    """
    most = max(1, int(total * share / 100))
    too_many = f"is not drained: {most} of {total} nodes are already, as --share {share:g} allows"
    if sum(one.ours for one in states().values()) >= most:
        return f"fails ({reason.removeprefix(OURS)}), and {too_many}", False
    update(name, "DRAIN", reason)
    time.sleep(SETTLED_SECONDS)
    nodes = states()
    drained = sorted((one.since, one.name) for one in nodes.values() if one.ours)
    if (nodes[name].since, name) in drained[most:]:
        update(name, "RESUME")
        return f"fails ({reason.removeprefix(OURS)}), and {too_many}", False
    return f"is drained: {reason}", True


def states() -> dict[str, NodeState]:
    """All nodes of the cluster."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N\x1f%T\x1f%H\x1f%E", "--all"]
    found = {}
    for line in output(words, 15).splitlines():
        name, state, since, reason = (part.strip() for part in line.split("\x1f", 3))
        found[name] = NodeState(name, state, "" if reason in ("none", "") else reason, since)
    return found


def own_name(nodes: Sequence[str] | dict[str, NodeState]) -> str:
    """This node's name in Slurm, where slurmd does not tell."""
    host = socket.gethostname()
    return host if host in nodes else host.partition(".")[0]


def update(name: str, state: str, reason: str = "") -> None:
    """Have Slurm change the node's state."""
    words = ["scontrol", "update", f"NodeName={name}", f"State={state}"]
    output([*words, f"Reason={reason}"] if reason else words, 15)


def output(words: Sequence[str], seconds: float, good: Sequence[int] = (0,)) -> str:
    """What a command says; Trouble where it fails, or takes too long."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"{words[0]}: {error}") from None
    if done.returncode not in good:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no word of it"])[-1]
        raise Trouble(f"{words[0]} ended with {done.returncode}: {last}")
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
