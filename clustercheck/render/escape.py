"""Text from nodes is data: to no terminal, ticket or spreadsheet does it come as a command.

A message may hold what a node printed: colours, cursor moves, a title change, text that runs from
right to left, line breaks that would pose as rows of the report.
"""

import re

_MARKDOWN = re.compile(r"[\\`*_\[\]|~#!]")
_LIST = re.compile(r"^([0-9]+(?=[.)])|(?=[-+]))")  # a list within the list it stands in
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

# What begins a formula in a spreadsheet, the full-width forms too.
_FORMULA = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")


def visible(text: str) -> str:
    """`text` in one line, with all that does not print shown as an escape: \\n, \\x1b, \\u202e.

    Escaped are control characters, format characters (bidirectional overrides, zero-width ones),
    line and paragraph separators, blanks other than the space, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def markdown(text: str) -> str:
    """`text` so that Markdown shows just it: no markup, no HTML, no new cell, no link."""
    text = _MARKDOWN.sub(r"\\\g<0>", visible(text).strip(" "))
    text = _LIST.sub(r"\1\\", text)
    return "".join(_HTML.get(c, c) for c in text)


def cell(text: str) -> str:
    """`text` as a cell of a CSV file, which a spreadsheet will not take for a formula."""
    harmless = f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
    return visible(harmless)


def sound(text: str) -> str:
    """`text` as JSON can carry it: lone surrogates, which no decoder need accept, as escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
