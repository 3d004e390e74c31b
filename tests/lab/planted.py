"""The faults that are planted in the tests' cluster, and what must be found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.lab import faults
from tests.lab.spec import (
    CLOSED,
    DISTRUSTING,
    FIRST,
    FROZEN,
    LATE,
    LATER,
    NOBODY,
    OLD_NAMES,
    SERVICES,
    STRANGER,
    Spec,
    address,
    healthy,
    time_client,
    with_data6,
)

HEALTHY = [with_data6(spec) for spec in healthy(3)]


@dataclass(frozen=True)
class Planted:
    """A fault on a node.

    check: the one check that finds something there.
    finds: what is worse than pass, as "STATUS CODE SECTION"; the section is the remedy's.
    says: what the first of them says, in part.
    """

    spec: Spec
    check: str
    finds: tuple[str, ...]
    says: str = ""


def planted(spec: Spec, check: str, *finds: str, says: str = "") -> Planted:
    return Planted(spec, check, finds, says)


ACCESS = [
    planted(faults.dead("dead"), "access", "unknown access.no_route"),
    planted(faults.without_sshd("no-sshd"), "access", "unknown access.refused"),
    planted(faults.black_holed("black-hole"), "access", "unknown access.timeout"),
    planted(faults.rejecting("rejecting"), "access", "unknown access.no_route"),
    planted(faults.silent_sshd("no-banner"), "access", "unknown access.no_banner"),
    planted(faults.key_exchange_hangs("small-port"), "access", "unknown access.no_start §5.3"),
    planted(faults.disk_full("disk-full"), "access", "unknown access.no_directory"),
]

SERVER_IS_WRONG = f"the reference {address(SERVICES)}, so {address(LATE)} is wrong"
TIME = [
    planted(
        faults.follows_late("late-07", 0.7),
        "ntp",
        "warn ntp.daemon_offset §4.1.1",
        says=SERVER_IS_WRONG,
    ),
    planted(
        faults.follows_late("late-3", 3),
        "ntp",
        "fail ntp.daemon_offset §4.1.1",
        says=SERVER_IS_WRONG.replace(address(LATE), address(LATER)),
    ),
    planted(faults.silent_time_server("time-silent"), "ntp", "fail ntp.silent §4.1.1"),
    planted(faults.no_time_server("time-none"), "ntp", "fail ntp.no_source §4.1.1"),
    planted(faults.serves_itself("time-own"), "ntp", "fail ntp.name_only §4.1.1"),
    planted(faults.falseticker("time-false"), "ntp", "fail ntp.falseticker §4.1.1"),
    planted(faults.no_time_daemon("no-daemon"), "ntp", "fail ntp.no_daemon §4.1.1"),
    planted(faults.ntpsec("ntpsec"), "ntp", "fail ntp.not_synchronised §4.1.1"),
    planted(faults.ntpsec("ntpsec-late", LATE), "ntp", "fail ntp.not_synchronised §4.1.1"),
]

TMP = [
    planted(faults.tmp_filled("tmp-full"), "tmp", "fail tmp.space §5.5"),
    planted(faults.tmp_no_inodes("tmp-inodes"), "tmp", "fail tmp.inodes §4.4"),
    planted(
        faults.tmp_deleted("tmp-deleted"), "tmp", "fail tmp.space §5.5", "warn tmp.deleted §4.4"
    ),
    planted(faults.tmp_read_only("tmp-ro"), "tmp", "fail tmp.read_only §4.4"),
    # One cause, one finding: that /tmp cannot be written to is what follows.
    planted(faults.read_only_against_the_table("mount-ro"), "mounts", "fail mounts.read_only §4.4"),
    planted(faults.tmp_mode("tmp-0777", "0777"), "tmp", "warn tmp.mode"),
    planted(faults.tmp_mode("tmp-0755", "0755"), "tmp", "fail tmp.mode"),
    planted(faults.tmp_noexec("tmp-noexec"), "tmp", "warn tmp.noexec"),
    planted(faults.tmp_missing("no-tmp"), "tmp", "fail tmp.missing §4.4"),
    planted(faults.hanging_command("df-hangs"), "tmp", "unknown tmp.unanswered §4.4"),
]

SHARED = ["dns-dead", "dns-dead2"]  # the nodes of one dead name server
NAMES = [
    *(
        planted(
            faults.dead_name_server(name),
            "dns",
            "warn dns.dead_server §4.1.2",
            says=f"the name server {address(NOBODY)}, the first of 2 in resolv.conf, does not "
            "answer; on the node each look-up that no file answers takes 3 s; not all names",
        )
        for name in SHARED
    ),
    planted(
        faults.frozen_name_server("dns-frozen"),
        "dns",
        "warn dns.dead_server §4.1.2",
        says=f"the name server {address(FROZEN)}, the first of 2 in resolv.conf, does not answer; "
        "on the node each look-up that no file answers takes 5 s; not all names",
    ),
    planted(
        faults.no_name_server("dns-none"),
        "dns",
        "fail dns.no_server §4.1.2",
        says=f"({address(NOBODY)}): a look-up ends after 6 s without an answer",
    ),
    planted(
        faults.closed_name_server("dns-closed"),
        "dns",
        "warn dns.dead_server §4.1.2",
        says=f"{address(CLOSED)}, the first of 2 in resolv.conf, cannot be asked, Connection "
        "refused (asked from this machine); not all names of nodes could be tried",
    ),
    planted(
        faults.closed_name_server("dns-closed2", asked=False),
        "dns",
        "unknown dns.cut §4.1.2",
        says=f"look-ups wait for the name server {address(CLOSED)}, the first of 2",
    ),
    planted(
        faults.old_name_server("dns-old"),
        "dns",
        "warn dns.servers_disagree",
        says=f"{address(OLD_NAMES)} says dns-old.lab.test is 10.97.",
    ),
    planted(
        faults.distrusting_name_server("dns-servfail"),
        "dns",
        "warn dns.servfail",
        says=f"{address(DISTRUSTING)} says SERVFAIL for every question",
    ),
    planted(
        faults.only_distrusting("dns-servfail2"),
        "dns",
        "fail dns.servfail",
        says=f"{address(DISTRUSTING)} says SERVFAIL for every question about nodes, and no other",
    ),
    planted(
        faults.refusing_name_server("dns-refused"),
        "dns",
        "warn dns.refused",
        says=f"{address(STRANGER)} says REFUSED for every question",
    ),
    planted(
        faults.without_way_back("dns-no-ptr"),
        "dns",
        "warn dns.reverse §4.1.2",
        says="has no PTR record",
    ),
    planted(
        faults.other_way_back("dns-ptr"),
        "dns",
        "warn dns.reverse §4.1.2",
        says="is old-name.lab.test, should be dns-ptr.lab.test",
    ),
    planted(
        faults.stale_address("dns-stale"),
        "dns",
        "warn dns.elsewhere §4.1.2",
        says=f"no interface of the node has {address(NOBODY)}",
    ),
    planted(
        faults.six_only("dns-six"),
        "dns",
        "warn dns.own_family §4.1.2",
        says="an IPv6 address alone",
    ),
    planted(faults.hosts_contradict("dns-hosts"), "dns", "fail dns.differs §4.1.2"),
    planted(faults.own_name_on_loopback("dns-own"), "dns", "fail dns.own_loopback §4.1.2"),
]

RACK = ["mtu-rack", "mtu-rack2"]  # behind a trunk without jumbo frames
MTU = [
    planted(
        with_data6(faults.jumbo_without_switch("mtu-port")),
        "mtu",
        "fail mtu.side §5.3",
        says="to and from this one in none of ",
    ),
    planted(
        with_data6(faults.small_mtu("mtu-own")),
        "mtu",
        "fail mtu.side §5.3",
        says="other nodes end here, for eth1 has MTU 1500",
    ),
    *(
        planted(
            faults.small_rack(name),
            "mtu",
            "fail mtu.side §5.3",
            says="pass within two groups of nodes (node01, node02, node03; mtu-rack, mtu-rack2)",
        )
        for name in RACK
    ),
    planted(
        faults.without_icmp("mtu-no-icmp"),
        "mtu",
        "unknown mtu.filtered",
        says="ICMP is filtered on this node",
    ),
    planted(
        faults.astray_on_data("mtu-net"),
        "mtu",
        "unknown mtu.silent",
        says="its interface, cable, switch port or address is at fault",
    ),
]

LOGIN = [
    planted(
        faults.noisy_login("noisy"),
        "login",
        "warn login.noise",
        says="the shell prints 'Welcome to node' when scp, rsync or sftp start it",
    ),
]

# Odd, and nothing wrong with it.
SOUND: Sequence[Spec] = [
    faults.with_user("user-sudo", "ernie", "become=sudo"),
    faults.with_user("user-csh", "carol"),
    faults.with_user("user-fish", "fiona"),
    faults.two_addresses("two-addresses"),
    faults.without_echo("no-echo"),
    replace(
        faults.behind("behind", FIRST),
        variables=f"jump=root@{address(FIRST)}",
    ),
]

# For tests that do something to them.
OWN = [faults.hanging_command("slow"), time_client("rekeyed")]

PLANTED = [*ACCESS, *TIME, *TMP, *NAMES, *MTU, *LOGIN]
NODES = [*HEALTHY, *SOUND, *OWN, *(fault.spec for fault in PLANTED)]
