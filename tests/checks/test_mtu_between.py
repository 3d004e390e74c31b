"""The check mtu: what only shows between nodes."""

import time

import pytest

from clustercheck.check import Facts
from tests.mtu_facts import CHECK, compared, peer, with_peers

LARGEST = "; the largest that arrives is 1500 bytes"
OTHER_SIDE = f"packets of 9000 bytes vanish on the other side of the path{LARGEST}"
BETWEEN = f"packets of 9000 bytes vanish between groups of nodes{LARGEST}"


def vanish(*names: str) -> list[dict[str, str]]:
    return [peer(name, "silent", 1500) for name in names]


def arrive(*names: str) -> list[dict[str, str]]:
    return [peer(name, "arrives") for name in names]


def small(name: str, became: str) -> dict[str, str]:
    return {f"target@{name}": name, f"small@{name}": became}


def test_a_node_that_nobody_passes_to_while_others_pass_is_at_fault() -> None:
    nodes = {
        "a": with_peers(*arrive("b"), *vanish("c")),
        "b": with_peers(*vanish("c"), *arrive("a")),
        "c": with_peers(*vanish("a", "b")),
    }
    on_all = f"packets of 9000 bytes vanish as on all paths of this node{LARGEST}"
    assert compared(nodes) == {
        "a": [f"skip hole c: {OTHER_SIDE}"],
        "b": [f"skip hole c: {OTHER_SIDE}"],
        "c": [
            f"skip hole a: {on_all}",
            f"skip hole b: {on_all}",
            "fail side: packets of 9000 bytes pass between other nodes and to and from this one in"
            f" none of 4 tries{LARGEST}: its own switch port, cable or interface is at fault, or"
            " the uplink of a switch that no other node tried shares",
        ],
    }


def test_with_two_nodes_the_side_at_fault_cannot_be_known() -> None:
    nodes = {
        "a": with_peers(peer("b", "silent", 1500)),
        "b": with_peers(peer("a", "silent", 1500)),
    }
    assert compared(nodes) == {}


def test_an_interface_that_is_smaller_on_the_other_side_is_named() -> None:
    nodes = {
        "a": with_peers(*vanish("b")),
        "b": with_peers(peer("a", "arrives", size=1500, mtu=1500), mtu=1500),
    }
    nodes["c"] = with_peers(*arrive("a"))
    other_side = {"a": [f"skip hole b: {OTHER_SIDE}"]}
    assert compared(nodes) == {
        **other_side,
        "b": [
            "fail side: packets of 9000 bytes from 1 other nodes end here, for eth0 has MTU 1500"
        ],
    }
    assert compared(nodes, mtu=9000) == other_side, "of b, the judge has said it"


def test_where_both_pass_to_others_one_link_between_them_is_at_fault() -> None:
    nodes = {
        "a": with_peers(*arrive("b", "d")),
        "b": with_peers(*vanish("c"), *arrive("d")),
        "c": with_peers(*arrive("d")),
    }
    assert compared(nodes) == {
        "b": [
            "fail hole c: packets of 9000 bytes vanish, and both pass them to other nodes: the"
            f" fault is between their switches{LARGEST}"
        ],
    }


def test_two_groups_that_nothing_passes_between_are_named_and_no_node_is_at_fault() -> None:
    nodes = {
        "a": with_peers(*arrive("b"), *vanish("c")),
        "b": with_peers(*vanish("c", "d")),
        "c": with_peers(*arrive("d"), *vanish("a")),
        "d": with_peers(*vanish("a", "b")),
    }
    groups = (
        "fail side: packets of 9000 bytes pass within two groups of nodes (a, b; c, d) and not"
        f" between them, in none of 6 tries{LARGEST}"
    )
    found = compared(nodes)
    assert {node: texts[-1] for node, texts in found.items()} == dict.fromkeys("abcd", groups)
    assert found["b"][:2] == [f"skip hole c: {BETWEEN}", f"skip hole d: {BETWEEN}"]
    assert all(text.startswith("skip hole") for texts in found.values() for text in texts[:-1])


def test_the_larger_of_two_groups_goes_on() -> None:
    names = [f"n{number}" for number in range(7)]
    nodes = {name: with_peers(*arrive(*names), *vanish("x")) for name in names}
    nodes["x"] = with_peers(*arrive("y"), *vanish("n3"))
    nodes["y"] = with_peers()
    found = compared(nodes)
    bad = {node: [t for t in texts if t[:4] != "skip"] for node, texts in found.items()}
    groups = (
        "fail side: packets of 9000 bytes pass within two groups of nodes (n0, n1, n2, n3 and 3"
        f" more; x, y) and not between them, in none of 8 tries{LARGEST}"
    )
    assert {node: texts for node, texts in bad.items() if texts} == {"x": [groups], "y": [groups]}


