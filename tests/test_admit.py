"""The command admit: who may join, why not, and what to do first."""

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from clustercheck.admission import BOTH_SIDES, CLOSER, JOINING, Admission, admissions
from clustercheck.admit import closer, exit_code, like
from clustercheck.check import Finding, Remedy, fail, ok, skip, unknown, warn
from clustercheck.errors import UsageError
from clustercheck.inventory import load
from clustercheck.render.admission import render
from clustercheck.render.escape import sound
from clustercheck.render.json import schema
from clustercheck.report import NodeResult, Report
from tests.command import clustercheck
from tests.made_up import CHECKS
from tests.render.made_up import reports

NAMES = Remedy("Give every node the same names.", "§4.1.2")
CLOCK = Remedy("Let the daemon follow a server.", "§4.1.1", disturbs=True)
SAME = Remedy("Set it as on the others.")
Found = Mapping[str, list[Finding]]
GOOD: Found = {"ntp": [ok("offset", "in step")], "dns": [ok("own", "resolves")]}


def report(nodes: Mapping[str, Found]) -> Report:
    results = {name: NodeResult(name, found, 1.0) for name, found in nodes.items()}
    return Report(datetime(2026, 11, 30, tzinfo=timezone.utc), 1.0, ["ntp", "dns"], results)


def one(nodes: Mapping[str, Found]) -> Admission:
    (found,) = admissions(report(nodes), ["new"], CHECKS)
    return found


def told(found: Admission) -> Any:
    """What is written as JSON of one candidate, as its schema says."""
    content = json.loads(render([found], "json", "", exit_code=exit_code([found])))
    jsonschema.Draft202012Validator(schema("admission")).validate(content)
    return content["candidates"][sound(found.node)]


def text(found: Admission) -> str:
    return render([found], "text", "clustercheck admit new", exit_code=0)


def test_a_clean_twin_is_admitted() -> None:
    found = one({"new": GOOD, "a1": GOOD, "a2": GOOD})
    assert (found.answer, exit_code([found])) == ("admit", 0)
    assert text(found) == "new: admit\nCompared with a[1-2].\n\nPassed: ntp, dns\n"


def test_the_cause_stands_before_what_follows_from_it() -> None:
    bad: Found = {
        "fingerprint": [warn("uniform", "a limit is 1, and 2 on others", SAME)],
        "ntp": [fail("offset", "3 s ahead", CLOCK), fail("no_daemon", "none runs", CLOCK)],
        "gpu": [skip("none", "no GPU")],
        "dns": [warn("slow", "a look-up takes 2 s", NAMES)],
        "nfs": [unknown("hung", "no answer")],
        "tmp": [ok("space", "enough")],
    }
    found = one({"new": bad, "a1": GOOD})
    assert text(found) == (
        "new: do not admit: 2 failures, 1 unknown, 2 remarks\n"
        "Compared with a1.\n"
        "\n"
        "Why\n"
        "[1] warn dns.slow: a look-up takes 2 s\n"
        "[2] fail ntp.offset: 3 s ahead\n"
        "[3] fail ntp.no_daemon: none runs\n"
        "[4] unknown nfs.hung: no answer\n"
        "[5] warn fingerprint.uniform: a limit is 1, and 2 on others\n"
        "\n"
        "What to do, in this order\n"
        "1. Give every node the same names. (field notes §4.1.2)\n"
        "   for [1] dns.slow\n"
        "2. [disturbs running work] Let the daemon follow a server. (field notes §4.1.1)\n"
        "   for [2][3] ntp.offset, ntp.no_daemon\n"
        "3. Set it as on the others.\n"
        "   for [5] fingerprint.uniform\n"
        "\n"
        "Then\n"
        "   clustercheck admit new -c dns,fingerprint,nfs,ntp\n"
        "\n"
        "Passed: tmp\n"
        "Does not apply: gpu (no GPU)\n"
    )
    assert exit_code([found]) == 2


def test_what_follows_from_a_failure_is_run_again_as_well() -> None:
    bad: Found = {
        "munge": [fail("same_key", "another key", SAME)],
        "slurm": [ok("slurmd", "runs"), skip("blocked", "state: blocked by munge")],
        "processes": [skip("blocked", "blocked by nfs")],
        "ntp": [skip("blocked", "not to be reached from here either", peer="a9")],
    }
    found = one({"new": bad, "a1": GOOD})
    assert found.again == ("munge", "processes", "slurm")
    assert text(found).endswith(
        "\n\nNot judged before that is mended: slurm (state: blocked by munge); processes"
        " (blocked by nfs)\nDoes not apply: ntp (not to be reached from here either)\n"
    )
    assert told(found)["blocked"]["processes"] == "blocked by nfs"


