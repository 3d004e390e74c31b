"""The check memory: made-up nodes by the real probe, and what is judged of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_up import MadeUpNode, judged
from tests.memory_node import GIB, JOB, OF_JOB, OF_NODE, edac, install, meminfo
from tests.this_machine import SHELLS, shell_words

SOUND = [
    "pass available: 240 GiB of 252 GiB available (95.4 %)",
    "skip errors: errors are not counted here (no EDAC driver has a controller)",
    "pass oom: nothing was ended for lack of RAM since the boot",
]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of this machine's commands without those that a node has its own of."""
    made = MadeUpNode(tmp_path_factory.mktemp("system"))
    made.hide("dmesg", "journalctl")
    return made.system_path


@pytest.fixture
def node(tmp_path: Path, system: str) -> MadeUpNode:
    made = MadeUpNode(tmp_path)
    made.system_path = system
    return made


def said(node: MadeUpNode, code: str = "", shell: str = "sh", **options: Any) -> list[str]:
    """What the check says of the made-up node, of one item or of all."""
    told = node.probe("memory", shell=shell, **options)
    found = judged("memory", told, **options)
    return [line for line in found if code in ("", line.split()[1].rstrip(":"))]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_sound_node(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node)
    node.command("dmesg", "echo not to be read; kill -KILL $PPID")
    assert said(node, shell=shell) == SOUND


@pytest.mark.parametrize("shell", SHELLS)
def test_little_is_available_and_no_job_runs(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node, meminfo(available=2.4, Shmem=200 * GIB, AnonPages=4 * GIB))
    assert said(node, "available", shell) == [
        "warn available: 2.4 GiB of 252 GiB available (1.0 %), should be 5 % as no job runs; most"
        " of it has files in /dev/shm and other tmpfs (200 GiB)"
    ]


ARC = """13 1 0x01 123 33456 7000000 900000000
name                            type data
hits                            4    123456
c                               4    236223201280
c_min                           4    8589934592
size                            4    {size}
arc_meta_min                    4    16777216
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_what_zfs_would_give_back_is_available(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node, meminfo(available=2.4, AnonPages=4 * GIB))
    node.file("/proc/spl/kstat/zfs/arcstats", ARC.format(size=220 * 1024**3))
    assert said(node, "available", shell) == [
        "pass available: 214 GiB of 252 GiB available (85.2 %), 212 GiB of it the cache of ZFS"
    ]
    node.file("/proc/spl/kstat/zfs/arcstats", ARC.format(size=8589934592))
    assert said(node, "available", shell)[0].startswith("warn available: 2.4 GiB of 252 GiB")


@pytest.mark.parametrize(
    "path",
    [
        JOB,
        "/sys/fs/cgroup/system.slice/node07_slurmstepd.scope/job_1234/cgroup.procs",
        "/sys/fs/cgroup/memory/slurm/uid_1001/job_77/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/slurm_node07/uid_1001/job_77/memory.limit_in_bytes",
        "/sys/fs/cgroup/kubepods.slice/memory.max",
        "/sys/fs/cgroup/pbs_jobs.service/jobid/12.server/memory.max",
    ],
)
def test_a_job_rightly_takes_what_there_is(node: MadeUpNode, path: str) -> None:
    install(node, meminfo(available=2.4, AnonPages=240 * GIB))
    node.file(path)
    assert said(node, "available") == [
        "pass available: 2.4 GiB of 252 GiB available (1.0 %): a job may take it, and one runs"
    ]


def test_a_job_is_seen_without_control_groups_too(node: MadeUpNode) -> None:
    install(node, meminfo(available=2.4))
    node.file("/proc/4711/comm", "slurmstepd\n")
    assert said(node, "available")[0].endswith("a job may take it, and one runs")


def test_what_the_page_cache_has_is_available(node: MadeUpNode) -> None:
    """Slurm's FreeMem would be 0 here."""
    install(node, meminfo(available=239.9).replace("700000 kB", "   512 kB"))
    assert said(node, "available") == ["pass available: 240 GiB of 252 GiB available (95.4 %)"]


def test_a_number_that_is_wanted(node: MadeUpNode) -> None:
    install(node, meminfo(available=100))
    assert said(node, "available", available_gib=120)[0].startswith(
        "warn available: 100 GiB of 252 GiB available (39.8 %), should be 120 GiB as no job runs"
    )
    assert said(node, "available", available_gib=90)[0].startswith("pass")
    install(node, meminfo(available=2))
    assert said(node, "available", available_percent=0)[0].startswith("pass")


