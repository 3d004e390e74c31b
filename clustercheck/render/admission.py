"""Whether nodes may join, as text, Markdown and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from clustercheck import __version__
from clustercheck.admission import Admission, Remark, Task
from clustercheck.fold import fold, shorten
from clustercheck.render.escape import markdown, sound, visible
from clustercheck.render.json import dumps
from clustercheck.render.layout import indented
from clustercheck.render.view import DISTURBS

ADMISSION = "clustercheck.admission/1"
FORMS = ("text", "json", "markdown")
LONGEST = 60  # characters of a node set inside a sentence


def render(
    found: Sequence[Admission], form: str, again: str, *, exit_code: int, width: int = 100
) -> str:
    """The answers in one of FORMS, ending in a line feed.

    again: the command line that was given, without checks.
    """
    if form == "json":
        return _json(found, exit_code)
    if form == "markdown":
        return "\n".join(_markdown(one, again) for one in found)
    return "\n".join(_text(one, again, width) for one in found)


def _text(one: Admission, again: str, width: int) -> str:
    lines = indented(visible(f"{one.node}: {one.answer}"), width, "", "  ")
    lines += indented(visible(_compared(one)), width, "", "  ")
    if one.remarks:
        lines += ["", "Why"]
    for place, remark in enumerate(one.remarks, 1):
        status, name = remark.finding.status.value, f"{remark.check}.{remark.finding.code}"
        first = f"[{place}] "
        text = visible(f"{status} {name}: {_said(remark)}")
        lines += indented(text, width, first, " " * len(first))
    if one.tasks:
        lines += ["", "What to do, in this order"]
    for number, task in enumerate(one.tasks, 1):
        text = task.remedy.text + (f" (field notes {task.remedy.see})" if task.remedy.see else "")
        text = f"[{DISTURBS}] {text}" if task.remedy.disturbs else text
        lines += indented(visible(text), width, f"{number}. ", "   ")
        lines += indented(visible(_for(task)), width, "   ", "     ")
    if one.again:
        lines += ["", "Then", f"   {visible(_command(one, again))}"]
    if one.blocked:
        text = f"Not judged before that is mended: {_reasons(one.blocked)}"
        lines += ["", *indented(visible(text), width, "", "  ")]
    if one.passed:
        lines += ["", *indented(visible(f"Passed: {', '.join(one.passed)}"), width, "", "  ")]
    if one.skipped:
        lines += indented(visible(f"Does not apply: {_reasons(one.skipped)}"), width, "", "  ")
    return "\n".join(lines) + "\n"


def _for(task: Task) -> str:
    places = "".join(f"[{place}]" for place in task.remarks)
    return f"for {places} {', '.join(task.names)}"


def _said(remark: Remark) -> str:
    by = f" (so says {_names(remark.by)})" if remark.by else ""
    peer = f" (peer {remark.finding.peer})" if remark.finding.peer and not remark.by else ""
    return f"{remark.finding.message}{peer}{by}"


def _reasons(by_check: Mapping[str, str]) -> str:
    return "; ".join(f"{check} ({why})" for check, why in by_check.items())


def _names(names: Sequence[str]) -> str:
    return shorten(fold(names), len(names), LONGEST)


def _compared(one: Admission) -> str:
    silent = f"; no answer from {_names(one.silent)}" if one.silent else ""
    if not one.like:
        return f"Not compared: {one.alone}{silent}."
    if len(one.kinds) < 2:
        alone = f"; {one.alone}" if one.alone else ""
        return f"Compared with {_names(one.like)}{silent}{alone}."
    (own, alike), *others = one.kinds.items()
    of_others = "; ".join(f"{_names(names)} (another kind: {kind})" for kind, names in others)
    if not alike:
        return f"Compared with no node of its kind ({own}), only with {of_others}{silent}."
    return f"Compared with {_names(alike)} (its kind: {own}); in part with {of_others}{silent}."


def _command(one: Admission, again: str) -> str:
    return f"{again} -c {','.join(one.again)}"


def _markdown(one: Admission, again: str) -> str:
    lines = [f"## {markdown(one.node)}: {markdown(one.answer)}", "", markdown(_compared(one)), ""]
    for place, remark in enumerate(one.remarks, 1):
        status, name = remark.finding.status.value, f"{remark.check}.{remark.finding.code}"
        lines.append(f"- ({place}) **{status}** {markdown(name)}: {markdown(_said(remark))}")
    if one.tasks:
        lines += ["", "**What to do, in this order**", ""]
    for number, task in enumerate(one.tasks, 1):
        text = task.remedy.text + (f" (field notes {task.remedy.see})" if task.remedy.see else "")
        disturbs = f"**{DISTURBS}:** " if task.remedy.disturbs else ""
        lines.append(f"{number}. {disturbs}{markdown(text)}")
        lines.append(f"   {markdown(_for(task))}")
    if one.again:
        lines += ["", f"Then: `{_command(one, again)}`"]
    if one.blocked:
        lines += ["", markdown(f"Not judged before that is mended: {_reasons(one.blocked)}")]
    if one.passed:
        lines += ["", markdown(f"Passed: {', '.join(one.passed)}")]
    if one.skipped:
        lines += ["", markdown(f"Does not apply: {_reasons(one.skipped)}")]
    return "\n".join(lines) + "\n"


def _json(found: Sequence[Admission], exit_code: int) -> str:
    content = {
        "schema": ADMISSION,
        "version": __version__,
        "exit_code": exit_code,
        "candidates": {sound(one.node): _one(one) for one in found},
    }
    return dumps(content) + "\n"


def _one(one: Admission) -> dict[str, Any]:
    return {
        "admit": one.admitted,
        "status": one.status.value,
        "answer": one.answer,
        "compared_with": [sound(name) for name in one.like],
        "not_compared": sound(one.alone),
        "no_answer": [sound(name) for name in one.silent],
        "kinds": [
            {"kind": sound(kind), "own": place == 0, "nodes": [sound(name) for name in names]}
            for place, (kind, names) in enumerate(one.kinds.items())
        ],
        "remarks": [
            {
                "status": remark.finding.status.value,
                "code": sound(f"{remark.check}.{remark.finding.code}"),
                "message": sound(remark.finding.message),
                "peer": sound(remark.finding.peer),
                "said_by": [sound(name) for name in remark.by],
            }
            for remark in one.remarks
        ],
        "work": [
            {
                "text": sound(task.remedy.text),
                "see": sound(task.remedy.see),
                "disturbs": task.remedy.disturbs,
                "codes": [sound(name) for name in task.names],
            }
            for task in one.tasks
        ],
        "again": [sound(name) for name in one.again],
        "blocked": {sound(check): sound(why) for check, why in one.blocked.items()},
        "passed": [sound(name) for name in one.passed],
        "skipped": {sound(check): sound(why) for check, why in one.skipped.items()},
    }
