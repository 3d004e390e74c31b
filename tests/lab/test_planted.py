"""Each fault is found where it is, with its remedy, and nothing is said of the other nodes."""

from collections.abc import Callable

import pytest

from tests.lab.cluster import Lab
from tests.lab.planted import (
    ACCESS,
    HEALTHY,
    MTU,
    NAMES,
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
    "tmp": (TMP, ["-c", "tmp"]),
    "dns": (NAMES, ["-c", "dns"]),
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


def test_odd_and_sound(lab: Lab) -> None:
    names = [spec.name for spec in [*HEALTHY, *SOUND]]
    report = checked(lab, names)
    assert {name: report.bad(name) for name in names} == {name: [] for name in names}
    assert report.status == 0


@pytest.mark.parametrize("fault", MTU, ids=[fault.spec.name for fault in MTU])
def test_packets_that_vanish(lab: Lab, fault: Planted) -> None:
    """The node at fault is named; of the others, no more than their path to it."""
    name = fault.spec.name
    report = checked(lab, [*(spec.name for spec in HEALTHY), name], "-c", "mtu")
    assert fault.finds[0] in [found.brief for found in report.bad(name)]
    for spec in HEALTHY:
        for found in report.bad(spec.name):
            assert (found.brief, found.peer) == ("warn mtu.hole §5.3", name)
