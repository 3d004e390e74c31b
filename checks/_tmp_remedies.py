"""What to do about a directory that is full, or not as it should be."""

from clustercheck.check import Remedy

OF_SLURM = (
    "Leave alone what Slurm keeps (its spool directory and the private directories of"
    " job_container/tmpfs): running jobs live in it."
)
FREE_SPACE = Remedy(
    "See whose the entries are and how old (`ls -la`, `du -xh -d 1`), and ask the owners to move or"
    " remove what no job of theirs needs. Let systemd-tmpfiles, or an epilog of the site's own,"
    f" take what is old. {OF_SLURM}",
    "§5.5",
)
FREE_INODES = Remedy(
    "See whose the many small files are and how old, and ask the owner to pack them (tar,"
    " SquashFS, LMDB) or remove them. Free space does not help: a file system's number of inodes"
    f" is mostly fixed when it is made. {OF_SLURM}",
    "§4.4",
)
CLOSE_FILES = Remedy(
    "Ask the user of the process to end it or to let it open its files anew: the space comes back"
    " when the last process closes the file. A daemon that was left behind by log rotation is told"
    " to open its log again.",
    "§4.4",
)
MAKE_WRITABLE = Remedy(
    "See in the kernel's log why (`dmesg | grep -iE 'remount|I/O error'`): after an error on the"
    " disk the kernel does this to save the data. Drain the node, check the disk with smartctl and"
    " the file system with fsck while it is not mounted; if it is meant to be so, take ro out of"
    " /etc/fstab.",
    "§4.4",
    disturbs=True,
)
SET_MODE = Remedy(
    "Give /tmp its owner and mode back: `chown root:root /tmp`, then `chmod 1777 /tmp`. The first"
    " digit is what keeps users from each other's files; on any other shared directory set the"
    " same bit with `chmod +t`.",
)
MAKE_DIRECTORY = Remedy(
    "Make or mount the directory (look at /etc/fstab and `systemctl status tmp.mount`), or take it"
    " out of the option `paths` or of TmpFS in slurm.conf.",
    "§4.4",
)
SEE_SERVER = Remedy(
    "Look at the file system below it: `findmnt -T` names the server or device; then see whether"
    " that answers, and what the kernel's log says of it.",
    "§4.4",
)
ALLOW_EXEC = Remedy(
    "Builds, compilers at run time and installers execute files there. Take noexec out of the"
    " mount's options if jobs may, point their TMPDIR elsewhere, or say `warn_noexec = no` for"
    " this check if the site wants it so.",
)
LIMIT_MEMORY = Remedy(
    "Give the tmpfs a size that leaves jobs their memory (size= in /etc/fstab or in tmp.mount),"
    " and tell users that what they write there is memory: a job's files may count against its"
    " memory limit.",
    "§2.1",
)
LET_READ = Remedy("Let the login user read the file, or name Slurm's TmpFS in the option `paths`.")
