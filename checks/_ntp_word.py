"""What a time daemon says, in one form for all daemons."""

import math
import re
from dataclasses import dataclass
from enum import Enum


class NotUnderstood(Exception):
    """A daemon's answer that cannot be read; the message says what of it."""


class State(Enum):
    """What a daemon thinks of one of its sources."""

    SELECTED = "selected"
    GOOD = "good"
    FALSETICKER = "falseticker"
    VARIABLE = "too variable"
    SILENT = "silent"
    UNUSABLE = "answers, but is not used"


@dataclass(frozen=True)
class Source:
    """A server, peer or reference clock that a daemon follows, and what it thinks of it."""

    name: str
    state: State


@dataclass(frozen=True)
class Word:
    """A daemon's word on the clock.

    daemon: its name, as ps shows it.
    synchronised: by the daemon's own account; `why` says why not, in the daemon's terms.
    by_itself: it follows the node's own undisciplined clock, so it is synchronised by name only.
    server, stratum: what it follows; "" and 0 where that is not told.
    offset: seconds by which the node's clock is ahead, by the daemon's own account.
    bound: seconds by which that may be wrong (root dispersion + root delay / 2).
    lasting: `offset` is what remains now, not what the last answer showed before it was corrected.
    sources: None where they were not told.
    """

    daemon: str
    synchronised: bool
    why: str = ""
    by_itself: bool = False
    server: str = ""
    stratum: int = 0
    offset: float | None = None
    bound: float | None = None
    lasting: bool = True
    sources: tuple[Source, ...] | None = None


def number(text: str, what: str) -> float:
    """A finite number; raises NotUnderstood with `what` it should have been."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise NotUnderstood(f"{what} is {text!r}, which is no number")
    return value


def first_line(text: str) -> str:
    """What a tool said, for a message: its first line that is not empty, cut at 100 characters."""
    return next((line.strip()[:100] for line in text.splitlines() if line.strip()), "")


# How the tools say that nobody is there, that they may not ask, or that they are too old to.
_NO_ANSWER = re.compile(
    r"no answer|not running|cannot talk|not authori[sz]ed|refused|timed out|time-?out|failed to"
    r"|could not|can't|unable|unknown (operation|command)|no such file|not found|not been booted"
    r"|permission denied",
    re.IGNORECASE,
)


def is_no_answer(text: str) -> bool:
    """Does the tool's text say that the daemon gave no answer?"""
    return not text.strip() or bool(_NO_ANSWER.search(text))
