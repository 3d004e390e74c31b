"""For each check, nodes that tell all that a node ever tells: what hostile facts are made from."""

from tests import (
    dns_facts,
    gpu_health_node,
    gpu_node,
    link_facts,
    memory_node,
    mtu_facts,
    ntp_facts,
    processes_node,
    slurm_facts,
    storage_facts,
)

NAMES = "missing node07\nmine node01 10.0.0.1 -\nsum4 3 12345 67890\nsum6 1 23 45\nnames 4 4 1"
TABLE = "node01 10.0.0.1 -;node02 10.0.0.2 2001:db8::2;node03 10.0.0.9 -\nnode07 - -"
DNS = {
    **dns_facts.GOOD,
    "own.plain": "10.0.0.1 STREAM node01.cluster.example",
    "plain": "files dns",
    "services": "files resolve [!UNAVAIL=return] dns",
    "addresses.six": "00000000000000000000000000000001\n20010db8000000000000000000000001",
    "upstream.file": "read",
    "upstream": "nameserver 10.0.0.53",
    "hosts": "127.0.1.1 node01 # by the installer",
    "names": NAMES,
    "table": TABLE,
    "said@10.0.0.53": "A node01.cluster.example NOERROR 10.0.0.1\n"
    "AAAA node01.cluster.example NOERROR\nPTR 10.0.0.1 NOERROR node01.cluster.example",
    "said@10.0.0.54": "A node01.cluster.example SERVFAIL",
}

XML = """\
<driver_version>550.90.07</driver_version>
<cuda_version>12.4</cuda_version>
<attached_gpus>2</attached_gpus>
<gpu id="00000000:10:00.0">
<virtualization_mode>None</virtualization_mode>
<process_info>
<pid>4711</pid>
<process_name>python3</process_name>
<used_memory>30512 MiB</used_memory>
"""
GPU = gpu_node.facts(
    gpu_node.listed(
        gpu_node.gpu(0, "30600 MiB"),
        gpu_node.gpu(1, "10151 MiB", name="NVIDIA GB10", capability="12.1", mig="Enabled"),
    ),
    gpu_node.running((0, 4711, "30512 MiB", "python3"), (1, 4712, "[N/A]", "a, b")),
    details=XML,
    compat="/usr/local/cuda-12.8/compat/libcuda.so.570.86.10",
    processes="4711 40990 Z 2 alice 0 - /slurm/uid_1000/job_77/step_0 slurmstepd python3\n"
    "4712 1 D 1 bob 0,1 nvidia_close /docker/0123456789abcdef systemd a b",
    refused="mig.mode.current",
)
GPU_TABLE = gpu_node.recorded("smi-table-535-a100x4-one-busy")

LINKS = (
    "lo 65536 unknown 1 772 1 1 - - -\neth0 9000 up 1 1 2 2 real ,bond0 -\n"
    "bond0 9000 up 1 1 3 3 bond - ,eth0\nbond0.7 9000 up 1 1 4 3 vlan - -\n"
    "br0 1500 up 1 1 5 5 bridge - ,veth1\nveth1 1500 up 1 1 6 7 - ,br0 -"
)
MTU = mtu_facts.with_peers(
    mtu_facts.peer("node02", "silent", 1500, 1501),
    mtu_facts.peer("node03", "arrives"),
    mtu_facts.peer("node04", "local", 1500, mtu=1500),
) | {"interfaces": LINKS, "default": "bond0"}

