"""A first inventory from Slurm's own words, /etc/hosts or a node set: it can be read at once."""

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustercheck import init, inventory
from clustercheck.errors import UsageError
from clustercheck.settings import Inventory
from tests.made_up import CHECKS

DATA = Path(__file__).resolve().parent / "data" / "init"
CLUSTER = """
[cloud]
cloud[01-02]

[cpu]
cpu[01-03]

[gpu]
gpu[01-04]

[staff]
cpu[01-03]
gpu[01-04]
"""


def read(folder: Path, text: str) -> Inventory:
    path = folder / "inventory.ini"
    path.write_text(text, encoding="utf-8")
    return inventory.load(path, CHECKS)


def settings_of(text: str) -> str:
    """The inventory without its comments."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(lines) + "\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that are all of this machine's, but for what sh needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def command(folder: Path, name: str, output: Path, status: int = 0, to: str = "1") -> None:
    """A command that says what was recorded, and its arguments in a file."""
    (folder / name).write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\n"
        f'echo "$@" >{shlex.quote(str(folder / name))}.arguments\n'
        f"cat {shlex.quote(str(output))} >&{to}\nexit {status}\n"
    )
    (folder / name).chmod(0o755)


def test_from_scontrol(machine: Path, tmp_path: Path) -> None:
    command(machine, "scontrol", DATA / "scontrol-oneliner-24.11.txt")
    text = init.first_inventory()
    assert settings_of(text) == CLUSTER + "\n[all:vars]\n"
    assert "\n# Powered down when this was written: cloud[01-02] (-x leaves nodes out).\n" in text
    assert "clustercheck run -i FILE -w cloud01\n" in text
    assert (machine / "scontrol.arguments").read_text() == "--oneliner show nodes\n"
    found = read(tmp_path, text)
    assert len(found.nodes) == 9 and found.nodes["gpu01"].groups == ("staff", "gpu")


def test_from_sinfo_where_there_is_no_scontrol(machine: Path) -> None:
    command(machine, "sinfo", DATA / "sinfo.txt")
    text = init.first_inventory("slurm")
    assert settings_of(text) == CLUSTER + "\n[all:vars]\n"
    assert "Powered down when this was written: cloud[01-02] " in text
    assert "%N|%R|%o|%T" in (machine / "sinfo.arguments").read_text()


def test_from_scontrol_in_many_lines() -> None:
    found = init.of_scontrol((DATA / "scontrol-22.05.txt").read_text())
    assert found.groups == {"gpu": ["gpu02"], "staff": ["gpu02"]}
    assert found.hosts == {} and found.remarks == []


def test_addresses_and_odd_partitions(tmp_path: Path) -> None:
    text = init.text(
        init.of_scontrol(
            "NodeName=n1 NodeAddr=10.0.0.1 Partitions=all,a/b Reason=Partitions=x NodeAddr=y\n"
            "NodeName=n2 NodeAddr=n2.example.org Partitions=all\n"
            "NodeName=n3 NodeAddr=n3 State=IDLE Partitions=all\n"
            "NodeName=n4 NodeAddr=(null) State=IDLE\n"
        )
    )
    assert settings_of(text) == (
        "\nn4\n\n[a_b]\nn1 host=10.0.0.1\n\n[partition_all]\nn[1,3]\n"
        "n2 host=n2.example.org\n\n[all:vars]\n"
    )
    found = read(tmp_path, text)
    assert [(n.name, n.host) for n in found.nodes.values()] == [
        ("n4", ""),
        ("n1", "10.0.0.1"),
        ("n3", ""),
        ("n2", "n2.example.org"),
    ]


@pytest.mark.parametrize(
    ("data", "to", "status", "expected"),
    [
        ("controller-gone.txt", "2", 1, "Unable to contact slurm controller (connect failure); "),
        ("controller-gone.txt", "1", 0, "gives no nodes: it names no nodes; start from /etc/hosts"),
    ],
)
def test_a_slurm_that_does_not_answer(
    machine: Path, data: str, to: str, status: int, expected: str
) -> None:
    command(machine, "scontrol", DATA / data, status, to)
    with pytest.raises(UsageError) as raised:
        init.first_inventory()
    assert str(raised.value).startswith("Slurm's scontrol gives no nodes: ")
    assert expected in str(raised.value)


def test_no_slurm_at_all(machine: Path) -> None:
    with pytest.raises(UsageError, match="scontrol and sinfo are not on this machine; start from"):
        init.first_inventory("slurm")


HOSTS = """\
127.0.0.1 localhost
127.0.1.1 head.example.org head
::1 ip6-localhost ip6-loopback localhost6
fe00::0 ip6-localnet
ff02::1 ip6-allnodes multicast
0.0.0.0 ads.example.com
255.255.255.255 broadcasthost
169.254.1.1 link
10.0.0.1 head.example.org head  # this one
10.0.0.11 gpu01.example.org gpu01
10.0.0.12 gpu02 gpu02.example.org
2001:db8::12 gpu02
10.0.0.12 alias
10.0.0.13 only.full.name
not-an-address x
10.0.0.14
10.0.0.15 -oProxyCommand=x
"""


def test_from_etc_hosts(tmp_path: Path) -> None:
    text = init.text(init.of_hosts(HOSTS, "head"))
    assert settings_of(text) == "\ngpu[01-02]\nhead\nonly.full.name\n\n[all:vars]\n"
    assert "\n# head is this machine.\n" in text
    assert "\n# Left out, for such a name cannot be a node's: '-oProxyCommand=x'\n" in text
    assert list(read(tmp_path, text).nodes) == ["gpu01", "gpu02", "head", "only.full.name"]


def test_an_etc_hosts_of_a_single_machine() -> None:
    with pytest.raises(UsageError, match="names no other machine; give a node set: -w"):
        init.of_hosts("127.0.0.1 localhost\n::1 localhost\n", "x")


def test_this_machines_own_etc_hosts(machine: Path, tmp_path: Path) -> None:
    """Without Slurm it is what counts; whether it names nodes is the machine's own affair."""
    try:
        text = init.first_inventory()
    except UsageError as error:
        assert "names no other machine" in str(error)
    else:
        assert read(tmp_path, text).nodes


