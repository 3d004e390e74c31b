"""What an inventory of our own says of nodes, groups and options."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clustercheck import plugin, registry
from clustercheck.check import AnyCheck, Check, option
from clustercheck.errors import ConfigError, UsageError
from clustercheck.inventory import Inventory, empty, load
from clustercheck.node import Node


@dataclass(frozen=True)
class Options:
    warn: float = option(0.5, "offset from which there is a warning", unit="s")
    fail: float = option(1.0, "offset from which it is a failure", unit="s")


@dataclass(frozen=True)
class PluginOptions:
    command: str = option("", "what to run")
    limit: float = option(10.0, "how long", unit="s")


def check(options: Any) -> AnyCheck:
    return Check(title="", options=options, judge=lambda facts, options: [], codes={})


CHECKS: dict[str, AnyCheck] = {"ntp": check(Options()), "tmp": check(Options(warn=0.1))}


def loaded(tmp_path: Path, text: str | bytes, *overrides: str) -> Inventory:
    path = tmp_path / "inventory.ini"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(path, CHECKS, overrides)


NODES = """
login01 host=10.0.0.1 user=admin  # the way in

[gpu]
gpu[01-02] jump=login01 key="/etc/keys/my key"
gpu03 host=10.0.1.3 port=2222 become=no

[cpu]
cpu1,cpu3

[cluster:children]
gpu  # first
cpu

[cluster:vars]
become = sudo
user = root
; port = 1
[gpu:vars]
user = "gpu"    # nearer than cluster
"""


def test_nodes(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, NODES)
    near = ("gpu", "cluster")
    both = Node("gpu01", jump="login01", key="/etc/keys/my key", user="gpu", become="sudo")
    assert list(inventory.nodes.values()) == [
        Node("login01", host="10.0.0.1", user="admin"),
        Node(**{**vars(both), "groups": near}),
        Node(**{**vars(both), "groups": near, "name": "gpu02"}),
        Node("gpu03", host="10.0.1.3", port=2222, user="gpu", groups=near),
        Node("cpu1", user="root", become="sudo", groups=("cpu", "cluster")),
        Node("cpu3", user="root", become="sudo", groups=("cpu", "cluster")),
    ]
    assert inventory.groups == {
        "all": ("login01", "gpu01", "gpu02", "gpu03", "cpu1", "cpu3"),
        "gpu": ("gpu01", "gpu02", "gpu03"),
        "cpu": ("cpu1", "cpu3"),
        "cluster": ("gpu01", "gpu02", "gpu03", "cpu1", "cpu3"),
    }


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("gpu[01-03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[1-9/4].example.org", ["gpu1.example.org", "gpu5.example.org", "gpu9.example.org"]),
        ("r[1-2]n[8,10]", ["r1n8", "r1n10", "r2n8", "r2n10"]),
        ("gpu[01:03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[1:10:4]", ["gpu1", "gpu5", "gpu9"]),
        ("db-[a:c]", ["db-a", "db-b", "db-c"]),
        ("r[1:2][a:b]n[1-2]", ["r1an1", "r1an2", "r1bn1", "r1bn2", "r2an1", "r2an2", "r2bn1"]
         + ["r2bn2"]),
        ("n1[8:11]", ["n18", "n19", "n110", "n111"]),
        ("gpu[1-4]!gpu2", ["gpu1", "gpu3", "gpu4"]),
        ("2001:db8::1", ["2001:db8::1"]),
        ("fe80::1%eth0", ["fe80::1%eth0"]),
        ("127.0.0.[1-2]", ["127.0.0.1", "127.0.0.2"]),
    ],
)  # fmt: skip
def test_names(tmp_path: Path, line: str, names: list[str]) -> None:
    assert list(loaded(tmp_path, line + "\n").nodes) == names


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfn1 user=root\n",
        b"n1 user=root\r\n",
        b"n1 user=root",
        b"\n\n  n1\tuser='root'  \n",
        b"[all]\nn1\n[all:vars]\nuser=root",
        b"[ungrouped]\nn1\n[ungrouped:vars]\nuser =  root # there",
        b"n1\n[ all : vars ]  # everywhere\nuser = 'root'\nuser = root\n",
    ],
)
def test_the_same_in_other_dress(tmp_path: Path, text: bytes) -> None:
    assert loaded(tmp_path, text).nodes == {"n1": Node("n1", user="root")}


OPTIONS = """
[check:ntp]
warn = 0.1 s

[all:vars]
ntp.warn = 0.2

[a]
n[1-4]
n3 {twice}

[b]
n[2-4]
n5 ntp.warn=0.9

[parent:children]
a
b

[parent:vars]
ntp.warn = 0.3
ntp.fail = 7

[a:vars]
ntp.warn = 0.4

[b:vars]
ntp.warn = 0.5

