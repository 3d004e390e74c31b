"""The probe of the check gpu, by the real script, on made-up nodes."""

import time
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.gpu_node import (
    APPS,
    KERNEL,
    bus,
    gpu,
    install,
    listed,
    on_the_bus,
    process,
    recorded,
    running,
)
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.this_machine import SHELLS, facts_here, shell_words


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    shell_words(request.param)  # skips where it cannot be had
    return str(request.param)


@pytest.fixture
def node(tmp_path: Path) -> MadeUpNode:
    made = MadeUpNode(tmp_path)
    (made.root / "sys/bus/pci/devices").mkdir(parents=True)
    made.hide("nvidia-smi")
    return made


def said(node: MadeUpNode, shell: str, **options: object) -> list[str]:
    """What the check says of the made-up node."""
    return judged("gpu", node.probe("gpu", shell=shell, **options), **options)


def test_a_healthy_node(node: MadeUpNode, shell: str) -> None:
    for number in (0, 1):
        on_the_bus(node, f"0000:1{number}:00.0", driver="nvidia")
        node.file(
            f"/proc/driver/nvidia/gpus/0000:1{number}:00.0/information",
            f"Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 120\nDevice Minor: \t {number}\n",
        )
    node.file("/usr/lib64/libnvidia-ml.so.550.90.07")
    xml = "<?xml ?>\n<cuda_version>12.4</cuda_version>\n<attached_gpus>2</attached_gpus>\n<x>1</x>"
    install(node, listed(gpu(0), gpu(1)), xml=xml)
    told = node.probe("gpu", shell=shell)
    assert told["pci"] == "0000:10:00.0 10de 20b2 nvidia\n0000:11:00.0 10de 20b2 nvidia"
    assert told["kernel"] == KERNEL.format("550.90.07")
    assert told["module"] == "550.90.07"
    assert told["boards"] == (
        "0000:10:00.0 0 NVIDIA A100-SXM4-80GB\n0000:11:00.0 1 NVIDIA A100-SXM4-80GB"
    )
    assert told["libraries"] == "550.90.07"
    assert (told["status"], told["gpus"]) == ("0", listed(gpu(0), gpu(1)))
    assert (told["apps_status"], told["apps"]) == ("0", APPS)
    assert told["details"].splitlines() == xml.splitlines()[:3]
    assert told["banner"] == told["processes"] == told["refused"] == ""
    assert judged("gpu", {**told, "container": "", "month": "2024-09"}) == [
        "pass driver: driver 550.90.07 (proprietary kernel module), CUDA up to 12.4",
        "pass count: 2 GPUs: NVIDIA A100-SXM4-80GB",
        "pass memory: no GPU has more than 500 MiB in use",
    ]


def test_no_gpu(node: MadeUpNode, shell: str) -> None:
    on_the_bus(node, "0000:02:00.0", vendor="8086", kind="020000", driver="e1000")
    on_the_bus(node, "0000:03:00.0", vendor="1a03", kind="030000", driver="ast")
    told = node.probe("gpu", shell=shell)
    assert told["pci"] == "0000:03:00.0 1a03 20b2 ast"
    assert judged("gpu", told) == ["skip none: no GPU"]


def test_a_gpu_that_nouveau_has(node: MadeUpNode, shell: str) -> None:
    on_the_bus(node, "0000:3b:00.0", driver="nouveau")
    on_the_bus(node, "0000:3b:00.4", driver="nouveau")  # a virtual function of it
    (node.root / "sys/bus/pci/devices/0000:3b:00.4/physfn").symlink_to("../0000:3b:00.0")
    assert said(node, shell) == [
        "fail driver: 1 NVIDIA GPU on the PCI bus, and no driver of NVIDIA's: nouveau has them"
    ]


def test_a_node_whose_bus_cannot_be_read(node: MadeUpNode, shell: str) -> None:
    (node.root / "sys").rename(node.root / "elsewhere")
    assert said(node, shell) == ["unknown none: the PCI bus cannot be read (/sys/bus)"]


def test_an_old_nvidia_smi_is_asked_again_without_what_it_does_not_know(
    node: MadeUpNode, shell: str
) -> None:
    row = gpu(0, name="Tesla V100-SXM2-32GB", driver="470.57.02")
    rows = listed(row).replace(" compute_cap,", "").replace(" 8.0,", "")
    install(node, rows, driver="470.57.02", refuses="compute_cap")
    assert recorded("csv-470-compute-cap-invalid").strip() == (
        'Field "compute_cap" is not a valid field to query.'
    )
    told = node.probe("gpu", shell=shell)
    assert (told["refused"], told["status"], told["gpus"]) == ("compute_cap", "0", rows)
    found = judged("gpu", told, require_cuda="12.0")
    assert found[2].startswith("fail cuda: driver 470.57.02 is too old for CUDA 12.0")
    assert found[3].startswith("pass capability: Tesla V100-SXM2-32GB has compute capability 7.0")
    assert found[-1] == "skip field: not told by this nvidia-smi: compute_cap"


