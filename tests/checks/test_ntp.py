"""The check ntp: what is judged, and what the probe hears from real and recorded daemons."""

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustercheck.check import Facts, Target
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS, shell_command
from tests.time_daemons import Answers, Chronyd, chronyds, free_port, libraries, tool
from tools.fetch import TOOLS

DATA = Path(__file__).resolve().parent.parent / "data" / "ntp"

NOBODY = {"running": "", "processes": "all"}
NO_REFERENCE = {"here.error": "no reference is set, and this machine itself follows none"}
GOOD = {
    "running": "chronyd chronyd -F 2",
    "processes": "all",
    "chrony.tracking": "0A14000B,10.20.0.11,2,1796060521.36,0.000033676,0.000001772,"
    "0.000019939,0.737,0.028,1.343,0.000098005,0.000206379,2.0,Normal",
    "chrony.sources": "^,*,10.20.0.11,1,1,377,1,0.000002205,0.000003977,0.000247506",
}
FOLLOWS = (
    "pass synchronised: chronyd follows 10.20.0.11 (stratum 2), 0.000034 s behind it, "
    "good to 0.000289 s"
)
# What the collectors of the recorded cases took for granted.
POLICY = {"warn_offset": 0.05, "fail_offset": 0.1}


def recorded(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def clock(offset: float, uncertainty: float) -> dict[str, str]:
    return {"clock.offset": repr(offset), "clock.uncertainty": repr(uncertainty)}


def here(offset: float, uncertainty: float) -> dict[str, str]:
    return {
        "here.offset": repr(offset),
        "here.uncertainty": repr(uncertainty),
        "here.server": "10.20.0.1",
    }


# --- what the daemon says


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
                "fail no_source: no source is configured; chronyd is not synchronised (leap status "
                "Not synchronised, reference 00000000, stratum 0)"
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
                "fail no_source: no source is configured; chronyd is not synchronised "
                "(no source is selected)"
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
                "pass synchronised: ntpd follows 10.20.0.11, 0.002263 s behind it",
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


TIMESYNCD = {"running": "systemd-timesyn /usr/lib/systemd/systemd-timesyncd", "processes": "all"}


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


# --- nodes on which other tools judged wrongly


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


# --- kinds of trouble


def with_tracking(**changed: str) -> dict[str, str]:
    """GOOD with cells of the csv changed, each called c and its place from 0."""
    cells = GOOD["chrony.tracking"].split(",")
    for place, value in changed.items():
        cells[int(place[1:])] = value
    return {**GOOD, "chrony.tracking": ",".join(cells)}


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


# --- what the clock is


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (
            {**clock(0.002, 0.001), **here(-0.001, 0.0005)},
            "pass offset: the clock is 0.001000 s (± 0.001500 s) ahead of the reference 10.20.0.1",
        ),
        (
            {**clock(0.4, 0.001), **here(0.3, 0.001)},
            "warn daemon_wrong: the clock is 0.700 s (± 0.002000 s) ahead of the reference "
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
            "pass offset: the clock is 0.010 s (± 0.020 s) ahead of this machine's clock, either "
            "may be wrong (no reference is set, and this machine itself follows none)",
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


def test_an_offset_that_the_daemon_admits_is_one_finding() -> None:
    told = {**with_tracking(c4="3.0"), **clock(-3.01, 0.02), **here(0.0, 0.001)}
    assert judged("ntp", told) == [
        "fail daemon_offset: chronyd says that the clock is 3.000 s behind 10.20.0.11, should be "
        "within 1 s"
    ]


def test_timesyncd_shows_what_it_has_corrected_since() -> None:
    status = recorded("timedatectl-timesync-status-synced").replace("+129us", "+3.2s")
    told = {**TIMESYNCD, "timesyncd": status}
    assert judged("ntp", told)[0].startswith("fail daemon_offset:")
    assert [line.split(":")[0] for line in judged("ntp", {**told, **clock(0.01, 0.02)})] == [
        "pass synchronised",
        "pass offset",
    ]
    assert [line.split(":")[0] for line in judged("ntp", {**told, **clock(-3.2, 0.02)})] == [
        "pass synchronised",
        "fail offset",
    ]


def test_this_machine_against_itself_tells_nothing() -> None:
    assert judged("ntp", {**GOOD, **clock(0.0, 0.0), **NO_REFERENCE}) == [FOLLOWS]


def test_a_reference_that_was_asked_for_and_is_silent_is_not_passed_over() -> None:
    told = {**GOOD, **clock(0.0, 0.01), "here.error": "10.20.0.1 gave no answer"}
    found = judged("ntp", told, reference=("10.20.0.1",))
    assert found[1] == "unknown no_reference: the reference tells no time: 10.20.0.1 gave no answer"


def test_numbers_that_are_none_are_no_pass() -> None:
    found = judged("ntp", {**GOOD, "clock.offset": "nan", "clock.uncertainty": "0.1"})
    assert found[0].startswith("unknown crashed:")


def test_a_silent_probe_is_no_pass() -> None:
    assert judged("ntp", {}) == ["unknown not_answered: the probe did not report 'running'"]


# --- between nodes


def spread(offsets: list[float], uncertainty: float = 0.01) -> list[str]:
    compare = CHECKS["ntp"].compare
    assert compare
    told = {f"node{n}": Facts(clock(offset, uncertainty)) for n, offset in enumerate(offsets, 1)}
    told["silent"] = Facts(NOBODY)
    found = compare(told, dict.fromkeys(told, options_of("ntp")))
    return [f"{name} {f.status.value}: {f.message.split(',')[0]}" for name, f in found]


def test_the_spread_is_from_the_median_not_from_this_machine() -> None:
    assert spread([100.0, 100.2, 100.1]) == []
    assert spread([100.0, 100.2, 30.0]) == [
        "node3 fail: the clock is 70.000 s (± 0.020 s) behind the median of 3 nodes"
    ]
    assert spread([100.0, 100.2, 98.0], uncertainty=1.0) == []
    assert spread([5.0]) == []


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


# --- the probe on made-up nodes


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> MadeUpNode:
    """A node without any time daemon or tool; probes run in the shell of the parameter."""
    node = MadeUpNode(tmp_path)
    node.hide("chronyc", "ntpq", "timedatectl", "busybox", "pmc", "ntpd")
    node.command("sh", f'exec {shlex.join(shell_command(request.param))} "$@"')
    node.file("/proc/1/comm", "systemd\n")
    return node


def runs(node: MadeUpNode, pid: int, comm: str, *words: str) -> None:
    node.file(f"/proc/{pid}/comm", comm + "\n")
    node.file(f"/proc/{pid}/cmdline", "\0".join([comm, *words]) + "\0")


def test_the_probe_finds_nobody(node: MadeUpNode) -> None:
    assert node.probe("ntp") == {"running": "", "processes": "all"}
    (node.root / "proc/1/comm").unlink()
    node.file("/run/.containerenv")
    assert node.probe("ntp") == {
        "running": "",
        "processes": "own",
        "container": "/run/.containerenv",
    }


def test_the_probe_sees_daemons_by_their_processes(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd", "-F", "2")
    runs(node, 8, "phc2sys", "-a")
    node.file("/proc/9/comm", "ntpd\n")
    node.file("/proc/9/cmdline", "")  # ended
    assert node.probe("ntp")["running"].splitlines() == [
        "chronyd chronyd -F 2 ",
        "phc2sys phc2sys -a ",
    ]


def test_an_old_chronyc_is_asked_for_its_text(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd")
    tracking = shlex.quote(str(DATA / "chrony-tracking-synced.txt"))
    sources = shlex.quote(str(DATA / "chrony-sources-mixed.txt"))
    node.command(
        "chronyc",
        'case "$*" in *-c*) echo "Unrecognized option -c" >&2; exit 1 ;;\n'
        f"*tracking) cat {tracking} ;; *) cat {sources} ;; esac",
    )
    told = node.probe("ntp")
    assert told["chrony.tracking"] + "\n" == recorded("chrony-tracking-synced")
    assert judged("ntp", told)[0].startswith("pass synchronised: chronyd follows 10.20.0.11")
    assert judged("ntp", told)[1].startswith("warn falseticker: 1 of 5")


def test_a_chronyc_that_hangs_is_no_proof_of_anything(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd")
    node.command("chronyc", "exec sleep 60")
    assert judged("ntp", node.probe("ntp")) == [
        "unknown no_answer: chronyd runs, but does not answer (no answer within 3 s)"
    ]


def test_ntpq_of_the_classic_kind_without_w(node: MadeUpNode) -> None:
    runs(node, 7, "ntpd", "-g")
    files = [DATA / "ntpq-rv-classic-synced.txt", DATA / "ntpq-pn-classic.txt"]
    node.command(
        "ntpq",
        'case "$*" in *-w*) echo "ntpq: illegal option -- w" >&2; exit 1 ;; esac\n'
        f"cat {shlex.join(map(str, files))}",
    )
    assert judged("ntp", node.probe("ntp")) == [
        "pass synchronised: ntpd follows 192.0.2.15 (stratum 3), 0.000125 s ahead of it, "
        "good to 0.022 s"
    ]


def test_ntpd_of_busybox(node: MadeUpNode) -> None:
    runs(node, 7, "ntpd", "-N", "-p", "10.20.0.11")
    (node.bin / "busybox").write_text('#!/bin/sh\necho "    status:       64 (UNSYNC)"\n')
    (node.bin / "busybox").chmod(0o755)
    (node.bin / "ntpd").symlink_to("busybox")
    assert judged("ntp", node.probe("ntp"))[0].startswith(
        "fail not_synchronised: busybox's ntpd cannot be asked"
    )


def test_timesyncd_is_asked_only_where_it_runs(node: MadeUpNode) -> None:
    show = shlex.quote(str(DATA / "timedatectl-show-ntp-off.txt"))
    status = shlex.quote(str(DATA / "timedatectl-timesync-status-synced.txt"))
    asked = node.root / "asked"
    node.command(
        "timedatectl",
        f'echo "$*" >>{asked}\n'
        f"case $1 in show) cat {show} ;; timesync-status) cat {status} ;; esac",
    )
    assert judged("ntp", node.probe("ntp"))[0].startswith("warn unkept:")
    assert asked.read_text() == "show\n"
    runs(node, 7, "systemd-timesyn")
    assert judged("ntp", node.probe("ntp"))[0].startswith("pass synchronised: systemd-timesyncd")


def test_timedatectl_before_systemd_239(node: MadeUpNode) -> None:
    node.command(
        "timedatectl",
        '[ "$1" = status ] || { echo "Unknown operation $1" >&2; exit 1; }\n'
        'printf "     NTP enabled: n/a\\nNTP synchronized: yes\\n"',
    )
    assert judged("ntp", node.probe("ntp"))[0].startswith("warn unkept:")


# --- real daemons


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Chronyd]]:
    with chronyds(tmp_path_factory.mktemp("chrony")) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("follows good", "pass synchronised: chronyd follows 127.77.0.1 (stratum 4), 0.000"),
        ("follows 0.7", "warn daemon_offset: chronyd says that the clock is 0.7"),
        ("follows 3", "fail daemon_offset: chronyd says that the clock is 3.0"),
        ("follows nobody", "fail silent: no source answers, of 1: 127.0.0.1; chronyd is not"),
        ("has no source", "fail no_source: no source is configured; chronyd is not synchronised"),
        ("follows itself", "fail name_only: chronyd is synchronised by name only"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "text"])
def test_real_chronyd(
    real: dict[str, Chronyd], tmp_path: Path, name: str, form: str, expected: str
) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 1, "systemd")
    runs(node, 7, "chronyd")
    old = 'case "$*" in *-c*) exit 1 ;; esac\n' if form == "text" else ""
    node.command("chronyc", f'{old}exec env {real[name].chronyc()} "$@"')
    assert judged("ntp", node.probe("ntp"))[0].startswith(expected)


def test_real_sources_that_disagree(real: dict[str, Chronyd], tmp_path: Path) -> None:
    real["follows all"].wait_until(",x,", "sources")
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 7, "chronyd")
    node.command("chronyc", f'exec env {real["follows all"].chronyc()} "$@"')
    assert judged("ntp", node.probe("ntp"))[0].startswith(
        "fail falseticker: the sources disagree: 127.77.0.1, 127.77.0.2, 127.77.0.3; chronyd is not"
    )


