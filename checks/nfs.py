"""NFS mounts are there, answer, and let users write as they should.

A server that is gone stops whoever touches its mount, df and logins among them; a stale handle, an
option agreed on otherwise than on the other nodes, or owners that become nobody are found out by
jobs only. So the server's port is tried first, then each mount on its own and within a limit. In
each writable mount an empty file is made, looked at and removed at once: nothing else shows whose
a new file is. What a killed run left there, the next one on that node removes, and says so.
`throughput = yes` times writing as well: every node then writes up to 1000 MiB, one
node after the other for each server, and is left out while a job runs on it; reckon with 5 s a
node. dd writes zeros, so a server that compresses looks faster than it is.
"""

from collections.abc import Iterator

from clustercheck.check import Check, Code, Facts, Finding, skip, unknown

from ._nfs_common import MOST_MOUNTS
from ._nfs_heavy import HEAVY
from ._nfs_log import judge_exports, judge_log, judge_traffic
from ._nfs_mount import (
    all_mounts,
    judge_absent,
    judge_servers,
    judge_state,
    seen_mounts,
)
from ._nfs_options import Options
from ._nfs_policy import compare, judge_options, judge_policy, judge_sources
from ._nfs_probe import PROBE
from ._nfs_remedies import (
    CLOSE_WRITING,
    EXPORT_IT,
    FEWER_FILES,
    FIND_LOSS,
    FIND_SERVER,
    FIND_SLOWNESS,
    FREE_SPACE,
    GET_TICKET,
    GIVE_NAME,
    LARGER_IO,
    LET_WRITE,
    MAKE_HARD,
    MAP_IDS,
    MOUNT_ANEW,
    MOUNT_IT,
    NEWER_VERSION,
    NO_SYNC,
    OPEN_RPC,
    OTHER_SEC,
    RAISE_QUOTA,
    REMOVE_FILE,
    SAME_OPTIONS,
    SAME_SOURCE,
    SEE_LOGS,
    SQUASH_ROOT,
    TRUST_ROOT,
    UNCOVER,
    USE_TCP,
    WAKE_SERVER,
)
from ._nfs_speed import judge_speed, place_of
from ._nfs_write import judge_write


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    if facts["mountinfo"] != "read":
        yield unknown("mounts", "how file systems are mounted could not be read")
        return
    seen = seen_mounts(facts)
    if str(len(seen)) != facts["touched"]:
        yield unknown("mounts", "the probe did not tell all mounts")
        return
    absent = list(judge_absent(facts))
    exports = list(judge_exports(facts, options))
    if facts.get("fstab") == "unreadable" and options.require_fstab:
        yield unknown("absent", "/etc/fstab cannot be read, so the wanted mounts are not known")
    elif not (seen or absent or exports):
        waiting = any(mount.kind == "autofs" for mount in all_mounts(facts))
        more = "; the automounter has none in use now" if waiting else ""
        yield skip("none", f"no NFS mount, and none wanted{more}")
        return
    yield from absent
    if len(seen) == MOST_MOUNTS:
        there = {mount.device for mount in all_mounts(facts) if mount.kind.startswith("nfs")}
        if left := len(there) - len(seen):
            yield unknown("mounts", f"{left} more NFS file systems were not looked at")
    yield from judge_servers(facts, seen)
    for mount in seen:
        yield from judge_state(facts, mount)
        yield from judge_write(facts, mount, options)
    yield from judge_sources(facts, seen)
    yield from judge_options(facts, seen, options)
    yield from judge_policy(seen, facts, options)
    yield from judge_log(facts, seen, options)
    yield from judge_traffic(facts, seen, options)
    yield from exports
    yield from judge_speed(facts, seen, options)


def shared(facts: Facts, options: Options) -> str:
    """The address of the server that timing would load; "" where nothing is to be timed."""
    if not options.throughput or facts["mountinfo"] != "read":
        return ""
    mount = place_of(facts, seen_mounts(facts), options)
    return mount.server if mount else ""


