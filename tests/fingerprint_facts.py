"""What nodes tell of themselves, for the tests of the check fingerprint."""

from collections.abc import Mapping

from clustercheck.check import Facts
from tests.made_up import CHECKS, options_of

TOLD = """\
account.munge uid=991 gid=990
account.slurm uid=450 gid=450
cmdline ro mitigations=off
cpu.cores 4
cpu.governor performance
cpu.microcode 0xa0011d1
cpu.model AMD EPYC 7543 32-Core Processor
cpu.smt on
cpu.sockets 2
cpu.threads 8
gpu.cards.10de:20b2 1
gpu.driver NVIDIA UNIX x86_64 Kernel Module 550.90.07 Fri May 31 09:35:42 UTC 2024
gpu.model NVIDIA A100-SXM4-80GB
gpu.vbios 92.00.45.00.03
kernel 5.14.0-427.el9.x86_64
kernel_build #1 SMP PREEMPT_DYNAMIC Wed May 1
limit.core unlimited
limit.memlock unlimited
limit.nofile 524288
limit.stack unlimited
memory.huge_pages_of_1048576kB 0
memory.huge_pages_of_2048kB 512
memory.swap_gib 0
memory.total_gib 503
memory.transparent_huge_pages madvise
mount./ ext4 relatime
mount./home nfs4 noatime
mount./local xfs noatime,prjquota
mount./scratch lustre flock,rw
mtu.eth0 9000
net.eth0 15b3:101d
os Rocky Linux 9.4 (Blue Onyx)
product PowerEdge XE8545
resolv.nameserver 10.0.0.53 | 10.0.0.54
resolv.search cluster.example
speed.eth0 25000
sysctl.net.ipv4.tcp_rmem 4096 131072 6291456
sysctl.vm.swappiness 10
time.server 10.0.0.1
user.alice uid=2001 gid=100
version.munge munge-0.5.15 (2022-06-22)
version.slurm slurm 23.11.6
"""


def node(**changed: str) -> dict[str, str]:
    """Facts of a node like the others but for some fields, where __ stands for a dot."""
    lines = dict(line.split(" ", 1) for line in TOLD.splitlines())
    for name, value in changed.items():
        lines[name.replace("__", ".")] = value
    lines["memory.total_kib"] = lines.pop("memory.total_kib", "527912345")
    del lines["memory.total_gib"], lines["memory.swap_gib"]
    return {"fields": "".join(f"{name} {value}\n" for name, value in lines.items() if value)}


def compared(nodes: Mapping[str, Mapping[str, str]], **changed: object) -> list[str]:
    compare = CHECKS["fingerprint"].compare
    assert compare
    facts = {name: Facts(told) for name, told in nodes.items()}
    options = options_of("fingerprint", **changed)
    found = list(compare(facts, dict.fromkeys(facts, options)))
    return [f"{name} {f.status.value} {f.code}: {f.message}" for name, f in found]


def four(**of_last: str) -> dict[str, dict[str, str]]:
    return {"n1": node(), "n2": node(), "n3": node(), "n4": node(**of_last)}
