"""The gate's decision on made-up reports, and how it is handed out."""

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import jsonschema
import pytest

from clustercheck.check import Finding, Remedy, fail, ok, skip, unknown, warn
from clustercheck.decision import (
    Answer,
    Decision,
    Fingerprint,
    Need,
    Verdict,
    cannot_decide,
    decide,
    fingerprint,
    slurm_words,
)
from clustercheck.render import json as json_form
from clustercheck.render import verdict as render
from clustercheck.report import NodeResult, Report

REMEDY = Remedy("Make room.", "§2.3", disturbs=True)
WELL = {"tmp": [ok("space", "3 % used")], "ntp": [skip("host_keeps", "a container")]}
FULL = {"tmp": [fail("space", "99 % used, should be under 90 %", REMEDY)]}
SLOW = {"tmp": [warn("space", "85 % used", REMEDY)]}
UNKNOWN = {"tmp": [unknown("unanswered", "no answer within 5 s")]}
AWAY = {"access": [unknown("refused", "the connection was refused", Remedy("Start sshd."))]}
SKIPPED = {"tmp": [skip("none", "no /tmp")]}
CREATED = datetime(2026, 11, 30, 17, 42, 10, tzinfo=timezone.utc)

Found = Mapping[str, list[Finding]]


def report(*found: Found, stopped: str = "") -> Report:
    """A report on n1, n2, … with their findings."""
    return Report(
        started=CREATED,
        seconds=1.0,
        checks=["tmp", "ntp"],
        nodes={f"n{i}": NodeResult(f"n{i}", of) for i, of in enumerate(found, 1)},
        stopped=stopped,
    )


def verdict(
    decision: Decision, found: Fingerprint | None = None, slurm: bool = False, partition: str = ""
) -> Verdict:
    names = {f"n{i}": f"node{i}" for i in range(1, 9) if i != 7}
    return Verdict(
        decision,
        "v-20261130T174210Z-3f9c",
        CREATED,
        CREATED + timedelta(minutes=15),
        True,
        "benchmark",
        "sha256:" + "0" * 64,
        found,
        slurm_words(decision, names, partition) if slurm else None,
        ("a note",),
    )


SIX = (WELL, FULL, WELL, WELL, AWAY, WELL)  # n2 fails, n5 is not known


@pytest.mark.parametrize(
    ("found", "need", "expected"),
    [
        (SIX, Need(4), "go n1,n3,n4,n6: 4 of 6 nodes are healthy; too little is known of 1; 4 are"),
        (SIX, Need(3), "go n1,n3,n4:"),
        (SIX, Need(5), "undecided :"),
        (SIX, Need(6), "no-go : 4 of 6 nodes are healthy; too little is known of 1; 6 are needed"),
        (SIX, Need(5, on_unknown="no-go"), "no-go :"),
        (SIX, Need(5, on_unknown="go"), "go n1,n3,n4,n5,n6:"),
        # those that are known to be healthy come first
        ((UNKNOWN, WELL), Need(1, on_unknown="go"), "go n2:"),
        ((UNKNOWN,), Need(1), "undecided : 0 of 1 node is healthy; too little is known of 1; 1 is"),
        ((WELL,), Need(1), "go n1: 1 of 1 node is healthy; 1 is needed"),
        ((SLOW, SLOW, SLOW), Need(3), "go n1,n2,n3: 3 of 3 nodes are healthy; 3 are needed"),
        # nothing checked is not healthy
        ((SKIPPED,), Need(1), "undecided :"),
        ((SKIPPED,), Need(1, on_unknown="no-go"), "no-go :"),
        # and no node is no go
        ((), Need(0), "no-go :"),
        ((), Need(0, on_unknown="go"), "no-go :"),
    ],
)
def test_the_answer(found: tuple[Found, ...], need: Need, expected: str) -> None:
    made = decide(report(*found), need)
    assert f"{made.answer.value} {','.join(made.chosen)}: {made.why}".startswith(expected)
    assert len(made.chosen) == (need.nodes if made.answer is Answer.GO else 0)


