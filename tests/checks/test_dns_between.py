"""The check dns between nodes: whose table of names differs, and from whose."""

import pytest

from clustercheck.check import Facts, Target
from tests.dns_facts import GOOD, OTHER, SAID, SERVER, SERVER_HEX, A, compared, trouble
from tests.made_up import CHECKS, judged, options_of


def told_by(number: int, *, records: str = "", host: str = "", table: str = "") -> dict[str, str]:
    address = f"10.0.0.{number}"
    return {
        **GOOD,
        "hostname": host or f"node{number:02}",
        "addresses.four": f"127.0.0.1\n{address}",
        "own": f"{address} STREAM x",
        "names": "sum4 4 5 5\nsum6 0 0 0\nnames 4 4 0",
        **({"table": table} if table else {}),
        **({SAID: f"A node{number:02} {records}"} if records else {}),
    }


TABLE = "node01 10.0.0.1 -\nnode02 10.0.0.2 -\nnode03 10.0.0.3 -\nnode04 10.0.0.4 -\ntotal 4"


def test_between_nodes_that_agree() -> None:
    nodes = {f"node{n:02}": told_by(n, table=TABLE if n == 1 else "") for n in range(1, 5)}
    assert compared(nodes) == []


def test_nodes_that_are_not_in_dns_though_most_are() -> None:
    nodes = {f"node{n:02}": told_by(n, records=f"NOERROR 10.0.0.{n}") for n in range(1, 4)}
    nodes["node04"] = told_by(4, records="NXDOMAIN")
    assert compared(nodes) == [
        "node04 warn not_in_dns: node04 is not in DNS, where the names of most nodes are"
    ]
    for name in ("node01", "node02"):
        nodes[name] = told_by(int(name[-1]), records="NXDOMAIN")
    assert compared(nodes) == []  # names come from /etc/hosts here


def test_all_nodes_have_a_wrong_address_for_one() -> None:
    nodes = {f"node{n:02}": told_by(n) for n in range(1, 5)}
    nodes["node01"]["table"] = TABLE.replace("10.0.0.3", "10.0.0.99")
    assert compared(nodes) == [
        "node03 fail elsewhere: to other nodes the name node03 is 10.0.0.99, which no interface of "
        "the node has; they have 10.0.0.3"
    ]
    nodes["node03"]["hostname"] = "bmc7"  # the inventory's name is no name of its own
    assert compared(nodes) == []


def test_one_of_two_addresses_is_nobodys() -> None:
    nodes = {f"node{n:02}": told_by(n) for n in range(1, 5)}
    nodes["node01"]["table"] = TABLE.replace("10.0.0.3 ", "10.0.0.3,10.0.0.33 ")
    assert compared(nodes) == [
        "node03 warn elsewhere: to other nodes the name node03 is 10.0.0.3, 10.0.0.33, and no "
        "interface of the node has 10.0.0.33: connections there are lost"
    ]
    both = {**nodes["node03"], "own": "10.0.0.3 STREAM node03\n10.0.0.33 STREAM"}
    nodes["node03"] = both
    assert compared(nodes) == []  # the node itself says so
    assert trouble(both)[0] == (
        "warn own_elsewhere: its own name node03 is 10.0.0.3, 10.0.0.33, and no interface of the "
        "node has 10.0.0.33: connections there are lost"
    )
    nodes["node03"]["addresses.four"] = "10.0.0.3\n10.0.0.33"
    assert compared(nodes) == []


BRIDGE = {"addresses.four": "127.0.0.1\n192.168.122.1\n10.0.0.9", "own": "192.168.122.1 STREAM x"}


def test_an_address_that_each_node_has() -> None:
    nodes = {f"node{n:02}": told_by(n) for n in range(1, 5)}
    nodes["node01"] |= BRIDGE
    assert compared(nodes) == []
    nodes["node03"] |= BRIDGE
    nodes["node04"] |= BRIDGE
    found = compared(nodes)
    assert [line.split(":")[0] for line in found] == [
        f"node0{n} fail own_shared" for n in (1, 3, 4)
    ]
    assert found[0] == (
        "node01 fail own_shared: its own name node01 is 192.168.122.1, as is that of node03 and "
        "1 more; should be an address of this node alone"
    )
    for node in nodes.values():  # one machine under several names
        node["hostname"] = "node01"
    assert compared(nodes) == []


def test_a_name_of_ipv6_alone_where_most_have_ipv4() -> None:
    nodes = {f"node{n:02}": told_by(n) for n in range(1, 5)}
    nodes["node03"]["addresses.six"] = "fd990000000000000000000000000003"
    nodes["node01"]["table"] = TABLE.replace("10.0.0.3 -", "- fd99::3")
    assert compared(nodes) == [
        "node03 warn own_family: to other nodes the name node03 is fd99::3, an IPv6 address alone; "
        "most names of nodes have an IPv4 address"
    ]
    assert compared(nodes, family="ipv6") == []
    nodes["node01"]["table"] = TABLE.replace("10.0.0.3 -", "10.0.0.3 fd99::3")
    assert compared(nodes) == []


def test_dns_and_etc_hosts_may_name_different_interfaces_of_a_node() -> None:
    told = {**GOOD, SAID: f"{A} 10.0.0.7\nPTR 10.0.0.7 NOERROR node01.cluster.example"}
    told["addresses.four"] = "10.0.0.1\n10.0.0.7"
    assert "pass records: node01.cluster.example is 10.0.0.7 by DNS" in judged("dns", told)
    assert trouble(told) == ["pass"]