def test_a_kernel_that_does_not_tell(node: MadeUpNode) -> None:
    install(node, "MemTotal: 1000 kB\nMemFree: 900 kB\n")
    assert said(node, "available") == [
        "unknown available: the kernel does not tell MemAvailable (it does from 3.14 on)"
    ]
    node.file("/proc/meminfo", "")
    assert said(node, "available") == [
        "unknown available: /proc/meminfo does not tell how much there is"
    ]


def test_installed(node: MadeUpNode) -> None:
    install(node, meminfo(total=376))
    assert not said(node, "total")
    assert said(node, "total", total_gib=384) == ["pass total: 376 GiB installed"]
    assert said(node, "total", total_gib=512) == [
        "fail total: 376 GiB installed, should be 512 GiB (5 % less would pass)"
    ]


def test_swap_that_is_full_of_what_nobody_needs_is_no_fault(node: MadeUpNode) -> None:
    full = {"SwapTotal": 8 * GIB, "SwapFree": 0}
    install(node, meminfo(**full))
    assert not said(node, "swap")
    install(node, meminfo(available=20, **full))
    assert said(node, "swap") == [
        "warn swap: 100 % of 8.0 GiB of swap in use, should be 50 % at most where so little is"
        " available (20 GiB)"
    ]
    install(node, meminfo(available=100, **full))
    node.file("/proc/pressure/memory", "some avg60=40.00\nfull avg10=9.00 avg60=31.00 total=1\n")
    assert said(node, "swap")[0].startswith("warn swap: 100 % of 8.0 GiB of swap in use")
    install(node, meminfo(available=20, **full), job=True)
    assert not said(node, "swap")
    assert said(node, "available") == [
        "pass available: 20 GiB of 252 GiB available (8.0 %), 100 % of the swap in use: a job may"
        " take it, and one runs"
    ]


def test_huge_pages(node: MadeUpNode) -> None:
    aside = {"HugePages_Total": 70000, "HugePages_Free": 68000, "Hugepagesize": 2048}
    install(node, meminfo(available=100, **aside))
    assert said(node, "huge_pages") == [
        "warn huge_pages: 137 GiB of 252 GiB set aside as huge pages, 133 GiB of it unused; should"
        " be 50 % of all at most unused"
    ]
    install(node, meminfo(available=100, **{**aside, "HugePages_Free": 100}))
    assert said(node, "huge_pages") == [
        "pass huge_pages: 137 GiB of 252 GiB set aside as huge pages, 0.2 GiB of it unused"
    ]
    # pages of 1 GiB are told only in all
    install(node, meminfo(available=2, Hugetlb=200 * GIB, HugePages_Total=0, Hugepagesize=2048))
    assert said(node, "available")[0].endswith("most of it has huge pages (200 GiB)")


@pytest.mark.parametrize("shell", SHELLS)
def test_uncorrected_errors(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node)
    edac(node, 0, 0, 0)
    edac(node, 1, 3, 1, dimm0="0 0 A1", dimm2="3 1 CPU_SrcID#1_MC#0_Chan#1_DIMM#0")
    assert said(node, "errors", shell) == [
        "fail errors: uncorrected errors since the boot: 1 on mc1 (CPU_SrcID#1_MC#0_Chan#1_DIMM#0:"
        " 1 uncorrected, 3 corrected); should be none"
    ]


def test_corrected_errors_count_by_the_day(node: MadeUpNode) -> None:
    install(node)
    edac(node, 0, 900, 0, days=30)
    assert said(node, "errors") == [
        "pass errors: no uncorrected errors, 900 corrected ones since the boot"
    ]
    edac(node, 0, 900, 0, days=2, dimm1="900 0 DIMM_B1")
    assert said(node, "errors") == [
        "warn errors: corrected errors: 900 on mc0 in 2.0 days (DIMM_B1: 900 corrected); should be"
        " 100 a day at most"
    ]
    assert said(node, "errors", corrected_per_day=450)[0].startswith("pass")
    edac(node, 0, 90, 0, days=0.01)  # an hour is not scaled up to a day
    assert said(node, "errors")[0].startswith("pass")