def test_from_a_node_set(tmp_path: Path) -> None:
    text = init.first_inventory("gpu[01-16]!gpu07,login1,gpu[20:21]")
    assert settings_of(text) == "\ngpu[01-06,08-16,20-21]\nlogin1\n\n[all:vars]\n"
    assert len(read(tmp_path, text).nodes) == 18
    assert "clustercheck run -i FILE -w gpu01\n" in text


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("gpu[01-16", "bracket"),
        ("gpu[1-99999999]", "has more than 100,000 nodes"),
        ("a b", "'a b' is not a node's name"),
        ("x!x", "no node is left of 'x!x'"),
        ("@gpu", "'@gpu' is not a node's name"),
    ],
)
def test_a_node_set_that_cannot_be_read(nodes: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected.replace("[", r"\[")):
        init.first_inventory(nodes)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=st.lists(
        st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}[0-9]{0,3}", fullmatch=True)
        | st.from_regex(r"10\.0\.[0-3]\.[0-9]{1,2}", fullmatch=True)
        | st.from_regex(r"r[0-2]n[0-9]{1,2}(-ib)?", fullmatch=True)
        | st.just("2001:db8::1"),
        min_size=1,
        max_size=30,
        unique=True,
    )
)
def test_any_names_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    text = init.text(init.Found("as they came", {"": names, "both": names}))
    found = read(tmp_path_factory.mktemp("any"), text)
    assert sorted(found.nodes) == sorted(names)
    assert sorted(found.groups["both"]) == sorted(names)


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    init.write_new(path, "first\n")
    with pytest.raises(UsageError, match=r"inventory.ini is there already and is not written over"):
        init.write_new(path, "second\n")
    assert path.read_text() == "first\n"
    link = tmp_path / "link.ini"
    link.symlink_to(tmp_path / "none.ini")
    with pytest.raises(UsageError, match="is there already"):
        init.write_new(link, "x")
    assert not (tmp_path / "none.ini").exists()
    with pytest.raises(UsageError, match="none/inventory.ini cannot be written: No such file"):
        init.write_new(tmp_path / "none" / "inventory.ini", "x")
    assert os.listdir(tmp_path) and not (tmp_path / "none").exists()
