"""Name servers asked directly from this machine: real ones (dnsmasq), and some that misbehave."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.message
import dns.rcode
import pytest

from clustercheck.check import Target
from tests.dns_facts import GOOD, compared, trouble
from tests.made_up import CHECKS, options_of
from tests.name_servers import name_server, silent_server

ZONE = "cluster.example"


def asked(names: list[str], *servers: str, domain: str = ZONE) -> dict[str, dict[str, str]]:
    """The facts from here."""
    ask = CHECKS["dns"].probe_from_here
    assert ask
    options = options_of("dns", servers=servers, domain=domain)
    return {
        node: dict(facts)
        for node, facts in ask([Target(name, name) for name in names], options).items()
    }


def judged_by(server_facts: dict[str, str], *servers: str, own: str = "10.0.0.1") -> list[str]:
    told = {
        **GOOD,
        "own": f"{own} STREAM node01",
        "reverse": f"{own} node01",
        "addresses.four": own,
        "resolv.conf": "",
        **server_facts,
    }
    return trouble(told, servers=servers)


@pytest.fixture(autouse=True)
def no_servers_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests ask nobody outside, and do not depend on who is there."""
    monkeypatch.setattr("clustercheck.checks._dns_servers._text", lambda path: "")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """It knows node01 to node04; node03 has no PTR, node04 another's, and all else is unknown."""
    with name_server(
        f"local=/{ZONE}/",
        "local=/0.0.10.in-addr.arpa/",
        f"host-record=node01.{ZONE},10.0.0.1,2001:db8::1",
        f"host-record=node02.{ZONE},10.0.0.2",
        f"host-record=node02.{ZONE},10.0.0.22",
        f"address=/node03.{ZONE}/10.0.0.3",
        f"address=/node04.{ZONE}/10.0.0.4",
        f"ptr-record=4.0.0.10.in-addr.arpa,old.{ZONE}",
    ) as label:
        yield label


def test_what_a_server_knows(server: str) -> None:
    names = ["node01", "node02", "node03", "node04", "node05", f"node01.{ZONE}", "outside.test"]
    found = asked(names, server)
    said = {name: facts[f"said@{server}"].splitlines() for name, facts in found.items()}
    assert {facts["servers"] for facts in found.values()} == {f"{server} answers"}
    one = [
        f"A node01.{ZONE} NOERROR 10.0.0.1",
        f"AAAA node01.{ZONE} NOERROR 2001:db8::1",
        f"PTR 10.0.0.1 NOERROR node01.{ZONE}",
        f"PTR 2001:db8::1 NOERROR node01.{ZONE}",
    ]
    assert said["node01"] == one
    assert said[f"node01.{ZONE}"] == one
    assert said["node02"][:2] == [
        f"A node02.{ZONE} NOERROR 10.0.0.2,10.0.0.22",
        f"AAAA node02.{ZONE} NOERROR",
    ]
    assert said["node03"][-1] == "PTR 10.0.0.3 NXDOMAIN"
    assert said["node04"][-1] == f"PTR 10.0.0.4 NOERROR old.{ZONE}"
    assert said["node05"] == [f"A node05.{ZONE} NXDOMAIN"]
    assert said["outside.test"] == ["A outside.test REFUSED"]


def test_a_record_is_held_against_the_node(server: str) -> None:
    found = asked(["node01", "node03", "node04"], server)
    assert judged_by(found["node01"], server) == ["pass"]
    assert judged_by(found["node01"], server, own="10.0.0.9") == [
        f"warn hosts_contradict: node01.{ZONE} is 10.0.0.1, 2001:db8::1 by DNS, and 10.0.0.9 on "
        "the node itself (/etc/hosts?)"
    ]
    assert judged_by({**found["node03"], "hostname": "node03"} | ways("node03"), server) == [
        f"warn reverse: 10.0.0.3 has no PTR record ({server})"
    ]
    assert judged_by({**found["node04"], "hostname": "node04"} | ways("node04"), server) == [
        f"warn reverse: by PTR record 10.0.0.4 is old.{ZONE}, should be node04.{ZONE} ({server})"
    ]


def ways(name: str) -> dict[str, str]:
    address = f"10.0.0.{int(name[-2:])}"
    return {
        "own": f"{address} STREAM {name}",
        "reverse": f"{address} {name}",
        "addresses.four": address,
    }


