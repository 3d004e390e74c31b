"""Tables of names are compared by sums: who differs, and that nothing else does."""

import ipaddress
import random
import shlex
import subprocess
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.dns_facts import GOOD, compared
from tests.made_up import CHECKS, MadeUpNode, options_of
from tests.shells import SHELLS, sh_folder, shell_words

TABLE = dict[str, tuple[str, str]]


def followed(nodes: dict[str, dict[str, str]]) -> list[str]:
    """Who is asked for the table."""
    follow = CHECKS["dns"].follow
    assert follow
    told = {name: Facts(facts) for name, facts in nodes.items()}
    return list(follow(told, dict.fromkeys(told, options_of("dns"))))


class Cluster:
    """The probes' own awk, run over tables that tests make up: what each node would tell."""

    def __init__(self, count: int, *, local_six: bool = False) -> None:
        self.names = [f"node{n:04}" for n in range(1, count + 1)]
        self.table: TABLE = {
            name: (f"10.1.{n // 250}.{n % 250 + 1}", f"2001:db8::{n + 1:x}" if local_six else "-")
            for n, name in enumerate(self.names)
        }

    def tells(self, name: str, *, table: TABLE | None = None, more: str = "") -> dict[str, str]:
        """The facts of a node that sees `table`. more: another address that it has."""
        table = table or self.table
        four, six = self.table[name]
        seen = table[name][0].split(",")[0]
        rows = "".join(f"{key} {a} {b}\n" for key, (a, b) in table.items())
        rows += f"total {len(table)}\n"
        digits = "" if six == "-" else ipaddress.IPv6Address(six).packed.hex()
        local = "\n".join(filter(None, ("127.0.0.1", four, more)))
        return {
            **GOOD,
            "hostname": name,
            "own": f"{seen} STREAM {name}" if seen != "-" else "",
            "reverse": f"{four} {name}",
            "addresses.four": local,
            "addresses.six": digits,
            "names": summed(rows, name, local),
            "table": rows,
        }


