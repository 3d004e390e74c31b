"""The command `gate`: may work start on these nodes, and on which of them?

Where all that is wanted was asked a short while ago and still holds, no node is asked and little is
loaded: what needs the checks or the inventory is in `_Asking`.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from clustercheck import cached_run, exit_codes, slurm_nodes
from clustercheck.cache import Cache, default_folder, question
from clustercheck.cached_run import Asking, Outcome, StillAsking
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
from clustercheck.fold import shorten as short
from clustercheck.freshness import FAILED_SECONDS
from clustercheck.nodeset import shorten
from clustercheck.output import check_writable, write_atomically
from clustercheck.render import verdict as render
from clustercheck.render.terminal import WIDTH_ELSEWHERE, look

if TYPE_CHECKING:
    from clustercheck.answer import Answer as NodeAnswer
    from clustercheck.execute import Limits, Way
    from clustercheck.judging import OptionsOf
    from clustercheck.planning import Chosen, Wanted
    from clustercheck.report import Report
    from clustercheck.run import Watch
    from clustercheck.settings import Inventory

JOB = "SLURM_JOB_NODELIST"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# Another caller who asks the same is waited for so long, where no limit is set for the whole.
WAIT_SECONDS = 600.0
LARGEST_INVENTORY = 64 * 2**20


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
    asking = _Asking(asked, wanted, way, limits, answer)
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


class _Asking:
    """Which nodes are meant, and all that asking them needs."""

    def __init__(
        self,
        asked: Asked,
        wanted: "Wanted",
        way: "Way",
        limits: "Limits",
        answer: slurm_nodes.Answer,
    ) -> None:
        """Raises UsageError where nobody says which nodes are meant, or there is no such partition.

        answer: Slurm's, from a moment ago.
        """
        self.asked, self.way, self.limits, self.answer = asked, way, limits, answer
        self._answers = [answer]
        self.of_slurm: Sequence[str] = ()  # NodeNames, where Slurm names the nodes
        if asked.partition:
            if wanted.nodes is not None:
                raise UsageError("give one of -w and --partition")
            if asked.shrink or asked.requeue is not None:
                raise UsageError("--shrink and --requeue are about the job's nodes, no partition's")
            if not answer.trouble:
                self.of_slurm = nodes_of_partition(answer, asked.partition)
        elif wanted.nodes is None and os.environ.get(JOB):
            self.of_slurm = nodes_of_job(os.environ[JOB])
        elif wanted.nodes is None and wanted.inventory is None:
            raise UsageError(
                "which nodes? Name them with -w, as -w 'gpu[01-16]', or by --partition; in a job of"
                " Slurm it is the job's nodes"
            )
        if wanted.nodes is not None:
            from clustercheck.selection import text_of

            wanted = replace(wanted, nodes=text_of(wanted.nodes, sys.stdin))
        self.wanted = wanted

    def slurm(self) -> slurm_nodes.Answer:
        """What Slurm says: what it has said already, the first time."""
        return self._answers.pop() if self._answers else slurm_nodes.ask()

    def key(self) -> str:
        """Of all that the results depend on, without reading what it means."""
        wanted, way = self.wanted, self.way
        whole = b""
        if wanted.inventory:
            try:
                with wanted.inventory.open("rb") as file:
                    whole = file.read(LARGEST_INVENTORY)
            except (OSError, ValueError):
                whole = b"?"  # `prepare` says what is wrong with it
        parts = (
            *(str(wanted.inventory), repr(wanted.nodes), wanted.exclude, wanted.checks),
            *(wanted.skip, repr(tuple(wanted.options)), wanted.profile),
            *(self.asked.partition, repr(tuple(self.of_slurm)), str(os.geteuid())),
        )
        return question(whole, *parts, _words_of(way))

    def prepare(self) -> Asking:
        """Read the inventory and the checks. Raises UsageError and ConfigError."""
        from clustercheck.profile import digest

        chosen, notes = self._chosen()
        self.asked.need_of(len(chosen.nodes))
        profile = chosen.inventory.profile
        names = [node.name for node in chosen.nodes]
        inventory = chosen.inventory
        number = digest(chosen.checks, names, inventory.options, inventory.fail_on)
        more = {"profile": profile.name if profile else "", "digest": number, "notes": notes}
        return Asking(chosen, chosen.inventory.options, self._ask, _words_of(self.way), more)

    def _ask(
        self,
        chosen: "Chosen",
        watch: "Watch",
        options_of: "OptionsOf",
        only: Mapping[str, Collection[str]],
        known: "Mapping[str, NodeAnswer]",
    ) -> "Report":
        from clustercheck import execute

        return execute.ask(
            chosen,
            self.way,
            self.limits,
            watch,
            options_of=options_of,
            only=only,
            known=known,
            verbose=bool(self.asked.verbose),
        )

    def _chosen(self) -> tuple["Chosen", list[str]]:
        from clustercheck import planning
        from clustercheck.selection import select

        everything = planning.choose_all(self.wanted)
        inventory, text = everything.inventory, self.wanted.nodes
        if self.of_slurm:
            text = ",".join(_ours(self.of_slurm, inventory, self.answer))
        nodes = select(inventory, text, self.wanted.exclude, sys.stdin)
        chosen = replace(everything, nodes=planning.with_defaults(nodes, self.way.defaults))
        self._refuse_strangers(chosen)
        note = planning.strangers(chosen, self.wanted.inventory)
        return chosen, [note] if note else []

    def _refuse_strangers(self, chosen: "Chosen") -> None:
        """Raise UsageError for names that are neither Slurm's nor the inventory's, of a set that
        is Slurm's or meant to be."""
        hosts = {node.name: node.host for node in chosen.nodes}
        known = slurm_nodes.by_our_names(hosts, self.answer.nodes)
        strangers = [n for n in hosts if n not in known and n not in chosen.inventory.nodes]
        if not strangers or not self.answer.nodes:
            return
        names = [node.name for node in self.answer.nodes]
        hint = nearest(strangers[0], names)
        if known or hint:
            hint = hint or f"; Slurm has {short(fold(names), len(names), 60)}"
            text = f"no node is called {shorten(fold(strangers))}, in Slurm or in the inventory"
            raise UsageError(f"{text}{hint}")


