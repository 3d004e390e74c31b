"""What to do about disks that are full, degraded or failing."""

from clustercheck.check import Remedy

FREE_SPACE = Remedy(
    "Find what is large (`du -xh -d 1 DIRECTORY | sort -h`) and ask its owner before anything is"
    " removed; old logs and core files come first. A full / or /var stops logs, logins and"
    " daemons such as slurmd.",
    "§4.4",
)
FREE_INODES = Remedy(
    "Find the directory with most files (`du --inodes -x DIRECTORY | sort -n | tail`) and ask its"
    " owner: until some are removed nothing new can be written, though there is space.",
    "§4.4",
)
SEE_SYSTEM = Remedy(
    "Look at `findmnt` for how it is mounted and at `dmesg` for errors; a stale NFS mount must be"
    " mounted anew.",
    "§4.4",
)
NAME_PLACE = Remedy("Name a directory in the option `paths` that is there on this node.")
RAISE_QUOTA = Remedy(
    "Look at `quota -s` as that user: writes beyond the limit fail and end no job by themselves."
    " Remove what is not needed, or let the limit be raised.",
    "§5.4",
)
REPLACE_DISK = Remedy(
    "Drain the node, copy what is needed from the disk while it can be read, and have it replaced;"
    " `smartctl -a DEVICE` has what the maker asks for.",
    "§4.4",
    disturbs=True,
)
WATCH_DISK = Remedy(
    "See with `smartctl -a DEVICE` whether the number grows from day to day: if it does, have the"
    " disk replaced. A disk at the end of its rated writes still works; plan its replacement.",
    "§4.4",
)
COOL_DISK = Remedy(
    "Look at the node's fans and air flow and at its other temperatures (`ipmitool sdr`): a disk"
    " that is too hot slows down.",
)
READ_LOG = Remedy(
    "Read `dmesg -T` round these lines and `smartctl -a DEVICE`: medium errors are the disk's own,"
    " resets and time-outs may be the cable, the backplane or the controller. Where a file system"
    " became read-only, it must be checked before it is used again.",
    "§4.4",
)
FIND_DISK = Remedy(
    "The kernel has given the disk up: look at `dmesg` for why, and at its cable, slot and"
    " controller. Drain the node before it is touched.",
    "§4.4",
    disturbs=True,
)
MEND_ARRAY = Remedy(
    "See with `mdadm --detail ARRAY` which member is gone and why (`dmesg`), have the disk"
    " replaced, and add the new one (`mdadm --add`): until then the next failure loses data.",
    "§4.4",
)
START_ARRAY = Remedy(
    "See with `mdadm --detail ARRAY` and `mdadm --examine MEMBER` what is missing before it is"
    " started: an array that is forced together with an old member loses data.",
    "§4.4",
)
GET_SMARTCTL = Remedy("Install smartmontools, or say `smart = no`.")
