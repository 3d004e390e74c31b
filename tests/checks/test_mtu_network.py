"""The check mtu on real networks: holes, routers, filters and rights, over IPv4 and IPv6."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Status, Target
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from tests.mtu_facts import CHECK, said
from tests.network import Namespace, Switch, needed
from tests.shells import SHELLS

FILTER = """
nft add table inet t
nft 'add chain inet t c { type filter hook %s priority 0; }'
nft add rule inet t c icmp type echo-request %s
nft add rule inet t c icmpv6 type echo-request %s
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    """Hosts at 9000: `port` has its switch port at 1500, `own` itself has 1500."""
    with Switch(tmp_path_factory.mktemp("network")) as switch:
        for name in ("a", "b"):
            switch.node(name)
        switch.node("port", port=1500)
        switch.node("own", mtu=1500)
        nft = needed("nft")
        for name, what in (("drops", "drop"), ("rejects", "reject")):
            node = switch.node(name)
            switch.nodes["a"].await_answer(name, f"{name}-six")
            node.run(FILTER.replace("nft", nft) % ("input", what, what))
        switch.nodes["a"].await_answer("b-six", "port-six", "own-six")
        yield switch


@pytest.fixture
def a(network: Switch) -> Namespace:
    return network.nodes["a"]


def paths(node: Namespace, hosts: Sequence[str], **changed: Any) -> list[str]:
    """What is said of each host, in their order."""
    told = node.told([Target(host, host) for host in hosts], **changed)
    assert told.whole and not told.error, told
    return [line for line in said(dict(told.facts)) if " interface: " not in line]


VANISH = "packets of 9000 bytes vanish on the path without a word; the largest that arrives is"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("six", [False, True], ids=["IPv4", "IPv6"])
def test_each_thing_that_can_be_wrong_is_another_finding(
    a: Namespace, shell: str, six: bool
) -> None:
    end = "-six" if six else ""
    hosts = [f"{name}{end}" for name in ("b", "port", "own", "drops", "rejects", "a", "no_such")]
    absent, far = ("fd77::99", "fd99::1") if six else ("10.77.0.99", "10.99.0.1")
    began = time.monotonic()
    found = paths(a, [*hosts, absent, far], shell=shell)
    assert time.monotonic() - began < 60, "twelve peers take ten seconds at most on a free machine"
    assert found == [
        f"pass path b{end}: packets of 9000 bytes arrive whole",
        f"fail hole port{end}: {VANISH} 1500 bytes",
        # from its far end, a virtual cable lets a VLAN's tag through
        f"fail hole own{end}: {VANISH} 1504 bytes",
        f"unknown filtered drops{end}: ICMP is filtered: the other side is there, and answers no"
        " echo request",
        f"unknown filtered rejects{end}: ICMP is filtered: the other side is there, and answers no"
        " echo request",
        f"skip itself a{end}: its name leads to this very node here",
        f"unknown no_name no_such{end}: the name to try has no address on this node",
        f"unknown silent {absent}: no answer, not even to a small packet: down, or echo requests"
        " are dropped",
        f"unknown no_route {far}: this node has no route there",
    ]


def test_a_neighbour_known_from_before_is_asked_again(network: Switch) -> None:
    """Of two that say nothing now, one is there and the other has gone."""
    b = network.nodes["b"]
    with_address = "lladdr 02:00:00:00:00:99 dev eth0 nud stale"
    b.run(f"ip neigh replace 10.77.0.99 {with_address}")
    b.run("ping -c 1 -w 1 drops || ip neigh change 10.77.0.5 dev eth0 nud stale")
    began = time.monotonic()
    drops, gone = paths(b, ["drops", "10.77.0.99"])
    assert drops.startswith("unknown filtered drops:")
    assert gone.startswith("unknown silent 10.77.0.99:")
    assert time.monotonic() - began < 60


def test_from_behind_the_small_port_all_paths_are_holes(network: Switch) -> None:
    assert paths(network.nodes["port"], ["a", "b"]) == [
        f"fail hole {name}: {VANISH} 1504 bytes" for name in "ab"
    ]


