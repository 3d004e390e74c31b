"""Facts of nodes for the tests of the checks mounts and disk."""

ROOT = "27 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro"
LUSTRE = "61 27 0:61 / /lustre rw,flock shared:9 - lustre 10.30.0.6@tcp:/fs rw,lazystatfs"
MOUNTS = {
    "mountinfo": "read",
    "systemd": "yes",
    "container": "",
    "fstab": "read",
    "entries": "/dev/sda2 / ext4 defaults",
    "mounts": ROOT,
    "over": "0",
    "absent": "0",
    "touched": "0",
    "locals": "read",
}
MOUNTS_FULL = {
    **MOUNTS,
    "entries": "/dev/sda2 / ext4 defaults\nUUID=0d3c-11 /local xfs defaults,nofail\n"
    "10.30.0.6@tcp:/fs /lustre lustre _netdev,flock\n/dev/sdc1 /opt ext4 x-systemd.automount",
    "mounts": f"{ROOT.replace(' rw,errors', ' ro,errors')}\n{LUSTRE}\n{LUSTRE}\n"
    "70 27 8:33 / /opt ro,relatime shared:9 - ext4 /dev/sdc1 rw",
    "absent": "1",
    "absent@1": "/local",
    "real@1": "/mnt/local",
    "device@1": "absent",
    "log@1": "mount: /local: can't find UUID=0d3c-11.",
    "touched": "1",
    "touched@1": "/lustre",
    "state@1": "Cannot send after transport endpoint shutdown",
    "locals": "stat: cannot statx '/opt/.': Input/output error",
    "kernel_log": "[90.1] EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm ls: x\n"
    "[90.2] EXT4-fs (sda2): Remounting filesystem read-only",
}