def test_pages_that_are_out_of_use(node: MadeUpNode) -> None:
    install(node, meminfo(HardwareCorrupted=8))
    assert said(node, "errors") == [
        "warn errors: 8 KiB are out of use after errors (HardwareCorrupted), should be none"
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_node_ran_out(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node, killed=2, log=OF_NODE + OF_JOB)
    assert said(node, "oom", shell) == [
        "warn oom: the node ran out of RAM in the last 24 h, and the kernel ended slurmd (2211);"
        " besides, 1 at the limit of their own job or service; should end none"
    ]


def test_a_daemon_that_was_ended_at_the_limit_of_its_service(node: MadeUpNode) -> None:
    limit = "CONSTRAINT_MEMCG,oom_memcg=/system.slice/slurmd.service"
    own = OF_NODE.replace("CONSTRAINT_NONE", limit).replace("Out of m", "Memory cgroup out of m")
    install(node, killed=2, log=OF_JOB + own)
    assert said(node, "oom") == [
        "warn oom: ended at the limit of their own services in the last 24 h: slurmd (2211); the"
        " node needs them"
    ]
    install(node, killed=1, log=own.replace("slurmd", "grafana"))
    assert said(node, "oom")[0].startswith("pass oom: no lack of RAM of the node itself")
    in_a_pod = own.replace("/system.slice/slurmd.service", "/kubepods.slice/pod1/cri-1.scope")
    install(node, killed=1, log=in_a_pod.replace("slurmd", "sshd"))
    assert said(node, "oom")[0].startswith("pass oom: no lack of RAM of the node itself")


def test_a_job_at_its_own_limit_is_no_fault_of_the_node(node: MadeUpNode) -> None:
    install(node, killed=3, log=OF_JOB * 3)
    assert said(node, "oom") == [
        "pass oom: no lack of RAM of the node itself in the last 24 h; 3 at the limit of their own"
        " job or service ended"
    ]


@pytest.mark.parametrize(
    ("line", "status"),
    [  # before 5.0; and a job that is bound to a part of the node
        ("Out of memory: Kill process 77 (a (b) score 950 or sacrifice child", "warn"),
        ("Memory cgroup out of memory: Kill process 77 (vasp) score 9 or sacrifice child", "pass"),
        ("Out of memory (oom_kill_allocating_task): Killed process 77 (x) total-vm:9kB", "warn"),
    ],
)
def test_the_words_of_other_kernels(node: MadeUpNode, line: str, status: str) -> None:
    install(node, killed=1, log=f"[812000.1] {line}\n")
    assert said(node, "oom")[0].startswith(f"{status} oom")


def test_a_job_that_is_bound_to_a_part_of_the_node(node: MadeUpNode) -> None:
    bound = OF_NODE.replace("CONSTRAINT_NONE", "CONSTRAINT_MEMORY_POLICY").replace("slurmd", "vasp")
    install(node, killed=1, log=bound)
    assert said(node, "oom")[0].startswith("pass oom: no lack of RAM of the node itself")


def test_what_happened_before(node: MadeUpNode) -> None:
    install(node, killed=1, log=OF_NODE.replace("[812000", "[600000"))
    assert said(node, "oom") == [
        "pass oom: no lack of RAM of the node itself in the last 24 h; ended at all: 1 since"
        " the boot"
    ]
    assert said(node, "oom", oom_hours=72)[0].startswith("warn oom: the node ran out of RAM")


def test_a_log_that_does_not_reach_back(node: MadeUpNode) -> None:
    install(node, killed=1)
    node.says("dmesg", "[805800.000000] usb 1-1: new device\n")
    assert said(node, "oom") == [
        "pass oom: no lack of RAM of the node itself in the last 24 h (the kernel's log goes back"
        " 2.0 h); ended at all: 1 since the boot"
    ]


def test_a_log_that_is_root_s(node: MadeUpNode) -> None:
    node.command("id", "echo 1000")
    install(node, killed=4, log=None)
    told = node.told("memory")
    assert told.wanted_root
    assert judged("memory", told.facts)[-1] == (
        "skip oom: 4 since the boot were ended for lack of RAM, by jobs' limits or the node's: the"
        " kernel's log, for root, tells which"
    )
    install(node, killed=0, log=None)  # there is nothing to look for
    told = node.told("memory")
    assert not told.wanted_root
    assert judged("memory", told.facts)[-1] == SOUND[-1]


def test_a_kernel_that_does_not_count_them(node: MadeUpNode) -> None:
    install(node, killed=None, log=OF_NODE)
    assert said(node, "oom")[0].startswith("warn oom: the node ran out of RAM in the last 24 h")
    install(node, killed=None)
    assert said(node, "oom")[0].startswith("pass oom: no lack of RAM of the node itself")
    node.says("dmesg", "")
    assert said(node, "oom")[0].startswith("unknown oom")
