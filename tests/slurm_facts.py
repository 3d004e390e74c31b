"""Facts of made-up nodes for the checks slurm, munge and services."""

HEADER = "Filesystem 1024-blocks Used Available Capacity Mounted on"
SLURM = {
    "tools": "scontrol sinfo",
    "conf": "/etc/slurm/slurm.conf",
    "installed": "yes",
    "host": "node01.cluster.example",
    "addresses": "10.30.0.21\n10.31.0.21\nfe80000000000000021122fffe334455",
    "digests": f"{'1' * 64}  /etc/slurm/slurm.conf\n{'2' * 64}  /etc/slurm/cgroup.conf",
    "cluster": "demo",
    "flags": "",
    "slurmd": "4711",
    "node": "node01",
    "enabled": "yes",
    "answer_status": "0",
    "answer": "Active Steps             = NONE\nHostname                 = node01\n"
    "Slurmd PID               = 4711\nVersion                  = 24.11.5",
    "spool": "/var/spool/slurmd",
    "spool_mode": "drwxr-xr-x",
    "space": f"{HEADER}\n/dev/sda5 20511312 12511900 7999412 61% /var",
    "inodes": f"{HEADER}\n/dev/sda5 1310720 10720 1300000 1% /var",
    "gpus": "nvidia 4",
    "waiting": "none",
}
# The one that was asked what its controller says.
ASKED = {
    **SLURM,
    "asked.ping": "Slurmctld(primary) at ctl is UP\nSlurmctld(backup) at ctl2 is DOWN",
    "asked.status": "0",
    "asked.nodes": "NodeName=node01 NodeHostName=node01 NodeAddr=node01 State=IDLE+DRAIN"
    " Gres=gpu:a100:4(S:0-1) Reason=Kill task failed [root@2026-11-30T17:51:08]\n"
    "Nodes=node02,node03 State=IDLE Gres=gpu:a100:4(S:0-1)\nnode04 main* down*",
    "waiting": "ps\n 41022 D rpc_wait_bit_killable python3",
    "lines": "file /etc/slurm/slurm.conf\nClusterName=demo\nSlurmdTimeout=300",
}
# One of which this machine has heard, with the numbers of a node of the samples.
HERE = {
    **SLURM,
    "here.ping": "Slurmctld(primary) at ctl is UP",
    "here.version": "24.11.5",
    "here.node": "NodeName=node01 NodeHostName=node01 NodeAddr=10.30.0.21 State=IDLE"
    " Gres=gpu:a100:4 CPUTot=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=515000",
    "hardware": "NodeName=node01 CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=16"
    " ThreadsPerCore=2 RealMemory=515848",
    "hardware_status": "0",
    "parameters": "slurmctldparameters node_reg_mem_percent=95;",
}
STOPPED = {**SLURM, "slurmd": "stopped", "asked.status": "1", "asked.error": "Unable to contact"}
MUNGE = {
    "installed": "yes",
    "slurm": "/etc/slurm/slurm.conf",
    "cluster": "demo",
    "auth": "auth/munge",
    "enabled": "yes",
    "made_status": "0",
    "read_status": "0",
    "read": "STATUS:          Success (0)\nENCODE_HOST:     node01.hpc.example (10.30.0.21)\n"
    "ENCODE_TIME:     2026-11-30 17:55:36 +0000 (1796061336)\n"
    "DECODE_TIME:     2026-11-30 17:55:36 +0000 (1796061336)\nTTL:             300\n"
    "CIPHER:          aes128 (4)\nMAC:             sha256 (5)\nUID:             root (0)",
    "socket": "998 995 1796000100",
    "key": "400 998 995 128 1796000000",
    "digest": "0123456789abcdef",
}
# Nothing is wanted by default: the units are there for a judge that would read them all the same.
SERVICES = {
    "init": "systemd",
    "first": "systemd",
    "failed_status": "0",
    "failed": "sssd.service loaded failed failed System Security Services Daemon\n"
    "gpfs.service loaded activating auto-restart General Parallel File System\n"
    "kdump.service loaded failed failed Crash recovery kernel arming",
}