def test_what_existing_nodes_say_of_it_counts() -> None:
    hole = warn("hole", "large packets vanish", SAME, peer="new")
    differs = fail("differs", "new has no address here", NAMES)
    other = fail("differs", "newer has no address here", NAMES)
    found = one(
        {
            "new": GOOD,
            "a1": {"mtu": [hole], "dns": [differs]},
            "a2": {"mtu": [hole], "dns": [other]},
        }
    )
    assert found.answer == "do not admit: 1 failure, 1 remark"
    assert [(r.finding.code, r.by) for r in found.remarks] == [
        ("hole", ("a1", "a2")),
        ("differs", ("a1",)),
    ]
    assert "warn mtu.hole: large packets vanish (so says a[1-2])\n" in text(found)


def test_what_is_wrong_with_an_existing_node_keeps_nobody_out() -> None:
    found = one({"new": GOOD, "a1": {"ntp": [fail("offset", "9 s behind", CLOCK)]}})
    assert (found.answer, found.remarks) == ("admit", ())


def test_what_is_not_known_keeps_it_out() -> None:
    found = one({"new": {"access": [unknown("timeout", "no answer")]}, "a1": GOOD})
    assert found.answer == "do not admit: 1 unknown"
    assert exit_code([found]) == 3


def test_alone_it_is_not_admitted_as_like_the_others() -> None:
    found = one({"new": GOOD})
    assert found.answer == "admit, but there is no other node to compare it with"
    assert exit_code([found]) == 1
    silent: Found = {"access": [unknown("timeout", "no answer")]}
    found = one({"new": GOOD, "a1": silent})
    assert exit_code([found]) == 1
    assert "Not compared: there is no other node to compare it with; no answer from a1." in text(
        found
    )


def of_kind(kind: str, *more: Finding) -> Found:
    return {**GOOD, "fingerprint": [ok("taken", "x"), ok("kind", kind), *more]}


def test_of_another_kind_it_is_not_like_the_others() -> None:
    alone = skip("alone", "no other node of this run is of its kind: R650")
    found = one({"new": of_kind("R650", alone), "a1": of_kind("XE8545")})
    assert found.answer == "admit, but no other node of this run is of its kind: R650"
    assert exit_code([found]) == 1
    assert text(found).splitlines()[1] == (
        "Compared with no node of its kind (R650), only with a1 (another kind: XE8545)."
    )


def test_of_several_kinds_it_is_told_which_are_its_own() -> None:
    nodes = {"new": of_kind("R650"), "a1": of_kind("XE8545"), "a2": of_kind("R650")}
    found = one({**nodes, "a3": of_kind("R650"), "a4": {"access": [unknown("timeout", "none")]}})
    assert found.answer == "admit"
    assert text(found).splitlines()[1] == (
        "Compared with a[2-3] (its kind: R650); in part with a1 (another kind: XE8545); no answer"
        " from a4."
    )
    assert told(found)["kinds"] == [
        {"kind": "R650", "own": True, "nodes": ["a2", "a3"]},
        {"kind": "XE8545", "own": False, "nodes": ["a1"]},
    ]
    same = one({"new": of_kind("R650"), "a1": of_kind("R650")})
    assert text(same).splitlines()[1] == "Compared with a1."


def test_nothing_checked_is_no_admission() -> None:
    found = one({"new": {"gpu": [skip("none", "no GPU")]}, "a1": GOOD})
    assert found.answer == "do not admit: nothing could be checked"
    assert exit_code([found]) == 3


def test_the_worst_of_several_candidates_counts() -> None:
    nodes: Mapping[str, Found] = {
        "n1": GOOD,
        "n2": {"dns": [unknown("own", "no answer")]},
        "n3": {"ntp": [fail("offset", "3 s ahead", CLOCK)]},
        "a1": GOOD,
    }
    found = admissions(report(nodes), ["n1", "n2", "n3"], CHECKS)
    assert [one.answer for one in found] == [
        "admit",
        "do not admit: 1 unknown",
        "do not admit: 1 failure",
    ]
    assert exit_code(found) == 2 and exit_code(found[:2]) == 3


