"""The table for people."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from clustercheck.check import Finding, Quantity, Remedy, fail, ok, skip, unknown, warn
from clustercheck.render import render
from clustercheck.render.escape import visible
from clustercheck.render.layout import wrap
from clustercheck.render.view import LEFT_OUT
from clustercheck.report import TROUBLE, NodeResult, Report, each

from .example import REPORT
from .made_up import reports, texts

REMEDY = Remedy("Mend it.", "§4.1.1")
RESTART = Remedy("Restart it.", disturbs=True)


def report(
    nodes: Mapping[str, Mapping[str, Sequence[Finding]]],
    *,
    checks: Sequence[str] = ("ntp", "nfs"),
    stopped: str = "",
    notes: Sequence[str] = (),
) -> Report:
    return Report(
        started=datetime(2026, 3, 1, tzinfo=timezone.utc),
        seconds=4.2,
        checks=checks,
        nodes={node: NodeResult(node, findings, 2.1) for node, findings in nodes.items()},
        stopped=stopped,
        notes=notes,
    )


def shown(of: Report, *, width: int = 100, verbose: bool = False) -> str:
    return render(of, "text", width=width, verbose=verbose)


def table(of: Report, *, width: int = 100, verbose: bool = False) -> list[list[str]]:
    """The words of each row, without the heading."""
    lines = shown(of, width=width, verbose=verbose).split("\n\n")[0].splitlines()
    return [line.split() for line in lines[2:]]


def test_what_is_wrong_stands_first_and_what_passed_on_one_line() -> None:
    well = {"ntp": [ok("a", "in step")], "nfs": [ok("b", "mounted")]}
    nodes = {f"gpu{i:02}": dict(well) for i in range(1, 17)}
    nodes["gpu07"]["nfs"] = [warn("slow", "slow", REMEDY)]
    nodes["gpu08"]["nfs"] = [fail("gone", "gone", REMEDY)]
    assert table(report(nodes)) == [
        ["fail", "nfs", "gpu08", "gone"],
        ["warn", "nfs", "gpu07", "slow"],
        ["pass", "ntp", "gpu[01-16]"],
        ["pass", "nfs", "gpu[01-06,09-16]"],
    ]
    del nodes["gpu07"], nodes["gpu08"]
    assert table(report(nodes)) == [["pass", "ntp,", "nfs", "gpu[01-06,09-16]"]]


def test_verbose_tells_each_message() -> None:
    nodes = {
        f"n{i}": {"ntp": [fail("a", f"{i}s", REMEDY)], "nfs": [ok("b", f"{i}x")]} for i in range(5)
    }
    told = [["fail", "ntp", f"n{i}", f"{i}s"] for i in range(5)]
    told += [["pass", "nfs", f"n{i}", f"{i}x"] for i in range(5)]
    assert table(report(nodes), verbose=True) == told


def test_skipped_checks_give_their_reason() -> None:
    blocked = [skip("blocked", "blocked by gpu")]
    of = report({"n1": {"ntp": blocked, "nfs": blocked}, "n2": {"ntp": [ok("a", "fine")]}})
    assert table(of) == [
        ["skip", "ntp,", "nfs", "n1", "blocked", "by", "gpu"],
        ["pass", "ntp", "n2"],
    ]


def test_many_reasons_for_what_was_skipped_are_one_line() -> None:
    """What a failure blocks is still told apart; --verbose tells all."""
    reasons = {"a": "no GPU", "b": "no bond", "c": "no Slurm", "d": "no Munge"}
    skipped: dict[str, dict[str, list[Finding]]] = {
        name: {c: [skip("none", why)] for c, why in reasons.items()} for name in "xy"
    }
    skipped["x"]["f"] = [ok("found", "fine"), skip("rest", "not asked")]
    skipped["y"]["e"] = [skip("blocked", "blocked by gpu")]
    assert table(report(skipped)) == [
        ["skip", "a,", "b,", "c,", "d", "x,y", *LEFT_OUT.split()],
        ["skip", "e", "y", "blocked", "by", "gpu"],
        ["pass", "f", "x"],
    ]
    told = [row[-2:] for row in table(report(skipped), verbose=True)]
    assert [why.split() for why in (*reasons.values(), "not asked")] == told[:5]
    del skipped["x"]["d"], skipped["y"]["d"]
    del skipped["y"]["e"], skipped["x"]["f"]
    assert [row[-2:] for row in table(report(skipped))] == [
        ["no", "GPU"],
        ["no", "bond"],
        ["no", "Slurm"],
    ]


def test_a_check_that_passed_in_part_is_not_among_those_that_passed() -> None:
    of = report({"n1": {"ntp": [ok("a", "x"), warn("b", "y", REMEDY)]}, "n2": {}})
    assert not [row for row in table(of) if row[0] == "pass"]


def test_the_worst_figure_is_shown_with_how_many_are_alike() -> None:
    nodes = {
        f"n{i}": {"ntp": [fail("a", f"{i} s fast", REMEDY, value=Quantity(i, "s"))]}
        for i in range(1, 9)
    }
    assert "8 s fast (n8; 7 more nodes alike, 1 to 8 s)" in shown(report(nodes))


def test_peers_are_folded() -> None:
    lost = [fail("a", "packets vanish", REMEDY, peer=f"gpu{i}") for i in range(3, 6)]
    assert "packets vanish (peers gpu[3-5])" in shown(report({"gpu1": {"nfs": lost}}))


def test_common_trouble_points_at_what_is_shared() -> None:
    nodes = {f"n{i}": {"ntp": [fail("a", "gone", REMEDY)]} for i in range(3)}
    hint = "look first at what these nodes share: a server, a policy, this machine"
    assert hint in shown(report(nodes))
    nodes |= {f"m{i}": {"ntp": [ok("a", "fine")]} for i in range(3)}
    assert hint not in shown(report(nodes))


def test_each_remedy_once_with_its_section_and_where_it_belongs() -> None:
    nodes = {
        "n1": {"ntp": [fail("a", "x", REMEDY)], "nfs": [warn("c", "z", RESTART)]},
        "n2": {"ntp": [fail("b", "y", REMEDY)]},
        "n3": {"ntp": [fail("b", "y", REMEDY)]},
    }
    text = shown(report(nodes))
    assert text.split("\n\n")[1].splitlines() == [
        "What to do",
        "- Mend it. (field notes §4.1.1)",
        "  for ntp.b on n[2-3]",
        "  for ntp.a on n1",
        "- [disturbs running work] Restart it.",
        "  for nfs.c on n1",
    ]


def test_one_node_has_no_column_of_nodes() -> None:
    of = report({"login": {"ntp": [fail("a", "gone", REMEDY)], "nfs": [ok("b", "x")]}})
    assert shown(of) == (
        "status    check    finding\n"
        "--------  -------  ---------\n"
        "fail      ntp      gone\n"
        "pass      nfs\n"
        "\n"
        "What to do\n"
        "- Mend it. (field notes §4.1.1)\n"
        "  for ntp.a\n"
        "\n"
        "login: fail; 2 checks; 4.2 s\n"
    )


@pytest.mark.parametrize(
    ("nodes", "stopped", "last"),
    [
        (
            {"a": "pass", "b": "fail", "c": "unknown", "d": "pass"},
            "",
            "4 nodes: 2 pass, 1 fail, 1 unknown; 2 checks; 4.2 s; slowest a 2.1 s",
        ),
        (
            {"a": "fail", "b": "fail"},
            "interrupted",
            "2 nodes: 0 pass, 2 fail; 2 checks; 4.2 s; slowest a 2.1 s; stopped early: interrupted",
        ),
        (
            {"a": "skip", "b": "skip"},
            "",
            "2 nodes: 0 pass, 2 skip; 2 checks; 4.2 s; slowest a 2.1 s; nothing was checked",
        ),
        ({"a": "skip"}, "", "a: skip; 2 checks; 4.2 s; nothing was checked"),
        ({}, "", "0 nodes: 0 pass; 2 checks; 4.2 s; nothing was checked"),
    ],
)
def test_summary_is_the_last_line(nodes: dict[str, str], stopped: str, last: str) -> None:
    finding = {
        "pass": ok("a", "x"),
        "skip": skip("a", "x"),
        "unknown": unknown("a", "x"),
        "fail": fail("a", "x", REMEDY),
    }
    of = report({n: {"ntp": [finding[word]]} for n, word in nodes.items()}, stopped=stopped)
    assert shown(of).splitlines()[-1] == last


def test_a_long_run_is_told_in_minutes() -> None:
    of = Report(datetime(2026, 3, 1, tzinfo=timezone.utc), 725.4, ["ntp"], {})
    assert "; 12 min 5 s;" in shown(of)


def test_a_very_long_node_set_is_cut_unless_asked_for() -> None:
    nodes = {f"gpu{i:04}": {"ntp": [unknown("a", "x")]} for i in range(0, 1024, 2)}
    of = report(nodes)
    whole = "1018,1020,1022]"
    assert "…] (512 nodes)" in " ".join(shown(of).split())
    assert whole not in "".join(shown(of).split())
    assert whole in "".join(shown(of, verbose=True).split())


@pytest.mark.parametrize("width", [1, 40, 41, 55, 69, 70, 71, 100, 150, 200, 500])
def test_lines_keep_the_width_and_columns_stay_straight(width: int) -> None:
    nodes = {
        "登录节点の一": {"ntp": [fail("a", "時計が進んでいる " * 20 + "x" * 300, REMEDY)]},
        "n1": {"ntp": [warn("a", "a word and another " * 20, RESTART)]},
    }
    text = shown(report(nodes, notes=["note " * 60]), width=width)
    *lines, _, summary = text.splitlines()
    assert max(wcswidth(line) for line in lines) <= min(max(width, 40), 200)
    head = lines[1].split("  ")
    starts = [sum(len(rule) + 2 for rule in head[:place]) for place in range(1, len(head))]
    for line in lines[: lines.index("")]:
        for start in starts:
            left = 0
            for character in line:
                if left >= start - 2:
                    break
                left += wcswidth(character)
            assert left <= start - 2 or len(line) < start, line


@settings(deadline=None, max_examples=60)
@given(reports(), st.integers(40, 69))
def test_no_message_loses_text(of: Report, width: int) -> None:
    # Narrow: one column for all text, so that it can be read on across lines.
    together = "".join(shown(of, width=width, verbose=True).split())
    for _, _, finding in each(of):
        if finding.status in TROUBLE:
            assert "".join(visible(finding.message).split(" ")) in together


def test_a_number_stays_with_its_unit() -> None:
    assert wrap("no answer within 10.0 s", 22) == ["no answer within", "10.0 s"]
    assert wrap("15 MiB free of 300 MiB, 95 %", 17) == ["15 MiB free of", "300 MiB, 95 %"]
    assert wrap("all of 7 servers", 9) == ["all of 7", "servers"]


@settings(deadline=None)
@given(texts, st.integers(2, 60))
def test_wrap_leaves_out_nothing_but_blanks(text: str, width: int) -> None:
    lines = wrap(visible(text), width)
    assert "".join(lines).replace(" ", "") == visible(text).replace(" ", "")
    assert max(wcswidth(line) for line in lines) <= width


def test_colour_never_stands_alone() -> None:
    plain = render(REPORT, "text")
    coloured = render(REPORT, "text", colour=True)
    assert "\x1b[1;31mfail\x1b[0m" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
