"""What to do about a bond that is not whole."""

from clustercheck.check import Remedy

MAKE_BOND = Remedy(
    "Set the option `bonds` to names that this node has (`ls /proc/net/bonding`), for a group of"
    " nodes by `bond.bonds = …` in its variables; or set up what is missing.",
)
BRING_BACK = Remedy(
    "Look at the member's own cable: switch port, optic, card (`ethtool NAME`, `dmesg`). The others"
    " carry its traffic, so there is time to do it while the node is drained; but when the next one"
    " fails the node is gone.",
    "§2.3",
)
BRING_UP = Remedy(
    "Look at what all its members share: the switch and its ports, the card, the driver (`ethtool"
    " NAME`, `dmesg`). With ARP watching (arp_ip_target) see whether the target answers: when it"
    " does not, every member is called down. A member that has no carrier and is still used is"
    " taken out by `ip link set MEMBER nomaster` until its cable is well, and the bond needs"
    " miimon.",
    "§2.3",
    disturbs=True,
)
ADD_MEMBER = Remedy(
    "See whether the missing interface is there at all (`ip link`): a card that is gone needs a"
    " look at `dmesg` and its slot. One that is there belongs in the files that set the bond up, so"
    " that the next boot keeps it. Where fewer are meant, set `members` for these nodes.",
    "§2.3",
)
SET_UP_CHANNEL = Remedy(
    "On the switch, put the ports of all members into one channel group with LACP (active or"
    " passive), the same VLANs and the same speed; on two switches they must be a pair that acts as"
    " one (MLAG). `cat /proc/net/bonding/NAME` as root shows the partner's address and key of each"
    " member: they must be equal. One connection uses one member all the same.",
    "§2.3",
)
SAME_SPEED = Remedy(
    "Bring all members to one speed: look at the slow one's cable and switch port (`ethtool NAME`)."
    " Of unequal ones an LACP bond uses only those of one speed, and other modes send as much to"
    " the slow one as to the fast. Where a slow one is meant as a spare, use active-backup with"
    " `primary` set to the fast one.",
    "§2.3",
)
WATCH = Remedy(
    "Set `miimon=100` among the bond's options in the files that set it up (or arp_interval and"
    " arp_ip_target), and take it up anew while the node is drained: without it the bond never"
    " notices that a member's cable is out.",
    "§2.3",
    disturbs=True,
)
SEE_AS_ROOT = Remedy(
    "Use become = sudo, or look at `cat /proc/net/bonding/NAME` as root: older kernels tell an"
    " ordinary user nothing of the switch's side."
)
