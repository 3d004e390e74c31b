"""The check ntp: what the clock is by measurement, and how nodes differ."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, judged, options_of
from tests.ntp_facts import (
    FOLLOWS,
    GOOD,
    NO_REFERENCE,
    NOBODY,
    TIMESYNCD,
    clock,
    here,
    recorded,
    with_tracking,
)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (
            {**clock(0.002, 0.001), **here(-0.001, 0.0005)},
            "pass offset: the clock is 0.001 s (± 0.002 s) ahead of the reference 10.20.0.1",
        ),
        (
            {**clock(0.4, 0.001), **here(0.3, 0.001)},
            "warn daemon_wrong: the clock is 0.700 s (± 0.002 s) ahead of the reference "
            "10.20.0.1, should be within 0.5 s, yet chronyd says that it is 0.000034 s behind "
            "10.20.0.11",
        ),
        (
            {**clock(-3.0, 0.02), **here(0.0, 0.001)},
            "fail daemon_wrong: the clock is 3.000 s (± 0.021 s) behind the reference 10.20.0.1, "
            "should be within 1 s, yet chronyd says that it is 0.000034 s behind 10.20.0.11",
        ),
        (  # the node is right, and this machine is not
            {**clock(-3.0, 0.01), **here(3.0, 0.001)},
            "pass offset: the clock is 0.000000 s (± 0.011 s) ahead of the reference 10.20.0.1 "
            "(this machine itself is 3.000 s ahead of it)",
        ),
        (
            {**clock(0.01, 0.02), **NO_REFERENCE},
            "pass offset: the clock is 0.010 s (± 0.020 s) ahead of this machine's clock "
            "(no reference is set, and this machine itself follows none)",
        ),
        (  # beyond the upper limit with only a part of its uncertainty
            {**clock(1.1, 0.2), **here(0.0, 0.0)},
            "warn daemon_wrong: the clock is 1.100 s (± 0.200 s) ahead of the reference 10.20.0.1, "
            "should be within 0.5 s, yet chronyd says that it is 0.000034 s behind 10.20.0.11",
        ),
        (
            {**clock(0.45, 0.1), **here(0.0, 0.0)},
            "unknown coarse: the clock is 0.450 s (± 0.100 s) ahead of the reference 10.20.0.1: "
            "not fine enough to tell whether it is within 0.5 s",
        ),
        (
            {**clock(0.0, 0.6), **here(0.0, 0.0)},
            "unknown coarse: the clock is 0.000000 s (± 0.600 s) ahead of the reference "
            "10.20.0.1: too coarse to tell whether it is within 0.5 s",
        ),
    ],
)
def test_the_clock_by_measurement(measured: dict[str, str], expected: str) -> None:
    assert judged("ntp", {**GOOD, **measured}) == [FOLLOWS, expected]


def test_without_a_reference_it_is_not_known_which_clock_is_wrong() -> None:
    told = {**GOOD, **clock(3.0, 0.02), **NO_REFERENCE}
    assert judged("ntp", told) == [
        FOLLOWS,
        "fail daemon_wrong: the clock is 3.000 s (± 0.020 s) ahead of this machine's clock (no "
        "reference is set, and this machine itself follows none), should be within 1 s; either may "
        "be wrong, yet chronyd says that it is 0.000034 s behind 10.20.0.11",
    ]


def test_an_offset_that_the_daemon_admits_is_one_finding() -> None:
    told = {**with_tracking(c4="3.0"), **clock(-3.01, 0.02), **here(0.0, 0.001)}
    assert judged("ntp", told) == [
        "fail daemon_offset: chronyd says that the clock is 3.000 s behind 10.20.0.11, should be "
        "within 1 s"
    ]


def test_a_clock_that_is_right_though_its_server_is_not() -> None:
    told = {**with_tracking(c4="3.0"), **clock(0.01, 0.02), **here(0.0, 0.001)}
    daemon = "fail daemon_offset: chronyd says that the clock is 3.000 s behind 10.20.0.11, should "
    assert judged("ntp", told) == [
        f"{daemon}be within 1 s; it is within 0.5 s of the reference 10.20.0.1, so 10.20.0.11 is "
        "wrong",
        "pass offset: the clock is 0.010 s (± 0.021 s) ahead of the reference 10.20.0.1",
    ]
    unsure = judged("ntp", {**told, **clock(0.3, 0.4)})
    assert unsure[0] == f"{daemon}be within 1 s"
    alone = {**with_tracking(c4="3.0"), **NO_REFERENCE, **clock(0.01, 0.02)}
    assert judged("ntp", alone)[0] == f"{daemon}be within 1 s"


def test_a_daemon_that_admits_too_little_does_not_hide_the_measurement() -> None:
    told = {**with_tracking(c4="0.7"), **clock(-25.0, 0.02), **here(0.0, 0.001)}
    assert [line.split(":")[0] for line in judged("ntp", told)] == [
        "warn daemon_offset",
        "fail daemon_wrong",
    ]


def test_timesyncd_shows_what_it_has_corrected_since() -> None:
    status = recorded("timedatectl-timesync-status-synced").replace("+129us", "+3.2s")
    told = {**TIMESYNCD, "timesyncd": status}
    assert judged("ntp", told)[0].startswith("fail daemon_offset:")
    agrees = judged("ntp", {**told, **clock(0.01, 0.02)})
    assert agrees[0] == (
        "warn daemon_offset: systemd-timesyncd found the clock 3.200 s behind 10.20.0.11 at its "
        "last answer, should be within 0.5 s; whether it has set it since is not told"
    )
    assert [line.split(":")[0] for line in agrees] == ["warn daemon_offset", "pass offset"]
    known = judged("ntp", {**told, **clock(0.01, 0.02), **here(0.0, 0.001)})
    assert [line.split(":")[0] for line in known] == ["pass synchronised", "pass offset"]
    assert [line.split(":")[0] for line in judged("ntp", {**told, **clock(-3.2, 0.02)})] == [
        "pass synchronised",
        "fail offset",
    ]


def test_this_machine_against_itself_tells_nothing() -> None:
    assert judged("ntp", {**GOOD, **clock(0.0, 0.0), **NO_REFERENCE}) == [FOLLOWS]


def test_this_machine_against_the_reference() -> None:
    told = {**NOBODY, **clock(0.0, 0.0), **here(-3.0, 0.001)}
    assert judged("ntp", told)[1] == (
        "fail offset: the clock is 3.000 s (± 0.001 s) behind the reference 10.20.0.1, should "
        "be within 1 s"
    )


def test_a_reference_that_was_asked_for_and_is_silent_is_not_passed_over() -> None:
    told = {**GOOD, **clock(0.0, 0.01), "here.error": "10.20.0.1 gave no answer"}
    found = judged("ntp", told, reference=("10.20.0.1",))
    assert found[1] == "unknown no_reference: the reference tells no time: 10.20.0.1 gave no answer"


def test_numbers_that_are_none_are_no_pass() -> None:
    found = judged("ntp", {**GOOD, "clock.offset": "nan", "clock.uncertainty": "0.1"})
    assert found[0].startswith("unknown crashed:")


def test_a_silent_probe_is_no_pass() -> None:
    assert judged("ntp", {}) == ["unknown not_answered: the probe did not report 'running'"]


def spread(
    offsets: list[float],
    uncertainty: float = 0.01,
    reference: Mapping[str, str] | None = None,
    **changed: Any,
) -> list[str]:
    compare = CHECKS["ntp"].compare
    assert compare
    told = {
        f"node{n}": Facts({**clock(offset, uncertainty), **(reference or {})})
        for n, offset in enumerate(offsets, 1)
    }
    told["silent"] = Facts(NOBODY)
    found = compare(told, dict.fromkeys(told, options_of("ntp", **changed)))
    return [f"{name} {f.status.value}: {f.message.split(',')[0]}" for name, f in found]


def test_the_spread_is_from_the_median_not_from_this_machine() -> None:
    assert spread([100.0, 100.2, 100.1]) == []
    assert spread([100.0, 100.2, 30.0]) == [
        "node3 fail: the clock is 70.000 s (± 0.020 s) behind the median of 3 nodes"
    ]
    assert spread([100.0, 100.2, 98.0], uncertainty=1.0) == []
    assert spread([5.0]) == []


def test_what_the_reference_says_already_is_not_said_again() -> None:
    sure = here(0.0, 0.01)
    assert spread([0.0, 0.2, 3.0], reference=sure) == []
    assert spread([0.0, 3.0], reference=sure) == [], "and of two, the right one is cleared"
    behind = "node3 warn: the clock is 3.000 s (± 0.020 s) ahead of the median of 3 nodes"
    assert spread([0.0, 0.0, 3.0], reference=sure, warn_offset=9.0, fail_offset=9.0) == [behind]
    failing = spread([0.0, 0.0, 70.0], reference=sure, fail_offset=100.0)
    assert [text[:10] for text in failing] == ["node3 fail"], "a graver word is said"
    assert spread([0.0, 0.0, 3.0], reference=here(0.0, 50.0)) == [behind]


def test_of_two_nodes_nobody_knows_which_is_wrong() -> None:
    assert spread([0.0, 3.0]) == [
        "node1 warn: the clock is 3.000 s (± 0.020 s) behind the other node's",
        "node2 warn: the clock is 3.000 s (± 0.020 s) ahead of the other node's",
    ]


def test_ten_thousand_nodes_are_compared_at_once() -> None:
    begin = time.process_time()
    assert len(spread([0.0] * 9_999 + [5.0])) == 1
    assert time.process_time() - begin < 5


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"warn_offset \(2 s\) is above fail_offset \(1 s\)"):
        options_of("ntp", warn_offset=2.0)
