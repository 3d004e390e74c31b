"""Runs one command and says what it took, as JSON on standard output.

    python -m benchmarks.measure OUTPUT -- COMMAND...

OUTPUT gets the command's standard output, OUTPUT.err its standard error. CPU is user and system
time of the whole process tree: this process takes in orphans (PR_SET_CHILD_SUBREAPER), ends them
and counts them. Peaks of memory, threads and processes are sampled ten times a second.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")
LIMIT = 1800.0  # seconds


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                children = [int(word) for word in (task / "children").read_text().split()]
                found += children
                waiting += children
    return found


def sample(pids: list[int]) -> tuple[int, int, int]:
    """Resident bytes, threads and processes, all together."""
    memory = threads = processes = 0
    for pid in pids:
        with suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            memory += int(fields[21]) * PAGE
            threads += int(fields[17])
            processes += 1
    return memory, threads, processes


def measure(words: list[str], output: Path) -> dict[str, float]:
    """Run a command to its end."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peaks = [0, 0, 0]
    with output.open("wb") as out, Path(f"{output}.err").open("wb") as err:
        began = time.monotonic()
        process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        while process.poll() is None and time.monotonic() < began + LIMIT:
            seen = sample(descendants(os.getpid()))
            peaks = [max(pair) for pair in zip(peaks, seen, strict=True)]
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        wall = time.monotonic() - began
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall": round(wall, 3),
        "cpu": round(used.ru_utime + used.ru_stime, 3),
        "memory_mb": round(peaks[0] / 1e6, 1),
        "threads": peaks[1],
        "processes": peaks[2],
        "status": process.returncode if process.returncode is not None else -1,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[3:], Path(sys.argv[1]))))