def summed(rows: str, own: str, local: str, awk: str = "awk") -> str:
    """The fact "names" by the probe's own text from the table on."""
    probe = CHECKS["dns"].probe
    text = probe[probe.index("table | awk -v") :].replace("table |", "", 1)
    text = text.replace("| lines names", "").replace("awk", awk, 1)
    done = subprocess.run(
        [
            "sh",
            "-c",
            f"own={shlex.quote(own)} local={shlex.quote(local)}\n{text}",
        ],
        input=rows,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_every_awk_gives_the_same_sums() -> None:
    rows = "node01 10.0.0.1,10.1.0.1 2001:db8::1\nnode-2.x 10.0.0.2 -\nnode3 - -\ntotal 3\n"
    by_busybox = summed(rows, "node01", "127.0.0.1", shlex.join([*shell_words("busybox awk")]))
    assert by_busybox == summed(rows, "node01", "127.0.0.1")
    assert by_busybox.splitlines()[:2] == [
        "mine node01 10.0.0.1,10.1.0.1 2001:db8::1",
        "missing node3",
    ]


def test_of_nodes_that_see_the_same_two_are_asked_again() -> None:
    cluster = Cluster(6)
    nodes = {name: cluster.tells(name) for name in cluster.names}
    assert followed(nodes) == ["node0001", "node0002"]
    assert compared(nodes) == []


def test_each_sees_its_own_name_in_its_own_way() -> None:
    cluster = Cluster(8, local_six=True)
    nodes = {}
    for number, name in enumerate(cluster.names):
        four, six = cluster.table[name]
        own = [("127.0.1.1", "-"), (f"{four},10.9.0.{number}", six), ("-", "-"), (four, six)]
        nodes[name] = cluster.tells(
            name, table={**cluster.table, name: own[number % 4]}, more=f"10.9.0.{number}"
        )
    assert followed(nodes) == ["node0001", "node0002"]
    assert compared(nodes) == []


def test_the_one_that_differs_is_named_with_what_it_sees() -> None:
    cluster = Cluster(5)
    nodes = {name: cluster.tells(name) for name in cluster.names}
    old = {**cluster.table, "node0002": ("10.7.7.7", "-"), "node0005": ("-", "-")}
    nodes["node0004"] = cluster.tells("node0004", table=old)
    assert followed(nodes) == ["node0001", "node0002", "node0004"]
    assert compared(nodes) == [
        "node0004 fail differs: names of nodes resolve otherwise than on most nodes: node0002 is "
        "10.7.7.7 here and 10.1.0.2 there; node0005 is unknown here and 10.1.0.5 there"
    ]


def test_addresses_that_are_swapped_are_seen() -> None:
    cluster = Cluster(4)
    nodes = {name: cluster.tells(name) for name in cluster.names}
    one, two = cluster.table["node0001"], cluster.table["node0002"]
    nodes["node0003"] = cluster.tells(
        "node0003", table={**cluster.table, "node0001": two, "node0002": one}
    )
    assert followed(nodes)[1:] == ["node0002", "node0003"]


def test_of_two_nodes_nobody_knows_which_is_right() -> None:
    cluster = Cluster(3)
    other = {**cluster.table, "node0003": ("10.7.7.7", "-")}
    nodes = {
        "node0001": cluster.tells("node0001"),
        "node0002": cluster.tells("node0002", table=other),
    }
    assert compared(nodes) == [
        "node0002 fail differs: names of nodes resolve otherwise than on node0001: node0003 is "
        "10.7.7.7 here and 10.1.0.3 there; which is right is not known"
    ]


def test_a_node_without_ipv6_does_not_differ_by_that() -> None:
    cluster = Cluster(4, local_six=True)
    nodes = {name: cluster.tells(name) for name in cluster.names}
    none = {name: (four, "-") for name, (four, _) in cluster.table.items()}
    nodes["node0002"] = cluster.tells("node0002", table=none)
    assert followed(nodes) == ["node0001", "node0002"]
    assert compared(nodes) == []
    only_six = {**cluster.table, "node0004": ("-", "2001:db8::4")}
    nodes = {name: cluster.tells(name, table=only_six) for name in cluster.names}
    nodes["node0002"] = cluster.tells("node0002", table={**none, "node0004": ("-", "-")})
    assert [text for text in compared(nodes) if "differs" in text] == [
        "node0002 fail differs: names of nodes resolve otherwise than on most nodes: node0004 has "
        "no address here"
    ]


def test_the_reference_node_has_an_old_address_to_one() -> None:
    cluster = Cluster(4)
    nodes = {name: cluster.tells(name) for name in cluster.names}
    nodes["node0003"] = cluster.tells(
        "node0003", table={**cluster.table, "node0001": ("10.7.7.7", "-")}
    )
    assert compared(nodes) == [
        "node0003 fail differs: names of nodes resolve otherwise than on most nodes: node0001 is "
        "10.7.7.7 here, and has 10.1.0.1"
    ]


def test_a_thousand_nodes_answer_shortly_and_two_send_their_table() -> None:
    cluster = Cluster(1000)
    nodes = {}
    for name in random.Random(7).sample(cluster.names, 30):
        own = {**cluster.table, name: ("127.0.1.1", "-")}
        nodes[name] = cluster.tells(name, table=own)
        assert len(nodes[name]["names"]) < 200
    assert len(followed(nodes)) == 2


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("database", ["ahosts", "hosts"])
def test_the_probe_makes_the_table(shell: str, database: str, tmp_path: Path) -> None:
    """database: what the node's getent knows; musl's of old has no ahosts."""
    node = MadeUpNode(tmp_path)
    third = "STREAM x" if database == "ahosts" else "x"
    arms = "\n".join(
        f"{name}) printf '%s\\n' {' '.join(shlex.quote(f'{a} {third}') for a in addresses)} ;;"
        for name, addresses in {
            "127.0.0.1": ["127.0.0.1"],
            "0.0.0.1": ["0.0.0.1"],
            "Node1": ["10.0.0.2", "10.0.0.10", "2001:DB8::1", "10.0.0.2"],
            "node2": ["::ffff:10.0.0.3"],
        }.items()
    )
    node.command(
        "getent",
        f'[ "$1" = {database} ] || exit 1\nshift\nfor key; do case $key in\n{arms}\nesac; done\n'
        "exit 2",
    )
    node.file("/proc/sys/kernel/hostname", "node1\n")
    text = CHECKS["dns"].follow_probe.partition("| awk '{ printf")[0]
    prelude = (
        f"PATH={sh_folder(shell)}:{node.bin}:$PATH\nROOT={node.root}\n"
        'within() { shift; "$@"; }\n'
        'NODES="Node1\nnode2\n10.0.0.9\n2001:db8::7\nlocalhost\nnode3"\n'
    )
    done = subprocess.run(
        [f"{sh_folder(shell)}/sh", "-c", prelude + text], capture_output=True, text=True, check=True
    )
    # glibc sorts by what it deems best; the table must not depend on that
    assert done.stdout.splitlines() == [
        "node1 10.0.0.10,10.0.0.2 2001:db8::1",
        "node2 10.0.0.3 -",
        "node3 - -",
        "total 3",
    ]
