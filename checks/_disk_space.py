"""How full file systems are, by df, and what is left of the login user's quota."""

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from clustercheck.check import Facts, Finding, Quantity, fail, ok, skip, unknown, warn

from ._df import Usage, percent_words, size_words
from ._disk_remedies import FREE_INODES, FREE_SPACE, NAME_PLACE, RAISE_QUOTA, SEE_SYSTEM
from ._mounts import plain

LONGEST = 64 * 1024  # characters of df's answer that are read, and of a line of it
LINE = 4096
MOST = 100  # directories that the probe asks df for at once
NUMBER = re.compile("-?[0-9]{1,18}|-")
PERCENT = re.compile("-?[0-9]{1,18}%|-")
FAULT = re.compile(r"df: (?:cannot (?:read|access) )?['‘]?(/[^\n]*?)['’]?: ([^\n:]{1,200})")
# "      /dev/sda1 1000* 900 1000 0 10 0 0 0": what is used, soft and hard limit, grace; then files
QUOTA = re.compile(
    r"[ \t]*(\S[^\n]*?)[ \t]+([0-9]{1,15})(\*?)[ \t]+([0-9]{1,15})[ \t]+([0-9]{1,15})[ \t]+\S+"
    r"[ \t]+([0-9]{1,15})(\*?)[ \t]+([0-9]{1,15})[ \t]+([0-9]{1,15})[ \t]+\S+[ \t]*"
)


class Limits(Protocol):
    """The options that are read here; `ignore` are places without slashes at their end."""

    @property
    def warn_percent(self) -> int: ...
    @property
    def fail_percent(self) -> int: ...
    @property
    def ignore(self) -> tuple[str, ...]: ...


class Asked(NamedTuple):
    """A directory that df was asked for."""

    kind: str
    source: str
    place: str


