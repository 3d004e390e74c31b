"""Reads a node's answer: from bytes of the channel to facts by check.

A line counts only if it begins with the run's mark; whatever else a login prints is passed over.
The lines are written by `main.sh` and `prelude.sh`:

    MARK CHECK = KEY VALUE     a fact of one line
    MARK CHECK : KEY           a fact of many lines, each in a line MARK CHECK + TEXT
    MARK CHECK ! WORD TEXT     what became of the probe
    MARK - WORD TEXT           what the script itself says
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from clustercheck.check import Facts

NODE_LIMIT = 4 * 1024 * 1024
FACTS_LIMIT = 20_000


@dataclass
class Told:
    """What a node said for one check.

    facts: what the probe reported.
    whole: the probe came to its own end.
    status: its exit status ("0", "limit" when it was given up, "" when it was not run).
    hung: what it was waiting for when it was given up, in words.
    stays: processes that could not be ended (they wait in the kernel).
    missing: a command that it needs and the node has not.
    needs_root: it was not run for want of root.
    wanted_root: a part of it was left out for want of root.
    error: the end of its standard error, where its status was not 0.
    """

    facts: Facts = field(default_factory=Facts)
    whole: bool = False
    status: str = ""
    hung: str = ""
    stays: str = ""
    missing: str = ""
    needs_root: bool = False
    wanted_root: bool = False
    error: str = ""


class Flood(Exception):
    """The node said more than any honest answer holds; the message gives the limit."""


class Reader:
    """Takes a node's bytes as they come and knows when the answer is whole.

    now: this machine's clock, seconds since 1970, for the exchange with the node's.
    """

    def __init__(self, mark: str, now: Callable[[], float]) -> None:
        self.told: dict[str, Told] = {}
        self.begun = False
        self.done = False
        self.uid = ""
        self.boot_id = ""
        self.host_name = ""
        self.root_refused = ""
        self.way_to_root = "no"
        self.no_directory = False
        self.full = False
        self.leftovers: list[str] = []
        self.noise = False
        self.clock: tuple[float, float] | None = None
        self._mark = mark.encode() + b" "
        self._now = now
        self._asked_at = 0.0
        self._rest = b""
        self._size = 0
        self._facts = 0
        # facts of many lines that are still coming, by check
        self._open: dict[str, tuple[str, list[str]]] = {}

    def feed(self, data: bytes) -> bytes:
        """Take what arrived; returns what is to be sent back at once (b"" for nothing).

        Raises Flood past NODE_LIMIT bytes or FACTS_LIMIT facts.
        """
        arrived = self._now()
        self._size += len(data)
        if self._size > NODE_LIMIT:
            raise Flood(f"more than {NODE_LIMIT // 1024 // 1024} MiB of output")
        *lines, self._rest = (self._rest + data).split(b"\n")
        reply = b""
        for line in lines:
            if line.startswith(self._mark) and not self.done:
                reply += self._line(line[len(self._mark) :], arrived)
            elif line.strip():
                self.noise = True
        return reply

    def _line(self, line: bytes, arrived: float) -> bytes:
        check, kind, text = (line.decode(errors="backslashreplace").split(" ", 2) + ["", ""])[:3]
        if check == "-":
            return self._of_script(kind, text, arrived)
        told = self.told.setdefault(check, Told())
        if kind == "+" and check in self._open:
            self._open[check][1].append(text)
            return b""
        self._close(check)
        if kind in ("=", ":"):
            self._facts += 1
            if self._facts > FACTS_LIMIT:
                raise Flood(f"more than {FACTS_LIMIT} facts")
            key, _, value = text.partition(" ")
            if kind == ":":
                self._open[check] = (key, [])
            else:
                told.facts[key] = value
        elif kind == "!":
            _note(told, *text.partition(" ")[::2])
        return b""

    def _close(self, check: str) -> None:
        if check in self._open:
            key, lines = self._open.pop(check)
            self.told[check].facts[key] = "\n".join(lines)

    def _of_script(self, word: str, text: str, arrived: float) -> bytes:
        if word == "begin":
            self.begun = True
            self.uid, self.boot_id, self.host_name = (text.split(" ", 2) + ["", ""])[:3]
        elif word == "clock":
            self._asked_at = self._now()
            return b"\n"
        elif word == "time":
            self._measure(text.partition(" ")[2], arrived)
        elif word == "way":
            self.way_to_root = text
        elif word == "sudo":
            self.root_refused = text
        elif word == "nodir":
            self.no_directory = True
        elif word == "full":
            self.full = True
        elif word == "leftover":
            self.leftovers.append(text)
        elif word == "done":
            for check in list(self._open):
                self._close(check)
            self.done = True
        return b""

    def _measure(self, text: str, arrived: float) -> None:
        """Keep the exchange with the smallest uncertainty: (offset, uncertainty) in seconds.

        The node's clock was read between our sending and the answer's arrival, so its offset lies
        within half the round trip of the midpoint, whatever the way there and back took.
        """
        match = re.fullmatch(r"(\d+)(\.\d+)?.*", text)
        if not match:
            return
        node = float(match[1] + (match[2] or ".5"))
        half = (arrived - self._asked_at) / 2 + (0 if match[2] else 0.5)
        offset = node - (self._asked_at + arrived) / 2
        if half >= 0 and (self.clock is None or half < self.clock[1]):
            self.clock = (offset, half)


def _note(told: Told, word: str, text: str) -> None:
    if word == "whole":
        told.whole = True
    elif word == "end":
        told.status = text
    elif word == "hung":
        told.hung = _waiting(told.hung, text.partition(" ")[2])
    elif word == "stays":
        told.stays = _waiting(told.stays, text)
    elif word == "missing":
        told.missing = text
    elif word == "needs-root":
        told.needs_root = True
    elif word == "root":
        told.wanted_root = True
    elif word == "stderr":
        told.error = text.strip()


def _waiting(before: str, text: str) -> str:
    """ "chronyc (process 123, state D, in rpc_wait)" of "123/D/rpc_wait/chronyc"."""
    pid, state, where, command = (text.split("/", 3) + ["", "", ""])[:4]
    kernel = f", in {where}" if where not in ("", "0") else ""
    words = f"{command} (process {pid}, state {state}{kernel})"
    return f"{before}, {words}" if before else words
