"""The check mtu on what real programs printed, and on nodes that other tools judged wrongly."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Finding, Status, Target
from tests.made_up import MadeUpNode
from tests.mtu_facts import compared, findings, node, put_link, said
from tests.shells import SHELLS

DATA = Path(__file__).parent.parent / "data" / "mtu"
SMALL_ANSWER = "PING node02 ({0}) 56(84) bytes of data.\n64 bytes from {0}: icmp_seq=1 ttl=64"


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    return MadeUpNode(tmp_path)


def recorded(name: str) -> str:
    return (DATA / name).read_text()


def put_links_of_ip(made: MadeUpNode, text: str, default: str = "") -> None:
    """The interfaces of `ip -j link` or `ip -o link`, as files below /sys/class/net."""
    for one in json.loads(text) if text.startswith("[") else map(of_one_line, text.splitlines()):
        flags = one["flags"]
        put_link(
            made,
            one["ifname"],
            one["mtu"],
            state=one["operstate"].lower(),
            type=772 if "LOOPBACK" in flags else 1,
            kind="bond"
            if "MASTER" in flags
            else ""
            if one["ifname"] in ("lo", default)
            else "real",
            index=one["ifindex"],
            master=one.get("master", ""),
        )
    if default:
        line = f"{default} 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n"
        made.file("/proc/net/route", f"Iface Destination\n{line}")


def of_one_line(line: str) -> dict[str, Any]:
    index, name, flags, *rest = line.split()
    words = dict(zip(rest, rest[1:], strict=False))
    return {
        "ifindex": int(index.rstrip(":")),
        "ifname": name.rstrip(":").partition("@")[0],
        "flags": flags.strip("<>").split(","),
        "mtu": int(words["mtu"]),
        "operstate": words["state"],
        "master": words.get("master", ""),
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ip-link-veth.json", "warn small: MTU 1400 on eth0, less than the usual 1500"),
        ("ip-o-link.txt", "warn small: MTU 1400 on eth0, less than the usual 1500"),
        ("ip-link-bond-jumbo.json", "pass interface: MTU 9000 on bond0"),
    ],
)
def test_recorded_interfaces(made: MadeUpNode, name: str, expected: str) -> None:
    put_links_of_ip(made, recorded(name), default="" if "bond" in name else "eth0")
    found, alone = said(made.probe("mtu"))
    assert found.startswith(expected) and alone == "skip path: no other node to try"


def test_case_a_bonds_member_that_was_left_at_1500(made: MadeUpNode) -> None:
    put_links_of_ip(made, recorded("case-bond-member.txt"))
    found = said(made.probe("mtu"), mtu=9000, interfaces=("bond1",))
    assert found == [
        "pass interface: MTU 9000 on bond1, as it should be",
        "fail below: ens5f0 (member of bond1) has MTU 1500, should be 9000 as bond1 has: larger"
        " packets are lost there",
        "skip path: no other node to try",
    ]
    assert not any("eno1" in line for line in found)


@pytest.mark.parametrize(
    ("sizes", "differs"),
    [
        ((9000, 9000, 9000, 9000), ""),
        ((9000, 9000, 1500, 9000), "node03"),
        ((1500, 1500, 1500, 1500), ""),
    ],
)
def test_case_the_same_on_all_nodes_or_one_that_differs(
    tmp_path: Path, sizes: tuple[int, ...], differs: str
) -> None:
    nodes = {}
    for number, size in enumerate(sizes, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = MadeUpNode(folder)
        put_link(made, "eth0", size)
        nodes[f"node{number:02}"] = made.probe("mtu")
        assert said(nodes[f"node{number:02}"])[0] == f"pass interface: MTU {size} on eth0"
    assert list(compared(nodes)) == ([differs] if differs else [])


def put_ping(made: MadeUpNode, address: str, *answers: tuple[str, str, int]) -> None:
    """A ping that says what was recorded: (pattern of the size, output, exit status)."""
    put_link(made, "eth0", 9000)
    made.command("ip", f"echo {address} dev eth0 src 10.20.0.10 uid 0")
    cases = "\n".join(
        f"{sizes}) printf '%s\\n' {shlex.quote(text)}; exit {status} ;;"
        for sizes, text, status in answers
    )
    made.command(
        "ping",
        'size=56; while [ $# -gt 1 ]; do [ "$1" = -s ] && size=$2; shift; done\n'
        '[ "$1" = 127.0.0.1 ] && exit 1\n'
        f"case $size in\n{cases}\n*) echo 'PING {address} ({address})'; exit 1 ;;\nesac",
    )


def of_peer(made: MadeUpNode, shell: str = "sh", **changed: Any) -> list[Finding]:
    told = made.told("mtu", shell=shell, peers=[Target("node02", "node02")], **changed)
    assert told.whole, told
    return [f for f in findings(dict(told.facts), **changed) if f.peer]


@pytest.mark.parametrize(
    ("name", "size", "status", "expected"),
    [
        ("ping-v4-8972-ok.txt", 8972, 0, "pass path"),
        ("ping-v6-8952-ok.txt", 8952, 0, "pass path"),
        ("ping-v4-8972-local.txt", 8972, 1, "fail local"),
        ("ping-frag-needed.txt", 8972, 1, "fail router"),
    ],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_recorded_pings(
    made: MadeUpNode, shell: str, name: str, size: int, status: int, expected: str
) -> None:
    address = "fd00:20::11" if "v6" in name else "10.20.0.11"
    put_ping(
        made,
        address,
        ("56", SMALL_ANSWER.format(address), 0),
        (str(size), recorded(name), status),
        ("1472", f"1480 bytes from {address}", 0),
    )
    (found,) = of_peer(made, shell)
    assert f"{found.status.value} {found.code}" == expected
    if found.status is Status.FAIL:
        assert found.message.endswith("; the largest that arrives is 1500 bytes")
        assert found.remedy and found.remedy.see == "§5.3"


def test_a_recorded_refusal_by_an_interface_at_1500_is_this_nodes_fault(made: MadeUpNode) -> None:
    put_ping(
        made,
        "10.20.0.11",
        ("56", SMALL_ANSWER.format("10.20.0.11"), 0),
        ("8972", recorded("ping-v4-8972-local.txt"), 1),
        ("1472", "1480 bytes from 10.20.0.11", 0),
    )
    made.file("/sys/class/net/eth0/mtu", "1500\n")
    told = made.told("mtu", peers=[Target("node02", "node02")], mtu=9000).facts
    assert said(told, mtu=9000) == [
        "fail interface: eth0 has MTU 1500, should be 9000",
        "skip local node02: packets of 9000 bytes do not leave, for eth0 has MTU 1500; those"
        " arrive",
    ]


def test_case_a_hole_for_large_packets_on_the_path(made: MadeUpNode) -> None:
    put_ping(
        made,
        "192.0.2.12",
        ("56", SMALL_ANSWER.format("192.0.2.12"), 0),
        (
            "8972",
            "PING node02 (192.0.2.12) 8972(9000) bytes of data.\n\n--- node02 ping statistics ---\n"
            "3 packets transmitted, 0 received, 100% packet loss, time 2040ms\n",
            1,
        ),
        # recorded for 1472, and so it would be for what is smaller
        (
            "[1-9][0-9][0-9] | 1[0-3]?? | 14[0-6]? | 147[012]",
            "1480 bytes from node02 (192.0.2.12)",
            0,
        ),
    )
    (found,) = of_peer(made)
    assert found.status is Status.FAIL
    assert found.message == (
        "packets of 9000 bytes vanish on the path without a word; the largest that arrives is 1500"
        " bytes"
    )
    assert found.remedy and "switch port" in found.remedy.text
    assert "down" not in found.message


PERMISSIONS = [
    "ping: socktype: SOCK_RAW\nping: socket: Operation not permitted\n"
    "ping: => missing cap_net_raw+p capability or setuid?",
    "ping: socket: Operation not permitted",
    "ping: icmp open socket: Operation not permitted",
    "ping: permission denied (are you root?)",
    "sh: ping: Permission denied",
]


@pytest.mark.parametrize("text", PERMISSIONS)
def test_case_who_may_not_ping_is_told_of_the_right_and_not_of_the_peer(
    made: MadeUpNode, text: str
) -> None:
    made.command("ping", f"printf '%s\\n' {shlex.quote(text)} >&2; exit 2")
    made.command("ip", "exit 1")
    (found,) = of_peer(made)
    assert (found.status, found.code) == (Status.UNKNOWN, "no_permission")
    assert found.message == "not permitted to send ICMP: ping needs a right"
    assert found.remedy
    for word in ("sudo", "setcap", "ping_group_range"):
        assert word in found.remedy.text


WORDS = {
    "no_name": [
        "ping: node02: Name or service not known",
        "ping: node02: Temporary failure in name resolution",
        "ping: unknown host node02",
        "ping: node02: Name does not resolve",
        "ping: node02: No address associated with hostname",
        "ping: node02: Address family for hostname not supported",
    ],
    "no_route": [
        "ping: connect: Network is unreachable",
        "connect: Network is unreachable",
        "From 10.0.0.1 icmp_seq=1 Destination Net Unreachable",
        "From fd00::1 icmp_seq=1 Destination unreachable: No route",
        "ping: connect: No route to host",
    ],
    "filtered": [
        "From 10.0.0.1 icmp_seq=1 Packet filtered",
        "From 10.0.0.1 icmp_seq=1 Destination Host Prohibited",
        "From 10.0.0.1 icmp_seq=1 Destination Port Unreachable",
        "From fd00::1 icmp_seq=1 Destination unreachable: Administratively prohibited",
        "ping: sendmsg: Operation not permitted",
    ],
    "silent": [
        "From 10.0.0.9 icmp_seq=1 Destination Host Unreachable",
        "From fd00::9 icmp_seq=1 Destination unreachable: Address unreachable",
        "1 packets transmitted, 0 received, 100% packet loss, time 0ms",
    ],
}


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in WORDS.items() for text in texts]
)
def test_each_of_pings_words_has_its_finding(made: MadeUpNode, code: str, text: str) -> None:
    put_ping(made, "10.0.0.2", ("56", f"PING node02 (10.0.0.2) 56(84) bytes of data.\n{text}", 1))
    (found,) = of_peer(made)
    assert (found.status, found.code) == (Status.UNKNOWN, code)


@pytest.mark.parametrize(
    "text",
    [
        "ping: sendmsg: Message too long",
        "ping: local error: Message too long, mtu=1500",
        "ping: local error: message too long, mtu: 1500",
    ],
)
def test_each_form_of_a_local_refusal_is_known(made: MadeUpNode, text: str) -> None:
    put_ping(
        made,
        "10.0.0.2",
        ("56", SMALL_ANSWER.format("10.0.0.2"), 0),
        ("8972", text, 1),
        ("1472", "1480 bytes from 10.0.0.2", 0),
    )
    (found,) = of_peer(made)
    assert (found.status, found.code) == (Status.FAIL, "local")
    if "1500" in text:
        assert found.message.endswith("; the largest that arrives is 1500 bytes")


@pytest.mark.parametrize(
    ("banner", "size"),
    [
        ("PING node02 (10.0.0.2) 56(84) bytes of data.", 9000),
        ("PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.", 9000),
        ("PING node02(node02 (fd00::2)) 56 data bytes", 9000),
        ("PING node02 (fd00::2) 56 data bytes", 9000),
        ("PING fd00::2(fd00::2) 56 data bytes", 9000),
    ],
)
def test_the_address_is_found_in_each_form_of_the_first_line(
    made: MadeUpNode, banner: str, size: int
) -> None:
    payload = size - (48 if "fd00" in banner else 28)
    put_ping(
        made,
        "10.0.0.2",
        ("56", f"{banner}\n64 bytes from it", 0),
        (str(payload), f"{payload + 8} bytes from it", 0),
    )
    made.command("ip", 'case $* in *"get 10.0.0.2" | *"get fd00::2") echo it dev eth0 ;; esac')
    (found,) = of_peer(made)
    assert (found.status, found.code) == (Status.PASS, "path"), found


def test_nothing_seen_is_no_pass() -> None:
    told = node()
    del told["interfaces"]
    assert said(told) == ["unknown not_answered: the probe did not report 'interfaces'"]
