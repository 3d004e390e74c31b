"""What to do about a link that is missing, slow or losing packets."""

from clustercheck.check import Remedy

NAME_INTERFACE = Remedy(
    "Set the option `interfaces` to names that this node has (`ip link` lists them), for a group"
    " of nodes by `link.interfaces = …` in its variables; or set up or plug in what is missing.",
)
PLUG_IN = Remedy(
    "Look at both ends of the cable: is the switch port on, does the optic fit both ends, is the"
    " card set to the network that the cable belongs to? `ethtool NAME` and `dmesg` on the node say"
    " why there is no link; `ip link set NAME up` switches on an interface that is off, until the"
    " next boot.",
    "§2.3",
)
FASTER = Remedy(
    "Compare what both ends offer (`ethtool NAME`, and the switch port): a port that is set to a"
    " speed by hand, a cable or a breakout of the wrong kind, or a broken pair make it slower. Let"
    " both ends negotiate, then try another cable, another switch port, another card, in this"
    " order, while the node is drained: the link goes down. Where the speed is meant, say so with"
    " `speed` for these nodes.",
    "§2.3",
    disturbs=True,
)
NEGOTIATE = Remedy(
    "Let both ends negotiate (`ethtool -s NAME autoneg on`, and the same on the switch port):"
    " where only one end is set by hand, the other falls back to half duplex. Do it while the node"
    " is drained: the link goes down for a moment.",
    "§2.3",
    disturbs=True,
)
TELL_SPEED = Remedy(
    "Take the interface out of `interfaces`, or set `speed` to 0 for these nodes: virtual cards"
    " and some drivers tell no speed.",
)
CLEAN = Remedy(
    "Look twice, some minutes of traffic apart (`ip -s link show NAME`). Where the number grows,"
    " clean or change the cable or optic (`ethtool -m NAME` shows an optic's light), see that both"
    " ends use the same error correction (`ethtool --show-fec NAME`), then try another switch port."
    " Where it does not, the cause is past: the count begins anew at the next boot.",
    "§2.3",
)
MAKE_ROOM = Remedy(
    "Look whether the count grows under load (`ip -s -s link show NAME`). Then give the card more"
    " room (`ethtool -g NAME` shows it, `-G NAME rx N` sets it and may take the link down for a"
    " moment), spread its interrupts over the cores of its own socket, and see whether the card"
    " sits in a slot with fewer PCIe lanes than it wants.",
    "§2.3",
    disturbs=True,
)
HOLD_LINK = Remedy(
    "See when it was lost (`journalctl -k -g 'link is'`; the switch has the same in its log)."
    " Changes at boots and at work on the switch are well; else change the cable or optic, then the"
    " switch port. With classic spanning tree each change costs 30 s without traffic: make the"
    " ports of nodes edge ports.",
    "§2.3",
)