def test_each_node_has_one_part_in_it() -> None:
    made = decide(report(*SIX), Need(3, spare=2))
    assert made.healthy == ("n1", "n3", "n4", "n6")
    assert (made.excluded, made.unreported) == (("n2",), ("n5",))
    assert (made.chosen, made.spares) == (("n1", "n3", "n4"), ("n6",))
    assert made.degraded  # a spare is lacking too
    assert [(r.nodes, r.name, r.status.value) for r in made.reasons] == [
        (("n2",), "tmp.space", "fail"),
        (("n5",), "access.refused", "unknown"),
    ]
    assert not decide(report(WELL, WELL, WELL), Need(2, spare=1)).degraded
    assert decide(report(WELL, WELL, WELL), Need(2, spare=2)).degraded


def test_a_failure_of_most_nodes_is_the_checks_own() -> None:
    found = report(FULL, FULL, FULL, WELL)
    made = decide(found, Need(4))
    assert made.answer is Answer.UNDECIDED
    assert made.why == (
        "1 of 4 nodes are healthy; too little is known of 3; 4 are needed; tmp.space fails on 3 of"
        " 4: the check, or what the nodes share, is suspect, and no node is excluded for it"
    )
    assert made.excluded == ()
    assert [reason.suspect for reason in made.reasons] == [True]
    assert decide(found, Need(4, on_unknown="go")).answer is Answer.GO
    assert decide(found, Need(4, on_unknown="no-go")).answer is Answer.NO_GO
    # also where there would be enough others: who was right is not known
    assert decide(found, Need(1)).answer is Answer.UNDECIDED
    # that there cannot be enough is known all the same
    assert decide(found, Need(5)).answer is Answer.NO_GO


def test_a_suspect_check_excuses_no_other() -> None:
    both = {**FULL, "ntp": [fail("offset", "3 s off", REMEDY)]}
    made = decide(report(FULL, FULL, FULL, both, {**FULL, **AWAY}), Need(3))
    assert (made.excluded, made.unreported) == (("n4",), ("n1", "n2", "n3", "n5"))
    # of a node that passes something else, that is known
    well = {**FULL, "ntp": [ok("offset", "0 s off")]}
    made = decide(report(well, well, well, both), Need(3))
    assert (made.excluded, made.healthy) == (("n4",), ("n1", "n2", "n3"))


@pytest.mark.parametrize(
    ("found", "percent", "suspect"),
    [
        ((FULL, FULL, WELL), 50, False),  # two are not most
        ((FULL, FULL, FULL, WELL, WELL, WELL), 50, False),
        ((FULL, FULL, FULL, WELL, WELL, WELL), 49, True),
        ((FULL, FULL, FULL), 100, False),
        # a node that gave no answer says nothing of the check
        ((FULL, FULL, FULL, WELL, AWAY, AWAY, AWAY), 50, True),
        # that nobody can be reached is no failure of theirs, and no check's
        ((AWAY, AWAY, AWAY), 50, False),
    ],
)
def test_what_is_most(found: tuple[Found, ...], percent: float, suspect: bool) -> None:
    made = decide(report(*found), Need(1, suspect_percent=percent))
    assert any(reason.suspect for reason in made.reasons) is suspect
    assert bool(made.excluded) is not (suspect or found[0] is AWAY)


def test_what_slurm_gives_no_work() -> None:
    trouble = {"n1": "drained: bad disk, by root", "n9": "down"}
    made = decide(report(WELL, WELL, WELL), Need(2), trouble)
    assert (made.chosen, made.excluded) == (("n2", "n3"), ("n1",))
    (reason,) = made.reasons
    assert reason.name == "slurm.state"
    assert reason.message == "Slurm gives it no work: drained: bad disk, by root"
    assert reason.remedy and "RESUME" in reason.remedy.text
    # what the check said is not said twice
    drained = {**WELL, "slurm": [fail("drained", "drained", REMEDY)]}
    made = decide(report(drained), Need(1), {"n1": "drained"})
    assert [reason.name for reason in made.reasons] == ["slurm.drained"]
    # of a partition that is down it is no check that is suspect
    made = decide(report(WELL, WELL, WELL), Need(1), dict.fromkeys(("n1", "n2", "n3"), "down"))
    assert (made.answer, made.healthy) == (Answer.NO_GO, ())


