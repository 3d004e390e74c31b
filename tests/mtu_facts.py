"""Facts of the check mtu and made-up interfaces, for its tests."""

from collections.abc import Mapping
from typing import Any

from clustercheck import facts, verdict
from clustercheck.check import Facts, Finding
from tests.made_up import CHECKS, MadeUpNode, options_of

CHECK = CHECKS["mtu"]


def link(name: str, mtu: int | str, about: str = "") -> str:
    """A line of the fact `interfaces`: a real card that is up, but for the words of `about`.

    about: "down", a kind ("bond", "veth"), "on=UPPER" for what rests on it.
    """
    state, carrier, kind, upper = "up", "1", "real", "-"
    for word in about.split():
        if word == "down":
            state, carrier = "down", "0"
        elif word.startswith("on="):
            upper = "," + word.removeprefix("on=")
        else:
            kind = word.replace("veth", "-")
    return f"{name} {mtu} {state} {carrier} 1 2 2 {kind} {upper} -"


def node(*links: str, default: str = "", **about: str) -> dict[str, str]:
    """The facts of a node without peers."""
    told = {"interfaces": "\n".join(links), "default": default, "peers": "0"}
    return {**told, **about}


def peer(
    name: str,
    full: str,
    passes: int = 0,
    fails: int = 0,
    *,
    size: int = 9000,
    device: str = "eth0",
    mtu: int = 9000,
) -> dict[str, str]:
    """The facts about a peer that a small packet reached."""
    told = {
        "target": name,
        "small": "arrives",
        "dev": device,
        "mtu": str(mtu),
        "size": str(size),
        "full": full,
    }
    if passes:
        told |= {"passes": str(passes), "fails": str(fails or passes + 1)}
    return {f"{key}@{name}": value for key, value in told.items()}


def with_peers(*peers: Mapping[str, str], mtu: int = 9000, ping: str = "ready") -> dict[str, str]:
    """The facts of a node with eth0 and these peers."""
    told = node(link("eth0", mtu), peers=str(len(peers)), ping=ping)
    for one in peers:
        told.update(one)
    return told


def findings(told: Mapping[str, str], **changed: Any) -> list[Finding]:
    """The findings on one node, all its peers asked for; each must be declared."""
    of = Facts(told)
    found = verdict.judge(
        CHECK,
        facts.Told(of, whole=True, status="0"),
        options_of("mtu", **changed),
        peers=list(of.at("target")),
    )
    hold_to_declared(found)
    return found


def hold_to_declared(found: list[Finding]) -> None:
    """Each finding has a code and a remedy that `explain` knows."""
    declared = {**verdict.COMMON_CODES, **CHECK.codes}
    for finding in found:
        assert finding.code in declared
        assert finding.remedy is None or finding.remedy in declared[finding.code].remedies, finding


def said(told: Mapping[str, str], **changed: Any) -> list[str]:
    """The findings as "status code: message", with the peer where there is one."""
    return [
        f"{f.status.value} {f.code}{f' {f.peer}' if f.peer else ''}: {f.message}"
        for f in findings(told, **changed)
    ]


def compared(nodes: Mapping[str, Mapping[str, str]], **changed: Any) -> dict[str, list[str]]:
    """What comparing the nodes adds, by node."""
    assert CHECK.compare
    options = {name: options_of("mtu", **changed) for name in nodes}
    added: dict[str, list[str]] = {}
    for name, f in CHECK.compare({n: Facts(told) for n, told in nodes.items()}, options):
        hold_to_declared([f])
        words = f"{f.status.value} {f.code}{f' {f.peer}' if f.peer else ''}: {f.message}"
        added.setdefault(name, []).append(words)
    return added


def put_link(
    made: MadeUpNode,
    name: str,
    mtu: int,
    *,
    state: str = "up",
    type: int = 1,
    kind: str = "real",
    index: int = 2,
    master: str = "",
) -> None:
    """Files of an interface below /sys/class/net, as the kernel has them."""
    place = f"/sys/class/net/{name}"
    for file, value in {
        "mtu": str(mtu),
        "operstate": state,
        "carrier": "1" if state in ("up", "unknown") else "0",
        "type": str(type),
        "ifindex": str(index),
        "iflink": str(index),
        "uevent": f"INTERFACE={name}\nIFINDEX={index}",
    }.items():
        made.file(f"{place}/{file}", value + "\n")
    if kind == "real":
        made.file(f"{place}/device/vendor", "0x15b3\n")
    elif kind == "bond":
        made.file(f"{place}/bonding/slaves", "\n")
    elif kind == "bridge":
        made.file(f"{place}/bridge/bridge_id", "\n")
    elif kind:
        made.file(f"{place}/uevent", f"DEVTYPE={kind}\nINTERFACE={name}\n")
    if master:
        made.file(f"{place}/upper_{master}/mtu", "")
        made.file(f"/sys/class/net/{master}/lower_{name}/mtu", "")
