"""What NVML says of this machine's GPUs, in the forms of nvidia-smi, as JSON on standard output.

Run as a program of its own: a driver that hangs would hold up whoever asks it, even at its end.
"""

import importlib
import json
from collections.abc import Callable
from typing import Any

# imported by name, because it comes without types
nvml: Any = importlib.import_module("pynvml")

MIB = 1024 * 1024
# what nvidia-smi prints for them, by NVML's number
WORDS = {3: "[N/A]", 6: "[Not Found]", 13: "[N/A]", 15: "[GPU is lost]", 16: "[GPU requires reset]"}
MODES = {1: "Pass-Through", 2: "VGPU", 3: "Host VGPU", 4: "Host VSGA"}
COLUMNS = (
    *("index", "name", "uuid", "pci.bus_id", "driver_version", "compute_cap"),
    *("memory.total [MiB]", "memory.used [MiB]", "utilization.gpu [%]", "temperature.gpu"),
    *("pstate", "mig.mode.current"),
)


def text(get: Callable[[], object]) -> str:
    """A value as text, or what nvidia-smi prints where there is none."""
    try:
        found = get()
    except nvml.NVMLError as error:
        return WORDS.get(error.value, f"[{error}]")
    return found.decode(errors="replace") if isinstance(found, bytes) else str(found)


def memory(gpu: object) -> Any:
    """In the form that leaves out what the driver keeps for itself, where the driver has it."""
    try:
        return nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if error.value not in (3, 13, 25):  # no such function or version of it
            raise
        return nvml.nvmlDeviceGetMemoryInfo(gpu)


def row(number: int) -> tuple[list[str], object]:
    """The cells of a GPU, and its handle; None where the driver gives none."""
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(number)
    except nvml.NVMLError as error:
        lost = WORDS.get(error.value, f"[{error}]")
        return [str(number), *[lost] * (len(COLUMNS) - 1)], None
    capability = text(
        lambda: ".".join(str(part) for part in nvml.nvmlDeviceGetCudaComputeCapability(gpu))
    )
    return [
        str(number),
        text(lambda: nvml.nvmlDeviceGetName(gpu)),
        text(lambda: nvml.nvmlDeviceGetUUID(gpu)),
        text(lambda: nvml.nvmlDeviceGetPciInfo(gpu).busId),
        text(nvml.nvmlSystemGetDriverVersion),
        capability,
        text(lambda: f"{memory(gpu).total // MIB} MiB"),
        text(lambda: f"{memory(gpu).used // MIB} MiB"),
        text(lambda: f"{nvml.nvmlDeviceGetUtilizationRates(gpu).gpu} %"),
        text(lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
        text(lambda: f"P{nvml.nvmlDeviceGetPerformanceState(gpu)}"),
        text(lambda: ("Disabled", "Enabled")[nvml.nvmlDeviceGetMigMode(gpu)[0]]),
    ], gpu


def users(gpu: object, address: str, uuid: str) -> list[str]:
    """The processes on a GPU, computing or drawing."""
    found: dict[int, int | None] = {}
    for get in (
        nvml.nvmlDeviceGetComputeRunningProcesses,
        nvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        try:
            found |= {process.pid: process.usedGpuMemory for process in get(gpu)}
        except nvml.NVMLError as error:
            if error.value not in (3, 13):
                raise
    lines = []
    for pid, used in found.items():
        amount = "[N/A]" if used is None else f"{used // MIB} MiB"
        name = text(lambda pid=pid: nvml.nvmlSystemGetProcessName(pid))  # type: ignore[misc]
        lines.append(f"{address}, {uuid}, {pid}, {amount}, {name}")
    return lines


def cuda_version() -> str:
    """The most that the driver supports, "12.2"; NVML says 12020."""
    version = nvml.nvmlSystemGetCudaDriverVersion()
    return f"{version // 1000}.{version % 1000 // 10}"


def ask() -> dict[str, str]:
    """The facts "status", "gpus", "details", "apps" and "apps_status" of the check."""
    nothing = {"details": "", "apps": "", "apps_status": "-"}
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        said = f"Failed to initialize NVML: {error}"
        if error.value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            said += f"\nNVML library version: {text(nvml.nvmlSystemGetNVMLVersion)}"
        return {"status": str(error.value), "gpus": said, **nothing}
    if not count:
        return {"status": "6", "gpus": "No devices were found", **nothing}
    lines = [", ".join(COLUMNS)]
    apps = ["gpu_bus_id, gpu_uuid, pid, used_gpu_memory [MiB], process_name"]
    details = [f"<cuda_version>{text(cuda_version)}</cuda_version>"]
    details.append(f"<attached_gpus>{count}</attached_gpus>")
    apps_status = "0"
    for number in range(count):
        cells, gpu = row(number)
        lines.append(", ".join(cells))
        if gpu is None:
            continue
        details.append(f'<gpu id="{cells[3]}">')
        mode = text(lambda gpu=gpu: nvml.nvmlDeviceGetVirtualizationMode(gpu))  # type: ignore[misc]
        details.append(
            f"<virtualization_mode>{MODES.get(int(mode), 'None')}</virtualization_mode>"
            if mode.isdigit()
            else ""
        )
        try:
            apps += users(gpu, cells[3], cells[2])
        except nvml.NVMLError as error:
            apps_status = str(error.value)
    return {
        "status": "0",
        "gpus": "\n".join(lines),
        "details": "\n".join(details),
        "apps": "\n".join(apps),
        "apps_status": apps_status,
    }


if __name__ == "__main__":
    print(json.dumps(ask()))
