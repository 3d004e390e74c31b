"""Ends a laboratory, also one whose maker crashed."""

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path


def end(folder: Path) -> bool:
    """End the cluster of a folder, also one whose maker crashed. False: there was none."""
    try:
        pid, then = (folder / "pid").read_text().split()
    except (FileNotFoundError, ValueError):
        return False
    ours = born(int(pid)) == then  # else the number is somebody else's by now
    if ours:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
        deadline = time.monotonic() + 60
        while born(int(pid)) == then and time.monotonic() < deadline:
            time.sleep(0.01)
    (folder / "pid").unlink()
    return ours


def remove(folder: Path) -> bool:
    """End the cluster of a folder and remove the folder. False: there was none."""
    there = end(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return there


def born(pid: int) -> str:
    """When a process started, in the kernel's ticks; "" where it is none or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]
