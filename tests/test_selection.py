"""Which nodes `-w` and `-x` mean."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustercheck.errors import UsageError
from clustercheck.inventory import Inventory, empty, load
from clustercheck.node import Node
from clustercheck.selection import select

TEXT = """
login01 user=admin port=2200
[gpu]
gpu[01-04]
[cpu1]
cpu[1-2]
[cpu2]
cpu[3-4]
[fast]
gpu[03-04]
cpu1
[cpu:children]
cpu2
cpu1
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    path = tmp_path_factory.mktemp("inventory") / "inventory.ini"
    path.write_text(TEXT)
    return load(path, {})


def names(
    inventory: Inventory, nodes: str | None, exclude: str | None = None, stdin: str = ""
) -> str:
    return " ".join(node.name for node in select(inventory, nodes, exclude, io.StringIO(stdin)))


@pytest.mark.parametrize(
    ("nodes", "exclude", "expected"),
    [
        (None, None, "login01 gpu01 gpu02 gpu03 gpu04 cpu1 cpu2 cpu3 cpu4"),
        (None, "@gpu,login01", "cpu1 cpu2 cpu3 cpu4"),
        ("@all", "", "login01 gpu01 gpu02 gpu03 gpu04 cpu1 cpu2 cpu3 cpu4"),
        ("@*!@cpu", None, "login01 gpu01 gpu02 gpu03 gpu04"),
        ("gpu[01-16]!gpu07&@gpu", None, "gpu01 gpu02 gpu03 gpu04"),
        ("gpu[03-01]", None, "-w: [03-01] in 'gpu[03-01]' has no nodes; write [01-16]"),
        ("cpu1,gpu02,gpu01", None, "gpu01 gpu02 cpu1"),
        ("cpu1 gpu02\tgpu02\n gpu01", None, "gpu01 gpu02 cpu1"),
        ("@gpu & @fast", None, "gpu03 gpu04"),
        ("@gpu ^ @fast", None, "gpu01 gpu02 cpu1"),
        ("@gpu !@fast", None, "gpu01 gpu02"),
        ("@cpu[1-2]", None, "cpu1 cpu2 cpu3 cpu4"),
        ("gpu*", "gpu?1", "gpu02 gpu03 gpu04"),
        ("*[1,3]", None, "login01 gpu01 gpu03 cpu1 cpu3"),
        ("new2 gpu01 new1", None, "gpu01 new2 new1"),
        ("new[3,1-2]", "new2 elsewhere", "new1 new3"),
        ("gpu[1, 3]", None, "gpu1 gpu3"),
        ("2001:db8::1 ::1", None, "2001:db8::1 ::1"),
        ("gpu[01:02]", None, "gpu01 gpu02"),
    ],
)
def test_names(inventory: Inventory, nodes: str, exclude: str, expected: str) -> None:
    if expected.startswith("-w"):
        with pytest.raises(UsageError) as error:
            names(inventory, nodes, exclude)
        assert str(error.value) == expected
    else:
        assert names(inventory, nodes, exclude) == expected


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("new", Node("new")),
        ("root@new", Node("new", user="root")),
        ("root@new[1-1]", Node("new1", user="root")),
        ("ssh://new", Node("new")),
        ("ssh://root@new:22/", Node("new", user="root", port=22)),
        ("ssh://root@new:2222", Node("new:2222", host="new", user="root", port=2222)),
        ("ssh://127.0.0.1:2222", Node("127.0.0.1:2222", host="127.0.0.1", port=2222)),
        ("2001:db8::1", Node("2001:db8::1")),
        ("me@2001:db8::1", Node("2001:db8::1", user="me")),
        ("ssh://[2001:db8::1]", Node("2001:db8::1")),
        (
            "ssh://me@[2001:db8::1]:24",
            Node("[2001:db8::1]:24", host="2001:db8::1", user="me", port=24),
        ),
        ("login01", Node("login01", user="admin", port=2200)),
        ("root@login01", Node("login01", user="root", port=2200)),
        ("ssh://login01:22", Node("login01", user="admin", port=22)),
        ("root@login*", Node("login01", user="root", port=2200)),
    ],
)
def test_a_node_named_as_with_ssh(inventory: Inventory, text: str, node: Node) -> None:
    assert select(inventory, text, None, io.StringIO()) == [node]


def test_addresses_in_brackets_among_others(inventory: Inventory) -> None:
    asked = "gpu01,ssh://[::1]:22,ssh://[::2]:22,n[1-2]!ssh://[::2]:22"
    assert names(inventory, asked) == "gpu01 ::1 n1 n2"


def test_standard_input(inventory: Inventory) -> None:
    stdin = "# from sinfo\nnew9\n\n  gpu[02-03]  # two\r\ngpu01 cpu4\n@cpu1\n"
    assert names(inventory, "-", None, stdin) == "gpu01 gpu02 gpu03 cpu1 cpu2 cpu4 new9"
    assert names(inventory, "@gpu", "-", stdin) == "gpu04"


