"""A run in which some nodes are asked some checks, and the rest is known from before."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clustercheck.answer import Answer
from clustercheck.check import Facts, Finding, NoOptions, Target, warn
from clustercheck.facts import Told
from clustercheck.run import Plan, Watch, run
from tests.made_up_run import REMEDY, Unwell, check, plan, told


def said(word: str, **more: str) -> Told:
    return Told(Facts({"said": word, **more}), whole=True, status="0")


def known(**words: str) -> dict[str, Answer]:
    """Answers of n0, n1, … from before: by check, a word of each with spaces between."""
    by_node: dict[str, dict[str, Told]] = {}
    for name, text in words.items():
        for place, word in enumerate(text.split()):
            by_node.setdefault(f"n{place}", {})[name] = said(word)
    return {node: Answer(node, list(of), of) for node, of in by_node.items()}


def part(whole: Plan, only: Mapping[str, list[str]], before: Mapping[str, Answer]) -> Plan:
    return replace(whole, only=only, known=before)


def test_only_what_is_wanted_is_asked_and_the_rest_is_judged_from_before() -> None:
    checks = {"kept": check(), "asked": check(), "both": check()}
    before = known(kept="yes no yes", asked="no yes yes", both="no no yes")
    begun: list[str] = []
    some = part(plan(checks, 3), {"n0": ["asked", "both"], "n1": [], "n2": ["kept"]}, before)
    report = run(some, Watch(began=begun.append))
    assert sorted(begun) == ["n0", "n2"]
    yes = "it said yes"
    no = "it said no, should say yes"
    assert told(report) == {
        "n0": [f"pass kept.found: {yes}", f"pass asked.found: {yes}", f"pass both.found: {yes}"],
        "n1": [f"fail kept.found: {no}", f"pass asked.found: {yes}", f"fail both.found: {no}"],
        "n2": [f"pass kept.found: {yes}", f"pass asked.found: {yes}", f"pass both.found: {yes}"],
    }


def test_a_run_in_which_nobody_is_asked_judges_what_is_known() -> None:
    report = run(part(plan({"c": check()}, 2), {}, known(c="no yes")), Watch())
    assert [result.status.value for result in report.nodes.values()] == ["fail", "pass"]
    assert report.stopped == ""


def test_what_was_never_asked_is_unknown() -> None:
    report = run(part(plan({"c": check(), "d": check()}, 2), {}, known(c="yes")), Watch())
    assert told(report) == {
        "n0": [
            "pass c.found: it said yes",
            "unknown d.not_answered: the node gave no answer to it",
        ],
        "n1": ["unknown c.not_answered: the node gave no answer to it"]
        + ["unknown d.not_answered: the node gave no answer to it"],
    }


def test_nodes_that_are_asked_are_compared_with_those_that_are_not() -> None:
    def compare(
        facts: Mapping[str, Facts], options: Mapping[str, NoOptions]
    ) -> Iterable[tuple[str, Finding]]:
        words = [told["said"] for told in facts.values()]
        usual = max(words, key=words.count)
        for node, its in facts.items():
            if its["said"] != usual:
                yield node, warn("found", f"others say {usual}", REMEDY)

    checks = {"c": check(compare=compare)}
    report = run(part(plan(checks, 4), {"n3": ["c"]}, known(c="no no no")), Watch())
    assert told(report)["n3"] == ["pass c.found: it said yes", "warn c.found: others say no"]
    assert "others" not in str(told(report)["n0"])


def test_follow_sees_all_and_asks_those_that_are_not_asked_otherwise() -> None:
    seen: list[list[str]] = []

    def follow(facts: Mapping[str, Facts], options: Mapping[str, NoOptions]) -> Iterable[str]:
        seen.append(sorted(facts))
        return ["n0"]

    checks = {"c": check(follow=follow, follow_probe="fact said yes")}
    followed: list[str] = []
    some = part(plan(checks, 2), {"n1": ["c"]}, known(c="no yes"))
    report = run(some, Watch(followed=lambda answer: followed.append(answer.node)))
    assert seen == [["n0", "n1"]] and followed == ["n0"]
    assert told(report)["n0"] == ["pass c.found: it said yes"]


def test_a_node_that_has_gone_is_one_finding_whatever_was_known_of_it() -> None:
    checks = {"kept": check(), "asked": check()}
    whole = plan(checks, 2, transport=Unwell())
    report = run(part(whole, {"n1": ["asked"]}, known(kept="yes yes", asked="yes yes")), Watch())
    assert told(report)["n1"] == ["unknown access.refused: nothing listens on port 22 of 10.0.0.1"]


def test_this_machine_is_asked_about_those_alone_whose_turn_it_is() -> None:
    about: list[list[str]] = []

    def from_here(nodes: Iterable[Target], options: NoOptions) -> dict[str, dict[str, str]]:
        about.append([node.name for node in nodes])
        return {}

    checks = {"c": check(probe_from_here=from_here), "d": check()}
    before = known(c="yes yes yes", d="yes yes yes")
    run(part(plan(checks, 3), {"n0": ["d"], "n1": ["c"]}, before), Watch())
    assert about == [["n1"]]


def test_all_nodes_are_told_as_peers() -> None:
    probe = 'fact said yes; for peer in $PEERS; do fact "peer@$peer" 1; done'
    answers: dict[str, Answer] = {}
    checks = {"c": check(probe, probe_peers=True)}
    some = part(plan(checks, 3), {"n0": ["c"]}, known(c="yes yes yes"))
    run(some, Watch(ended=lambda answer, _: answers.update({answer.node: answer})))
    assert sorted(answers["n0"].told["c"].facts.at("peer")) == ["n1", "n2"]
    assert answers["n0"].peers == ["n1", "n2"]
