"""The check ntp: what the daemons say, recorded and made up."""

import pytest

from tests.made_up import judged
from tests.ntp_facts import FOLLOWS, GOOD, NOBODY, TIMESYNCD, recorded, with_tracking


@pytest.mark.parametrize(
    ("tracking", "sources", "expected"),
    [
        (
            "tracking-synced",
            "sources-mixed",
            [
                "pass synchronised: chronyd follows 10.20.0.11 (stratum 2), 0.000019 s behind it, "
                "good to 0.000256 s",
                "warn falseticker: 1 of 5 sources is a falseticker: 10.20.0.14",
                "warn silent: 1 of 5 sources does not answer: 10.20.0.16",
            ],
        ),
        (
            "tracking-synced-csv",
            "sources-mixed-csv",
            [
                FOLLOWS,
                "warn falseticker: 1 of 5 sources is a falseticker: 10.20.0.14",
                "warn silent: 1 of 5 sources does not answer: 10.20.0.16",
            ],
        ),
        (
            "tracking-unsynced",
            "sources-none",
            [
                "fail no_source: no source is configured, or none has an address; chronyd is not "
                "synchronised (leap status Not synchronised, reference 00000000, stratum 0)"
            ],
        ),
        (
            "tracking-unsynced",
            "",
            [
                "fail not_synchronised: chronyd is not synchronised (leap status Not synchronised, "
                "reference 00000000, stratum 0)"
            ],
        ),
        (
            "tracking-25s-slow",
            "",
            [
                "fail daemon_offset: chronyd says that the clock is 25.000 s behind 10.20.0.14, "
                "should be within 1 s"
            ],
        ),
        (
            "no-daemon",
            "",
            [
                "fail no_daemon: no time daemon runs: neither chronyd (chronyc says: 506 Cannot "
                "talk to daemon) nor ntpd nor systemd-timesyncd"
            ],
        ),
        (
            "",
            "sources-none",
            [
                "fail no_source: no source is configured, or none has an address; chronyd is not "
                "synchronised (no source is selected)"
            ],
        ),
    ],
)
def test_recorded_answers_of_chronyc(tracking: str, sources: str, expected: list[str]) -> None:
    told = dict(NOBODY)
    if tracking:
        told["chrony.tracking"] = recorded(f"chrony-{tracking}")
    if sources:
        told["chrony.sources"] = recorded(f"chrony-{sources}")
    assert judged("ntp", told) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["pn-synced"],
            [
                "pass synchronised: ntpd follows 10.20.0.11, 0.002 s behind it",
                "warn falseticker: 1 of 5 sources is a falseticker: 10.20.0.14",
                "warn silent: 1 of 5 sources does not answer: 10.20.0.16",
            ],
        ),
        (
            ["rv-discipline-off", "pn-synced"],
            [
                "fail not_synchronised: ntpd is not synchronised (leap=11 though 10.20.0.11 is "
                "selected: the clock is not disciplined)"
            ],
        ),
        (
            ["rv-unsynced", "pn-start"],
            ["fail not_synchronised: ntpd is not synchronised (leap=11, stratum=16)"],
        ),
        (["pn-start"], ["fail not_synchronised: ntpd is not synchronised (no peer is selected)"]),
        (
            ["pn-classic", "rv-classic-synced"],
            [
                "pass synchronised: ntpd follows 192.0.2.15 (stratum 3), 0.000125 s ahead of it, "
                "good to 0.022 s"
            ],
        ),
    ],
)
def test_recorded_answers_of_ntpq(names: list[str], expected: list[str]) -> None:
    text = "".join(recorded(f"ntpq-{name}") for name in names)
    assert judged("ntp", {**NOBODY, "ntpq": text}) == expected