def test_many_racks_that_nothing_passes_between_are_one_finding_in_no_time() -> None:
    """As with a spine that was set up anew: 100 racks of 20 nodes, 11 tries each."""
    names = [f"n{number:04}" for number in range(2_000)]
    nodes = {}
    for place, name in enumerate(names):
        peers = [names[(place + (1 << power)) % len(names)] for power in range(11)]
        rack = place // 20
        tries = [
            peer(one, "arrives") if int(one[1:]) // 20 == rack else peer(one, "silent", 1500)
            for one in peers
        ]
        nodes[name] = Facts(with_peers(*tries))
    began = time.process_time()
    assert CHECK.compare
    found = list(CHECK.compare(nodes, dict.fromkeys(nodes, CHECK.options)))
    assert time.process_time() - began < 5
    bad = {(node, f.message) for node, f in found if f.remedy}
    assert len(bad) == 2_000
    (message,) = {message for _, message in bad}
    assert "pass within 100 groups of nodes (n0000, n0001, n0002, n0003 and 16 more; " in message
    assert "; and 96 more groups) and not between them, in none of " in message


def test_a_pair_that_passes_one_way_only_points_to_one_link_of_several() -> None:
    nodes = {"a": with_peers(*vanish("b")), "b": with_peers(*arrive("a"))}
    assert compared(nodes) == {
        "a": [
            "fail hole b: packets of 9000 bytes vanish, and arrive the other way: one link of"
            f" several is at fault{LARGEST}"
        ]
    }


def test_a_node_that_drops_echo_requests_is_tried_by_its_own_packets() -> None:
    nodes = {
        "a": with_peers(*arrive("b"), small("x", "filtered")),
        "b": with_peers(*arrive("a"), small("x", "filtered")),
        "x": with_peers(*arrive("a", "b")),
    }
    skipped = (
        "skip filtered x: no answer to echo requests; its own packets of 9000 bytes arrive whole"
        " elsewhere and back"
    )
    assert compared(nodes) == {"a": [skipped], "b": [skipped]}
    nodes["x"] = with_peers(*arrive("a"))  # a run of many nodes tries few pairs both ways
    assert compared(nodes) == {"a": [skipped], "b": [skipped]}
    nodes["x"] = with_peers(*vanish("a"))
    assert (
        "unknown filtered: small packets between other nodes and this one got no answer (2 tries):"
        " ICMP is filtered on this node or before it"
    ) in compared(nodes)["x"], "that small packets arrive shows nothing of full ones"


def test_a_node_without_a_way_says_so_itself() -> None:
    nodes = {
        "a": with_peers(*arrive("b"), small("x", "silent")),
        "b": with_peers(*arrive("a"), small("x", "silent")),
        "x": with_peers(small("a", "no_route"), small("b", "no_route")),
    }
    skipped = "skip silent x: no answer, as on all paths of the other node"
    assert compared(nodes) == {"a": [skipped], "b": [skipped]}


@pytest.mark.parametrize(
    ("word", "cause"),
    [
        ("filtered", "ICMP is filtered on this node or before it"),
        (
            "silent",
            "its interface, cable, switch port or address is at fault, or echo requests are"
            " dropped",
        ),
    ],
)
def test_a_node_that_is_not_heard_is_one_finding(word: str, cause: str) -> None:
    nodes = {
        "a": with_peers(*arrive("b"), small("x", word)),
        "b": with_peers(*arrive("a"), small("x", word)),
        "x": with_peers(small("a", word), small("b", word)),
    }
    assert compared(nodes) == {
        "a": [f"skip {word} x: no answer, as on all paths of the other node"],
        "b": [f"skip {word} x: no answer, as on all paths of the other node"],
        "x": [
            f"skip {word} a: no answer, as on all paths of this node",
            f"skip {word} b: no answer, as on all paths of this node",
            f"unknown {word}: small packets between other nodes and this one got no answer (4"
            f" tries): {cause}",
        ],
    }
    nodes["x"] = with_peers(small("a", "filtered"), small("b", "filtered"))
    assert f" tries): {cause}" in compared(nodes)["x"][-1], "what others see counts"
    del nodes["b"], nodes["a"]["target@b"]
    del nodes["a"]["small@b"]
    assert compared(nodes) == {}, "of two nodes nobody knows which is at fault"
    assert compared({"a": nodes["a"]}) == {}, "the other one was not asked"
