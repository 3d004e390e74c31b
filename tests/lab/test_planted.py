"""Each fault is found where it is, with its remedy, and nothing is said of the other nodes."""

from collections.abc import Callable

import pytest

from tests.lab.cluster import Lab
from tests.lab.planted import (
    ACCESS,
    HEALTHY,
    LOGIN,
    MTU,
    NAMES,
    RACK,
    SHARED,
    SOUND,
    TIME,
    TMP,
    Planted,
)
from tests.lab.reports import Report, checked

# What is tried together: the faults, and how they are looked for. The limits are the shortest that
# do: a healthy node is done in a second.
RUNS: dict[str, tuple[list[Planted], list[str]]] = {
    "access": (ACCESS, ["-c", "selinux", "--connect-timeout", "5", "--timeout", "25"]),
    "ntp": (TIME, ["-c", "ntp"]),
    "tmp": (TMP, ["-c", "tmp,mounts"]),
    "dns": (NAMES, ["-c", "dns"]),
    "mtu": (MTU, ["-c", "mtu"]),
    "login": (LOGIN, []),  # all checks: what a login prints disturbs none of them
}

FAULTS = [(run, fault) for run, (faults, _) in RUNS.items() for fault in faults]


@pytest.fixture(scope="session")
def report(lab: Lab) -> Callable[[str], Report]:
    """The report of one of RUNS, each of which is made once."""
    made: dict[str, Report] = {}

    def of(run: str) -> Report:
        if run not in made:
            faults, words = RUNS[run]
            names = [spec.name for spec in HEALTHY] + [fault.spec.name for fault in faults]
            made[run] = checked(lab, names, *words)
        return made[run]

    return of


@pytest.mark.parametrize(
    ("run", "fault"), FAULTS, ids=[f"{run}-{fault.spec.name}" for run, fault in FAULTS]
)
def test_found(run: str, fault: Planted, report: Callable[[str], Report]) -> None:
    found = report(run).bad(fault.spec.name)
    assert [finding.brief for finding in found] == list(fault.finds), found
    assert all(finding.code.startswith(f"{fault.check}.") for finding in found)
    assert fault.says in found[0].message


@pytest.mark.parametrize("run", RUNS)
def test_nobody_else_is_blamed(run: str, report: Callable[[str], Report]) -> None:
    assert report(run).blamed() == {fault.spec.name for fault in RUNS[run][0]}


def test_one_dead_name_server_is_one_finding(report: Callable[[str], Report]) -> None:
    """Not one for each node that asks it."""
    groups = [group for group in report("dns").data["groups"] if group["node"] in SHARED]
    assert [(group["code"], group["nodes"]) for group in groups] == [("dns.dead_server", SHARED)]


def test_odd_and_sound(lab: Lab) -> None:
    names = [spec.name for spec in [*HEALTHY, *SOUND]]
    # That `behind` cannot be reached is the next test.
    report = checked(lab, names, "--skip", "reach")
    assert {name: report.bad(name) for name in names} == {name: [] for name in names}
    assert report.status == 0


def test_a_node_that_takes_logins_from_one_place_only(lab: Lab) -> None:
    names = [*(spec.name for spec in HEALTHY), "behind"]
    report = checked(lab, names, "-c", "reach")
    assert [found.brief for found in report.bad("behind")] == ["warn reach.unreached"]
    assert report.blamed() == {"behind"}


def test_a_small_trunk_between_two_racks_is_no_nodes_fault(lab: Lab) -> None:
    names = ["node01", "node02", *RACK]
    report = checked(lab, names, "-c", "mtu")
    (group,) = report.data["groups"]
    assert (group["code"], sorted(group["nodes"])) == ("mtu.side", sorted(names))
    assert group["message"].startswith(
        "packets of 9000 bytes pass within two groups of nodes (mtu-rack, mtu-rack2; node01,"
        " node02) and not between them"
    )


def test_one_node_behind_a_small_trunk_may_be_at_fault_itself(lab: Lab) -> None:
    """From outside, its own port and its rack's uplink look the same."""
    report = checked(lab, ["node01", "node02", "node03", "mtu-rack"], "-c", "mtu")
    assert report.blamed() == {"mtu-rack"}
    (found,) = report.bad("mtu-rack")
    assert found.brief == "fail mtu.side §5.3"
    assert found.message.endswith(
        "its own switch port, cable or interface is at fault, or the uplink of a switch that no"
        " other node tried shares"
    )


def test_vanished_over_ipv6(lab: Lab) -> None:
    names = [*(spec.name for spec in HEALTHY), "mtu-port", "mtu-own"]
    report = checked(lab, names, "-c", "mtu", "-o", "mtu.names={node}-data6")
    briefs = {name: [found.brief for found in report.bad(name)] for name in report.blamed()}
    assert briefs == dict.fromkeys(["mtu-port", "mtu-own"], ["fail mtu.side §5.3"])
