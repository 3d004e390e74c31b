"""What the check dns makes of a node's facts."""

import pytest

from tests.dns_facts import (
    BACK,
    GOOD,
    OTHER,
    SAID,
    SAID_OTHER,
    SERVER,
    SERVER_HEX,
    SIX_HEX,
    A,
    trouble,
)
from tests.made_up import judged, options_of

SIX_FIRST = "nameserver FD99::35\nnameserver 10.0.0.54"
TWO_LOCAL = "nameserver 127.0.0.1\nnameserver 10.0.0.53"
TWO_SEARCH = "search cluster.example\nsearch vcn.example\nnameserver 10.0.0.53"


def test_a_node_that_is_well() -> None:
    told = {**GOOD, SAID: f"{A} 10.0.0.1\n{BACK}", "names": "sum4 2 1 1\nsum6 0 0 0\nnames 2 2 0"}
    assert judged("dns", told) == [
        "pass own: its own name node01 is 10.0.0.1",
        "pass reverse: by reverse look-up 10.0.0.1 is node01.cluster.example",
        "pass lookup: a look-up that no file answers takes less than 0.1 s",
        "pass records: node01.cluster.example is 10.0.0.1 by DNS",
        "pass names: all 2 names of nodes have addresses",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"own": "127.0.1.1 STREAM node01", "hosts": "127.0.1.1  node01.x node01 # Debian"},
            "fail own_loopback: its own name node01 is 127.0.1.1 (/etc/hosts: 127.0.1.1 node01.x "
            "node01 # Debian), should be an address that other nodes can reach",
        ),
        (
            {"own": "10.0.0.1 STREAM node01\n::1 STREAM"},
            "fail own_loopback: its own name node01 is ::1, should be an address that other nodes "
            "can reach",
        ),
        ({"own": ""}, "fail own_unresolved: its own name node01 has no address here"),
        (
            {"own": "late"},
            "fail own_unresolved: its own name node01 did not resolve within 11 s",
        ),
        (
            {"own": "10.0.0.9 STREAM node01", "reverse": "10.0.0.9 node01"},
            "fail own_elsewhere: its own name node01 is 10.0.0.9, which no interface of the node "
            "has; they have 10.0.0.1",
        ),
        (
            {
                "own": "169.254.95.118 STREAM node01",
                "addresses.four": "127.0.0.1\n169.254.95.118\n10.0.0.1",
                "reverse": "169.254.95.118 node01",
            },
            "fail own_link_local: its own name node01 is 169.254.95.118, which holds on one link "
            "alone; should be an address that other nodes can reach",
        ),
        (
            {"addresses.four": ""},
            "unknown own_addresses: its own name node01 is 10.0.0.1; whether an interface has it "
            "could not be read",
        ),
        (
            {"plain": "files dns", "own.plain": ""},
            "fail own_made_up: its own name node01 is 10.0.0.1 to the node itself only "
            "(nss-myhostname or systemd-resolved makes that up), and has no record by files dns",
        ),
        ({"plain": "files dns", "own.plain": GOOD["own"]}, "pass"),
        (
            {"reverse": ""},
            "warn reverse: 10.0.0.1 has no name by reverse look-up, should be node01",
        ),
        (
            {"reverse": "10.0.0.1 old.cluster.example"},
            "warn reverse: by reverse look-up 10.0.0.1 is old.cluster.example, should be node01",
        ),
        (
            {"hostname": "node01.a.example"},
            "warn reverse: by reverse look-up 10.0.0.1 is node01.cluster.example, should be "
            "node01.a.example",
        ),
        ({"reverse": "10.0.0.1 node01-ib.x NODE01.Cluster.Example. node01"}, "pass"),
        (
            {"reverse": "late"},
            "unknown reverse: the reverse look-up gave no answer within 11 s",
        ),
        (
            {"own": "2001:db8::1 STREAM node01", "reverse": "2001:db8::1 node01"}
            | {"addresses.six": "20010db8000000000000000000000001"},
            "pass",
        ),
        (
            {"resolv.conf": TWO_SEARCH},
            "warn search: resolv.conf has several search or domain lines, of which the last "
            "alone counts (vcn.example); ignored: cluster.example",
        ),
        (
            {"resolv.conf": "".join(f"nameserver 10.1.0.{n}\n" for n in range(5))},
            "warn too_many: resolv.conf names 5 servers, should be 3 at most; never asked: "
            "10.1.0.3, 10.1.0.4",
        ),
        (
            {"resolv.conf.file": "unreadable"},
            "unknown unreadable: /etc/resolv.conf cannot be read by this user",
        ),
        ({"resolv.conf.file": "absent"}, "pass"),
        ({"asked": "no", "services": "files"}, "pass"),
        (
            {"asked": "2 180"},
            "warn slow: a look-up takes 1.8 s, should take 1 s at most",
        ),
        (
            {"asked": "2 501"},
            "warn dead_server: a name server before the one that answers is silent; on the node "
            "each look-up that no file answers takes 5 s",
        ),
        (
            {"asked": "2 501", "servers": f"{SERVER} silent\n{OTHER} answers"},
            f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, does not "
            "answer (asked from this machine); on the node each look-up that no file answers takes "
            "5 s",
        ),
        (
            {"asked": "2 180", "waits": "quick"},
            "pass",
        ),
        (
            {"asked": "2 501", "waits": "quick"},
            "pass",
        ),
        (
            {"asked": "2 501", "waits": "quick", "servers": f"{SERVER} silent\n{OTHER} answers"},
            f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, does not "
            "answer (asked from this machine)",
        ),
        (
            {
                "asked": "2 501",
                "waits": "quick",
                "resolv.conf": f"nameserver {SERVER}\nnameserver {OTHER}\noptions rotate\n",
            },
            "warn dead_server: a name server before the one that answers is silent; on the node "
            "each look-up that no file answers takes 5 s",
        ),
        (
            {"asked": "2 501", "waits": SERVER_HEX},
            f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, does not "
            "answer; on the node each look-up that no file answers takes 5 s",
        ),
        (
            {"asked": "2 301", "waits": "0A000035:0035", "absent": f"10.0.0.9\n{SERVER}"},
            f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, does not "
            "answer; on the node each look-up that no file answers takes 3 s",
        ),
        (
            {"asked": "2 301", "absent": SERVER, "names": "sum4 1 1 1\nsum6 0 0 0\nnames 1 9 0"},
            f"warn dead_server: the name server {SERVER}, the first of 2 in resolv.conf, does not "
            "answer; on the node each look-up that no file answers takes 3 s; not all names of "
            "nodes could be tried in the time",
        ),
        (
            {"asked": "2 180", "waits": SERVER_HEX, "absent": OTHER},
            "warn slow: a look-up takes 1.8 s, should take 1 s at most",
        ),
        (
            {"asked": "2 180", "names": "sum4 1 1 1\nsum6 0 0 0\nnames 1 9 0"},
            "warn slow: a look-up takes 1.8 s, should take 1 s at most; not all names of nodes "
            "could be tried in the time",
        ),
        (
            {"asked": "2 501", "waits": f"{SERVER_HEX} 3600000A:0035"},
            "warn dead_server: a name server before the one that answers is silent; on the node "
            "each look-up that no file answers takes 5 s",
        ),
        (
            {"asked": "2 501", "waits": "0100007F:0035", "resolv.conf": TWO_LOCAL},
            "warn dead_server: a name server before the one that answers is silent; on the node "
            "each look-up that no file answers takes 5 s",
        ),
        (
            {"asked": "2 501", "waits": SIX_HEX, "resolv.conf": SIX_FIRST},
            "warn dead_server: the name server fd99::35, the first of 2 in resolv.conf, does not "
            "answer; on the node each look-up that no file answers takes 5 s",
        ),
        (
            {"servers": f"{SERVER} answers\n{OTHER} closed Connection refused"},
            f"warn dead_server: the name server {OTHER}, the second of 2 in resolv.conf, cannot "
            "be asked, Connection refused (asked from this machine)",
        ),
        (
            {"asked": "124 1101"},
            f"warn no_server: no name server answers the node ({SERVER}, {OTHER}): a look-up ends "
            "after 11 s without an answer",
        ),
        (
            {"asked": "124 1101", "own": "late"},
            f"fail no_server: no name server answers the node ({SERVER}, {OTHER}): a look-up ends "
            "after 11 s without an answer, and names of nodes need it",
        ),
        (
            {"resolv.conf": f"nameserver {SERVER}\noptions timeout:1 attempts:1", "asked": "2 100"},
            f"warn no_server: no name server answers the node ({SERVER}): a look-up ends after "
            "1 s without an answer",
        ),
        (
            {"resolv.conf": f"nameserver {SERVER}", "asked": "2 501"},
            "warn slow: a look-up takes 5.0 s, should take 1 s at most",
        ),
        (
            {"resolv.conf": "nameserver 127.0.0.53", "asked": "2 501", "upstream": ""},
            "warn dead_server: a name server before the one that answers is silent; on the node "
            "each look-up that no file answers takes 5 s",
        ),
        ({"resolv.conf": f"nameserver {SERVER}\noptions timeout:1", "asked": "2 95"}, "pass"),
        (
            {"resolv.conf": f"nameserver {SERVER}", "asked": "2 1000"},
            f"warn no_server: no name server answers the node ({SERVER}): a look-up ends after "
            "10 s without an answer",
        ),
        (
            {"resolv.conf": f"nameserver {SERVER}", "asked": "2 613", "absent": SERVER},
            f"warn no_server: no name server answers the node ({SERVER}): a look-up ends after "
            "6 s without an answer",
        ),
        (
            {"servers": f"{SERVER} refuses REFUSED\n{OTHER} answers", SAID: f"{A[:-7]}REFUSED"},
            f"warn refused: the name server {SERVER} says REFUSED for every question about nodes",
        ),
        (
            {SAID: f"{A[:-7]}SERVFAIL"},
            f"warn servfail: the name server {SERVER} says SERVFAIL for node01.cluster.example",
        ),
        (
            {SAID: f"{A} 10.0.0.1\n{BACK}", SAID_OTHER: f"{A} 10.0.0.1,10.0.0.7\n{BACK}"},
            f"warn servers_disagree: name servers disagree: {SERVER} says node01.cluster.example "
            f"is 10.0.0.1; {OTHER} says node01.cluster.example is 10.0.0.1, 10.0.0.7",
        ),
        (
            {SAID: f"{A} 10.0.0.1\n{BACK}", SAID_OTHER: "A node01 NXDOMAIN"},
            f"warn servers_disagree: name servers disagree: {SERVER} says node01.cluster.example "
            f"is 10.0.0.1; {OTHER} says NXDOMAIN for node01",
        ),
        (
            {SAID: f"{A} 10.0.0.7\nPTR 10.0.0.7 NOERROR node01.cluster.example"},
            "warn hosts_contradict: node01.cluster.example is 10.0.0.7 by DNS, and 10.0.0.1 on the "
            "node itself (/etc/hosts?)",
        ),
        (
            {SAID: f"{A} 10.0.0.1\nPTR 10.0.0.1 NXDOMAIN"},
            f"warn reverse: 10.0.0.1 has no PTR record ({SERVER})",
        ),
        (
            {SAID: f"{A} 10.0.0.1\nPTR 10.0.0.1 NOERROR old.cluster.example"},
            "warn reverse: by PTR record 10.0.0.1 is old.cluster.example, should be "
            f"node01.cluster.example ({SERVER})",
        ),
        ({SAID: f"{A} 10.0.0.1\nPTR 10.0.0.1 NOERROR gw.x,node01.cluster.example"}, "pass"),
        (
            {"names": "sum4 9 1 1\nsum6 0 0 0\nnames 9 64 0"},
            "unknown cut: only 9 of 64 names of nodes could be tried in the time",
        ),
        ({"hostname": ""}, "unknown own_unread: the node's own name could not be read"),
    ],
)
def test_one_thing_is_one_finding(changed: dict[str, str], expected: str) -> None:
    assert trouble({**GOOD, **changed}) == [expected]


