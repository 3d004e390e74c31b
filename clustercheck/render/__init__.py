"""Reports in the forms that people and programs read. A form shows a report and decides nothing."""

from clustercheck.report import Report

FORMS = (
    "text",
    "json",
    "jsonl",
    "csv",
    "markdown",
    "html",
    "prometheus",
    "nagios",
    "junit",
)

# What says of itself that it is UTF-8, or is read as such, whatever the locale.
UTF8 = ("csv", "html", "prometheus", "junit")


def render(
    report: Report, form: str, *, width: int = 100, colour: bool = False, verbose: bool = False
) -> str:
    """The report in one of FORMS, ending in a line feed.

    width, colour: of the text form, see `terminal.look`.
    verbose: each message, also of what passed, and whole node sets (text and Markdown; the page
        and the forms for programs always have all).
    """
    if form == "text":
        from clustercheck.render import text

        return text.render(report, width=width, colour=colour, verbose=verbose)
    if form == "json":
        from clustercheck.render import json

        return json.render(report)
    if form == "jsonl":
        from clustercheck.render import jsonl

        return jsonl.render(report)
    if form == "csv":
        from clustercheck.render import csv

        return csv.render(report)
    if form == "markdown":
        from clustercheck.render import markdown

        return markdown.render(report, verbose=verbose)
    if form == "html":
        from clustercheck.render import html

        return html.render(report)
    if form == "prometheus":
        from clustercheck.render import prometheus

        return prometheus.render(report)
    if form == "nagios":
        from clustercheck.render import nagios

        return nagios.render(report)
    if form == "junit":
        from clustercheck.render import junit

        return junit.render(report)
    raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
