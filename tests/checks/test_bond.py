"""The check bond, on what kernels really said of bonds."""

import dataclasses
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS

CHECK = CHECKS["bond"]
DATA = Path(__file__).parent.parent / "data" / "bond"
UP = "pass members: bond1 (802.3ad) has 2 of 2 members up"


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    return MadeUpNode(tmp_path)


def put(made: MadeUpNode, recorded: str, who: str = "root") -> None:
    """The files of a recorded node, as `who` may read them."""
    text = (DATA / "kernel-6.1" / f"{recorded}.txt").read_text()
    for part in text.removeprefix("@").split("\n@"):
        head, _, content = part.partition("\n")
        whose, path = head.split()
        if whose in (who, "any"):
            made.file(path, content + "\n")


def told(text: str) -> dict[str, str]:
    """The facts of a node whose bond1 has this file, without /sys."""
    return {"bonds": f"@bond bond1 up read\n{text}"}


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (
            "lacp-good",
            [UP, "pass partner: bond1 has an LACP partner on every member that is up"],
        ),
        (
            "lacp-member-down",
            [
                "warn members: bond1 (802.3ad) has 1 of 2 members up; ens1f1 is down (failed 3"
                " times)",
                "pass partner: bond1 has an LACP partner on every member that is up",
            ],
        ),
        (
            "lacp-no-partner",
            [
                UP,
                "fail partner: bond1 has no LACP partner: the switch ports are in no channel"
                " group, and one of 2 members carries all traffic",
            ],
        ),
        (
            "active-backup-old",
            [
                "warn members: bond1 (active-backup) has 1 of 2 members up; eth3 is down (failed 2"
                " times)",
                "warn speed: bond1 uses eth2 at 100 Mb/s, should be 1000 as of its other members",
            ],
        ),
    ],
)
def test_samples(made: MadeUpNode, sample: str, found: list[str]) -> None:
    made.file("/proc/net/bonding/bond1", (DATA / "samples" / f"{sample}.txt").read_text())
    assert judged("bond", made.probe("bond")) == found


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (
            "lacp-good",
            [UP, "pass partner: bond1 has an LACP partner on every member that is up"],
        ),
        (
            "lacp-member-down",
            [
                "warn members: bond1 (802.3ad) has 1 of 2 members up; m1 is down (failed once)",
                "pass partner: bond1 has an LACP partner on every member that is up",
            ],
        ),
        (
            "lacp-two-switches",
            [
                UP,
                "warn partner: bond1 has members that carry nothing: m1 is in aggregator 2, and 1"
                " is the active one",
            ],
        ),
        (
            "lacp-one-port-plain",
            [
                UP,
                "warn partner: bond1 has members that carry nothing: m1 gets no answer from the"
                " switch",
            ],
        ),
        *(
            (
                no_partner,
                [
                    UP,
                    "fail partner: bond1 has no LACP partner: the switch ports are in no channel"
                    " group, and one of 2 members carries all traffic",
                ],
            )
            for no_partner in ("lacp-no-partner", "lacp-no-partner-after-a-minute")
        ),
        (
            "lacp-all-down",
            [
                "fail members: bond1 is down: 0 of 2 members up; m0 is down (failed once), m1 is"
                " down (failed 3 times)",
            ],
        ),
        ("active-good", ["pass members: bond1 (active-backup) has 2 of 2 members up"]),
        (
            "active-backup-lost",
            [
                "warn members: bond1 (active-backup) has 1 of 2 members up; m0 is down (failed"
                " once)",
            ],
        ),
        (
            "active-none",
            [
                "fail members: bond1 is down: 0 of 2 members up; m0 is down (failed once), m1 is"
                " down (failed once)",
            ],
        ),
        (
            "rr-no-miimon",
            [
                "pass members: bond1 (balance-rr) has 2 of 2 members up",
                "warn watch: bond1 does not watch its members (miimon 0), should every 100 ms",
            ],
        ),
        (
            "rr-no-miimon-down",
            [
                "fail members: bond1 still sends by m0, which has no carrier: it does not watch its"
                " members (miimon 0), should every 100 ms",
            ],
        ),
        (
            "rr-arp",
            [
                "fail members: bond1 is down: 0 of 2 members up; m0 is down (failed once), m1 is"
                " down (failed once)",
            ],
        ),
        (
            "rr-one-left",
            ["fail members: bond1 is down: 0 of 1 members up; m0 is down (failed once)"],
        ),
        ("empty", ["skip members: bond0 has no members and is off"]),
    ],
)
def test_what_linux_says_to_root_and_to_others(
    made: MadeUpNode, recorded: str, who: str, found: list[str]
) -> None:
    put(made, recorded, who)
    assert judged("bond", made.probe("bond")) == found


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_tells_the_same(made: MadeUpNode, shell: str) -> None:
    put(made, "lacp-two-switches", "user")
    facts = made.probe("bond", shell=shell)
    assert facts == made.probe("bond")
    assert judged("bond", facts)[1].startswith("warn partner: bond1 has members that carry nothing")


