"""Every fault of an inventory is one line: the place, what is wrong, what to write instead."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustercheck.check import AnyCheck, Check, option
from clustercheck.errors import ConfigError, UsageError
from clustercheck.inventory import load


@dataclass(frozen=True)
class Options:
    warn: float = option(0.5, "offset from which there is a warning", unit="s")
    fail: float = option(1.0, "offset from which it is a failure", unit="s")
    sources: int = option(1, "how many there should be")
    mode: Literal["enforcing", "permissive"] = option("permissive", "the mode")

    def __post_init__(self) -> None:
        if self.warn > self.fail:
            raise ValueError(f"warn ({self.warn} s) is above fail ({self.fail} s); swap them")


NTP = Check(title="Time", options=Options(), judge=lambda facts, options: [], codes={})
CHECKS: dict[str, AnyCheck] = {"ntp": NTP}


def faults(tmp_path: Path, text: str | bytes) -> list[str]:
    path = tmp_path / "inventory.ini"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as error:
        load(path, CHECKS)
    return [problem.removeprefix(f"{tmp_path}/") for problem in error.value.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # options
        (
            "n1\n[check:ntp]\nwran = 1\n",
            "inventory.ini:3: check ntp has no option 'wran'; did you mean 'warn'?",
        ),
        (
            "n1\n[check:ntp]\nxyzzy = 1\n",
            "inventory.ini:3: check ntp has no option 'xyzzy'; "
            "its options are warn, fail, sources, mode",
        ),
        (
            "n1\n[check:ntp]\ncommand = x\n",
            "inventory.ini:3: check ntp has no option 'command'; "
            "its options are warn, fail, sources, mode",
        ),
        (
            "n1\n[check:npt]\nwarn = 1\n",
            "inventory.ini:2: no check is called 'npt'; did you mean 'ntp'?",
        ),
        (
            "n1\n[check:load]\nwarn = 1\n",
            "inventory.ini:2: no check is called 'load'; a monitoring plug-in needs command = …",
        ),
        (
            "[gpu]\nn1\n[gpu:vars]\nnpt.warn = 1\n",
            "inventory.ini:4: no check is called 'npt'; did you mean 'ntp'?",
        ),
        (
            "n[1-20] ntp.warn=abc\n",
            "inventory.ini:1: ntp.warn: 'abc' is not a number of s; write one such as 0.5",
        ),
        (
            "n1\n[check:ntp]\nwarn = nan\n",
            "inventory.ini:3: ntp.warn: 'nan' is not a number of s; write one such as 0.5",
        ),
        (
            "n1\n[empty]\n[empty:vars]\nntp.sources = 1.5\n",
            "inventory.ini:4: ntp.sources: '1.5' is not a whole number; write one such as 1",
        ),
        (
            "n1 ntp.mode=enforcin\n",
            "inventory.ini:1: ntp.mode: 'enforcin' is not one of enforcing, permissive; "
            "did you mean 'enforcing'?",
        ),
        (
            "n1 ntp.warn=2\n",
            "inventory.ini:1: ntp: warn (2.0 s) is above fail (1.0 s); swap them",
        ),
        # variables
        (
            "n1 prot=22\n",
            "inventory.ini:1: there is no variable 'prot'; did you mean 'port'?",
        ),
        (
            "n1\n[all:vars]\nUser = root\n",
            "inventory.ini:3: there is no variable 'User'; did you mean 'user'?",
        ),
        (
            "n1 port=ssh\n",
            "inventory.ini:1: port: 'ssh' is not a port; write a number from 1 to 65535",
        ),
        (
            "n1 port=65536\n",
            "inventory.ini:1: port: '65536' is not a port; write a number from 1 to 65535",
        ),
        (
            "n1 become=su\n",
            "inventory.ini:1: become: 'su' is not a way to become root; write sudo or no; "
            "did you mean 'sudo'?",
        ),
        (
            "n1 host=-oProxyCommand=evil\n",
            "inventory.ini:1: host: '-oProxyCommand=evil' would be an option of ssh, "
            "not a node's name",
        ),
        (
            "n1 host='a;reboot'\n",
            "inventory.ini:1: host: 'a;reboot' is not a node's name; "
            "write letters, digits and . - _ only",
        ),
        (
            "n1 user=\n",
            "inventory.ini:1: user: '' is not a user; write one word that begins with no dash",
        ),
        (
            "n1 jump='a b'\n",
            "inventory.ini:1: jump: 'a b' is not a jump host; write [user@]host[:port]",
        ),
        (
            "n1 key=-i\n",
            "inventory.ini:1: key: '-i' is not the path of a key file",
        ),
        (
            "n1 ansible_host='{{ lookup(1) }}'\n",
            "inventory.ini:1: ansible_host: '{{ lookup(1) }}' is a template, "
            "which only Ansible fills; write the value",
        ),
        (
            "n1 port=22\nn1 port=23\n",
            "inventory.ini:2: n1 is in the list already, in line 1; name it once",
        ),
        (
            "[a]\nn1 port=22\n[b]\nn1 port=23\n",
            "inventory.ini:4: port is '23' here and '22' in line 2; keep one of them",
        ),
        (
            "n1\n[check:ntp]\nwarn=1\n[check:ntp]\nwarn=0.2\n",
            "inventory.ini:5: warn is '0.2' here and '1' in line 3; keep one of them",
        ),
        ("n1:ssh\n", "inventory.ini:1: port: 'ssh' is not a port; write a number from 1 to 65535"),
        # groups
        (
            "[gpu]\nn[1-4]\nn3\n",
            "inventory.ini:3: n3 is in [gpu] already, in line 2; name it once",
        ),
        (
            "[gpu]\nn[1-4]\nn[3-9]\n",
            "inventory.ini:3: n3 (and 1 more) is in [gpu] already, in line 2; name it once",
        ),
        (
            "[gpu]\nn1\n[all-gpu:children]\ngpuu\n",
            "inventory.ini:4: no group is called 'gpuu'; did you mean 'gpu'?",
        ),
        (
            "[gpu]\nn1\n[gpuu:vars]\nuser=root\n",
            "inventory.ini:3: no group is called 'gpuu'; did you mean 'gpu'?",
        ),
        (
            "[a]\nn1\n[a:children]\nb\n[b:children]\nc\n[c:children]\na\n",
            "inventory.ini:4: groups hold each other in a circle: a < c < b < a; "
            "take 'b' out of [a:children]",
        ),
        (
            "[a]\nn1\n[a:children]\na\n",
            "inventory.ini:4: groups hold each other in a circle: a < a; take 'a' out of "
            "[a:children]",
        ),
        (
            "[a]\nn1\n[b:children]\nall\n",
            "inventory.ini:4: 'all' cannot be a child; name the groups themselves",
        ),
        (
            "[a]\nn1\n[b:children]\na n2\n",
            "inventory.ini:4: 'n2' after a group; write one group a line",
        ),
        # sections
        (
            "n1\n[gpu:var]\nuser=root\n",
            "inventory.ini:2: there is no section of the kind 'var'; did you mean 'vars'?",
        ),
        (
            "n1\n[group:night]\n",
            "inventory.ini:2: there is no section of the kind 'night'; "
            "write [group:vars], [group:children] or [check:NAME]",
        ),
        (
            "n1\n[gpu\n",
            "inventory.ini:2: '[gpu' is not a section; write [GROUP], alone on its line",
        ),
        (
            "n1\n[g p]\n",
            "inventory.ini:2: 'g p' is not a name; write letters, digits and . - _ only",
        ),
        ("n1\n[]\n", "inventory.ini:2: '' is not a name; write letters, digits and . - _ only"),
        (
            "[gpu] n1\n",
            "inventory.ini:1: '[gpu] n1' is not a section; write [GROUP], alone on its line",
        ),
        (
            "n1\n[mail]\nto = root\n",
            "inventory.ini:3: 'to = root' names no node; write variables below [mail:vars], "
            "options of checks below [check:NAME]",
        ),
        (
            "user=root\nn1\n",
            "inventory.ini:1: 'user=root' names no node; write variables below [all:vars], "
            "options of checks below [check:NAME]",
        ),
        ("n1\n[all:vars]\nuser root\n", "inventory.ini:3: 'user root' is not NAME = VALUE"),
        # nodes
        ("n1 root\n", "inventory.ini:1: 'root' after a node is not NAME=VALUE, without blanks"),
        ("n1 user='root\n", 'inventory.ini:1: a quote is not closed in "n1 user=\'root"'),
        (
            "gpu[1-99999999]\n",
            "inventory.ini:1: 'gpu[1-99999999]' has more than 100,000 nodes",
        ),
        (
            "gpu[1-999][1-999]\n",
            "inventory.ini:1: 'gpu[1-999][1-999]' has more than 100,000 nodes",
        ),
        (
            "a[1:60000]\nb[1:60000]\n",
            "inventory.ini:2: more than 100,000 nodes in all; split the inventory",
        ),
        (
            "gpu[01-16\n",
            "inventory.ini:1: a bracket is not closed in 'gpu[01-16'; write gpu[01-16]",
        ),
        ("gpu01]\n", "inventory.ini:1: a bracket has no partner in 'gpu01]'; write gpu[01-16]"),
        ("gpu[01-x]\n", "inventory.ini:1: '[01-x]' in 'gpu[01-x]' is not a range; write [01-16]"),
        ("gpu[5-3]\n", "inventory.ini:1: [5-3] in 'gpu[5-3]' has no nodes; write [01-16]"),
        (
            "gpu[001-1000]\n",
            "inventory.ini:1: [001-1000] in 'gpu[001-1000]' mixes widths; write [0001-1000]",
        ),
        (
            "gpu1[1-10]\n",
            "inventory.ini:1: 'gpu1[1-10]' can be read in two ways; "
            "put all digits inside the brackets",
        ),
        (
            "gpu[01:1:x]\n",
            "inventory.ini:1: '[01:1:x]' in 'gpu[01:1:x]' is not a range; write [01:16]",
        ),
        ("gpu[a:9]\n", "inventory.ini:1: [a:9] in 'gpu[a:9]' mixes letters and numbers"),
        (
            "gpu[01:100]\n",
            "inventory.ini:1: [01:100] in 'gpu[01:100]' mixes widths; write [001:100]",
        ),
        (
            "r[1-2][1-2]\n",
            "inventory.ini:1: 'r[1-2][1-2]' has brackets side by side; write r[1-2]n[01-16]",
        ),
        (
            "n[1-9/2]5\n",
            "inventory.ini:1: 'n[1-9/2]5' is not a node set: "
            "'illegal trailing digits after range with steps: \"5\"'",
        ),
        ("gpu[9:1]\n", "inventory.ini:1: [9:1] in 'gpu[9:1]' has no nodes; write [01:16]"),
        ("a,,b\n", "inventory.ini:1: a node is missing before ','; write gpu[01-16]!gpu07"),
        ("a!\n", "inventory.ini:1: a node is missing at the end of 'a!'; write gpu[01-16]!gpu07"),
        ("@gpu\n", "inventory.ini:1: '@gpu': a group goes into another by [GROUP:children]"),
        ("--help\n", "inventory.ini:1: '--help' would be an option of ssh, not a node's name"),
        (
            "../etc\n",
            "inventory.ini:1: '../etc' is not a node's name; write letters, digits and . - _ only",
        ),
        (
            "a\x1b[1-2]\n",
            "inventory.ini:1: 'a\\x1b1' is not a node's name; write letters, digits and . - _ only",
        ),
        # the file
        ("", "inventory.ini:1: no node is named; write names of nodes, one a line, or gpu[01-16]"),
        (
            "# none\n[gpu]\n[check:ntp]\nwarn=1\n",
            "inventory.ini:1: no node is named; write names of nodes, one a line, or gpu[01-16]",
        ),
        (
            b"n1\n# M\xfcller\n",
            "inventory.ini:2: byte 4 of the line, 0xfc, is not UTF-8; save the file as UTF-8",
        ),
        (
            "n1\n".encode("utf-16"),
            "inventory.ini:1: byte 1 of the line, 0xff, is not UTF-8; save the file as UTF-8",
        ),
        ("n1\nn\0\n", "inventory.ini:2: holds a NUL byte; save the file as UTF-8 text"),
        ("n\0\nn\0\n", "inventory.ini:1: holds a NUL byte; save the file as UTF-8 text"),
        (
            "\n---\nall:\n",
            "inventory.ini:1: YAML or JSON; write an inventory as INI, [GROUP] and nodes",
        ),
        ("#!/bin/sh\n", "inventory.ini:1: a program; run it and write what it says as INI"),
    ],
)
def test_fault(tmp_path: Path, text: str | bytes, expected: str) -> None:
    assert expected in faults(tmp_path, text)


def test_all_faults_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = "[gpu]\nn1 prot=22\n[gpu:var]\n[check:ntp]\nwarn = much\n[gpu:vars]\nuser =\n"
    assert [fault.split(": ")[0] for fault in faults(tmp_path, text)] == [
        "inventory.ini:2",
        "inventory.ini:3",
        "inventory.ini:5",
        "inventory.ini:7",
    ]


def test_a_fault_of_many_nodes_is_told_once(tmp_path: Path) -> None:
    assert len(faults(tmp_path, "n[1-500] port=x ntp.warn=y\nn501 npt.warn=1\n")) == 3


def test_a_file_that_is_no_inventory_at_all_does_not_flood(tmp_path: Path) -> None:
    found = faults(tmp_path, "it is a letter, dear reader\n" * 5000)
    assert len(found) == 21
    assert found[-1] == "and 4,980 faults more"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing.ini", "there is no such file; write -i and the inventory's path"),
        (".", "a directory; write -i and a file in it"),
        ("file/under", "cannot be read: Not a directory"),
    ],
)
def test_no_file_to_read(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as error:
        load(tmp_path / name, CHECKS)
    assert error.value.problems == (f"{tmp_path / name}: {expected}",)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("ntp.warn", "-o: 'ntp.warn' is not CHECK.OPTION=VALUE, as tmp.warn_percent=70"),
        ("warn=1", "-o: 'warn=1' is not CHECK.OPTION=VALUE, as tmp.warn_percent=70"),
        ("npt.warn=1", "-o: no check is called 'npt'; did you mean 'ntp'?"),
        ("ntp.wran=1", "-o: check ntp has no option 'wran'; did you mean 'warn'?"),
        ("ntp.warn=x", "-o: ntp.warn: 'x' is not a number of s; write one such as 0.5"),
        ("ntp.warn=9", "-o: ntp: warn (9.0 s) is above fail (1.0 s); swap them"),
    ],
)
def test_override(tmp_path: Path, override: str, expected: str) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text("n1\n")
    with pytest.raises(UsageError) as error:
        load(path, CHECKS, [override])
    assert str(error.value) == expected


PIECES = st.sampled_from(
    [*"[]:=#;,!&^@\"'\\-/.%*{}\t \n\0\r\x1b\ufeff\u2028é٣²", "\n[", "]\n", "[gpu]", "[gpu:vars]"]
    + ["[a:children]", "[check:ntp]", "[check:x]", "[all:vars]", "gpu", "n1", "[1-3]", "[01:16]"]
    + ["[a:f]", "[9-1]", "[1-9/2]", "[1-99999999]", "port=", "ansible_port=22", "ntp.warn=1"]
    + ["ansible_ssh_common_args='-o ProxyCommand=\"ssh -W %h:%p x\"'", "command=x", "jump=a@b:1"]
    + ["[2001:db8::1]:22", "{{", "}}", "0" * 20, "9" * 5000, "::", "ssh://", "ansible_become=yes"]
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.lists(PIECES).map("".join), st.text()))
def test_no_text_is_anything_but_an_inventory_or_faults(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ini"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        inventory = load(path, CHECKS)
    except ConfigError as error:
        assert error.problems
        assert all(problem.isprintable() for problem in error.problems)
    else:
        assert inventory.nodes
