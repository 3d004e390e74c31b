"""How fast the login user can write, by what dd and the clock said."""

import re
from collections.abc import Iterator, Sequence

from clustercheck.check import Facts, Finding, Quantity, fail, ok, skip, unknown, warn

from ._nfs_mount import Seen, closed_words, host_of
from ._nfs_options import Options
from ._nfs_remedies import (
    FEWER_FILES,
    FIND_SERVER,
    FIND_SLOWNESS,
    FREE_SPACE,
    RAISE_QUOTA,
    REMOVE_FILE,
    WAKE_SERVER,
)
from ._nfs_word import lines_of, real, whole

COPIED = re.compile(r"\b([0-9]{1,18}) bytes[^\n]{0,60} copied, ([0-9.e-]{1,20}) s")
STEPS = {"create": "made", "stat": "looked at", "rename": "renamed", "unlink": "removed"}
MIB = 1024 * 1024
HUNG = frozenset(("124", "137"))  # statuses of a command that was ended because it took too long


def place_of(facts: Facts, seen: Sequence[Seen], options: Options) -> Seen | None:
    """The mount to time: the first in which the login user could make a file."""
    for mount in seen:
        tried = facts.get(f"touch@{mount.number}", facts.get(f"root.touch@{mount.number}"))
        place = facts.get(f"place@{mount.number}", "")
        if tried == "done" and options.throughput_dir in ("", place):
            return mount
    return None


def judge_speed(facts: Facts, seen: Sequence[Seen], options: Options) -> Iterator[Finding]:
    """The findings of the second step; none where it was not asked for."""
    if not options.throughput:
        return
    mount = place_of(facts, seen, options)
    if mount is None:
        where = options.throughput_dir or "any NFS mount"
        yield skip("throughput", f"not timed: the login user cannot write to {where}")
        return
    status = facts.get("heavy.status", "it was not run")
    busy = facts.get("heavy.busy", "")
    if busy:
        yield skip("throughput", f"not timed: {busy}")
    elif status != "whole":
        yield unknown("throughput", f"not timed: {status}")
    elif "heavy.gone" in facts:
        yield _gone(facts, mount)
        return
    elif facts.get("heavy.refused"):
        why = facts["heavy.refused"]
        yield unknown("throughput", f"not timed: no file can be made any more ({why})")
    else:
        yield from _timed(facts, options)
    if facts.get("heavy.left"):
        message = f"the directory {facts['heavy.left']} could not be removed"
        yield warn("leftover", message, REMOVE_FILE)


def _gone(facts: Facts, mount: Seen) -> Finding:
    """The server answered at first, and no longer since it was to be timed."""
    place, port, left = facts["heavy.place"], facts["heavy.gone"], facts.get("heavy.left", "")
    first, second = facts.get("heavy.first_status"), facts.get("heavy.dd_status")
    step = "making a directory did not end within 4 s"
    if HUNG.intersection(word.split(" ")[0] for word in facts.at("heavy.small").values()):
        step = "small files took more than 10 s"
    elif second in HUNG:
        step = "writing did not end within 25 s"
    elif first in HUNG:
        step = "writing 8 MiB did not end within 20 s"
    message = f"{place} answered, and no longer since it is to be timed: {step}"
    more = f"; the next run removes {left}" if left else ""
    if port in ("open", "no tool", "not tried"):
        words = f"{message}, nor a look at its free space within 10 s{more}"
        return fail("hung", words, WAKE_SERVER)
    host = host_of(mount.mount.source)
    where = f"TCP port {mount.gate.rpartition('/')[2]} of {host}"
    return fail("server", f"{message}, and {where} {closed_words(port)}{more}", FIND_SERVER)


def _timed(facts: Facts, options: Options) -> Iterator[Finding]:
    place, free, quota = facts["heavy.place"], facts["heavy.free_mb"], facts.get("heavy.quota_mb")
    if (whole(free) or 0) < 4 * options.size_mb:
        message = f"not timed: {place} has {free} MiB free, should be {4 * options.size_mb} or more"
        yield skip("throughput", message)
        return
    if quota and (whole(quota) or 0) < 2 * options.size_mb:
        message = (
            f"not timed: the quota leaves {quota} MiB in {place}, should be {2 * options.size_mb}"
        )
        yield skip("throughput", message)
        return
    yield _throughput(facts, place, options)
    steps = facts.at("heavy.small")
    if steps:
        yield _small(steps, place, options)


