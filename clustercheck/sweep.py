"""The command `sweep`: ask all nodes, hold them against the sweep before, tell what changed."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from clustercheck import changes, execute, exit_codes, history, mail, planning
from clustercheck.answer import Answer
from clustercheck.changes import Acceptance, Key, Night, Standing
from clustercheck.errors import UsageError
from clustercheck.history import History, Trouble
from clustercheck.history_file import now
from clustercheck.mail_options import Options as MailOptions
from clustercheck.output import check_writable, write_atomically
from clustercheck.parts import SWEEP, SweepOptions
from clustercheck.planning import Chosen, Wanted
from clustercheck.render import html
from clustercheck.render import mail as words
from clustercheck.render.mail_content import content
from clustercheck.report import NodeResult, Report
from clustercheck.run import Watch
from clustercheck.settings import NOBODY
from clustercheck.sweep_lock import Busy, alone

# Names that say nothing of the cluster: then it is called after this machine.
PLAIN_NAMES = ("inventory", "hosts", "nodes")


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, beside nodes, checks, way and limits.

    state: the folder of history, lock and unsent mails; None for the usual one.
    page: the file of the HTML page; None for what the inventory says.
    print_mail: show the mails that would be sent, and neither send nor keep anything.
    """

    state: Path | None
    page: Path | None
    print_mail: bool
    verbose: int


@dataclass(frozen=True)
class Before:
    """What is known of the sweeps before."""

    when: datetime | None
    nodes: tuple[str, ...]
    standing: dict[Key, Standing]
    acceptances: tuple[Acceptance, ...]


def sweep(asked: Asked, wanted: Wanted, way: execute.Way, limits: execute.Limits) -> int:
    """Do all of it; the exit code is that of what is not accepted."""
    chosen = planning.choose(wanted)
    options: SweepOptions = chosen.inventory.options(SWEEP, NOBODY)
    cluster = cluster_of(options, wanted.inventory)
    page = asked.page or (Path(options.page).expanduser() if options.page else None)
    if page and not asked.print_mail:
        check_writable(page)
    path = history.file_of(asked.state, cluster)
    try:
        with alone(path.with_suffix(".lock"), now()):
            notes = [text for text in [planning.strangers(chosen, wanted.inventory)] if text]
            troubles: list[str] = []
            with _opened(path, troubles) as kept:
                keep = timedelta(days=options.keep)
                watch = Watch(notes=notes)
                night = _night(asked, chosen, way, limits, watch, kept, keep, troubles)
                night = replace(night, cluster=cluster)
                return _tell(asked, chosen, night, page, path.with_suffix(".mail"))
    except Busy as busy:
        _say(f"{busy}; this one does not start")
        return exit_codes.TEMPORARY


def cluster_of(options: SweepOptions, inventory: Path | None) -> str:
    """The cluster's name, as it is set, or else as the inventory's file is called."""
    stem = inventory.stem if inventory else ""
    return options.cluster or (stem if stem not in ("", *PLAIN_NAMES) else _this_machine())


def _this_machine() -> str:
    return socket.gethostname().partition(".")[0] or "cluster"


@contextlib.contextmanager
def _opened(path: Path, troubles: list[str]) -> Iterator[History | None]:
    """The history; without one the sweep goes on all the same, and says so."""
    try:
        kept = history.open_for_sweep(path)
    except Trouble as trouble:
        troubles.append(f"nothing is known of sweeps before, and this one is not kept: {trouble}")
        yield None
        return
    troubles += [kept.damage] if kept.damage else []
    for note in kept.notes:
        _say(f"note: {note}")
    try:
        yield kept
    finally:
        kept.close()


def _night(
    asked: Asked,
    chosen: Chosen,
    way: execute.Way,
    limits: execute.Limits,
    watch: Watch,
    kept: History | None,
    keep: timedelta,
    troubles: list[str],
) -> Night:
    number, told = 0, dict[str, dict[str, bytes]]()
    before = _before(kept)
    storing = kept if not asked.print_mail else None
    if storing:
        try:
            number = storing.begin(now(), list(chosen.checks))
        except Trouble as trouble:
            troubles.append(f"this sweep is not kept: {trouble}")
            storing = None

    def keep_answer(answer: Answer) -> None:
        if storing:
            told[answer.node] = history.packed(answer)

    def ended(answer: Answer, result: NodeResult) -> None:
        keep_answer(answer)

    watch = replace(watch, ended=ended, followed=keep_answer)
    report = execute.ask(chosen, way, limits, watch, verbose=bool(asked.verbose))
    compared = changes.compare(report, before.standing)
    if storing:
        try:
            storing.store(number, report, compared.standing, told, keep)
        except Trouble as trouble:
            number = 0
            troubles.append(f"this sweep is not kept: {trouble}")
    night = night_of("", report, compared.changed, before)
    trends = kept.trends() if kept else {}
    return replace(night, number=number, trends=trends, troubles=tuple(troubles))


def _before(kept: History | None) -> Before:
    last = kept.last() if kept else None
    return Before(
        when=last[0] if last else None,
        nodes=tuple(last[1]) if last else (),
        standing=kept.standing() if kept else {},
        acceptances=tuple(kept.acceptances()) if kept else (),
    )


def night_of(cluster: str, report: Report, changed: list[changes.Changed], before: Before) -> Night:
    """The run beside what was before."""
    day = before.when.astimezone().date() if before.when else None
    today = report.started.astimezone().date()
    open_, accepted = changes.sorted_out(changed, before.acceptances, today, day)
    return Night(
        cluster=cluster,
        report=report,
        before=before.when,
        changed=tuple(open_),
        accepted=tuple(accepted),
        joined=tuple(name for name in report.nodes if before.when and name not in before.nodes),
        left=tuple(name for name in before.nodes if name not in report.nodes),
        silent=changes.silent(report),
    )


def _tell(asked: Asked, chosen: Chosen, night: Night, page: Path | None, spool: Path) -> int:
    """The page, the text, the mails. spool: the cluster's own, as the lock is."""
    if page and not asked.print_mail:
        try:
            write_atomically(page, html.render(night))
        except UsageError as trouble:  # the disk filled while the nodes were asked
            night = replace(night, troubles=(*night.troubles, f"the page: {trouble}"))
    main: MailOptions = chosen.inventory.options("mail", NOBODY)
    of_node = {n.name: chosen.inventory.options("mail", n.name) for n in chosen.nodes}
    wanted = mail.routes(main, of_node)
    found = mail.letters(night, wanted, spool, page=_attached, now=now())
    if asked.print_mail:
        sys.stdout.write(mail.preview(found, wanted))
        return night.exit_code
    try:
        sys.stdout.write(words.text(content(night)))
        sys.stdout.flush()
    finally:  # whoever reads us may have gone, or his disk be full: the mail goes out
        if found:
            with contextlib.suppress(OSError):  # said by whoever wants to write there
                spool.mkdir(mode=0o700, exist_ok=True)
        posted = mail.post(found, main, spool, now=now(), say=_say)
        for line in posted.lines:
            _say(line)
    return posted.exit_code(night.exit_code)


def _attached(night: Night) -> bytes:
    return html.render(night).encode("utf-8", "backslashreplace")


def _say(line: str) -> None:
    print(f"clustercheck: {line}", file=sys.stderr, flush=True)
