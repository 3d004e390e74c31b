"""Made-up nodes with NVIDIA GPUs in some state of health, for the tests of the check gpu_health."""

from pathlib import Path

from tests.made_up import MadeUpNode

DATA = Path(__file__).resolve().parent / "data"
CLEAN = "[    0.000000] Linux version 5.14.0\n[    6.512209] NVRM: loading NVIDIA UNIX"


def recorded(name: str) -> str:
    """The text of a file in tests/data/gpu_health or, "gpu/NAME", in tests/data/gpu."""
    folder, _, file = name.rpartition("/")
    return (DATA / (folder or "gpu_health") / f"{file}.txt").read_text()


def bus(number: int) -> str:
    """The PCI address of a made-up GPU, as nvidia-smi writes it."""
    return f"00000000:{0x10 + number:02X}:00.0"


def gpu(number: int = 0, **changed: str) -> str:
    """One GPU of `nvidia-smi -q -x`, with some elements changed: `dram_uncorrectable="2"`.

    The first of its name is changed; of those that are there twice the second by `NAME_2`.
    """
    text = recorded("gpu-a100").replace("00000000:10:00.0", bus(number))
    for key, value in changed.items():
        name, _, second = key.partition("__")
        parts = text.split(f"<{name}>")
        assert len(parts) > 1, f"there is no <{name}>"
        place = int(second or 1)
        parts[place] = value + parts[place][parts[place].index("<") :]
        text = f"<{name}>".join(parts)
    return text


def xml(*gpus: str) -> str:
    """The whole answer."""
    head = (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n\t<driver_version>570.124.06</driver_version>\n'
    )
    return head + "".join(gpus) + "</nvidia_smi_log>\n"


def log(*lines: str) -> str:
    """What the kernel's log of a node that was booted long ago has besides."""
    return "\n".join([CLEAN, *lines]) + "\n"


def install(
    node: MadeUpNode,
    answer: str = "",
    *,
    status: int = 0,
    dmesg: str | None = CLEAN,
    uptime: float | None = None,
    nvlink: str = "",
    rows: str = "",
    driver: bool = True,
) -> None:
    """A node with the driver, an nvidia-smi that gives these answers, and a kernel's log.

    rows: what --query-gpu answers. dmesg: None where an ordinary user may not read it.
    """
    for name, text in (("xml", answer), ("nvlink", nvlink), ("rows", rows)):
        (node.bin / f".smi.{name}").write_text(text)
    node.command(
        "nvidia-smi",
        f"echo \"$*\" >>'{node.bin}/.smi.asked'\n"
        'case "$*" in\n'
        f"'-q -x') cat '{node.bin}/.smi.xml'; exit {status} ;;\n"
        f"'nvlink -s') cat '{node.bin}/.smi.nvlink' ;;\n"
        f"--query-gpu=*) cat '{node.bin}/.smi.rows' ;;\n"
        "*) echo 'unknown option'; exit 2 ;;\nesac",
    )
    if dmesg is None:
        node.says("dmesg", "", "dmesg: read kernel buffer failed: Operation not permitted\n", 1)
    else:
        node.says("dmesg", dmesg)
    if driver:
        node.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX")
    if uptime is not None:
        node.file("/proc/uptime", f"{uptime:.2f} 1.00\n")


def asked(node: MadeUpNode) -> list[str]:
    """What nvidia-smi was asked."""
    return (node.bin / ".smi.asked").read_text().splitlines()


FULL_FACTS = {
    "driver": "loaded",
    "tool": "nvidia-smi",
    "container": "",
    "uptime": "813000.10",
    "log_from": "dmesg",
    "log": "3 70 [812331.1] NVRM: Xid (PCI:0000:1b:00): 95, pid=41022, name=python3, Ch 10\n"
    "1 71 [812332.1] NVRM: Xid (PCI:0000:10:00): 154, GPU recovery action changed from 0x0 (None)"
    " to 0x1 (GPU Reset Required)\n1 72 [812333.1] nvidia-nvswitch0: SXid (PCI:0000:05:00.0):"
    " 12028, Fatal, Link 32\n1 73 NVRM: GPU at 0000:01:00.0 has fallen off the bus.\n"
    "lines 900\nfirst 0.000000\nended 0",
    "widths": "0000:10:00.0 8 16 16\n0000:11:00.0 16 16 8",
    "answer_status": "0",
    "answer": xml(gpu(0), gpu(1, dram_uncorrectable="2", state="Completed")),
    "refused": "",
    "nvlink_status": "0",
    "nvlink": "GPU 0: NVIDIA A100 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
    "GPU 1: NVIDIA A100 (UUID: GPU-2)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s",
}
# what the hostile facts are made from: each form of the answer
FULL = [
    FULL_FACTS,
    {**FULL_FACTS, "answer": recorded("gpu/csv-595-l40s-all-fields")},
    {**FULL_FACTS, "answer": recorded("gpu/smi-table-470-v100")},
]
