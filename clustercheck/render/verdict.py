"""A gate's verdict in the forms that its callers read.

Whatever is not a go is nothing that a caller could take for one: no list, and in place of options
a word that Slurm's commands refuse. `clustercheck/verdict.schema.json` says what each key of the
JSON form means.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from clustercheck.decision import Answer, Drift, Fingerprint, Reason, Verdict
from clustercheck.fold import fold, shorten
from clustercheck.render.escape import markdown, sound, visible
from clustercheck.render.json import dumps
from clustercheck.render.layout import indented
from clustercheck.render.view import DISTURBS

VERDICT = "clustercheck.verdict/1"
FORMS = ("text", "json", "env", "args", "list", "exclude", "github", "gitlab", "junit")
# `sbatch $(clustercheck gate … --format args)` looks at no exit code: without a go, no option may
# come out that sbatch, salloc or srun takes.
REFUSED = "--clustercheck-says-no-go"
LONGEST_WORD = 100_000  # characters; Linux takes 131,071 (MAX_ARG_STRLEN, execve(2))
_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]+")
LONGEST = 60  # characters of a node set inside a sentence


def render(verdict: Verdict, form: str, *, width: int = 100) -> str:
    """The verdict in one of FORMS, ending in a line feed.

    github: the lines for $GITHUB_OUTPUT; the rest are `github_summary` and `github_errors`.
    """
    if form == "json":
        return dumps(as_json(verdict)) + "\n"
    if form == "env":
        pairs = _variables(verdict)
        lines = [*(f"{name}={shlex.quote(value)}" for name, value in pairs), *verdict.lines]
        return "".join(f"{line}\n" for line in lines)
    if form == "args":
        return "".join(f"{word}\n" for word in _args(verdict))
    if form == "list":
        return ",".join(_nodelist(verdict)) + "\n"
    if form == "exclude":
        return ",".join(_exclude(verdict)) + "\n"
    if form == "github":
        pairs = [*_variables(verdict), ("CC_JSON", dumps(as_json(verdict)))]
        return "".join(f"{name.removeprefix('CC_').lower()}={value}\n" for name, value in pairs)
    if form == "gitlab":
        return "".join(f"{name}={value}\n" for name, value in _variables(verdict))
    if form == "junit":
        return _junit(verdict)
    return "\n".join(_text(verdict, width)) + "\n"


def summary(verdict: Verdict) -> str:
    """The verdict in one line."""
    decision = verdict.decision
    return visible(f"{decision.answer.value}: {decision.why}")


def prose(verdict: Verdict, width: int) -> str:
    """The verdict and its reasons for people, beside a form for programs."""
    lines = indented(summary(verdict), width, "", "  ")
    for reason in verdict.decision.reasons:
        lines += indented(_reason(reason), width, "  ", "    ")
    lines += [visible(f"note: {note}") for note in verdict.notes]
    return "\n".join(lines) + "\n"


def _text(verdict: Verdict, width: int) -> Iterator[str]:
    decision = verdict.decision
    yield from indented(summary(verdict), width, "", "  ")
    rows = [
        ("use", decision.chosen),
        ("spare", decision.spares),
        ("healthy", decision.healthy if decision.answer is not Answer.GO else ()),
        ("excluded", decision.excluded),
        ("not known", decision.unreported),
    ]
    for title, names in rows:
        if names:
            yield from indented(f"{title}: {visible(fold(names))}", width, "  ", "    ")
    if decision.reasons:
        yield ""
    for reason in decision.reasons:
        yield from indented(_reason(reason), width, "  ", "    ")
        if reason.remedy:
            mark = f"[{DISTURBS}] " if reason.remedy.disturbs else ""
            see = f" (field notes {reason.remedy.see})" if reason.remedy.see else ""
            yield from indented(
                visible(f"{mark}{reason.remedy.text}{see}"), width, "  -> ", "     "
            )
    found = verdict.fingerprint
    if found and found.drift:
        yield ""
        yield "  They differ in"
        for drift in found.drift:
            yield from indented(visible(_drift(drift)), width, "    ", "      ")
        if found.left_out:
            yield f"    and {found.left_out} more"
    yield ""
    known = "from what was known" if verdict.from_cache else "asked now"
    about = [verdict.id, known, f"holds until {_time(verdict.expires)}"]
    if verdict.profile:
        about.insert(1, f"profile {verdict.profile}")
    if found and found.digest:
        about.append(f"fingerprint {found.digest.removeprefix('sha256:')[:12]}")
    yield from indented(visible(", ".join(about)), width, "  ", "    ")
    yield from (visible(f"  note: {note}") for note in verdict.notes)


def _drift(drift: Drift) -> str:
    parts = [f"{value} on {shorten(fold(n), len(n), LONGEST)}" for n, value in drift.outliers]
    most = f"{drift.majority} on most, " if drift.majority is not None else ""
    return f"{drift.field}: {most}{', '.join(parts)}"


def _reason(reason: Reason) -> str:
    nodes = shorten(fold(reason.nodes), len(reason.nodes), LONGEST)
    start = f"{nodes}: " if nodes else ""
    suspect = " (suspect: nobody is excluded for it)" if reason.suspect else ""
    return visible(f"{start}{reason.status.value} {reason.name}: {reason.message}{suspect}")


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as the JSON form has it."""
    decision = verdict.decision
    found: dict[str, Any] = {
        "schema": VERDICT,
        "id": verdict.id,
        "verdict": decision.answer.value,
        "why": sound(decision.why),
        "degraded": decision.degraded,
        "created": _time(verdict.created),
        "expires": _time(verdict.expires),
        "from_cache": verdict.from_cache,
        "profile": {"name": sound(verdict.profile), "digest": verdict.digest},
        "need": decision.need.nodes,
        "healthy": _nodes(decision.healthy),
        "excluded": _nodes(decision.excluded),
        "unreported": _nodes(decision.unreported),
        "chosen": _nodes(decision.chosen),
        "spare": _nodes(decision.spares),
        "slurm": None,
        "reasons": [_reason_as_json(reason) for reason in decision.reasons],
        "fingerprint": _fingerprint(verdict.fingerprint) if verdict.fingerprint else None,
        "notes": [sound(note) for note in verdict.notes],
    }
    if verdict.slurm:
        found["slurm"] = {
            "exclude": sound(fold(verdict.slurm.exclude)),
            "nodelist": sound(fold(verdict.slurm.nodelist)),
            "args": [sound(word) for word in verdict.slurm.args],
            "strangers": sound(fold(verdict.slurm.strangers)),
        }
    return found


