"""What `checks` and `explain` show: all that a check and its findings say of themselves."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tabulate import tabulate

from clustercheck import exit_codes, fieldnotes, plugin, reach, registry, verdict
from clustercheck.check import AnyCheck, Code, Remedy, Stale, Status
from clustercheck.errors import UsageError, nearest
from clustercheck.freshness import MOST_SECONDS
from clustercheck.options import as_text
from clustercheck.render.view import DISTURBS
from clustercheck.settings import Effective, Profile

WIDTH = 79  # characters, whatever the terminal: a page is read, and sent by mail
LONGEST_VALUE = 40  # characters in a line of a table; the rest goes below

KEPT_UNTIL: dict[Stale, str] = {
    "boot": f"the node boots or its slurmd starts anew, {MOST_SECONDS / 3600:g} h at most",
    "time": "it is older than --max-age",
    "use": f"the node is used again, {MOST_SECONDS / 3600:g} h at most",
}

ABOUT_PROFILES = """A profile says which checks are made, and how strictly they judge, for one kind
of work. A section [profile:NAME] of the inventory makes one, or changes this one: what it names
takes the place of what stands here.

An option that the product sets here is the farthest: whatever the inventory sets is nearer. One
that [profile:NAME] sets is the nearest but for -o."""

WAY = "the way to a node"
ABOUT_THE_WAY = """What stops an answer on its way, and what the login user may not do on the node.

