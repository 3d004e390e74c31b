"""What only shows between nodes: peers, comparisons, and who is asked once more."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import (
    AnyCheck,
    Facts,
    Finding,
    NoOptions,
    fail,
    ok,
    unknown,
    warn,
)
from clustercheck.fanout import Bounds
from clustercheck.run import Watch, run
from tests.made_up_run import REMEDY, Unwell, check, plan, told


def pairwise(probe: str) -> AnyCheck:
    """It is UNKNOWN of every peer that the fact `silent` names, and speaks of the node itself."""

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "the node itself is well")
        for peer in facts["silent"].split():
            yield unknown("found", "no answer", peer=peer)

    return check(probe, judge=judge, probe_peers=True)


def test_every_peer_must_be_spoken_of_whatever_is_said_of_the_node() -> None:
    report = run(plan({"c": pairwise("fact silent ''")}, 3), Watch())
    assert told(report)["n0"] == [
        "pass c.found: the node itself is well",
        "unknown c.not_answered: nothing was reported",
        "unknown c.not_answered: nothing was reported",
    ]
    assert [f.peer for f in report.nodes["n0"].findings["c"]] == ["", "n1", "n2"]


def test_a_node_without_peers_is_judged_all_the_same() -> None:
    alone = pairwise("fact silent ''")
    assert told(run(plan({"c": alone}), Watch()))["n0"] == ["pass c.found: the node itself is well"]
    of_pairs = check("fact tried 0", judge=lambda facts, options: (), probe_peers=True)
    assert told(run(plan({"c": of_pairs}), Watch()))["n0"] == [
        "skip c.no_peers: no other node to try"
    ]


def test_a_comparison_may_say_better_whose_fault_it_is() -> None:
    def compare(facts: object, options: object) -> Iterable[tuple[str, Finding]]:
        yield "n0", ok("found", "it is the other side's fault", peer="n1")

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "the node itself is well")
        for peer in facts["peers"].split():
            yield fail("found", "no answer", REMEDY, peer=peer)

    checks = {"c": check('fact peers "$(echo $PEERS)"', judge=judge, probe_peers=True)}
    checks["c"] = dataclasses.replace(checks["c"], compare=compare)
    assert told(run(plan(checks, 3), Watch()))["n0"] == [
        "pass c.found: the node itself is well",
        "fail c.found: no answer",
        "pass c.found: it is the other side's fault",
    ]


def test_no_node_answers_for_a_peer_that_is_unreachable_itself() -> None:
    checks = {"c": pairwise('fact silent "$(echo $PEERS)"')}
    report = run(plan(checks, 4, transport=Unwell(), bounds=Bounds(8, 5)), Watch())
    assert {f.peer: f.status.value for f in report.nodes["n3"].findings["c"]} == {
        "": "pass",
        "n0": "unknown",
        "n1": "skip",
    }


def test_what_only_shows_between_nodes(tmp_path: Path) -> None:
    def compare(
        facts: Mapping[str, Facts], options: Mapping[str, NoOptions]
    ) -> Iterable[tuple[str, Finding]]:
        assert set(facts) == {"n0", "n1", "n2"} and set(options) == set(facts)
        yield "n1", warn("found", "differs from the others", REMEDY)

    report = run(plan({"c": check(compare=compare)}, 3), Watch())
    assert told(report)["n0"] == ["pass c.found: it said yes"]
    assert told(report)["n1"][1] == "warn c.found: differs from the others"


def test_a_crash_of_a_comparison_is_unknown() -> None:
    def compare(facts: object, options: object) -> Iterable[tuple[str, Finding]]:
        raise ValueError("on purpose")

    report = run(plan({"c": check(compare=compare)}, 2), Watch())
    assert report.exit_code == 3
    assert told(report)["n1"][1].startswith("unknown c.crashed")


def test_the_few_that_differ_are_asked_again(tmp_path: Path) -> None:
    """A short answer of each; the long one only of the node that differs."""

    def follow(facts: Mapping[str, Facts], options: object) -> Iterable[str]:
        assert set(facts) == {"n0", "n1", "n2"}
        yield "n1"

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts.get("long", "short only"))

    made = check(judge=judge, follow=follow, follow_probe="fact long 'all of it'")
    grown: list[str] = []
    report = run(plan({"c": made}, 3), Watch(followed=lambda answer: grown.append(answer.node)))
    assert told(report) == {
        "n0": ["pass c.found: short only"],
        "n1": ["pass c.found: all of it"],
        "n2": ["pass c.found: short only"],
    }
    assert grown == ["n1"]


def test_what_a_node_says_reaches_others_as_data_and_is_kept_by_nobody() -> None:
    """Also where it knows what ends the probes in the script, which each node sees."""
    text = "fact kept 'it$(true)'; fact handed@peer '\nEND-'\"${0%/*}\"' done\n`false`'"

    def follow(facts: Mapping[str, Facts], options: object) -> Mapping[str, str]:
        idents = [part for part in facts["n0"]["handed@peer"].split("-") if len(part) == 16]
        assert idents, "the directory's name has no ident any more"
        return {"n1": f"a'b\nEND-{idents[0]}\nfact broken out\n{facts['n0']['handed@peer']}"}

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", "|".join(f"{key}={text}" for key, text in facts.items()))

    made = check(
        text, judge=judge, follow=follow, follow_probe='fact told "$FOLLOW"', secrets=("handed",)
    )
    kept: list[str] = []
    watch = Watch(
        ended=lambda answer, _: kept.append(answer.to_json()),
        followed=lambda answer: kept.append(answer.to_json()),
    )
    found = told(run(plan({"c": made}, 2), watch))
    assert found["n0"] == ["pass c.found: kept=it$(true)"]
    assert "broken=" not in found["n1"][0]
    assert "|told=a'b" in found["n1"][0] and "`false`" in found["n1"][0]
    assert len(kept) == 3 and not any("handed" in text for text in kept)


def test_a_zero_byte_is_handed_to_nobody() -> None:
    made = check(follow=lambda facts, options: {"n1": "a\0b"}, follow_probe="fact said no")
    grown: list[str] = []
    found = told(run(plan({"c": made}, 2), Watch(followed=lambda a: grown.append(a.node))))
    assert (found["n1"], grown) == (["pass c.found: it said yes"], [])


def breaks(facts: object, options: object) -> Iterable[str]:
    raise ValueError("on purpose")


@pytest.mark.parametrize("follow", [breaks, lambda facts, options: ["n7"]])
def test_a_crash_while_choosing_whom_to_ask_again_is_no_pass(
    follow: Callable[[Mapping[str, Facts], Mapping[str, Any]], Iterable[str]],
) -> None:

    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts["long"])

    report = run(
        plan({"c": check(judge=judge, follow=follow, follow_probe="fact long 1")}), Watch()
    )
    assert report.exit_code == 3


def test_all_nodes_are_named_to_a_probe_that_asks() -> None:
    def judge(facts: Facts, options: NoOptions) -> Iterable[Finding]:
        yield ok("found", facts["nodes"].replace("\n", "+"))

    report = run(
        plan({"c": check('fact nodes "$NODES"', judge=judge, probe_nodes=True)}, 3), Watch()
    )
    assert told(report)["n2"] == ["pass c.found: n0+n1+n2"]


def test_a_comparison_that_names_a_node_nobody_asked_is_unknown() -> None:
    def compare(facts: object, options: object) -> Iterable[tuple[str, Finding]]:
        yield "n7", warn("found", "differs", REMEDY)

    report = run(plan({"c": check(compare=compare)}, 2), Watch())
    assert report.exit_code == 3
    assert told(report)["n0"][1].startswith("unknown c.crashed")
    assert "it compares n7, not asked" in told(report)["n0"][1]
