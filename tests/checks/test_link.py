"""The check link: speeds, carriers and counters as kernels and ethtool tell them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS

CHECK = CHECKS["link"]
SAMPLES = Path(__file__).parent.parent / "data" / "link" / "samples"
BOTH = (SAMPLES.parent / "ethtool-both-offer-1000.txt").read_text()
ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    node = MadeUpNode(tmp_path)
    node.says("ethtool", stderr="netlink error: No such device", status=75)
    node.file("/proc/uptime", "864000.50 1000.00\n")
    return node


def put(
    made: MadeUpNode,
    name: str,
    speed: int | str | None = 100000,
    *,
    kind: str = "real",
    carrier: bool | None = True,
    duplex: str = "full",
    flags: str = "0x1003",
    card: str = "0x15b3:0x1017",
    bond: str = "",
    downs: int = 1,
    **counters: int,
) -> None:
    """An interface below /sys/class/net; what the kernel refuses to tell is not there."""
    place = f"/sys/class/net/{name}"
    files: dict[str, object] = {
        "type": 1,
        "flags": flags,
        "speed": speed,
        "duplex": None if speed is None else duplex,
        "carrier": None if carrier is None else int(carrier),
        "carrier_down_count": downs,
    }
    if kind != "virtual":
        files["device/vendor"], files["device/device"] = card.split(":")
    if kind == "usb":
        files["device/bInterfaceClass"] = "02"
    if kind == "function":
        files["device/physfn/vendor"] = "0x15b3"
    if kind == "wireless":
        files["phy80211/index"] = 0
    if bond:
        files[f"upper_{bond}/bonding/slaves"] = name
    for counter, value in {"rx_bytes": 10**12, "rx_packets": 10**9, **counters}.items():
        files[f"statistics/{counter}"] = value
    for file, content in files.items():
        if content is not None:
            made.file(f"{place}/{file}", f"{content}\n")


def put_ethtool(made: MadeUpNode, text: str) -> None:
    """An ethtool that says this of the interface that it names, and the kernel's speed with it."""
    made.says("ethtool", text)
    name, speed = re.findall(r"Settings for (\S+):|Speed: (\S+?)(?:Mb/s|!)", text)
    put(made, name[0], -1 if speed[1] == "Unknown" else speed[1])


def compared(nodes: Mapping[str, Mapping[str, str]], **changed: Any) -> list[str]:
    """What comparing the nodes adds."""
    assert CHECK.compare
    options = {name: options_of("link", **changed) for name in nodes}
    found = CHECK.compare({n: Facts(told) for n, told in nodes.items()}, options)
    return [f"{node} {f.status.value} {f.code}: {f.message}" for node, f in found]


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        ("ethtool-100g", "pass speed: 100000 Mb/s on ens1f0np0"),
        (
            "ethtool-degraded-25g",
            "warn speed: ens1f1np1 runs at 25000 Mb/s, and 100000 is offered",
        ),
        (
            "ethtool-virtio-unknown",
            "skip speed: eth0 is up and tells no speed, as virtual cards do",
        ),
    ],
)
def test_samples_of_ethtool(made: MadeUpNode, sample: str, found: str) -> None:
    put_ethtool(made, (SAMPLES / f"{sample}.txt").read_text())
    assert judged("link", made.probe("link")) == [found]


def test_the_speed_that_only_ethtool_tells(made: MadeUpNode) -> None:
    made.says("ethtool", BOTH.replace("Duplex: Full", "Duplex: Half"))
    put(made, "eno1", None)
    facts = made.probe("link")
    assert judged("link", facts, speed=1000)[0] == (
        "fail speed: eno1 runs at 100 Mb/s, should run at 1000"
    )
    assert judged("link", facts)[1].startswith("warn duplex: eno1 runs at half duplex")


def test_sample_of_a_degraded_port_where_its_speed_is_wanted(made: MadeUpNode) -> None:
    put_ethtool(made, (SAMPLES / "ethtool-degraded-25g.txt").read_text())
    assert judged("link", made.probe("link"), speed=100000) == [
        "fail speed: ens1f1np1 runs at 25000 Mb/s, should run at 100000"
    ]


