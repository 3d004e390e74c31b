"""What the check gpu says of facts: one sentence for one cause."""

import pytest

from clustercheck.options import instance
from tests.gpu_node import APPS, KERNEL, OPEN_KERNEL, bus, facts, gpu, listed, running
from tests.made_up import CHECKS, judged

DRIVER = "pass driver: driver 550.90.07 (proprietary kernel module), CUDA up to 12.4"
COUNT = "pass count: 2 GPUs: NVIDIA A100-SXM4-80GB"
MEMORY = "pass memory: no GPU has more than 500 MiB in use"
TWO = listed(gpu(0), gpu(1))
# a node without any GPU
NONE = {"pci": "", "kernel": "absent", "module": "absent", "tool": "absent", "container": ""}


def test_a_healthy_node() -> None:
    assert judged("gpu", facts(TWO)) == [DRIVER, COUNT, MEMORY]


@pytest.mark.parametrize(
    ("pci", "said"),
    [
        ("", "skip none: no GPU"),
        ("0000:03:00.0 1a03 2000 ast", "skip none: no GPU"),  # a console's, as servers have it
        (
            "0000:c1:00.0 1002 740f amdgpu\n0000:c2:00.0 1002 740f amdgpu",
            "skip other: 2 AMD GPUs (driver: amdgpu); only NVIDIA's are looked at",
        ),
        (
            "0000:00:02.0 8086 56c0 none",
            "skip other: 1 Intel GPU (driver: none); only NVIDIA's are looked at",
        ),
        (
            "0000:3b:00.0 10de 20b2 vfio-pci",
            "skip none: 1 GPU given to virtual machines (vfio), not looked at",
        ),
        ("unreadable", "unknown none: the PCI bus cannot be read (/sys/bus)"),
        (
            "0000:3b:00.0 10de 20b2 nouveau",
            "fail driver: 1 NVIDIA GPU on the PCI bus, and no driver of NVIDIA's: nouveau has them",
        ),
        (
            "0000:3b:00.0 10de 20b2 none\n0000:af:00.0 10de 20b2 none",
            "fail driver: 2 NVIDIA GPUs on the PCI bus, and no driver of NVIDIA's: no kernel"
            " module is loaded",
        ),
    ],
)
def test_without_a_driver(pci: str, said: str) -> None:
    assert judged("gpu", {**NONE, "pci": pci}) == [said]


def test_none_where_some_are_wanted_and_some_where_none_is() -> None:
    assert judged("gpu", NONE, count=4) == ["fail count: no NVIDIA GPU, should be 4"]
    assert judged("gpu", NONE, count=0) == ["skip none: no GPU"]
    there = {**NONE, "pci": "0000:3b:00.0 10de 20b2 nouveau"}
    assert judged("gpu", there, count=0) == ["skip none: 1 GPU not looked at: none is wanted"]


def test_nvidia_smi_installed_on_a_node_without_a_gpu() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure"
    told = {**facts(said, status="9"), **NONE, "tool": "nvidia-smi"}
    assert judged("gpu", told) == ["skip none: no GPU"]
    assert judged("gpu", told, count=8) == ["fail count: no NVIDIA GPU, should be 8"]


def test_a_driver_without_nvidia_smi() -> None:
    told = {**facts(TWO), "tool": "absent"}
    said = "driver 550.90.07 is loaded for 2 GPUs (NVIDIA A100), and there is no nvidia-smi to ask"
    assert judged("gpu", told) == [f"unknown tool: {said}"]
    assert judged("gpu", told, count=2) == [f"fail tool: {said}; 2 GPUs wanted"]


@pytest.mark.parametrize("status", ["124", "137", "143"])
def test_nvidia_smi_hangs(status: str) -> None:
    assert judged("gpu", facts("", status=status), answer_seconds=5) == [
        "fail answer: no answer of the driver: nvidia-smi ran into its timeout of 5 s"
    ]


