"""The check retrans, on the kernel's tables, what ss printed, and a network that loses packets."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.made_up import MadeUpNode, judged
from tests.network import Switch, needed
from tests.shells import SHELLS

DATA = Path(__file__).parent.parent / "data" / "retrans"
SNMP = (DATA / "snmp-6.18.txt").read_text()
NETSTAT = (DATA / "netstat-6.18.txt").read_text()


@pytest.fixture
def made(tmp_path: Path) -> MadeUpNode:
    node = MadeUpNode(tmp_path)
    node.says("ss")
    return node


def table(text: str, kind: str, **changed: int) -> str:
    """The kernel's table with some numbers changed."""
    titles, numbers = re.findall(rf"^{kind}: (.*)$", text, re.MULTILINE)
    of = dict(zip(titles.split(), numbers.split(), strict=True))
    assert set(changed) <= set(of)
    of |= {title: str(number) for title, number in changed.items()}
    return text.replace(f"{kind}: {numbers}", f"{kind}: {' '.join(of.values())}")


def put(
    made: MadeUpNode,
    sent: int,
    again: int,
    asking: int = 0,
    needless: int = 0,
    *,
    uptime: str = "86400.00",
) -> None:
    """TCP's counters at a moment."""
    made.file("/proc/net/snmp", table(SNMP, "Tcp", OutSegs=sent, RetransSegs=again))
    extra = {"TCPSynRetrans": asking, "TCPDSACKRecv": 1, "TCPDSACKRecvSegs": needless}
    made.file("/proc/net/netstat", table(NETSTAT, "TcpExt", **extra))
    made.file("/proc/uptime", f"{uptime} 1000.00\n")


def put_later(made: MadeUpNode, sent: int, again: int, asking: int = 0, needless: int = 0) -> None:
    """The counters that the second look and those after it see."""
    later = made.root / "later"
    later.mkdir()
    node = MadeUpNode(later)
    put(node, sent, again, asking, needless, uptime="86401.00")
    made.command("sleep", f"{OF_THE_PROBE} && cp -r {node.root}/. {made.root}; exec /bin/sleep 0.1")


# the script itself sleeps too
OF_THE_PROBE = "tr '\\0' ' ' </proc/$PPID/cmdline | grep -q 'probes retrans'"


def said(made: MadeUpNode, **changed: Any) -> list[str]:
    return judged("retrans", made.probe("retrans", **changed), **changed)


def test_the_kernels_tables_as_they_are(made: MadeUpNode) -> None:
    made.file("/proc/net/snmp", SNMP)
    made.file("/proc/net/netstat", NETSTAT)
    made.file("/proc/uptime", "86400.00 1000.00\n")
    told: dict[str, str] = {}
    for text in (SNMP, NETSTAT):
        for titles, numbers in re.findall(r"^Tcp\w*: (.*)\nTcp\w*: (.*)$", text, re.MULTILINE):
            told |= dict(zip(titles.split(), numbers.split(), strict=True))
    names = ("OutSegs", "RetransSegs", "TCPSynRetrans", "TCPDSACKRecvSegs")
    look = " ".join(("86400.00", *(told[name] for name in names)))
    assert made.probe("retrans")["looks"].splitlines() == [look, look]
    assert said(made)[0].startswith("pass boot: ")


@pytest.mark.parametrize(
    ("sample", "found"),
    [("ss-tni-retrans", "")],  # all 486 that were sent again had arrived: dsack_dups:486
)
def test_samples_of_ss(made: MadeUpNode, sample: str, found: str) -> None:
    """The peer that something is lost to is named where too much is on the whole."""
    made.says("ss", (DATA / "samples" / f"{sample}.txt").read_text())
    put(made, 10_000_000, 200_000)
    assert said(made) == [
        "warn boot: 2 % of 10000000 segments since boot were lost, should be 1 % at most; too few"
        f" to tell now (0 within 0.0 s){found}"
    ]