def test_sample_of_a_cards_counters(made: MadeUpNode) -> None:
    """The kernel shows the card's counters below /sys: an mlx5 card's by these names."""
    text = (SAMPLES / "ethtool-stats-errors.txt").read_text()
    told = {name: int(value) for name, value in re.findall(r"(\w+): ([0-9]+)", text)}
    put(
        made,
        "ens1f0np0",
        rx_packets=told["rx_packets"],
        rx_bytes=told["rx_bytes"],
        tx_packets=told["tx_packets"],
        rx_crc_errors=told["rx_crc_errors_phy"],
        rx_errors=told["rx_crc_errors_phy"],
        rx_missed_errors=told["rx_out_of_buffer"],
        tx_errors=told["tx_errors_phy"],
        downs=told["link_down_events_phy"],
    )
    assert judged("link", made.probe("link")) == [
        "pass speed: 100000 Mb/s on ens1f0np0",
        "warn errors: ens1f0np0 has received 1923 damaged packets since boot in 95123 GB, 2.53 for"
        " each 10^12 bits, should be 1 at most; none more within 1 s",
    ]


# Of one kind: speeds that the kernel does not know, in all the forms in which it says so.
UNKNOWN_SPEEDS = [-1, 4294967295, 65535, 0, None]


@pytest.mark.parametrize("told", UNKNOWN_SPEEDS)
def test_case_unknown_speeds_of_an_interface_without_carrier(
    made: MadeUpNode, told: int | None
) -> None:
    put(made, "eth0", 100000)
    put(made, "eth1", told, carrier=False, duplex="unknown")
    put(made, "eth2", None, carrier=None, flags="0x1002")
    facts = made.probe("link")
    assert judged("link", facts) == ["pass speed: 100000 Mb/s on eth0"]
    assert judged("link", facts, interfaces=("eth0", "eth1"), speed=100000) == [
        "fail carrier: eth1 has no carrier, should have a carrier",
        "pass speed: 100000 Mb/s on eth0, as it should be",
    ]
    assert judged("link", facts, interfaces=("eth2",)) == [
        "fail carrier: eth2 is off, should have a carrier"
    ]


@pytest.mark.parametrize("told", UNKNOWN_SPEEDS)
def test_case_an_unknown_speed_is_never_fast_enough(made: MadeUpNode, told: int | None) -> None:
    put(made, "ens3", told, duplex="unknown")
    put(made, "ens4", 10000)
    assert judged("link", made.probe("link")) == ["pass speed: 10000 Mb/s on ens4"]
    assert judged("link", made.probe("link"), speed=10000) == [
        "unknown speed: ens3 does not tell its speed, should be 10000 Mb/s",
        "pass speed: 10000 Mb/s on ens4, as it should be",
    ]


def test_case_a_slow_interface_among_unknown_ones(made: MadeUpNode) -> None:
    put(made, "eno1", 1000)
    put(made, "eno2", "4294967295", carrier=False)
    facts = made.probe("link")
    assert judged("link", facts) == ["pass speed: 1000 Mb/s on eno1"]
    assert judged("link", facts, interfaces=("eno*",), speed=25000) == [
        "fail carrier: eno2 has no carrier, should have a carrier",
        "fail speed: eno1 runs at 1000 Mb/s, should run at 25000",
    ]


def test_interfaces_that_are_no_cards_are_left_out(made: MadeUpNode) -> None:
    put(made, "eno1", 1000)
    for name in ("veth1", "docker0", "dummy0", "tun0"):
        put(made, name, 10, kind="virtual", duplex="half")
    put(made, "enp1s0f0v0", 10, kind="function", duplex="half")
    put(made, "usb0", 10, kind="usb", duplex="half")
    put(made, "wlan0", None, kind="wireless")
    assert judged("link", made.probe("link")) == ["pass speed: 1000 Mb/s on eno1"]


