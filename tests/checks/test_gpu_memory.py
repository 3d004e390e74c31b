"""Whose the memory in use is: the check gpu on processes, zombies, containers and nobody."""

import pytest

from tests.gpu_node import APPS, bus, facts, gpu, listed, running
from tests.made_up import judged

HELD = listed(gpu(0), gpu(1, "30000 MiB"))
GPU1 = f"GPU 1 ({bus(1)}): 30000 MiB of 81920 MiB in use"


def memory(*processes: str, gpus: str = HELD, apps: str = APPS, **others: str) -> list[str]:
    """The findings on memory; processes as the probe describes them."""
    told = facts(gpus, apps, processes="\n".join(processes), **others)
    return [f for f in judged("gpu", told) if f.split()[1] in ("memory:", "hidden:", "stuck:")]


def test_by_nobody() -> None:
    assert memory() == [f"fail memory: {GPU1}, by no process; should be 500 MiB or less"]
    assert memory(seen="own") == [
        f"fail memory: {GPU1}, by no process (the open files of others were not looked at);"
        " should be 500 MiB or less"
    ]
    assert memory(container="/.dockerenv") == [
        f"unknown memory: {GPU1}: by whom cannot be seen from within a container"
    ]


def test_the_driver_own_daemons_are_nobody() -> None:
    daemon = "812 1 S 1 root 0,1 - - systemd nvidia-persiste"
    monitor = "813 1 S 9 root 0,1 - - systemd nv-hostengine"
    assert memory(daemon, monitor)[0].startswith(f"fail memory: {GPU1}, by no process;")


def test_by_a_process_that_nvidia_smi_does_not_list() -> None:
    other = "4711 4700 S 8 alice 1 - /docker/3f2a9c0d1e5b77aa sh python3 train"
    assert memory(other) == [
        f"warn hidden: {GPU1}, python3 train (process 4711 of alice, Docker container"
        " 3f2a9c0d1e5b): has it open, and nvidia-smi does not list it"
    ]
    # of another GPU
    assert memory(other.replace("alice 1", "alice 0"))[0].startswith("fail memory")


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("/slurm/uid_1000/job_4321/step_0/task_0", "Slurm job 4321"),
        ("/system.slice/docker-3f2a9c0d1e5b77aa.scope", "Docker container 3f2a9c0d1e5b"),
        ("/machine.slice/libpod-3f2a9c0d1e5b77aa.scope", "Podman container 3f2a9c0d1e5b"),
        ("/lxc.payload.web01/x", "LXC container web01"),
        ("/kubepods/burstable/pod12345678-1111/9f", "Kubernetes pod 12345678"),
        ("/machine.slice/machine-vm1.scope", "machine vm1"),
        ("/user.slice/machine", "control group /user.slice/machine"),
    ],
)
def test_the_job_or_container_is_named(group: str, words: str) -> None:
    found = memory(f"4711 4700 S 8 alice 1 - {group} sh python3")[0]
    assert f"(process 4711 of alice, {words})" in found


def test_by_processes_that_are_there() -> None:
    busy = running((1, 4711, "29900 MiB", "python3"))
    alive = "4711 4700 S 8 alice 1 - - sh python3"
    held = "GPU 1: 30000 of 81920 MiB in use, by processes that nvidia-smi lists"
    assert memory(alive, apps=busy) == [f"pass memory: {held}"]
    unknown = running((1, 4711, "[N/A]", "[Insufficient Permissions]"))
    assert memory(alive, apps=unknown) == [f"pass memory: {held}"]


def test_by_more_than_its_processes_hold() -> None:
    small = running((1, 4711, "300 MiB", "gpu_monitor"))
    assert memory("4711 1 S 1 root 1 - - systemd gpu_monitor", apps=small) == [
        f"warn memory: {GPU1}, its processes hold 300 MiB of it; the rest should be 500 MiB or less"
    ]


