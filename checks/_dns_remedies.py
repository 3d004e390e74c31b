"""What to do about names that do not resolve, or not to what they should."""

from clustercheck.check import Remedy

ADD_RECORD = Remedy(
    "Give the name that Slurm uses (NodeName, NodeAddr) an address in DNS, or a line in /etc/hosts "
    "on every node, and look at it with `getent ahosts NAME`: nslookup and dig do not read "
    "/etc/hosts.",
    "§4.1.2",
)
OWN_LINE = Remedy(
    "Take the node's own name off the line with the loopback address in /etc/hosts (installers "
    "write `127.0.1.1 NAME`), and give it the line `ADDRESS NAME.DOMAIN NAME` with the address "
    "that other nodes reach. Where cloud-init writes the file, set manage_etc_hosts: false. For "
    "a node on which no parallel job runs, own_loopback = warn or allow.",
    "§4.1.2",
)
OWN_ADDRESS = Remedy(
    "Compare `ip -brief address` on the node with the record in /etc/hosts or DNS. One of the "
    "two is old: correct the record, or give the interface its address.",
    "§4.1.2",
)
REACHED_ADDRESS = Remedy(
    "Give the node's name the address by which other nodes reach it, in DNS or as the line "
    "`ADDRESS NAME.DOMAIN NAME` in /etc/hosts; `ip -brief address` shows what there is. The "
    "addresses of bridges (virbr0, docker0) and of a service processor's card are the same on "
    "every node.",
    "§4.1.2",
)
ADD_REVERSE = Remedy(
    "Add the PTR record, or the address to /etc/hosts. Slurm does not need it; Kerberos, "
    "some licence servers and host-based rules do. Where the site has no use for it, set "
    "reverse = ignored.",
    "§4.1.2",
)
SAME_TABLE = Remedy(
    "Compare /etc/hosts, /etc/nsswitch.conf and /etc/resolv.conf of this node with those of "
    "another one (`getent ahosts NAME` on both shows the difference), and take the files from "
    "where all nodes have theirs. A cache may keep old addresses: `nscd -i hosts`, `sss_cache -E` "
    "or `resolvectl flush-caches` empty it.",
    "§4.1.2",
)
HOSTS_OR_DNS = Remedy(
    "Find out which address is right (`ip -brief address` on the node), and correct the other "
    "place: /etc/hosts on the nodes, or the record in DNS.",
    "§4.1.2",
)
SAME_ZONE = Remedy(
    "Ask each server by itself (`dig @SERVER NAME`). A server that has an old zone does not get "
    "its transfers: compare the serial numbers (`dig @SERVER DOMAIN SOA`).",
)
MEND_SERVER = Remedy(
    "Look at the name server itself and at the firewall before it (UDP and TCP port 53). Until it "
    "is back, put a server that answers first in resolv.conf, through whatever writes that "
    "file; `options timeout:1 attempts:2` shortens the wait.",
    "§4.1.2",
)
ALLOW_QUESTIONS = Remedy(
    "Let the server answer this network: look at its rules for who may ask (bind: allow-query, "
    "allow-recursion; unbound: access-control). A server that has only zones of its own refuses "
    "all others: it is no server for resolv.conf.",
)
MEND_ZONE = Remedy(
    "Look in the server's log why it cannot answer: a zone that could not be loaded, a forwarder "
    "that does not answer, a signature (DNSSEC) that does not fit.",
)
ONE_SEARCH = Remedy(
    "Put all domains in one line `search DOMAIN DOMAIN` in resolv.conf: of several search and "
    "domain lines the last alone counts. Change what writes the file (NetworkManager, "
    "netplan, dhclient), or the line comes back.",
)
THREE_SERVERS = Remedy(
    "Name three servers at most: glibc does not ask any further ones. A local cache "
    "(systemd-resolved, unbound, dnsmasq) may ask more.",
)
READABLE = Remedy(
    "Let all users read the file (mode 644): programs of ordinary users resolve names with it.",
)
LESS_NAMES = Remedy(
    "Look at the name servers' answer times from the node; or set all_names = no, and the nodes "
    "do not try each other's names.",
    "§4.1.2",
)