def test_a_container_has_no_card(made: MadeUpNode) -> None:
    put(made, "eth0", 10000, kind="virtual")
    assert judged("link", made.probe("link")) == [
        "skip speed: no interface of a card has a carrier"
    ]


def test_nothing_to_be_seen_is_not_known(made: MadeUpNode) -> None:
    assert judged("link", made.probe("link")) == [
        "unknown interface: no interface could be seen in /sys/class/net"
    ]


def test_wanted_interfaces_that_are_not_there(made: MadeUpNode) -> None:
    put(made, "eth0")
    assert judged("link", made.probe("link"), interfaces=("ens*",)) == [
        "fail interface: there is no interface ens*, should be one with a carrier"
    ]


@pytest.mark.parametrize(
    ("route", "six", "found"),
    [
        ("eth1 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n", "", "fail carrier: eth1 has no"
         " carrier, and has the default route"),
        ("eth1 0000000A 00000000 0001 0 0 0 0000FFFF 0 0 0\n", "", "warn carrier: eth1 has no"
         " carrier, and has an address or a route"),
        ("", "fd770000000000000000000000000001 03 40 00 80 eth1\n", "warn carrier: eth1 has no"
         " carrier, and has an address or a route"),
        ("", "fe800000000000000000000000000001 03 40 20 80 eth1\n", ""),
    ],
)  # fmt: skip
def test_no_carrier_where_packets_should_go(
    made: MadeUpNode, route: str, six: str, found: str
) -> None:
    put(made, "eth0")
    put(made, "eth1", -1, carrier=False)
    made.file("/proc/net/route", ROUTES + route)
    made.file("/proc/net/if_inet6", six)
    good = "pass speed: 100000 Mb/s on eth0"
    assert judged("link", made.probe("link")) == [*([found] if found else []), good]


def test_what_a_vlan_rests_on_needs_a_carrier_too(made: MadeUpNode) -> None:
    put(made, "eth1", -1, carrier=False)
    put(made, "eth1.7", 100000, kind="virtual")
    made.file("/sys/class/net/eth1.7/lower_eth1/mtu", "1500\n")
    made.file("/proc/net/route", f"{ROUTES}eth1.7 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n")
    assert judged("link", made.probe("link")) == [
        "fail carrier: eth1 has no carrier, and has the default route"
    ]


def test_half_duplex(made: MadeUpNode) -> None:
    put(made, "eth0", 100, duplex="half")
    put(made, "usb0", 425, kind="usb", duplex="half")  # what cdc_ncm says of a BMC
    made.file("/proc/net/route", f"{ROUTES}usb0 0000FEA9 00000000 0001 0 0 0 0000FFFF 0 0 0\n")
    assert judged("link", made.probe("link")) == [
        "pass speed: 100 Mb/s on eth0, 425 Mb/s on usb0",
        "warn duplex: eth0 runs at half duplex, should be full: each waits for the other",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BOTH, "warn speed: eno1 runs at 100 Mb/s, and 1000 is offered"),
        # the switch has no more, and a fast card on it is well
        (
            BOTH.replace("                                     1000baseT/Full\n", ""),
            "pass speed: 100 Mb/s on eno1",
        ),
        # of a switch that does not tell, no more can be asked
        (re.sub("\tLink partner.*\n.*\n.*\n", "", BOTH), "pass speed: 100 Mb/s on eno1"),
        (BOTH.replace("ation: on", "ation: off"), "pass speed: 100 Mb/s on eno1"),
    ],
)
def test_what_both_ends_offer(made: MadeUpNode, text: str, found: str) -> None:
    put_ethtool(made, text)
    assert judged("link", made.probe("link")) == [found]


