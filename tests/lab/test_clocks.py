"""Clocks that are wrong although their daemons say that all is well: guests, which set theirs."""

from collections.abc import Iterator

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.guests import Guest, boot, why_no_guests
from tests.lab.reports import Report, checked
from tests.lab.spec import FOLLOWS, LATER, SERVICES, Spec, address, chrony_conf, healthy

# Kernels boot on whatever cores there are.
pytestmark = pytest.mark.timeout(400)

# Without systemd as process 1: it wants a bus and a user of its own, as in its unit.
TIMESYNCD = r"""
mkdir -p /run/dbus /run/systemd/system /var/lib/systemd
for user in messagebus systemd-timesync; do
    grep -q "^$user:" /etc/passwd || echo "$user:x:990:990::/:/usr/sbin/nologin" >>/etc/passwd
done
install -d -o systemd-timesync /run/systemd/timesync
rm -rf /var/lib/systemd/timesync
dbus-daemon --system --fork
/usr/lib/systemd/systemd-timesyncd 2>/run/timesyncd.log &
until timedatectl timesync-status 2>/dev/null | grep -q 'Packet count: [1-9]'; do sleep 0.2; done
"""


def chronyd(name: str, server: int) -> Guest:
    """A guest whose chronyd sets its clock by the server."""
    config = chrony_conf([f"server {address(server)}"], "makestep 0.1 -1")
    files = {"etc/chrony/chrony.conf": config}
    return Guest(Spec(name, before=f"chronyd\n{FOLLOWS}", files=files), memory=192)


def timesyncd(name: str, server: int) -> Guest:
    """The same by systemd-timesyncd."""
    files = {"etc/systemd/timesyncd.conf": f"[Time]\nNTP={address(server)}\n"}
    return Guest(Spec(name, before=TIMESYNCD, files=files), memory=192)


GUESTS = [
    chronyd("chrony-3", LATER),
    timesyncd("timesyncd", SERVICES),
    timesyncd("timesyncd-3", LATER),
]
LONG = ["-c", "ntp", "--timeout", "90"]  # a guest is slow where many other things run
NAMES = ["node01", "node02", *(guest.spec.name for guest in GUESTS)]


@pytest.fixture(scope="module")
def clocks(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes, and guests with clocks of their own: one in step, two that are 3 s ahead."""
    if why := why_no_guests():
        pytest.skip(why)
    made = Lab(tmp_path_factory.mktemp("clocks"), keys, healthy(2), guests=[g.spec for g in GUESTS])
    try:
        boot(made, GUESTS)
        yield made
    finally:
        made.close()


def found_bad(report: Report) -> dict[str, list[str]]:
    """By node; a machine that is too busy to measure finely is no fault of a node's."""
    found = {
        node: [found.brief for found in report.bad(node) if found.code != "ntp.coarse"]
        for node in report.nodes
    }
    return {node: briefs for node, briefs in found.items() if briefs}


def test_daemons_that_follow_a_wrong_server_and_say_that_they_are_in_step(clocks: Lab) -> None:
    report = checked(clocks, NAMES, *LONG)
    wrong = ["fail ntp.daemon_wrong §4.1.1"]
    assert found_bad(report) == {"chrony-3": wrong, "timesyncd-3": wrong}
    for name, daemon in (("chrony-3", "chronyd"), ("timesyncd-3", "systemd-timesyncd")):
        (found,) = report.bad(name)
        assert found.message.startswith(("the clock is 3.", "the clock is 2.9")), found
        assert f"ahead of the reference {address(SERVICES)}" in found.message
        assert f"yet {daemon} says that it is " in found.message
        assert found.message.endswith(address(LATER))


def test_timesyncd_in_step(clocks: Lab) -> None:
    report = checked(clocks, ["node01", "timesyncd"], *LONG)
    assert found_bad(report) == {}
    said = [found.message for found in report.findings("timesyncd", "ntp")]
    assert said[0].startswith(f"systemd-timesyncd follows {address(SERVICES)} (stratum 3)")


def test_without_a_reference_the_other_nodes_tell_whose_clock_is_wrong(clocks: Lab) -> None:
    report = checked(clocks, NAMES, *LONG, "-o", "ntp.reference=")
    both = ["fail ntp.daemon_wrong §4.1.1", "warn ntp.spread §4.1.1"]
    assert found_bad(report) == {"chrony-3": both, "timesyncd-3": both}
    for name in ("chrony-3", "timesyncd-3"):
        wrong, spread = report.bad(name)
        assert "either may be wrong" in wrong.message
        assert "ahead of the median of 5 nodes, should be within 1 s" in spread.message