A node that gives no answer has one finding, the cause, and its checks have none. It is UNKNOWN,
never a pass: nothing was found out about the node."""


def page(
    word: str, checks: Mapping[str, AnyCheck], profiles: Mapping[str, Profile] | None = None
) -> str:
    """The page on a check ("ntp"), a finding's code ("ntp.offset"), an option ("ntp.warn") or a
    profile ("benchmark").

    Raises UsageError with the nearest known word for any other.
    """
    name, _, part = word.partition(".")
    known = _known(checks)
    if profiles and word in profiles:
        return "\n".join(_profile(profiles[word], checks)).strip() + "\n"
    known += profiles or ()
    if word not in known and part and name in known:
        parts = [one.partition(".")[2] for one in known if one.startswith(f"{name}.")]
        hint = nearest(part, parts) or f"; `clustercheck explain {name}` lists them"
        raise UsageError(f"{name} has no finding or option {part!r}{hint}")
    if word not in known:
        hint = nearest(word, known) or (
            "; `clustercheck checks` lists the checks, with -i those of an inventory too"
        )
        raise UsageError(f"no check, finding, option or profile is called {word!r}{hint}")
    if name == reach.NAME:
        lines = _finding(name, part, reach.CODES[part], WAY) if part else _way()
    elif not part:
        lines = _check(name, checks[name])
    else:
        lines = _part(name, part, checks[name])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _known(checks: Mapping[str, AnyCheck]) -> list[str]:
    known = [reach.NAME, *(f"{reach.NAME}.{code}" for code in reach.CODES)]
    for name, check in checks.items():
        parts = [*check.codes, *verdict.COMMON_CODES, *(f.name for f in check.option_fields())]
        known += [name, *(f"{name}.{part}" for part in parts)]
    return known


def _profile(profile: Profile, checks: Mapping[str, AnyCheck]) -> Iterator[str]:
    name = profile.name
    yield f"{name}: a profile, which commands take with --profile {name}"
    yield from _prose(ABOUT_PROFILES)
    yield from _heading("Checks")
    names = [one for one in profile.checks or checks if one not in profile.skip]
    yield from _wrap(", ".join(names), "  ", "  ")
    yield from _heading("Warnings that count as failures")
    yield from _wrap(", ".join(profile.fail_on) or "none", "  ", "  ")
    yield from _heading("Options")
    for check in dict.fromkeys((*profile.shipped, *profile.settings)):
        shipped, own = profile.shipped.get(check, {}), profile.settings.get(check, {})
        for option, setting in {**shipped, **own}.items():
            (field,) = (f for f in checks[check].option_fields() if f.name == option)
            value = _value(setting.text, field.metadata.get("unit", ""))
            where = f" ({own[option].where})" if option in own else ""
            yield from _wrap(f"{check}.{option} = {value}{where}", "  ", "      ")


def _way() -> Iterator[str]:
    yield f"{reach.NAME}: {WAY}"
    yield from _prose(ABOUT_THE_WAY)
    yield from _heading("Findings")
    yield from _codes(reach.NAME, reach.CODES)
    yield from _notes(reach.CODES.values())


def _check(name: str, check: AnyCheck) -> Iterator[str]:
    yield f"{name}: {check.title}"
    of_plugin = isinstance(check.options, plugin.Options)
    yield from _prose((plugin.__doc__ or "") if of_plugin else registry.docs(name))
    yield from _heading("How it is asked")
    for text in _asked(check):
        yield from _wrap(text, "  - ", "    ")
    if check.option_fields():
        yield from _heading("Options")
        where = f"Set below [check:{name}] in the inventory, as {name}.OPTION in [GROUP:vars] or"
        yield from _wrap(f"{where} on a node's line, or with -o {name}.OPTION=VALUE.", "  ", "  ")
        for field in check.option_fields():
            yield ""
            yield from _option(name, field.name, check)
    yield from _heading("Findings")
    yield from _codes(name, check.codes)
    common = ", ".join(f"{name}.{code}" for code in verdict.COMMON_CODES)
    yield from _wrap(f"As any check it may also give {common}.", "  ", "  ")
    yield from _notes(check.codes.values())


def _asked(check: AnyCheck) -> Iterator[str]:
    """What it does on the node, what it needs there and how long it may take."""
    if check.probe.strip():
        needs = f"; it needs {_and(check.needs)} there" if check.needs else ""
        yield f"A probe in sh on the node, for {check.limit:g} s at most{needs}."
    if check.heavy_probe.strip():
        yield (
            f"A heavy probe, for {check.heavy_limit:g} s at most: it runs after all others, on one"
            " node at a time for each thing that nodes share."
        )
    if check.probe_here is not None:
        yield "This machine is asked without sh, by Python's libraries."
    if check.probe_from_here is not None:
        yield "From this machine, once for all nodes: what only it can see."
    if check.clock:
        yield "The node's clock is compared with this machine's over the connection."
    if check.probe_peers:
        yield "Each node tries some of the other nodes that are asked in the same run."
    if check.probe_nodes:
        yield "It is told the names of all nodes that are asked in the same run."
    if check.follow is not None:
        yield "When all have answered, the few nodes that differ are asked once more."
    if check.compare is not None:
        yield "The answers of all nodes are compared with each other."
    yield f"A gate may keep its result until {KEPT_UNTIL[check.stale]}."
    if check.needs_root:
        yield "It needs root (become = sudo), and is not run without."
    elif check.root_adds:
        yield f"An ordinary user will do. Root (become = sudo) adds {check.root_adds}."
    elif check.probe.strip():
        yield "An ordinary user will do."
    if check.after:
        yield f"It is skipped on a node where {_and(check.after)} failed, which explains it."
    by_causes: dict[tuple[str, ...], list[str]] = {}
    for code, causes in check.follows.items():
        by_causes.setdefault(causes, []).append(code)
    for causes, codes in by_causes.items():
        yield f"Put down to a failure of {_or(causes)}, and not told twice: {', '.join(codes)}."


def _or(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _part(name: str, part: str, check: AnyCheck) -> Iterator[str]:
    """The page on a code or an option of a check, or on both where they have one name."""
    codes = {**verdict.COMMON_CODES, **check.codes}
    if part in codes:
        yield from _finding(name, part, codes[part], check.title)
    if part in [field.name for field in check.option_fields()]:
        yield ""
        yield from _wrap(f"{name}.{part}, an option of {name}: {check.title}", "", "  ")
        yield ""
        yield from _option(name, part, check)


def _finding(name: str, part: str, known: Code, title: str) -> Iterator[str]:
    yield from _wrap(f"{name}.{part}, a finding of {name}: {title}", "", "  ")
    yield ""
    yield from _wrap(known.meaning, "  ", "  ")
    for remedy in known.remedies:
        yield from _wrap(_advice(remedy), "  -> ", "     ")
    yield from _notes([known])


def _option(name: str, option: str, check: AnyCheck) -> Iterator[str]:
    (field,) = (field for field in check.option_fields() if field.name == option)
    value = as_text(getattr(check.options, option))
    unit = field.metadata.get("unit", "")
    yield from _wrap(f"{option} = {_value(value, unit)}", "  ", "      ")
    yield from _wrap(_sentence(field.metadata.get("text", "")), "      ", "      ")


def _value(text: str, unit: str) -> str:
    return f"{text} {unit}".rstrip() if text else "(empty)"


def _codes(name: str, codes: Mapping[str, Code]) -> Iterator[str]:
    """Every code of a page; a remedy that stood there before is not told again."""
    told: dict[Remedy, str] = {}
    for code, known in codes.items():
        title = f"{name}.{code}"
        yield f"  {title}"
        yield from _wrap(known.meaning, "      ", "      ")
        for remedy in known.remedies:
            first = told.setdefault(remedy, title)
            start = " ".join(remedy.text.split()[:5])
            text = _advice(remedy) if first == title else f"as for {first}: {start} …"
            yield from _wrap(text, "      -> ", "         ")
        yield ""


def _advice(remedy: Remedy) -> str:
    mark = f"[{DISTURBS}] " if remedy.disturbs else ""
    return f"{mark}{remedy.text}" + (f" ({remedy.see})" if remedy.see else "")


def _notes(codes: Iterable[Code]) -> Iterator[str]:
    """What the field notes say in the sections that the remedies name."""
    cited = {remedy.see for code in codes for remedy in code.remedies}
    known = {see: text for see, text in fieldnotes.sections().items() if see in cited}
    if known:
        yield from _heading("What the field notes say there")
        for see, text in known.items():
            yield from _wrap(f"{see}  {text}", "  ", "  " + " " * (len(see) + 2))


def _heading(text: str) -> Iterator[str]:
    yield ""
    yield text
    yield "-" * len(text)


def _prose(text: str) -> Iterator[str]:
    """Paragraphs, wrapped anew; what is indented stands as it is."""
    for paragraph in filter(str.strip, text.split("\n\n")):
        yield ""
        lines = paragraph.strip("\n").split("\n")
        if any(line.startswith(" ") for line in lines):
            yield from lines
        else:
            yield from _wrap(" ".join(lines), "", "")


def _wrap(text: str, first: str, rest: str) -> list[str]:
    """Words are not broken: they may be commands and paths, to be copied."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _sentence(text: str) -> str:
    """An option's text as a sentence: it is written as a part of one."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".")


def checks_table(checks: Mapping[str, AnyCheck]) -> str:
    """The checks in a table: name, what is looked at, how it loads, whether it wants root."""
    rows = [(n, c.title, _load(c), _root(c)) for n, c in checks.items()]
    return tabulate(rows, ("check", "what is looked at", "load", "root"), disable_numparse=True)


def _load(check: AnyCheck) -> str:
    return "heavy" if check.heavy_probe.strip() else "light"


def _root(check: AnyCheck) -> str:
    return "needed" if check.needs_root else "adds to it" if check.root_adds else ""


def effective(rows: Iterable[Effective]) -> str:
    """The options as they stand for a node, and who set each, in a table."""
    cells = [(f"{row.check}.{row.option}", _value(row.value, row.unit), row.where) for row in rows]
    return tabulate(
        cells,
        ("option", "value", "set by"),
        disable_numparse=True,
        maxcolwidths=[None, LONGEST_VALUE, None],
    )


def readme_checks(checks: Mapping[str, AnyCheck]) -> str:
    """The checks as a table in Markdown: what each wants to be so."""
    rows = [
        (f"`{name}`", registry.docs(name).partition("\n\n")[0].replace("\n", " "))
        for name in checks
    ]
    return tabulate(rows, ("check", "passes when"), tablefmt="github", disable_numparse=True)


def readme_exit_codes() -> str:
    """The exit codes as a table in Markdown."""
    of = exit_codes.OF_STATUS
    meanings = [
        (of[Status.PASS], "all nodes pass, or skip what does not apply"),
        (of[Status.WARN], "the worst is a warning"),
        (of[Status.FAIL], "there is a failure"),
        (
            of[Status.UNKNOWN],
            "something could not be found out and nothing failed, or nothing was checked",
        ),
        (exit_codes.USAGE, "the command line asks for something that cannot be"),
        (exit_codes.CONFIG, "the inventory or the recorded run cannot be used"),
        (exit_codes.INTERRUPTED, "interrupted before there was anything to report"),
        (exit_codes.BROKEN_PIPE, "whoever read the report has gone"),
    ]
    return tabulate(meanings, ("exit code", "meaning"), tablefmt="github")