@pytest.mark.parametrize(("needless", "share"), [(0, "0.0078 %"), (486, "0 %")])
def test_a_node_with_the_samples_connection_alone_is_well(
    made: MadeUpNode, needless: int, share: str
) -> None:
    put(made, 0, 0)
    text = (DATA / "samples" / "ss-tni-retrans.txt").read_text()
    sent, again = re.search(r"segs_out:(\d+)", text), re.search(r"retrans:\d+/(\d+)", text)
    assert sent and again
    put_later(made, int(sent[1]), int(again[1]), needless=needless)
    assert said(made) == [
        f"pass now: {share} of 6231680 segments were lost within 1.0 s ({share} of 6231680"
        " segments since boot)"
    ]


@pytest.mark.parametrize(
    ("boot", "later", "found"),
    [
        (
            (50_000_000, 1000),
            (50_090_000, 1810),
            "pass now: 0.9 % of 90000 segments were lost within 1.0 s (0.0036 % of 50090000"
            " segments since boot)",
        ),
        (
            (50_000_000, 1000),
            (50_090_000, 2800),
            "warn now: 2 % of 90000 segments were lost within 1.0 s, should be 1 % at most"
            " (0.0056 % of 50090000 segments since boot)",
        ),
        (  # what is past is past
            (50_000_000, 1_000_000),
            (50_090_000, 1_000_009),
            "pass now: 0.01 % of 90000 segments were lost within 1.0 s (2 % of 50090000 segments"
            " since boot)",
        ),
        (
            (50_000_000, 1000),
            (50_009_000, 1500),
            "pass boot: 0.003 % of 50009000 segments since boot were lost; too few segments to tell"
            " now (9000 within 1.0 s)",
        ),
        (
            (50_000_000, 1_000_000),
            (50_000_004, 1_000_000),
            "warn boot: 2 % of 50000004 segments since boot were lost, should be 1 % at most; too"
            " few to tell now (4 within 1.0 s)",
        ),
        (
            (90_000, 45_000),
            (90_004, 45_000),
            "skip now: too few segments to tell: 4 within 1.0 s, 90004 since boot",
        ),
        (  # a host that does not answer is no loss of the network's
            (50_000_000, 1_000_000, 999_000),
            (50_090_000, 1_009_000, 1_008_000),
            "pass now: 0 % of 90000 segments were lost within 1.0 s (0.002 % of 50090000 segments"
            " since boot)",
        ),
        (  # nor is what had arrived
            (50_000_000, 1_000_000, 0, 999_000),
            (50_090_000, 1_009_000, 0, 1_008_001),
            "pass now: 0 % of 90000 segments were lost within 1.0 s (0.002 % of 50090000 segments"
            " since boot)",
        ),
        (
            (50_000_000, 1000),
            (10, 0),
            "unknown now: the counters of TCP went back between two looks",
        ),
    ],
)
def test_two_looks(
    made: MadeUpNode, boot: tuple[int, ...], later: tuple[int, ...], found: str
) -> None:
    put(made, *boot)
    put_later(made, *later)
    assert said(made) == [found]


def test_limits_of_ones_own(made: MadeUpNode) -> None:
    put(made, 50_000_000, 1000)
    put_later(made, 50_000_600, 1003)
    facts = made.probe("retrans", segments=500)
    assert judged("retrans", facts, segments=500)[0].startswith("pass now: 0.5 % of 600")
    assert judged("retrans", facts, segments=500, percent=0.1)[0].startswith("warn now: 0.5 %")


def test_tables_that_cannot_be_read_are_not_known(made: MadeUpNode) -> None:
    unknown = ["unknown now: the counters of TCP could not be read from /proc/net/snmp"]
    assert said(made) == unknown
    made.file("/proc/net/snmp", "Tcp: OutSegs\nTcp: many\n")
    assert said(made) == unknown