@pytest.mark.parametrize(
    ("said", "status", "finding"),
    [
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that"
            " the NVIDIA Display Driver is properly installed and present in your system.",
            "12",
            "fail driver: nvidia-smi finds no libnvidia-ml.so, the driver's library",
        ),
        (
            "Failed to initialize NVML: Insufficient Permissions",
            "4",
            "unknown answer: the login user may not use the GPUs' device files",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "9",
            "fail driver: the kernel module is loaded, and nvidia-smi cannot talk to it",
        ),
        (
            "No devices were found",
            "6",
            "fail devices: driver 550.90.07 can use no GPU of 1 GPU that it knows (NVIDIA B200)",
        ),
        (
            "sh: nvidia-smi: not found",
            "127",
            "unknown tool: nvidia-smi cannot be run: sh: nvidia-smi: not found",
        ),
        ("", "139", "unknown answer: nvidia-smi ends with status 139, and says nothing"),
        ("Bus error", "1", "unknown answer: nvidia-smi ends with status 1: Bus error"),
        ("", "0", "unknown answer: nvidia-smi's answer cannot be read: nothing"),
        ("<html>", "0", "unknown answer: nvidia-smi's answer cannot be read: <html>"),
    ],
)
def test_what_keeps_the_driver_from_answering(said: str, status: str, finding: str) -> None:
    told = facts(said, status=status, boards="0000:1b:00.0 0 NVIDIA B200", kernel=OPEN_KERNEL)
    told["kernel"] = OPEN_KERNEL.format("550.90.07")
    assert judged("gpu", told) == [finding]


def test_a_container_that_was_given_no_gpu() -> None:
    told = facts("No devices were found", status="6", container="/.dockerenv")
    assert judged("gpu", told) == ["skip none: no GPU was given to this container"]
    assert judged("gpu", told, count=1)[0].startswith("fail devices:")


def test_the_library_on_the_disk_names_the_mismatch_where_nvidia_smi_does_not() -> None:
    told = facts("Failed to initialize NVML: Driver/library version mismatch", status="18")
    assert judged("gpu", {**told, "libraries": "550.127.05\n550.90.07"}) == [
        "fail driver: the loaded kernel module is 550.90.07, the library 550.127.05; should be the"
        " same version"
    ]


def test_the_end_of_a_branch_is_told_and_no_fault_by_itself() -> None:
    told = {**facts(TWO), "month": "2026-11"}
    said = f"{DRIVER.removeprefix('pass ')}; branch 550 came to its end in 2025-06"
    assert judged("gpu", told)[0] == f"pass {said}"
    warned = judged("gpu", told, warn_end_of_life=True)[0]
    assert warned == f"warn {said}, should be one that is kept up"


def test_a_gpu_that_is_missing_is_named() -> None:
    told = facts(TWO)
    told["pci"] += "\n0000:af:00.0 10de 20b2 nvidia"
    assert judged("gpu", told)[1] == (
        "fail count: 2 GPUs, should be 3, as many as the driver has on the PCI bus; without an"
        " answer: 0000:af:00.0"
    )
    # a container sees the whole bus, and its own GPUs only
    assert judged("gpu", {**told, "container": "/.dockerenv"})[1] == COUNT
    assert judged("gpu", {**told, "pci": ""})[1] == COUNT
    assert judged("gpu", facts(TWO), count=8)[1] == "fail count: 2 GPUs, should be 8"
    assert judged("gpu", facts(TWO), count=2)[1] == COUNT


def test_a_gpu_that_the_driver_does_not_have() -> None:
    told = facts(TWO)
    told["pci"] += "\n0000:af:00.0 10de 128b nouveau"
    assert judged("gpu", told)[1:3] == [
        COUNT,
        "warn count: the driver does not have the NVIDIA GPU at 0000:af:00.0 (driver: nouveau)",
    ]
    assert judged("gpu", told, count=2) == [DRIVER, COUNT, MEMORY]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NVIDIA A100-SXM4-80GB", "pass model: all are A100 or H100"),
        ("NVIDIA H100 80GB HBM3", "pass model: all are A100 or H100"),
        ("NVIDIA A10", f"fail model: GPU 0 ({bus(0)}) is NVIDIA A10; should be A100 or H100"),
        ("[N/A]", f"unknown model: GPU 0 ({bus(0)}) tells no name, should be A100 or H100"),
    ],
)
def test_the_model(name: str, said: str) -> None:
    assert judged("gpu", facts(listed(gpu(0, name=name))), model=("A100", "H100"))[2] == said