def test_old_kernels_tell_others_less(made: MadeUpNode) -> None:
    """Without bonding_slave below /sys, equal aggregators are all that speaks of a partner."""
    put(made, "lacp-good", "user")
    for member in ("m0", "m1"):
        for file in (made.root / f"sys/class/net/{member}/bonding_slave").iterdir():
            file.unlink()
    facts = made.probe("bond")
    assert judged("bond", facts) == [UP, "pass partner: bond1 has all in aggregator 1"]
    alone = facts["bonds"].split("Slave Interface: m1")[0]
    assert judged("bond", {"bonds": alone}) == [
        "pass members: bond1 (802.3ad) has 1 of 1 members up",
        "unknown partner: whether bond1 has an LACP partner is told to root only",
    ]


@pytest.mark.parametrize(
    ("actor", "partner", "found"),
    [
        (61, 61, "pass partner: bond1 has an LACP partner on every member that is up"),
        (63, 61, "pass partner: bond1 has an LACP partner on every member that is up"),
        (
            15,
            7,
            "warn partner: bond1 has members that carry nothing: m1 has LACP states 15 here and 7"
            " at the switch, should be 61 or 63",
        ),
        (
            63,
            31,
            "warn partner: bond1 has members that carry nothing: m1 has LACP states 63 here and 31"
            " at the switch, should be 61 or 63",
        ),
    ],
)
def test_lacp_states(made: MadeUpNode, actor: int, partner: int, found: str) -> None:
    put(made, "lacp-good", "user")
    states = "/sys/class/net/m1/bonding_slave/ad_"
    made.file(f"{states}actor_oper_port_state", f"{actor}\n")
    made.file(f"{states}partner_oper_port_state", f"{partner}\n")
    assert judged("bond", made.probe("bond"))[1] == found


def test_a_second_switch_that_is_a_spare(made: MadeUpNode) -> None:
    put(made, "lacp-two-switches", "user")
    assert judged("bond", made.probe("bond"), spare=True) == [
        UP,
        "pass partner: bond1 has an LACP partner on every member that is up",
    ]
    put(made, "lacp-one-port-plain", "user")  # one without LACP is none
    assert judged("bond", made.probe("bond"), spare=True)[1].startswith("warn partner: ")


def test_a_bond_of_infiniband(made: MadeUpNode) -> None:
    put(made, "active-good")
    text = (made.root / "proc/net/bonding/bond1").read_text()
    mode = "(active-backup)"
    made.file("/proc/net/bonding/bond1", text.replace(mode, f"{mode} (fail_over_mac active)"))
    assert judged("bond", made.probe("bond")) == [
        "pass members: bond1 (active-backup) has 2 of 2 members up"
    ]


def test_a_slow_member(made: MadeUpNode) -> None:
    text = (DATA / "samples" / "lacp-good.txt").read_text()
    before, after = text.split("Slave Interface: ens1f1")
    slow = f"{before}Slave Interface: ens1f1{after.replace('100000 Mbps', '25000 Mbps')}"
    assert judged("bond", told(slow))[2:] == [
        "warn speed: bond1 uses ens1f1 at 25000 Mb/s, should be 100000 as of its other members"
    ]
    unknown = slow.replace("25000 Mbps", "Unknown")
    assert [line[:4] for line in judged("bond", told(unknown))] == ["pass", "pass"]


