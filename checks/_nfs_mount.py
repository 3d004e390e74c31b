"""Whether NFS mounts are there, and answer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clustercheck.check import Facts, Finding, fail, ok, unknown, warn

from ._mounts import Mount, parse_mount, plain
from ._nfs_remedies import (
    EXPORT_IT,
    FIND_SERVER,
    FREE_SPACE,
    GET_TICKET,
    GIVE_NAME,
    MOUNT_ANEW,
    MOUNT_IT,
    OPEN_RPC,
    SEE_LOGS,
    UNCOVER,
    WAKE_SERVER,
)
from ._nfs_word import lines_of, whole

MOST_STUCK = 5  # processes that a message names


class Seen(NamedTuple):
    """An NFS file system that is mounted.

    number: of its facts.
    places: all places where it is mounted, the one that was touched first.
    """

    number: str
    mount: Mount
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        return ", ".join(self.places)

    @property
    def server(self) -> str:
        """The server's address, or its name where the kernel does not tell the address."""
        return value_of(self.mount, "addr") or host_of(self.mount.source)

    @property
    def gate(self) -> str:
        return f"{self.server}/{value_of(self.mount, 'port') or 2049}"

    @property
    def version(self) -> str:
        version = value_of(self.mount, "vers")
        minor = value_of(self.mount, "minorversion")
        return f"{version}.{minor}" if minor and "." not in version else version


def value_of(mount: Mount, name: str) -> str:
    """The value of a mount option; "" where it has none."""
    found = [o.partition("=")[2] for o in mount.options if o.startswith(f"{name}=")]
    return found[0] if found else ""


def host_of(source: str) -> str:
    """The server in "nas1:/export" or "[2001:db8::1]:/export"."""
    match = re.match(r"\[([^]]*)\]:|([^:]*):", source)
    return (match[1] or match[2]) if match else source


def plain_place(path: str) -> str:
    """A path without slashes at its end."""
    return path.rstrip("/") or "/"


def all_mounts(facts: Facts) -> list[Mount]:
    """Every NFS and autofs mount, in the kernel's order."""
    return [m for m in map(parse_mount, lines_of(facts["mounts"])) if m]


def seen_mounts(facts: Facts) -> list[Seen]:
    """The NFS file systems, each with all its places."""
    everything = all_mounts(facts)
    found = []
    for number in sorted(facts.at("mount"), key=lambda n: whole(n) or 0):
        mount = parse_mount(lines_of(facts[f"mount@{number}"])[0])
        if mount is None:
            continue
        others = (
            m.target
            for m in everything
            if m.device == mount.device and m.kind == mount.kind and m.source == mount.source
        )
        found.append(Seen(number, mount, tuple(dict.fromkeys((mount.target, *others)))))
    return found


def state_of(facts: Facts, number: str) -> str:
    """ "answers", "hung", "not touched", or the error that the mount gave."""
    if f"hung@{number}" in facts:
        return "hung"
    return facts[f"state@{number}"]


def judge_absent(facts: Facts) -> Iterator[Finding]:
    """Wanted mounts that are not there, each with the cause as far as it is known."""
    for number, path in facts.at("absent").items():
        if cover := facts.get(f"covered@{number}"):
            kind, _, source = cover.partition(" ")
            message = f"{path} is mounted, and hidden by another mount over it"
            yield fail("absent", f"{message} ({kind} on {plain(source)})", UNCOVER)
            continue
        server, address = facts[f"server@{number}"], facts.get(f"address@{number}", "")
        log = facts.get(f"log@{number}", "")
        source = f" (from {server})" if server else ""
        said = f"; mount(8) said: {log}" if log else ""
        message = f"{path} is not mounted{source}"
        reached = facts.get(f"reach@{address or server}/2049", "")
        if address == "none" or (not address and "resolve" in log):
            yield fail("absent", f"{message}: the name {server} has no address{said}", GIVE_NAME)
        elif address == "hung":
            yield fail("absent", f"{message}: looking up {server} took over 4 s{said}", GIVE_NAME)
        elif "access denied" in log.lower() or "not permitted" in log.lower():
            yield fail("absent", f"{message}: the server refuses this node{said}", EXPORT_IT)
        elif reached not in ("open", "no tool", ""):
            closed = closed_words(reached)
            yield fail("absent", f"{message}: TCP port 2049 {closed}{said}", FIND_SERVER)
        else:
            yield fail("absent", f"{message}, should be{said}", MOUNT_IT)


def closed_words(reached: str) -> str:
    """How a port did not open, in words."""
    if reached == "no answer":
        return "gave no answer within 3 s"
    return f"cannot be reached: {reached.rstrip('.')}"


