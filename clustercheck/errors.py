"""What can be wrong outside the nodes, and the exit code each kind ends with."""

import difflib
from collections.abc import Iterable


class UsageError(Exception):
    """The command line asks for something that cannot be. Exit code 64 (EX_USAGE)."""


class ConfigError(Exception):
    """An inventory or recorded run that cannot be used. Exit code 78 (EX_CONFIG).

    problems: one line each: the place ("inventory.ini:12"), what is wrong, the remedy.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word most like `word`, or "" if none is near."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""
