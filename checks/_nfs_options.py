"""What a site may set for the check nfs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from clustercheck.check import option


@dataclass(frozen=True)
class Options:
    mounts: tuple[str, ...] = option((), "mount points that must be mounted from NFS")
    require_fstab: bool = option(
        True, "whether the NFS mounts of /etc/fstab must be mounted (but for noauto)"
    )
    read_only: tuple[str, ...] = option(
        (), "mount points that nobody may be able to write to (software, images)"
    )
    writable: tuple[str, ...] = option((), "mount points that the login user must write to")
    root_squash: Literal["any", "on", "off"] = option(
        "any", "whether servers must take root's rights away, seen from a node or in its exports"
    )
    min_version: Literal["2", "3", "4", "4.1", "4.2"] = option(
        "3", "lowest version of NFS that is no warning"
    )
    sec: tuple[str, ...] = option((), "security flavours that the site allows; none: any")
    allow_soft: bool = option(False, "whether a writable mount may be soft")
    min_io_kb: Annotated[int, Ge(1), Le(1024)] = option(
        64, "smallest rsize and wsize that are no warning", unit="KiB"
    )
    retrans_percent: Annotated[float, Gt(0)] = option(
        1.0, "share of requests sent again, since it was mounted, that is a warning", unit="%"
    )
    log_hours: Annotated[int, Ge(0)] = option(
        24, "how far back the kernel's log is read for a server that was silent", unit="h"
    )
    write: bool = option(
        True, "whether an empty file is made in each mount, looked at and removed at once"
    )
    write_dirs: tuple[str, ...] = option(
        (), "directories for that file; none: the mount's own, else the login user's home"
    )
    throughput: bool = option(
        False, "whether writing is timed too: it loads the server, one node after the other"
    )
    throughput_dir: str = option(
        "", "directory to time it in; none: where the first of the empty files could be made"
    )
    size_mb: Annotated[int, Ge(8)] = option(1000, "most that is written to time it", unit="MiB")
    max_seconds: Annotated[float, Gt(0), Le(20)] = option(
        3.0, "time for size_mb where the link to the server is no slower", unit="s"
    )
    link_percent: Annotated[int, Ge(1), Le(100)] = option(
        60, "share of the link's speed that one writer must reach on a slower link", unit="%"
    )
    min_mb_per_second: Annotated[float, Ge(0)] = option(
        0.0, "rate below which it fails whatever the link; 0: by the three above", unit="MB/s"
    )
    small_files: Annotated[int, Ge(10), Le(1000)] = option(
        100, "small files that are made, looked at, renamed and removed to time it", unit="files"
    )
    small_ms: Annotated[float, Gt(0)] = option(
        20.0, "time for one of these steps above which it is a warning", unit="ms"
    )
    busy_percent: Annotated[int, Ge(1)] = option(
        50, "load, in percent of the CPUs, above which nothing is timed", unit="%"
    )

    def __post_init__(self) -> None:
        for name in ("mounts", "read_only", "writable", "write_dirs"):
            for path in getattr(self, name):
                if not path.startswith("/"):
                    raise ValueError(f"{path!r} in {name} must begin with /")
        if self.throughput_dir and not self.throughput_dir.startswith("/"):
            raise ValueError(f"throughput_dir {self.throughput_dir!r} must begin with /")
        if self.throughput and not self.write:
            raise ValueError("throughput = yes needs write = yes")
        both = set(self.read_only) & set(self.writable)
        if both:
            raise ValueError(f"{', '.join(sorted(both))} is both in read_only and in writable")
