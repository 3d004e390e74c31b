"""The check gpu on this machine by NVML: a stand-in for pynvml says what a driver would."""

import os
import time
from pathlib import Path

import pytest

from tests.gpu_node import KERNEL, gpu, install, listed
from tests.made_up import CHECKS, MadeUpNode, judged, options_of

# The real pynvml with another library below it: its own names, classes and errors are used.
STAND_IN = """
import importlib.machinery, importlib.util, sys, types
here = __file__
path = [p for p in sys.path if not here.startswith(p + "/")]
spec = importlib.machinery.PathFinder.find_spec("pynvml", path)
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
sys.modules["pynvml"] = real
MIB = 1024 * 1024
ADDRESSES = (b"00000000:10:00.0", b"00000000:11:00.0")


def process(pid, used):
    return types.SimpleNamespace(pid=pid, usedGpuMemory=used)


def memory(gpu, version=None):
    if version:
        raise real.NVMLError(real.NVML_ERROR_FUNCTION_NOT_FOUND)
    return types.SimpleNamespace(total=81920 * MIB, used=(4, 30000)[gpu] * MIB)


def refuse(code):
    def function(*arguments):
        raise real.NVMLError(code)
    return function


real.nvmlInit = lambda: None
real.nvmlDeviceGetCount = lambda: 2
real.nvmlDeviceGetHandleByIndex = lambda number: number
real.nvmlDeviceGetName = lambda gpu: "NVIDIA A100-SXM4-80GB"
real.nvmlDeviceGetUUID = lambda gpu: f"GPU-{gpu}"
real.nvmlDeviceGetPciInfo = lambda gpu: types.SimpleNamespace(busId=ADDRESSES[gpu])
real.nvmlSystemGetDriverVersion = lambda: "535.183.01"
real.nvmlSystemGetCudaDriverVersion = lambda: 12020
real.nvmlSystemGetNVMLVersion = lambda: "12.550.127"
real.nvmlDeviceGetCudaComputeCapability = lambda gpu: (8, 0)
real.nvmlDeviceGetMemoryInfo = memory
real.nvmlDeviceGetUtilizationRates = refuse(real.NVML_ERROR_NOT_SUPPORTED)
real.nvmlDeviceGetTemperature = lambda gpu, kind: 31
real.nvmlDeviceGetPerformanceState = lambda gpu: 0
real.nvmlDeviceGetMigMode = refuse(real.NVML_ERROR_NOT_SUPPORTED)
real.nvmlDeviceGetVirtualizationMode = lambda gpu: 0
real.nvmlDeviceGetComputeRunningProcesses = lambda gpu: [process(PID, None)] if gpu else []
real.nvmlDeviceGetGraphicsRunningProcesses = lambda gpu: []
real.nvmlSystemGetProcessName = lambda pid: b"/usr/bin/python3"
"""


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the stand-in, which a test may lengthen."""
    file = tmp_path / "pynvml.py"
    file.write_text(STAND_IN + f"PID = {os.getpid()}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return file


def told(**changed: object) -> dict[str, str]:
    """The facts of this machine, as if its kernel had the driver's module."""
    here = CHECKS["gpu"].probe_here
    assert here
    facts = dict(here(options_of("gpu", **changed)))
    return {
        **facts,
        **{"pci": "", "kernel": KERNEL.format("535.183.01"), "module": "535.183.01"},
        **{"container": "", "month": "2024-09"},
    }


def test_two_gpus_of_which_one_is_busy(nvml: Path) -> None:
    facts = told()
    assert facts["tool"] == "NVML"
    assert facts["gpus"].splitlines()[2] == (
        "1, NVIDIA A100-SXM4-80GB, GPU-1, 00000000:11:00.0, 535.183.01, 8.0, 81920 MiB, 30000 MiB,"
        " [N/A], 31, P0, [N/A]"
    )
    assert facts["processes"].split()[0] == str(os.getpid())
    assert judged("gpu", facts, require_cuda="12.2") == [
        "pass driver: driver 535.183.01 (proprietary kernel module), CUDA up to 12.2",
        "pass count: 2 GPUs: NVIDIA A100-SXM4-80GB",
        "pass cuda: driver 535.183.01 runs CUDA 12.2 by itself (535.54.03 or newer)",
        "pass capability: NVIDIA A100-SXM4-80GB has compute capability 8.0, CUDA 12.2 makes code"
        " for it",
        "pass memory: GPU 1: 30000 of 81920 MiB in use, by processes that nvidia-smi lists",
    ]


def test_memory_that_nobody_holds(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write("real.nvmlDeviceGetComputeRunningProcesses = lambda gpu: []\n")
    assert judged("gpu", told())[2].startswith("fail memory: GPU 1 (00000000:11:00.0): 30000 MiB")


def test_a_process_that_is_gone(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write("PID = 4194304\n")  # above the greatest that there may be
    assert judged("gpu", told())[2].startswith("fail stuck: memory is held by what cannot let go")


def test_a_gpu_that_is_lost_leaves_the_other_to_be_judged(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write(
            "real.nvmlDeviceGetHandleByIndex = lambda n: n or refuse(real.NVML_ERROR_GPU_IS_LOST)()"
        )
    found = judged("gpu", told())
    assert found[1] == (
        "fail lost: GPU 0 answers GPU is lost; should tell its temperature and state"
    )
    assert found[3].startswith("pass memory: GPU 1: 30000")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "LIB_RM_VERSION_MISMATCH",
            "fail driver: the loaded kernel module is 535.183.01, the library 12.550.127; should be"
            " the same version",
        ),
        (
            "DRIVER_NOT_LOADED",
            "fail driver: the kernel module is loaded, and NVML cannot talk to it",
        ),
        ("NO_PERMISSION", "unknown answer: the login user may not use the GPUs' device files"),
        (
            "UNKNOWN",
            "fail driver: the driver does not answer: Failed to initialize NVML: Unknown Error",
        ),
    ],
)
def test_what_keeps_it_from_answering(nvml: Path, code: str, said: str) -> None:
    with nvml.open("a") as file:
        file.write(f"real.nvmlInit = refuse(real.NVML_ERROR_{code})\n")
    assert judged("gpu", told()) == [said]


def test_no_device(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write("real.nvmlDeviceGetCount = lambda: 0\n")
    assert judged("gpu", told()) == ["fail devices: driver 535.183.01 can use no GPU"]


def test_a_driver_that_hangs_holds_up_nobody(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write("import time\nreal.nvmlInit = lambda: time.sleep(40)\n")
    began = time.monotonic()
    assert judged("gpu", told(answer_seconds=1), answer_seconds=1) == [
        "fail answer: no answer of the driver: NVML ran into its timeout of 1 s"
    ]
    assert time.monotonic() - began < 35


def test_a_fault_of_the_program_is_told(nvml: Path) -> None:
    with nvml.open("a") as file:
        file.write("real.nvmlInit = lambda: 1 / 0\n")
    (found,) = judged("gpu", told())
    assert found == ("unknown answer: NVML ends with status 1: ZeroDivisionError: division by zero")


def test_the_keys_are_those_of_the_probe(nvml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    node = MadeUpNode(folder)
    install(node, listed(gpu(0)))
    assert set(node.probe("gpu")) == set(told())