def test_two_servers_that_disagree(server: str) -> None:
    with name_server(f"local=/{ZONE}/", f"host-record=node01.{ZONE},10.0.0.77") as stale:
        found = asked(["node01", "node02"], server, stale)
    assert judged_by(found["node01"], server, stale)[0] == (
        f"warn servers_disagree: name servers disagree: {server} says node01.{ZONE} is 10.0.0.1, "
        f"2001:db8::1; {stale} says node01.{ZONE} is 10.0.0.77"
    )


def test_a_dead_server_is_found_once_and_not_asked_a_thousand_times(server: str) -> None:
    names = [f"node{n:04}" for n in range(1000)]
    with silent_server() as silent:
        began = time.monotonic()
        found = asked(names, silent, server)
        assert time.monotonic() - began < 60
    assert found["node0007"]["servers"].splitlines() == [f"{silent} silent", f"{server} answers"]
    assert f"said@{silent}" not in found["node0007"]
    assert judged_by(found["node0007"], silent)[0] == (
        f"warn dead_server: the name server {silent} does not answer (asked from this machine)"
    )


def test_a_thousand_nodes_in_time(tmp_path: Path) -> None:
    names = [f"node{n:04}" for n in range(1000)]
    lines = [f"10.1.{n // 250}.{n % 250 + 1} {name}.{ZONE}" for n, name in enumerate(names)]
    (tmp_path / "hosts").write_text("\n".join(lines) + "\n")
    with name_server(f"local=/{ZONE}/", f"addn-hosts={tmp_path}/hosts") as server:
        found = asked(names, server)
    assert {facts["servers"] for facts in found.values()} == {f"{server} answers"}
    for n, name in enumerate(names):
        assert found[name][f"said@{server}"].endswith(
            f"PTR 10.1.{n // 250}.{n % 250 + 1} NOERROR {name}.{ZONE}"
        )


def test_a_port_where_nobody_listens() -> None:
    with silent_server() as label:
        pass  # the port is free again
    found = asked(["node01"], label)
    assert found["node01"]["servers"] == f"{label} closed Connection refused"


def test_a_server_that_refuses_all() -> None:
    with name_server() as label:
        found = asked(["node01", "node02"], label)
    assert found["node01"]["servers"] == f"{label} refuses REFUSED"
    assert judged_by(found["node01"], label) == [
        f"warn refused: the name server {label} says REFUSED for every question about nodes"
    ]


@contextlib.contextmanager
def replying(reply: Callable[[dns.message.Message], bytes | None]) -> Iterator[str]:
    """A server of our own making, for what no real one says on request."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.settimeout(0.1)
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    question, client = taken.recvfrom(4096)
                    answer = reply(dns.message.from_wire(question))
                    if answer is not None:
                        taken.sendto(answer, client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{taken.getsockname()[1]}"
        done.set()
        thread.join()


def failing(question: dns.message.Message, name: str = "node02") -> bytes:
    """SERVFAIL for one name, no such name for the others."""
    answer = dns.message.make_response(question)
    about = question.question[0].name.to_text()
    answer.set_rcode(dns.rcode.SERVFAIL if about.startswith(name) else dns.rcode.NXDOMAIN)
    return answer.to_wire()


def test_a_server_that_fails_for_one_name() -> None:
    with replying(failing) as label:
        found = asked(["node01", "node02"], label)
    assert found["node01"]["servers"] == f"{label} answers"
    assert judged_by(found["node01"], label) == ["pass"]
    assert judged_by(found["node02"], label) == [
        f"warn servfail: the name server {label} says SERVFAIL for node02.{ZONE}"
    ]


def test_a_server_that_loses_questions_about_one_name() -> None:
    def reply(question: dns.message.Message) -> bytes | None:
        silent = question.question[0].name.to_text().startswith("node02")
        return None if silent else failing(question)

    with replying(reply) as label:
        found = asked(["node01", "node02"], label, domain="")
    assert judged_by(found["node02"], label) == [
        f"warn no_answer: the name server {label} does not answer for node02, though it does for "
        "others"
    ]


def test_garbage_in_place_of_an_answer() -> None:
    with replying(lambda question: b"\0" * 3) as label:
        found = asked(["node01"], label)
    assert found["node01"]["servers"] == f"{label} closed it sends what is no answer"


def test_names_that_no_server_knows_are_no_fault_where_none_is_known(server: str) -> None:
    found = asked(["node07", "node08"], server)
    nodes = {
        name: {**GOOD, "hostname": name, "own": f"10.0.0.{name[-1]}", **facts, "resolv.conf": ""}
        for name, facts in found.items()
    }
    assert compared(nodes, servers=(server,)) == []
