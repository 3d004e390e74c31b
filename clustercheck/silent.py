"""Which nodes let a run wait for them the last time: they are asked last, when nobody waits behind.

A list of names in $XDG_STATE_HOME/clustercheck/silent, else ~/.local/state/clustercheck/silent. It
only changes the order; a run goes on without it where it cannot be read or written.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from clustercheck.errors import UsageError
from clustercheck.output import write_atomically

log = logging.getLogger(__name__)

# The causes that take their whole time limit to be seen.
CODES = {"timeout", "no_banner", "handshake", "auth_timeout", "no_start", "limit", "no_name"}
MOST = 100_000  # names


def path() -> Path:
    """The file, which need not be there."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return folder / "clustercheck" / "silent"


def read() -> set[str]:
    """The nodes that did not answer in time when they were last asked."""
    try:
        return set(path().read_text().splitlines()[:MOST])
    except (OSError, UnicodeError, RuntimeError) as error:
        log.debug("no list of silent nodes: %s", error)
        return set()


def write(before: set[str], codes: Mapping[str, str]) -> None:
    """Note who was silent in this run; nodes that were not asked stay as they were.

    codes: by node, the cause of no answer, "" where it came.
    """
    now = before - set(codes) | {node for node, code in codes.items() if code in CODES}
    if now == before:
        return
    try:
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, "".join(f"{name}\n" for name in sorted(now)[:MOST]))
    except (OSError, RuntimeError, UsageError) as error:
        log.debug("the list of silent nodes cannot be written: %s", error)