[c]
n9
""".replace("n3 {twice}\n", "")


def test_the_nearest_option_counts(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, "n0\n" + OPTIONS)
    warn = {name: inventory.options("ntp", name).warn for name in [*inventory.nodes, "stranger"]}
    assert warn == {
        "n0": 0.2,  # of all
        "n1": 0.4,  # a is nearer than parent
        "n2": 0.5,  # b is later in the file than a
        "n3": 0.5,
        "n4": 0.5,
        "n5": 0.9,  # the node's own
        "n9": 0.2,
        "stranger": 0.2,
    }
    assert inventory.options("ntp", "n1").fail == 7
    assert inventory.options("tmp", "n1") is CHECKS["tmp"].options
    overridden = loaded(tmp_path, "n0\n" + OPTIONS, "ntp.warn=0.05", "ntp.warn=0.06")
    assert {overridden.options("ntp", name).warn for name in inventory.nodes} == {0.06}


def test_a_check_section_counts_less_than_all(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, "n1\n[all:vars]\nntp.warn=0.2\n[check:ntp]\nwarn=0.1\nfail=9")
    assert inventory.options("ntp", "n1") == Options(warn=0.2, fail=9)


def test_a_later_child_does_not_hide_behind_its_parent(tmp_path: Path) -> None:
    text = "[parent:children]\nchild\n[child]\nn1\n[other]\nn1\n"
    assert loaded(tmp_path, text).nodes["n1"].groups == ("other", "child", "parent")


def test_equal_settings_are_one_object(tmp_path: Path) -> None:
    text = "[a]\nn1 ntp.warn=0.2\nn2 ntp.warn=0.20\n[b]\nn3\nn4 ntp.warn=0.3\n[b:vars]\nntp.warn=.2"
    inventory = loaded(tmp_path, text)
    first = inventory.options("ntp", "n1")
    assert inventory.options("ntp", "n2") is first
    assert inventory.options("ntp", "n3") is first
    assert inventory.options("ntp", "n4") is not first


def test_effective_says_from_where(tmp_path: Path) -> None:
    text = "[gpu]\nn1 tmp.fail=3\n[gpu:vars]\nntp.warn = 200e-3\n[check:tmp]\nwarn = 1\n"
    rows = loaded(tmp_path, text, "ntp.fail=2").effective("n1")
    assert [(*row[:3], row.where.removeprefix(f"{tmp_path}/")) for row in rows] == [
        ("ntp", "warn", "0.2", "inventory.ini:4 [gpu:vars]"),
        ("ntp", "fail", "2", "-o"),
        ("tmp", "warn", "1", "inventory.ini:6 [check:tmp]"),
        ("tmp", "fail", "3", "inventory.ini:2 [gpu]"),
    ]
    stranger = loaded(tmp_path, text).effective("elsewhere")
    assert [row.where for row in stranger][:2] == ["default", "default"]


def test_a_monitoring_plugin(tmp_path: Path) -> None:
    text = "n1 load.limit=3\nn2\n[check:load]\ncommand = check_load -w '5,4' -c \"9\" # five\n"
    inventory = loaded(tmp_path, text, "load.limit=4")
    (name,) = inventory.plugins
    assert inventory.plugins["load"]["command"].text == "check_load -w '5,4' -c \"9\""
    grown = inventory.with_checks({name: check(PluginOptions())})
    assert grown.options("load", "n1") == PluginOptions(
        command="check_load -w '5,4' -c \"9\"", limit=4
    )
    assert (
        loaded(tmp_path, text)
        .with_checks({name: check(PluginOptions())})
        .options("load", "n1")
        .limit
        == 3
    )


def test_a_wrong_option_of_a_plugin(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, "n1\n[check:load]\ncommand = x\nlimits = 3\n")
    with pytest.raises(ConfigError) as error:
        inventory.with_checks({"load": check(PluginOptions())})
    assert error.value.problems == (
        f"{tmp_path}/inventory.ini:4: check load has no option 'limits'; did you mean 'limit'?",
    )


def test_the_sites_own_variables_are_left_aside_with_a_note(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, "n[1-9] rack=4\nm1 rack=5\n[all:vars]\nhttp_port = 80\n")
    assert [note.removeprefix(f"{tmp_path}/") for note in inventory.notes] == [
        "inventory.ini:4: http_port: not a variable of clustercheck; left aside",
        "inventory.ini:1: rack: not a variable of clustercheck; left aside (2 places)",
    ]


def test_without_a_file() -> None:
    inventory = empty(CHECKS, ["ntp.warn=0.25"])
    assert not inventory.nodes
    assert inventory.options("ntp", "here") == Options(warn=0.25)
    assert empty(CHECKS).options("ntp", "here") is CHECKS["ntp"].options
    with pytest.raises(UsageError, match="did you mean 'warn'"):
        empty(CHECKS, ["ntp.wran=1"])


def test_a_key_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert loaded(tmp_path, "n1 key=~/.ssh/id\n").nodes["n1"].key == "/home/me/.ssh/id"


def test_ten_thousand_nodes(tmp_path: Path) -> None:
    lines = ["[all:vars]", "ntp.warn = 0.2"]
    for group in range(300):
        lines.append(f"[g{group}]")
        lines += [f"n{group:03}-{node:02} host=10.0.0.{node} port=22{node}" for node in range(34)]
        lines += [f"[g{group}:vars]", f"ntp.fail = {group % 5 + 1}"]
    start = time.process_time()
    inventory = loaded(tmp_path, "\n".join(lines))
    different = {id(inventory.options("ntp", name)) for name in inventory.nodes}
    seconds = time.process_time() - start
    assert (len(inventory.nodes), len(different)) == (10_200, 5)
    assert seconds < 5, "0.6 s when this was written: something has become quadratic"


def test_a_deep_nest_of_groups(tmp_path: Path) -> None:
    text = "[g0]\nn1\n" + "".join(f"[g{n + 1}:children]\ng{n}\n" for n in range(1500))
    text += "[g1500:vars]\nport = 7\n"
    assert loaded(tmp_path, text).nodes["n1"].port == 7


def test_the_page_for_users_is_true(tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "inventory.md"
    examples = re.findall(r"```ini\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert len(examples) >= 3
    for example in examples:
        path = tmp_path / "example.ini"
        path.write_text(example)
        found = load(path, registry.own())
        assert found.nodes
        found.with_checks(plugin.checks_of(found))