def test_a_node_with_a_small_mtu_of_its_own(network: Switch) -> None:
    own = network.nodes["own"]
    assert paths(own, ["a"]) == ["pass path a: packets of 1500 bytes arrive whole"]
    told = own.told([Target("a", "a")], mtu=9000)
    assert said(dict(told.facts), mtu=9000) == [
        "fail interface: eth0 has MTU 1500, should be 9000",
        "skip local a: packets of 9000 bytes do not leave, for eth0 has MTU 1500; those arrive",
    ]


def test_a_route_with_an_mtu_of_its_own_is_a_local_refusal(network: Switch) -> None:
    b = network.nodes["b"]
    b.run("ip route add 10.77.0.1 dev eth0 mtu lock 4000")
    assert paths(b, ["a"]) == [
        "fail local a: this node itself refuses packets of 9000 bytes there, though eth0 has MTU"
        " 9000: its route or a router's word allows less; the largest that arrives is 4000 bytes"
    ]
    b.run("ip route del 10.77.0.1")


def test_the_own_firewall_is_named(network: Switch) -> None:
    node = network.node("shut")
    node.run(FILTER.replace("nft", needed("nft")) % ("output", "reject", "reject"))
    assert paths(node, ["a", "a-six"]) == [
        f"unknown filtered {name}: ICMP is filtered by this node's own firewall"
        for name in ("a", "a-six")
    ]


@pytest.mark.parametrize("six", [False, True], ids=["IPv4", "IPv6"])
def test_a_router_that_says_what_it_cannot_carry(network: Switch, six: bool) -> None:
    """The second time the kernel remembers what the router said, and refuses by itself."""
    name = f"router{6 if six else 4}"
    router = network.node(name)
    far = network.apart()
    router.run(
        f"ip link add far mtu 1500 type veth peer name eth0 mtu 1500 netns {far.pid}\n"
        "ip address add 10.88.0.1/24 dev far; ip address add fd88::1/64 dev far nodad\n"
        "ip link set far up\n"
        "echo 1 >/proc/sys/net/ipv4/ip_forward\n"
        "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
    )
    far.run(
        "ip address add 10.88.0.2/24 dev eth0; ip address add fd88::2/64 dev eth0 nodad\n"
        "ip link set eth0 up; ip route add default via 10.88.0.1; ip route add default via fd88::1"
    )
    number = list(network.nodes).index(name) + 1
    node = network.node(f"near{name}")
    node.run(f"ip route add default via 10.77.0.{number}; ip route add default via fd77::{number}")
    target = "fd88::2" if six else "10.88.0.2"
    node.await_answer(target)
    assert paths(node, [target]) == [
        f"fail router {target}: a router on the path says that packets of 9000 bytes are too big;"
        " the largest that arrives is 1500 bytes"
    ]
    (again,) = paths(node, [target])
    assert again.startswith(f"fail local {target}: this node itself refuses packets of 9000 bytes")


def test_a_name_of_both_kinds_is_tried_by_the_one_that_is_wanted(network: Switch) -> None:
    with network.hosts.open("a") as hosts:
        hosts.write("10.77.0.2 both\nfd77::2 both\n")
    a = network.nodes["a"]
    for ip in ("any", "4", "6"):
        assert paths(a, ["both"], ip=ip) == ["pass path both: packets of 9000 bytes arrive whole"]
    assert paths(a, ["b"], ip="6")[0].startswith("unknown no_name b:")


NOT_PERMITTED = "unknown no_permission b: not permitted to send ICMP: ping needs a right"


def test_who_may_not_ping_is_told_so(a: Namespace) -> None:
    """As root without the right, then as a user for whom root would add it."""
    less = [needed("setpriv"), "--bounding-set=-net_raw", "--inh-caps=-all"]
    assert paths(a, ["b"], before=less) == [NOT_PERMITTED]
    # the tests' ping may be in a home that other users must not enter
    enter = "--inh-caps=+dac_override", "--ambient-caps=+dac_override"
    user = [needed("setpriv"), "--reuid=65534", "--clear-groups", *enter]
    told = a.told([Target("b", "b")], before=user)
    assert said(dict(told.facts))[1:] == [NOT_PERMITTED]
    assert told.wanted_root


