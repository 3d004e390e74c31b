"""The check ntp on nodes that other tools judged wrongly."""

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, judged, options_of
from tests.ntp_facts import NOBODY, POLICY, clock, recorded


def test_case_hours_off_by_the_system_time_line_whatever_the_last_offset() -> None:
    told = {**NOBODY, "chrony.tracking": recorded("case-chrony-hours-off")}
    assert judged("ntp", told, **POLICY) == [
        "fail daemon_offset: chronyd says that the clock is 16042.5 s ahead of ntp1.example.net, "
        "should be within 0.1 s"
    ]


def test_case_another_daemon_than_the_one_that_systemd_asks_about() -> None:
    told = {
        **NOBODY,
        "timedatectl": recorded("case-timedatectl-service-na"),
        "chrony.tracking": recorded("case-chrony-under-service-na"),
    }
    assert judged("ntp", told, **POLICY) == [
        "pass synchronised: chronyd follows 192.0.2.1 (stratum 3), 0.000012 s behind it, "
        "good to 0.000341 s"
    ]


def test_case_a_container_whose_host_keeps_the_clock() -> None:
    told = {**NOBODY, "timedatectl": recorded("case-timedatectl-container"), "container": "/x"}
    assert judged("ntp", told, **POLICY) == [
        "pass host_keeps: the kernel says that the clock is synchronised; the container's host "
        "keeps it so"
    ]
    assert judged("ntp", told, require_daemon=True)[0].startswith("warn unkept:")


def test_case_milliseconds_and_a_peer_of_two_lines() -> None:
    assert judged("ntp", {**NOBODY, "ntpq": recorded("case-ntpq-wrapped")}, **POLICY) == [
        "pass synchronised: ntpd follows 2001:db8:aaaa:bbbb:cccc:dddd:eeee:1, 0.000412 s ahead "
        "of it",
        "warn silent: 1 of 3 sources does not answer: 192.0.2.3",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "offset=0.000, stratum=16, leap=11",
            "fail not_synchronised: ntpd is not synchronised (leap=11, stratum=16)",
        ),
        (
            "offset=nan, stratum=3, leap=00",
            "unknown garbled: the time daemon's answer cannot be read: ntpq's offset is 'nan', "
            "which is no number",
        ),
        (
            "offset=0.000, stratum=2, leap=00",
            "pass synchronised: ntpd follows an unnamed source (stratum 2), 0.000000 s ahead of it",
        ),
    ],
)
def test_case_zero_is_an_offset_only_of_a_synchronised_clock(said: str, expected: str) -> None:
    assert judged("ntp", {**NOBODY, "ntpq": said}, **POLICY) == [expected]


def test_case_one_node_differs_though_all_are_synchronised() -> None:
    # seconds after 1760411564 by each node; calls of 20 to 40 ms, started together
    times = {"node01": 0.1002, "node02": 0.1311, "node03": 3.1409, "node04": 0.1770}
    compare = CHECKS["ntp"].compare
    assert compare
    told = {name: Facts(clock(seconds, 0.02)) for name, seconds in times.items()}
    found = list(compare(told, dict.fromkeys(told, options_of("ntp"))))
    assert [(name, f.status.value, f.code, f.message) for name, f in found] == [
        (
            "node03",
            "warn",
            "spread",
            "the clock is 2.987 s (± 0.040 s) ahead of the median of 4 nodes, should be within "
            "1 s; Slurm's job credentials break at 120 s, Munge and Kerberos at 300 s",
        )
    ]


def test_case_a_banner_around_the_answer() -> None:
    told = {**NOBODY, "chrony.tracking": recorded("case-chrony-under-banner")}
    assert judged("ntp", told, **POLICY) == [
        "pass synchronised: chronyd follows 192.0.2.1 (stratum 3), 0.000000 s behind it, "
        "good to 0.000437 s"
    ]