def test_short_names_that_fail_because_of_a_search_line() -> None:
    found = trouble({**GOOD, "resolv.conf": TWO_SEARCH, "own": ""})
    assert [x.split(":")[0] for x in found] == ["fail own_unresolved", "fail search"]


@pytest.mark.parametrize(
    ("options", "changed", "expected"),
    [
        ({"own_loopback": "warn"}, {"own": "127.0.1.1 STREAM x"}, "warn own_loopback"),
        ({"own_loopback": "allow"}, {"own": "127.0.1.1 STREAM x"}, "pass"),
        ({"reverse": "required"}, {"reverse": ""}, "fail reverse"),
        ({"reverse": "ignored"}, {"reverse": ""}, "pass"),
        ({"reverse": "required"}, {SAID: f"{A} 10.0.0.1\nPTR 10.0.0.1 NXDOMAIN"}, "fail reverse"),
        ({"family": "ipv6"}, {}, "fail own_family"),
        ({"family": "ipv4"}, {}, "pass"),
        ({"max_seconds": 3}, {"asked": "2 180"}, "pass"),
    ],
)
def test_what_the_site_wants(
    options: dict[str, object], changed: dict[str, str], expected: str
) -> None:
    assert [x.split(":")[0] for x in trouble({**GOOD, **changed}, **options)] == [expected]


