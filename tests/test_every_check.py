"""The rules that every check keeps to, the package's own and those that come by entry point.

A new check is held to them without a line here.
"""

import builtins
import dataclasses
import inspect
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, get_args, get_type_hints

import pytest
from pydantic import TypeAdapter

from clustercheck import script, verdict
from clustercheck.check import AnyCheck, Facts, Finding, Remedy, Stale, Status
from clustercheck.facts import Told
from clustercheck.fieldnotes import sections
from clustercheck.options import as_text, parse
from tests.made_up import CHECKS
from tests.shell_text import code_of, faults
from tests.this_machine import SHELLS, shell_words, told_here

EVERY = pytest.mark.parametrize("name", CHECKS)
REMEDIES = [
    pytest.param(remedy, id=f"{name}.{code}.{place}")
    for name, check in CHECKS.items()
    for code, declared in check.codes.items()
    for place, remedy in enumerate(declared.remedies)
]

# Steps that do harm, whatever the notes say: no remedy tells anybody to take them.
HARMFUL = (
    r"(?<!root_squash, not )\bno_root_squash\b",
    r"\bsetenforce 0\b",
    r"\bkill -(9|KILL)\b",
    r"\brm -[a-z]*r",
    r"\bchmod (-R )?0?777\b",
    r"(disable|switch off|turn off) (STP|spanning tree)",
    r"--gpu-reset",
    r"/tmp/slurm",
    r"\bsed -i\b",
    r"\bunset \$\(",
    r"\bulimit -v\b",
    r"\bNCCL_SOCKET_TIMEOUT\b",
    r"State=MAINT\b",
    r"systemctl restart chronyd (at once|now|immediately)",
)


def probes(check: AnyCheck) -> dict[str, str]:
    """The check's texts for sh by the name of their field."""
    texts = {
        "probe": check.probe,
        "heavy_probe": check.heavy_probe,
        "follow_probe": check.follow_probe,
    }
    return {field: text for field, text in texts.items() if text.strip()}


def whole_script(name: str, text: str) -> str:
    """A probe as it runs: after the prelude, its options and its peers."""
    check = CHECKS[name]
    prelude = resources.files("clustercheck").joinpath("prelude.sh").read_text(encoding="utf-8")
    values = script.variables(script.Asked(name, check, check.options))
    lines = ["#!/bin/sh", "cc_mark=@mark", "ROOT=''", prelude]
    # those that this probe reads: the light and the heavy one have their own
    code = code_of(text)
    lines += [f"{k}='{v}'" for k, v in values.items() if re.search(rf"\b{k}\b", code)]
    if check.probe_peers:
        lines.append("PEERS='node02'")
    if check.probe_nodes:
        lines.append("NODES='node01'")
    lines += ["probe() {", text.strip("\n"), "}", "probe", 'exit "$?"', ""]
    return "\n".join(lines)


@EVERY
def test_it_can_be_loaded_and_says_what_it_is(name: str) -> None:
    check = CHECKS[name]
    assert script.is_word(name)
    assert "not_loaded" not in check.codes, list(check.judge(Facts(), check.options))
    assert check.title and not check.title.endswith(".")
    module = sys.modules[check.judge.__module__]
    assert module.__doc__ and len(module.__doc__.split()) > 5


@EVERY
def test_it_says_what_makes_its_result_stale(name: str) -> None:
    check = CHECKS[name]
    assert check.stale in get_args(Stale)
    module = sys.modules[check.judge.__module__]
    assert "    stale=" in inspect.getsource(module), "the default is for checks of other people"


@EVERY
def test_it_asks_something(name: str) -> None:
    check = CHECKS[name]
    assert check.probe or check.probe_from_here or check.compare
    assert 0 < check.limit <= 60
    assert ("as_root " in check.probe + check.heavy_probe) == bool(check.root_adds)


