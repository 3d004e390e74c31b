"""File systems are mounted as they should be: there, alive, writable, once, as on other nodes.

What should be there is what /etc/fstab says, and what the option `want` adds. A mount that is gone
lets jobs write to the disk below; a dead one fails whoever touches it; one that the kernel made
read-only after an error looks mounted.

NFS is the check nfs's: that an NFS mount of /etc/fstab is absent, silent, stale or read-only is
said there, with the server's part in it. Here NFS counts only where nobody else looks: it is in
`want` or `options`, it is mounted twice, its automounter is not there, or most other nodes have it
and this one does not even have it in /etc/fstab.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clustercheck.check import Check, Code, Facts, Finding, ok, option, skip, unknown, warn

from ._mounts import Mount
from ._mounts_judge import (
    NFS,
    VIEW_FACTS,
    View,
    judge_absent,
    judge_automounts,
    judge_dead,
    judge_options,
    judge_read_only,
    judge_twice,
    place_of,
    policy_of,
)
from ._mounts_probe import PROBE
from ._mounts_remedies import (
    FIND_DEVICE,
    LET_LOOK,
    MEND_IT,
    MOUNT_IT,
    READ_TABLE,
    REVIVE,
    SAME_AS_TABLE,
    SAME_MOUNTS,
    SET_OPTIONS,
    START_AUTOMOUNT,
    UNMOUNT_ONE,
    WAKE_IT,
)


@dataclass(frozen=True)
class Options:
    want: tuple[str, ...] = option(
        (), "mount points that must be mounted, of any kind (NFS better in `nfs.mounts`)"
    )
    require_fstab: bool = option(
        True, "whether the mounts of /etc/fstab must be there (but for noauto, swap and NFS)"
    )
    options: tuple[str, ...] = option(
        (),
        "mount point and mount options that it must have, `!` before one that it must not:"
        " /scratch noatime nosuid !soft, /data ro",
    )
    read_only: tuple[str, ...] = option(
        (), "mount points that are read-only on purpose though /etc/fstab does not say so"
    )
    compare: bool = option(
        True, "whether network and cluster file systems that most nodes have are wanted here, too"
    )

    def __post_init__(self) -> None:
        for name in ("want", "read_only"):
            for path in getattr(self, name):
                if not path.startswith("/"):
                    raise ValueError(f"{path!r} in {name} must begin with /")
        for line in self.options:
            policy_of(line)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    if facts["mountinfo"] != "read":
        yield unknown("mounts", "how file systems are mounted could not be read")
        return
    view = View(facts)
    if not view.mounts:
        yield unknown("mounts", "what is mounted cannot be read")
        return
    if view.over:
        yield unknown("mounts", f"{view.over} more mounts were not looked at")
    found = list(_faults(facts, view, options))
    yield from found
    wanted = [place_of(path) for path in options.want]
    if options.require_fstab and not view.container:
        wanted += [e.target for e in view.entries if e.required and e.kind not in NFS]
    there = [path for path in dict.fromkeys(wanted) if view.at(path)]
    if there:
        names = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
        yield ok("there", f"mounted as wanted: {names}")
    elif not found:
        yield skip("none", "no mount is wanted, and none is at fault")


def _faults(facts: Facts, view: View, options: Options) -> Iterator[Finding]:
    by_site = {place_of(path): "" for path in options.want}
    by_table = {}
    if options.require_fstab and not view.container:
        if facts["fstab"] == "unreadable":
            message = "/etc/fstab cannot be read, so what should be mounted is not known"
            yield unknown("fstab", message, READ_TABLE)
        by_table = {e.target: e.source for e in view.entries if e.required and e.kind not in NFS}
        yield from judge_automounts(view)
    yield from judge_absent(facts, view, by_site | by_table, by_site)
    yield from judge_read_only(facts, view, {place_of(path) for path in options.read_only})
    yield from judge_dead(facts, view)
    yield from judge_twice(view)
    yield from judge_options(view, options.options)


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Network and cluster file systems that three of four nodes have, and some have not so."""
    views = {
        node: View(told)
        for node, told in facts.items()
        if options[node].compare and told.keys() >= VIEW_FACTS
    }
    if len(views) < 4:
        return
    by_place: dict[str, dict[str, str]] = {}
    for node, view in views.items():
        for mount in view.mounts:
            if _is_common(view, mount):
                by_place.setdefault(mount.target, {})[node] = mount.source
    for place, sources in by_place.items():
        if 4 * len(sources) < 3 * len(views):
            continue
        usual, count = Counter(sources.values()).most_common(1)[0]
        for node, view in views.items():
            there = view.at(place)
            if there is None and not _said(view, place, options[node]):
                message = (
                    f"{place} ({usual}) is not mounted, {len(sources)} of {len(views)} have it"
                )
                yield node, warn("differs", message, SAME_MOUNTS)
            elif there and there.source != usual and 4 * count >= 3 * len(views):
                message = (
                    f"{place} is mounted from {there.source}, most nodes ({count} of"
                    f" {len(views)}) have it from {usual}"
                )
                yield node, warn("differs", message, SAME_MOUNTS)


def _is_common(view: View, mount: Mount) -> bool:
    """Whether other nodes may be expected to have it: shared, there always, and nobody's own."""
    private = any(o.startswith("user_id=") and o != "user_id=0" for o in mount.options)
    return mount.shared and not private and not view.on_demand(mount.target)


def _said(view: View, place: str, options: Options) -> bool:
    """Whether another finding says that the place is not mounted, or it comes when it is used."""
    listed = {place_of(path) for path in options.want} | {e.target for e in view.entries}
    return place in listed or view.on_demand(place)


CHECK = Check(
    title="File systems: mounted, alive, writable, with the right options",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "there": Code("What /etc/fstab and the option `want` name is mounted."),
        "none": Code("Nothing should be mounted, by /etc/fstab (but for NFS) and the options."),
        "mounts": Code("The mounts, or some of them, could not be read or were too many."),
        "fstab": Code("The table /etc/fstab cannot be read.", (READ_TABLE,)),
        "absent": Code(
            "Something that should be mounted is not; the cause, where it is known. It is a"
            " warning for what has nofail in /etc/fstab, and for /boot and /boot/efi.",
            (MOUNT_IT, FIND_DEVICE),
        ),
        "automount": Code(
            "It should be mounted on demand by /etc/fstab, and no automounter waits there.",
            (START_AUTOMOUNT,),
        ),
        "read_only": Code(
            "Made read-only or shut down by the kernel after an error, or read-only though"
            " /etc/fstab does not say so.",
            (MEND_IT, SAME_AS_TABLE),
        ),
        "dead": Code(
            "A network, cluster or FUSE file system is mounted, and its client is gone or was put"
            " out. It is a warning where an ordinary user has mounted it.",
            (REVIVE,),
        ),
        "hung": Code("The file system gives no answer within 4 s.", (WAKE_IT,)),
        "broken": Code("The file system gives an error.", (REVIVE,)),
        "closed": Code("The file system could not be looked at by this user.", (LET_LOOK,)),
        "answers": Code("The network, cluster and FUSE file systems (but for NFS) answer."),
        "twice": Code("The same file system is mounted over itself.", (UNMOUNT_ONE,)),
        "options": Code("Mounted with other options than the site wants.", (SET_OPTIONS,)),
        "differs": Code("Not mounted, or from elsewhere than on most nodes.", (SAME_MOUNTS,)),
    },
    probe=PROBE,
    probe_options=("want",),
    root_adds="the journal and the kernel's log on a mount that failed, where users may not read"
    " them",
    limit=25,
)
