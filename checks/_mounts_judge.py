"""What is wrong with what is mounted, and with what is not."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from clustercheck.check import Facts, Finding, Remedy, fail, ok, unknown, warn

from ._mounts import Mount, parse_mount, plain
from ._mounts_remedies import (
    FIND_DEVICE,
    LET_LOOK,
    MEND_IT,
    MOUNT_IT,
    REVIVE,
    SAME_AS_TABLE,
    SET_OPTIONS,
    START_AUTOMOUNT,
    UNMOUNT_ONE,
    WAKE_IT,
)

NFS = ("nfs", "nfs4")
# On block devices: what the kernel makes read-only, or shuts down, after an error.
DISK = (
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "bcachefs"),
    *("ocfs2", "gfs2", "vfat", "exfat"),
)
# Read-only by nature, whatever the mount says.
IMAGES = ("squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs")
MADE_READ_ONLY = re.compile("Remounting filesystem read-only|forced readonly|Shutting down", re.I)
# Not needed once the node runs.
BOOT = ("/boot", "/boot/efi", "/efi")
# What a mount without an option has: findmnt shows "noexec" and never "exec".
OPPOSITES = {"exec": "noexec", "suid": "nosuid", "dev": "nodev", "async": "sync"}
OPPOSITES |= {"atime": "noatime", "diratime": "nodiratime"}


class Entry(NamedTuple):
    """A line of /etc/fstab."""

    source: str
    target: str
    kind: str
    flags: frozenset[str]

    @property
    def on_demand(self) -> bool:
        return bool(self.flags & {"x-systemd.automount", "comment=systemd.automount"})

    @property
    def required(self) -> bool:
        """Whether it should be mounted at any time."""
        if self.kind in ("swap", "ignore") or not self.target.startswith("/"):
            return False
        # cloud-init writes entries for disks that the machine may not have
        maybe = {"nofail", "comment=cloudconfig"} <= self.flags
        return not maybe and "noauto" not in self.flags and not self.on_demand


VIEW_FACTS = {"mounts", "entries", "container", "systemd", "over"}


class View:
    """What a node told of its mounts and its /etc/fstab, by place."""

    def __init__(self, facts: Facts) -> None:
        self.mounts = [m for m in map(parse_mount, facts["mounts"].split("\n")) if m]
        self.container = facts["container"] == "yes"
        self.systemd = facts["systemd"] == "yes"
        self.over = whole(facts["over"])
        words = (line.split(" ") for line in facts["entries"].split("\n"))
        self.entries = [
            Entry(w[0], place_of(plain(w[1])), w[2], frozenset(w[3].split(",")))
            for w in words
            if len(w) == 4
        ]
        self._last = {mount.target: mount for mount in self.mounts}
        self._automounts = [m.target for m in self.mounts if m.kind == "autofs"]
        real = facts.at("real")
        self._real = {path: real[n] for n, path in facts.at("absent").items() if n in real}

    def at(self, path: str) -> Mount | None:
        """What is mounted at a place, or where the links of the place lead."""
        mount = self._last.get(path) or self._last.get(self._real.get(path, ""))
        return None if mount is None or mount.kind == "autofs" else mount

    def on_demand(self, path: str) -> bool:
        """Whether an automounter looks after the place."""
        return any(f"{path}/".startswith(f"{place.rstrip('/')}/") for place in self._automounts)

    def entry(self, path: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.target == path), None)


def whole(text: str) -> int:
    """A count; 0 for what is none."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def place_of(path: str) -> str:
    """A path without slashes at its end."""
    return path.rstrip("/") or "/"


def policy_of(line: str) -> tuple[str, list[str]]:
    """ "/scratch noatime !soft" as a place and its words. Raises ValueError."""
    place, *words = line.split()
    if not place.startswith("/"):
        raise ValueError(f"{line!r} in options must begin with a mount point")
    if not words:
        raise ValueError(f"{line!r} in options names no mount option")
    return place_of(plain(place)), words