def test_real_chronyd_that_is_gone(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 1, "systemd")
    gone = f"{tool('chrony', 'chronyc')} -h 127.0.0.1 -p {free_port()}"
    node.command(
        "chronyc", f'LD_LIBRARY_PATH={libraries("chrony")["LD_LIBRARY_PATH"]} exec {gone} "$@"'
    )
    assert judged("ntp", node.probe("ntp")) == [
        "fail no_daemon: no time daemon runs: neither chronyd (chronyc says: 506 Cannot talk to "
        "daemon) nor ntpd nor systemd-timesyncd"
    ]


# It brings up the loopback device of a network of its own and stays as ntpd.
ALONE = """
import fcntl, os, socket, struct, sys
lo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(lo, 0x8914, struct.pack("16sh", b"lo", 1))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_real_ntpsec_without_a_server(tmp_path: Path) -> None:
    ntpd, ntpq = tool("ntpsec", "ntpd"), tool("ntpsec", "ntpq")
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("cannot here: namespaces of one's own are not allowed on this machine")
    environment = libraries("ntpsec")
    config = tmp_path / "ntp.conf"
    config.write_text("disable ntp\nrestrict default noquery\nrestrict 127.0.0.1\n")
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen(
            [*unshare, sys.executable, "-c", ALONE, ntpd, "-n", "-c", config],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        node = MadeUpNode(tmp_path)
        node.hide("chronyc", "timedatectl", "busybox")
        runs(node, 7, "ntpd", "-n")
        modules = unpacked_modules(tmp_path)
        inside = f"nsenter --preserve-credentials --user --net --target {daemon.pid}"
        node.command(
            "ntpq",
            f"export PYTHONPATH={modules} LD_LIBRARY_PATH={environment['LD_LIBRARY_PATH']}\n"
            f'exec {inside} {ntpq} "$@"',
        )
        end = time.monotonic() + 60
        while "not running" in (told := node.probe("ntp"))["ntpq"] and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        daemon.terminate()
        daemon.wait(20)
    assert judged("ntp", told) == [
        "fail no_source: no source is configured; ntpd is not synchronised (leap=11, stratum=16)"
    ]


def unpacked_modules(folder: Path) -> str:
    """Where ntpq's Python modules are, with their library beside them; "" if installed."""
    modules = TOOLS / "ntpsec/usr/lib/python3/dist-packages/ntp"
    if not modules.exists():
        return ""
    here = folder / "python"
    here.mkdir()
    (here / "ntp").mkdir()
    for file in modules.glob("*.py"):
        (here / "ntp" / file.name).symlink_to(file)
    (library,) = list((TOOLS / "ntpsec").glob("usr/lib/*/ntp/libntpc.so.1"))
    (here / "ntp/libntpc.so").symlink_to(library.resolve())
    return str(here)