def judge_servers(facts: Facts, seen: Iterable[Seen]) -> Iterator[Finding]:
    """Servers that cannot be reached: one finding each, however many mounts hang on it."""
    by_gate: dict[str, list[Seen]] = {}
    for mount in seen:
        by_gate.setdefault(mount.gate, []).append(mount)
    for gate, mounts in by_gate.items():
        address, _, port = gate.rpartition("/")
        if any(state_of(facts, m.number) == "not touched" for m in mounts):
            host = host_of(mounts[0].mount.source)
            name = host if host == address else f"{host} ({address})"
            places = ", ".join(m.name for m in mounts)
            message = (
                f"the server {name} does not answer, so {places} cannot be used and would hang"
                f" whoever touches it: TCP port {port} {closed_words(facts[f'reach@{gate}'])}"
            )
            more = _last_words(facts, host, address) + _stuck(facts)
            yield fail("server", f"{message}{more}", FIND_SERVER)
            continue
        if hung := [m for m in mounts if state_of(facts, m.number) == "hung"]:
            yield _hung(facts, hung)
        if not any(m.version == "3" for m in mounts):
            continue
        for other, closed in facts.at("reach").items():
            where, _, other_port = other.rpartition("/")
            if where == address and other_port != port and closed not in ("open", "no tool"):
                what = "rpcbind" if other_port == "111" else "mountd"
                host = host_of(mounts[0].mount.source)
                message = f"{what} of {host} (TCP port {other_port}) {closed_words(closed)}"
                yield warn("rpc", message, OPEN_RPC)


def _hung(facts: Facts, mounts: Sequence[Seen]) -> Finding:
    """Mounts of one server that give no answer though its port is open: one finding."""
    first = mounts[0]
    host, step = host_of(first.mount.source), facts[f"step@{first.number}"]
    names = ", ".join(m.name for m in mounts)
    message = f"{names} ({first.mount.source}) does not answer when asked for {step}, and hangs"
    if len(mounts) > 1:
        message = (
            f"{names} (all from {host}) do not answer, the first when asked for {step}, and hang"
        )
    message += " whoever waits"
    more = _last_words(facts, host, first.server) + _stuck(facts)
    return fail("hung", f"{message}{more}", WAKE_SERVER)


def _stuck(facts: Facts) -> str:
    """The processes that wait in the kernel."""
    lines = [line.split(" ", 1) for line in lines_of(facts.get("stuck", "")) if " " in line]
    if not lines:
        return ""
    words = ", ".join(f"{command} (process {pid})" for pid, command in lines[:MOST_STUCK])
    more = f" and {len(lines) - MOST_STUCK} more" if len(lines) > MOST_STUCK else ""
    return f"; in state D now: {words}{more}"


def _last_words(facts: Facts, *names: str) -> str:
    """The kernel's last line about a server."""
    lines = [
        line
        for line in lines_of(facts.get("kernel_log", ""))
        if any(re.search(rf"server {re.escape(name)}[\s,]", line) for name in names)
    ]
    return f"; the kernel's log: {lines[-1].strip()}" if lines else ""


def judge_state(facts: Facts, seen: Seen) -> Iterator[Finding]:
    """Whether the mount answers, with the options that were agreed on."""
    state, number = state_of(facts, seen.number), seen.number
    what = f"{seen.name} ({seen.mount.source})"
    if state in ("not touched", "hung"):
        return  # judge_servers has said it
    if state.startswith("Stale"):
        yield fail("stale", f"{what} is stale ({state})", MOUNT_ANEW)
    elif state in ("Permission denied", "Operation not permitted") or "key" in state.lower():
        sec = value_of(seen.mount, "sec")
        message = f"{what} may not be looked at by this user (sec={sec or 'sys'}): {state}"
        yield unknown("closed", message, GET_TICKET)
    elif state != "answers":
        yield fail("broken", f"{what} cannot be used: {state or 'unknown error'}", SEE_LOGS)
    else:
        words = facts[f"size@{number}"].split()
        numbers = [n for n in map(whole, words[:6]) if n is not None]
        if len(words) != 5 or len(numbers) != 5:
            yield unknown("closed", f"{what} answers, and its free space cannot be read")
            return
        _, blocks, free, inodes, free_inodes = numbers
        ro = "ro" in seen.mount.options
        if blocks and not free and not ro:
            yield fail("full", f"{what} is full: no space is left for ordinary users", FREE_SPACE)
        elif inodes and not free_inodes and not ro:
            yield fail("full", f"{what} is full: no inode is left", FREE_SPACE)
        else:
            yield ok("answers", f"{what} answers: {_agreed_words(seen)}")


def _agreed_words(seen: Seen) -> str:
    mount = seen.mount
    words = [f"NFS {seen.version}" if seen.version else "NFS"]
    words += [word for word in ("ro", "soft", "softerr", "hard") if word in mount.options]
    sizes = [f"{n} {kib(value_of(mount, n))}" for n in ("rsize", "wsize") if value_of(mount, n)]
    words += sizes
    words += [f"{n}={value_of(mount, n)}" for n in ("proto", "sec") if value_of(mount, n)]
    return ", ".join(words)


def kib(size: str) -> str:
    """A size in bytes in words."""
    number = whole(size)
    return size if number is None else f"{number // 1024} KiB"
