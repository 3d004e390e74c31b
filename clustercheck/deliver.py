"""Sends mails, tries again what was put off, and keeps what is left for the next time."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from clustercheck import exit_codes, spool
from clustercheck.mail_options import Options
from clustercheck.render.escape import visible
from clustercheck.send import Sent, send
from clustercheck.spool import Waiting

# Seconds between the tries, the last again and again: "later" mostly means some minutes.
PAUSES = (5.0, 15.0, 40.0, 120.0)


@dataclass(frozen=True)
class Outgoing:
    """A mail to be sent. data: as it goes over the wire, headers and all."""

    sender: str
    to: tuple[str, ...]
    data: bytes


@dataclass(frozen=True)
class Posted:
    """How it ended. lines: for people, one each. complete: nobody lacks his mail."""

    lines: tuple[str, ...] = ()
    complete: bool = True

    def exit_code(self, otherwise: int) -> int:
        """69 where somebody lacks his mail, else what the sweep says."""
        return otherwise if self.complete else exit_codes.NOT_SENT


def deliver(
    new: Sequence[Outgoing],
    options: Options,
    folder: Path,
    *,
    now: datetime,
    say: Callable[[str], None] = lambda line: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    give: Callable[[bytes, str, Sequence[str], Options], Sent] = send,
) -> Posted:
    """Send what waits in `folder` from before and these, for `options.patience` at most.

    Nothing that a server or a disk does raises. say: told when it is tried again. sleep, clock,
    give: for the tests.
    """
    run = _Run(folder, options, give)
    pending = run.gather(new, now)
    deadline = clock() + options.patience
    pauses = list(PAUSES)
    while pending:
        pending, why = run.round(pending)
        if not pending:
            break
        pause = pauses.pop(0) if len(pauses) > 1 else pauses[0]
        if why.settled or clock() + pause > deadline:
            run.give_up(pending, why)
            break
        say(f"mail: {why.cause}; tried again in {pause:g} s")
        sleep(pause)
    return Posted(tuple(run.lines), run.complete)


@dataclass
class _Run:
    folder: Path
    options: Options
    give: Callable[[bytes, str, Sequence[str], Options], Sent]
    lines: list[str] = field(default_factory=list)
    complete: bool = True

    def tell(self, line: str) -> None:
        """Something went wrong."""
        self.lines.append(visible(line))
        self.complete = False

    def gather(self, new: Sequence[Outgoing], now: datetime) -> list[Waiting]:
        """All that is to be sent; it is kept before it is tried."""
        try:
            if old := spool.give_up(self.folder):
                mails = "1 mail was" if old == 1 else f"{old} mails were"
                self.tell(f"{mails} never sent, and are given up for {spool.KEPT} later ones")
            pending, trouble = spool.waiting(self.folder)
        except OSError as error:
            pending = []
            trouble = [f"mail kept in {self.folder} cannot be read: {error.strerror}"]
        for line in trouble:
            self.tell(line)
        for one in new:
            try:
                pending.append(spool.put(self.folder, one.sender, one.to, one.data, now))
            except OSError as error:  # no reason not to try
                cause = f"{self.folder}: {error.strerror}"
                self.lines.append(visible(f"a mail cannot be kept for later, in {cause}"))
                pending.append(Waiting(None, one.sender, one.to, one.data))
        return pending

    def round(self, pending: Sequence[Waiting]) -> tuple[list[Waiting], Sent]:
        """Try each mail once; those still to be sent, and why the last of them was not."""
        left: list[Waiting] = []
        why = Sent()
        for place, mail in enumerate(pending):
            sent = self.give(mail.data, mail.sender, mail.to, self.options)
            if sent.refused:
                self.refused(mail, sent)
            if not sent.later:
                self.done(mail)
                continue
            why = sent
            left.append(replace(mail, to=sent.later))
            with contextlib.suppress(OSError):  # then some get it twice, which is better than never
                spool.left(mail, sent.later)
            if sent.settled or not sent.reached:  # others would fare no better
                left += pending[place + 1 :]
                break
        return left, why

    def done(self, mail: Waiting) -> None:
        try:
            spool.done(mail)
        except OSError as error:
            self.tell(f"{mail.path} cannot be removed, and will be sent again: {error.strerror}")

    def refused(self, mail: Waiting, sent: Sent) -> None:
        where = ""
        with contextlib.suppress(OSError):
            kept = spool.refuse(mail, sent.refused)
            where = f"; kept as {kept}" if kept else ""
        self.tell(f"mail to {', '.join(sent.refused)}: {_cause(sent, where)}")

    def give_up(self, pending: Sequence[Waiting], why: Sent) -> None:
        """For now: it waits for the next time."""
        kept = [mail for mail in pending if mail.path]
        to = ", ".join(dict.fromkeys(one for mail in pending for one in mail.to))
        where = "; it is lost"
        if kept:
            mails = "1 mail waits" if len(kept) == 1 else f"{len(kept)} mails wait"
            where = f"; {mails} in {self.folder} for the next sweep"
        self.tell(f"mail to {to} was not sent: {_cause(why, where)}")


def _cause(sent: Sent, where: str) -> str:
    return f"{sent.cause}{where}" + (f". {sent.remedy}" if sent.remedy else "")
