"""Runs clustercheck in the laboratory's head, and reads what it reports."""

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.lab.cluster import Lab

BAD = ("warn", "unknown", "fail")


class Found(NamedTuple):
    """One finding; `see` is the section of its remedy, "" where it has none."""

    status: str
    code: str
    message: str
    see: str
    peer: str

    @property
    def brief(self) -> str:
        """As it stands in tests/lab/planted.py: "fail tmp.space §5.5"."""
        return f"{self.status} {self.code} {self.see}".rstrip()


class Report:
    """A run's report, and the exit code."""

    def __init__(self, text: str, status: int) -> None:
        self.data: dict[str, Any] = json.loads(text)
        self.status = status

    @property
    def nodes(self) -> list[str]:
        return list(self.data["nodes"])

    def findings(self, node: str, check: str) -> list[Found]:
        """What a check found on a node; an unreachable node's check is "access"."""
        checks = self.data["nodes"][node]["checks"]
        return [
            Found(
                found["status"],
                found["code"],
                found["message"],
                found.get("remedy", {}).get("see", ""),
                found.get("peer", ""),
            )
            for found in checks.get(check, {}).get("findings", [])
        ]

    def bad(self, node: str) -> list[Found]:
        """What is worse than pass on a node, whatever the check."""
        checks = self.data["nodes"][node]["checks"]
        return [
            found for check in checks for found in self.findings(node, check) if found.status in BAD
        ]

    def blamed(self) -> set[str]:
        """The nodes of which something is said that is worse than pass."""
        return {node for node in self.nodes if self.bad(node)}


def words(lab: Lab, *more: str) -> list[str]:
    """The command line, to be run in the head."""
    given = ["-i", str(lab.inventory), "-F", str(lab.ssh_config), "--format", "json", *more]
    return lab.in_head([sys.executable, "-m", "clustercheck", "run", *given])


def checked(lab: Lab, nodes: Iterable[str], *more: str, timeout: float = 100) -> Report:
    """What clustercheck reports of some nodes; more: of its command line."""
    command = words(lab, "-w", ",".join(nodes), *more)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout, done.stderr
    return Report(done.stdout, done.returncode)


def bad(report: Report) -> dict[str, list[str]]:
    """By node, what is worse than pass."""
    return {node: [found.brief for found in report.bad(node)] for node in report.blamed()}