def test_an_ordinary_user_pings_where_the_kernel_lets_him(a: Namespace) -> None:
    a.run("echo '0 2147483647' >/proc/sys/net/ipv4/ping_group_range")
    enter = "--inh-caps=+dac_override", "--ambient-caps=+dac_override"
    user = [needed("setpriv"), "--reuid=65534", "--clear-groups", *enter]
    assert paths(a, ["b", "port"], before=user) == [
        "pass path b: packets of 9000 bytes arrive whole",
        f"fail hole port: {VANISH} 1500 bytes",
    ]
    a.run("echo '1 0' >/proc/sys/net/ipv4/ping_group_range")


def test_busybox_ping_proves_nothing(network: Switch) -> None:
    node = network.node("small")
    busybox = needed("busybox")
    node.run(
        f"rm /usr/local/sbin/ping; printf '#!/bin/sh\\nexec {busybox} ping \"$@\"\\n'"
        " >/usr/local/sbin/ping; chmod 755 /usr/local/sbin/ping"
    )
    (found,) = paths(node, ["a"])
    assert found.startswith("unknown no_df a: ping here cannot forbid fragments")


def whole_run(switch: Switch, names: Sequence[str]) -> Report:
    plan = Plan(
        nodes=[Node(name) for name in names],
        checks={"mtu": CHECK},
        options_of=lambda check, node: CHECK.options,
        transport_for=lambda node: switch,
        bounds=Bounds(len(names), 90),
    )
    return run(plan, Watch())


def of_sides(report: Report) -> dict[str, list[str]]:
    return {
        node: [f"{f.peer}: {f.message}" if f.peer else f.message for f in found]
        for node, result in report.nodes.items()
        if (found := [f for f in result.findings["mtu"] if f.code == "side"])
    }


def test_a_run_names_the_node_whose_port_is_at_fault(network: Switch) -> None:
    report = whole_run(network, ["a", "b", "port"])
    assert of_sides(report) == {
        "port": [
            "packets of 9000 bytes pass between other nodes and to and from this one in none of 4"
            " tries: its own switch port, cable or interface is at fault, or the uplink of a switch"
            " that no other node tried shares"
        ]
    }
    assert [result.status.value for result in report.nodes.values()] == ["pass", "pass", "fail"]
    assert [f.code for f in report.nodes["port"].findings["mtu"] if f.remedy] == ["side"]


def test_a_run_names_the_node_whose_own_mtu_is_at_fault(network: Switch) -> None:
    report = whole_run(network, ["a", "b", "own"])
    assert of_sides(report) == {
        "own": ["packets of 9000 bytes from 2 other nodes end here, for eth0 has MTU 1500"]
    }
    codes = [f.code for f in report.nodes["own"].findings["mtu"] if f.status > Status.SKIP]
    assert codes == ["side"], "that its MTU differs from the others' is the same cause"


def test_a_run_tells_a_small_link_between_switches(tmp_path: Path) -> None:
    with Switch(tmp_path) as switch:
        switch.trunk(1500)
        for name, bridge in (("a", "br0"), ("b", "br0"), ("c", "br1"), ("d", "br1")):
            switch.node(name, bridge=bridge)
        report = whole_run(switch, list("abcd"))
    groups = (
        "packets of 9000 bytes pass within two groups of nodes (a, b; c, d) and not between them,"
        " in none of 6 tries; the largest that arrives is "
    )
    found = of_sides(report)
    assert set(found) == set("abcd")
    assert [text for texts in found.values() for text in texts if not text.startswith(groups)] == []
    for result in report.nodes.values():
        assert [f.code for f in result.findings["mtu"] if f.remedy] == ["side"]


def test_twelve_peers_with_a_hole_to_each_do_not_take_long(tmp_path: Path) -> None:
    """Ten seconds at most on a free machine; the tests' may be busy with other things."""
    with Switch(tmp_path) as switch:
        node = switch.node("x", port=1500)
        hosts = [f"n{number}" for number in range(12)]
        for host in hosts:
            switch.node(host)
        began = time.monotonic()
        assert paths(node, hosts) == [f"fail hole {host}: {VANISH} 1504 bytes" for host in hosts]
        assert time.monotonic() - began < 60
