"""The check mtu: the judge and the comparison by tables, the probe against made-up nodes."""

from pathlib import Path

import pytest

from clustercheck.check import Target
from clustercheck.options import instance
from tests.made_up import MadeUpNode
from tests.mtu_facts import CHECK, compared, findings, link, node, peer, put_link, said, with_peers
from tests.shells import SHELLS

ALONE = "skip path: no other node to try"


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    return MadeUpNode(tmp_path)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([link("eth0", 1500)], "pass interface: MTU 1500 on eth0"),
        (
            [link("eth0", 1500), link("ib0", 4092), link("eth1", 1500)],
            "pass interface: MTU 1500 on eth0 and eth1, 4092 on ib0",
        ),
        ([link("eth0", 1500), link("eth1", 9000, "down")], "pass interface: MTU 1500 on eth0"),
        (
            [link("docker0", 1500, "bridge"), link("veth1", 1500, "veth on=docker0")],
            "skip interface: no interface but loopback and containers' has a link",
        ),
        ([link("eth0", "-")], "unknown interface: the MTU of eth0 could not be read"),
        (
            [link("eth0", 1450)],
            "warn small: MTU 1450 on eth0, less than the usual 1500: a tunnel or an overlay?",
        ),
        ([], "unknown interface: no interface could be seen in /sys/class/net"),
    ],
)
def test_the_interfaces_as_they_are(links: list[str], expected: str) -> None:
    assert said(node(*links)) == [expected, ALONE]


def test_the_interface_that_leads_outside_counts_whatever_its_kind() -> None:
    inside = [link("eth0", 1500, "veth"), link("dummy0", 1500, "veth")]
    assert said(node(*inside, default="eth0"))[0] == "pass interface: MTU 1500 on eth0"


@pytest.mark.parametrize(
    ("links", "interfaces", "expected"),
    [
        ([link("bond1", 9000, "bond")], "bond1", "pass interface: MTU 9000 on bond1, as it"),
        ([link("bond1", 1500, "bond")], "bond1", "fail interface: bond1 has MTU 1500, should be"),
        ([link("bond1", 9216, "bond")], "bond1", "warn interface: bond1 has MTU 9216, should be"),
        ([link("bond1", "-", "bond")], "bond1", "unknown interface: the MTU of bond1 could not"),
        ([link("eth0", 1500)], "bond1", "fail interface: there is no interface bond1, should be"),
        ([link("ens1", 9000), link("eth0", 1500)], "ens*", "pass interface: MTU 9000 on ens1, as"),
        ([link("eth0", 1500)], "", "unknown interface: no interface leads to other nodes"),
    ],
)
def test_the_mtu_that_is_wanted(links: list[str], interfaces: str, expected: str) -> None:
    wanted = tuple(interfaces.split())
    first, *rest = said(node(*links), mtu=9000, interfaces=wanted)
    assert first.startswith(expected) and rest == [ALONE]


