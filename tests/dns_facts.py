"""Facts of the check dns for a node that is well, to be changed by the tests."""

from clustercheck.check import Facts
from tests.made_up import CHECKS, judged, options_of

SERVER, OTHER = "10.0.0.53", "10.0.0.54"
A = "A node01.cluster.example NOERROR"
BACK = "PTR 10.0.0.1 NOERROR node01.cluster.example"
SAID, SAID_OTHER = f"said@{SERVER}", f"said@{OTHER}"
# /proc/net/udp and udp6 on a machine whose first byte of a word is the least
SERVER_HEX, SIX_HEX = "3500000A:0035", "000099FD000000000000000035000000:0035"

GOOD = {
    "hostname": "node01",
    "addresses.four": "127.0.0.1\n10.0.0.1",
    "addresses.six": "00000000000000000000000000000001",
    "resolv.conf.file": "read",
    "resolv.conf": f"search cluster.example\nnameserver {SERVER}\nnameserver {OTHER}",
    "upstream.file": "absent",
    "nsswitch.conf.file": "read",
    "services": "files dns",
    "hosts.file": "read",
    "hosts": "",
    "asked": "2 1",
    "own": "10.0.0.1        STREAM node01.cluster.example\n10.0.0.1 DGRAM\n10.0.0.1 RAW",
    "reverse": "10.0.0.1        node01.cluster.example",
    "names": "sum4 0 0 0\nsum6 0 0 0\nnames 0 0 0",
    "servers": f"{SERVER} answers\n{OTHER} answers",
}


def trouble(told: dict[str, str], **options: object) -> list[str]:
    """What the judge finds besides what is well; ["pass"] where that is nothing."""
    return [x for x in judged("dns", told, **options) if not x.startswith("pass")] or ["pass"]


def compared(nodes: dict[str, dict[str, str]], **options: object) -> list[str]:
    """What shows between nodes, as "node status code: message"."""
    compare = CHECKS["dns"].compare
    assert compare
    told = {name: Facts(facts) for name, facts in nodes.items()}
    found = list(compare(told, dict.fromkeys(told, options_of("dns", **options))))
    for _, finding in found:
        assert finding.remedy in CHECKS["dns"].codes[finding.code].remedies
    return [f"{name} {f.status.value} {f.code}: {f.message}" for name, f in found]