CHECK = Check(
    title="NFS mounts: there, answering, and writable by their users",
    stale="time",
    options=Options(),
    judge=judge,
    compare=compare,
    codes={
        "answers": Code("The mount answers; what client and server agreed on."),
        "none": Code("Nothing is mounted from NFS, and nothing should be."),
        "mounts": Code("The mounts, or some of them, could not be read or were too many."),
        "absent": Code(
            "A mount of /etc/fstab or of the option `mounts` is not there; the cause, where known.",
            (MOUNT_IT, GIVE_NAME, FIND_SERVER, EXPORT_IT, UNCOVER),
        ),
        "server": Code(
            "The server's port cannot be reached: its mounts were not touched, or stopped to answer"
            " while writing was timed.",
            (FIND_SERVER,),
        ),
        "rpc": Code("A version 3 server's rpcbind or mountd cannot be reached.", (OPEN_RPC,)),
        "hung": Code(
            "The server's port is open, and the mount gives no answer within the limit.",
            (WAKE_SERVER,),
        ),
        "stale": Code("The server no longer knows what is mounted.", (MOUNT_ANEW,)),
        "closed": Code("The mount could not be looked at by this user.", (GET_TICKET,)),
        "broken": Code("The mount gives an error.", (SEE_LOGS,)),
        "full": Code("No space or no inode is left.", (FREE_SPACE,)),
        "quota": Code("The quota of the user who wrote is used up.", (RAISE_QUOTA,)),
        "write": Code(
            "Whether the login user can write, where that is not as it should be or not known.",
            (LET_WRITE,),
        ),
        "read_only": Code(
            "Writable or not against what the site wants.", (LET_WRITE, CLOSE_WRITING)
        ),
        "owner": Code(
            "Whether a new file, and the home, belong to the login user as an ordinary user:"
            " otherwise version 4's id mapping or all_squash is the cause, never root_squash.",
            (MAP_IDS,),
        ),
        "root_squash": Code(
            "Whether the server takes root's rights away, by the owner of root's file and chown."
            " It says nothing about ordinary users.",
            (SQUASH_ROOT, TRUST_ROOT),
        ),
        "leftover": Code(
            "What of ours an earlier run left and this one removed, or what could not be removed.",
            (REMOVE_FILE,),
        ),
        "version": Code("An older version of NFS than the site wants.", (NEWER_VERSION,)),
        "soft": Code("A writable mount that gives up and may lose data.", (MAKE_HARD,)),
        "udp": Code("NFS over UDP.", (USE_TCP,)),
        "sync": Code("Each write waits for the server.", (NO_SYNC,)),
        "io_size": Code("Small requests, which are slow.", (LARGER_IO,)),
        "sec": Code("Another security flavour than the site allows.", (OTHER_SEC,)),
        "options": Code("Mounted otherwise than /etc/fstab says.", (SAME_OPTIONS,)),
        "source": Code("Mounted from elsewhere than /etc/fstab says.", (SAME_SOURCE,)),
        "policy": Code("A path of the options is no NFS mount on this node."),
        "differs": Code("Other options than most nodes have for the same mount.", (SAME_OPTIONS,)),
        "log": Code("The kernel's log says that the server was silent.", (WAKE_SERVER,)),
        "retrans": Code("Many requests had to be sent again.", (FIND_LOSS,)),
        "exports": Code("How this node's own exports treat root.", (SQUASH_ROOT, TRUST_ROOT)),
        "throughput": Code(
            "How fast one file is written (throughput = yes): size_mb in max_seconds, or the share"
            " of a slower link.",
            (FIND_SLOWNESS,),
        ),
        "small_files": Code(
            "How long small files take to be made, looked at, renamed and removed.", (FEWER_FILES,)
        ),
    },
    probe=PROBE,
    heavy_probe=HEAVY,
    heavy_limit=110,
    shared=shared,
    probe_options=(
        "mounts",
        "require_fstab",
        "write",
        "write_dirs",
        "throughput_dir",
        "size_mb",
        "max_seconds",
        "small_files",
        "busy_percent",
    ),
    root_adds="how servers treat root, and the kernel's log where it is closed to users",
    limit=30,
)