def test_in_markdown_and_json() -> None:
    found = one({"new": {"dns": [warn("slow", "a <b>look-up</b>", NAMES)]}, "a1": GOOD})
    shown = render([found], "markdown", "clustercheck admit new", exit_code=1)
    assert shown.startswith("## new: admit with 1 remark\n")
    assert "1. Give every node the same names." in shown and "<b>" not in shown
    content = told(found)
    assert content["admit"] is True and content["answer"] == "admit with 1 remark"
    assert content["work"][0]["codes"] == ["dns.slow"] and content["again"] == ["dns"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.update(more=1),
        lambda c: c.update(exit_code=64),
        lambda c: c["candidates"]["new"].pop("kinds"),
        lambda c: c["candidates"]["new"].update(status="bad"),
        lambda c: c["candidates"]["new"]["remarks"][0].update(status="pass"),
        lambda c: c["candidates"]["new"]["work"][0].update(codes=[]),
    ],
)
def test_the_schema_notices_drift(spoil: Any) -> None:
    found = one({"new": {"dns": [warn("slow", "slow", NAMES)]}, "a1": GOOD})
    content = json.loads(render([found], "json", "", exit_code=1))
    validator = jsonschema.Draft202012Validator(schema("admission"))
    validator.validate(content)
    spoil(content)
    assert not validator.is_valid(content)


@settings(deadline=None, max_examples=60)
@given(reports())
def test_any_admission_fits_its_schema_and_forms(found: Report) -> None:
    """Of whatever nodes have said."""
    names = list(found.nodes)
    answers = admissions(found, names[: len(names) // 2 + 1], CHECKS)
    for one_of_them in answers:
        told(one_of_them)
        for form in ("text", "markdown"):
            shown = render([one_of_them], form, "clustercheck admit", exit_code=0)
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", shown)


INVENTORY = """\
[gpu]
g[01:40]
[login]
l[1:2]
[rack1]
g01
g02
g03
"""


@pytest.mark.parametrize(
    ("candidates", "text", "expected"),
    [
        (["g01"], "", ["g02", "g03"]),
        (["l1"], "", ["l2"]),
        (["l1", "l2"], "", 10),
        (["g09"], "", 10),
        (["g09"], "g[08-10]", ["g08", "g10"]),
        (["new"], "@rack1", ["g01", "g02", "g03"]),
        (["new"], "", 11),
    ],
)
def test_whom_it_is_held_against(
    tmp_path: Path, candidates: list[str], text: str, expected: list[str] | int
) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY)
    found = [node.name for node in like(load(path, CHECKS), candidates, text, [])]
    if isinstance(expected, int):
        assert len(found) == expected and not set(found) & set(candidates)
    else:
        assert found == expected


def test_a_candidate_is_not_like_itself(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY)
    notes: list[str] = []
    found = like(load(path, CHECKS), ["g02"], "g[01-03]", notes)
    assert [node.name for node in found] == ["g01", "g03"]
    assert notes == ["g02 cannot be like itself, and is left out of --like"]
    with pytest.raises(UsageError, match="--like names no other node than the candidates"):
        like(load(path, CHECKS), ["g02"], "g02", [])


def test_candidates_alone_are_looked_at_more_closely() -> None:
    options = CHECKS["nfs"].options

    def options_of(check: str, node: str) -> Any:
        return CHECKS[check].options

    of = closer(options_of, ["new"], CLOSER)
    assert of("nfs", "new").throughput is True and of("nfs", "new") is of("nfs", "new")
    assert of("nfs", "old") is options and options.throughput is False
    assert of("ntp", "new") is CHECKS["ntp"].options


def test_what_is_looked_at_more_closely_can_be_set() -> None:
    for check, more in (*CLOSER.items(), *BOTH_SIDES.items(), *JOINING.items()):
        dataclasses.replace(CHECKS[check].options, **more)


def test_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(
        "".join(f"n{place} ansible_connection=local\n" for place in range(4))
        + "[check:fine]\ncommand = echo fine\n[check:poor]\ncommand = echo poor; exit 1\n"
    )
    done = clustercheck("admit", "n3", "-i", path, "-c", "fine")
    assert done.status == 0, done.err
    assert done.out == "n3: admit\nCompared with n[0-2].\n\nPassed: fine\n"
    done = clustercheck("admit", "n3,n1", "--like", "n0", "-i", path, "-c", "fine,poor")
    assert done.status == 1
    assert "n1: admit with 1 remark\nCompared with n0.\n" in done.out
    assert f"clustercheck admit 'n[1,3]' -i {path} --like n0 -c poor" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n3", "--format", "jsno"], "--format: there is no form 'jsno'; did you mean 'json'?"),
        (["n3", "--like", "@racks"], "racks"),
        ([" "], "admit whom?"),
        (["n3", "--output", "/nonexistent/x"], "there is no folder '/nonexistent'"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], message: str) -> None:
    done = clustercheck("admit", *words)
    assert done.status == 64 and message in done.err
    assert done.err.count("\n") == 1 and "Traceback" not in done.err