# --- this machine against the reference


def from_here(*reference: str) -> dict[str, str]:
    probe = CHECKS["ntp"].probe_from_here
    assert probe
    found = probe([Target("node01", "10.0.0.1")], options_of("ntp", reference=reference))
    return dict(found["node01"])


def test_real_servers_tell_this_machines_offset(real: dict[str, Chronyd]) -> None:
    told = from_here(real["good"].server)
    assert abs(float(told["here.offset"])) < 0.05
    assert 0 < float(told["here.uncertainty"]) < 0.5
    assert told["here.server"] == real["good"].server
    for name, off in (("0.7", 0.7), ("3", 3.0)):
        told = from_here(real[name].server)
        doubt = float(told["here.uncertainty"]) + 0.05
        assert abs(abs(float(told["here.offset"])) - off) < doubt


def test_a_clock_that_is_ahead_of_the_reference_is_told_as_ahead(real: dict[str, Chronyd]) -> None:
    follower = from_here(real["3"].server)
    # chronyd's word on this very clock, against the same server
    said = subprocess.run(
        ["sh", "-c", f"{real['follows 3'].chronyc()} -n tracking"], capture_output=True, text=True
    ).stdout
    assert ("fast of NTP time" in said) == (float(follower["here.offset"]) > 0)


def test_servers_are_outvoted_and_may_disagree(real: dict[str, Chronyd], tmp_path: Path) -> None:
    good, other, off = (real[name].server for name in ("good", "follows good", "3"))
    told = from_here(good, off, other)
    assert abs(float(told["here.offset"])) < 0.5
    assert told["here.server"] in (good, other)
    assert from_here(good, off)["here.error"].startswith("the references disagree (from this ")
    dead = f"127.0.0.1:{free_port()}"
    assert from_here(dead, good)["here.server"] == good