BLIND = "sum4 1 1 1\nsum6 0 0 0\nmissing node02 node03\nmine node01 10.0.0.1 -\nnames 3 3 2"
REFUSING, CLOSED = f"{SERVER} refuses SERVFAIL", f"{SERVER} closed Connection refused"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            REFUSING,
            f"fail servfail: the name server {SERVER} says SERVFAIL for every question about "
            "nodes, and no other server answers the node",
        ),
        (
            CLOSED,
            f"fail no_server: the name server {SERVER}, the first of 1 in resolv.conf, cannot be "
            "asked, Connection refused (asked from this machine), and names of nodes need it",
        ),
    ],
)
def test_an_only_server_of_no_use_is_the_one_cause(state: str, expected: str) -> None:
    seen = {"resolv.conf": f"nameserver {SERVER}", "names": BLIND, "servers": state}
    assert trouble({**GOOD, **seen}) == [expected]
    assert trouble({**GOOD, **seen, "own": "", "names": BLIND.replace("mine", "x")}) == [
        "fail own_unresolved: its own name node01 has no address here",
        expected.replace("fail servfail", "warn servfail")
        .replace("fail no_server", "warn dead_server")
        .partition(", and ")[0],
    ], "a row is neither missing nor there: then too little is known"
    whole = BLIND.replace("missing", "missing node01").replace("mine node01 10.0.0.1 -\n", "")
    whole = whole.replace("names 3 3 2", "names 3 3 3")
    assert trouble({**GOOD, **seen, "own": "", "names": whole}) == [expected]
    nodes = {f"node{n:02}": {**told_by(n), "names": BLIND.partition("\n")[0]} for n in range(1, 4)}
    names = "sum4 3 5 5\nsum6 0 0 0\nnames 3 3 0"
    nodes = {name: {**told, "names": names} for name, told in nodes.items()}
    nodes["node02"] |= seen
    assert compared(nodes) == []
    nodes["node02"]["servers"] = f"{SERVER} answers"
    assert [found.split(":")[0] for found in compared(nodes)] == ["node02 fail differs"]


def test_whom_look_ups_wait_for_where_names_could_not_be_tried() -> None:
    names = f"sum4 9 1 1\nsum6 0 0 0\nwaits {SERVER_HEX}\nnames 9 64 0"
    assert trouble({**GOOD, "names": names}) == [
        "unknown cut: only 9 of 64 names of nodes could be tried in the time: look-ups wait for "
        f"the name server {SERVER}, the first of 2 in resolv.conf"
    ]
    closed = f"{CLOSED}\n{OTHER} answers"
    assert trouble({**GOOD, "names": names, "servers": closed}) == [
        f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, cannot be "
        "asked, Connection refused (asked from this machine); not all names of nodes could be "
        "tried in the time"
    ]


def test_a_wrong_address_of_the_node_that_the_others_are_held_against() -> None:
    nodes = {f"node{n:02}": told_by(n, table=TABLE) for n in range(1, 5)}
    nodes["node01"]["table"] = TABLE.replace("10.0.0.1 ", "127.0.1.1 ")  # to itself it is another
    assert compared(nodes) == []
    nodes["node02"]["table"] = TABLE.replace("10.0.0.1 ", "10.0.0.99 ")
    assert compared(nodes) == [
        "node01 fail elsewhere: to other nodes the name node01 is 10.0.0.99, which no interface of "
        "the node has; they have 10.0.0.1"
    ]


def test_no_other_node_finds_a_name() -> None:
    nodes = {f"node{n:02}": told_by(n) for n in range(1, 5)}
    nodes["node01"]["table"] = TABLE.replace("node03 10.0.0.3", "node03 -")
    assert compared(nodes) == [
        "node03 fail unresolved: the name node03 has no address on other nodes (node01 was asked)"
    ]
    nodes["node03"]["hostname"] = "gpu7"
    assert compared(nodes) == []


def test_a_table_against_dns() -> None:
    nodes = {f"node{n:02}": told_by(n, records=f"NOERROR 10.0.0.{n}") for n in range(1, 5)}
    nodes["node01"]["table"] = TABLE.replace("10.0.0.3", "10.0.0.33")
    nodes["node03"]["addresses.four"] = "10.0.0.3\n10.0.0.33"
    assert compared(nodes) == [
        "node03 warn hosts_contradict: node03 is 10.0.0.3 by DNS, and 10.0.0.33 to the nodes "
        "(/etc/hosts?)"
    ]


def test_nobody_is_asked_for_a_table_where_there_are_no_names() -> None:
    follow = CHECKS["dns"].follow
    assert follow
    assert list(follow({"localhost": Facts(GOOD)}, {"localhost": options_of("dns")})) == []


def test_no_names_of_nodes_are_asked_where_all_are_addresses() -> None:
    ask = CHECKS["dns"].probe_from_here
    assert ask
    targets = [Target("10.0.0.1", "10.0.0.1"), Target("2001:db8::1", "x"), Target("localhost", "")]
    found = ask(targets, options_of("dns"))
    assert set(found) == {target.name for target in targets}
    assert not any(key.startswith("said@") for facts in found.values() for key in facts)
