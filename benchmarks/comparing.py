"""Comparing the recorded facts of many nodes with each other, the check fingerprint.

    python -m benchmarks.comparing [NODES…]

The facts are those of a node with GPUs, some hundred fields, under other names: every node has its
own addresses and somewhat other memory, every hundredth differs in a field or two. CPU is that of
`compare` alone, and in the last column that of judging all nodes by themselves besides.
"""

import sys
import time

from clustercheck import registry
from clustercheck.check import Facts

FIELDS = 100
USUAL = (
    *("os Rocky Linux 9.4 (Blue Onyx)", "kernel 5.14.0-427.el9.x86_64"),
    *("product PowerEdge XE8545", "cpu.model AMD EPYC 7543 32-Core Processor"),
    *("cpu.sockets 2", "cpu.cores 64", "cpu.threads 128", "cpu.microcode 0xa0011d1"),
    *("gpu.cards.10de:20b2 4", "gpu.model 4 x NVIDIA A100-SXM4-80GB"),
    *("net.eth0 mlx5_core 15b3:101d", "resolv.nameserver 10.0.0.53", "resolv.nameserver 10.0.0.54"),
    *("time.server 10.0.0.1", "limit.memlock unlimited", "limit.nofile 524288"),
    *("account.slurm uid=450 gid=450", "version.slurm slurm 23.11.6"),
    *("mount./scratch lustre 10.0.0.5@o2ib:/fs rw,flock,lazystatfs", "file.hosts " + "0a" * 32),
)


def facts_of(number: int) -> Facts:
    """What one of many nodes tells."""
    lines = [
        *USUAL,
        f"memory.total_kib {527_912_345 - number % 977}",
        f"cmdline BOOT_IMAGE=(hd0)/vmlinuz root=UUID={number} ro mitigations=off ip=10.0.{number}",
        f"mount./home nfs4 nfs:/home rw,noatime,vers=4.2,hard,clientaddr=10.1.{number}",
    ]
    lines += [f"sysctl.net/made/up{n} {n}" for n in range(FIELDS - len(lines) + 1)]
    if number % 100 == 7:
        lines[1] = "kernel 5.14.0-362.el9.x86_64"
        lines[-1 - number // 100 % 20] += "00"
    return Facts({"fields": "\n".join(lines), "gpu_settings": "not asked"})


def main() -> None:
    check = registry.load()["fingerprint"]
    assert check.compare
    print("| nodes | fields | differences | compare, CPU s | and judge, CPU s |")
    print("|---|---|---|---|---|")
    for nodes in [int(word) for word in sys.argv[1:]] or [100, 1_000, 10_000]:
        facts = {f"node{number:05}": facts_of(number) for number in range(nodes)}
        options = dict.fromkeys(facts, check.options)
        fields = len(check.fields(facts["node00000"])) if check.fields else 0
        began = time.process_time()
        found = list(check.compare(facts, options))
        compared = time.process_time()
        for told in facts.values():
            list(check.judge(told, check.options))
        judged = time.process_time()
        print(
            f"| {nodes:,} | {fields} | {len(found):,} | {compared - began:.2f} "
            f"| {judged - began:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
