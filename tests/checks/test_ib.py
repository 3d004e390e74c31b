"""The check ib, on what ibstat printed and on the same as files of /sys/class/infiniband."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS

CHECK = CHECKS["ib"]
DATA = Path(__file__).parent.parent / "data" / "ib"
FORMS = pytest.mark.parametrize("form", ["ibstat", "sys"])

STATES = {"Active": "4: ACTIVE", "Initializing": "2: INIT", "Armed": "3: ARMED", "Down": "1: DOWN"}
PHYSICAL = {"LinkUp": 5, "Polling": 2, "Disabled": 3, "PortConfigurationTraining": 4}
KINDS = {10: "SDR", 25: "EDR", 100: "EDR", 200: "HDR", 400: "NDR"}


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    node = MadeUpNode(tmp_path)
    node.command("ibstat", "exit 255")
    node.file("/proc/uptime", "864000.50 1000.00\n")
    return node


def put(
    made: MadeUpNode,
    adapter: str,
    state: str = "Active",
    physical: str = "LinkUp",
    rate: int = 400,
    *,
    number: int = 1,
    layer: str = "InfiniBand",
    width: str = "4X",
    model: str = "MT4129",
    firmware: str = "28.39.1002",
    **counters: int,
) -> None:
    """A port as the kernel shows it."""
    of = f"/sys/class/infiniband/{adapter}"
    port = f"{of}/ports/{number}"
    made.file(f"{of}/hca_type", f"{model}\n")
    made.file(f"{of}/fw_ver", f"{firmware}\n")
    made.file(f"{of}/board_id", "MT_0000000838\n")
    made.file(f"{port}/state", f"{STATES[state]}\n")
    made.file(f"{port}/phys_state", f"{PHYSICAL[physical]}: {physical}\n")
    made.file(f"{port}/rate", f"{rate} Gb/sec ({width} {KINDS[rate]})\n")
    made.file(f"{port}/link_layer", f"{layer}\n")
    for counter in ("symbol_error", "link_downed", "port_rcv_errors", "port_rcv_data"):
        made.file(f"{port}/counters/{counter}", f"{counters.get(counter, 0)}\n")


def put_text(made: MadeUpNode, text: str, form: str) -> None:
    """What ibstat printed: by itself, or as files of /sys."""
    if form == "ibstat":
        made.says("ibstat", text)
        return
    for adapter in text.split("CA '")[1:]:
        told = dict(re.findall(r"([A-Z][\w ]+): (\S+)", adapter))
        put(
            made,
            adapter.partition("'")[0],
            told["State"],
            told["Physical state"],
            int(told["Rate"]),
            layer=told["Link layer"],
            model=told["CA type"],
        )


def said(made: MadeUpNode, **changed: Any) -> list[str]:
    return judged("ib", made.probe("ib"), **changed)


def compared(nodes: Mapping[str, Mapping[str, str]], **changed: Any) -> list[str]:
    """What comparing the nodes adds."""
    assert CHECK.compare
    options = {name: options_of("ib", **changed) for name in nodes}
    found = CHECK.compare({n: Facts(told) for n, told in nodes.items()}, options)
    return [f"{node} {f.status.value} {f.code}: {f.message}" for node, f in found]


@FORMS
@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (
            "two-active",
            [
                "pass ports: 2 of 2 InfiniBand ports active",
                "pass rate: 400 Gb/s on mlx5_0 and mlx5_1",
            ],
        ),
        (
            "init-and-slow",
            [
                "fail manager: mlx5_0 is Initializing, should be Active: no subnet manager has set"
                " it up",
                "pass ports: 1 of 2 InfiniBand ports active",
                "warn rate: mlx5_1 runs at 200 Gb/s, should run at 400 as others here do",
            ],
        ),
        ("none", ["skip ports: there is no InfiniBand port"]),
    ],
)
def test_samples(made: MadeUpNode, form: str, sample: str, found: list[str]) -> None:
    put_text(made, (DATA / "samples" / f"{sample}.txt").read_text(), form)
    assert said(made) == found


@FORMS
def test_sample_without_adapters_where_ports_are_wanted(made: MadeUpNode, form: str) -> None:
    put_text(made, (DATA / "samples" / "none.txt").read_text(), form)
    assert said(made, ports=2) == ["fail ports: there is no InfiniBand port, should be 2"]


@FORMS
def test_sample_of_a_slow_port_where_its_rate_is_wanted(made: MadeUpNode, form: str) -> None:
    put_text(made, (DATA / "samples" / "init-and-slow.txt").read_text(), form)
    assert said(made, ports=2, rate=400) == [
        "fail manager: mlx5_0 is Initializing, should be Active: no subnet manager has set it up",
        "fail rate: mlx5_1 runs at 200 Gb/s, should run at 400",
    ]


@FORMS
def test_case_a_port_without_its_other_end(made: MadeUpNode, form: str) -> None:
    put_text(made, (DATA / "case-polling.txt").read_text(), form)
    assert said(made, ports=2, rate=400) == [
        "fail ports: 1 of 2 InfiniBand ports active, should be 2: mlx5_1 finds nothing at the other"
        " end (Polling)",
        "pass rate: 400 Gb/s on mlx5_0, as it should be",
    ]
    assert said(made) == [  # an empty port of a node that wants none is no finding
        "pass ports: 1 of 2 InfiniBand ports active",
        "pass rate: 400 Gb/s on mlx5_0",
    ]


@FORMS
def test_case_more_ports_down_and_an_ethernet_one_that_is_fast(made: MadeUpNode, form: str) -> None:
    text = (DATA / "case-polling.txt").read_text()
    text = text.replace("Physical state: LinkUp", "Physical state: Disabled", 1)
    text = text.replace("State: Active", "State: Down", 1).replace("Rate: 25", "Rate: 400")
    put_text(made, text, form)
    assert said(made, ports=2, rate=200) == [
        "fail ports: 0 of 2 InfiniBand ports active, should be 2: mlx5_0 is switched off"
        " (Disabled), mlx5_1 finds nothing at the other end (Polling)",
    ]
    assert said(made) == [
        "warn ports: no InfiniBand port is active: mlx5_0 is switched off (Disabled), mlx5_1 finds"
        " nothing at the other end (Polling)",
    ]


@FORMS
def test_case_fewer_ports_than_wanted_and_none_of_them_down(made: MadeUpNode, form: str) -> None:
    text = (DATA / "case-polling.txt").read_text()
    text = (
        text.replace("Down", "Active").replace("Polling", "LinkUp").replace("Rate: 10", "Rate: 200")
    )
    put_text(made, text, form)
    assert said(made, ports=4, rate=200) == [
        "fail ports: 2 of 2 InfiniBand ports active, should be 4",
        "pass rate: 200 Gb/s on mlx5_1, 400 Gb/s on mlx5_0, as it should be",
    ]


def test_case_ibstat_is_missing_where_ports_are_wanted(made: MadeUpNode) -> None:
    made.hide("ibstat")
    (made.bin / "ibstat").unlink()
    assert said(made, ports=1) == ["fail ports: there is no InfiniBand port, should be 1"]
    assert said(made) == ["skip ports: there is no InfiniBand port"]


def test_only_ethernet_ports(made: MadeUpNode) -> None:
    put(made, "mlx5_2", rate=25, layer="Ethernet")
    assert said(made) == ["skip ports: there is no InfiniBand port"]
    assert said(made, ports=1) == ["fail ports: there is no InfiniBand port, should be 1"]


def test_an_ibstat_that_hangs_or_babbles_is_not_known(made: MadeUpNode) -> None:
    for status, text in ((124, ""), (0, "ibwarn: something else")):
        made.says("ibstat", text, status=status)
        assert said(made) == ["unknown ports: ibstat gave no answer that can be read"]


def test_ports_of_one_adapter(made: MadeUpNode) -> None:
    put(made, "mlx4_0", number=1)
    put(made, "mlx4_0", "Down", "PortConfigurationTraining", 10, number=2)
    assert said(made) == [
        "warn ports: mlx4_0 port 2 does not come up (PortConfigurationTraining)",
        "pass ports: 1 of 2 InfiniBand ports active",
        "pass rate: 400 Gb/s on mlx4_0",
    ]


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        ("phys_state", "6: LinkErrorRecovery\n", "ACTIVE and LinkErrorRecovery"),
        ("state", "5: ACTIVE_DEFER\n", "ACTIVE_DEFER and LinkUp"),
    ],
)
def test_active_by_name_alone(made: MadeUpNode, file: str, text: str, word: str) -> None:
    put(made, "mlx5_0")
    made.file(f"/sys/class/infiniband/mlx5_0/ports/1/{file}", text)
    assert said(made)[0] == (
        f"warn flaps: mlx5_0 is {word}, should be Active and LinkUp: its link has failed, and is"
        " set up anew"
    )


def test_one_lane_of_four(made: MadeUpNode) -> None:
    put(made, "mlx5_0", rate=25, width="1X")
    assert said(made)[1:] == [
        "warn rate: mlx5_0 runs at 25 Gb/s, should run at four times that: it uses one lane"
    ]


def test_slower_adapters_of_another_kind_are_well(made: MadeUpNode) -> None:
    put(made, "mlx5_0", rate=400)
    put(made, "mlx5_1", rate=200, model="MT4123")
    assert said(made)[1:] == ["pass rate: 200 Gb/s on mlx5_1, 400 Gb/s on mlx5_0"]


def test_what_is_for_a_virtual_machine_is_left_out(made: MadeUpNode) -> None:
    put(made, "mlx5_0")
    put(made, "mlx5_5", "Down", "Disabled", 10)
    made.file("/sys/class/infiniband/mlx5_5/device/physfn/vendor", "0x15b3\n")
    assert said(made)[0] == "pass ports: 1 of 1 InfiniBand ports active"


@pytest.mark.parametrize(
    ("counters", "found"),
    [
        ({"symbol_error": 99, "link_downed": 9}, ""),
        ({"symbol_error": 65535}, ""),  # at 400 Gb/s for ten days, 345,600 are within the norm
        ({"port_rcv_errors": 99, "port_rcv_data": 1}, ""),
        (
            {"port_rcv_errors": 5000, "port_rcv_data": 10**14},
            "warn errors: mlx5_0 has received 5000 damaged packets in 400000 GB, 1.56 for each"
            " 10^12 bits, should be 1 at most",
        ),
        (
            {"link_downed": 120},
            "warn flaps: mlx5_0 has lost its link 120 times in 10.0 days since boot, should be"
            " fewer than 10 a day",
        ),
    ],
)
def test_counters(made: MadeUpNode, counters: dict[str, Any], found: str) -> None:
    put(made, "mlx5_0", **counters)
    assert said(made)[2:] == ([found] if found else [])


@pytest.mark.parametrize(
    ("errors", "words"), [(5000, "5000 symbol errors"), (65535, "at least 65535 symbol errors")]
)
def test_symbol_errors_of_a_young_node(made: MadeUpNode, errors: int, words: str) -> None:
    put(made, "mlx5_0", rate=100, symbol_error=errors)
    made.file("/proc/uptime", "3600.00 1.00\n")
    assert said(made)[2].startswith(f"warn errors: mlx5_0 has had {words} since boot, ")
    assert said(made, errors=1000) == said(made)[:2]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_tells_the_same(made: MadeUpNode, shell: str) -> None:
    put(made, "mlx5_0")
    put(made, "mlx5_1", "Down", "Polling", 10)
    facts = made.probe("ib", shell=shell)
    assert facts == made.probe("ib")
    assert facts["ports"].splitlines()[1] == (
        "mlx5_1 1 state=DOWN physical=Polling rate=10 width=4X layer=InfiniBand model=MT4129"
        " board=MT_0000000838 firmware=28.39.1002 symbol_error=0 link_downed=0 port_rcv_errors=0"
        " port_rcv_data=0"
    )


UP = "mlx5_0 1 state=ACTIVE physical=LinkUp rate=400 width=4X layer=InfiniBand model=MT4129"
UP += " board=B firmware=28.39"
LINES = {
    "up": UP,
    "slow": UP.replace("400", "200"),
    "old": UP.replace("28.39", "28.36"),
    "down": UP.replace("ACTIVE", "DOWN").replace("LinkUp", "Polling").replace("400", "10"),
    "other card": UP.replace("400", "100").replace("MT4129", "MT4123").replace("28.39", "20.1"),
    "one of two": UP.replace("ACTIVE", "DOWN").replace("LinkUp", "Polling")
    + "\n"
    + UP.replace("mlx5_0", "mlx5_1"),
    "slow of two": UP.replace("400", "200") + "\n" + UP.replace("mlx5_0", "mlx5_1"),
}


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["up", "up", "up"], []),
        (["up", "up", "other card"], []),
        (["up", "slow"], []),  # which of the two is right?
        (["up", "old"], []),
        (["up", "up", "down"], []),  # it has said so itself
        (["up", "up", "slow of two"], []),
        (["up", "up", "slow"], ["node2 warn differs: mlx5_0 runs at 200 Gb/s, and at 400 on 2 of 3"
          " nodes"]),
        (["up", "up", "one of two"], ["node2 warn differs: mlx5_0 finds nothing at the other end"
          " (Polling), and is active on 2 of 3 nodes"]),
        (["up", "old", "up"], ["node1 warn firmware: adapters MT4129 have firmware 28.36, and 28.39"
          " on 2 of 3 nodes"]),
    ],
)  # fmt: skip
def test_comparing(kinds: list[str], found: list[str]) -> None:
    nodes = {
        f"node{number}": {"source": "sys", "uptime": "1000.0", "ports": LINES[kind]}
        for number, kind in enumerate(kinds)
    }
    assert compared(nodes) == found


def test_comparing_leaves_out_what_is_wanted_of_the_node_itself() -> None:
    kinds = ["up", "up", "slow", "one of two"]
    nodes = {kind + str(n): {"source": "sys", "ports": LINES[kind]} for n, kind in enumerate(kinds)}
    assert compared(nodes, ports=1, rate=100) == []