def test_a_run_that_was_stopped_says_so() -> None:
    made = decide(report(WELL, AWAY, stopped="--max-time of 5 s"), Need(2))
    assert made.answer is Answer.UNDECIDED
    assert made.why.endswith("the run ended before its time (--max-time of 5 s)")


def test_where_nothing_could_be_asked_it_is_never_a_go() -> None:
    answers = {
        word: cannot_decide(Need(1, on_unknown=word), "why").answer.value
        for word in ("", "go", "no-go")
    }
    assert answers == {"": "undecided", "go": "undecided", "no-go": "no-go"}


def fields(**of: str) -> dict[str, str]:
    return {"kernel": "6.1", "gpu.driver": "550.54", **of}


def test_the_fingerprint() -> None:
    made = decide(report(*SIX), Need(4))
    old = fields(**{"gpu.driver": "535.104"})
    told = {"n1": fields(), "n2": fields(kernel="5.4"), "n3": fields(), "n4": fields(), "n6": old}
    found = fingerprint({"fingerprint": told}, made)
    assert found
    assert [nodes for nodes, _ in found.classes] == [("n1", "n3", "n4"), ("n6",), ("n2",)]
    assert [(d.field, d.majority, d.outliers) for d in found.drift] == [
        ("gpu.driver", "550.54", ((("n6",), "535.104"),)),
        ("kernel", "6.1", ((("n2",), "5.4"),)),
    ]
    # of what is handed out, whatever the names and the number
    one = fingerprint({"fingerprint": {"n3": fields()}}, decide(report(*SIX), Need(1)))
    same = fingerprint(
        {"fingerprint": {"n1": fields(), "n2": fields()}}, decide(report(WELL, WELL), Need(2))
    )
    assert one and same and one.digest == "" and same.digest == found.classes[0][1]
    assert not same.drift
    assert found.digest not in ("", *(number for _, number in found.classes))
    assert fingerprint({}, made) is None


def test_without_a_majority_no_value_is_right() -> None:
    told = {"n1": fields(), "n2": fields(kernel="5.4")}
    found = fingerprint({"fingerprint": told}, decide(report(WELL, WELL), Need(1)))
    assert found
    assert [(d.majority, d.outliers) for d in found.drift] == [
        (None, ((("n1",), "6.1"), (("n2",), "5.4")))
    ]


@pytest.mark.parametrize(
    ("need", "partition", "args"),
    [
        (4, "", ["--nodes=4", "--nodelist=node[1,3-4,6]", "--exclude=node[2,5]"]),
        (2, "", ["--nodes=2", "--nodelist=node[1,3]", "--exclude=node[2,5]"]),
        (4, "main", ["--partition=main", "--exclude=node[2,5]"]),
        (5, "", []),
    ],
)
def test_slurm_is_told_in_its_own_names(need: int, partition: str, args: list[str]) -> None:
    made = verdict(decide(report(*SIX), Need(need)), slurm=True, partition=partition)
    assert made.slurm and list(made.slurm.args) == args
    assert made.slurm.exclude == ("node2", "node5")


def test_what_slurm_does_not_know_leaves_the_gate_in_none_of_its_words() -> None:
    names = {"n1": "node1", "n3": "node3"}
    made = decide(report(WELL, WELL, WELL, FULL), Need(2), first=names)
    words = slurm_words(made, names)
    assert made.chosen == ("n1", "n3")
    assert words.args == ("--nodes=2", "--nodelist=node[1,3]")
    assert (words.exclude, words.strangers) == ((), ("n2", "n4"))


def test_with_unknown_nodes_let_in_they_are_not_excluded() -> None:
    made = decide(report(*SIX), Need(5, on_unknown="go"))
    assert slurm_words(made, {f"n{i}": f"n{i}" for i in range(1, 7)}).exclude == ("n2",)


