"""What a stream can show: its width and whether colour is wanted there."""

import os
from collections.abc import Mapping
from typing import NamedTuple, TextIO

WIDTH_ELSEWHERE = 100


class Look(NamedTuple):
    """width: columns. colour: terminal colours are understood and wanted."""

    width: int
    colour: bool


def look(stream: TextIO, environ: Mapping[str, str]) -> Look:
    """How to write for people on `stream`.

    Not a terminal: 100 columns, no colour. COLUMNS overrides the width of a terminal. Colour:
    NO_COLOR switches it off, else FORCE_COLOR on, whatever the stream; else a terminal has it
    unless TERM is "dumb" or unset.
    """
    terminal = is_terminal(stream)
    width = _columns(stream, environ) if terminal else WIDTH_ELSEWHERE
    if environ.get("NO_COLOR"):
        return Look(width, False)
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return Look(width, True)
    return Look(width, terminal and moves_cursor(environ))


def is_terminal(stream: TextIO) -> bool:
    """False for a closed stream, too."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def moves_cursor(environ: Mapping[str, str]) -> bool:
    """The terminal understands escape sequences."""
    return environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int:
    said = environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and 0 < int(said) < 10_000:
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_ELSEWHERE
    except (OSError, ValueError):
        return WIDTH_ELSEWHERE