def judge_space(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Each file system that is too full, and one finding for all the others."""
    if facts["file_systems"] == "unreadable":
        yield unknown("space", "how file systems are mounted could not be read")
        return
    if not re.fullmatch("[0-9]{1,3}", facts["groups"]):
        yield unknown("space", "the probe did not say what it looked at")
        return
    fine: list[tuple[float, str]] = []
    for group in map(str, range(1, int(facts["groups"]) + 1)):
        asked = [_asked(line) for line in facts[f"asked@{group}"].split("\n")[:MOST]]
        asked = [one for one in asked if one.place not in limits.ignore]
        if f"hung@space@{group}" in facts or facts[f"space@{group}"] == "hung":
            names = ", ".join(one.place for one in asked)
            yield unknown("space", f"df gave no answer within 4 s for {names}", SEE_SYSTEM)
            continue
        space = _usages(facts[f"space@{group}"], asked)
        inodes = _usages(facts.get(f"inodes@{group}", ""), asked)
        for one in asked:
            found = list(_judge_one(one, space[one.place], inodes[one.place], limits, fine))
            yield from found
    if fine:
        fine.sort(reverse=True)
        names = ", ".join(f"{name} {percent_words(percent)} %" for percent, name in fine[:8])
        more = f" and {len(fine) - 8} more" if len(fine) > 8 else ""
        value = Quantity(round(fine[0][0], 1), "%")
        yield ok("space", f"used: {names}{more}", value=value)


def _asked(line: str) -> Asked:
    kind, source, place = (line.split(" ", 2) + ["", ""])[:3]
    place = plain(place)
    return Asked(kind, plain(source), place.rstrip("/") or "/")


def _usages(text: str, asked: list[Asked]) -> dict[str, Usage | str | None]:
    """For each directory what df says of its file system; its error; None for nothing."""
    lines = [line for line in text[:LONGEST].split("\n") if len(line) <= LINE]
    faults = {m[1].rstrip("/") or "/": m[2] for m in map(FAULT.match, lines) if m}
    entries = list(_entries([line for line in lines if not line.startswith("df: ")]))
    # df names each directory that it could read, in the order in which it was asked
    rest = [one for one in asked if _fault_of(one.place, faults) is None]
    by_order = dict(zip((o.place for o in rest), entries, strict=False))
    found: dict[str, Usage | str | None] = {}
    # df names each directory that it could read, in the order in which it was asked
    rest = [one for one in asked if _fault_of(one.place, faults) is None]
    by_order = dict(zip((o.place for o in rest), entries, strict=False))
    for one in asked:
        fault = _fault_of(one.place, faults)
        if fault is not None:
            found[one.place] = fault
            continue
        entry = next((e for e in entries if e[0] == one.place), None)
        if entry is None and len(entries) == len(rest):
            # the place may be below the file system, or have signs that df does not show
            entry = by_order.get(one.place)
        found[one.place] = entry[1] if entry else None
    return found


def _entries(lines: list[str]) -> Iterator[tuple[str, Usage | None]]:
    """Each file system's place, and what it holds: None where df gives no numbers ("-").

    Read from the first three numbers with a percentage and a path behind them: a device's name may
    have blanks in it, and may be alone on its line.
    """
    for line in lines:
        words = list(re.finditer(r"\S+", line))
        for at in range(3, len(words) - 1):
            if not PERCENT.fullmatch(words[at][0]) or not words[at + 1][0].startswith("/"):
                continue
            numbers = [word[0] for word in words[at - 3 : at]]
            if not all(map(NUMBER.fullmatch, numbers)):
                continue
            place = line[words[at + 1].start() :].strip()
            if "-" in numbers:
                yield place, None
            else:
                total, used, free = map(int, numbers)
                yield place, Usage(total, used, max(free, 0))
            break


def _fault_of(place: str, faults: dict[str, str]) -> str | None:
    """df's error for a place; tests look below another folder."""
    if place in faults:
        return faults[place]
    return next(
        (why for path, why in faults.items() if path.endswith(place) and place != "/"), None
    )


def _judge_one(
    one: Asked,
    space: Usage | str | None,
    inodes: Usage | str | None,
    limits: Limits,
    fine: list[tuple[float, str]],
) -> Iterator[Finding]:
    place = one.place
    if isinstance(space, str):
        if space.startswith(("No such file", "can't find mount point")):  # as busybox says
            yield fail("missing", f"{place} is not there", NAME_PLACE)
        elif space.startswith(("Permission denied", "Operation not permitted")):
            yield unknown("space", f"{place} may not be looked at by this user", SEE_SYSTEM)
        else:
            yield fail("broken", f"{place} cannot be used: {space}", SEE_SYSTEM)
        return
    if space is None:
        yield unknown("space", f"{place}: df does not say how full it is", SEE_SYSTEM)
        return
    if not space.total:
        return  # an automounter, or another that holds nothing
    free = f"{size_words(space.free)} free of {size_words(space.total)}"
    used = f"{place} {percent_words(space.percent)} % full"
    value = Quantity(round(space.percent, 1), "%")
    if space.percent >= limits.fail_percent and place != "/boot":
        message = f"{used}, should be below {limits.fail_percent} %: {free}"
        yield fail("space", message, FREE_SPACE, value=value)
    elif space.percent >= limits.warn_percent:
        message = f"{used}, should be below {limits.warn_percent} %: {free}"
        yield warn("space", message, FREE_SPACE, value=value)
    else:
        fine.append((space.percent, place))
    if not isinstance(inodes, Usage):
        yield unknown("inodes", f"{place}: df does not say how many inodes are used", SEE_SYSTEM)
    elif inodes.total:
        used = f"{place} inodes {percent_words(inodes.percent)} % used"
        free = f"{inodes.free} free of {inodes.total}"
        value = Quantity(round(inodes.percent, 1), "%")
        if inodes.percent >= limits.fail_percent:
            message = f"{used}, should be below {limits.fail_percent} %: {free}"
            yield fail("inodes", message, FREE_INODES, value=value)
        elif inodes.percent >= limits.warn_percent:
            message = f"{used}, should be below {limits.warn_percent} %: {free}"
            yield warn("inodes", message, FREE_INODES, value=value)


def judge_quota(facts: Facts) -> Iterator[Finding]:
    """The login user's own quota, where the site asked for it."""
    status = facts.get("quota_status", "")
    if "hung@quota" in facts or status in ("124", "137"):
        yield unknown("quota", "quota(1) gave no answer within 6 s")
    elif status == "missing":
        yield unknown("quota", "quota(1) is not installed, and needed to tell")
    elif not re.fullmatch("[01]", status):
        yield unknown("quota", f"quota(1) failed: {facts.get('quota', '')[:200] or 'no reason'}")
    else:
        lines = facts["quota"].split("\n")[:200]
        rows = [row for row in (QUOTA.fullmatch(line[:1000]) for line in lines) if row]
        if not rows and not any(line.rstrip().endswith("none") for line in lines):
            yield unknown("quota", "what quota(1) says cannot be read")
        for row in rows:
            yield from _quota(row[1], "space", row[2], row[3], row[4], row[5])
            yield from _quota(row[1], "files", row[6], row[7], row[8], row[9])
        if not rows and any(line.rstrip().endswith("none") for line in lines):
            yield skip("quota", "no quota is set for the login user")


def _quota(source: str, what: str, used: str, over: str, soft: str, hard: str) -> Iterator[Finding]:
    limit = int(hard) or int(soft)
    if not limit:
        return
    words = f"{used} files of {limit}"
    if what == "space":
        words = f"{size_words(int(used))} of {size_words(limit)}"
    value = Quantity(round(100 * int(used) / limit, 1), "%")
    if int(hard) and int(used) >= int(hard):
        message = f"the login user's quota on {source} is used up: {words}"
        yield fail("quota", message, RAISE_QUOTA, value=value)
    elif over or (int(soft) and int(used) > int(soft)):
        message = f"the login user's quota on {source} is exceeded, for a time: {words}"
        yield warn("quota", message, RAISE_QUOTA, value=value)
    else:
        yield ok("quota", f"the login user's quota on {source}: {words}", value=value)