@pytest.mark.parametrize(
    ("counters", "found"),
    [
        ({"rx_errors": 99, "rx_bytes": 1000}, ""),
        ({"rx_errors": 5000, "rx_bytes": 10**15}, ""),
        (
            {"rx_errors": 5000, "rx_length_errors": 4990, "rx_bytes": 10**12},
            "",  # longer than the MTU: no cable's fault
        ),
        (
            {"rx_errors": 8500, "rx_bytes": 10**15},
            "warn errors: eth0 has received 8500 damaged packets since boot in 1000000 GB, 1.06 for"
            " each 10^12 bits, should be 1 at most; none more within 1 s",
        ),
        ({"rx_missed_errors": 900_000, "rx_packets": 10**9}, ""),
        (
            {"rx_missed_errors": 2_000_000, "rx_fifo_errors": 2_000_000, "rx_packets": 10**9},
            "warn losses: eth0 had no room for 2000000 packets since boot, 0.2 % of them, should be"
            " 0.1 % at most; none more within 1 s",
        ),
        ({"rx_dropped": 10**9}, ""),  # also counts what nobody on the node wanted
        (
            {"tx_errors": 500, "tx_packets": 1500},
            "warn losses: eth0 failed to send 500 packets since boot, 25 % of them, should be 0.1 %"
            " at most; none more within 1 s",
        ),
    ],
)
def test_counters(made: MadeUpNode, counters: dict[str, Any], found: str) -> None:
    made.command("sleep", "exec /bin/sleep 0.1")
    put(made, "eth0", **counters)
    good = "pass speed: 100000 Mb/s on eth0"
    assert judged("link", made.probe("link")) == [good, *([found] if found else [])]


# the script itself sleeps too
OF_THE_PROBE = "tr '\\0' ' ' </proc/$PPID/cmdline | grep -q 'probes link'"


def test_errors_that_still_grow_are_told_apart(made: MadeUpNode) -> None:
    put(made, "eth0", rx_crc_errors=1000, rx_bytes=10**9)
    counter = made.root / "sys/class/net/eth0/statistics/rx_crc_errors"
    made.command("sleep", f"{OF_THE_PROBE} && echo 1017 >{counter}; exec /bin/sleep 0.1")
    assert judged("link", made.probe("link"))[1].endswith("; 17 more within 1 s")


def test_a_sound_node_is_not_waited_for(made: MadeUpNode) -> None:
    put(made, "eth0", rx_errors=99)
    made.command("sleep", f"{OF_THE_PROBE} && echo slept >{made.root}/slept; exec /bin/sleep 1")
    made.probe("link")
    assert not (made.root / "slept").exists()


@pytest.mark.parametrize(
    ("downs", "seconds", "found"),
    [
        (4, 600, ""),
        (9, 600, ""),
        (99, 864000, ""),
        (
            120,
            864000,
            "warn flaps: eth0 has lost its carrier 120 times in 10.0 days since boot, should be"
            " fewer than 10 a day",
        ),
        (
            12,
            600,
            "warn flaps: eth0 has lost its carrier 12 times in 0.0 days since boot, should be fewer"
            " than 10 a day",
        ),
    ],
)
def test_flapping(made: MadeUpNode, downs: int, seconds: int, found: str) -> None:
    put(made, "eth0", downs=downs)
    made.file("/proc/uptime", f"{seconds}.00 1.00\n")
    good = "pass speed: 100000 Mb/s on eth0"
    assert judged("link", made.probe("link")) == [good, *([found] if found else [])]


def test_old_kernels_count_both_ways(made: MadeUpNode) -> None:
    put(made, "eth0")
    (made.root / "sys/class/net/eth0/carrier_down_count").unlink()
    made.file("/sys/class/net/eth0/carrier_changes", "241\n")
    assert "lost its carrier 120 times" in judged("link", made.probe("link"))[1]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_tells_the_same(made: MadeUpNode, shell: str) -> None:
    put(made, "eth0", 10000, rx_crc_errors=1000, rx_bytes=10**9)
    put(made, "ens1f0", 25000, bond="bond0")
    put_ethtool(made, BOTH)
    made.file("/proc/net/route", f"{ROUTES}eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n")
    facts = made.probe("link", shell=shell)
    assert facts == made.probe("link")
    assert [line.split(":")[0] for line in judged("link", facts)] == [
        "warn speed",
        "pass speed",
        "warn errors",
    ]