def judge_absent(
    facts: Facts, view: View, wanted: Mapping[str, str], by_site: Collection[str]
) -> Iterator[Finding]:
    """What should be mounted, by place with the source, and is not; with the cause where known."""
    numbers = {place_of(path): number for number, path in facts.at("absent").items()}
    for path, source in wanted.items():
        if view.at(path):
            continue
        number, entry = numbers.get(path, ""), view.entry(path)
        source = source or (entry.source if entry else "")
        said = facts.get(f"log@{number}", "").strip()
        cause = f"; the journal: {said}" if said else ""
        remedy = MOUNT_IT
        if facts.get(f"device@{number}") == "absent":
            cause, remedy = f"; no such device is there{cause}", FIND_DEVICE
        elif view.on_demand(path):
            cause = f"; an automounter waits there, and mounted nothing{cause}"
        message = f"{path} is not mounted{f' (from {source})' if source else ''}, should be{cause}"
        optional = entry is not None and "nofail" in entry.flags
        if path not in by_site and (optional or path in BOOT):
            yield warn("absent", message, remedy)
        else:
            yield fail("absent", message, remedy)


def judge_automounts(view: View) -> Iterator[Finding]:
    for entry in view.entries:
        if not (view.systemd and entry.on_demand) or view.at(entry.target):
            continue
        if not view.on_demand(entry.target):
            message = (
                f"{entry.target} (from {entry.source}) should be mounted on demand by /etc/fstab,"
                " and no automounter waits there"
            )
            yield warn("automount", message, START_AUTOMOUNT)


def judge_read_only(facts: Facts, view: View, allowed: Collection[str]) -> Iterator[Finding]:
    """What the kernel made read-only after an error, and what is otherwise than fstab says."""
    errors = {place_of(path): why for path, why in _errors(facts.get("locals", ""))}
    seen = set()
    for mount in view.mounts:
        first = mount.device not in seen
        seen.add(mount.device)
        what = f"{mount.target} ({mount.kind} on {mount.source})"
        entry = view.entry(mount.target)
        if mount.kind in DISK and first:
            log = _last_words(facts.get("kernel_log", ""), mount)
            if "shutdown" in mount.options or mount.target in errors:
                why = errors.get(mount.target, "")
                message = f"{what} was shut down by the kernel after an error{why and f' ({why})'}"
                yield (warn if mount.target in BOOT else fail)("read_only", message + log, MEND_IT)
                continue
            # an option makes the mount itself ro as well
            by_kernel = "rw" in mount.own or MADE_READ_ONLY.search(log)
            if "emergency_ro" in mount.options or ("ro" in mount.options and by_kernel):
                message = f"{what} was made read-only by the kernel after an error"
                yield (warn if mount.target in BOOT else fail)("read_only", message + log, MEND_IT)
                continue
        if (
            mount == view.at(mount.target)
            and mount.read_only
            and entry is not None
            and "ro" not in entry.flags
            and mount.kind not in (*NFS, *IMAGES)
            and mount.target not in allowed
            and not view.container
        ):
            message = f"{what} is read-only, and /etc/fstab does not say so"
            yield (warn if mount.target in BOOT else fail)("read_only", message, SAME_AS_TABLE)
    if facts.get("locals") == "hung" or "hung@locals" in facts:
        yield unknown("hung", "a local file system gives no answer within 4 s", WAKE_IT)


def _errors(text: str) -> Iterator[tuple[str, str]]:
    """Paths and errors in lines such as "stat: cannot statx '/data/.': Input/output error"."""
    for line in text.split("\n"):
        before, colon, why = line.rpartition(": ")
        path = before.partition("/")[2]
        if colon and path:
            yield "/" + path.rstrip("'\"’").removesuffix("."), why


def _last_words(log: str, mount: Mount) -> str:
    """The kernel's last error of the mount's device, and that it was made read-only."""
    names = [re.escape(mount.source.rpartition("/")[2])]
    _, _, minor = mount.device.partition(":")
    if mount.source.startswith("/dev/mapper/") and re.fullmatch("[0-9]{1,7}", minor):
        names.append(f"dm-{minor}")
    about = re.compile(rf"\b(?:{'|'.join(names)})\b")
    lines = [line.strip() for line in log.split("\n")[-40:] if about.search(line[:400])]
    made = [line for line in lines if MADE_READ_ONLY.search(line)]
    errors = [line for line in lines if "error" in line.lower() and line not in made]
    best = [*errors[-1:], *made[-1:]]
    return f"; the kernel's log: {'; '.join(line[:200] for line in best)}" if best else ""


