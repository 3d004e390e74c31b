"""JSON lines: one for each node as soon as it is judged, and a summary at the end."""

from collections.abc import Callable

from clustercheck.render import json
from clustercheck.render.escape import sound
from clustercheck.report import NodeResult, Report

NODE = "clustercheck.node/1"
SUMMARY = "clustercheck.summary/1"


class Stream:
    """Writes the lines as results come. One thread at a time.

    What only shows between nodes is known at the end: `finish` writes a node again whose result
    has changed. The last line of a node holds.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._written: dict[str, NodeResult] = {}

    def node(self, result: NodeResult) -> None:
        """Write a node's line."""
        self._written[result.node] = result
        line = {"schema": NODE, "node": sound(result.node), **json.node(result)}
        self._write(json.dumps(line) + "\n")

    def finish(self, report: Report) -> None:
        """Write the nodes that are new or different in the report, then the summary."""
        for result in report.nodes.values():
            if self._written.get(result.node) != result:
                self.node(result)
        self._write(json.dumps({"schema": SUMMARY, **json.head(report)}) + "\n")


def render(report: Report) -> str:
    """All the lines of a report that is complete."""
    lines: list[str] = []
    Stream(lines.append).finish(report)
    return "".join(lines)