HOSTILE = "a\x1b[2J\n::set-output name=x::y\r%0A'$(reboot)`|<b>\u202e\udc80"


def hostile() -> Verdict:
    bad = {"tmp": [fail("space", HOSTILE, Remedy(HOSTILE, ""))]}
    told = {"n1": {"k": HOSTILE}, "n2": {"k": "b"}}
    made = decide(report(bad, WELL, AWAY), Need(1))
    return verdict(made, fingerprint({"fingerprint": told}, made), slurm=True)


CASES = {
    "go": verdict(decide(report(*SIX), Need(4, spare=1)), slurm=True),
    "no-go": verdict(decide(report(*SIX), Need(6))),
    "undecided": verdict(cannot_decide(Need(1), "the controller is down", ["n1"])),
    "hostile": hostile(),
}


@pytest.mark.parametrize("name", CASES)
def test_json_is_one_line_and_as_its_schema_says(name: str) -> None:
    text = render.render(CASES[name], "json")
    assert text.count("\n") == 1 and text.isascii()
    jsonschema.validate(
        json.loads(text),
        json_form.schema("verdict"),
        format_checker=jsonschema.FormatChecker(),
    )


def test_json_says_all() -> None:
    found: dict[str, Any] = json.loads(render.render(CASES["go"], "json"))
    reasons = found.pop("reasons")
    assert found == {
        "schema": "clustercheck.verdict/1",
        "id": "v-20261130T174210Z-3f9c",
        "verdict": "go",
        "why": "4 of 6 nodes are healthy; too little is known of 1; 4 are needed",
        "degraded": True,
        "created": "2026-11-30T17:42:10Z",
        "expires": "2026-11-30T17:57:10Z",
        "from_cache": True,
        "profile": {"name": "benchmark", "digest": f"sha256:{'0' * 64}"},
        "need": 4,
        "healthy": {"count": 4, "nodes": "n[1,3-4,6]"},
        "excluded": {"count": 1, "nodes": "n2"},
        "unreported": {"count": 1, "nodes": "n5"},
        "chosen": {"count": 4, "nodes": "n[1,3-4,6]"},
        "spare": {"count": 0, "nodes": ""},
        "slurm": {
            "exclude": "node[2,5]",
            "nodelist": "node[1,3-4,6]",
            "args": ["--nodes=4", "--nodelist=node[1,3-4,6]", "--exclude=node[2,5]"],
            "strangers": "",
        },
        "fingerprint": None,
        "notes": ["a note"],
    }
    assert reasons[0] == {
        "nodes": "n2",
        "check": "tmp",
        "code": "tmp.space",
        "status": "fail",
        "suspect": False,
        "summary": "99 % used, should be under 90 %",
        "remedy": "Make room.",
        "see": "§2.3",
        "disturbs": True,
    }


@pytest.mark.parametrize("name", CASES)
def test_env_can_be_evaluated_by_any_shell(name: str) -> None:
    text = render.render(CASES[name], "env")
    shown = 'printf "%s|%s|%s|%s" "$CC_VERDICT" "$CC_NNODES" "$CC_NODELIST" "$CC_EXCLUDE"'
    said = subprocess.run(["sh", "-c", f"{text}{shown}"], capture_output=True, text=True)
    assert said.stderr == ""
    assert (
        said.stdout
        == {
            "go": "go|4|node[1,3-4,6]|node[2,5]",
            "no-go": "no-go|0||n[2,5]",
            "undecided": "undecided|0||n1",
            "hostile": "go|1|node2|node[1,3]",
        }[name]
    )


@pytest.mark.parametrize(
    ("form", "go", "closed"),
    [
        ("list", "node1,node3,node4,node6\n", "\n"),
        ("exclude", "node2,node5\n", "n2,n5\n"),
        (
            "args",
            "--nodes=4\n--nodelist=node1,node3,node4,node6\n--exclude=node2,node5\n",
            "--clustercheck-says-no-go\n",
        ),
    ],
)
def test_lists_and_words(form: str, go: str, closed: str) -> None:
    assert render.render(CASES["go"], form) == go
    assert render.render(CASES["no-go"], form) == closed
    # without Slurm there are no words for it
    assert render.render(verdict(decide(report(WELL), Need(1))), "args") == f"{render.REFUSED}\n"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["github", "gitlab"])
