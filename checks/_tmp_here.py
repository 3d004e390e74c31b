"""The facts of the check tmp taken on this machine without sh, under the probe's own keys."""

import heapq
import os
import pwd
import re
import stat
import time
from collections import Counter
from collections.abc import Iterator

import psutil

from ._mounts import mount_line_of


def look(path: str, source: str, number: int) -> dict[str, str]:
    """What a directory is, and what its file system holds, in the form of `df -P`."""
    facts = {f"path@{number}": path, f"from@{number}": source}
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return facts | {f"state@{number}": "Not a directory"}
        space, inodes = psutil.disk_usage(path), os.statvfs(path)
    except OSError as error:
        return facts | {f"state@{number}": error.strerror or str(error)}
    real = os.path.realpath(path)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mount = mount_line_of(real, file.read())
    used = inodes.f_files - inodes.f_ffree
    return facts | {
        f"state@{number}": "directory",
        f"mode@{number}": stat.filemode(status.st_mode),
        f"owner@{number}": str(status.st_uid),
        f"writable@{number}": "yes" if os.access(path, os.W_OK) else "no",
        f"real@{number}": real,
        f"mount@{number}": mount,
        f"space@{number}": _df(space.total // 1024, space.used // 1024, space.free // 1024, path),
        f"inodes@{number}": _df(inodes.f_files, used, inodes.f_ffree, path),
    }


def _df(total: int, used: int, free: int, path: str) -> str:
    percent = f"{100 * used / (used + free):.0f}%" if used + free else "-"
    return f"Filesystem total used free percent target\nhere {total} {used} {free} {percent} {path}"


def largest(path: str, seconds: float) -> str:
    """The five largest entries of a directory: "KIB OWNER MONTH DAY TIME PATH" each."""
    end = time.monotonic() + seconds
    sizes: Counter[str] = Counter()
    for entry, status in _entries(path, end):
        top = os.path.relpath(entry, path).partition("/")[0]
        sizes[os.path.join(path, top)] += status.st_blocks // 2
    return _greatest(sizes, end)


def crowded(path: str, seconds: float) -> str:
    """The five directories with most entries: "NUMBER OWNER MONTH DAY TIME PATH" each."""
    end = time.monotonic() + seconds
    return _greatest(Counter(os.path.dirname(entry) for entry, _ in _entries(path, end)), end)


def _entries(path: str, end: float) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a directory on its own file system, until `end` of time.monotonic()."""
    device = os.stat(path).st_dev
    todo = [path]
    while todo:
        try:
            with os.scandir(todo.pop()) as found:
                for entry in found:
                    if time.monotonic() > end:
                        return
                    status = entry.stat(follow_symlinks=False)
                    if status.st_dev != device:
                        continue
                    yield entry.path, status
                    if stat.S_ISDIR(status.st_mode):
                        todo.append(entry.path)
        except OSError:
            continue  # gone meanwhile, or another user's


def _greatest(sizes: Counter[str], end: float) -> str:
    lines = []
    for path, size in heapq.nlargest(5, sizes.items(), key=lambda item: item[1]):
        try:
            status = os.lstat(path)
        except OSError:
            lines.append(f"{size} ? ? ? ? {path}")
            continue
        changed = time.localtime(status.st_mtime)
        recent = abs(time.time() - status.st_mtime) < 180 * 86400
        # as words of `ls -l`, which writes no zero before the day
        day = f"{time.strftime('%b', changed)} {changed.tm_mday}"
        when = f"{day} {time.strftime('%H:%M' if recent else '%Y', changed)}"
        lines.append(f"{size} {user_name(status.st_uid)} {when} {path}")
    return "\n".join([*lines, "cut"] if time.monotonic() > end else lines)


def user_name(uid: int) -> str:
    """The user's name, or the number where nobody knows one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def deleted(numbers: dict[int, int]) -> str:
    """Deleted files that a process holds open: "KIB NUMBER PID USER COMMAND PATH" each.

    numbers: of the directories, by device. psutil's own list leaves deleted files out.
    """
    found: dict[tuple[int, int], tuple[int, str]] = {}
    for process in psutil.process_iter(["name", "username"]):
        folder = f"/proc/{process.pid}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue  # ended, or another user's
        for descriptor in descriptors:
            try:
                target = os.readlink(f"{folder}/{descriptor}")
                if not (target.startswith("/") and target.endswith(" (deleted)")):
                    continue
                status = os.stat(f"{folder}/{descriptor}")
            except OSError:
                continue
            if not status.st_blocks:
                continue
            if status.st_dev in numbers and not target.startswith(("/memfd:", "/SYSV", "/dev/")):
                command = (process.info["name"] or "?").replace(" ", "_")
                who = f"{process.pid} {process.info['username'] or '?'} {command}"
                line = f"{numbers[status.st_dev]} {who} {target.removesuffix(' (deleted)')}"
                found.setdefault((status.st_dev, status.st_ino), (status.st_blocks // 2, line))
    return "\n".join(f"{size} {line}" for size, line in heapq.nlargest(20, found.values()))


def device_of(path: str) -> int:
    """The device number of the file system that a path is on."""
    return os.stat(path).st_dev


SLURM_FILES = (
    "/etc/slurm/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/var/spool/slurmd/conf-cache/slurm.conf",
    "/var/spool/slurm/d/conf-cache/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
)


def slurm_tmp_fs() -> tuple[str, str]:
    """slurm.conf's path ("none", "unreadable") and the TmpFS in it ("" where it sets none)."""
    state = "none"
    for path in (os.environ.get("SLURM_CONF") or SLURM_FILES[0], *SLURM_FILES):
        if os.path.exists(path):
            try:
                return path, _tmp_fs(path, 0)
            except OSError:
                state = "unreadable"
    return state, ""


def _tmp_fs(path: str, depth: int) -> str:
    found = ""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.partition("#")[0] for line in file]
    for line in lines:
        included = re.match(r"\s*include\s+(\S+)", line, re.IGNORECASE)
        value = re.search(r'(?:^|\s)tmpfs\s*=\s*"?([^"\s]*)', line, re.IGNORECASE)
        if included and depth < 2:
            other = os.path.join(os.path.dirname(path), included[1])
            found = (_tmp_fs(other, depth + 1) if os.access(other, os.R_OK) else "") or found
        elif value:
            found = value[1]
    return found