def test_by_a_process_that_draws() -> None:
    details = "\n".join(
        [
            f'<gpu id="{bus(1)}">',
            "<process_info>",
            "<pid>1720</pid>",
            "<process_name>/usr/bin/Xorg</process_name>",
            "<used_memory>29990 MiB</used_memory>",
        ]
    )
    assert memory(details=details) == [
        "pass memory: GPU 1: 30000 of 81920 MiB in use, by processes that nvidia-smi lists"
    ]


def test_by_virtual_machines() -> None:
    details = f'<gpu id="{bus(1)}">\n<virtualization_mode>Host VGPU</virtualization_mode>'
    assert memory(details=details) == [
        "skip memory: GPU 1: the memory is virtual machines' (vGPU)",
        "pass memory: no GPU has more than 500 MiB in use",
    ]


def test_memory_that_the_system_uses_as_its_own() -> None:
    super_chip = gpu(1, "22310 MiB", name="NVIDIA GH200 480GB")
    assert memory(gpus=listed(super_chip)) == [
        "skip memory: GPU 1: 22310 of 81920 MiB in use; this memory is a NUMA node of the system,"
        " which keeps files and pages in it"
    ]
    busy = running((1, 41022, "21000 MiB", "python3"))
    dead = memory("41022 40990 Z 1 a 1 - - sh python3", gpus=listed(super_chip), apps=busy)
    assert [line.split(":")[0] for line in dead] == ["fail stuck", "skip memory"]
    other = memory(gpus=listed(gpu(1, "22310 MiB", name="NVIDIA H200")))
    assert [line.split(":")[0] for line in other] == ["fail memory"]


def test_mig_devices_belong_to_their_gpu() -> None:
    apps = "gpu_uuid, pid, used_gpu_memory [MiB], process_name\nMIG-77, 4711, 29900 MiB, python3"
    rows = listed(gpu(1, "30000 MiB", mig="Enabled"))
    assert memory("4711 1 S 1 alice 1 - - sh python3", gpus=rows, apps=apps)[0].startswith("pass")
    rows = listed(gpu(1, "30000 MiB"))
    assert memory(gpus=rows, apps=apps)[0].startswith("fail memory")


@pytest.mark.parametrize(
    ("process", "finding"),
    [
        (
            "41022 40990 Z 1 alice 1 - /job_7/step_0 slurmstepd python3",
            "fail stuck: memory is held by what cannot let go: python3 (process 41022 of alice,"
            " Slurm job 7, zombie of its parent slurmstepd 40990) holds 29900 MiB of GPU 1",
        ),
        (
            "41022 1 D 1 alice 1 os_acquire_rwlock_write - systemd python3",
            "fail stuck: memory is held by what cannot let go: python3 (process 41022 of alice, in"
            " D state: waits in the kernel on os_acquire_rwlock_write, without a parent) holds"
            " 29900 MiB of GPU 1",
        ),
        (
            "41022 40990 D 1 alice 1 rpc_wait_bit_killable - sh python3",
            "warn stuck: memory is held, without progress, by python3 (process 41022 of alice, in"
            " D state: waits in the kernel on rpc_wait_bit_killable) holds 29900 MiB of GPU 1",
        ),
        (
            "41022 - gone - - - - - - -",
            "fail stuck: memory is held by what cannot let go: process 41022 (no longer there)"
            " holds 29900 MiB of GPU 1",
        ),
    ],
)
def test_by_processes_that_will_not_let_go(process: str, finding: str) -> None:
    busy = running((1, 41022, "29900 MiB", "python3"))
    assert memory(process, apps=busy)[0] == finding


@pytest.mark.parametrize("others", [{"proc": "own"}, {"container": "/.dockerenv"}])
def test_a_process_that_is_hidden_is_not_gone(others: dict[str, str]) -> None:
    busy = running((1, 41022, "29900 MiB", "python3"))
    assert memory("41022 - gone - - - - - - -", apps=busy, **others) == [
        "pass memory: GPU 1: 30000 of 81920 MiB in use, by processes that nvidia-smi lists"
    ]