def test_servers_that_tell_no_time(real: dict[str, Chronyd]) -> None:
    unsynchronised = real["follows nobody"].server
    assert from_here(unsynchronised)["here.error"].startswith(
        f"{unsynchronised} is not synchronised itself (leap 3, stratum "
    )
    dead = f"127.0.0.1:{free_port()}"
    assert from_here(dead)["here.error"] == f"{dead} gave no answer to an NTP request"
    assert from_here("nobody.invalid")["here.error"].startswith(
        "nobody.invalid cannot be resolved: "
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((3, 4, 0, 0x52415445), "refuses to tell the time (kiss of death RATE)"),
        ((0, 4, 16, 0), "is not synchronised itself (leap 0, stratum 16)"),
        ((0, 3, 2, 0), "gave an answer that does not fit the request"),
    ],
)
def test_answers_that_are_refused(answer: tuple[int, ...], expected: str) -> None:
    server = Answers(answer)
    threading.Thread(target=server.one, daemon=True).start()
    assert from_here(f"127.0.0.1:{server.port}") == {
        "here.error": f"127.0.0.1:{server.port} {expected}"
    }


def test_nobody_is_asked_unless_named_or_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert from_here() == NO_REFERENCE


def test_the_servers_that_this_machine_follows_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["^,+,127.78.0.1", "^,*,127.78.0.2", "^,x,127.78.0.3", "^,?,127.78.0.4", "#,*,PHC0"]
    (tmp_path / "rows").write_text("".join(f"{row},3,0,377,1,0,0,0\n" for row in rows))
    chronyc = tmp_path / "chronyc"
    chronyc.write_text(f"#!/bin/sh\ncat {tmp_path}/rows\n")
    chronyc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    # nobody is there, on NTP's own port
    assert sorted(from_here()["here.error"].split("; ")) == [
        "127.78.0.1 gave no answer to an NTP request",
        "127.78.0.2 gave no answer to an NTP request",
    ]