def _failed(place: str, said: Sequence[str]) -> Finding:
    """What dd complains of; its counts of records and bytes come after that."""
    why = next((line for line in said if re.match(r"\S*dd: ", line)), said[-1])
    if why.endswith("No space left on device"):
        message = f"{place}: writing failed: no space left on device, though free space is told"
        return fail("full", message, FREE_SPACE)
    if why.endswith("Disk quota exceeded"):
        message = f"{place}: writing failed: the quota of the login user is used up"
        return warn("quota", message, RAISE_QUOTA)
    return unknown("throughput", f"{place}: writing failed: {why or 'no reason given'}")


def _throughput(facts: Facts, place: str, options: Options) -> Finding:
    first_status, status = facts["heavy.first_status"], facts.get("heavy.dd_status", "0")
    text = facts.get("heavy.dd", "") or facts["heavy.first"]
    limit, why, sure = _limit(facts, options)
    if HUNG.intersection((first_status, status)):
        message = f"{place}: writing 8 MiB did not end within 20 s"
        if first_status == "0":
            message = f"{place}: writing slowed down so much that it did not end within 25 s"
        return fail(
            "throughput",
            f"{message}; should be {rate_words(limit)} MB/s or more ({why})",
            FIND_SLOWNESS,
        )
    if first_status != "0" or status != "0":
        return _failed(place, lines_of(text.strip()))
    copied = COPIED.search(text[:2000])
    seconds = real(copied[2]) if copied else None
    if copied is None or not seconds:
        return unknown("throughput", f"{place}: dd's answer cannot be read: {text[:200]!r}")
    size = int(copied[1])
    rate = size / seconds / 1e6
    value = Quantity(round(rate, 1), "MB/s", less_is_worse=True)
    how = "O_DIRECT" if facts["heavy.direct"] == "yes" else "fsync at the end, no O_DIRECT there"
    message = (
        f"{place}: {rate_words(rate)} MB/s ({size // MIB} MiB of zeros in {seconds:.3g} s, {how})"
    )
    should = f"should be {rate_words(limit)} MB/s or more ({why})"
    if rate >= limit:
        return ok("throughput", f"{message}, {should}", value=value)
    if sure:
        return fail("throughput", f"{message}, {should}", FIND_SLOWNESS, value=value)
    return warn("throughput", f"{message}, {should}", FIND_SLOWNESS, value=value)


def rate_words(rate: float) -> str:
    """Three digits or so, never with an exponent."""
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def _limit(facts: Facts, options: Options) -> tuple[float, str, bool]:
    """The rate in MB/s that it should have, why, and whether that is more than a guess."""
    if options.min_mb_per_second:
        return options.min_mb_per_second, "as set", True
    wanted = options.size_mb * MIB / options.max_seconds / 1e6
    asked = f"{options.size_mb} MiB in {options.max_seconds:g} s"
    device, speed = facts.get("heavy.device", ""), whole(facts.get("heavy.speed", ""))
    if speed is None or not 0 < speed < 2**31:
        return wanted, f"{asked}; the link's speed is not known", False
    share = speed / 8 * options.link_percent / 100
    link = f"{options.link_percent} % of {device}'s {speed:,} Mbit/s are {share:.0f} MB/s"
    if share < wanted:
        return share, f"{link}, less than {asked}", True
    return wanted, f"{asked}; {link}", True


def _small(steps: dict[str, str], place: str, options: Options) -> Finding:
    means = {}
    for step, words in STEPS.items():
        parts = steps.get(step, "").split()
        if len(parts) != 3 or parts[0] != "0":
            why = "did not end within 10 s" if HUNG.intersection(parts[:1]) else "failed"
            message = f"{place}: {options.small_files} small files could not be {words}: it {why}"
            if why == "failed":
                return unknown("small_files", message)
            return warn("small_files", message, FEWER_FILES)
        began, ended = real(parts[1]), real(parts[2])
        if began is None or ended is None:
            return unknown("small_files", f"{place}: the node's clock cannot be read")
        means[step] = (ended - began) * 1000 / options.small_files
    words = ", ".join(f"{STEPS[step]} {ms:.2g} ms" for step, ms in means.items())
    worst = max(means.values())
    value = Quantity(round(worst, 2), "ms")
    message = f"{place}: a small file is {words}"
    if worst > options.small_ms:
        should = f"should be {options.small_ms:g} ms or less each"
        return warn("small_files", f"{message}, {should}", FEWER_FILES, value=value)
    return ok("small_files", message, value=value)
