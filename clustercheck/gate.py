"""The command `gate`: may work start on these nodes, and on which of them?

Where all that is wanted was asked a short while ago and still holds, no node is asked and little is
loaded: what needs the checks or the inventory is in gate_nodes.py.
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from clustercheck import cached_run, exit_codes, slurm_nodes
from clustercheck.cache import Cache, default_folder
from clustercheck.cached_run import Outcome, StillAsking
from clustercheck.decision import (
    Answer,
    Decision,
    Need,
    OnUnknown,
    SlurmWords,
    Verdict,
    cannot_decide,
    decide,
    fingerprint,
    slurm_words,
)
from clustercheck.errors import UsageError, nearest
from clustercheck.fold import fold
from clustercheck.freshness import FAILED_SECONDS
from clustercheck.gate_nodes import JOB, Question
from clustercheck.nodeset import shorten
from clustercheck.output import check_writable, write_atomically
from clustercheck.render import verdict as render
from clustercheck.render.terminal import WIDTH_ELSEWHERE, look

if TYPE_CHECKING:
    from clustercheck.execute import Limits, Way
    from clustercheck.planning import Wanted

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# Another caller who asks the same is waited for so long, where no limit is set for the whole.
WAIT_SECONDS = 600.0


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, beside nodes, checks, the way and the limits.

    partition: "" where it is not by Slurm's partition. need: 0 for all nodes but the spares.
    max_age: seconds. cache: its folder, None for the user's own.
    codes: exit codes in place of the gate's own, by answer.
    shrink: the job gives back all nodes but those that are chosen. requeue: how often the job may
        be started again without what failed, None for not at all.
    """

    partition: str
    need: int
    spare: int
    on_unknown: OnUnknown
    suspect_percent: float
    max_age: float
    cache: Path | None
    form: str
    output: Path | None
    codes: Mapping[Answer, int]
    shrink: bool
    requeue: int | None
    verbose: int

    def __post_init__(self) -> None:
        if self.form not in render.FORMS:
            hint = nearest(self.form, render.FORMS) or f"; it is one of {', '.join(render.FORMS)}"
            raise UsageError(f"--format: there is no form {self.form!r}{hint}")
        if self.on_unknown not in get_args(OnUnknown):
            raise UsageError(f"--on-unknown is go or no-go, not {self.on_unknown!r}")
        if self.shrink and self.form != "env":
            raise UsageError(
                "--shrink: the job's shell has to know of it; write --format env and evaluate that"
            )
        if (self.shrink or self.requeue is not None) and not os.environ.get(JOB):
            word = "--shrink" if self.shrink else "--requeue"
            raise UsageError(f"{word}: this is not inside a job of Slurm (${JOB} is not set)")

    def need_of(self, nodes: int) -> Need:
        """What is needed of so many nodes. Raises UsageError where there are not so many."""
        need = self.need or nodes - self.spare
        if need > nodes:
            raise UsageError(f"--need {need}: the set has {nodes} node{'s' * (nodes != 1)}")
        if need < 1:
            raise UsageError(f"--spare {self.spare}: the set has {nodes}, and none would be left")
        return Need(need, self.spare, self.on_unknown, self.suspect_percent)


