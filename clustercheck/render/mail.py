"""The mail of a sweep as text, as HTML and as a few lines for a chat.

All are made of the same `Content`. What comes from nodes is made harmless here for the text, and by
the template for the HTML.
"""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from clustercheck.check import Remedy
from clustercheck.render.escape import visible
from clustercheck.render.layout import indented
from clustercheck.render.mail_content import ITSELF, TITLES, WHOLE, Content, Entry
from clustercheck.render.view import DISTURBS

if TYPE_CHECKING:
    from jinja2 import Template

WIDTH = 72  # columns of the text, as mail programs show without wrapping
SHORT = 8  # entries in a chat


def text(shown: Content) -> str:
    """The text part; lines end in a line feed and have 72 columns at most, but for long names."""
    lines = indented(visible(shown.subject), WIDTH, "", "")
    for fact in shown.facts:
        lines += indented(fact, WIDTH, "", "  ")
    for section in shown.sections:
        lines += ["", section.title.upper()]
        for entry in section.entries:
            lines += _entry(entry)
        if section.more:
            lines.append(f"- and {section.more:,} more")
    lines.append("")
    for line in shown.last:
        lines += indented(line, WIDTH, "", "  ")
    return "\n".join(lines) + "\n"


def short(shown: Content) -> str:
    """A few lines for a chat: how it is as a whole, and what is new, a line each."""
    titles = [ITSELF, *(TITLES[kind] for kind in WHOLE)]
    entries = [e for section in shown.sections if section.title in titles for e in section.entries]
    lines = [*shown.facts[: SHORT // 4]]
    for entry in entries[:SHORT]:
        status = entry.status.value.upper() if entry.status else ""
        words = f"{status} {entry.name} on {entry.nodes}".strip() if entry.name else entry.nodes
        more = (
            f": {entry.message}" if entry.message else f", {entry.remark}" if entry.remark else ""
        )
        lines.append(words + more)
    if len(entries) > SHORT:
        lines.append(f"and {len(entries) - SHORT:,} more")
    return "\n".join(lines)


def html(shown: Content) -> str:
    """The HTML part: it loads nothing, and needs no style to be read."""
    return _template().render(shown=shown, disturbs=DISTURBS)


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    source = resources.files("clustercheck").joinpath("data/mail.html").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


def _entry(entry: Entry) -> list[str]:
    first = " ".join(
        part
        for part in (
            entry.status.value.upper() if entry.status else "",
            entry.name,
            f"on {entry.nodes}" if entry.nodes and entry.name else entry.nodes,
        )
        if part
    )
    lines = indented(f"{first}{f', {entry.remark}' if entry.remark else ''}", WIDTH, "- ", "  ")
    if entry.message:
        lines += indented(entry.message, WIDTH, "  ", "  ")
    if entry.as_above:
        lines += indented(f"What to do: as above for {entry.as_above}.", WIDTH, "  ", "    ")
    elif entry.remedy:
        lines += indented(f"What to do: {_remedy(entry.remedy)}", WIDTH, "  ", "    ")
    return lines


def _remedy(remedy: Remedy) -> str:
    disturbs = f"[{DISTURBS}] " if remedy.disturbs else ""
    see = f" (field notes {remedy.see})" if remedy.see else ""
    return f"{disturbs}{remedy.text}{see}"
