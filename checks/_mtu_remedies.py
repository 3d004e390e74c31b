"""What to do about an MTU that differs, or a path that cannot be tried."""

from clustercheck.check import Remedy

ONE_MTU = Remedy(
    "Find the hop that is smaller: every interface and every switch port on the path needs the same"
    " MTU (9000 on hosts, and as much or more on switch ports). Look at the switch port first:"
    " hosts that can be logged in to have mostly been looked at. Try hop by hop with"
    " `ping -M do -s 8972 NODE` (`-s 8952` for IPv6; 1472 and 1452 where 1500 is meant). Until it"
    " is found, giving the hosts the size that does arrive lets work go on. A new MTU may take a"
    " link down for a moment.",
    "§5.3",
    disturbs=True,
)
SET_MTU = Remedy(
    "See first that the switch ports and all other hosts of the segment have that MTU. Then set it"
    " where the interface is set up, so that the next boot keeps it (`nmcli connection modify NAME"
    " 802-3-ethernet.mtu 9000`, `mtu:` for netplan, MTU= for ifcfg files and systemd-networkd),"
    " while the node is drained: the link may go down for a moment. `ip link set` alone is lost at"
    " the next boot.",
    "§5.3",
    disturbs=True,
)
SAME_BELOW = Remedy(
    "Give what lies below at least the MTU of what rests on it: set it on the bond or bridge and"
    " on each member, and on a VLAN's parent, in the files that set them up; `ip -d link` shows"
    " what rests on what. Do it while the node is drained.",
    "§5.3",
    disturbs=True,
)
SEE_TUNNEL = Remedy(
    "See whether it is meant: a tunnel, an overlay network or a cloud takes some bytes of each"
    " packet. If so, say `mtu = …` for this check with the size that is right here.",
    "§5.3",
)
NAME_INTERFACE = Remedy(
    "Set the option `interfaces` to names that this node has (`ip link` lists them), for a group"
    " of nodes by `mtu.interfaces = …` in its variables; or plug in or set up what is missing.",
)
SEE_ROUTE = Remedy(
    "Look at `ip route get ADDRESS` on the node: a route may have an mtu of its own, and a router"
    " that once said `too big` is remembered for ten minutes (`cache … mtu`; `ip route flush"
    " cache` forgets it). What the router said points to the hop that is smaller.",
    "§5.3",
)
LOOSE_LINK = Remedy(
    "Look for one link of several that is smaller: a bond's or a switch's member port, one of"
    " several equal routes. Which one a packet takes depends on its addresses, so some pairs of"
    " nodes work. Compare the MTU of all member ports on the switches between them.",
    "§5.3",
)
SEE_SWITCH = Remedy(
    "Look at this node's own cable: the switch port (and its VLAN and channel group) that it ends"
    " in, then the interface. Its peers reach each other; so where the same is said of several"
    " nodes of one rack, look at the uplink of their switch first.",
    "§5.3",
)
SEE_UPLINK = Remedy(
    "Nothing is wrong with the nodes or their own ports. Look at what is between the switches of"
    " the groups: the uplinks, each member port of a channel group, a router or firewall. Every"
    " port on the way needs an MTU as large as the nodes' or larger, on both ends.",
    "§5.3",
)
SEE_PEER = Remedy(
    "Look whether the other node is up and has that address on this network (`ip neigh` on this"
    " node), and whether a firewall drops echo requests: this check needs them. Where data goes by"
    " other names than logins, set the option `names`."
)
SEE_OWN = Remedy(
    "Look on this node at the interface of that network (`ip -brief address`, `ip -s link`), at its"
    " cable and switch port, and whether a firewall drops echo requests: this check needs them."
)
LET_ICMP = Remedy(
    "Let ICMP echo pass between the nodes, and on every firewall `fragmentation needed` (IPv4) and"
    " `packet too big` (IPv6): without these two, connections hang wherever an MTU is smaller."
)
MAKE_NAME = Remedy(
    "Make the name known to the nodes (`getent hosts NAME` there; the check dns looks closer), or"
    " set the option `names` to names or addresses that they know."
)
MAKE_ROUTE = Remedy(
    "Look at `ip route get ADDRESS` and `ip address` on the node: the interface of that network may"
    " be down or without an address. Where the nodes do not share that network, set `names`."
)
LET_PING = Remedy(
    "Let ping send: set become = sudo, or as root give its file the right (`setcap cap_net_raw+p"
    " $(command -v ping)`) or all users (`sysctl net.ipv4.ping_group_range='0 2147483647'`, kept"
    " in a file below /etc/sysctl.d)."
)
INSTALL_PING = Remedy(
    "Install ping of iputils (the package iputils, on Debian iputils-ping): it can forbid that a"
    " packet is cut into fragments, without which a large one proves nothing."
)
INSTALL_IP = Remedy("Install iproute2: its `ip` says by which interface a node is reached.")
FEWER = Remedy(
    "Mend first what keeps others waiting (peers that are silent or lose large packets), or leave"
    " `all_pairs` off: twelve peers a node find a bad port as surely."
)
