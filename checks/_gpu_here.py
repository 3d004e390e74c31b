"""The facts of the check gpu taken on this machine without sh, under the probe's own keys."""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

from ._gpu_read import cells, number, short

SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
CONTAINERS = ("/run/systemd/container", "/.dockerenv", "/run/.containerenv")
LETTERS = {
    psutil.STATUS_ZOMBIE: "Z",
    psutil.STATUS_DEAD: "X",
    psutil.STATUS_DISK_SLEEP: "D",
    psutil.STATUS_RUNNING: "R",
}


def facts_here(answer_seconds: int, held_mib: int) -> dict[str, str]:
    """The facts of this machine; answer_seconds is what the driver has for its answer."""
    libraries = [glob.glob(f"{folder}/libnvidia-ml.so.[0-9]*.[0-9]*") for folder in SYSTEM]
    facts = {
        "pci": _pci(),
        "kernel": _first_line("/proc/driver/nvidia/version"),
        "module": _first_line("/sys/module/nvidia/version"),
        "boards": _boards(),
        "libraries": "\n".join(f.partition(".so.")[2] for found in libraries for f in found),
        "compat": "\n".join(glob.glob("/usr/local/cuda-*/compat/libcuda.so.[0-9]*.[0-9]*")),
        "container": next((f for f in reversed(CONTAINERS) if os.path.exists(f)), ""),
        "month": time.strftime("%Y-%m"),
    }
    answer = _ask(answer_seconds)
    if answer["status"] == "12" and shutil.which("nvidia-smi") is None:
        return facts | {"tool": "absent"}
    seen = False
    pids: dict[str, set[str]] = {}
    if answer["status"] == "0":
        pids, held = _pids(answer, held_mib)
        before = {pid: _state(pid) for pid in pids}
        if held or {"D", "Z", "X", "gone"} & set(before.values()):
            time.sleep(2)  # what is on its way out now is gone then
            answer = _ask(answer_seconds)
            pids, held = _pids(answer, held_mib)
        seen = bool(held) and os.geteuid() == 0
        processes = [_process(pid, minors, before.get(pid, "")) for pid, minors in pids.items()]
    else:
        processes = []
    return facts | {
        "tool": "NVML",
        **answer,
        "refused": "",
        "details_status": answer["apps_status"],
        "banner": "",
        "processes": "\n".join(processes),
        "seen": "all" if seen else "own",
        "proc": "all" if os.access("/proc/1/stat", os.R_OK) else "own",
    }


def _ask(seconds: int) -> dict[str, str]:
    """NVML's answer by a program of its own, which is left behind where it cannot be ended."""
    program = Path(__file__).with_name("_gpu_nvml.py")
    child = subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)
        return {"status": "124", "gpus": "", "details": "", "apps": "", "apps_status": "-"}
    try:
        answer: dict[str, str] = json.loads(out)
    except ValueError:
        said = err.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        return {"status": "1", "gpus": said[0], "details": "", "apps": "", "apps_status": "-"}
    return answer


def _first_line(path: str) -> str:
    if not os.path.exists(path):
        return "absent"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return "unreadable"


def _pci() -> str:
    if not os.path.isdir("/sys/bus"):
        return "unreadable"
    lines = []
    for device in sorted(glob.glob("/sys/bus/pci/devices/*")):
        if not _first_line(f"{device}/class").startswith(("0x03", "0x1200")):
            continue
        if os.path.exists(f"{device}/physfn"):
            continue
        ids = [_first_line(f"{device}/{name}").removeprefix("0x") for name in ("vendor", "device")]
        driver = os.path.realpath(f"{device}/driver")
        known = os.path.basename(driver) if os.path.exists(driver) else "none"
        lines.append(" ".join([os.path.basename(device), *ids, known]))
    return "\n".join(lines)


def _boards() -> str:
    lines = []
    for file in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        with open(file, encoding="utf-8", errors="replace") as information:
            fields = dict(re.findall(r"^([^:]+):\s*(.*)$", information.read(), re.MULTILINE))
        address = os.path.basename(os.path.dirname(file))
        lines.append(f"{address} {fields.get('Device Minor', '-')} {fields.get('Model', '-')}")
    return "\n".join(lines)


def _pids(answer: dict[str, str], held_mib: int) -> tuple[dict[str, set[str]], bool]:
    """The processes with a GPU, each with the device files it has open; is memory held at all?

    Whoever has a device file open counts only where memory is held.
    """
    rows = cells(answer["apps"])
    pids: dict[str, set[str]] = {row["pid"]: set() for row in rows if row["pid"].isdigit()}
    listed = {short(row["gpu_bus_id"]) for row in rows}
    full = [r for r in cells(answer["gpus"]) if (number(r["memory.used"]) or 0) > held_mib]
    if full:
        for link in glob.glob("/proc/[0-9]*/fd/*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if found := re.fullmatch(r"/dev/nvidia(\d+)", target):
                pids.setdefault(link.split("/")[2], set()).add(found[1])
    return pids, any(short(row["pci.bus_id"]) not in listed for row in full)


def _state(pid: str) -> str:
    try:
        return LETTERS.get(psutil.Process(int(pid)).status(), "S")
    except psutil.NoSuchProcess:
        return "gone"
    except psutil.AccessDenied:
        return "S"


def _process(pid: str, minors: set[str], before: str) -> str:
    """A process as the probe describes it; a state that passes by itself is no state."""
    state = _state(pid)
    files = ",".join(sorted(minors)) or "-"
    if state == "gone":
        return f"{pid} - gone - - {files} - -  -"
    process = psutil.Process(int(pid))
    if state in ("D", "Z", "X") and state != before:
        state = "S"
    try:
        parent = process.ppid()
        above = _first_line(f"/proc/{parent}/comm").partition(" ")[0]
        words = [pid, str(parent), state, str(process.num_threads()), process.username(), files]
        words += [_first_line(f"/proc/{pid}/wchan") or "-", _place(pid), above, process.name()]
    except psutil.Error:
        return f"{pid} - gone - - {files} - -  -"
    return " ".join(words)


def _place(pid: str) -> str:
    """The control group of a container or a job."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return "-"
    mark = re.compile(r"docker|libpod|kubepods|containerd|lxc|job_|machine")
    paths = [group.split(":", 2)[-1].partition(" ")[0] for group in groups if mark.search(group)]
    return paths[-1] if paths else "-"
