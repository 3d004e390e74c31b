"""Made-up nodes with some amount of memory, for the tests of the check memory."""

from tests.made_up import MadeUpNode

GIB = 1024 * 1024
JOB = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_77/memory.max"


def meminfo(total: float = 251.5, available: float = 240, **others: int) -> str:
    """/proc/meminfo with GiB of the two, and others in the file's own units."""
    kib = {"MemTotal": int(total * GIB), "MemFree": 700000, "MemAvailable": int(available * GIB)}
    lines = [f"{key + ':':16}{value:>12} kB" for key, value in (kib | others).items()]
    return "\n".join(lines) + "\n"


def install(
    node: MadeUpNode,
    text: str = "",
    *,
    killed: int | None = 0,
    log: str | None = "",
    job: bool = False,
) -> None:
    """A node with that /proc/meminfo; log: None where an ordinary user may not read it."""
    node.file("/proc/meminfo", text or meminfo())
    node.file("/proc/pressure/memory", "some avg10=0.00\nfull avg10=0.00 avg60=0.00 avg300=0.00\n")
    node.file("/proc/uptime", "813000.10 1.00\n")
    counted = "" if killed is None else f"oom_kill {killed}\n"
    node.file("/proc/vmstat", f"nr_free_pages 5\n{counted}oom_kill_x 7\n")
    if log is None:
        node.says("dmesg", "", "dmesg: read kernel buffer failed: Operation not permitted\n", 1)
    else:
        node.says("dmesg", "[    0.000000] Linux version 5.14.0\n" + log)
    if job:
        node.file(JOB, "max\n")


def edac(
    node: MadeUpNode,
    controller: int,
    corrected: int,
    uncorrected: int,
    days: float = 1,
    **dimms: str,
) -> None:
    """One memory controller; a module by dimm3="CORRECTED UNCORRECTED LABEL"."""
    folder = f"/sys/devices/system/edac/mc/mc{controller}"
    node.file(f"{folder}/ce_count", f"{corrected}\n")
    node.file(f"{folder}/ue_count", f"{uncorrected}\n")
    node.file(f"{folder}/seconds_since_reset", f"{int(days * 86400)}\n")
    for name, text in dimms.items():
        ce, ue, label = text.split(" ", 2)
        node.file(f"{folder}/{name}/dimm_ce_count", f"{ce}\n")
        node.file(f"{folder}/{name}/dimm_ue_count", f"{ue}\n")
        node.file(f"{folder}/{name}/dimm_label", f"{label}\n")


OF_NODE = (
    "[812000.100000] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,"
    "global_oom,task_memcg=/system.slice/slurmd.service,task=slurmd,pid=2211,uid=0\n"
    "[812000.200000] Out of memory: Killed process 2211 (slurmd) total-vm:1280932kB,"
    " anon-rss:9120kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:112kB oom_score_adj:0\n"
)
OF_JOB = (
    "[812100.100000] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,"
    "mems_allowed=0,oom_memcg=/system.slice/slurmstepd.scope/job_77,"
    "task_memcg=/system.slice/slurmstepd.scope/job_77/step_0/user/task_0,task=python3,pid=5123,"
    "uid=1001\n"
    "[812100.200000] Memory cgroup out of memory: Killed process 5123 (python3) total-vm:99212kB,"
    " anon-rss:88000kB, file-rss:0kB, shmem-rss:0kB, UID:1001 pgtables:112kB oom_score_adj:0\n"
)
# what the hostile facts are made from
FULL = {
    "meminfo": "MemTotal:263716864 MemAvailable:2516582 SwapTotal:8388608 SwapFree:100 "
    "AnonPages:1000000 Shmem:210000000 SUnreclaim:9000000 HardwareCorrupted:4 "
    "HugePages_Total:90000 HugePages_Free:80000 Hugepagesize:2048 Hugetlb:184320000 ",
    "zfs": "1048576",
    "job": "",
    "pressure": "avg10=0.00 avg60=20.10 avg300=0.00 total=0",
    "edac": "mc0 12000 1 86400\ndimm mc0 12000 1 CPU_SrcID#0_MC#0_Chan#0_DIMM#0\nmc1 0 0 -",
    "killed": "2",
    "uptime": "813000.10",
    "log_from": "dmesg",
    "log": "".join(f"oom {n} {line}\n" for n, line in enumerate((OF_NODE + OF_JOB).splitlines()))
    + "lines 900\nfirst 0.000000\nended 0",
}
