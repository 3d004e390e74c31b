"""Interfaces have the MTU that they should have, and full packets reach the other nodes whole.

One switch port left at 1500 drops jumbo frames without a word: logins and small packets work, and
the first large transfer hangs. So each node sends a few others a small packet and a full one that
must not be cut into fragments, and only the two together tell a hole from a node that is down.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from clustercheck.check import Check, Code, Facts, Finding, fail, ok, option, skip, unknown, warn

from ._mtu_links import (
    ETHERNET,
    Link,
    in_use,
    matching,
    parse_links,
    relation,
    sizes,
    too_small_below,
)
from ._mtu_paths import judge_paths
from ._mtu_probe import PROBE
from ._mtu_remedies import (
    FEWER,
    INSTALL_IP,
    INSTALL_PING,
    LET_ICMP,
    LET_PING,
    LOOSE_LINK,
    MAKE_NAME,
    MAKE_ROUTE,
    NAME_INTERFACE,
    ONE_MTU,
    SAME_BELOW,
    SEE_OWN,
    SEE_PEER,
    SEE_ROUTE,
    SEE_SWITCH,
    SEE_TUNNEL,
    SEE_UPLINK,
    SET_MTU,
)
from ._mtu_sides import differing, leading, sides
from ._mtu_silence import silences

USUAL = 1500
SOME_PEERS = 12
ALL_PEERS = 1000


@dataclass(frozen=True)
class Options:
    mtu: Annotated[int, Ge(0), Le(65535)] = option(
        0, "MTU that interfaces should have; 0 asks only that they agree", unit="bytes"
    )
    interfaces: tuple[str, ...] = option(
        (), "interfaces that should have it (bond1, ens*); none named: those that lead to the peers"
    )
    names: str = option(
        "{host}",
        "what other nodes are tried by: {node} is a node's name and {host} what it is reached by,"
        " so {node}-data tries the data network",
    )
    ip: Literal["any", "4", "6"] = option(
        "any", "IP version that is tried: 4, 6, or any, which takes a name's first address"
    )
    all_pairs: bool = option(
        False, f"each node tries all others, {ALL_PEERS} at most, and not {SOME_PEERS}"
    )

    def __post_init__(self) -> None:
        if "{node}" not in self.names and "{host}" not in self.names:
            raise ValueError(f"names = {self.names} holds neither {{node}} nor {{host}}")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    links = parse_links(facts["interfaces"])
    lead = leading(facts)
    if not links:
        yield unknown("interface", "no interface could be seen in /sys/class/net")
    elif options.mtu:
        yield from _wanted(links, lead, options)
    else:
        yield from _as_they_are(links, lead)
    for lower, upper in too_small_below(links):
        message = f"{lower.name} ({relation(upper)}) has MTU {lower.mtu}"
        if lower.up:
            message += f", should be {upper.mtu} as {upper.name} has: larger packets are lost there"
            yield fail("below", message, SAME_BELOW)
        else:
            message += f" and no link, should be {upper.mtu} as {upper.name} has"
            yield warn("below", message, SAME_BELOW)
    yield from judge_paths(facts)


def _wanted(links: Mapping[str, Link], lead: list[str], options: Options) -> Iterator[Finding]:
    names = dict.fromkeys(name for name in lead if name in links)
    if options.interfaces:
        names = {}
        for pattern in options.interfaces:
            found = matching(links, pattern)
            names |= dict.fromkeys(found)
            if not found:
                message = f"there is no interface {pattern}, should be one with MTU {options.mtu}"
                yield fail("interface", message, NAME_INTERFACE)
    elif not names:
        message = (
            f"no interface leads to other nodes or by default: which should have {options.mtu}?"
        )
        yield unknown("interface", message, NAME_INTERFACE)
    right = []
    for name in names:
        mtu = links[name].mtu
        if mtu is None:
            yield unknown("interface", f"the MTU of {name} could not be read")
        elif mtu < options.mtu:
            yield fail("interface", f"{name} has MTU {mtu}, should be {options.mtu}", SET_MTU)
        elif mtu > options.mtu:
            message = f"{name} has MTU {mtu}, should be {options.mtu}: others may lose such packets"
            yield warn("interface", message, SET_MTU)
        else:
            right.append(links[name])
    if right:
        yield ok("interface", f"MTU {sizes(right)}, as it should be")


def _as_they_are(links: Mapping[str, Link], lead: list[str]) -> Iterator[Finding]:
    used = in_use(links, lead)
    unread = [link.name for link in used if link.mtu is None]
    small = [link for link in used if link.type == ETHERNET and 0 < (link.mtu or USUAL) < USUAL]
    if unread:
        yield unknown("interface", f"the MTU of {', '.join(unread)} could not be read")
    if small:
        message = f"MTU {sizes(small)}, less than the usual {USUAL}: a tunnel or an overlay?"
        yield warn("small", message, SEE_TUNNEL)
    rest = [link for link in used if link not in small and link.mtu is not None]
    if rest:
        yield ok("interface", f"MTU {sizes(rest)}")
    if not used:
        yield skip("interface", "no interface but loopback and containers' has a link")


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterable[tuple[str, Finding]]:
    yield from silences(facts)
    own = set()  # those whose own MTU is what others' packets end at: one cause, one finding
    for node, finding in sides(facts):
        if finding.remedy is SET_MTU:
            own.add(node)
        if finding.remedy is not SET_MTU or not options[node].mtu:  # else `judge` has said it
            yield node, finding
    for node, finding in differing({n: of for n, of in facts.items() if not options[n].mtu}):
        if node not in own:
            yield node, finding


CHECK = Check(
    title="MTU of interfaces, and full packets to other nodes",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "interface": Code(
            "The MTU of the interfaces, and whether it is the one that is wanted.",
            (SET_MTU, NAME_INTERFACE),
        ),
        "small": Code(f"An Ethernet interface with an MTU below {USUAL}.", (SEE_TUNNEL,)),
        "below": Code(
            "A bond's member, a VLAN's parent or a bridge's port has a smaller MTU than what rests"
            " on it.",
            (SAME_BELOW,),
        ),
        "differs": Code(
            "The interface has another MTU than that of the same name on most nodes.", (SET_MTU,)
        ),
        "path": Code("A full packet, not to be cut, went to the other node and back."),
        "hole": Code(
            "Small packets arrive and full ones vanish: a smaller MTU on the path that nobody tells"
            " of. Left to `side` where the other pairs of nodes tell whose fault it is.",
            (ONE_MTU, LOOSE_LINK),
        ),
        "router": Code("A router says that full packets are too big for the way on.", (ONE_MTU,)),
        "local": Code(
            "The node itself refuses to send full packets: its interface, its route, or what a"
            " router said before.",
            (SEE_ROUTE,),
        ),
        "side": Code(
            "Which side of holes is at fault, as the other pairs of nodes tell: this node's own, or"
            " what is between two groups of nodes.",
            (SEE_SWITCH, SET_MTU, SEE_UPLINK),
        ),
        "silent": Code(
            "The other node gave no answer at all; without a peer: this node gave and got none.",
            (SEE_PEER, SEE_OWN),
        ),
        "filtered": Code(
            "The other node is there, and ICMP echo is filtered; without a peer: this node's is.",
            (LET_ICMP,),
        ),
        "no_name": Code("The name that was to be tried has no address.", (MAKE_NAME,)),
        "no_route": Code("The node has no way to the other's address.", (MAKE_ROUTE,)),
        "itself": Code("The other node's name or address leads to the node itself."),
        "no_permission": Code("The login user may not ping.", (LET_PING,)),
        "no_df": Code("The node's ping cannot forbid fragments.", (INSTALL_PING,)),
        "no_ping": Code("There is no ping on the node.", (INSTALL_PING,)),
        "no_ip": Code("There is no ip on the node.", (INSTALL_IP,)),
        "untried": Code("The time was over before the peer's turn (`all_pairs`).", (FEWER,)),
    },
    probe=PROBE,
    probe_options=("mtu", "interfaces", "names", "ip"),
    root_adds="full packets to other nodes, where the user may not ping",
    limit=60,
    probe_peers=True,
    most_peers=lambda options: ALL_PEERS if options.all_pairs else SOME_PEERS,
)
