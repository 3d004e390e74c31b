"""The report as a table for spreadsheets and scripts: a row for each finding."""

import csv
import io
import math

from clustercheck.render.escape import cell
from clustercheck.report import Report, each

COLUMNS = (
    "node",
    "check",
    "code",
    "status",
    "message",
    "peer",
    "value",
    "unit",
    "remedy",
    "see",
    "disturbs",
)


def render(report: Report) -> str:
    """A header, then a row for each finding, in the report's order; lines end in a line feed.

    value is a number, or empty where it is not finite; every other cell is text that no
    spreadsheet takes for a formula.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for node, check, finding in each(report):
        remedy = finding.remedy
        value = finding.value if finding.value and math.isfinite(finding.value.number) else None
        writer.writerow(
            (
                cell(node),
                cell(check),
                cell(f"{check}.{finding.code}"),
                finding.status.value,
                cell(finding.message),
                cell(finding.peer),
                value.number if value else "",
                cell(value.unit) if value else "",
                cell(remedy.text) if remedy else "",
                cell(remedy.see) if remedy else "",
                ("yes" if remedy.disturbs else "no") if remedy else "",
            )
        )
    return out.getvalue()
