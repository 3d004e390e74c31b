"""Why the driver does not answer: one finding for one cause."""

import re
from typing import NamedTuple

from clustercheck.check import Facts, Finding, fail, unknown

from ._gpu_read import Gpu, gpus, models, versions
from ._gpu_remedies import (
    GET_TOOL,
    GIVE_RIGHTS,
    LOAD_DRIVER,
    SAME_VERSION,
    SEE_DEVICES,
    SEE_HANG,
    SEE_LOST,
    SEE_NVML,
)

LOST = re.compile(
    r"Unable to determine the device handle for GPU\s*(?:(\d+):\s+)?"
    r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])?:"
)
# ended by timeout(1): by TERM, or by KILL where TERM did nothing
TIMED_OUT = ("124", "137", "143")


class Card(NamedTuple):
    """A device of the PCI bus that may be a GPU: vendor and driver tell whose."""

    address: str
    vendor: str
    device: str
    driver: str


def cards(facts: Facts) -> list[Card]:
    """The display controllers and accelerators of the PCI bus."""
    lines = [line.split(" ") for line in facts["pci"].splitlines() if line]
    return [Card(*words) for words in lines if len(words) == 4]


def nvidias(facts: Facts) -> list[Card]:
    """NVIDIA's, without those that are given to virtual machines whole."""
    return [c for c in cards(facts) if c.vendor == "10de" and not c.driver.startswith("vfio")]


def is_loaded(facts: Facts) -> bool:
    """Is the kernel module there?"""
    return facts["kernel"] != "absent" or facts["module"] != "absent"


def plural(count: int, one: str = "GPU") -> str:
    """`1 GPU`, `4 GPUs`."""
    return f"{count} {one}" + ("" if count == 1 else "s")


def no_driver(facts: Facts) -> Finding:
    """GPUs on the PCI bus, and no kernel module of NVIDIA's."""
    found = nvidias(facts)
    there = f"{plural(len(found), 'NVIDIA GPU')} on the PCI bus" if found else "nvidia-smi is there"
    others = sorted({card.driver for card in found} - {"none", "nvidia"})
    has = f"{' and '.join(others)} has them" if others else "no kernel module is loaded"
    return fail("driver", f"{there}, and no driver of NVIDIA's: {has}", LOAD_DRIVER)


def trouble(facts: Facts, answer_seconds: int) -> Finding | None:
    """What keeps nvidia-smi from listing the GPUs; None where it lists them."""
    said, status = facts["gpus"], facts["status"]
    asked = "NVML" if facts["tool"] == "NVML" else "nvidia-smi"
    line = " ".join(said.split())
    if status in TIMED_OUT:
        message = f"no answer of the driver: {asked} ran into its timeout of {answer_seconds} s"
        return fail("answer", message, SEE_HANG)
    if status == "flood":
        return unknown("answer", f"{asked} prints thousands of lines that are no answer", SEE_HANG)
    if "version mismatch" in line.lower():
        return _mismatch(facts, line)
    if found := LOST.search(line):
        number = f" {found[1]}" if found[1] else ""
        which = f"GPU{number} ({found[2]})" if found[2] else f"GPU{number}"
        why = line[found.end() :].strip().rstrip(".")
        return fail(
            "lost", f"{which} does not answer, and keeps the others from it: {why}", SEE_LOST
        )
    if "couldn't communicate with the NVIDIA driver" in line or "Driver Not Loaded" in line:
        if not is_loaded(facts):
            return no_driver(facts)
        message = f"the kernel module is loaded, and {asked} cannot talk to it"
        return fail("driver", message, SEE_NVML)
    if "No devices were found" in line:
        known = models(facts)
        on_bus = [card.address for card in nvidias(facts)]
        of = f" of {plural(len(known))} that it knows ({', '.join(known)})" if known else ""
        if on_bus and not known:
            of = f" of {plural(len(on_bus))} on the PCI bus ({', '.join(on_bus)})"
        message = f"driver {versions(facts).driver or 'of unknown version'} can use no GPU{of}"
        return fail("devices", message, SEE_DEVICES)
    if "couldn't find libnvidia-ml" in line or "Shared Library Not Found" in line:
        message = "nvidia-smi finds no libnvidia-ml.so, the driver's library"
        return fail("driver", message, GET_TOOL)
    if "Insufficient Permissions" in line and line.startswith("Failed to initialize NVML"):
        return unknown("answer", "the login user may not use the GPUs' device files", GIVE_RIGHTS)
    if line.startswith("Failed to initialize NVML"):
        return fail("driver", f"the driver does not answer: {line}", SEE_NVML)
    if status == "126" and "/run/nvidia/driver/" in facts["tool"]:
        said = "a container has the driver (/run/nvidia/driver), and root alone may ask it"
        return unknown("answer", said, GIVE_RIGHTS)
    if status in ("126", "127"):
        return unknown("tool", f"nvidia-smi cannot be run: {line or 'no word why'}", GET_TOOL)
    broken = [gpu for gpu in gpus(facts) if gpu.broken]
    if status != "0" and broken:
        return lost(broken)
    if status != "0":
        said = f": {line[:200]}" if line else ", and says nothing"
        return unknown("answer", f"{asked} ends with status {status}{said}", SEE_DEVICES)
    return None


def lost(broken: list[Gpu]) -> Finding:
    """GPUs that are still listed, with words in place of values."""
    words = "; ".join(f"{gpu.title} answers {gpu.broken.strip('[]')}" for gpu in broken)
    return fail("lost", f"{words}; should tell its temperature and state", SEE_LOST)


def _mismatch(facts: Facts, line: str) -> Finding:
    found = versions(facts)
    library = re.search(r"library version:\s*([0-9.]+)", line)
    others = [version for version in found.libraries if version != found.kernel]
    if library:  # which may be without its last part, that the file's name has
        said = library[1]
        whole = [version for version in others if version.startswith(f"{said}.")]
        others = whole or [said]
    of_library = ", ".join(others) or "of unknown version"
    return fail(
        "driver",
        f"the loaded kernel module is {found.kernel or 'of unknown version'}, the library"
        f" {of_library}; should be the same version",
        SAME_VERSION,
    )
