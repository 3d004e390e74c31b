"""The model: what a node's status is, how a run ends, what is folded with what."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import pytest

from clustercheck.check import Finding, Quantity, Remedy, Status, fail, ok, skip, unknown, warn
from clustercheck.report import Group, NodeResult, Report, groups

REMEDY = Remedy("Mend it.", "§1")
ONE_OF = {
    "pass": ok("a", "fine"),
    "skip": skip("b", "does not apply"),
    "warn": warn("c", "so so", REMEDY),
    "unknown": unknown("d", "cannot tell"),
    "fail": fail("e", "broken", REMEDY),
}


def report(nodes: Mapping[str, Mapping[str, Sequence[Finding]]]) -> Report:
    return Report(
        started=datetime(2026, 3, 1, tzinfo=timezone.utc),
        seconds=1.0,
        checks=["ntp", "nfs"],
        nodes={node: NodeResult(node, findings) for node, findings in nodes.items()},
    )


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ("pass", 0),
        ("pass pass", 0),
        ("pass skip", 0),
        ("pass warn", 1),
        ("skip warn", 1),
        ("pass unknown", 3),
        ("warn unknown", 3),
        ("fail", 2),
        ("unknown fail warn", 2),
        ("skip", 3),
        ("skip skip", 3),
        ("", 3),
    ],
)
def test_exit_code_of_nodes(statuses: str, code: int) -> None:
    nodes = {f"n{i}": {"ntp": [ONE_OF[word]]} for i, word in enumerate(statuses.split())}
    assert report(nodes).exit_code == code


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ("pass skip", "pass"),
        ("skip", "skip"),
        ("skip warn", "warn"),
        ("pass unknown warn", "unknown"),
        ("unknown fail", "fail"),
    ],
)
def test_status_of_a_node(statuses: str, status: str) -> None:
    result = NodeResult("n", {word: [ONE_OF[word]] for word in statuses.split()})
    assert result.status.value == status


@pytest.mark.parametrize("findings", [{}, {"ntp": []}, {"nfs": [ONE_OF["pass"]], "ntp": []}])
def test_what_said_nothing_is_unknown(findings: dict[str, list[Finding]]) -> None:
    result = NodeResult("n", findings)
    assert result.status is Status.UNKNOWN
    messages = [f.message for found in result.findings.values() for f in found]
    assert "nothing was found out" in messages


def test_counts() -> None:
    found = report({f"n{i}": {"ntp": [f]} for i, f in enumerate([*ONE_OF.values(), ok("a", "x")])})
    assert {status.value: count for status, count in found.counts.items()} == {
        "pass": 2,
        "skip": 1,
        "warn": 1,
        "unknown": 1,
        "fail": 1,
    }


def test_the_worst_comes_first_then_what_most_nodes_have() -> None:
    nodes = {
        "n1": {"ntp": [ONE_OF["warn"]], "nfs": [ONE_OF["pass"]]},
        "n2": {"ntp": [ONE_OF["fail"]], "nfs": [ONE_OF["unknown"]]},
        "n3": {"ntp": [ONE_OF["pass"]], "nfs": [fail("z", "gone", REMEDY)]},
        "n4": {"ntp": [ONE_OF["skip"]], "nfs": [fail("z", "gone", REMEDY)]},
    }
    assert [(g.status.value, g.name, g.nodes) for g in groups(report(nodes))] == [
        ("fail", "nfs.z", ("n3", "n4")),
        ("fail", "ntp.e", ("n2",)),
        ("unknown", "nfs.d", ("n2",)),
        ("warn", "ntp.c", ("n1",)),
        ("skip", "ntp.b", ("n4",)),
        ("pass", "ntp.a", ("n3",)),
        ("pass", "nfs.a", ("n1",)),
    ]


def figures(*numbers: float, less_is_worse: bool = False, unit: str = "s") -> list[Group]:
    return groups(
        report(
            {
                f"n{i}": {
                    "ntp": [
                        fail(
                            "offset",
                            f"it is {number} {unit}",
                            REMEDY,
                            value=Quantity(number, unit, less_is_worse),
                        )
                    ]
                }
                for i, number in enumerate(numbers)
            }
        )
    )


def test_a_few_messages_stand_apart_and_many_together() -> None:
    assert [g.nodes for g in figures(1, 2, 3)] == [("n0",), ("n1",), ("n2",)]
    (group,) = figures(1, 2, 3, 4)
    assert group.nodes == ("n0", "n1", "n2", "n3")
    assert len(group.messages) == 4


def test_the_worst_figure_speaks_for_the_others() -> None:
    (fast,) = figures(1, -7, 3, 4)
    assert (fast.worst, fast.messages[0]) == ("n1", "it is -7 s")
    assert fast.span and [q.number for q in fast.span] == [-7, 4]
    (slow,) = figures(100, 20, 300, float("nan"), less_is_worse=True, unit="MB/s")
    assert (slow.worst, slow.messages[0]) == ("n1", "it is 20 MB/s")


def test_different_remedies_are_not_lost() -> None:
    other = Remedy("Mend it in another way.")
    nodes = {"n1": {"ntp": [fail("e", "x", REMEDY)]}, "n2": {"ntp": [fail("e", "x", other)]}}
    assert {g.remedy for g in groups(report(nodes))} == {REMEDY, other}


@pytest.mark.parametrize(
    ("bad", "of", "common"), [(2, 2, False), (3, 4, True), (3, 6, False), (60, 100, True)]
)
def test_trouble_of_most_nodes_is_common(bad: int, of: int, common: bool) -> None:
    nodes = {f"n{i}": {"ntp": [ONE_OF["fail" if i < bad else "pass"]]} for i in range(of)}
    # Nodes that could not be asked say nothing for or against it.
    nodes |= {f"dead{i}": {"access": [ONE_OF["unknown"]]} for i in range(of // 2)}
    found = {g.name: g.common for g in groups(report(nodes))}
    assert found["ntp.e"] is common
    assert not found.get("ntp.a") and not found.get("access.d")


def test_a_node_stands_once_with_its_peers() -> None:
    lost = [fail("lost", "packets vanish", REMEDY, peer=peer) for peer in ("n2", "n3")]
    (group,) = groups(report({"n1": {"nfs": lost}}))
    assert (group.nodes, group.peers) == (("n1",), ("n2", "n3"))