def judge_dead(facts: Facts, view: View) -> Iterator[Finding]:
    """Network, cluster and FUSE file systems that were touched."""
    answering = []
    for number, path in facts.at("touched").items():
        mount = view.at(path)
        what = f"{path} ({mount.kind} on {mount.source})" if mount else path
        hung = f"hung@{number}" in facts
        state = "hung" if hung else facts[f"state@{number}"]
        lower = state.lower()
        own = mount is not None and any(
            o.startswith("user_id=") and o != "user_id=0" for o in mount.options
        )
        if state == "answers":
            answering.append(path)
        elif state == "hung":
            message = f"{what} gives no answer within 4 s, and hangs whoever touches it"
            yield _by(own, "hung", message, WAKE_IT)
        elif "not connected" in lower:
            message = f"{what} is mounted, and the program that serves it has ended ({state})"
            yield _by(own, "dead", message, REVIVE)
        elif "shutdown" in lower or "stale" in lower:
            words = "is stale" if "stale" in lower else "was cut off by its server"
            yield _by(own, "dead", f"{what} {words} ({state})", REVIVE)
        elif state in ("Permission denied", "Operation not permitted") or "key" in lower:
            # a user's own FUSE mount is closed to all others, root among them
            if not (mount and mount.kind.startswith("fuse")):
                yield unknown("closed", f"{what} cannot be looked at: {state}", LET_LOOK)
        elif state.startswith("No such file"):
            yield unknown("closed", f"{what} cannot be looked at: {state}", LET_LOOK)
        else:
            yield _by(own, "broken", f"{what} cannot be used: {state or 'no reason given'}", REVIVE)
    if answering:
        yield ok("answers", f"{', '.join(answering)} {'answer' if answering[1:] else 'answers'}")
    if len(facts.at("touched")) != whole(facts["touched"]):
        yield unknown("mounts", "the probe did not tell all mounts that it looked at")


def _by(own: bool, code: str, message: str, remedy: Remedy) -> Finding:
    """A failure; a warning where an ordinary user has mounted it for himself."""
    return warn(code, message, remedy) if own else fail(code, message, remedy)


def judge_twice(view: View) -> Iterator[Finding]:
    count = Counter(
        (m.target, m.device, m.top, m.kind, m.source)
        for m in view.mounts
        if m.shared or m.kind in DISK
    )
    for (target, _, _, kind, source), times in count.items():
        if times > 1:
            message = f"{target} ({kind} on {source}) is mounted {times} times over itself"
            yield warn("twice", message, UNMOUNT_ONE)


def judge_options(view: View, policies: Iterable[str]) -> Iterator[Finding]:
    """The site's policy on mount options, compared as whole words."""
    for policy in policies:
        place, words = policy_of(policy)
        mount = view.at(place)
        if mount is None:
            continue
        lacks = [word for word in words if not _has(mount, word)]
        if not lacks:
            continue
        missing = [word for word in lacks if not word.startswith("!")]
        unwanted = [word[1:] for word in lacks if word.startswith("!")]
        parts = [f"without {', '.join(missing)}"] if missing else []
        parts += [f"with {', '.join(unwanted)}"] if unwanted else []
        should = " ".join(words).replace("!", "without ")
        message = f"{place} is mounted {' and '.join(parts)}, should be {should}"
        yield (fail if "rw" in missing else warn)("options", message, SET_OPTIONS)


def _has(mount: Mount, word: str) -> bool:
    if word.startswith("!"):
        return not _has(mount, word[1:])
    if word == "rw":
        return not mount.read_only
    if word == "ro":
        return mount.read_only
    if word in OPPOSITES:
        return OPPOSITES[word] not in mount.options
    return word in mount.options
