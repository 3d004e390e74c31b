"""Lines of /proc/self/mountinfo, as proc_pid_mountinfo(5) describes them."""

import re
from typing import NamedTuple

# File systems that many nodes may share, by the beginning of their kind.
SHARED = (
    *("nfs", "lustre", "beegfs", "gpfs", "ceph", "cifs", "smb", "fuse", "9p", "afs", "glusterfs"),
    *("panfs", "wekafs", "virtiofs"),
)


class Mount(NamedTuple):
    """One mount.

    device: major:minor of the file system, the same for all places where it is mounted.
    options: of this mount and of the file system together.
    own: of this mount alone.
    top: the directory of the file system that is seen here: "/" but for bind mounts.
    """

    device: str
    target: str
    kind: str
    source: str
    options: frozenset[str]
    own: frozenset[str]
    top: str

    @property
    def shared(self) -> bool:
        """Other nodes may have it mounted, too: not to be searched by all of them at once."""
        return self.kind.startswith(SHARED)

    @property
    def read_only(self) -> bool:
        """Made so by an option, or by the kernel after an error."""
        return bool(self.options & {"ro", "emergency_ro"})


def parse_mount(line: str) -> Mount | None:
    """A line's mount; None for what is no such line."""
    before, dash, after = line.partition(" - ")
    words, more = before.split(" "), after.split(" ")
    if not dash or len(words) < 6 or len(more) < 2:
        return None
    own = frozenset(words[5].split(","))
    options = own | frozenset(more[2].split(",") if len(more) > 2 else ())
    target, source, top = plain(words[4]), plain(more[1]), plain(words[3])
    return Mount(words[2], target, more[0], source, options, own, top)


def plain(text: str) -> str:
    r"""The kernel writes blanks, line feeds and backslashes as three octal digits: "\040"."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def mount_line_of(path: str, mountinfo: str) -> str:
    """The line of the mount that holds a path without links; "" where there is none."""
    best, length = "", -1
    for line in mountinfo.splitlines():
        mount = parse_mount(line)
        if mount is None:
            continue
        target = mount.target.rstrip("/")
        # of several mounts on one place the last is what one sees
        if f"{path}/".startswith(f"{target}/") and len(target) >= length:
            best, length = line, len(target)
    return best
