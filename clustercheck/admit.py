"""The command `admit`: candidates are asked beside nodes that are in already."""

import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from clustercheck import baseline, execute, exit_codes, planning
from clustercheck.admission import BOTH_SIDES, CLOSER, JOINING, Admission, admissions
from clustercheck.answer import Answer
from clustercheck.check import Status
from clustercheck.errors import UsageError, nearest
from clustercheck.fold import fold
from clustercheck.judging import OptionsOf
from clustercheck.node import Node
from clustercheck.output import check_writable, write_atomically
from clustercheck.planning import Wanted
from clustercheck.render import admission as render
from clustercheck.render.terminal import WIDTH_ELSEWHERE, look
from clustercheck.run import Watch
from clustercheck.selection import select
from clustercheck.settings import Inventory

MOST_LIKE = 12  # existing nodes: enough for a majority, and few to be disturbed


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, beside the way and the limits.

    candidates, like: node sets; like is "" where the inventory is to say.
    light: without what loads file servers.
    baseline: a file with fields as they should be. save: where to write those of a candidate.
    """

    candidates: str
    like: str
    light: bool
    baseline: Path | None
    save: Path | None
    form: str
    output: Path | None
    verbose: int

    def __post_init__(self) -> None:
        if self.form not in render.FORMS:
            hint = nearest(self.form, render.FORMS) or f"; it is one of {', '.join(render.FORMS)}"
            raise UsageError(f"--format: there is no form {self.form!r}{hint}")


def admit(asked: Asked, wanted: Wanted, way: execute.Way, limits: execute.Limits) -> int:
    """Ask candidates and existing nodes, and say who may join; the exit code is the worst's."""
    if asked.output:
        check_writable(asked.output)
    if asked.save:
        check_writable(asked.save)
    if not asked.candidates.strip():
        raise UsageError("admit whom? Name the candidate, as `clustercheck admit node09`")
    chosen = planning.choose(replace(wanted, nodes=asked.candidates))
    notes = [text for text in [planning.strangers(chosen, wanted.inventory)] if text]
    names = [node.name for node in chosen.nodes]
    existing = like(chosen.inventory, names, asked.like, notes)
    whole = replace(chosen, nodes=[*chosen.nodes, *existing])
    everybody = [node.name for node in whole.nodes]
    options_of = closer(chosen.inventory.options, everybody, BOTH_SIDES)
    options_of = closer(options_of, names, JOINING)
    if not asked.light:
        options_of = closer(options_of, names, CLOSER)
    if asked.baseline:
        options_of = baseline.expecting(options_of, names, asked.baseline, chosen.checks)
    answers: dict[str, Answer] = {}
    watch = Watch(ended=lambda answer, _: answers.update({answer.node: answer}), notes=notes)
    report = execute.ask(
        whole, way, limits, watch, options_of=options_of, verbose=bool(asked.verbose)
    )
    found = admissions(report, names, chosen.checks)
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    if report.stopped:
        print(f"note: the run ended before its time ({report.stopped})", file=sys.stderr)
    status = exit_code(found)
    _show(found, asked, _again(asked, wanted, names), status)
    if asked.save:
        baseline.save(asked.save, found, answers, chosen.checks)
    return status


def exit_code(found: Sequence[Admission]) -> int:
    """0 all may join; 1 with remarks; 2 a failure keeps one out; 3 something that is not known."""
    codes = [
        exit_codes.NOTHING_CHECKED
        if one.status is Status.SKIP
        else exit_codes.OF_STATUS[one.status]
        for one in found
    ]
    return max(codes, key=_badness)


def _badness(code: int) -> int:
    return (0, 1, 3, 2).index(code)


def like(
    inventory: Inventory, candidates: Collection[str], text: str, notes: list[str]
) -> list[Node]:
    """The existing nodes that the candidates are held against, at most 12.

    By default those of the smallest group that has all candidates and others; else all others.
    Raises UsageError where `text` names none.
    """
    if text.strip():
        found = select(inventory, text, "", sys.stdin)
        twice = [node.name for node in found if node.name in candidates]
        if twice:
            notes.append(f"{fold(twice)} cannot be like itself, and is left out of --like")
    else:
        groups = sorted(inventory.groups.values(), key=len)
        fitting = [names for names in groups if set(candidates) < set(names)]
        found = [inventory.nodes[name] for name in (*fitting, tuple(inventory.nodes))[0]]
    others = [node for node in found if node.name not in candidates]
    if text.strip() and not others:
        raise UsageError("--like names no other node than the candidates")
    step = max(1, -(-len(others) // MOST_LIKE))
    return others[::step]


def closer(
    options_of: OptionsOf, nodes: Collection[str], wanted: Mapping[str, Mapping[str, object]]
) -> OptionsOf:
    """The options, for some nodes with what is wanted of them besides, by check and option."""
    kept: dict[tuple[str, int], Any] = {}

    def of(check: str, node: str) -> Any:
        options = options_of(check, node)
        more = wanted.get(check, {}) if node in nodes else {}
        if not more or not set(more) <= {field.name for field in fields(options)}:
            return options
        key = check, id(options)  # equal options stay one object
        if key not in kept:
            kept[key] = replace(options, **more)
        return kept[key]

    return of


def _again(asked: Asked, wanted: Wanted, names: Sequence[str]) -> str:
    words = ["clustercheck", "admit", fold(names)]
    words += ["-i", str(wanted.inventory)] if wanted.inventory else []
    words += ["--profile", wanted.profile] if wanted.profile else []
    words += ["--like", asked.like] if asked.like else []
    words += ["--baseline", str(asked.baseline)] if asked.baseline else []
    return shlex.join(words)


def _show(found: Sequence[Admission], asked: Asked, again: str, status: int) -> None:
    there = asked.output
    width, _ = (WIDTH_ELSEWHERE, False) if there else look(sys.stdout, os.environ)
    text = render.render(found, asked.form, again, exit_code=status, width=width)
    if there:
        write_atomically(there, text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