def seconds(text: str) -> float:
    """The seconds of "90", "90s", "15m", "2h" or "1d". Raises UsageError."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "s")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise UsageError(f"--max-age: {shorten(text)} is no time; write 90s, 15m or 2h, or 0")
    return int(number) * UNITS[unit]


def exit_code_of(texts: Sequence[str]) -> dict[Answer, int]:
    """The texts of `--exit`, "no-go=99", by answer. Raises UsageError."""
    words = {answer.value: answer for answer in Answer}
    found = {}
    for text in texts:
        word, equals, code = text.partition("=")
        if not equals or word not in words:
            raise UsageError(f"--exit: {shorten(text)} is not one of {', '.join(words)} and =CODE")
        if not (code.isascii() and code.isdigit() and int(code[:4]) < 256):
            raise UsageError(f"--exit: {shorten(code)} is no exit code; write {word}=0 to 255")
        found[words[word]] = int(code)
    return found


def gate(asked: Asked, wanted: "Wanted", way: "Way", limits: "Limits") -> int:
    """Ask what is not known, decide, and hand out the verdict."""
    if asked.output:
        check_writable(asked.output)
    try:
        verdict = _verdict(asked, wanted, way, limits)
    except KeyboardInterrupt:  # 130 is what workflow tools try again with more memory
        need = Need(asked.need, asked.spare, asked.on_unknown)
        decision = cannot_decide(need, "interrupted")
        verdict = _made(asked, wanted.profile, decision, datetime.now(timezone.utc))
    _hand_out(verdict, asked)
    own = exit_codes.OF_ANSWER[verdict.decision.answer.value]
    return asked.codes.get(verdict.decision.answer, own)


def _verdict(asked: Asked, wanted: "Wanted", way: "Way", limits: "Limits") -> Verdict:
    began = datetime.now(timezone.utc)
    answer = slurm_nodes.ask()
    asking = Question(asked, wanted, way, limits, answer)
    need = Need(asked.need, asked.spare, asked.on_unknown)
    for_slurm = asked.form == "args" or asked.shrink or asked.requeue is not None
    if answer.trouble and (asked.partition or for_slurm):
        why = f"Slurm's controller cannot be asked: {answer.trouble}"
        return _made(asked, wanted.profile, cannot_decide(need, why), began)
    cache = Cache(asked.cache or default_folder())
    wait = limits.max_seconds or WAIT_SECONDS
    try:
        outcome = cached_run.results(
            cache, asking.key(), asked.max_age, wait, asking.prepare, asking.slurm
        )
    except StillAsking as error:
        return _made(asked, wanted.profile, cannot_decide(need, str(error)), began)
    need = asked.need_of(len(outcome.kept.report.nodes))
    known = outcome.slurm_of
    trouble = {name: node.trouble for name, node in known.items()}
    first = known if outcome.slurm.nodes else None
    decision = decide(outcome.kept.report, need, trouble, first)
    words: SlurmWords | None = None
    lines: Sequence[str] = ()
    if outcome.slurm.nodes:
        names = {name: node.name for name, node in known.items()}
        if asked.shrink or asked.requeue is not None:
            from clustercheck import gate_job

            decision, lines = gate_job.act(decision, names, asked.shrink, asked.requeue)
        # with some of a partition left aside, Slurm is told which nodes to take
        words = slurm_words(decision, names, "" if wanted.exclude else asked.partition)
        decision, words = _enough_for_slurm(decision, words, asked.form)
    more = outcome.kept.more
    return Verdict(
        decision,
        _id(began),
        began,
        _expires(began, outcome, decision, asked.max_age),
        not outcome.asked,
        str(more["profile"]),
        str(more["digest"]),
        fingerprint(outcome.kept.fields, decision),
        words,
        tuple(_notes(outcome, cache, words)),
        tuple(lines),
    )


def _enough_for_slurm(
    decision: Decision, words: SlurmWords, form: str
) -> tuple[Decision, SlurmWords]:
    """No go, where it is Slurm that is to be told and it does not know enough of the nodes."""
    missing = decision.need.nodes - len(words.nodelist)
    if form != "args" or decision.answer is not Answer.GO or missing <= 0:
        return decision, words
    why = f"{decision.why}; Slurm does not know {fold(words.strangers)}"
    closed = replace(decision, answer=Answer.NO_GO, why=why, chosen=(), spares=())
    return closed, replace(words, nodelist=(), args=(), plain=())


def _made(asked: Asked, profile: str, decision: Decision, began: datetime) -> Verdict:
    """The verdict where nothing was asked."""
    expires = began + timedelta(seconds=min(asked.max_age, FAILED_SECONDS))
    return Verdict(decision, _id(began), began, expires, False, profile, "")


def _id(began: datetime) -> str:
    return f"v-{began:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def _expires(began: datetime, outcome: Outcome, decision: Decision, max_age: float) -> datetime:
    """When the first result on which the verdict rests is too old by itself."""
    now = began.timestamp()
    stale = outcome.kept.stale
    taken = [
        stamp.asked
        for stamps in outcome.kept.stamps.values()
        for check, stamp in stamps.items()
        if stale.get(check) != "boot"
    ]
    until = min([now, *taken]) + max_age
    if decision.answer is not Answer.GO:
        until = min(until, now + FAILED_SECONDS)
    return datetime.fromtimestamp(max(until, now), timezone.utc)


def _notes(outcome: Outcome, cache: Cache, words: SlurmWords | None) -> list[str]:
    notes = [*outcome.kept.report.notes, *outcome.kept.more.get("notes", ()), *cache.notes]
    if words and words.strangers:
        notes.append(f"Slurm does not know {fold(words.strangers)}: in no words for it")
    return [str(note) for note in dict.fromkeys(notes)]


def _hand_out(verdict: Verdict, asked: Asked) -> None:
    """The form to standard output or the file, and words for people to standard error."""
    form, there = asked.form, asked.output
    width, _ = (WIDTH_ELSEWHERE, False) if there else look(sys.stdout, os.environ)
    if form != "text" or there:
        sys.stderr.write(render.prose(verdict, look(sys.stderr, os.environ)[0]))
    text = render.render(verdict, form, width=width)
    if form == "github":
        text = _to_github(text, verdict)
    if there:
        write_atomically(there, text)
        return
    sys.stdout.write(text)
    sys.stdout.flush()


def _to_github(outputs: str, verdict: Verdict) -> str:
    """Append to the files that a runner of GitHub names; returns what is for standard output."""
    text = render.github_errors(verdict)
    for name, more in (
        ("GITHUB_OUTPUT", outputs),
        ("GITHUB_STEP_SUMMARY", render.github_summary(verdict)),
    ):
        path = os.environ.get(name)
        if path:
            try:
                with open(path, "a", encoding="utf-8") as file:
                    file.write(more)
            except OSError as error:
                raise UsageError(f"${name}: {path!r} cannot be written: {error.strerror}") from None
        elif name == "GITHUB_OUTPUT":
            text += more
    return text
