"""Words into lines of a given width, measured as a terminal shows them: 節 takes two columns."""

import re

# A word with the blank or, in a list of names, the comma that it ends with; a number goes with its
# unit.
_UNIT = r"(?:%|[mµn]?s|min|h|days|[KMGT]?i?B|[KMGT]B/s)"
_WORD = re.compile(rf"(?:[^ ,]*\d {_UNIT}(?![\w/])|)[^ ,]*(?:,| +|$)")


def wide(text: str) -> int:
    """Columns that `text` takes on a terminal; it must be free of control characters."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # not at the top: its tables take their time

    return max(0, wcswidth(text))


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` columns (2 or more), broken at blanks and after commas.

    What is longer than a line is broken anywhere. Nothing but blanks at a break is left out.
    """
    lines: list[str] = []
    line = ""
    for word in _WORD.findall(text):
        if wide(line) + wide(word.rstrip(" ")) <= width:
            line += word
            continue
        if line.strip(" "):
            lines.append(line.rstrip(" "))
        line = word
        while wide(line.rstrip(" ")) > width:
            cut = _fitting(line, width)
            lines.append(line[:cut])
            line = line[cut:]
    if line.strip(" ") or not lines:
        lines.append(line.rstrip(" "))
    return lines


def _fitting(text: str, width: int) -> int:
    """How many characters of `text` fit, one at least."""
    if text.isascii():
        return width
    cut = 1
    while cut < len(text) and wide(text[: cut + 1]) <= width:
        cut += 1
    return cut


def indented(text: str, width: int, first: str, rest: str) -> list[str]:
    """`text` wrapped after `first` in the first line and after `rest` in the others."""
    lines = wrap(text, width - max(len(first), len(rest)))
    return [first + lines[0], *(rest + line for line in lines[1:])]