def test_what_runners_read_has_a_line_for_each_variable(name: str, form: str) -> None:
    text = render.render(CASES[name], form)
    for line in text.rstrip("\n").split("\n"):
        assert re.fullmatch(r"(CC_)?[A-Za-z_]+=[\x20-\x7e§]*", line), line
    start = "CC_VERDICT=" if form == "gitlab" else "verdict="
    assert text.startswith(f"{start}{CASES[name].decision.answer.value}\n")


def test_github_is_told_errors_by_lines_that_nodes_cannot_forge() -> None:
    assert render.github_errors(CASES["no-go"]) == (
        "::error title=clustercheck::no-go: 4 of 6 nodes are healthy; too little is known of 1; 6"
        " are needed\n"
        "::error title=clustercheck tmp.space::n2: fail tmp.space: 99 %25 used, should be under 90"
        " %25\n"
        "::error title=clustercheck access.refused::n5: unknown access.refused: the connection was"
        " refused\n"
    )
    assert render.github_errors(CASES["go"]).startswith("::warning title=clustercheck tmp.space::")
    lines = render.github_errors(CASES["hostile"]).splitlines()
    assert len(lines) == 2 and all(line.startswith("::warning title=") for line in lines)


def test_markdown_of_github() -> None:
    text = render.github_summary(CASES["no-go"])
    assert "| n2 | fail tmp.space | 99 % used, should be under 90 % | Make room. |\n" in text
    hostile_text = render.github_summary(CASES["hostile"])
    assert "<b>" not in hostile_text and "\x1b" not in hostile_text
    assert len(hostile_text.splitlines()) == 6


@pytest.mark.parametrize("name", CASES)
def test_junit_is_whole_xml(name: str) -> None:
    suite = ElementTree.fromstring(render.render(CASES[name], "junit").encode())
    decision = CASES[name].decision
    assert (
        int(suite.attrib["tests"])
        == len(suite)
        == 1 + len((*decision.healthy, *decision.excluded, *decision.unreported))
    )
    kinds = [child.tag for case in suite for child in case]
    assert kinds.count("failure") == int(suite.attrib["failures"])
    assert kinds.count("error") == int(suite.attrib["errors"]) == len(decision.unreported)
    assert (suite[0].find("failure") is not None) is (name in ("no-go", "undecided"))


def test_text_for_people() -> None:
    assert render.render(CASES["go"], "text") == (
        "go: 4 of 6 nodes are healthy; too little is known of 1; 4 are needed\n"
        "  use: n[1,3-4,6]\n"
        "  excluded: n2\n"
        "  not known: n5\n"
        "\n"
        "  n2: fail tmp.space: 99 % used, should be under 90 %\n"
        "  -> [disturbs running work] Make room. (field notes §2.3)\n"
        "  n5: unknown access.refused: the connection was refused\n"
        "  -> Start sshd.\n"
        "\n"
        "  v-20261130T174210Z-3f9c, profile benchmark, from what was known, holds until\n"
        "    2026-11-30T17:57:10Z\n"
        "  note: a note\n"
    )
    shown = render.render(CASES["hostile"], "text") + render.prose(CASES["hostile"], 100)
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "a\\x1b[2J" in shown


def test_words_of_args_are_words_of_any_shell() -> None:
    names = {f"n{i}": f"{'x' * 60}{i}" for i in range(2000)}
    found = Report(CREATED, 1.0, ["tmp"], {name: NodeResult(name, WELL) for name in names})
    made = decide(found, Need(2000))
    many = replace(verdict(made), slurm=slurm_words(made, names))
    assert render.render(many, "args") == f"--nodes=2000\n--nodelist={'x' * 60}[0-1999]\n"
    blank = replace(verdict(made), slurm=slurm_words(made, {"n1": "a b"}))
    assert render.render(blank, "args") == f"{render.REFUSED}\n"
