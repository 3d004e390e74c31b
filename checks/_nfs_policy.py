"""Whether NFS mounts have the options that the site wants, and that the other nodes have."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from clustercheck.check import Facts, Finding, Remedy, skip, warn

from ._mounts import Mount, parse_mount, plain
from ._nfs_mount import Seen, host_of, kib, plain_place, value_of
from ._nfs_options import Options
from ._nfs_remedies import (
    LARGER_IO,
    MAKE_HARD,
    NEWER_VERSION,
    NO_SYNC,
    OTHER_SEC,
    SAME_OPTIONS,
    SAME_SOURCE,
    USE_TCP,
)
from ._nfs_word import lines_of, whole

AGREED = ("vers", "proto", "rsize", "wsize", "hard", "soft", "softerr", "sec", "ro")


def judge_options(facts: Facts, seen: Iterable[Seen], options: Options) -> Iterator[Finding]:
    """Options that the site does not want; mounts with the same fault are one finding."""
    places: dict[tuple[str, str, Remedy], list[str]] = {}
    for mount in seen:
        for code, words, remedy in _faults(mount, options):
            places.setdefault((code, words, remedy), []).append(mount.name)
    for (code, words, remedy), names in places.items():
        yield warn(code, f"{', '.join(names)} {words}", remedy)
    mounted = {place: mount for mount in seen for place in mount.places}
    for line in lines_of(facts.get("fstab", "")):
        entry = line.split(" ")
        if len(entry) < 3:
            continue
        place = plain_place(plain(entry[1]))
        flags = entry[3].split(",") if len(entry) > 3 else []
        found = mounted.get(place)
        if found is None or "ro" in flags or place in options.read_only:
            continue
        if "ro" in found.mount.options:
            message = f"{place} is mounted ro, and /etc/fstab does not say so"
            yield warn("options", message, SAME_OPTIONS)


def judge_sources(facts: Facts, seen: Iterable[Seen]) -> Iterator[Finding]:
    """What is mounted from elsewhere than /etc/fstab says."""
    mounted = {place: mount.mount for mount in seen for place in mount.places}
    for at, told in facts.at("whence").items():
        wanted, *addresses = told.split()[:100] or [""]
        mount = mounted.get(plain_place(plain(at)))
        if mount is None:
            continue
        same_export = _export_of(mount.source) == _export_of(plain(wanted))
        names = {host_of(source).lower() for source in (mount.source, wanted)}
        address = value_of(mount, "addr")
        same_server = len(names) == 1 or not address or {address, "?"}.intersection(addresses)
        if not (same_export and same_server):
            message = f"{plain_place(plain(at))} is mounted from {mount.source}"
            message += f", and /etc/fstab says {plain(wanted)}"
            if not addresses:
                message += ", whose server has no address"
            yield warn("source", message, SAME_SOURCE)


def _export_of(source: str) -> str:
    """The directory in "nas1:/export//home/": "/export/home"."""
    path = source.partition("]:" if source.startswith("[") else ":")[2]
    return "/" + re.sub("/+", "/", path).strip("/")


def _faults(seen: Seen, options: Options) -> Iterator[tuple[str, str, Remedy]]:
    mount = seen.mount
    read_only = "ro" in mount.options
    if (
        options.min_version
        and seen.version
        and _number(seen.version) < _number(options.min_version)
    ):
        words = f"uses NFS {seen.version}, should be {options.min_version} or newer"
        yield "version", words, NEWER_VERSION
    soft = [word for word in ("soft", "softerr") if word in mount.options]
    if soft and not read_only and not options.allow_soft:
        yield "soft", f"is mounted {soft[0]} and writable, should be hard", MAKE_HARD
    if value_of(mount, "proto") in ("udp", "udp6"):
        yield "udp", "uses UDP, should use TCP", USE_TCP
    if "sync" in mount.options and not read_only:
        yield "sync", "is mounted sync: each write waits for the server", NO_SYNC
    small = [
        f"{name} {kib(value_of(mount, name))}"
        for name in (("rsize",) if read_only else ("rsize", "wsize"))
        if (whole(value_of(mount, name)) or 2**30) < options.min_io_kb * 1024
    ]
    if small:
        words = f"has {' and '.join(small)}, should be {options.min_io_kb} KiB or more"
        yield "io_size", words, LARGER_IO
    sec = value_of(mount, "sec")
    if options.sec and sec and sec not in options.sec:
        yield "sec", f"has sec={sec}, should be {' or '.join(options.sec)}", OTHER_SEC


def _number(version: str) -> tuple[int, ...]:
    return tuple(whole(part) or 0 for part in version.split("."))


def judge_policy(seen: Iterable[Seen], facts: Facts, options: Options) -> Iterator[Finding]:
    """Paths of the options read_only and writable that are no NFS mount here."""
    places = {place for mount in seen for place in mount.places}
    absent = set(facts.at("absent").values())
    for path in (*options.read_only, *options.writable):
        if plain_place(path) not in places | absent:
            yield skip("policy", f"{path}, of the options, is no NFS mount here")


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes that agreed with a server on other options than most nodes did for the same mount."""
    agreed: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for node, told in facts.items():
        for mount in map(parse_mount, lines_of(told.get("mounts", ""))):
            if mount and mount.kind in ("nfs", "nfs4"):
                words = tuple(o for n in AGREED for o in _words(mount, n))
                agreed.setdefault((mount.target, mount.source), {})[node] = words
    for (place, source), by_node in agreed.items():
        usual, count = Counter(by_node.values()).most_common(1)[0]
        if len(by_node) < 3 or 2 * count <= len(by_node):
            continue
        for node, words in by_node.items():
            mine = [word for word in words if word not in usual]
            theirs = [word for word in usual if word not in words]
            if mine or theirs:
                message = (
                    f"{place} ({source}) has {' '.join(mine) or 'no such option'}, most nodes"
                    f" ({count} of {len(by_node)}) have {' '.join(theirs) or 'no such option'}"
                )
                yield node, warn("differs", message, SAME_OPTIONS)


def _words(mount: Mount, name: str) -> list[str]:
    if name in mount.options:
        return [name]
    value = value_of(mount, name)
    return [f"{name}={value}"] if value else []