@pytest.mark.parametrize(
    ("show", "status", "expected"),
    [
        (
            "show-synced",
            ["timesync-status-synced", "show-timesync-synced"],
            "pass synchronised: systemd-timesyncd follows 10.20.0.11 (stratum 1), 0.000129 s "
            "behind it, good to 0.000573 s",
        ),
        (
            "show-synced",  # by systemd's word, though nothing was ever received
            ["timesync-status-no-answer"],
            "fail silent: no source answers, of 1: 10.20.0.16; systemd-timesyncd is not "
            "synchronised (packet count 0)",
        ),
        (
            "show-unsynced",
            ["timesync-status-synced"],
            "fail not_synchronised: 10.20.0.11 answers, but the kernel says that the clock is not "
            "synchronised",
        ),
    ],
)
def test_recorded_answers_of_timedatectl(show: str, status: list[str], expected: str) -> None:
    told = {
        **TIMESYNCD,
        "timedatectl": recorded(f"timedatectl-{show}"),
        "timesyncd": "".join(recorded(f"timedatectl-{name}") for name in status),
    }
    assert judged("ntp", told) == [expected]


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        (
            "show-ntp-off",
            "warn unkept: the kernel still says that the clock is synchronised, but no time daemon "
            "runs here to keep it so",
        ),
        (
            "show-unsynced",
            "fail no_daemon: no time daemon runs: neither chronyd nor ntpd nor systemd-timesyncd",
        ),
    ],
)
def test_a_node_without_a_daemon(show: str, expected: str) -> None:
    assert judged("ntp", {**NOBODY, "timedatectl": recorded(f"timedatectl-{show}")}) == [expected]


def test_systemd_before_239_tells_only_that_the_clock_is_synchronised() -> None:
    said = "NTP enabled: yes\nNTP synchronized: yes\n"
    told = {**TIMESYNCD, "timedatectl": said, "timesyncd": "Unknown operation timesync-status"}
    assert judged("ntp", told) == [
        "pass synchronised: systemd-timesyncd runs and tells no more; the kernel says that the "
        "clock is synchronised"
    ]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            with_tracking(c0="7F7F0101", c1="", c2="10"),
            "fail name_only: chronyd is synchronised by name only: it follows the node's own clock",
        ),
        (
            {**NOBODY, "ntpq": "leap=00, stratum=6, refid=LOCAL(0), offset=0.000"},
            "fail name_only: ntpd is synchronised by name only: it follows the node's own clock",
        ),
        (
            {**NOBODY, "ntpq": "leap=00, stratum=5, refid=127.0.0.1, offset=0.000"},
            "fail name_only: ntpd is synchronised by name only: it follows the node's own clock",
        ),
        (
            with_tracking(c11="0.9"),
            "warn uncertain: chronyd follows 10.20.0.11 (stratum 2), but answers for no better "
            "than 0.900 s, should be 0.5 s or less",
        ),
        (
            with_tracking(c4="-0.7"),
            "warn daemon_offset: chronyd says that the clock is 0.700 s ahead of 10.20.0.11, "
            "should be within 0.5 s",
        ),
        (
            with_tracking(c4="nan"),
            "unknown garbled: the time daemon's answer cannot be read: chronyc's system time is "
            "'nan', which is no number",
        ),
        (
            with_tracking(c13=""),
            "unknown garbled: the time daemon's answer cannot be read: chronyc's leap status is "
            "'', not one of Normal, Insert second, Delete second, Not synchronised",
        ),
        (
            {**GOOD, "chrony.tracking": "0A14000B,10.20.0.11,2"},
            "unknown garbled: the time daemon's answer cannot be read: chronyc's tracking has 3 "
            "fields, should be 14",
        ),
        (
            {**GOOD, "chrony.tracking": "506 Cannot talk to daemon"},
            "unknown no_answer: chronyd runs, but does not answer (506 Cannot talk to daemon)",
        ),
        (
            {"running": "chronyd chronyd", "processes": "all"},
            "unknown no_answer: chronyd runs, but does not answer (chronyc is not installed)",
        ),
        (
            {"running": "ntpd ntpd -g", "processes": "all"},
            "unknown no_answer: ntpd runs, but does not answer (ntpq is not installed)",
        ),
        (
            {"running": "ntpd ntpd -N", "processes": "all", "ntpd": "busybox"},
            "unknown no_answer: ntpd runs, but does not answer (busybox's has no tool to ask it)",
        ),
        (
            {
                "running": "ntpd ntpd -N",
                "processes": "all",
                "ntpd": "busybox",
                "adjtimex": "    mode:         0\n    status:       1 (PLL)\n",
            },
            "pass synchronised: busybox's ntpd cannot be asked, and the kernel says that the clock "
            "is synchronised",
        ),
        (
            {
                "running": "ntpd ntpd -N",
                "processes": "all",
                "ntpd": "busybox",
                "adjtimex": "    mode:         0\n    status:       64 (UNSYNC)\n",
            },
            "fail not_synchronised: busybox's ntpd cannot be asked, and the kernel says that the "
            "clock is not synchronised",
        ),
        (
            {**NOBODY, "chrony.tracking": "501 Not authorised"},
            "unknown no_answer: no time daemon is seen here, yet something is there to be asked "
            "(501 Not authorised)",
        ),
        (
            {"running": "", "processes": "own"},
            "unknown no_answer: no time daemon answers, and not all processes can be seen",
        ),
        (
            {"running": "phc2sys phc2sys -a -r\nptp4l ptp4l -f x", "processes": "all"},
            "unknown no_answer: PTP keeps the clock, and pmc does not tell how well",
        ),
        (
            {
                "running": "phc2sys phc2sys -a -r\nptp4l ptp4l -f x",
                "processes": "all",
                "pmc": "\t\toffsetFromMaster -12.0\n\t\tportState               SLAVE\n",
            },
            "pass synchronised: ptp4l's clock is 0.000000 s behind its master's",
        ),
        (
            {
                "running": "ptp4l ptp4l -f x",
                "processes": "all",
                "pmc": "\t\toffsetFromMaster 0.0\n\t\tportState               LISTENING\n",
            },
            "fail not_synchronised: ptp4l's ports are LISTENING, one should be SLAVE",
        ),
    ],
)
def test_troubles_each_with_its_own_words(told: dict[str, str], expected: str) -> None:
    assert judged("ntp", told) == [expected]