def _nodes(names: Sequence[str]) -> dict[str, Any]:
    return {"count": len(names), "nodes": sound(fold(names))}


def _reason_as_json(reason: Reason) -> dict[str, Any]:
    return {
        "nodes": sound(fold(reason.nodes)),
        "check": sound(reason.check),
        "code": sound(reason.name),
        "status": reason.status.value,
        "suspect": reason.suspect,
        "summary": sound(reason.message),
        "remedy": sound(reason.remedy.text) if reason.remedy else "",
        "see": sound(reason.remedy.see) if reason.remedy else "",
        "disturbs": bool(reason.remedy and reason.remedy.disturbs),
    }


def _fingerprint(found: Fingerprint) -> dict[str, Any]:
    return {
        "digest": found.digest,
        "classes": [
            {"nodes": sound(fold(nodes)), "digest": digest} for nodes, digest in found.classes
        ],
        "drift": [
            {
                "field": sound(drift.field),
                "majority": None if drift.majority is None else sound(drift.majority),
                "outliers": {sound(fold(nodes)): sound(value) for nodes, value in drift.outliers},
            }
            for drift in found.drift
        ],
        "left_out": found.left_out,
    }


def _time(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _nodelist(verdict: Verdict) -> Sequence[str]:
    return verdict.slurm.nodelist if verdict.slurm else verdict.decision.chosen


def _exclude(verdict: Verdict) -> Sequence[str]:
    """Whom the caller leaves out."""
    if verdict.slurm:
        return verdict.slurm.exclude
    used = {*verdict.decision.chosen, *verdict.decision.spares}
    left_out = (*verdict.decision.excluded, *verdict.decision.unreported)
    return [name for name in left_out if name not in used]


def _args(verdict: Verdict) -> Sequence[str]:
    decision = verdict.decision
    if decision.answer is not Answer.GO or not verdict.slurm:
        return [REFUSED]
    # `$(…)` takes no quotes off, and a shell may be set to drop a word whose pattern fits no file.
    # Of so many nodes that a command line has no room for them, there is only the pattern.
    words = verdict.slurm.plain
    if max(map(len, words)) > LONGEST_WORD:
        words = verdict.slurm.args
    return words if all(_WORD.fullmatch(word) for word in words) else [REFUSED]


def _variables(verdict: Verdict) -> list[tuple[str, str]]:
    """Names and values of one line each, without what a shell or a runner could act on."""
    decision = verdict.decision
    nodelist = _nodelist(verdict)
    return [
        ("CC_VERDICT", decision.answer.value),
        ("CC_VERDICT_ID", verdict.id),
        ("CC_DEGRADED", "true" if decision.degraded else "false"),
        ("CC_NODELIST", visible(fold(nodelist))),
        ("CC_NNODES", str(len(nodelist))),
        ("CC_EXCLUDE", visible(fold(_exclude(verdict)))),
        ("CC_FINGERPRINT", verdict.fingerprint.digest if verdict.fingerprint else ""),
        ("CC_EXPIRES", _time(verdict.expires)),
        ("CC_WHY", visible(decision.why)),
    ]


def github_errors(verdict: Verdict) -> str:
    """Workflow commands that GitHub shows at the head of a run: one for each reason."""
    go = verdict.decision.answer is Answer.GO
    kind = "warning" if go else "error"
    lines = [] if go else [f"::error title=clustercheck::{_command(summary(verdict))}"]
    for reason in verdict.decision.reasons:
        text = _command(_reason(reason))
        lines.append(f"::{kind} title=clustercheck {_property(reason.name)}::{text}")
    return "".join(f"{line}\n" for line in lines)


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _command(visible(text)).replace(":", "%3A").replace(",", "%2C")


def github_summary(verdict: Verdict) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY."""
    decision = verdict.decision
    lines = [f"**{decision.answer.value}**: {markdown(decision.why)}", ""]
    if decision.reasons:
        lines += ["| nodes | finding | what is so | what to do |", "| --- | --- | --- | --- |"]
    for reason in decision.reasons:
        remedy = reason.remedy.text if reason.remedy else ""
        nodes = shorten(fold(reason.nodes), len(reason.nodes), LONGEST)
        name = f"{reason.status.value} {reason.name}{' (suspect)' if reason.suspect else ''}"
        cells = (nodes, name, reason.message, remedy)
        lines.append(f"| {' | '.join(markdown(cell) for cell in cells)} |")
    return "\n".join([*lines, ""])


def _junit(verdict: Verdict) -> str:
    """A test for the need and one for each node, as GitLab, Jenkins and others show them."""
    from clustercheck.render import junit

    decision = verdict.decision
    of: dict[str, list[str]] = {}
    for reason in decision.reasons:
        for node in reason.nodes:
            of.setdefault(node, []).append(_about(reason))
    bad, unknown = set(decision.excluded), set(decision.unreported)
    tag = "" if decision.answer is Answer.GO else "failure"
    tests = [("clustercheck", f"need {decision.need.nodes}", tag, summary(verdict))]
    for node in (*decision.healthy, *decision.excluded, *decision.unreported):
        tag = "failure" if node in bad else "error" if node in unknown else ""
        tests.append(("clustercheck.node", node, tag, "; ".join(of.get(node, ()))))
    return junit.suite("clustercheck gate", tests)


def _about(reason: Reason) -> str:
    remedy = f" -> {reason.remedy.text}" if reason.remedy else ""
    return f"{reason.status.value} {reason.name}: {reason.message}{remedy}"