def test_a_slow_spare_is_well(made: MadeUpNode) -> None:
    put(made, "active-good")
    text = (made.root / "proc/net/bonding/bond1").read_text()
    before, after = text.split("Slave Interface: m1")
    made.file(
        "/proc/net/bonding/bond1",
        f"{before}Slave Interface: m1{after.replace('10000 Mbps', '1000 Mbps')}",
    )
    good = "pass members: bond1 (active-backup) has 2 of 2 members up"
    assert judged("bond", made.probe("bond")) == [good]
    made.file("/proc/net/bonding/bond1", text.replace("10000 Mbps", "1000 Mbps", 1))
    assert judged("bond", made.probe("bond")) == [
        good,
        "warn speed: bond1 uses m0 at 1000 Mb/s, should be 10000 as of its other members",
    ]


def test_no_bond_is_no_finding_but_where_one_is_wanted(made: MadeUpNode) -> None:
    facts = made.probe("bond")
    assert judged("bond", facts) == ["skip members: none is set up"]
    assert judged("bond", facts, bonds=("bond0",)) == [
        "fail missing: there is no bond0, should be one"
    ]


def test_wanted_bonds_and_members(made: MadeUpNode) -> None:
    put(made, "active-good")
    facts = made.probe("bond")
    good = "pass members: bond1 (active-backup) has 2 of 2 members up"
    assert judged("bond", facts, bonds=("bond*",), members=2) == [good]
    assert judged("bond", facts, bonds=("bond1", "bond2"), members=4) == [
        "fail missing: there is no bond2, should be one",
        "warn members: bond1 has 2 members, should have 4",
    ]


def test_one_without_members_that_is_wanted_or_on(made: MadeUpNode) -> None:
    put(made, "empty")
    found = ["warn members: bond0 has no members"]
    assert judged("bond", made.probe("bond"), bonds=("bond0",)) == found
    made.file("/sys/class/net/bond0/flags", "0x1403\n")
    assert judged("bond", made.probe("bond")) == found


def test_one_that_came_with_the_module_is_not_spoken_of_beside_another(made: MadeUpNode) -> None:
    put(made, "empty")
    put(made, "active-good")
    assert judged("bond", made.probe("bond")) == [
        "pass members: bond1 (active-backup) has 2 of 2 members up"
    ]


def test_one_that_cannot_be_read_is_not_known(made: MadeUpNode) -> None:
    put(made, "active-good")
    (made.root / "proc/net/bonding/bond1").unlink()
    assert judged("bond", made.probe("bond")) == [
        "unknown members: /proc/net/bonding/bond1 cannot be read"
    ]
    assert judged("bond", told("")) == ["unknown members: what is told of bond1 cannot be read"]


def test_a_member_that_is_missing_on_one_node(made: MadeUpNode) -> None:
    assert CHECK.compare
    put(made, "active-good")
    whole = Facts(made.probe("bond"))
    less = Facts(bonds=whole["bonds"].split("Slave Interface: m1")[0])
    nodes = {"node01": whole, "node02": less, "node03": whole}
    options = dict.fromkeys(nodes, options_of("bond"))
    found = [
        (node, f"{f.status.value} {f.code}: {f.message}")
        for node, f in CHECK.compare(nodes, options)
    ]
    assert found == [
        ("node02", "warn differs: bond1 has 1 of the 2 members that it has on 2 of 3 nodes"),
    ]
    options["node02"] = dataclasses.replace(options["node02"], members=1)
    assert list(CHECK.compare(nodes, options)) == []


def test_case_the_mtu_of_a_member_is_no_finding_here(made: MadeUpNode) -> None:
    """Both members are up; that one was left at MTU 1500 is what the check mtu says."""
    put(made, "lacp-good")
    made.file("/sys/class/net/m0/mtu", "1500\n")
    made.file("/sys/class/net/m1/mtu", "9000\n")
    for name in ("eno1", "eno2"):
        made.file(f"/sys/class/net/{name}/carrier", "0\n")
        made.file(f"/sys/class/net/{name}/operstate", "down\n")
    found = judged("bond", made.probe("bond"))
    assert [line.split()[0] for line in found] == ["pass", "pass"]
    assert "eno" not in " ".join(found)