def test_a_damaged_inforom_is_told_beside_all_else(node: MadeUpNode, shell: str) -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:11:00.0"
    rows = listed(gpu(0), gpu(1, "10151 MiB"))
    apps = running((1, 4711, "9900 MiB", "python3"))
    install(node, f"{rows}\n{warning}", apps=f"{apps}\n{warning}", status=14)
    process(node, 4711, "S", 1, "python3")
    assert said(node, shell)[1:] == [
        "warn inforom: the infoROM of GPU 1 (00000000:11:00.0) is damaged, should be whole",
        "pass count: 2 GPUs: NVIDIA A100-SXM4-80GB",
        "pass memory: GPU 1: 10151 of 81920 MiB in use, by processes that nvidia-smi lists",
    ]


def test_a_driver_whose_long_answer_has_no_cuda_version(node: MadeUpNode, shell: str) -> None:
    table = recorded("smi-table-610-kmd-umd")
    xml = "<?xml ?>\n<cuda_version>Requested functionality has been deprecated</cuda_version>"
    rows = listed(gpu(0, driver="[Requested functionality has been deprecated]"))
    install(node, rows, driver="610.57.04", xml=xml, table=table)
    told = node.probe("gpu", shell=shell)
    words = "| NVIDIA-SMI 610.57.04 KMD Version: 610.57.04 CUDA UMD Version: 13.3 |"
    assert " ".join(told["banner"].split()) == words
    driver = "driver 610.57.04 (proprietary kernel module), CUDA up to 13.3"
    assert judged("gpu", told)[0].startswith(f"pass driver: {driver}")


def test_an_nvidia_smi_that_has_only_its_table(node: MadeUpNode, shell: str) -> None:
    table = recorded("smi-table-535-a100x4-one-busy")
    install(node, table, apps=table, xml=table, table=table, driver="535.129.03")
    process(node, 48213, "S", 1, "python3")
    found = said(node, shell)
    assert found[1:] == [
        "pass count: 4 GPUs: NVIDIA A100-SXM4-40GB",
        "pass memory: GPU 1: 38211 of 40960 MiB in use, by processes that nvidia-smi lists",
    ]


def test_module_and_library_of_two_versions(node: MadeUpNode, shell: str) -> None:
    text = (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.127"
    )
    install(node, text, status=18)
    assert said(node, shell) == [
        "fail driver: the loaded kernel module is 550.90.07, the library 550.127; should be the"
        " same version"
    ]


def test_nvidia_smi_that_hangs_and_cannot_be_ended(node: MadeUpNode, shell: str) -> None:
    install(node, "")
    node.command(
        "nvidia-smi",
        "trap '' TERM HUP INT\n(trap '' TERM HUP INT; sleep 47) &\nsleep 47",
    )
    began = time.monotonic()
    assert said(node, shell, answer_seconds=1) == [
        "fail answer: no answer of the driver: nvidia-smi ran into its timeout of 1 s"
    ]
    assert time.monotonic() - began < 40


def test_a_process_that_keeps_the_pipe_open_is_not_waited_for(node: MadeUpNode, shell: str) -> None:
    """So it is with one that the kernel cannot end: it stays when timeout has gone."""
    install(node, "")
    node.command("nvidia-smi", "setsid sleep 47 &\nexit 124")
    began = time.monotonic()
    assert said(node, shell)[0].startswith("fail answer: no answer of the driver")
    assert time.monotonic() - began < 40


def test_memory_that_nobody_holds(node: MadeUpNode, shell: str) -> None:
    install(node, listed(gpu(0), gpu(1, "10151 MiB")))
    process(node, 900, "S", 1, "nvidia-persiste", files=("/dev/nvidiactl", "/dev/nvidia0"))
    process(node, 901, "S", 1, "bash", files=("/dev/null", "/dev/nvidia-uvm"))
    told = node.probe("gpu", shell=shell)
    assert told["processes"].split()[:2] == ["900", "1"]
    assert (told["seen"], told["proc"]) == ("all", "all")
    found = judged("gpu", {**told, "container": ""})
    assert found[2].startswith(f"fail memory: GPU 1 ({bus(1)}): 10151 MiB of 81920 MiB in use, by")


