"""Facts of nodes for the tests of the checks mounts, disk and login."""

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

HEADER = "Filesystem 1024-blocks Used Available Capacity Mounted on"
INODES = "Filesystem Inodes IUsed IFree IUse% Mounted on"
DISK = {
    "uptime": "90200.10",
    "file_systems": "local",
    "held": "8:3",
    "groups": "1",
    "asked@1": "ext4 /dev/sda2 /\nxfs /dev/sdb1 /data",
    "space@1": f"{HEADER}\n/dev/sda2 51290592 17301004 31351748 36% /\n"
    "/dev/sdb1 976762584 488381292 488381292 50% /data",
    "inodes@1": f"{INODES}\n/dev/sda2 3276800 100000 3176800 4% /\n"
    "/dev/sdb1 400000 4000 396000 1% /data",
    "states": "sda running\nsdb running\nnvme0n1 live",
    "disks": "sda sdb nvme0n1",
    "smart": "missing",
    "mdstat": "",
    "log_from": "dmesg",
    "log": "lines 900\nfirst 0.000000\nended 0",
}
NVME = (
    '{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":0},'
    '"device":{"name":"/dev/nvme0n1","type":"nvme","protocol":"NVMe"},"model_name":"KXD51RUE7T68",'
    '"smart_status":{"passed":true,"nvme":{"value":0}},"nvme_smart_health_information_log":{'
    '"critical_warning":0,"temperature":38,"available_spare":100,"available_spare_threshold":10,'
    '"percentage_used":3,"data_units_written":4482321044,"media_errors":0,"num_err_log_entries":0}}'
)
ATA = (
    '{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":0},'
    '"device":{"name":"/dev/sda","type":"sat","protocol":"ATA"},"model_name":"ST8000NM0055",'
    '"smart_support":{"available":true,"enabled":true},"smart_status":{"passed":true},'
    '"ata_smart_attributes":{"revision":10,"table":['
    '{"id":5,"name":"Reallocated_Sector_Ct","value":100,"worst":100,"thresh":10,"when_failed":"",'
    '"flags":{"value":51,"prefailure":true},"raw":{"value":0,"string":"0"}},'
    '{"id":190,"name":"Airflow_Temperature_Cel","value":60,"worst":40,"thresh":40,'
    '"when_failed":"past","raw":{"value":40,"string":"40"}},'
    '{"id":197,"name":"Current_Pending_Sector","value":100,"worst":100,"thresh":0,'
    '"when_failed":"","raw":{"value":0,"string":"0"}}]}}'
)
MDSTAT = (
    "Personalities : [raid1] [raid6] [raid5] [raid4]\n"
    "md1 : active raid5 sdd1[3] sdc1[1](F) sdb1[0]\n"
    "1953258496 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [U_U]\n"
    "[==>..................]  recovery = 12.6% (37043392/292945152)\n"
    "\n"
    "md0 : active raid1 sdb2[1] sda2[0]\n"
    "104320 blocks [2/2] [UU]\n"
    "\n"
    "unused devices: <none>"
)
DISK_FULL = {
    **DISK,
    "space@1": DISK["space@1"].replace("488381292 488381292 50%", "956762584 20000000 98%"),
    "quota_status": "0",
    "quota": "Disk quotas for user ops (uid 1000):\n"
    "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
    "      /dev/sda2    900*    800    1000 1730000000      10       0       0       0",
    "states": "sda running\nsdb offline\nnvme0n1 live",
    "smart": "asked",
    "status@sda": "0",
    "smart@sda": ATA.replace('"thresh":0,"when_failed":"","raw":{"value":0', '"raw":{"value":8'),
    "status@sdb": "2",
    "smart@sdb": "Smartctl open device: /dev/sdb failed: No such device",
    "status@nvme0n1": "0",
    "smart@nvme0n1": NVME,
    "mdstat": MDSTAT,
    "log": "[90100.5] blk_update_request: I/O error, dev sdb, sector 2048\n"
    "[90100.6] nvme nvme0: I/O 12 QID 3 timeout, aborting\n"
    "lines 900\nfirst 0.000000\nended 0",
}

LOGIN = {
    "uid": "1000",
    "nologins": "0",
    "home": "/home/ops",
    "home_owner": "1000",
    "home_writable": "yes",
    "home_state": "directory",
    "locked_memory": "8388608",
    "open_files": "1024",
    "way": "ssh",
    "shell": "/bin/bash",
    "start": "0 90200.10 90200.15",
    "noise": "status 0",
}
LOGIN_FULL = {
    **LOGIN,
    "nologins": "1",
    "nologin@1": "/run/nologin System is booting up.",
    "home_writable": "no",
    "start": "3 90200.10 90204.10",
    "again": "3 90204.10 90207.10",
    "youngest": "4711 D rpc_wait_bit_killable bash",
    "noise": "Welcome to node01\nstatus 0",
}
