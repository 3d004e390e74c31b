"""The report as one page for a browser: it opens from disk, and nothing in it asks the network.

All can be read without JavaScript. The script only filters, and opens what a link leads to.
"""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clustercheck import __version__
from clustercheck.changes import Night
from clustercheck.check import Status
from clustercheck.render.escape import visible
from clustercheck.render.html_view import BAR, page
from clustercheck.render.view import DISTURBS, LOOK_FIRST
from clustercheck.report import TROUBLE, Report

# What a status looks like: a letter for its class of style, and a sign, since colour alone would
# say nothing to many people.
LETTERS = {status: status.value[0] for status in Status}
SIGNS = {
    Status.PASS: "✓",
    Status.SKIP: "–",
    Status.WARN: "!",
    Status.UNKNOWN: "?",
    Status.FAIL: "✗",
}

# Characters of one text from a node before it is cut.
LONGEST = 2_000


def render(shown: Report | Night) -> str:
    """The page of a report, or of a night with what changed and how values went."""
    return _environment().get_template("page.html").render(page=page(shown)) + "\n"


def _safe(value: object) -> object:
    """What stands in braces, before it is escaped: a text from a node in one line, and no page."""
    if type(value) is not str:  # Markup is ours
        return value
    if len(value) > LONGEST:
        value = f"{value[:LONGEST]}… ({len(value):,} characters)"
    return visible(value)


def _coded(text: str) -> Markup:
    """What stands in `backticks` as code."""
    parts = str(_safe(text)).split("`")
    if len(parts) % 2 == 0:  # the last one begins nothing
        parts[-2:] = ["`".join(parts[-2:])]
    code, plain = Markup("<code>{}</code>"), Markup("{}")
    return Markup("").join(
        (code if place % 2 else plain).format(part) for place, part in enumerate(parts)
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("clustercheck.render", "page"),
        autoescape=True,
        finalize=_safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = _coded
    made.filters["whole"] = lambda text: Markup.escape(visible(text))  # it is to be copied
    style, script = _file("page.css"), _file("page.js")
    shared: dict[str, Any] = {
        "version": __version__,
        "letter": {status: Markup(letter) for status, letter in LETTERS.items()},
        "sign": {status: Markup(sign) for status, sign in SIGNS.items()},
        "badge": {status: _badge(status) for status in Status},
        "statuses": sorted(Status, reverse=True),
        "trouble": set(TROUBLE),
        "bar": BAR + 1,
        "disturbs": DISTURBS,
        "look_first": LOOK_FIRST,
        "style": Markup(style),
        "style_hash": _hash(style),
        "script": Markup(script),
        "script_hash": _hash(script),
    }
    made.globals.update(shared)
    return made


def _badge(status: Status) -> Markup:
    sign = f'<span aria-hidden="true">{SIGNS[status]}</span>'
    return Markup(f'<span class="badge {LETTERS[status]}">{sign} {status.value}</span>')


def _file(name: str) -> str:
    return resources.files("clustercheck.render").joinpath("page", name).read_text("utf-8")


def _hash(text: str) -> str:
    """As the page's policy names what may stand in it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