MOUNT = (
    "44 27 0:44 / /home rw,relatime shared:9 - nfs4 nas1:/export rw,vers=4.2,rsize=1048576,"
    "wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.30.0.21,"
    "local_lock=none,addr=10.30.0.5"
)
NFS = {
    "uid": "1000",
    "mountinfo": "read",
    "mounts": MOUNT,
    "fstab": "nas1:/export /home nfs4 rw,hard 0 0",
    "mount@1": MOUNT,
    "reach@10.30.0.5/2049": "open",
    "step@1": "nothing",
    "state@1": "answers",
    "size@1": "1048576 1000000 400000 100000000 90000000",
    "touch@1": "done",
    "owner@1": "1000",
    "chmod@1": "done",
    "place@1": "/home",
    "old@1": "",
    "touched": "1",
    "uptime": "90200.10",
    "kernel_log": "[12.3] nfs: server 10.30.0.5 not responding, still trying",
    "traffic": "",
    "exports": "",
    "heavy.status": "whole",
    "heavy.busy": "",
    "heavy.place": "/home",
    "heavy.free_mb": "400000",
    "heavy.quota_mb": "9000",
    "heavy.device": "eth0",
    "heavy.speed": "10000",
    "heavy.direct": "yes",
    "heavy.first_status": "0",
    "heavy.first": "8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.02 s, 419 MB/s",
    "heavy.dd_status": "0",
    "heavy.dd": "1048576000 bytes (1.0 GB, 1000 MiB) copied, 2.5 s, 419 MB/s",
    "heavy.small@create": "0 1000.00 1000.40",
    "heavy.small@unlink": "0 1000.00 1000.40",
}
NTP = {
    **ntp_facts.GOOD,
    **ntp_facts.clock(0.3, 0.001),
    **ntp_facts.here(0.1, 0.01),
}
NTPQ = {
    "running": "ntpd /usr/sbin/ntpd -u ntp:ntp",
    "processes": "all",
    "ntpq": ntp_facts.recorded("ntpq-pn-classic") + ntp_facts.recorded("ntpq-rv-classic-synced"),
    **ntp_facts.clock(0.3, 0.001),
}
TIMESYNCD = {
    **ntp_facts.TIMESYNCD,
    "timedatectl": ntp_facts.recorded("timedatectl-show-synced"),
    "timesyncd": ntp_facts.recorded("timedatectl-timesync-status-synced"),
    **ntp_facts.clock(0.3, 0.001),
}
SELINUX = {
    "kernel": "yes",
    "mount": "/sys/fs/selinux",
    "enforce": "1",
    "policy": "loaded",
    "label": "system_u:system_r:unconfined_t:s0",
    "lsm": "lockdown,capability,yama,selinux,bpf",
    "apparmor": "",
    "cmdline": "quiet enforcing=0",
    "config_state": "read",
    "config": "SELINUX=permissive\nSELINUXTYPE=targeted",
    "policies": "targeted 33",
    "denials_from": "the audit log",
    "denials": "4 slurmd { read } file 0\n120 lines",
}
HEADER = "Filesystem 1024-blocks Used Available Capacity Mounted on"
TMP = {
    "slurm": "/etc/slurm/slurm.conf",
    "memory": "32000000",
    "directories": "1",
    "path@1": "/tmp",
    "from@1": "default",
    "state@1": "directory",
    "mode@1": "drwxrwxrwt",
    "owner@1": "0",
    "writable@1": "yes",
    "real@1": "/tmp",
    "mount@1": "27 1 8:3 / /tmp rw,noexec shared:1 - tmpfs tmpfs rw,size=16000000k",
    "space@1": f"{HEADER}\n/dev/sda3 20511312 20305120 206192 99% /",
    "inodes@1": f"{HEADER}\n/dev/sda3 1310720 1310700 20 100% /",
    "largest@1": "2097152 alice Nov 12 10:11 /tmp/core dump\ncut",
    "crowded@1": "1310000 bob Nov 12 10:11 /tmp/many",
    "deleted": "2097152 1 4711 alice python3 /tmp/core dump",
}

FINGERPRINT = """\
os Rocky Linux 9.4 (Blue Onyx)
cmdline BOOT_IMAGE=/vmlinuz root=UUID=07 ro mitigations=off
cpu.model AMD EPYC 7543
memory.total_kib 527912345
memory.transparent_huge_pages always [madvise] never
sysctl.net/ipv4/tcp_rmem 4096	131072	6291456
mount./home nfs4 nfs:/home rw,noatime,vers=4.2,addr=10.0.0.1
gpu.cards.10de:20b2 8
gpu.power_limit 7 x 400.00 W
resolv.nameserver 10.0.0.53
resolv.nameserver 10.0.0.54
file.hosts 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
"""

REACH = {
    "peers": "4",
    "slurmd": "yes",
    "tool": "bash",
    "known_hosts": "yes",
    **{f"target@node{n:02}": f"10.0.0.{n}" for n in (2, 3, 4, 5)},
    **{f"port@node{n:02}": "22" for n in (2, 3, 4, 5)},
    **{f"slurmd@node{n:02}": word for n, word in ((2, "open"), (3, "silent"), (4, "refused"))},
    "ssh@node02": "open",
    "ssh@node03": "silent",
    "ssh@node04": "no_route",
    "ssh@node05": "no_name",
    "key@node02": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA",
    "system@node02": "# Host node02 found: line 3\nnode02 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB",
    "system@node03": "",
    "user@node03": "node03 ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB",
}

FULL: dict[str, list[dict[str, str]]] = {
    "bond": [link_facts.BOND],
    "disk": [storage_facts.DISK_FULL],
    "dns": [DNS],
    "fingerprint": [{"fields": FINGERPRINT, "gpu_settings": "asked"}],
    "gpu": [GPU, {**GPU, "gpus": GPU_TABLE, "apps": GPU_TABLE, "banner": GPU_TABLE}],
    "ib": [link_facts.IB, link_facts.IBSTAT],
    "link": [link_facts.LINK],
    "login": [storage_facts.LOGIN_FULL],
    "mounts": [storage_facts.MOUNTS_FULL],
    "gpu_health": gpu_health_node.FULL,
    "memory": [memory_node.FULL],
    "mtu": [MTU],
    "munge": [slurm_facts.MUNGE],
    "nfs": [NFS],
    "ntp": [NTP, NTPQ, TIMESYNCD],
    "reach": [REACH],
    "cpu": [
        {
            "load": "256.20 99.1 88.0 9/900 4711",
            "cpus": "0-63,128-191",
            "first": "cpu  1000 0 100 9000 10 1 5 0 0 0",
            "second": "cpu  2000 0 200 9001 10 1 5 0 0 0",
            "governors": "powersave performance",
            "driver": "acpi-cpufreq",
        }
    ],
    "retrans": [link_facts.RETRANS, link_facts.RETRANS_IDLE],
    "processes": [processes_node.FULL],
    "selinux": [SELINUX],
    "services": [slurm_facts.SERVICES],
    "slurm": [slurm_facts.ASKED, slurm_facts.HERE, slurm_facts.STOPPED],
    "tmp": [TMP],
}