def test_memory_that_a_container_holds(node: MadeUpNode, shell: str) -> None:
    node.file("/proc/driver/nvidia/gpus/0000:11:00.0/information", "Device Minor: \t 1\n")
    install(node, listed(gpu(0), gpu(1, "10151 MiB")))
    process(node, 41022, "S", 77, "python3", files=("/dev/nvidia1", "/dev/nvidia1"))
    node.file("/proc/77/comm", "containerd-shim\n")
    node.file("/proc/41022/cgroup", "0::/system.slice/docker-3f2a9c0d1e5b77aa.scope\n")
    told = node.probe("gpu", shell=shell)
    found = judged("gpu", {**told, "container": ""})
    assert found[2] == (
        f"warn hidden: GPU 1 ({bus(1)}): 10151 MiB of 81920 MiB in use, python3 (process 41022 of"
        " root, Docker container 3f2a9c0d1e5b): has it open, and nvidia-smi does not list it"
    )


def test_a_zombie_one_that_waits_and_one_that_is_gone(node: MadeUpNode, shell: str) -> None:
    rows = listed(*(gpu(number, "30600 MiB") for number in range(3)))
    pids = (41022, 41023, 41024)
    apps = running(*((number, pid, "30512 MiB", "python3") for number, pid in enumerate(pids)))
    install(node, rows, apps=apps)
    process(node, 40990, "S", 1, "slurmstepd")
    process(node, 41022, "Z", 40990, "python3")
    process(node, 41023, "D", 1, "python (x) 3")
    node.file("/proc/41023/wchan", "os_acquire_rwlock_write")
    told = node.probe("gpu", shell=shell)
    found = judged("gpu", {**told, "container": ""})
    assert found[2:] == [
        "fail stuck: memory is held by what cannot let go: python3 (process 41022 of root, zombie"
        " of its parent slurmstepd 40990) holds 30512 MiB of GPU 0; python (x) 3 (process 41023 of"
        " root, in D state: waits in the kernel on os_acquire_rwlock_write, without a parent) holds"
        " 30512 MiB of GPU 1; process 41024 (no longer there) holds 30512 MiB of GPU 2"
    ]


def test_what_passes_by_itself_is_no_fault(node: MadeUpNode, shell: str) -> None:
    stat = node.root / "proc/41022/stat"
    install(
        node,
        listed(gpu(0, "30600 MiB")),
        apps=running((0, 41022, "30512 MiB", "python3")),
        second=f"sed -i 's/ D / Z /' '{stat}'",
    )
    process(node, 41022, "D", 1, "python3")
    told = node.probe("gpu", shell=shell)
    assert told["processes"].split()[2] == "S"
    assert judged("gpu", told)[2].startswith("pass memory")


def test_memory_that_is_given_back_meanwhile(node: MadeUpNode, shell: str) -> None:
    later = f"sed -i 's/30600 MiB/4 MiB/' '{node.bin}/.smi.gpus'"
    install(node, listed(gpu(0, "30600 MiB")), second=later)
    assert said(node, shell)[-1] == "pass memory: no GPU has more than 500 MiB in use"


def test_an_nvidia_smi_beside_the_path(node: MadeUpNode, shell: str) -> None:
    install(node, listed(gpu(0)))
    script = (node.bin / "nvidia-smi").read_text()
    (node.bin / "nvidia-smi").unlink()
    node.file("/usr/lib/wsl/lib/nvidia-smi", script, mode=0o755)
    assert said(node, shell)[1] == "pass count: 1 GPU: NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize("root", [True, False])
def test_a_driver_that_a_container_has(node: MadeUpNode, shell: str, root: bool) -> None:
    install(node, listed(gpu(0)))
    (node.bin / "nvidia-smi").rename(node.bin / "smi-inside")
    node.file("/run/nvidia/driver/usr/bin/nvidia-smi", "echo no library; exit 12", mode=0o755)
    folder = node.root / "run/nvidia/driver"
    node.command("chroot", f'[ "$1 $2" = "{folder} nvidia-smi" ] && shift 2 && smi-inside "$@"')
    if root:
        assert said(node, shell)[1] == "pass count: 1 GPU: NVIDIA A100-SXM4-80GB"
        return
    node.command("id", "echo 1000")
    assert said(node, shell) == [
        "unknown answer: a container has the driver (/run/nvidia/driver), and root alone may ask it"
    ]


def test_the_compatibility_package(node: MadeUpNode, shell: str) -> None:
    node.file("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06")
    (node.root / "usr/local/cuda-13.0/compat/libcuda.so").symlink_to("libcuda.so.580.65.06")
    install(node, listed(gpu(0, driver="535.183.01")), driver="535.183.01")
    found = said(node, shell, require_cuda="13.0")
    assert found[2].startswith(
        "pass cuda: driver 535.183.01 runs CUDA 13.0 by the package in /usr/local/cuda-13.0/compat"
    )


def test_this_machine(shell: str) -> None:
    """Whatever it has: the probe comes to its end, and nothing of it is a riddle to the judge."""
    told = facts_here("gpu", shell)
    findings = list(CHECKS["gpu"].judge(Facts(told), options_of("gpu")))
    assert findings
