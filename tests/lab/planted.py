"""The faults that are planted in the tests' cluster, and what must be found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.lab import faults
from tests.lab.spec import FIRST, LATE, Spec, address, healthy, time_client

HEALTHY = healthy(3)


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

TIME = [
    planted(faults.follows_late("late-07", 0.7), "ntp", "warn ntp.daemon_offset §4.1.1"),
    planted(faults.follows_late("late-3", 3), "ntp", "fail ntp.daemon_offset §4.1.1"),
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
    planted(faults.tmp_mode("tmp-0777", "0777"), "tmp", "warn tmp.mode"),
    planted(faults.tmp_mode("tmp-0755", "0755"), "tmp", "fail tmp.mode"),
    planted(faults.tmp_noexec("tmp-noexec"), "tmp", "warn tmp.noexec"),
    planted(faults.tmp_missing("no-tmp"), "tmp", "fail tmp.missing §4.4"),
    planted(faults.hanging_command("df-hangs"), "tmp", "unknown tmp.unanswered §4.4"),
]

NAMES = [
    planted(
        faults.dead_name_server("dns-dead"), "dns", "warn dns.slow §4.1.2", "unknown dns.cut §4.1.2"
    ),
    planted(faults.hosts_contradict("dns-hosts"), "dns", "fail dns.differs §4.1.2"),
    planted(faults.own_name_on_loopback("dns-own"), "dns", "fail dns.own_loopback §4.1.2"),
]

MTU = [
    planted(faults.jumbo_without_switch("mtu-port"), "mtu", "fail mtu.side §5.3"),
    planted(faults.small_mtu("mtu-own"), "mtu", "fail mtu.side §5.3"),
    planted(faults.small_rack("mtu-rack"), "mtu", "fail mtu.side §5.3"),
]

# Odd, and nothing wrong with it.
SOUND: Sequence[Spec] = [
    faults.noisy_login("noisy"),
    faults.with_user("user-sudo", "ernie", "become=sudo"),
    faults.with_user("user-csh", "carol"),
    faults.with_user("user-fish", "fiona"),
    replace(
        faults.behind("behind", FIRST),
        variables=f"jump=root@{address(FIRST)}",
    ),
]

# For tests that do something to them.
OWN = [faults.hanging_command("slow"), time_client("rekeyed")]

PLANTED = [*ACCESS, *TIME, *TMP, *NAMES, *MTU]
NODES = [*HEALTHY, *SOUND, *OWN, *(fault.spec for fault in PLANTED)]
