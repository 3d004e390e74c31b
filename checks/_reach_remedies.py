"""What to do about nodes that do not reach each other."""

from clustercheck.check import Remedy

OPEN_HERE = Remedy(
    "Look on this node what listens and at which address (`ss -ltn`), and what its firewall lets in"
    " (`firewall-cmd --list-all`, `nft list ruleset`), and compare both with another node of its"
    " kind. Where nodes are not to reach each other by SSH, say so with `ssh = no`."
)
OPEN_OUT = Remedy(
    "Look on this node at its addresses and routes to the others (`ip address`, `ip route get"
    " ADDRESS`), and at what its firewall lets out (`nft list ruleset`), and compare them with"
    " another node of its kind."
)
SEE_PAIR = Remedy(
    "Look for what concerns these two nodes alone: an old address of the other one here (`getent"
    " ahosts NAME`, `ip neigh`), a rule of a firewall between networks, or this address banned"
    " there for a while (fail2ban, PerSourcePenalties of sshd)."
)
SEE_PEER = Remedy(
    "Look on the other node what listens (`ss -ltn`) and what its firewall lets in, and from this"
    " one whether it has the right address for it (`getent ahosts NAME`). Where nodes are not to"
    " reach each other by SSH, say so with `ssh = no`."
)
ADD_KEYS = Remedy(
    "Take the public host keys from the node itself (/etc/ssh/ssh_host_*_key.pub) into the file"
    " ssh_known_hosts from where all nodes have theirs, and bring it to all of them. What"
    " `ssh-keyscan` tells over the network is worth as much as the network is."
)
SAME_FILE = Remedy(
    "Bring /etc/ssh/ssh_known_hosts to this node from where all nodes have theirs: others know"
    " those host keys."
)
OTHER_KEYS = Remedy(
    "If the node was installed anew, take its new public host keys (/etc/ssh/ssh_host_*_key.pub on"
    " it) into ssh_known_hosts, and bring the file to all nodes, or give the node its old host keys"
    " back. If nobody did that, find out first which machine answers at its address."
)
INSTALL = Remedy(
    "Install bash, or what has ssh-keyscan (openssh-clients, openssh-client or openssh-keyscan, as"
    " the distribution calls it), on the node."
)
