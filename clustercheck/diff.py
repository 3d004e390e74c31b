"""The command `diff`: in what two nodes differ, or the nodes of two recorded runs or sweeps."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from clustercheck import execute, planning, record
from clustercheck.admission import BOTH_SIDES
from clustercheck.admit import closer
from clustercheck.answer import Answer
from clustercheck.baseline import fields_of
from clustercheck.check import AnyCheck
from clustercheck.errors import UsageError, nearest
from clustercheck.fold import fold
from clustercheck.nodeset import shorten
from clustercheck.planning import Wanted
from clustercheck.render.escape import sound, visible
from clustercheck.render.json import dumps
from clustercheck.render.layout import wrap
from clustercheck.render.terminal import look
from clustercheck.run import Watch

DIFF = "clustercheck.diff/1"
FORMS = ("text", "json")
ABSENT = "absent"
LONGEST_NUMBER = 1000  # digits
NO_DIFFERENCE, DIFFERENCE, NOT_KNOWN = 0, 1, 3


class Difference(NamedTuple):
    """A field that differs, of which nodes, and its two values."""

    field: str
    nodes: tuple[str, ...]
    one: str
    other: str


def diff(
    one: str,
    other: str,
    wanted: Wanted,
    way: execute.Way,
    limits: execute.Limits,
    form: str,
    state: Path | None = None,
) -> int:
    """Show the differences; the exit code is 0 for none, 1 for some, 3 where one is not known.

    state: the folder of the history, for numbers of sweeps.
    """
    if form not in FORMS:
        hint = nearest(form, FORMS) or f"; it is one of {', '.join(FORMS)}"
        raise UsageError(f"--format: there is no form {form!r}{hint}")
    recorded = [os.path.isdir(name) for name in (one, other)]
    if any(recorded) and not all(recorded):
        folder = one if recorded[0] else other
        raise UsageError(f"{folder} is a folder; give two folders of recorded runs, or two nodes")
    swept = one.isdecimal() and other.isdecimal() and not any(recorded)
    if all(recorded) or swept:
        chosen = planning.choose_all(wanted).checks
        if swept:
            answers = _of_history((_number(one), _number(other)), wanted, state)
            one, other = f"sweep {one}", f"sweep {other}"
        else:
            answers = [record.read(Path(name))[1] for name in (one, other)]
        found, troubles = _runs((one, other), answers, chosen)
    else:
        found, troubles = _nodes(one, other, wanted, way, limits)
    _show(found, troubles, one, other, form, several=all(recorded) or swept)
    if troubles:
        return NOT_KNOWN
    return DIFFERENCE if found else NO_DIFFERENCE


def _nodes(
    one: str, other: str, wanted: Wanted, way: execute.Way, limits: execute.Limits
) -> tuple[list[Difference], list[str]]:
    sets = [planning.choose(Wanted(wanted.inventory, nodes=name)) for name in (one, other)]
    for name, chosen in zip((one, other), sets, strict=True):
        if len(chosen.nodes) != 1:
            raise UsageError(f"{name!r} is {len(chosen.nodes)} nodes; give one at a time")
    first, second = (chosen.nodes[0] for chosen in sets)
    if first.name == second.name:
        raise UsageError(f"{first.name} does not differ from itself; give another node")
    checks = {name: check for name, check in sets[0].checks.items() if check.fields}
    answers: dict[str, Answer] = {}
    watch = Watch(ended=lambda answer, _: answers.update({answer.node: answer}))
    asked = planning.Chosen(sets[0].inventory, [first, second], checks)
    names = [first.name, second.name]
    options_of = closer(asked.inventory.options, names, BOTH_SIDES)
    execute.ask(asked, way, limits, watch, options_of=options_of)
    troubles = []
    told = []
    for node in (first.name, second.name):
        answer = answers.get(node)
        told.append(fields_of(answer, checks) if answer else {})
        if not told[-1]:
            why = answer.message if answer and answer.message else "it told nothing of itself"
            troubles.append(f"{node}: {why}")
    if troubles:
        return [], troubles
    one_told, other_told = told
    for node, mine, theirs in (
        (first.name, one_told, other_told),
        (second.name, other_told, one_told),
    ):
        if fields := _untold(mine, theirs):
            troubles.append(f"{node}: not told: {', '.join(fields)}")
    return [Difference(f, (), a, b) for f, a, b in _between(*told)], troubles


def _number(digits: str) -> int:
    """Python reads no number of thousands of digits."""
    if len(digits) > LONGEST_NUMBER:
        raise UsageError(f"{shorten(digits)}: no sweep has so high a number")
    return int(digits)


def _of_history(numbers: tuple[int, int], wanted: Wanted, state: Path | None) -> list[list[Answer]]:
    from clustercheck.history import Trouble
    from clustercheck.past import Place, open_history

    kept = open_history(Place(wanted.inventory, state))
    try:
        return [kept.answers(number) for number in numbers]
    except Trouble as trouble:
        raise UsageError(str(trouble)) from None
    finally:
        kept.close()


def _runs(
    names: tuple[str, str],
    answers: Sequence[Sequence[Answer]],
    checks: Mapping[str, AnyCheck],
) -> tuple[list[Difference], list[str]]:
    """The differences of two runs. names: what they are called in messages."""
    one, other = names
    before, after = ({answer.node: fields_of(answer, checks) for answer in of} for of in answers)
    troubles = [
        f"{fold(names)}: {what}"
        for names, what in (
            ([n for n in before if n not in after], f"not in {other}"),
            ([n for n in after if n not in before], f"not in {one}"),
            ([n for n in before if not before[n] and n in after], f"told nothing in {one}"),
            ([n for n in after if not after[n] and n in before], f"told nothing in {other}"),
        )
        if names
    ]
    for folder, mine, theirs in ((one, before, after), (other, after, before)):
        untold: dict[tuple[str, ...], list[str]] = {}
        for name in mine.keys() & theirs.keys():
            if mine[name] and (fields := _untold(mine[name], theirs[name])):
                untold.setdefault(fields, []).append(name)
        for fields, of in untold.items():
            troubles.append(f"{fold(of)}: not told in {folder}: {', '.join(fields)}")
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for name, then in before.items():
        if then and after.get(name):
            for changed in _between(then, after[name]):
                nodes.setdefault(changed, []).append(name)
    return [Difference(f, tuple(of), a, b) for (f, a, b), of in nodes.items()], troubles


def _between(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*one, *other]):
        values = one.get(name, ABSENT), other.get(name, ABSENT)
        if values[0] != values[1] and all(values):
            yield name, *values


def _untold(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """Fields that the other has told, and of which the one was not asked or gave no answer."""
    return tuple(name for name, value in one.items() if not value and other.get(name))


def _show(
    found: list[Difference], troubles: list[str], one: str, other: str, form: str, *, several: bool
) -> None:
    if form == "json":
        print(dumps(_content(found, troubles, one, other)))
        return
    for trouble in troubles:
        print(f"clustercheck: {visible(trouble)}", file=sys.stderr)
    if not found:
        if not troubles:
            print("no difference")
        return
    width, _ = look(sys.stdout, os.environ)
    column = max(20, (width - 30) // 2)
    headers = ["field", *(["nodes"] if several else []), visible(one), visible(other)]
    rows = [
        [
            visible(d.field),
            *(["\n".join(wrap(visible(fold(d.nodes)), 30))] if several else []),
            "\n".join(wrap(visible(d.one), column)),
            "\n".join(wrap(visible(d.other), column)),
        ]
        for d in found
    ]
    print(tabulate(rows, headers, tablefmt="simple", disable_numparse=True))


def _content(
    found: list[Difference], troubles: list[str], one: str, other: str
) -> dict[str, object]:
    return {
        "schema": DIFF,
        "one": sound(one),
        "other": sound(other),
        "differences": [
            {
                "field": sound(d.field),
                "nodes": [sound(name) for name in d.nodes],
                "one": sound(d.one),
                "other": sound(d.other),
            }
            for d in found
        ],
        "not_known": [sound(trouble) for trouble in troubles],
    }