def test_sources_that_all_fail_are_the_cause() -> None:
    lost = {**GOOD, "chrony.sources": "^,?,10.20.0.11,0,6,0,4294967295,0.0,0.0,0.0"}
    assert judged("ntp", lost) == [
        FOLLOWS,
        "warn silent: 1 of 1 sources does not answer: 10.20.0.11; the clock runs free",
    ]
    never = {**lost, "chrony.tracking": recorded("chrony-tracking-unsynced")}
    assert judged("ntp", never)[0].startswith(
        "fail silent: no source answers, of 1: 10.20.0.11; chronyd is not synchronised"
    )
    torn = "^,x,10.20.0.11,1,6,377,1,0,0,0\n^,x,fd00::11,1,6,377,1,0,0,0"
    assert judged("ntp", {**never, "chrony.sources": torn})[0].startswith(
        "fail falseticker: the sources disagree: 10.20.0.11, fd00::11; chronyd is not synchronised"
    )
    wild = "^,~,10.20.0.11,1,6,377,1,0,0,0"
    assert judged("ntp", {**never, "chrony.sources": wild})[0].startswith(
        "fail variable: all sources are too variable: 10.20.0.11; chronyd is not synchronised"
    )


def test_a_node_may_be_allowed_its_own_clock() -> None:
    told = with_tracking(c0="7F7F0101", c1="", c2="10")
    assert judged("ntp", told, allow_own_clock=True) == [
        "pass own_clock: chronyd serves the node's own clock, as is allowed"
    ]


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        (
            "chronyd chronyd\nsystemd-timesyn /usr/lib/systemd/systemd-timesyncd",
            "warn two_daemons: chronyd and systemd-timesyncd run at once, should be one",
        ),
        (
            "chronyd chronyd\nphc2sys phc2sys -a -r",
            "warn two_daemons: chronyd and phc2sys run at once, should be one",
        ),
        # it feeds chronyd; it sets the card from the system's clock; two processes of one daemon
        ("chronyd chronyd\nphc2sys phc2sys -a -r -E ntpshm", FOLLOWS),
        ("chronyd chronyd\nphc2sys phc2sys -c eth0 -s CLOCK_REALTIME", FOLLOWS),
        ("chronyd chronyd -F 1\nchronyd chronyd -F 1", FOLLOWS),
    ],
)
def test_two_daemons_that_set_the_clock(running: str, expected: str) -> None:
    assert judged("ntp", {**GOOD, "running": running})[0] == expected