def _words_of(way: "Way") -> str:
    """How nodes are reached, without what is secret."""
    defaults = sorted(way.defaults.items())
    return repr((defaults, str(way.ssh_config), str(way.known_hosts), way.ssh, way.via))


def nodes_of_partition(answer: slurm_nodes.Answer, partition: str) -> list[str]:
    """The NodeNames of a partition, in Slurm's order. Raises UsageError."""
    if not answer.nodes:
        missing = not shutil.which("sinfo")
        why = "there is no sinfo on this machine's PATH" if missing else "Slurm has no node"
        raise UsageError(f"--partition {shorten(partition)}: {why}")
    found = [node.name for node in answer.nodes if partition in node.partitions]
    if not found:
        known = sorted({name for node in answer.nodes for name in node.partitions})
        hint = nearest(partition, known) or f"; the partitions are {', '.join(known[:12])}"
        raise UsageError(
            f"--partition: no partition with nodes is called {shorten(partition)}{hint}"
        )
    return found


def nodes_of_job(folded: str) -> list[str]:
    """The NodeNames of a job, from the node set in its environment. Raises UsageError."""
    from clustercheck.nodeset import NodeSetError, check_name, evaluate, expand

    try:
        names = list(evaluate(folded, lambda operand: dict.fromkeys(expand(operand))))
        for name in names:
            check_name(name)
        return names
    except NodeSetError as error:
        raise UsageError(f"${JOB}: {error}") from None


def _ours(names: Sequence[str], inventory: "Inventory", answer: slurm_nodes.Answer) -> list[str]:
    """The inventory's names of Slurm's nodes; a node that it does not have keeps Slurm's."""
    hosts = {name: node.host for name, node in inventory.nodes.items()}
    ours = {node.name: name for name, node in slurm_nodes.by_our_names(hosts, answer.nodes).items()}
    return [ours.get(name, name) for name in names]
