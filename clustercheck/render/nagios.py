"""The report as a monitoring plug-in writes it: a line, figures, and more lines.

The form is that of the Monitoring Plugins' guidelines, which Nagios, Icinga and others read. The
exit code, which they go by, is the report's own in every form.
"""

import math
from collections.abc import Iterator

from clustercheck.check import Finding, Status
from clustercheck.fold import fold, shorten
from clustercheck.render.escape import visible
from clustercheck.render.view import sentence
from clustercheck.report import TROUBLE, Group, Report, groups

WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}

# Nagios reads 8 KiB of a plug-in's output and drops the rest without a word.
MOST = 8_000

# Names of findings in the first line, characters of a node set, and of a further line.
NAMED = 3
NODES_LONGEST = 60
LINE_LONGEST = 500

# The units of the guidelines; figures in another one have none.
UNITS = {"s", "ms", "us", "%", "B", "KB", "MB", "GB", "TB"}


def render(report: Report) -> str:
    """The line with its figures, then what is wrong, the worst first."""
    folded = [group for group in groups(report) if group.status in TROUBLE]
    first = f"CLUSTERCHECK {WORDS[report.exit_code]} - {_told(report, folded)}"
    lines = [f"{_plain(first)} | {' '.join(_within(_figures(report)))}"]
    room = MOST - len(lines[0].encode())
    for number, group in enumerate(folded):
        line = _plain(f"{group.status.value} {group.name}{_on(report, group)}: {sentence(group)}")
        line = line if len(line) <= LINE_LONGEST else line[: LINE_LONGEST - 1] + "…"
        room -= len(line.encode()) + 1
        if room < 100:
            lines.append(f"… {len(folded) - number} more")
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def _told(report: Report, folded: list[Group]) -> str:
    counts = ", ".join(
        f"{report.counts[status]} {status.value}"
        for status in sorted(Status, reverse=True)
        if report.counts[status]
    )
    parts = [f"{len(report.nodes)} node{'s' * (len(report.nodes) != 1)}: {counts or 'none'}"]
    names = list(dict.fromkeys(group.name for group in folded))
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        parts.append(", ".join(names[:NAMED]) + more)
    if report.nothing_checked:
        parts.append("nothing was checked")
    if report.stopped:
        parts.append(f"stopped early: {report.stopped}")
    return "; ".join(parts)


def _on(report: Report, group: Group) -> str:
    if len(report.nodes) == 1:
        return ""
    return f" on {shorten(fold(group.nodes), len(group.nodes), NODES_LONGEST)}"


def _plain(text: str) -> str:
    """In one line, and without the bar, which would begin the figures."""
    return visible(text).replace("|", "¦")


def _figures(report: Report) -> Iterator[str]:
    total = len(report.nodes)
    for status, count in report.counts.items():
        yield f"{status.value}={count};;;0;{total}"
    if math.isfinite(report.seconds):
        yield f"time={report.seconds:.3f}s;;;0;"
    if total == 1:  # of many nodes they are too many
        (result,) = report.nodes.values()
        found: dict[str, str] = {}
        for check, findings in result.findings.items():
            for finding in findings:
                if figure := _figure(finding):
                    found.setdefault(_label(f"{check}.{finding.code}", finding.peer), figure)
        yield from (f"{label}={figure}" for label, figure in found.items())


def _within(figures: Iterator[str]) -> Iterator[str]:
    """As many whole figures as leave room for the rest."""
    room = MOST // 2
    for figure in figures:
        room -= len(figure.encode()) + 1
        if room < 0:
            return
        yield figure


def _figure(finding: Finding) -> str:
    value = finding.value
    if value is None or not math.isfinite(value.number):
        return ""
    return f"{value.number:.12g}{value.unit if value.unit in UNITS else ''}"


def _label(name: str, peer: str) -> str:
    text = _plain(f"{name} {peer}" if peer else name)
    return "'" + text.replace("'", "_").replace("=", "_") + "'"
