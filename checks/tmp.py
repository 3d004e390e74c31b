"""Jobs find room to write in /tmp, in Slurm's TmpFS and in the site's own scratch directories.

A full /tmp fails jobs in odd ways, and df shows only half of it: the inodes may be gone while
there is space, the space may be held by deleted files, /tmp may be memory, or it was mounted
read-only after an error.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    fail,
    ok,
    option,
    unknown,
    warn,
)

from ._df import Usage, parse_df, percent_words, size_words
from ._mounts import Mount, parse_mount
from ._tmp_probe import PROBE
from ._tmp_remedies import (
    ALLOW_EXEC,
    CLOSE_FILES,
    FREE_INODES,
    FREE_SPACE,
    LET_READ,
    LIMIT_MEMORY,
    MAKE_DIRECTORY,
    MAKE_WRITABLE,
    SEE_SERVER,
    SET_MODE,
)

Percent = Annotated[int, Ge(1), Le(100)]

NUMBER = "[0-9]{1,15}"  # of KiB or entries


@dataclass(frozen=True)
class Options:
    paths: tuple[str, ...] = option((), "directories to look at besides /tmp and Slurm's TmpFS")
    warn_percent: Percent = option(80, "space used from which on it is a warning", unit="%")
    fail_percent: Percent = option(90, "space used from which on it is a failure", unit="%")
    fail_free_mb: Annotated[int, Ge(0)] = option(
        100, "free space below which it is a failure", unit="MiB"
    )
    inodes_warn_percent: Percent = option(80, "inodes used from which on it is a warning", unit="%")
    inodes_fail_percent: Percent = option(90, "inodes used from which on it is a failure", unit="%")
    memory_warn_percent: Percent = option(
        60, "share of memory that a tmpfs may grow to before it is a warning", unit="%"
    )
    deleted_warn_mb: Annotated[int, Ge(1)] = option(
        100, "deleted files still held open, when space is short, that are a warning", unit="MiB"
    )
    warn_noexec: bool = option(True, "whether a noexec mount is a warning")
    search_seconds: Annotated[int, Ge(1), Le(10)] = option(
        5, "how long the largest entries of a full directory are looked for", unit="s"
    )

    def __post_init__(self) -> None:
        for warn_at, fail_at in (
            ("warn_percent", "fail_percent"),
            ("inodes_warn_percent", "inodes_fail_percent"),
        ):
            if getattr(self, warn_at) > getattr(self, fail_at):
                lower, upper = getattr(self, warn_at), getattr(self, fail_at)
                raise ValueError(f"{warn_at} ({lower} %) is above {fail_at} ({upper} %)")
        for path in self.paths:
            if not path.startswith("/"):
                raise ValueError(f"{path!r} in paths must begin with /")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    by_device: dict[str, list[str]] = {}
    if not re.fullmatch("[0-9]{1,4}", facts["directories"]):
        yield unknown("unanswered", "the probe did not say what it looked at")
        return
    for number in map(str, range(1, int(facts["directories"]) + 1)):
        if facts[f"state@{number}"] != "directory":
            yield _not_there(facts[f"path@{number}"], facts[f"state@{number}"])
            continue
        mount = parse_mount(facts[f"mount@{number}"])
        yield from _directory(facts, number, mount, options)
        by_device.setdefault(mount.device if mount else number, []).append(number)
    for numbers in by_device.values():
        yield from _file_system(facts, numbers, options)
    if facts["slurm"] == "unreadable":
        yield unknown("slurm", "slurm.conf cannot be read, so TmpFS is not known", LET_READ)


def _not_there(path: str, state: str) -> Finding:
    if state == "hung":
        message = f"{path} did not answer within 3 s: its file system hangs"
        return unknown("unanswered", message, SEE_SERVER)
    if state in ("No such file or directory", "Not a directory"):
        words = "is not there" if state.startswith("No") and "such" in state else "is no directory"
        return fail("missing", f"{path} {words}", MAKE_DIRECTORY)
    if state == "Permission denied":
        return unknown("unanswered", f"{path} may not be looked at by this user", LET_READ)
    return fail("broken", f"{path} cannot be used: {state or 'unknown error'}", SEE_SERVER)


def _directory(
    facts: Facts, number: str, mount: Mount | None, options: Options
) -> Iterator[Finding]:
    """What one directory is like: its mount, its mode, whether it can be written to."""
    path, mode, owner = (facts[f"{key}@{number}"] for key in ("path", "mode", "owner"))
    real, writable = facts[f"real@{number}"], facts[f"writable@{number}"]
    name = path if real == path else f"{path} (which is {real})"
    if mount is None:
        yield unknown("mount", f"{name}: how it is mounted could not be read")
    elif mount.read_only:
        message = f"{name} is read-only ({mount.kind} on {mount.source}), should be writable"
        yield fail("read_only", message, MAKE_WRITABLE)
        return
    elif options.warn_noexec and "noexec" in mount.options:
        yield warn("noexec", f"{name} is mounted noexec: no program can be run from it", ALLOW_EXEC)
    shared, sticky = mode[8:9] == "w", mode[9:10] in ("t", "T")
    if path == "/tmp" and not shared:
        yield fail("mode", f"{name} has mode {mode[:10]}, should be drwxrwxrwt", SET_MODE)
    elif shared and not sticky:
        message = f"{name} has mode {mode[:10]}, should end in t: all can remove each other's files"
        yield warn("mode", message, SET_MODE)
    elif path == "/tmp" and owner != "0":
        yield warn("mode", f"{name} belongs to the user {owner}, should to root (0)", SET_MODE)
    elif shared and writable != "yes":
        yield fail("mode", f"{name} has mode {mode[:10]} and yet cannot be written to", SEE_SERVER)
    else:
        yield ok("mode", f"{name} has mode {mode[:10]}")


def _file_system(facts: Facts, numbers: list[str], options: Options) -> Iterator[Finding]:
    """Space and inodes of one file system, said once for all directories that are on it."""
    first = numbers[0]
    names = ", ".join(facts[f"path@{number}"] for number in numbers)
    mount = parse_mount(facts[f"mount@{first}"])
    space = parse_df(facts[f"space@{first}"], facts[f"real@{first}"])
    inodes = parse_df(facts[f"inodes@{first}"], facts[f"real@{first}"])
    if space is None or not space.total:
        yield unknown("space", f"{names}: df gives no numbers for the file system")
        short = False
    else:
        finding = _space(facts, names, numbers, space, options)
        short = finding.remedy is not None
        yield finding
        if mount and mount.kind in ("tmpfs", "ramfs"):
            yield _memory(facts["memory"], names, space, options)
    # XFS makes inodes of free space, so that a full one has few of them: one cause, one finding
    if not (short and mount and mount.kind == "xfs"):
        yield from _inodes(facts, names, numbers, inodes, options)
    yield from _deleted(facts, numbers, names, options)


def _space(facts: Facts, names: str, numbers: list[str], space: Usage, options: Options) -> Finding:
    free = f"{size_words(space.free)} free of {size_words(space.total)}"
    value = Quantity(round(space.percent, 1), "%")
    used = f"{names} {percent_words(space.percent)} % full"
    where = _greatest(facts, "largest", numbers)
    if space.percent >= options.fail_percent:
        message = f"{used}, should be below {options.fail_percent} %: {free}{where}"
        return fail("space", message, FREE_SPACE, value=value)
    if space.free < options.fail_free_mb * 1024:
        message = f"{used}: {free}, should be {options.fail_free_mb} MiB free or more{where}"
        return fail("space", message, FREE_SPACE, value=value)
    if space.percent >= options.warn_percent:
        message = f"{used}, should be below {options.warn_percent} %: {free}{where}"
        return warn("space", message, FREE_SPACE, value=value)
    return ok("space", f"{used}: {free}", value=value)


def _memory(memory: str, names: str, space: Usage, options: Options) -> Finding:
    """A tmpfs is memory: how much of it may go there."""
    if not re.fullmatch("[1-9][0-9]{0,14}", memory):
        return unknown("memory", f"{names} is in memory, and how much there is could not be read")
    share = 100 * space.total / int(memory)
    size = f"{size_words(space.total)} of the node's {size_words(int(memory))}"
    message = f"{names} is in memory (tmpfs), and may take {size}"
    if share > options.memory_warn_percent:
        most = f"should be {options.memory_warn_percent} % at most"
        return warn("memory", f"{message}, {most}", LIMIT_MEMORY, value=Quantity(share, "%"))
    return ok("memory", message, value=Quantity(share, "%"))


def _inodes(
    facts: Facts, names: str, numbers: list[str], inodes: Usage | None, options: Options
) -> Iterator[Finding]:
    if inodes is None:
        yield unknown("inodes", f"{names}: df does not tell the inodes")
        return
    if not inodes.total:
        yield ok("inodes", f"{names} has no limit of inodes")
        return
    value = Quantity(round(inodes.percent, 1), "%")
    used = f"{names} inodes {percent_words(inodes.percent)} % used"
    free = f"{inodes.free} free of {inodes.total}"
    where = _greatest(facts, "crowded", numbers)
    if inodes.percent >= options.inodes_fail_percent:
        message = f"{used}, should be below {options.inodes_fail_percent} %: {free}{where}"
        yield fail("inodes", message, FREE_INODES, value=value)
    elif inodes.percent >= options.inodes_warn_percent:
        message = f"{used}, should be below {options.inodes_warn_percent} %: {free}{where}"
        yield warn("inodes", message, FREE_INODES, value=value)
    else:
        yield ok("inodes", f"{used}: {free}", value=value)


def _greatest(facts: Facts, key: str, numbers: list[str]) -> str:
    """The largest entries, or the fullest directories, in words; "" where none were looked for."""
    parts, cut = [], ""
    for line in "\n".join(facts.get(f"{key}@{n}", "") for n in numbers).splitlines():
        words = line.split(" ", 5)
        if line == "cut":
            cut = " (of what was seen in the time)"
        elif len(words) == 6 and re.fullmatch(NUMBER, words[0]):
            count, owner, month, day, clock, path = words
            what = size_words(int(count)) if key == "largest" else f"{count} entries"
            parts.append(f"{what} of {owner} in {path}, changed {month} {day} {clock}")
    title = "largest" if key == "largest" else "most entries"
    return f"; {title}{cut}: {'; '.join(parts)}" if parts else ""


def _deleted(facts: Facts, numbers: list[str], names: str, options: Options) -> Iterator[Finding]:
    lines = [line.split(" ", 5) for line in facts.get("deleted", "").splitlines()]
    held = [
        words
        for words in lines
        if len(words) == 6 and words[1] in numbers and re.fullmatch(NUMBER, words[0])
    ]
    total = sum(int(words[0]) for words in held)
    if total >= options.deleted_warn_mb * 1024:
        who = "; ".join(
            f"{size_words(int(kib))} by {command} (process {pid} of {user}): {path}"
            for kib, _, pid, user, command, path in held[:5]
        )
        if len(held) > 5:
            who += f"; {len(held) - 5} more"
        message = f"{names}: {size_words(total)} are held by deleted files that are still open"
        yield warn("deleted", f"{message}: {who}", CLOSE_FILES, value=Quantity(total * 1024, "B"))


def probe_here(options: Options) -> Mapping[str, str]:
    """The same facts without sh: psutil's numbers in the form of df."""
    import psutil

    from . import _tmp_here as here

    slurm, of_slurm = here.slurm_tmp_fs()
    wanted = {"/tmp": "default"}
    for path in options.paths:
        wanted.setdefault(path.rstrip("/") or "/", "option")
    if of_slurm:
        wanted.setdefault(of_slurm.rstrip("/") or "/", "Slurm")
    facts = {
        "slurm": slurm,
        "memory": str(psutil.virtual_memory().total // 1024),
        "directories": str(len(wanted)),
    }
    seen: set[str] = set()
    short: dict[int, int] = {}
    for number, (path, source) in enumerate(wanted.items(), 1):
        facts |= here.look(path, source, number)
        if facts[f"state@{number}"] != "directory":
            continue
        mount = parse_mount(facts[f"mount@{number}"])
        device = mount.device if mount else str(number)
        if device in seen:
            continue
        seen.add(device)
        if mount and mount.shared:
            continue
        space = parse_df(facts[f"space@{number}"], path)
        inodes = parse_df(facts[f"inodes@{number}"], path)
        least = options.fail_free_mb * 1024
        if space and space.total and (space.percent >= options.warn_percent or space.free < least):
            short[here.device_of(path)] = number
            facts[f"largest@{number}"] = here.largest(path, options.search_seconds)
        if inodes and inodes.percent >= options.inodes_warn_percent:
            facts[f"crowded@{number}"] = here.crowded(path, options.search_seconds)
    if short:
        facts["deleted"] = here.deleted(short)
    return facts


CHECK = Check(
    title="Space, inodes and mode of /tmp and other scratch directories",
    stale="use",
    options=Options(),
    judge=judge,
    codes={
        "space": Code("How full the file system is, with its largest entries.", (FREE_SPACE,)),
        "inodes": Code(
            "How many of the file system's inodes are used, with the fullest directories.",
            (FREE_INODES,),
        ),
        "deleted": Code(
            "Space held by deleted files that a process has open, when space is short.",
            (CLOSE_FILES,),
        ),
        "memory": Code("A tmpfs: how much memory it may take.", (LIMIT_MEMORY,)),
        "mode": Code("Owner, mode and whether it can be written to.", (SET_MODE, SEE_SERVER)),
        "read_only": Code("Mounted read-only, or made so after an error.", (MAKE_WRITABLE,)),
        "noexec": Code("Mounted so that no program can be run from it.", (ALLOW_EXEC,)),
        "mount": Code("How it is mounted could not be read."),
        "missing": Code("The directory is not there.", (MAKE_DIRECTORY,)),
        "broken": Code("The directory's file system gives an error.", (SEE_SERVER,)),
        "unanswered": Code(
            "The directory could not be looked at, or did not answer in time.",
            (SEE_SERVER, LET_READ),
        ),
        "slurm": Code("Slurm's configuration could not be read.", (LET_READ,)),
    },
    follows={
        "read_only": ("mounts.read_only",),
        "broken": ("mounts.read_only", "mounts.dead", "mounts.broken", "nfs.stale", "nfs.broken"),
        "unanswered": ("mounts.hung", "nfs.hung", "nfs.server"),
    },
    probe=PROBE,
    probe_options=(
        "paths",
        "warn_percent",
        "inodes_warn_percent",
        "fail_free_mb",
        "search_seconds",
    ),
    root_adds="sizes in other users' directories and files that other users' processes hold open",
    limit=60,
    probe_here=probe_here,
)