@pytest.mark.parametrize(
    ("name", "capability", "kernel", "said"),
    [
        (
            "NVIDIA B200",
            "10.0",
            KERNEL,
            "fail module: NVIDIA B200: Blackwell GPUs need the open kernel module, and the"
            " proprietary one is loaded",
        ),
        ("NVIDIA B200", "10.0", OPEN_KERNEL, None),
        (
            "Tesla V100-SXM2-32GB",
            "[N/A]",
            OPEN_KERNEL,
            "fail module: Tesla V100-SXM2-32GB: the open kernel module, which is loaded, does not"
            " drive Volta GPUs",
        ),
        ("Tesla V100-SXM2-32GB", "7.0", KERNEL, None),
        ("NVIDIA A100-SXM4-80GB", "8.0", OPEN_KERNEL, None),
        ("NVIDIA Something New", "[N/A]", OPEN_KERNEL, None),
    ],
)
def test_the_kernel_module_fits(name: str, capability: str, kernel: str, said: str | None) -> None:
    told = facts(listed(gpu(0, name=name, capability=capability, driver="580.65.06")))
    findings = judged("gpu", {**told, "kernel": kernel.format("580.65.06")})
    flavour = "open" if kernel == OPEN_KERNEL else "proprietary"
    assert findings[0].startswith(f"pass driver: driver 580.65.06 ({flavour} kernel module)")
    assert [f for f in findings if " module: " in f] == ([said] if said else [])


@pytest.mark.parametrize("words", ["GPU requires reset", "Unknown Error", "GPU is lost", "ERR!"])
def test_one_gpu_that_answers_no_more_and_the_others_are_judged(words: str) -> None:
    rows = listed(gpu(0).replace("0 %", f"[{words}]"), gpu(1, "4000 MiB"))
    findings = judged("gpu", facts(rows))
    assert findings[1] == (
        f"fail lost: GPU 0 ({bus(0)}) answers {words}; should tell its temperature and state"
    )
    assert findings[2] == COUNT
    assert findings[3].startswith(f"fail memory: GPU 1 ({bus(1)}): 4000 MiB")
    assert len(findings) == 4


@pytest.mark.parametrize("text", ["12", "twelve", "12.x", "v12.4", "12.4.1.2"])
def test_a_wanted_version_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no version.*write one such as 12.4"):
        instance(CHECKS["gpu"], {"require_cuda": text})
    assert instance(CHECKS["gpu"], {"require_cuda": "12.4.1"}).require_cuda == "12.4.1"


def test_fields_that_nvidia_smi_does_not_know_are_named_and_the_rest_is_judged() -> None:
    told = facts(TWO, refused="compute_cap mig.mode.current")
    assert judged("gpu", told) == [
        *(DRIVER, COUNT, MEMORY),
        "skip field: not told by this nvidia-smi: compute_cap, mig.mode.current",
    ]


def test_columns_are_found_by_name_in_whatever_order() -> None:
    rows = [row.split(", ") for row in listed(gpu(0), gpu(1, "9000 MiB")).splitlines()]
    turned = "\n".join(", ".join(reversed(row)) for row in rows)
    told = {**facts(TWO), "gpus": turned, "apps": running((1, 4711, "8990 MiB", "python3, -c"))}
    assert judged("gpu", told) == [
        *(DRIVER, COUNT),
        "pass memory: GPU 1: 9000 of 81920 MiB in use, by processes that nvidia-smi lists",
    ]


def test_no_data_is_no_zero() -> None:
    rows = listed(gpu(0, "[N/A]"), gpu(1, "[Not Supported]"))
    assert judged("gpu", facts(rows))[2:] == [
        "skip memory: GPU 0 and 1: memory is not reported, as of a GPU that shares it with the CPU"
    ]
    held = facts(listed(gpu(0, "9000 MiB")), apps="", apps_status="255")
    assert judged("gpu", held)[2] == (
        "unknown memory: GPU 0: 9000 of 81920 MiB in use; nvidia-smi does not tell by which"
        " processes"
    )
    assert judged("gpu", facts(listed(gpu(0, "9000 MiB")), apps=APPS))[2].startswith("fail memory")