def test_where_no_interface_is_named_those_that_lead_to_the_peers_count() -> None:
    told = {
        **with_peers(peer("peer", "arrives", device="eth1")),
        "interfaces": f"{link('eth0', 1500)}\n{link('eth1', 9000)}",
    }
    assert said(told, mtu=9000) == [
        "pass interface: MTU 9000 on eth1, as it should be",
        "pass path peer: packets of 9000 bytes arrive whole",
    ]
    alone = node(link("eth0", 1500), link("eth1", 9000), default="eth0")
    assert said(alone, mtu=9000)[0] == "fail interface: eth0 has MTU 1500, should be 9000"


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (
            [link("bond1", 9000, "bond"), link("ens5", 1500, "on=bond1")],
            "fail below: ens5 (member of bond1) has MTU 1500, should be 9000 as bond1 has: larger"
            " packets are lost there",
        ),
        (
            [link("bond1", 9000, "bond"), link("ens5", 1500, "down on=bond1")],
            "warn below: ens5 (member of bond1) has MTU 1500 and no link, should be 9000 as bond1"
            " has",
        ),
        (
            [link("data.7", 9000, "vlan"), link("ens5", 1500, "on=data.7")],
            "fail below: ens5 (below data.7) has MTU 1500, should be 9000 as data.7 has: larger"
            " packets are lost there",
        ),
        (
            [link("br0", 9000, "bridge"), link("ens5", 1500, "on=br0")],
            "fail below: ens5 (member of br0) has MTU 1500, should be 9000 as br0 has: larger"
            " packets are lost there",
        ),
        (
            [
                link("br0", 9000, "bridge"),
                link("ens5", 9000, "on=br0"),
                link("v", 1500, "veth on=br0"),
            ],
        )
        + ("",),
        ([link("data.7", 1500, "vlan"), link("ens5", 9000, "on=data.7")], ""),
        ([link("bond1", 9000, "bond"), link("ens5", 9000, "on=bond1"), link("eno1", 1500)], ""),
    ],
)
def test_what_lies_below_must_carry_as_much(links: list[str], expected: str) -> None:
    assert [line for line in said(node(*links)) if " below: " in line] == [expected] * bool(
        expected
    )


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (peer("p", "arrives"), "pass path p: packets of 9000 bytes arrive whole"),
        (
            peer("p", "silent", 1500),
            "fail hole p: packets of 9000 bytes vanish on the path without a word; the largest that"
            " arrives is 1500 bytes",
        ),
        (
            peer("p", "silent", 4092, 4100),
            "fail hole p: packets of 9000 bytes vanish on the path without a word; 4092 bytes"
            " arrive, 4100 do not",
        ),
        (
            peer("p", "router", 1500),
            "fail router p: a router on the path says that packets of 9000 bytes are too big; the"
            " largest that arrives is 1500 bytes",
        ),
        (
            peer("p", "local", 1500),
            "fail local p: this node itself refuses packets of 9000 bytes there, though eth0 has"
            " MTU 9000: its route or a router's word allows less; the largest that arrives is"
            " 1500 bytes",
        ),
        ({"target@p": "p", "small@p": "silent"}, "unknown silent p: no answer, not even to a"),
        ({"target@p": "p", "small@p": "filtered"}, "unknown filtered p: ICMP is filtered: the"),
        ({"target@p": "p", "small@p": "filtered_here"}, "unknown filtered p: ICMP is filtered by"),
        ({"target@p": "p", "small@p": "no_name"}, "unknown no_name p: the name to try has no"),
        ({"target@p": "p", "small@p": "no_route"}, "unknown no_route p: this node has no route"),
        ({"target@p": "p", "small@p": "untried"}, "unknown untried p: not tried: the time was"),
        ({"target@p": "p", "small@p": "self"}, "skip itself p: its name leads to this very node"),
        ({"target@p": "p"}, "unknown not_answered p: nothing was reported"),
        ({"target@p": "p", "small@p": "arrives"}, "unknown not_answered p: nothing was reported"),
        ({"target@p": "p", "small@p": "gibberish"}, "unknown not_answered p: nothing was"),
    ],
)
def test_the_path_to_a_peer(told: dict[str, str], expected: str) -> None:
    interface, path = said(with_peers(told))
    assert interface == "pass interface: MTU 9000 on eth0"
    assert path.startswith(expected)


@pytest.mark.parametrize(
    ("ping", "code"),
    [
        ("none", "no_ping"),
        ("no ip", "no_ip"),
        ("without -M", "no_df"),
        ("not permitted", "no_permission"),
    ],
)
def test_what_cannot_be_tried_is_unknown_for_each_peer(ping: str, code: str) -> None:
    told = with_peers({"target@p": "p"}, {"target@q": "q"}, ping=ping)
    _, *found = findings(told)
    assert [(f.status.value, f.code, f.peer) for f in found] == [
        ("unknown", code, "p"),
        ("unknown", code, "q"),
    ]


def test_a_small_own_mtu_is_one_finding_and_not_one_for_each_peer() -> None:
    told = with_peers(peer("p", "local", 1500, mtu=1500), mtu=1500)
    assert said(told, mtu=9000) == [
        "fail interface: eth0 has MTU 1500, should be 9000",
        "skip local p: packets of 9000 bytes do not leave, for eth0 has MTU 1500; those arrive",
    ]
    told = with_peers(peer("p", "local", 1400, mtu=1500), mtu=1500)
    assert said(told, mtu=9000)[1] == (
        "fail hole p: not even packets of 1500 bytes, the MTU of eth0, arrive; the largest that"
        " arrives is 1400 bytes"
    )


def test_the_largest_size_is_a_figure_of_its_own() -> None:
    _, hole = findings(with_peers(peer("p", "silent", 1500)))
    assert hole.value and (hole.value.number, hole.value.unit) == (1500, "B")


def test_a_node_whose_mtu_differs_from_most_is_named() -> None:
    nodes = {f"n{i}": node(link("eth0", 9000)) for i in range(4)}
    nodes["n2"] = node(link("eth0", 1500))
    assert compared(nodes) == {
        "n2": ["warn differs: eth0 has MTU 1500, and 9000 on 3 of 4 nodes"],
    }
    assert compared(nodes, mtu=9000) == {}, "the judge has said it"


def test_where_two_sizes_are_as_common_neither_is_taken_for_right() -> None:
    nodes = {"n1": node(link("eth0", 9000)), "n2": node(link("eth0", 1500))}
    assert compared(nodes) == {
        "n1": ["warn differs: eth0 has MTU 9000; the 2 nodes have 1500, 9000"],
        "n2": ["warn differs: eth0 has MTU 1500; the 2 nodes have 1500, 9000"],
    }