@pytest.mark.parametrize(
    ("nodes", "exclude", "stdin", "expected"),
    [
        ("@gpuu", None, "", "-w: no group is called 'gpuu'; did you mean 'gpu'?"),
        ("gpu01", "@xyzzy", "", "-x: no group is called 'xyzzy'; the groups are gpu, cpu1, cpu2,"
         " fast, cpu"),
        ("@", None, "", "-w: no group is called ''; the groups are gpu, cpu1, cpu2, fast, cpu"),
        ("gpu01!gpu01", None, "", "-w 'gpu01!gpu01' selects no node; name nodes with -w, as "
         "-w 'gpu[01-16]'"),
        (None, "@all", "", "-x '@all' selects no node; name nodes with -w, as -w 'gpu[01-16]'"),
        ("", None, "", "-w '' selects no node; name nodes with -w, as -w 'gpu[01-16]'"),
        ("-", None, "# none\n", "-w '-' selects no node; name nodes with -w, as -w 'gpu[01-16]'"),
        ("-", "-", "", "-x -: standard input is read by -w already; give one of them as text"),
        ("disk*", None, "", "-w: no node of the inventory is like 'disk*'"),
        ("gpu[1-99999999]", None, "", "-w: 'gpu[1-99999999]' has more than 100,000 nodes"),
        ("a[1-60000],b[1-60000]", None, "", "-w: 'a[1-60000],b[1-60000]' has more than 100,000 "
         "nodes"),
        ("gpu[01-", None, "", "-w: a bracket is not closed in 'gpu[01-'; write gpu[01-16]"),
        ("!gpu01", None, "", "-w: a node is missing before '!'; write gpu[01-16]!gpu07"),
        ("gpu01,", None, "", "-w: a node is missing at the end of 'gpu01,'; write "
         "gpu[01-16]!gpu07"),
        ("-oProxyCommand=x", None, "", "-w: '-oProxyCommand=x' would be an option of ssh, not a "
         "node's name"),
        ("a@-v", None, "", "-w: '-v' would be an option of ssh, not a node's name"),
        ("-v@a", None, "", "-w: '-v' cannot be a user; write user@node"),
        ("@a@b", None, "", "-w: no group is called 'a@b'; the groups are gpu, cpu1, cpu2, fast,"
         " cpu"),
        ("a\x1bb", None, "", "-w: 'a\\x1bb' is not a node's name; write letters, digits and . - _ "
         "only"),
        ("../x", None, "", "-w: '../x' is not a node's name; write letters, digits and . - _ only"),
        ("new:22", None, "", "-w: 'new:22' is not a node; write ssh://new:22"),
        ("ssh://new:0", None, "", "-w: 'ssh://new:0' is not a node; write ssh://user@node:port"),
        ("ssh://", None, "", "-w: 'ssh://' is not a node; write ssh://user@node:port"),
        ("root@gpu01,gpu01", None, "", "-w: gpu01 is named twice, to be reached in different ways"),
        ("n" * 256, None, "", f"-w: '{'n' * 59}…' is longer than 255 characters"),
    ],
)  # fmt: skip
def test_fault(
    inventory: Inventory, nodes: str | None, exclude: str | None, stdin: str, expected: str
) -> None:
    with pytest.raises(UsageError) as error:
        names(inventory, nodes, exclude, stdin)
    assert str(error.value) == expected


def test_nothing_to_select_from() -> None:
    with pytest.raises(UsageError) as error:
        names(empty({}), None)
    assert str(error.value) == (
        "an inventory without nodes selects no node; name nodes with -w, as -w 'gpu[01-16]'"
    )
    assert names(empty({}), "a[1-2]") == "a1 a2"


def test_standard_input_that_is_no_text(inventory: Inventory) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"gpu\xff\n"), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        select(inventory, "-", None, stdin)
    assert str(error.value) == "-: standard input is not UTF-8; write one name a line"


def test_groups_of_the_system_are_not_looked_at(
    inventory: Inventory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "groups.conf").write_text(f"[Main]\ndefault: x\n[x]\nmap: touch {mark}; echo n1\n")
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    with pytest.raises(UsageError, match="no group is called 'rack1'"):
        names(inventory, "@rack1")
    assert not mark.exists()


PIECES = st.sampled_from(
    [*"[]:,!&^@*?-/.% \n#\x1b٣", "gpu", "01", "[1-3]", "[a:c]", "@gpu", "@all"]
    + ["ssh://", "[::1]:22", "user@", "9" * 5000]
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.lists(PIECES).map("".join), st.text()))
def test_no_text_is_anything_but_nodes_or_a_fault(inventory: Inventory, text: str) -> None:
    try:
        found = select(inventory, text, None, io.StringIO(text))
    except UsageError as error:
        assert str(error).isprintable()
    else:
        assert all(node.name.isprintable() and " " not in node.name for node in found)