@pytest.mark.parametrize("shell", SHELLS)
@EVERY
def test_its_probe_can_be_read_by_every_shell(name: str, shell: str, tmp_path: Path) -> None:
    for text in probes(CHECKS[name]).values():
        file = tmp_path / "probe.sh"
        file.write_text(whole_script(name, text), encoding="utf-8")
        words = [*shell_words(shell), "-n", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@EVERY
def test_shellcheck_finds_nothing_in_its_probe(name: str) -> None:
    for text in probes(CHECKS[name]).values():
        shellcheck = Path(sys.executable).with_name("shellcheck")
        done = subprocess.run(
            # what the prelude offers need not be used by all
            [str(shellcheck), "-s", "sh", "-S", "style", "-e", "SC2317,SC2329", "-"],
            input=whole_script(name, text),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout + done.stderr == ""


@EVERY
def test_its_probe_changes_nothing_and_keeps_to_the_prelude(name: str) -> None:
    for text in probes(CHECKS[name]).values():
        assert faults(text) == []


@EVERY
def test_with_no_facts_nothing_passes(name: str) -> None:
    check = CHECKS[name]
    for told in (Told(), Told(whole=True, status="0")):
        findings = verdict.judge(check, told, check.options, peers=["node02"])
        assert findings
        assert {f.status for f in findings} <= {Status.UNKNOWN, Status.SKIP}
        assert "crashed" not in {f.code for f in findings}, findings


@pytest.fixture(scope="module")
def told() -> dict[str, Told]:
    """What the real probes of all checks tell of this machine."""
    seen: dict[str, Told] = {}
    for name, check in CHECKS.items():
        if check.probe:
            seen[name] = told_here(name)
            if check.clock:
                seen[name].facts |= {"clock.offset": "0.001", "clock.uncertainty": "0.0005"}
    return seen


@EVERY
def test_its_probe_comes_to_its_end_here(name: str, told: dict[str, Told]) -> None:
    if name in told:
        assert told[name].missing or (told[name].whole and told[name].error == "")


def findings_of(name: str, told: Told, facts: Facts) -> list[Finding]:
    changed = dataclasses.replace(told, facts=facts)
    return verdict.judge(CHECKS[name], changed, CHECKS[name].options, peers=["node02"])


@EVERY
def test_a_fact_less_never_crashes_it_nor_makes_anything_better(
    name: str, told: dict[str, Told]
) -> None:
    if name not in told:
        return
    whole = findings_of(name, told[name], told[name].facts)
    assert "crashed" not in {f.code for f in whole}, whole
    bad = {(f.code, f.peer) for f in whole if f.status > Status.SKIP}
    for key in told[name].facts:
        facts = Facts(told[name].facts)
        del facts[key]
        less = findings_of(name, told[name], facts)
        assert "crashed" not in {f.code for f in less}, (key, less)
        better = {(f.code, f.peer) for f in less if f.status <= Status.SKIP}
        assert not bad & better, f"without {key} it finds {bad & better} good"
        assert not bad or verdict.worst(less) > Status.SKIP, f"without {key} {bad} is not seen"
        if not key.startswith("clock."):  # the frame's own facts are never empty
            facts[key] = ""
            empty = findings_of(name, told[name], facts)
            assert "crashed" not in {f.code for f in empty}, (key, empty)


@EVERY
def test_both_ways_to_look_here_give_the_same_facts(name: str) -> None:
    check = CHECKS[name]
    if not check.probe_here or told_here(name).missing:
        return
    for _ in range(3):  # other tests start and end daemons meanwhile
        by_probe = set(told_here(name).facts)
        here = set(check.probe_here(check.options))
        if here == by_probe:
            break
    assert here == by_probe


@EVERY
def test_its_judge_is_pure(
    name: str, told: dict[str, Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name not in told:
        return
    before = findings_of(name, told[name], told[name].facts)

    def looks_elsewhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("a judge sees facts and options, and nothing else")

    with monkeypatch.context() as patch:
        patch.setattr(time, "time", looks_elsewhere)
        patch.setattr(time, "monotonic", looks_elsewhere)
        patch.setattr(builtins, "open", looks_elsewhere)
        patch.setattr(os, "stat", looks_elsewhere)
        patch.setattr(os, "getenv", looks_elsewhere)
        patch.setattr(os, "listdir", looks_elsewhere)
        patch.setattr(socket, "socket", looks_elsewhere)
        patch.setattr(subprocess, "Popen", looks_elsewhere)
        again = findings_of(name, told[name], told[name].facts)
    assert again == before


@EVERY
def test_its_options_say_what_they_are_for(name: str) -> None:
    check = CHECKS[name]
    hints = get_type_hints(type(check.options))
    for field in check.option_fields():
        assert field.metadata.get("text"), field.name
        default = getattr(check.options, field.name)
        assert default == field.default
        if isinstance(default, (int, float)) and not isinstance(default, bool):
            assert field.metadata.get("unit"), f"{field.name} is a number of what?"
        assert hints[field.name]
        assert parse(check, field.name, as_text(default)) == default
    adapter = TypeAdapter(type(check.options))
    assert adapter.validate_python(dataclasses.asdict(check.options)) == check.options


@EVERY
def test_its_probe_reads_options_that_exist(name: str) -> None:
    check = CHECKS[name]
    names = {field.name for field in check.option_fields()}
    assert set(check.probe_options) <= names
    for option in check.probe_options:
        assert re.search(rf"\${{?{option}\b|\b{option}\b", check.probe + check.heavy_probe), option


@EVERY
def test_its_codes_have_a_meaning(name: str) -> None:
    check = CHECKS[name]
    assert check.codes
    assert not set(check.codes) & set(verdict.COMMON_CODES)
    for code, declared in check.codes.items():
        assert script.is_word(code)
        assert re.fullmatch(r"[A-Z].*\.", declared.meaning, re.DOTALL), code


@EVERY
def test_what_its_findings_follow_from_is_there(name: str) -> None:
    """A cause or a code that is written wrong would never hold."""
    check = CHECKS[name]
    assert set(check.follows) <= {*check.codes, *verdict.COMMON_CODES}
    for cause in (*check.after, *(one for of in check.follows.values() for one in of)):
        other, _, code = cause.partition(".")
        assert other in CHECKS and (code or other != name)
        assert not code or code in CHECKS[other].codes


@EVERY
def test_its_findings_are_declared(name: str, told: dict[str, Told]) -> None:
    if name in told:
        declared = {**verdict.COMMON_CODES, **CHECKS[name].codes}
        for finding in findings_of(name, told[name], told[name].facts):
            assert finding.code in declared
            assert finding.remedy is None or finding.remedy in declared[finding.code].remedies
            assert name not in finding.message.split(), "the report says the check's name"


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_is_whole_sentences_and_does_no_harm(remedy: Remedy) -> None:
    assert re.fullmatch(r"[A-Z`].*\.", remedy.text, re.DOTALL)
    assert remedy.see == "" or remedy.see in sections()
    for harm in HARMFUL:
        assert not re.search(harm, remedy.text, re.IGNORECASE), harm


@pytest.fixture(autouse=True, scope="module")
def there_are_checks() -> Iterator[None]:
    """An empty registry would make every test here pass."""
    assert {"selinux", "tmp"} <= set(CHECKS)
    yield
