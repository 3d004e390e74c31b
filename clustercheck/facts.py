"""Reads a node's answer: from bytes of the channel to facts by check.

A line counts only if it begins with the run's mark; whatever else a login prints is passed over.
The lines are written by `main.sh` and `prelude.sh`:

    MARK CHECK = KEY VALUE     a fact of one line
    MARK CHECK : KEY           a fact of many lines, each in a line MARK CHECK + TEXT
    MARK CHECK ! WORD TEXT     what became of the probe
    MARK - WORD TEXT           what the script itself says
"""

import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from clustercheck.check import Facts

# As it comes, and as text in memory, where an escaped byte may take sixteen times its room. A
# whole honest answer is some ten KiB.
NODE_LIMIT = 2 * 1024 * 1024
FACTS_LIMIT = 20_000
NOTE_LIMIT = 1000  # bytes of what the script says of itself and of a probe
SPOKEN_LIMIT = 300  # bytes of what a login says before the script
NOTES_AT_MOST = 20  # of a kind that may come more than once

# What is found out on this machine: no node may tell it in our stead.
OURS = ("clock.", "here.")


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
    checks: the names of those that were asked; what is told of others is passed over. None: all.
    """

    def __init__(
        self, mark: str, now: Callable[[], float], checks: Collection[str] | None = None
    ) -> None:
        self.told: dict[str, Told] = {}
        self.ready = False
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
        self._checks = checks
        self._asked_at = 0.0
        self._rest = bytearray()  # of a line whose end has not come
        self._before = b""  # the end of what came before the script began
        self._size = 0
        self._kept = 0  # bytes of memory
        self._facts = 0
        # facts of many lines that are still coming, by check
        self._open: dict[str, tuple[str, list[bytes]]] = {}

    def feed(self, data: bytes) -> bytes:
        """Take what arrived; returns what is to be sent back at once (b"" for nothing).

        Raises Flood past NODE_LIMIT bytes or FACTS_LIMIT facts.
        """
        arrived = self._now()
        self._size += len(data)
        self._keep(0)
        first, *others = data.split(b"\n")
        self._rest += first
        if not others:
            return b""
        lines = [bytes(self._rest), *others]
        self._rest = bytearray(lines.pop())
        reply = b""
        for line in lines:
            if line.startswith(self._mark) and not self.done:
                reply += self._line(line[len(self._mark) :], arrived)
            elif line.strip():
                self.noise = True
                if not self.begun:
                    self._before = (self._before + b" " + line)[-SPOKEN_LIMIT:]
        return reply

    def note_asked(self) -> None:
        """The node is asked for its time now, or told to begin with that."""
        self._asked_at = self._now()

    @property
    def said_before(self) -> str:
        """The end of what the login itself said, as one line; "" where the script has begun."""
        rest = b"" if self.begun else bytes(self._rest[-SPOKEN_LIMIT:])
        return " ".join(_text(self._before + b" " + rest).split())

    def _line(self, line: bytes, arrived: float) -> bytes:
        name, kind, text = (*line.split(b" ", 2), b"", b"")[:3]
        check = _text(name)
        if check == "-":
            return self._of_script(_text(kind), text, arrived)
        if self._checks is not None and check not in self._checks:
            self.noise = True
            return b""
        if kind == b"+" and check in self._open:
            self._open[check][1].append(text)
            return b""
        told = self._told_of(check)
        self._close(check)
        if kind in (b"=", b":"):
            self._facts += 1
            if self._facts > FACTS_LIMIT:
                raise Flood(f"more than {FACTS_LIMIT} facts")
            key, _, value = text.partition(b" ")
            if kind == b":":
                self._open[check] = (_text(key), [])
            else:
                self._fact(check, _text(key), value)
        elif kind == b"!":
            word, _, rest = text.partition(b" ")
            _note(told, _text(word), _text(rest[:NOTE_LIMIT]))
        return b""

    def _told_of(self, check: str) -> Told:
        if check not in self.told:
            self._keep(1000)  # where any name is taken, there may be many
            self.told[check] = Told()
        return self.told[check]

    def _close(self, check: str) -> None:
        if check in self._open:
            key, lines = self._open.pop(check)
            self._fact(check, key, b"\n".join(lines))

    def _fact(self, check: str, key: str, value: bytes) -> None:
        if key.startswith(OURS):
            return
        text = _text(value)
        self._keep(sys.getsizeof(text) + sys.getsizeof(key))
        self.told[check].facts[key] = text

    def _keep(self, memory: int) -> None:
        self._kept += memory
        if max(self._size, self._kept) > NODE_LIMIT:
            raise Flood(f"more than {NODE_LIMIT // 1024 // 1024} MiB of output")

    def _of_script(self, word: str, said: bytes, arrived: float) -> bytes:
        text = _text(said[:NOTE_LIMIT])
        if word == "begin":
            self.begun = True
            self.uid, self.boot_id, self.host_name = (text.split(" ", 2) + ["", ""])[:3]
        elif word == "ready":
            self.ready = True
        elif word == "clock":
            self.note_asked()
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
            if len(self.leftovers) < NOTES_AT_MOST:
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
        match = re.fullmatch(r"([0-9]{1,12})(\.[0-9]+)?(?![0-9]).*", text)
        if not match:
            return
        node = float(match[1] + (match[2] or ".5"))
        half = (arrived - self._asked_at) / 2 + (0 if match[2] else 0.5)
        offset = node - (self._asked_at + arrived) / 2
        if half >= 0 and (self.clock is None or half < self.clock[1]):
            self.clock = (offset, half)


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


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
    if before.count("(process ") >= NOTES_AT_MOST:
        return before
    return f"{before}, {words}" if before else words