def test_names_must_hold_a_place_for_the_node() -> None:
    with pytest.raises(ValueError, match="names = data holds neither {node} nor {host}"):
        instance(CHECK, {"names": "data"})
    assert instance(CHECK, {"names": "{node}-data"}).names == "{node}-data"


def test_all_pairs_are_bounded() -> None:
    assert CHECK.peer_count(instance(CHECK, {})) == 12
    assert CHECK.peer_count(instance(CHECK, {"all_pairs": "yes"})) == 1000


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe_tells_of_every_interface(made: MadeUpNode, shell: str) -> None:
    put_link(made, "lo", 65536, type=772, kind="", index=1, state="unknown")
    put_link(made, "bond0", 9000, kind="bond", index=5)
    put_link(made, "ens1", 9000, index=2, master="bond0")
    put_link(made, "data.7", 1500, kind="vlan", index=6)
    put_link(made, "eno1", 1500, index=3, state="down")
    made.file("/sys/class/net/bonding_masters", "bond0\n")
    zeros = "0" * 32
    made.file(
        "/proc/net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "data.7\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "bond0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
    )
    made.file(
        "/proc/net/ipv6_route",
        f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n"
        f"{zeros} 00 {zeros} 00 fe80{zeros[4:]} 00000400 00000001 00000000 00000003    bond0\n",
    )
    told = made.probe("mtu", shell=shell)
    assert sorted(told["interfaces"].splitlines()) == [
        "bond0 9000 up 1 1 5 5 bond - ,ens1",
        "data.7 1500 up 1 1 6 6 vlan - -",
        "eno1 1500 down 0 1 3 3 real - -",
        "ens1 9000 up 1 1 2 2 real ,bond0 -",
        "lo 65536 unknown 1 772 1 1 - - -",
    ]
    assert told["default"] == "data.7 bond0"
    assert told["peers"] == "0" and "ping" not in told
    assert said(told)[0] == "pass interface: MTU 1500 on data.7, 9000 on bond0"


def test_old_kernels_name_only_the_master_and_the_parent(made: MadeUpNode) -> None:
    put_link(made, "bond0", 9000, kind="bond", index=5)
    put_link(made, "ens1", 1500, index=2)
    (made.root / "sys/class/net/ens1/master").symlink_to("../bond0")
    put_link(made, "v7", 9000, kind="vlan", index=6)
    made.file("/sys/class/net/v7/iflink", "3\n")
    put_link(made, "ens2", 1500, index=3)
    found = [line.split(" has")[0] for line in said(made.probe("mtu")) if " below: " in line]
    assert found == ["fail below: ens1 (member of bond0)", "fail below: ens2 (below v7)"]


@pytest.mark.parametrize("names", ["{node}-data", "{host}", "x.{node}.y"])
def test_a_peer_is_tried_by_the_name_that_is_wanted(made: MadeUpNode, names: str) -> None:
    made.command(
        "ping", 'case "$*" in *127.0.0.1*) ;; *) echo "ping: $*: Name does not resolve";; esac'
    )
    made.command("ip", "exit 1")
    peers = [Target("n2", "10.0.0.2"), Target("n3", "10.0.0.3")]
    told = made.told("mtu", peers=peers, names=names).facts
    assert told.at("target") == {
        peer.name: names.replace("{node}", peer.name).replace("{host}", peer.host) for peer in peers
    }
    assert set(told.at("small").values()) == {"no_name"}


def test_without_ping_or_ip_it_is_said_which(made: MadeUpNode) -> None:
    made.hide("ping", "ip")
    peers = [Target("n2", "10.0.0.2")]
    assert made.told("mtu", peers=peers).facts["ping"] == "none"
    made.command("ping", "echo 64 bytes from 127.0.0.1")
    assert made.told("mtu", peers=peers).facts["ping"] == "no ip"


def test_many_peers_are_tried_and_those_after_the_time_are_named(made: MadeUpNode) -> None:
    """Two full turns go by, then the made-up clock says that the time is over."""
    put_link(made, "eth0", 9000)
    made.command(
        "ping", 'for last; do :; done; echo "PING x ($last) 56(84) bytes"; echo 9 bytes from x'
    )
    made.command("ip", "echo 10.0.0.2 dev eth0 src 10.0.0.1")
    made.command("date", 'n=$(cat "$0.n" 2>/dev/null); echo "$((${n:-0} + 20))" | tee "$0.n"')
    peers = [Target(f"n{i}", f"10.0.0.{i}") for i in range(2, 82)]
    told = made.told("mtu", peers=peers, all_pairs=True).facts
    assert told["peers"] == "80" and len(told.at("full")) == 64
    assert [p for p, small in told.at("small").items() if small == "untried"] == [
        f"n{i}" for i in range(66, 82)
    ]
