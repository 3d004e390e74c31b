"""Real SELinux and clocks: guests with a kernel of their own."""

from collections.abc import Iterator

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.guests import Guest, boot, why_no_guests
from tests.lab.reports import bad, checked
from tests.lab.spec import Spec, healthy

# Kernels boot on whatever cores there are.
pytestmark = pytest.mark.timeout(400)

GUESTS = [
    Guest(Spec("enforcing"), selinux="enforcing"),
    Guest(Spec("permissive"), selinux="permissive"),
]
NODES = healthy(2)


@pytest.fixture(scope="module")
def guests(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes, and SELinux in two modes."""
    if why := why_no_guests():
        pytest.skip(why)
    specs = [guest.spec for guest in GUESTS]
    made = Lab(tmp_path_factory.mktemp("guests"), keys, NODES, guests=specs)
    try:
        boot(made, GUESTS)
        yield made
    finally:
        made.close()


def test_selinux(guests: Lab) -> None:
    names = ["node01", "enforcing", "permissive"]
    report = checked(guests, names, "-c", "selinux")
    assert bad(report) == {"enforcing": ["fail selinux.mode §4.1.5"]}
    wanted = ["-c", "selinux", "-o", "selinux.allow=enforcing"]
    report = checked(guests, ["enforcing", "permissive"], *wanted)
    assert bad(report) == {"permissive": ["fail selinux.mode §4.1.5"]}


def test_selinux_changes_at_the_next_boot(guests: Lab) -> None:
    config = "/etc/selinux/config"
    guests.login("permissive", f"sed -i s/^SELINUX=.*/SELINUX=enforcing/ {config}")
    try:
        report = checked(guests, ["permissive", "node01"], "-c", "selinux")
    finally:
        guests.login("permissive", f"sed -i s/^SELINUX=.*/SELINUX=permissive/ {config}")
    assert bad(report) == {"permissive": ["warn selinux.boot §4.1.5"]}


def test_a_clock_that_is_an_hour_ahead(guests: Lab) -> None:
    guests.login("permissive", "date -s '1 hour' >/dev/null")
    try:
        report = checked(guests, ["node01", "node02", "permissive"], "-c", "ntp")
    finally:
        guests.login("permissive", "date -s '1 hour ago' >/dev/null")
    assert bad(report) == {
        "permissive": [
            "fail ntp.no_daemon §4.1.1",
            "fail ntp.offset §4.1.1",
        ]
    }
    assert "ahead of the reference" in report.bad("permissive")[1].message