def test_a_server_counts_for_the_nodes_that_use_it() -> None:
    told = {**GOOD, "servers": "10.9.9.9 silent\n127.0.0.1:5300 silent"}
    assert trouble(told) == ["pass"]
    assert trouble(told, servers=("127.0.0.1:5300",))[0].startswith(
        "warn dead_server: the name server 127.0.0.1:5300 does not answer"
    )
    stub = {**told, "resolv.conf": "nameserver 127.0.0.53", "upstream": "nameserver 10.9.9.9"}
    assert trouble(stub)[0].startswith("warn dead_server: the name server 10.9.9.9 does not")


def test_servers_that_were_not_asked_in_time_are_unknown() -> None:
    told = {key: value for key, value in GOOD.items() if key != "servers"}
    assert [x.split(":")[0] for x in trouble(told)] == ["unknown not_asked"]


def test_a_server_of_the_option_is_an_address() -> None:
    with pytest.raises(ValueError, match="'ns1' is no name server's address; write 10.0.0.53,"):
        options_of("dns", servers=("ns1",))
    assert options_of("dns", servers=("10.0.0.53:5353", "[2001:db8::53]:53", "2001:db8::53"))


@pytest.mark.parametrize("form", ["2001:DB8::1", "2001:db8:0:0::1", "2001:0db8:0:0:0:0:0:1"])
def test_an_ipv6_address_has_many_forms(form: str) -> None:
    told = {
        **GOOD,
        "addresses.four": "127.0.0.1",
        "addresses.six": "20010db8000000000000000000000001",
        "own": f"{form} STREAM node01",
        "reverse": f"{form} node01.cluster.example",
    }
    assert trouble(told) == ["pass"]


def test_a_server_that_sends_what_is_no_answer() -> None:
    told = {**GOOD, f"said@{SERVER}": "A node01.cluster.example GARBLED-BadResponse"}
    assert trouble(told) == [
        f"warn no_answer: the name server {SERVER} sends what is no answer for"
        " node01.cluster.example (BadResponse)"
    ]
