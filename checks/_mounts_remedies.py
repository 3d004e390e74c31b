"""What to do about mounts that are absent, dead, read-only or not as the site wants them."""

from clustercheck.check import Remedy

MOUNT_IT = Remedy(
    "Mount it by hand and read what mount(8) says (`mount -v DIRECTORY`); at boot the same is in"
    " `journalctl -b -u '*.mount'`. Where it is not wanted on this node, take it out of /etc/fstab,"
    " say noauto there, or leave it out of the option `want`.",
    "§4.4",
)
FIND_DEVICE = Remedy(
    "See whether the disk is there (`lsblk -f`) and whether its UUID or label is still the one in"
    " /etc/fstab: a new file system has a new UUID. For a disk that is gone, look at"
    " `dmesg` and at the controller or the cable.",
    "§4.4",
)
START_AUTOMOUNT = Remedy(
    "Look at the unit (`systemctl status '*.automount'`): after a change of /etc/fstab,"
    " `systemctl daemon-reload` and a start of the unit are needed; a unit that failed names the"
    " cause.",
    "§4.4",
)
MEND_IT = Remedy(
    "Drain the node and read `dmesg` for the first error: a failed disk must be replaced. If the"
    " disk is sound, unmount the file system, check it with its own tool (fsck, xfs_repair) and"
    " mount it again; remounting it rw without that check may lose data.",
    "§4.4",
    disturbs=True,
)
SAME_AS_TABLE = Remedy(
    "Find out why it is read-only (`findmnt DIRECTORY`, `dmesg`): after an error it must be"
    " checked first. If it is meant, write ro in /etc/fstab or name it in the option `read_only`.",
    "§4.4",
)
REVIVE = Remedy(
    "Drain the node and look at the client's log and at its server: a FUSE program that has ended"
    " leaves a dead mount, which is unmounted (`fusermount -u`, or `umount -l`) and mounted"
    " anew; a client that its server has put out reconnects by itself when the network is well"
    " (`lctl get_param '*.*.state'` shows it for Lustre, `beegfs-ctl --listnodes --reachable` for"
    " BeeGFS, `mmgetstate` for GPFS).",
    "§4.4",
    disturbs=True,
)
WAKE_IT = Remedy(
    "Look at its servers and at the way to them, and here at `dmesg`. Processes that wait in state"
    " D go on when the servers are back; do not look with df, which waits as well.",
    "§4.4",
)
LET_LOOK = Remedy(
    "Let the login user look at the directory, or use become = sudo; a ticket may have ended.",
)
UNMOUNT_ONE = Remedy(
    "Find what mounts it again, a script with `mount` in place of `mount -a` or a second entry"
    " (`findmnt DIRECTORY` lists them), and unmount the upper one when the node is drained:"
    " processes that were there before still see the lower one.",
    "",
    disturbs=True,
)
SET_OPTIONS = Remedy(
    "Write the options for this mount in /etc/fstab or in the automounter's map and mount it anew"
    " when the node is drained. Where the kernel shows an option by another name, write that name"
    " (`findmnt -o OPTIONS DIRECTORY`).",
    "§2.3",
    disturbs=True,
)
SAME_MOUNTS = Remedy(
    "Compare /etc/fstab and the automounter's maps with another node's. Where nodes differ on"
    " purpose, say `compare = no` for the group that differs.",
    "§4.4",
)
READ_TABLE = Remedy("Let the login user read /etc/fstab (mode 0644), or use become = sudo.")
