"""What the check fingerprint costs a node, and how much the node tells.

    python -m benchmarks.fingerprint [ROUNDS]

"large" is a made-up node with 256 threads, 8 GPUs, 10 network cards and 60 mounts, "most" one with
so many mounts that they do not fit, "here" this machine. Commands are this machine's. Bytes are
those of the whole answer as it goes over the connection. CPU is that of all processes of the
script, its median of some rounds, less that of the script with a probe that does nothing.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.probes import NOTHING, SHELLS, children
from clustercheck import registry
from clustercheck.check import NoOptions
from clustercheck.script import Asked, Frame, build
from tools.fetch import TOOLS

ROUNDS = 15
THREAD = """processor\t: {0}
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 9754 128-Core Processor
microcode\t: 0xaa00215
cpu MHz\t\t: 2250.000
physical id\t: {1}
siblings\t: 128
core id\t\t: {2}
flags\t\t: {3}
"""
FLAGS = " ".join(f"flag{number:03}" for number in range(130))


def put(root: Path, path: str, text: str) -> None:
    """A file of the made-up node."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def node(root: Path, mounts: int) -> None:
    """A large node's files, as the kernel shows them."""
    threads = [THREAD.format(n, n // 128, n % 64, FLAGS) for n in range(256)]
    put(root, "proc/cpuinfo", "\n".join(threads))
    for number in range(256):
        place = f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
        put(root, place, "performance\n")
    put(root, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Module  550.90.07\n")
    for number in range(8):
        bus = f"0000:{0x10 + number:02x}:00.0"
        text = "Model: \t\t NVIDIA H100 80GB HBM3\nVideo BIOS: \t 96.00.74.00.01\n"
        put(root, f"proc/driver/nvidia/gpus/{bus}/information", text)
    for number in range(300):  # switches and bridges, among them the GPUs
        place = f"sys/bus/pci/devices/0000:{number // 8:02x}:{number % 8:02x}.0"
        put(root, f"{place}/class", "0x030200\n" if number % 37 == 0 else "0x060400\n")
        put(root, f"{place}/vendor", "0x10de\n")
        put(root, f"{place}/device", "0x2330\n")
    for number in range(10):
        put(root, f"sys/class/net/eth{number}/device/vendor", "0x15b3\n")
        put(root, f"sys/class/net/eth{number}/device/device", "0x1021\n")
        put(root, f"sys/class/net/eth{number}/speed", "400000\n")
        put(root, f"sys/class/net/eth{number}/mtu", "9000\n")
        put(root, f"sys/class/infiniband/mlx5_{number}/fw_ver", "28.39.1002\n")
    options = "rw,noatime,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,sec=sys"
    lines = [f"nas:/vol/p{n} /projects/p{n} nfs4 {options} 0 0\n" for n in range(mounts)]
    put(root, "proc/mounts", "".join(lines))
    for path in ("proc/meminfo", "proc/self/limits", "etc/os-release", "etc/hosts", "etc/passwd"):
        put(root, path, Path("/", path).read_text())
    for name in os.listdir("/proc/sys/vm"):
        put(root, f"proc/sys/vm/{name}", "1\n")


def measured(shell: list[str], text: str, rounds: int) -> tuple[float, int]:
    """CPU seconds, and bytes of the answer."""
    used, size = [], 0
    for _ in range(rounds):
        before = children()
        done = subprocess.run([*shell, "-s"], input=text.encode(), stdout=subprocess.PIPE)
        used.append(children() - before)
        size = len(done.stdout)
    return statistics.median(used), size


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    os.environ["PATH"] += os.pathsep + str(TOOLS / "bin")
    check = registry.load()["fingerprint"]
    print("| node | sh | bytes of the answer | CPU s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        roots = {"here": "", "large": f"{folder}/large", "most": f"{folder}/most"}
        node(Path(roots["large"]), 60)
        node(Path(roots["most"]), 900)
        for name, root in roots.items():
            frame = Frame(root=root)
            text = build(frame, [Asked("fingerprint", check, check.options)])
            nothing = build(frame, [Asked("nothing", NOTHING, NoOptions())])
            for title, shell in SHELLS.items():
                if shutil.which(shell[0]):
                    base, _ = measured(shell, nothing, rounds)
                    used, size = measured(shell, text, rounds)
                    print(f"| {name} | {title} | {size:,} | {used - base:.2f} |", flush=True)


if __name__ == "__main__":
    main()
