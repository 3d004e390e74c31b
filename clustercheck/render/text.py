"""The report as a table for people, with what to do below it."""

from clustercheck.check import Status
from clustercheck.fold import fold, shorten
from clustercheck.render.escape import visible
from clustercheck.render.layout import indented, wide, wrap
from clustercheck.render.view import DISTURBS, LOOK_FIRST, Row, Step, summary, view
from clustercheck.report import Report

NARROWEST, WIDEST = 40, 200

# Below this width, a finding stands under its check and nodes, not beside them.
BESIDE = 70

# Characters of a node set before it is cut; --verbose shows it whole.
NODES_LONGEST = 120

_GAP = 2  # blanks that tabulate puts between columns
_PAD = 2  # by which it makes a column wider than its heading
_STATUS = max(*(len(status.value) for status in Status), len("status") + _PAD)

# The word is always there as well: colour alone would say nothing to many people.
_COLOURS = {
    Status.PASS: "32",
    Status.SKIP: "2",
    Status.WARN: "33",
    Status.UNKNOWN: "35",
    Status.FAIL: "1;31",
}


def render(report: Report, *, width: int, colour: bool, verbose: bool) -> str:
    """The table, what to do, the notes and one summary line.

    width: columns that a line has at most, but for the summary, which stays one line; what is
        below 40 or above 200 is taken as these.
    """
    width = min(max(width, NARROWEST), WIDEST)
    longest = 10**9 if verbose else NODES_LONGEST
    shown = view(report, verbose=verbose)
    several = len(report.nodes) > 1
    parts = [
        _table(shown.rows, several, width, colour, longest),
        _steps(shown.steps, several, width, longest),
        "\n".join(
            line
            for note in report.notes
            for line in indented(f"note: {visible(note)}", width, "", "  ")
        ),
        visible(summary(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _nodes(nodes: tuple[str, ...], longest: int) -> str:
    return shorten(visible(fold(nodes)), len(nodes), longest)


def _table(rows: list[Row], several: bool, width: int, colour: bool, longest: int) -> str:
    cells = []
    for row in rows:
        nodes = _nodes(row.nodes, longest) if several else ""
        remarks = [visible(row.finding)] if row.finding else []
        remarks += [f"→ {LOOK_FIRST}"] if row.common else []
        cells.append((row.status, visible(", ".join(row.checks)), nodes, remarks))
    if not cells:
        return ""
    headers = ["status", "check", "nodes", "finding"]
    if width < BESIDE:
        headers = ["status", "finding"]
        left = width - _STATUS - _GAP
        body = [
            [*wrap(f"{checks}: {nodes}" if nodes else checks, left), *_lines(remarks, left)]
            for _, checks, nodes, remarks in cells
        ]
        columns = [["\n".join(lines)] for lines in body]
    else:
        headers = headers if several else ["status", "check", "finding"]
        left = width - _STATUS - _GAP * (len(headers) - 1)
        check = min(max(wide(c) for _, c, _, _ in cells), left // 4)
        check = max(check, len("check") + _PAD)
        node = min(max(wide(n) for _, _, n, _ in cells), left // 3)
        node = max(node, len("nodes") + _PAD) if several else 0
        columns = [
            ["\n".join(wrap(checks, check))]
            + (["\n".join(wrap(nodes, node))] if several else [])
            + ["\n".join(_lines(remarks, left - check - node))]
            for _, checks, nodes, remarks in cells
        ]
    table = [
        [_word(status, colour), *column]
        for (status, _, _, _), column in zip(cells, columns, strict=True)
    ]
    from tabulate import tabulate  # not at the top: without findings there is no table

    text = tabulate(table, headers, tablefmt="simple", disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _lines(texts: list[str], width: int) -> list[str]:
    return [line for text in texts for line in wrap(text, width)]


def _word(status: Status, colour: bool) -> str:
    return f"\x1b[{_COLOURS[status]}m{status.value}\x1b[0m" if colour else status.value


def _steps(steps: list[Step], several: bool, width: int, longest: int) -> str:
    """Each remedy once, and below it the findings and nodes that it belongs to."""
    lines = []
    for step in steps:
        text = visible(step.remedy.text)
        if step.remedy.see:
            text += f" (field notes {visible(step.remedy.see)})"
        if step.remedy.disturbs:
            text = f"[{DISTURBS}] {text}"
        lines += indented(text, width, "- ", "  ")
        for name, nodes in step.nodes_by_name.items():
            where = f" on {_nodes(nodes, longest)}" if several else ""
            lines += indented(f"for {visible(name)}{where}", width, "  ", "    ")
    return "\n".join(["What to do", *lines]) if lines else ""
