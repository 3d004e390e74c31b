"""The fields of a fingerprint: which must be alike on nodes of a kind, and what to do if not."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from clustercheck.check import Facts, Remedy

SAME_PARTS = Remedy(
    "Look at what the machine is made of: a module of memory, a card or a processor that is"
    " missing, has failed or is of another kind (`dmidecode`, `lspci`, `lscpu`, and the"
    " controller's log of hardware events). Where the kind differs on purpose, it is another class"
    " of nodes: name the field in `ignore` for its group.",
)
SAME_SETUP = Remedy(
    "Compare the settings of the firmware (hyper-threading, memory and power modes) with those of"
    " a node that is right, and set them alike; they hold from the next boot, so drain the node.",
    disturbs=True,
)
SAME_BOOT = Remedy(
    "Bring the packages of this node to the version of the others and boot it when it is drained:"
    " a new kernel or other parameters on its command line count from the next boot.",
    disturbs=True,
)
SAME_VERSION = Remedy(
    "Install the same version as on the other nodes, from the same source; drain the node first"
    " where running jobs use it.",
    disturbs=True,
)
SAME_SETTING = Remedy(
    "Set it as on the other nodes, in the file that sets it at boot (/etc/sysctl.d, a profile of"
    " tuned, /etc/security/limits.d, the unit's Limit… for what systemd starts), not by hand: what"
    " was set by hand is gone at the next boot, and a value that comes back by itself has a file.",
)
SAME_GPUS = Remedy(
    "Set the GPUs as on the other nodes, in what does so at boot: persistence by the service"
    " nvidia-persistenced, the power limit by `nvidia-smi -pl` in a unit of its own, for it is"
    " forgotten. `nvidia-smi -e` (ECC) and `-mig` count from the next reset of the GPU: drain the"
    " node first.",
    disturbs=True,
)
SAME_FILE = Remedy(
    "Compare the file with that of another node (`diff`), find out which is right, and bring it"
    " from where all nodes have theirs; slurmd reads its files again at `scontrol reconfigure`.",
    "§2.2",
)
SAME_ACCOUNTS = Remedy(
    "Give the account the same number on every node, through the directory (LDAP, SSSD) or the"
    " same lines in /etc/passwd. Files that it owns on the node have to be given to the new"
    " number.",
    disturbs=True,
)
SAME_NETWORK = Remedy(
    "Compare the driver, the firmware and the setting of the card with those of a node that is"
    " right; a lower speed is a cable or a port of the switch. What configures the network at boot"
    " must be the same on all.",
    "§5.3",
)
SAME_MOUNT = Remedy(
    "Compare the line in /etc/fstab or in the automounter's map with that of another node; of NFS,"
    " what was negotiated as well (`nfsstat -m`): an older server or client agrees to less. A mount"
    " takes new options when it is mounted anew.",
    "§2.3",
    disturbs=True,
)


class Kind(NamedTuple):
    """Fields that must be alike, whose name begins with `start`, and what to do if they are not.

    said_by: the check that says so itself; "" where nobody else does.
    """

    start: str
    remedy: Remedy
    said_by: str = ""


# Of which kind a field is, is declared here. Must be alike: what a line of KINDS names, in the
# order of a work list: what is the cause of what stands below it comes first. May vary: what no
# line names; it is kept for later and compared with nothing. An identity (a name, an address, a
# serial number, a UUID) is not asked for, and cut out of values by OWN_PARAMETERS and OWN_OPTIONS.
KINDS = (
    Kind("product", SAME_PARTS),
    Kind("cpu.model", SAME_PARTS),
    Kind("cpu.sockets", SAME_PARTS),
    Kind("cpu.cores", SAME_PARTS),
    Kind("memory.total_gib", SAME_PARTS),
    Kind("gpu.cards", SAME_PARTS),
    Kind("gpu.model", SAME_PARTS),
    Kind("numa.nodes", SAME_SETUP),
    Kind("cpu.threads", SAME_SETUP),
    Kind("cpu.smt", SAME_SETUP),
    Kind("cpu.online", SAME_SETUP),
    Kind("bios", SAME_SETUP),
    Kind("cpu.microcode", SAME_BOOT),
    Kind("gpu.vbios", SAME_VERSION),
    Kind("os", SAME_VERSION),
    Kind("kernel_build", SAME_BOOT),
    Kind("kernel", SAME_BOOT),
    Kind("cmdline", SAME_BOOT),
    Kind("clocksource", SAME_BOOT),
    Kind("glibc", SAME_VERSION),
    Kind("gpu.driver", SAME_VERSION),
    Kind("version.", SAME_VERSION),
    Kind("gpu.persistence_mode", SAME_GPUS),
    Kind("gpu.ecc_mode", SAME_GPUS),
    Kind("gpu.mig_mode", SAME_GPUS),
    Kind("gpu.power_limit", SAME_GPUS),
    Kind("gpu.compute_mode", SAME_GPUS),
    Kind("driver.", SAME_VERSION),
    Kind("net.", SAME_NETWORK),
    Kind("firmware.", SAME_NETWORK),
    Kind("ib.", SAME_NETWORK),
    Kind("speed.", SAME_NETWORK, "link"),
    Kind("mtu.", SAME_NETWORK, "mtu"),
    Kind("resolv.", SAME_FILE, "dns"),
    Kind("time.", SAME_FILE, "ntp"),
    Kind("file.hosts", SAME_FILE, "dns"),
    Kind("file.slurm/cgroup.conf", SAME_FILE, "slurm"),
    Kind("file.", SAME_FILE),
    Kind("account.", SAME_ACCOUNTS),
    Kind("user.", SAME_ACCOUNTS),
    Kind("mount.", SAME_MOUNT),
    Kind("selinux", SAME_SETTING, "selinux"),
    Kind("memory.swap_gib", SAME_SETTING),
    Kind("memory.", SAME_SETTING),
    Kind("cpu.governor", SAME_SETTING),
    Kind("sysctl.", SAME_SETTING),
    Kind("limit.", SAME_SETTING),
)

# Parameters of the kernel's command line that are one node's own: where its disk is, its address.
OWN_PARAMETERS = re.compile(
    r"(?:BOOT_IMAGE|root|resume|BOOTIF|ip|hostname|systemd\.(?:hostname|machine_id)|initrd"
    r"|rd\.(?:luks\.(?:uuid|name)|md\.uuid|lvm\.lv)|cryptdevice|nfsroot|ifname|netboot\S*)=.*"
)
# Options of a mount that name this node or this mount of it.
OWN_OPTIONS = re.compile(r"(?:clientaddr|addr|mountaddr|mountport|port|fsid|wsync_id|uuid)=.*")
# Of a local file system, what somebody has chosen: the rest follows from its disk, and that it is
# read-only is the check mounts's to say.
_CHOSEN = re.compile(
    r"nosuid|nodev|noexec|(?:no|rel|strict|lazy)a?time|nodiratime|(?:dir)?sync|dax(?:=.*)?|discard"
    r"|[ugp](?:sr|rp|rj)?quota|noquota|(?:no)?barrier(?:=.*)?|data=.*|compress(?:-force)?=.*"
)
_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "tmpfs")
# What the check nfs compares itself.
_AGREED = re.compile(r"(?:(?:vers|proto|rsize|wsize|sec)=.*|hard|soft|softerr|r[ow])")
_OF_EACH = re.compile(r"^[0-9]{1,4} x ")
_GIB = 1 << 20  # in KiB
# What is asked for with the option gpu_settings only.
GPU_SETTINGS = frozenset(kind.start for kind in KINDS if kind.remedy is SAME_GPUS)


MOST_LINES = 2000  # an honest node has some hundred
LONGEST_LINE = 4096  # a kernel's command line has 2,048 at most


def fields(facts: Facts) -> dict[str, str]:
    """Every field of a node's fingerprint by name, as it is kept and compared.

    What belongs to the node alone is taken out of the values; several lines of one field are
    sorted and joined.
    """
    found: dict[str, list[str]] = {}
    lines = facts["fields"].rstrip("\n").split("\n")
    for line in lines[:MOST_LINES]:
        name, value = _read(line[:LONGEST_LINE])
        if value and name != "cut":
            found.setdefault(name, []).append(value)
    return {name: _joined(name, values) for name, values in found.items()}


def is_cut(facts: Facts) -> bool:
    """Was there more than the probe tells?"""
    return facts["fields"].rstrip("\n").endswith("\ncut yes")


def _joined(name: str, values: list[str]) -> str:
    """Several lines as one. How many GPUs there are is a field of its own: of what all of them
    have, the number is left out, or one that is lost would be a difference in each."""
    if len(values) == 1 and name.startswith("gpu."):
        return _OF_EACH.sub("", values[0])
    return " | ".join(sorted(values))


# Most lines of thousands of nodes are the same: read once, and kept once in memory.
@lru_cache(maxsize=4000)
def _read(line: str) -> tuple[str, str]:
    """A field and its value as it is compared; no value where there is none."""
    name, blank, value = line.partition(" ")
    if not blank or not re.fullmatch(r"[A-Za-z][\w./:@%+~-]{0,200}", name):
        return "", ""
    return _as_compared(name, " ".join(value.split()))


def _as_compared(name: str, value: str) -> tuple[str, str]:
    start, _, rest = name.partition(".")
    if start == "sysctl":
        return f"sysctl.{rest.replace('/', '.')}", value
    if name in ("memory.total_kib", "memory.swap_kib"):
        if not re.fullmatch("[0-9]{1,15}", value):
            return name, ""
        # Equal machines differ by some MiB, which their firmware keeps for itself.
        return name.replace("_kib", "_gib"), f"{int(value) / _GIB:.0f}"
    if name == "memory.transparent_huge_pages":
        chosen = re.search(r"\[(\w+)\]", value)
        return name, chosen[1] if chosen else value
    if name == "cmdline":
        kept = [word for word in value.split(" ") if not OWN_PARAMETERS.fullmatch(word)]
        return name, " ".join(kept)
    if start == "mount":
        kind, _, options = value.split(" ") if value.count(" ") == 2 else (value, "", "")
        if kind in _LOCAL:
            kept = [o for o in options.split(",") if _CHOSEN.fullmatch(o)]
        else:
            passed_over = (OWN_OPTIONS, _AGREED) if kind.startswith("nfs") else (OWN_OPTIONS,)
            kept = [o for o in options.split(",") if not any(p.fullmatch(o) for p in passed_over)]
        return name, " ".join([kind, ",".join(sorted(kept))]).rstrip()
    return name, value


@lru_cache(maxsize=4000)
def kind_of(name: str) -> Kind | None:
    """What is to be done about a field; None for one that may vary."""
    return next((kind for kind in KINDS if _is_of(name, kind)), None)


@lru_cache(maxsize=4000)
def place_of(name: str) -> int:
    """Where a field stands in the order of KINDS."""
    return next((i for i, kind in enumerate(KINDS) if _is_of(name, kind)), len(KINDS))


def _is_of(name: str, kind: Kind) -> bool:
    if kind.start.endswith("."):
        return name.startswith(kind.start)
    return name == kind.start or name.startswith(f"{kind.start}.")


def class_of(found: Mapping[str, str]) -> tuple[str, ...]:
    """What makes nodes one class, which are expected to be alike: the machine's make, the
    processor, and of which kinds its GPUs are (how many, is compared)."""
    cards = sorted(name for name in found if name.startswith("gpu.cards."))
    return (found.get("product", ""), found.get("cpu.model", ""), *cards)


def class_words(found: Mapping[str, str]) -> str:
    """The class in words, the same for all of its nodes."""
    product, processor, *cards = class_of(found)
    gpus = [card.removeprefix("gpu.cards.") for card in cards]
    parts = [product, processor, f"GPUs {', '.join(gpus)}" if gpus else ""]
    return ", ".join(filter(None, parts))[:200] or "a machine that does not tell what it is"