def test_an_old_kernel_without_the_second_table(made: MadeUpNode) -> None:
    put(made, 50_000_000, 5000)
    (made.root / "proc/net/netstat").unlink()
    assert said(made)[0].startswith("pass boot: 0.01 % of 50000000 segments since boot were lost")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_tells_the_same(made: MadeUpNode, shell: str) -> None:
    made.says("ss", (DATA / "samples" / "ss-tni-retrans.txt").read_text())
    put(made, 10_000_000, 200_000, 17)
    facts = made.probe("retrans", shell=shell)
    assert facts == made.probe("retrans")
    assert facts["looks"] == "86400.00 10000000 200000 17 0\n86400.00 10000000 200000 17 0"
    assert "10.20.0.101" in facts["connections"]


SS = """\
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      0      127.0.0.1:22 127.0.0.1:41000
\t cubic rto:204 segs_out:900 retrans:0/90
ESTAB 0      0      [::ffff:10.0.0.1]:22 [::ffff:10.0.0.2]:41000
\t cubic rto:204 bytes_sent:1000000 bytes_retrans:10000 segs_out:9000 data_segs_out:1000 retrans:1/5
ESTAB 0      0      [fd00::1]:22 [fd00::9]:41000 timer:(keepalive,54min,0)
\t cubic rto:204 segs_out:900 data_segs_out:500 retrans:0/90 dsack_dups:20
ESTAB 0      0      [fd00::1]:22 [fd00::9]:41001
\t cubic rto:204 segs_out:900 data_segs_out:500
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SS, "; most to fd00::9, 7 % of 1000 segments"),
        (SS.split("\n", 1)[1], "; most to fd00::9, 7 % of 1000 segments"),  # ss -H
        (SS.split("ESTAB 0      0      [fd00")[0], "; most to 10.0.0.2, 0.5 % of 1000 segments"),
        (  # of Linux 3.10
            "ESTAB 0 0 10.0.0.1:22 10.0.0.2:41000\n\t cubic rto:204 retrans:0/45 segs_out:900",
            "; most to 10.0.0.2, 5 % of 900 segments",
        ),
        ("", ""),
        ("Error: ss: something", ""),
    ],
)
def test_the_peer_that_most_is_lost_to(text: str, found: str) -> None:
    look = "100.00 10000000 200000 0 0"
    facts = {"looks": f"{look}\n{look}", "connections": text}
    assert judged("retrans", facts)[0].partition("(0 within 0.0 s)")[2] == found


SEND = """
    import socket
    connection = socket.create_connection(("10.77.0.2", 9999))
    print(flush=True)
    while True:
        connection.send(bytes(65536))
"""
RECEIVE = """
    import socket
    server = socket.create_server(("", 9999))
    print(flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 20):
        pass
"""
LOSE = """
nft add table inet t
nft 'add chain inet t c { type filter hook input priority 0; }'
nft add rule inet t c tcp dport 9999 numgen random mod 100 '<' 5 drop
"""


@pytest.mark.parametrize("loses", [False, True])
def test_a_network_that_loses_packets(tmp_path: Path, loses: bool) -> None:
    with Switch(tmp_path) as switch:
        near, far = switch.node("near"), switch.node("far")
        near.await_answer("10.77.0.2")
        if loses:
            far.run(LOSE.replace("nft", needed("nft")))
        started = []
        for node, text in ((far, RECEIVE), (near, SEND)):
            words = [*node.enter, sys.executable, "-c", textwrap.dedent(text)]
            process = subprocess.Popen(words, stdout=subprocess.PIPE)
            started.append(process)
            assert process.stdout
            process.stdout.readline()  # it listens, it is connected
        try:
            told = near.told([], check="retrans", seconds=2, segments=100)
        finally:
            for process in reversed(started):
                process.kill()
                process.communicate()
    found = judged("retrans", told.facts, segments=100)[0]
    assert told.whole
    if loses:
        assert re.match(r"warn now: [0-9.]+ % of \d+ segments were lost within", found)
        assert "most to 10.77.0.2" in found
    else:
        assert re.match(r"pass now: 0(\.\d+)? % of \d+ segments were lost within", found)
