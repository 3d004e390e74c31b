"""What to do about NFS mounts that are absent, silent, slow or not as the site wants them."""

from clustercheck.check import Remedy

MOUNT_AGAIN = (
    " An option takes effect when the file system is unmounted and mounted again: drain the node"
    " first."
)
FIND_SERVER = Remedy(
    "See whether the server is up and nfsd runs there, and whether a firewall lets this node's TCP"
    " to its port through: version 4 needs 2049 alone, version 3 also 111 (rpcbind) and mountd's"
    " port. Where other nodes reach it, look at this node's link to it (`ip route get ADDRESS`,"
    " `ip -s link`). Processes that wait for a hard mount go on when the server is back.",
    "§1",
)
OPEN_RPC = Remedy(
    "Let TCP 111 (rpcbind) and mountd's port through to the server, or use version 4, which needs"
    " 2049 alone: a version 3 mount works on without them, and can neither be made anew nor lock"
    " files.",
    "§1",
)
WAKE_SERVER = Remedy(
    "The server's port is open, so look at nfsd and its storage there (threads in D state, a full"
    " or failed disk), and here at `dmesg | grep nfs:`. Where small requests pass and large ones"
    " hang, a switch port or an interface on the way has a smaller MTU: try `ping -M do -s 8972`"
    " (1472 for MTU 1500).",
    "§5.3",
)
MOUNT_ANEW = Remedy(
    "The server exports something else by that name now (exported anew, moved, restored). Drain"
    " the node, end what has files open there (`fuser -vm` names it), unmount it (`umount -l` where"
    " it is refused) and mount it again.",
    "§4.4",
    disturbs=True,
)
SEE_LOGS = Remedy(
    "Look at the kernel's log (`dmesg | grep -i nfs`) and at the server's, and at `nfsstat -m`.",
    "§4.4",
)
GET_TICKET = Remedy(
    "Let the login user look at it: with sec=krb5 it needs a valid ticket (`klist`); otherwise see"
    " the mode of the exported directory on the server.",
    "§5.2",
)
MOUNT_IT = Remedy(
    "Mount it by hand and read what mount(8) says (`mount -v DIRECTORY`); at boot the same is in"
    " `journalctl -b -u '*.mount'`. Where it is not wanted on this node, take it out of"
    " /etc/fstab, say noauto there, or leave it out of the option `mounts`.",
    "§1",
)
GIVE_NAME = Remedy(
    "Look at `getent hosts SERVER` on the node: /etc/hosts, /etc/resolv.conf and the name servers."
    " At boot, the mount must wait for the network (_netdev in /etc/fstab).",
    "§4.1.2",
)
EXPORT_IT = Remedy(
    "On the server, let the export name this node's address (`exportfs -v` shows what it allows),"
    " then `exportfs -ra`; no restart is needed.",
    "§5.2",
)
MAKE_HARD = Remedy(
    "Take soft (or softerr) out of the mount's options: hard is the default and waits for the"
    " server; soft gives an error after a while, and data that was written may be lost without a"
    " word." + MOUNT_AGAIN,
    "§2.3",
    disturbs=True,
)
USE_TCP = Remedy(
    "Take proto=udp out of the mount's options: TCP is the default. Over UDP, fragments of"
    " different requests can be mixed up on fast networks." + MOUNT_AGAIN,
    "§2.3",
    disturbs=True,
)
NO_SYNC = Remedy(
    "Take sync out of the mount's options: each write then waits for the server. async is the"
    " client's default and need not be set; the export's sync is another thing, and right."
    + MOUNT_AGAIN,
    "§2.3",
    disturbs=True,
)
LARGER_IO = Remedy(
    "Take rsize and wsize out of the mount's options: client and server then agree on the largest"
    " that both take, up to 1 MiB. Where it stays small, the server limits it (on Linux"
    " /proc/fs/nfsd/max_block_size)." + MOUNT_AGAIN,
    "§2.3",
    disturbs=True,
)
NEWER_VERSION = Remedy(
    "Take vers= (nfsvers=) out of the mount's options, or let the server offer the version"
    " (`cat /proc/fs/nfsd/versions` there)." + MOUNT_AGAIN,
    "§1",
    disturbs=True,
)
OTHER_SEC = Remedy(
    "Set sec= in the mount's options and in the server's export to what the site wants."
    + MOUNT_AGAIN,
    "§1",
    disturbs=True,
)
UNCOVER = Remedy(
    "See what lies there and who uses it (`findmnt DIRECTORY` lists both, `fuser -vm DIRECTORY`),"
    " drain the node, and unmount the upper one. Find what mounts it (/etc/fstab, a unit, a"
    " prolog), or it comes back with the next boot.",
    "§1",
    disturbs=True,
)
SAME_SOURCE = Remedy(
    "Find out which of the two the site wants. Mount it anew (`umount DIRECTORY; mount DIRECTORY`)"
    " while the node is drained, or correct /etc/fstab: the next boot mounts what is written"
    " there.",
    "§2.3",
    disturbs=True,
)
SAME_OPTIONS = Remedy(
    "Compare the mount's line in /etc/fstab or in the automounter's map with the other nodes'; a"
    " node that mounted while the server was otherwise set up keeps what was agreed then."
    + MOUNT_AGAIN,
    "§2.3",
    disturbs=True,
)
LET_WRITE = Remedy(
    "See whether the directory's mode lets the login user write, whether the mount or the export"
    " is ro (`exportfs -v` on the server), or name another directory in the option `write_dirs`.",
    "§5.2",
)
CLOSE_WRITING = Remedy(
    "Export it ro to the compute nodes and mount it ro: one node could spoil it for all.",
    "§5.2",
)
MAP_IDS = Remedy(
    "With version 4, compare Domain in /etc/idmapd.conf on the node and on the server"
    " (`nfsidmap -d`), see that both know the user, then clear the cache (`nfsidmap -c`). With"
    " version 3, or where that agrees, look for all_squash and anonuid in `exportfs -v` on the"
    " server. How root is treated has no part in it.",
    "§5.2",
)
SQUASH_ROOT = Remedy(
    "Export it with root_squash, which is the default, then `exportfs -ra`: without it, root of"
    " any node that may mount it owns all data. Tools that run as root can write as an ordinary"
    " user.",
    "§5.2",
)
TRUST_ROOT = Remedy(
    "Let the tools that run as root write as an ordinary user, or in a directory that such a user"
    " owns. Only where that cannot be, let the server trust root of that one trusted node, never of"
    " a whole network: it then owns all data there.",
    "§5.2",
)
FREE_SPACE = Remedy(
    "Look at space and inodes of the mount (`df -P` and `df -Pi` with its directory) and ask the"
    " owners of the most to move or remove what they do not need; writes fail until then.",
    "§4.4",
)
RAISE_QUOTA = Remedy(
    "Look at `quota -s` as that user: writes beyond the limit fail and end no job by themselves."
    " Remove what is not needed, or let the limit be raised on the server.",
    "§5.4",
)
FIND_LOSS = Remedy(
    "Look for errors on the way (`ip -s link`, `ethtool -S` on the node, the switch's ports) and"
    " at the load of the server; `nfsiostat 1` shows whether it goes on. iostat shows nothing of"
    " NFS.",
    "§2.3",
)
FIND_SLOWNESS = Remedy(
    "Run it again at a quiet time. Then compare: one slow node has a link of its own (speed,"
    " duplex, errors, MTU), all slow nodes have the server (its disks, its threads, its own link)."
    " The file is one stream of single requests, so many writers together may be faster.",
    "§4.1.3",
)
FEWER_FILES = Remedy(
    "Copy the data to a local disk when the job starts, and pack small files into few large ones"
    " (tar shards, LMDB, SquashFS). On the server, look at the latency of the disks that hold the"
    " journal, since each small file waits for them.",
    "§2.1",
)
REMOVE_FILE = Remedy(
    "Remove it on any node that has the directory mounted: it is left over from a run that was"
    " killed, and nothing uses it.",
    "§4.1.3",
)
