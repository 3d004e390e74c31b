"""The check dns on nodes with the real getent, each with its own /etc, network and name servers."""

from pathlib import Path

import pytest

from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.run import Plan, Watch, run
from tests.dns_facts import trouble
from tests.made_up import CHECKS, options_of
from tests.name_servers import Nodes, Setting, before
from tests.shells import SHELLS
from tests.this_machine import facts_here

HOSTS = "127.0.0.1 localhost\n" + "".join(
    f"10.77.0.{n} node{n:02}.cluster.example node{n:02}\n" for n in range(1, 5)
)
RECORDS = [f"host-record=node{n:02}.cluster.example,10.77.0.{n}" for n in range(1, 5)]
ZONE = ["local=/cluster.example/", "local=/77.10.in-addr.arpa/"]
RESOLV = "search cluster.example\nnameserver 127.0.0.1\n"
SERVER = {"127.0.0.1": [*ZONE, *RECORDS]}


@pytest.fixture(autouse=True)
def no_servers_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests ask nobody outside, and do not depend on who is there."""
    monkeypatch.setattr("clustercheck.checks._dns_servers._text", lambda path: "")


def found(folder: Path, *settings: Setting, **options: object) -> dict[str, list[str]]:
    """What a whole run finds on nodes that are called as in the settings, by node."""
    by_name = {setting.hostname: setting for setting in settings}
    ways = Nodes(folder, by_name)
    plan = Plan(
        nodes=[Node(name) for name in by_name],
        checks={"dns": CHECKS["dns"]},
        options_of=lambda check, node: chosen,
        transport_for=lambda node: ways,
        bounds=Bounds(parallel=2, node_seconds=90),
    )
    chosen = options_of("dns", **options)
    return {
        node: [
            f"{f.status.value} {f.code}: {f.message}"
            for name, findings in result.findings.items()
            for f in findings
            if f.remedy or name != "dns"
        ]
        for node, result in run(plan, Watch()).nodes.items()
    }


def node(number: int, **changed: object) -> Setting:
    values: dict[str, object] = {
        "hostname": f"node{number:02}",
        "addresses": [f"10.77.0.{number}"],
        "resolv": RESOLV,
        "servers": SERVER,
    }
    return Setting(**{**values, **changed})  # type: ignore[arg-type]


def test_names_from_dns(tmp_path: Path) -> None:
    assert found(tmp_path, node(1), node(2), node(3)) == {"node01": [], "node02": [], "node03": []}


def test_one_node_has_an_old_hosts_file_and_all_have_debians_line(tmp_path: Path) -> None:
    def debian(number: int, hosts: str = HOSTS) -> Setting:
        own = f"10.77.0.{number} node{number:02}.cluster.example node{number:02}"
        return node(number, hosts=hosts.replace(own, own.replace(f"10.77.0.{number}", "127.0.1.1")))

    old = HOSTS.replace("10.77.0.2 ", "10.77.0.99 ")
    told = found(tmp_path, debian(1), debian(2), debian(3, old), own_loopback="allow")
    assert told == {
        "node01": [],
        "node02": [],
        "node03": [
            "fail differs: names of nodes resolve otherwise than on most nodes: node02 is "
            + told["node03"][0].rpartition("node02 is ")[2]
        ],
    }
    assert "10.77.0.99 here" in told["node03"][0]
    told = found(tmp_path / "strict", debian(1), debian(2))
    assert told["node01"] == [
        "fail own_loopback: its own name node01 is 127.0.1.1 (/etc/hosts: 127.0.1.1 "
        "node01.cluster.example node01), should be an address that other nodes can reach"
    ]


def test_a_name_without_any_record(tmp_path: Path) -> None:
    told = found(tmp_path, node(1), node(2), node(7))
    assert told["node01"] == told["node02"] == []
    assert told["node07"] == [
        "fail own_unresolved: its own name node07 has no address here",
    ]


def test_a_record_without_a_way_back(tmp_path: Path) -> None:
    server = {"127.0.0.1": [*ZONE, "address=/node01.cluster.example/10.77.0.1"]}
    assert found(tmp_path, node(1, servers=server)) == {
        "node01": [
            "warn reverse: 10.77.0.1 has no name by reverse look-up, should be node01",
        ]
    }


def test_a_node_with_ipv6_only(tmp_path: Path) -> None:
    server = {"127.0.0.1": [*ZONE, "host-record=node01.cluster.example,2001:db8:77::1"]}
    setting = node(1, addresses=["2001:db8:77::1"], servers=server)
    assert found(tmp_path, setting) == {"node01": []}


def test_a_name_of_several_addresses_and_names(tmp_path: Path) -> None:
    records = [
        *ZONE,
        "host-record=node01.cluster.example,10.77.0.1",
        "host-record=node01.cluster.example,10.78.0.1",
        "ptr-record=1.0.77.10.in-addr.arpa,gateway.cluster.example",
    ]
    setting = node(1, addresses=["10.77.0.1", "10.78.0.1"], servers={"127.0.0.1": records})
    assert found(tmp_path, setting) == {"node01": []}


def test_a_dead_first_server_costs_its_time_out_and_is_one_finding(tmp_path: Path) -> None:
    resolv = "search cluster.example\nnameserver 127.0.0.2\nnameserver 127.0.0.1\n"
    servers = {**SERVER, "127.0.0.2": None}
    setting = node(1, resolv=resolv + "options timeout:2\n", servers=servers)
    (one,) = found(tmp_path, setting)["node01"]
    assert one.startswith(
        "warn dead_server: a name server before the one that answers is silent; on the node each "
        "look-up that no file answers takes "
    )


def test_all_servers_dead_is_one_finding(tmp_path: Path) -> None:
    resolv = "search cluster.example\nnameserver 127.0.0.2\noptions timeout:1 attempts:1\n"
    setting = node(1, resolv=resolv, servers={"127.0.0.2": None})
    (one,) = found(tmp_path / "a", setting)["node01"]
    assert one.startswith("fail no_server: no name server answers the node (127.0.0.2): a look-up")
    by_files = node(1, hosts=HOSTS, resolv=resolv, servers={"127.0.0.2": None})
    without = node(4, resolv=resolv, servers={"127.0.0.2": None})
    told = found(
        tmp_path / "b",
        by_files,
        node(2),
        node(3),
        without,
    )
    assert [x.split(":")[0] for x in told.pop("node01")] == ["warn no_server"]
    assert [x.split(":")[0] for x in told.pop("node04")] == ["fail no_server"]
    assert told == {"node02": [], "node03": []}


@pytest.mark.parametrize("shell", SHELLS)
def test_files_alone_in_every_shell(shell: str, tmp_path: Path) -> None:
    setting = node(1, hosts=HOSTS, resolv="", nsswitch="files", servers={})
    told = facts_here("dns", shell, before=before(tmp_path / "node", setting))
    assert told["asked"] == "no"
    assert trouble({**told, "servers": ""}) == ["pass"]
    assert told["reverse"].split() == ["10.77.0.1", "node01.cluster.example", "node01"]
    assert "resolv.conf" in told and told["hosts"].startswith("10.77.0.1 ")
