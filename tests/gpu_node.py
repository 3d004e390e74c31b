"""Made-up nodes with NVIDIA GPUs, for the tests of the check gpu."""

from pathlib import Path

from tests.made_up import MadeUpNode

DATA = Path(__file__).resolve().parent / "data" / "gpu"
HEADER = (
    "index, name, uuid, pci.bus_id, driver_version, compute_cap, memory.total [MiB],"
    " memory.used [MiB], utilization.gpu [%], temperature.gpu, pstate, mig.mode.current"
)
APPS = "gpu_bus_id, gpu_uuid, pid, used_gpu_memory [MiB], process_name"
KERNEL = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sun May 12 19:39:15 UTC 2024"
OPEN_KERNEL = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build"


def recorded(name: str) -> str:
    """The text of a file in tests/data/gpu."""
    return (DATA / f"{name}.txt").read_text()


def bus(number: int) -> str:
    """The PCI address of a made-up GPU, as nvidia-smi writes it."""
    return f"00000000:{0x10 + number:02X}:00.0"


def gpu(
    number: int,
    used: str = "4 MiB",
    *,
    name: str = "NVIDIA A100-SXM4-80GB",
    driver: str = "550.90.07",
    capability: str = "8.0",
    total: str = "81920 MiB",
    mig: str = "Disabled",
) -> str:
    """A row under HEADER."""
    return (
        f"{number}, {name}, GPU-{number:08d}-aaaa, {bus(number)}, {driver}, {capability}, {total},"
        f" {used}, 0 %, 31, P0, {mig}"
    )


def listed(*rows: str) -> str:
    """What the query for GPUs prints."""
    return "\n".join([HEADER, *rows])


def running(*rows: tuple[int, int, str, str]) -> str:
    """What the query for processes prints: number of the GPU, pid, memory and name of each."""
    lines = [
        f"{bus(number)}, GPU-{number:08d}-aaaa, {pid}, {used}, {name}"
        for number, pid, used, name in rows
    ]
    return "\n".join([APPS, *lines])


def facts(gpus: str, apps: str = APPS, **others: str) -> dict[str, str]:
    """The facts of a node whose driver answers, with some changed."""
    rows = [line.split(", ") for line in gpus.splitlines()[1:]] if gpus.startswith("index") else []
    addresses = [row[3].lower()[4:] for row in rows if len(row) == 12]
    driver = rows[0][4] if addresses else "550.90.07"
    return {
        "pci": "\n".join(f"{address} 10de 20b2 nvidia" for address in addresses),
        "kernel": KERNEL.format(driver),
        "module": driver,
        "boards": "\n".join(f"{a} {n} NVIDIA A100" for n, a in enumerate(addresses)),
        "libraries": driver,
        "compat": "",
        "container": "",
        "month": "2024-09",
        "tool": "nvidia-smi",
        "status": "0",
        "gpus": gpus,
        "refused": "",
        "details": "",
        "details_status": "0",
        "banner": "",
        "apps": apps,
        "apps_status": "0",
        "processes": "",
        "seen": "all",
        "proc": "all",
        **others,
    }


def install(
    node: MadeUpNode,
    gpus: str,
    *,
    apps: str = APPS,
    xml: str = "",
    table: str = "",
    driver: str = "550.90.07",
    status: int = 0,
    refuses: str = "",
    second: str = "",
) -> None:
    """An nvidia-smi that answers each question with what is given, and its kernel module.

    refuses: a field that the query for GPUs does not know.
    second: what happens on the node before GPUs are asked for the second time, in sh.
    """
    for name, text in (("gpus", gpus), ("apps", apps), ("xml", xml), ("table", table)):
        (node.bin / f".smi.{name}").write_text(text + "\n")
    refusal = f'Field "{refuses}" is not a valid field to query.'
    seen = node.bin / ".smi.seen"
    lines = ['case "$*" in']
    if refuses:
        lines.append(f"--query-gpu=*{refuses}*) echo '{refusal}'; echo; exit 2 ;;")
    for pattern, name in (
        ("--query-gpu=*", "gpus"),
        ("--query-compute-apps=*", "apps"),
        ("'-q -x'", "xml"),
        ("''", "table"),
    ):
        lines.append(f"{pattern}) cat '{node.bin}/.smi.{name}' ;;")
    if second:
        lines[:0] = [
            f"case \"$*\" in --query-gpu=*) [ -e '{seen}' ] && {{ {second}; }}",
            f": >'{seen}' ;; esac",
        ]
    node.command("nvidia-smi", "\n".join([*lines, "esac", f"exit {status}"]))
    node.file("/proc/driver/nvidia/version", KERNEL.format(driver) + "\n")
    node.file("/sys/module/nvidia/version", driver + "\n")
    node.file("/proc/1/stat", "1 (systemd) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1\n")


def on_the_bus(
    node: MadeUpNode, address: str, *, vendor: str = "10de", driver: str = "", kind: str = "030200"
) -> None:
    """A PCI device; of NVIDIA's with `kind` 0302, a 3D controller."""
    folder = f"/sys/bus/pci/devices/{address}"
    node.file(f"{folder}/class", f"0x{kind}\n")
    node.file(f"{folder}/vendor", f"0x{vendor}\n")
    node.file(f"{folder}/device", "0x20b2\n")
    if driver:
        target = node.root / "sys/bus/pci/drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (node.root / folder.lstrip("/") / "driver").symlink_to(target)


def process(
    node: MadeUpNode,
    pid: int,
    state: str,
    parent: int,
    command: str,
    *,
    files: tuple[str, ...] = (),
) -> None:
    """A process in /proc with files open."""
    rest = "1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 7 0 1"
    node.file(f"/proc/{pid}/stat", f"{pid} ({command}) {state} {parent} {rest}\n")
    node.file(f"/proc/{pid}/comm", command + "\n")
    folder = node.root / "proc" / str(pid) / "fd"
    folder.mkdir(exist_ok=True)
    for number, target in enumerate(files):
        (folder / str(number)).symlink_to(target)
