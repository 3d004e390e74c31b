"""The report in Markdown, fit for a ticket."""

from tabulate import tabulate

from clustercheck.fold import fold
from clustercheck.render.escape import markdown
from clustercheck.render.view import DISTURBS, LOOK_FIRST, Row, Step, summary, view
from clustercheck.report import Report


def render(report: Report, *, verbose: bool) -> str:
    """The table in GitHub's form, what to do, the notes and the summary line."""
    shown = view(report, verbose=verbose)
    several = len(report.nodes) > 1
    headers = ["status", "check", *(["nodes"] if several else []), "finding"]
    table = [
        [
            row.status.value,
            markdown(", ".join(row.checks)),
            *([markdown(fold(row.nodes))] if several else []),
            _finding(row),
        ]
        for row in shown.rows
    ]
    parts = [
        tabulate(table, headers, tablefmt="github", disable_numparse=True) if table else "",
        _steps(shown.steps, several),
        "\n".join(f"note: {markdown(note)}  " for note in report.notes),
        markdown(summary(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _finding(row: Row) -> str:
    hint = f"**{LOOK_FIRST}**" if row.common else ""
    return "<br>".join(part for part in (markdown(row.finding), hint) if part)


def _steps(steps: list[Step], several: bool) -> str:
    lines = []
    for step in steps:
        text = markdown(step.remedy.text)
        if step.remedy.see:
            text += f" (field notes {markdown(step.remedy.see)})"
        if step.remedy.disturbs:
            text = f"**{DISTURBS}:** {text}"
        lines.append(f"- {text}")
        for name, nodes in step.nodes_by_name.items():
            where = f" on {markdown(fold(nodes))}" if several else ""
            lines.append(f"  - for {markdown(name)}{where}")
    return "\n".join(["**What to do**", "", *lines]) if lines else ""