def test_a_slower_interface_than_on_most_nodes(tmp_path: Path) -> None:
    nodes = {}
    for number, speed in enumerate((25000, 25000, 10000, 25000), 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = MadeUpNode(folder)
        made.says("ethtool", status=75)
        put(made, "ens1f0", speed)
        put(made, "eno1", 1000, carrier=number != 2)
        put(made, "eno2", 1000, carrier=False)
        nodes[f"node{number:02}"] = made.probe("link")
    slow = "node03 warn differs: ens1f0 runs at 10000 Mb/s, and at 25000 on 3 of 4 nodes"
    unplugged = "node02 warn differs: eno1 has no carrier, and has one on 3 of 4 nodes"
    assert compared(nodes) == [unplugged, slow]
    assert compared(nodes, speed=10000) == [unplugged]
    assert compared(nodes, interfaces=("eno*",)) == [slow]


@pytest.mark.parametrize("below", ["upper_bond0", "master"])
def test_whose_member_it_is(made: MadeUpNode, below: str) -> None:
    put(made, "eth0", carrier=False)
    made.file(f"/sys/class/net/eth0/{below}/bonding/slaves", "eth0\n")
    line = made.probe("link")["interfaces"]
    assert f" bond={below.removeprefix('upper_')} " in line
    usual = {"interfaces": line.replace("carrier=0", "carrier=1"), "modes": ""}
    assert compared({"a": usual, "b": usual, "c": {"interfaces": line, "modes": ""}}) == []


LINES = {
    "usual": "eth0 kind=real type=1 carrier=1 speed=25000 vendor=1 model=2",
    "slow": "eth0 kind=real type=1 carrier=1 speed=10000 vendor=1 model=2",
    "fast": "eth0 kind=real type=1 carrier=1 speed=100000 vendor=1 model=2",
    "other card": "eth0 kind=real type=1 carrier=1 speed=1000 vendor=1 model=3",
    "no speed": "eth0 kind=real type=1 carrier=1 speed=-1 vendor=1 model=2",
    "unplugged": "eth0 kind=real type=1 carrier=0 vendor=1 model=2",
    "unplugged with an address": "eth0 kind=real type=1 carrier=0 route=yes vendor=1 model=2",
    "unplugged member": "eth0 kind=real type=1 carrier=0 bond=bond0 vendor=1 model=2",
    "slow of two": "eth0 kind=real type=1 carrier=1 speed=10000 vendor=1 model=2 bond=bond0\n"
    "eth1 kind=real type=1 carrier=1 speed=25000 vendor=1 model=2 bond=bond0",
}


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["usual", "usual", "fast"], []),
        (["usual", "usual", "other card"], []),
        (["usual", "usual", "no speed"], []),
        (["usual", "slow"], []),  # which of the two is right?
        (["usual", "usual", "slow", "slow"], []),
        (["usual", "usual", "unplugged with an address"], []),  # it has said so itself
        (["usual", "usual", "unplugged member"], []),  # what bond says
        (["usual", "usual", "slow of two"], []),
        (["unplugged", "unplugged", "usual"], []),
        (
            ["usual", "usual", "slow"],
            ["node2 warn differs: eth0 runs at 10000 Mb/s, and at 25000 on 2 of 3 nodes"],
        ),
        (
            ["usual", "slow", "unplugged"],
            ["node2 warn differs: eth0 has no carrier, and has one on 2 of 3 nodes"],
        ),
    ],
)
def test_comparing(kinds: list[str], found: list[str]) -> None:
    nodes = {
        f"node{number}": {"interfaces": LINES[kind], "modes": ""}
        for number, kind in enumerate(kinds)
    }
    assert compared(nodes) == found


def test_what_a_node_has_said_of_its_speed_is_not_said_again(made: MadeUpNode) -> None:
    put_ethtool(made, BOTH)
    slow = made.probe("link")
    fast = {**slow, "interfaces": slow["interfaces"].replace("speed=100", "speed=1000")}
    assert judged("link", slow) == ["warn speed: eno1 runs at 100 Mb/s, and 1000 is offered"]
    assert compared({"node01": fast, "node02": slow, "node03": fast}) == []
