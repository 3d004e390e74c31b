"""Results that are kept from one gate to the next.

A folder holds two kinds of files. One for each question (a set of nodes and checks, with their
options) has what was found: it is small, and all that is read where the answer still holds. One for
each node has its answers to every check that it was ever asked: they are read where a part has to
be asked again, so that nodes are judged and compared as if all had been asked now.

Files are replaced as a whole, and believed only where they are this user's or root's. What cannot
be read is as if it were not there, and `Cache.notes` says so.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
import stat
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clustercheck import __version__, reach
from clustercheck.cache_lock import Lock
from clustercheck.check import Finding, Quantity, Remedy, Stale, Status
from clustercheck.freshness import Clock, Moment, NodeState, Stamp, failed, fresh
from clustercheck.report import NodeResult, Report

if TYPE_CHECKING:
    from clustercheck.answer import Answer

SCHEMA = "clustercheck.cache/1"
LONGEST_FILE = 256 * 1024 * 1024  # bytes; ten thousand nodes' results are some ten MB
ReadT = TypeVar("ReadT")

KEPT_DAYS = 7  # what nobody has written for so long is removed


def default_folder() -> Path | None:
    """$XDG_CACHE_HOME/clustercheck, else ~/.cache/clustercheck; None for a user without a home."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "clustercheck"
    try:
        return Path.home() / ".cache" / "clustercheck"
    except RuntimeError:
        return None


def question(*parts: str | bytes) -> str:
    """A word that stands for all that a result depends on: texts, contents of files."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Kept:
    """What was found, and when each part of it was asked.

    stamps: by node and check; what has none was not found out and does not hold.
    stale: by check, what makes it stale.
    hosts: by node, the address or name that it is reached by, "" for its own.
    fields: by check and node, what `Check.fields` made of the facts.
    more: whatever else the caller wants to find again, as JSON.
    seen: the nodes' states when a probe last asked for them, and when that was.
    """

    report: Report
    stamps: Mapping[str, Mapping[str, Stamp]]
    stale: Mapping[str, Stale]
    hosts: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[float, Mapping[str, NodeState]] = (0.0, {})

    @property
    def needs_states(self) -> bool:
        """May any of it only be believed where the node's state is known?"""
        return any(kind != "time" for kind in self.stale.values())

    def not_fresh(
        self, states: Mapping[str, NodeState], moment: Moment
    ) -> dict[str, tuple[str, ...]]:
        """By node, the checks whose results do not hold any more; nodes without such are not in it.

        states: the nodes' states now; one that is not in it is not known.
        """
        found: dict[str, tuple[str, ...]] = {}
        for node, result in self.report.nodes.items():
            state, stamps = states.get(node), self.stamps.get(node, {})
            # a node that cannot be reached has no result of any check, but one of its own
            way = [f for f in result.findings.get(reach.NAME, ()) if f.code != "root"]
            away = failed(way)
            old = []
            for check in self.report.checks:
                bad = away or _bad(result.findings.get(check, ()))
                stamp = stamps.get(check)
                if stamp is None or not fresh(stamp, self.stale[check], bad, state, moment):
                    old.append(check)
            if old:
                found[node] = tuple(old)
        return found


def _bad(findings: Sequence[Finding]) -> bool:
    return not findings or failed(findings)


@dataclass(frozen=True)
class KeptAnswer:
    """A node's answers from before: one for each check that it was asked.

    stamps: by check. digests: by check, of all that the answer depends on beside the node.
    """

    answer: "Answer"
    stamps: Mapping[str, Stamp]
    digests: Mapping[str, str]


class Cache:
    """A folder of kept results. Nothing in it can keep a gate from its work.

    notes: what the user ought to know of it, one sentence each.
    usable: may it be read and written?
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder or Path(os.devnull)
        self.notes: list[str] = []
        if folder is None:
            self.usable = self._cannot("you have no home directory; name a folder with --cache")
        else:
            self.usable = self._open()

    def _open(self) -> bool:
        try:
            for each in (self.folder, self._file("questions"), self._file("nodes")):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = self.folder.stat()
        except OSError as error:
            return self._cannot(f"the folder {str(self.folder)!r} cannot be used: {error.strerror}")
        if about.st_uid not in (os.geteuid(), 0):
            why = f"{str(self.folder)!r} is another user's; name a folder of your own"
            return self._cannot(why)
        if not os.access(self._file("questions"), os.W_OK | os.X_OK):
            return self._cannot(f"the folder {str(self.folder)!r} cannot be written to")
        return True

    def _cannot(self, why: str) -> bool:
        self.note(f"results are not kept: {why}")
        return False

    def note(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def lock(self, key: str) -> Lock:
        """The lock of who refreshes the results of a question."""
        return Lock(self._file("questions") / f"{key}.lock")

    def read(self, key: str) -> Kept | None:
        """What was found when the question was last put; None where there is nothing to believe."""
        return self._believed(self._question(key), lambda data: _kept(json.loads(data), key))

    def write(self, key: str, kept: Kept) -> None:
        """Keep what was found."""
        self._replace(self._question(key), json.dumps(_as_json(kept, key)).encode())

    def changed(self, key: str) -> tuple[int, int]:
        """Another value whenever the results of the question have been written anew."""
        try:
            about = self._question(key).stat()
        except OSError:
            return (0, 0)
        return (about.st_ino, about.st_mtime_ns)

    def answer(self, node: str) -> KeptAnswer | None:
        """What the node has answered, whoever asked; None where there is nothing to believe."""
        from clustercheck.errors import ConfigError

        def read(data: bytes) -> KeptAnswer:
            content = json.loads(zlib.decompress(data))
            return _kept_answer(content, node)

        try:
            return self._believed(self._node(node), read)
        except ConfigError:
            return None

    def keep(self, kept: KeptAnswer) -> None:
        """Keep what a node has answered."""
        content = {
            "node": kept.answer.node,
            "answer": kept.answer.to_json(),
            "stamps": {check: [s.asked, list(s.state)] for check, s in kept.stamps.items()},
            "digests": dict(kept.digests),
        }
        data = zlib.compress(json.dumps(content).encode("utf-8", "backslashreplace"), 1)
        self._replace(self._node(kept.answer.node), data)

    def tidy(self) -> None:
        """Remove what has not been written for a week; looks once a day."""
        mark = self._file("tidied")
        now = time.time()
        try:
            if mark.stat().st_mtime > now - 86_400:
                return
        except OSError:
            pass
        with contextlib.suppress(OSError):
            mark.touch(mode=0o600)
            for folder in ("questions", "nodes"):
                for entry in os.scandir(self._file(folder)):
                    if entry.stat(follow_symlinks=False).st_mtime < now - KEPT_DAYS * 86_400:
                        os.unlink(entry.path)

    def _file(self, name: str) -> Path:
        return self.folder / name

    def _question(self, key: str) -> Path:
        return self._file("questions") / f"{key}.json"

    def _node(self, node: str) -> Path:
        return self._file("nodes") / question(node)

    def _believed(self, path: Path, read: Callable[[bytes], ReadT]) -> ReadT | None:
        """What `read` makes of the file's content, None where it is not to be believed."""
        if not self.usable:
            return None
        try:
            data = _content(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.note(f"{str(path)!r} cannot be read ({error.strerror}), and is left aside")
            return None
        if data is None:
            self.note(f"{str(path)!r} may have been written by others, and is left aside")
            return None
        try:
            first, _, rest = data.partition(b"\n")
            head = json.loads(first)
            if (head["schema"], head["version"]) != (SCHEMA, __version__):
                by = str(head["version"])[:40]
                self.note(f"what clustercheck {by} has kept is left aside, and kept anew")
                return None
            if head["sum"] != hashlib.sha256(rest).hexdigest():
                raise ValueError("its sum is another")
            if Clock.now().set_back_since(Clock(*head["clock"])):
                self.note("the clock was set back since results were kept: they are asked anew")
                return None
            return read(rest)
        except (ValueError, LookupError, TypeError, AttributeError, zlib.error, RecursionError):
            self.note(f"{str(path)!r} is damaged; it is left aside, and written anew")
            return None

    def _replace(self, path: Path, data: bytes) -> None:
        if not self.usable:
            return
        head = {
            "schema": SCHEMA,
            "version": __version__,
            "clock": list(Clock.now()),
            "sum": hashlib.sha256(data).hexdigest(),
        }
        temporary = path.with_name(f".{secrets.token_hex(8)}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                # Not synced: after a crash the sum shows a half, and it is made anew.
                file.write(json.dumps(head).encode() + b"\n" + data)
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            self.note(f"results cannot be kept in {str(self.folder)!r}: {error.strerror}")


def _content(path: Path) -> bytes | None:
    """The file's content; None where others than this user and root could have written it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        ours = stat.S_ISREG(about.st_mode) and about.st_uid in (os.geteuid(), 0)
        if not ours or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        return file.read(LONGEST_FILE)


class _Table:
    """Things that stand in a file once, and elsewhere as their place."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def place(self, thing: Any) -> int:
        return self.places.setdefault(thing, len(self.places))


def _as_json(kept: Kept, key: str) -> dict[str, Any]:
    report, checks = kept.report, list(kept.report.checks)
    findings, states, rows = _Table(), _Table(), _Table()
    nodes: dict[str, Any] = {}
    for node, result in report.nodes.items():
        found = tuple(
            (check, tuple(findings.place(finding) for finding in of))
            for check, of in result.findings.items()
        )
        asked = tuple(
            (check, stamp.asked, states.place(stamp.state))
            for check, stamp in kept.stamps.get(node, {}).items()
        )
        nodes[node] = [result.seconds, rows.place(found), rows.place(asked)]
    fields = _Table()
    of_nodes = {
        check: {node: fields.place(tuple(has.items())) for node, has in by_node.items()}
        for check, by_node in kept.fields.items()
    }
    return {
        "key": key,
        "started": report.started.isoformat(),
        "seconds": report.seconds,
        "notes": list(report.notes),
        "checks": checks,
        "stale": dict(kept.stale),
        "hosts": {node: host for node, host in kept.hosts.items() if host},
        "more": kept.more,
        "nodes": nodes,
        "rows": list(rows.places),
        "findings": [_finding_as_json(f) for f in findings.places],
        "states": [list(state) for state in states.places],
        "fields": [of_nodes, list(fields.places)],
        "seen": [kept.seen[0], {node: list(state) for node, state in kept.seen[1].items()}],
    }


def _finding_as_json(f: Finding) -> list[Any]:
    remedy = list(f.remedy) if f.remedy else None
    value = list(f.value) if f.value else None
    return [f.status.value, f.code, f.message, remedy, f.peer, value]


def _finding(content: list[Any]) -> Finding:
    status, code, message, remedy, peer, value = content
    return Finding(
        Status(status),
        code,
        message,
        Remedy(*remedy) if remedy else None,
        peer,
        Quantity(*value) if value else None,
    )


def _kept(content: dict[str, Any], key: str) -> Kept:
    if content["key"] != key:
        raise ValueError("of another question")
    findings = [_finding(each) for each in content["findings"]]
    states = [NodeState(*each) for each in content["states"]]
    found_in: dict[int, dict[str, list[Finding]]] = {}
    stamps_in: dict[int, dict[str, Stamp]] = {}
    nodes, stamps = {}, {}
    for node, (seconds, found, asked) in content["nodes"].items():
        if found not in found_in:
            row = content["rows"][found]
            found_in[found] = {check: [findings[i] for i in of] for check, of in row}
        if asked not in stamps_in:
            row = content["rows"][asked]
            stamps_in[asked] = {check: Stamp(when, states[i]) for check, when, i in row}
        nodes[node] = NodeResult(node, found_in[found], seconds)
        stamps[node] = stamps_in[asked]
    of_nodes, fields = content["fields"]
    fields = [dict(each) for each in fields]
    report = Report(
        started=datetime.fromisoformat(content["started"]),
        seconds=content["seconds"],
        checks=content["checks"],
        nodes=nodes,
        notes=content["notes"],
    )
    when, seen = content["seen"]
    return Kept(
        report=report,
        stamps=stamps,
        stale=content["stale"],
        hosts={node: content["hosts"].get(node, "") for node in nodes},
        fields={check: {n: fields[i] for n, i in by.items()} for check, by in of_nodes.items()},
        more=content["more"],
        seen=(when, {node: NodeState(*state) for node, state in seen.items()}),
    )


def _kept_answer(content: dict[str, Any], node: str) -> KeptAnswer:
    from clustercheck.answer import from_json

    answer = from_json(content["answer"], "the cache")
    if content["node"] != node or answer.node != node:
        raise ValueError("of another node")
    stamps = {c: Stamp(when, NodeState(*state)) for c, (when, state) in content["stamps"].items()}
    return KeptAnswer(answer, stamps, content["digests"])


def without_forgotten(answer: "Answer") -> "Answer":
    """The answer without what was too long to be kept: that is asked again."""
    told = {name: told for name, told in answer.told.items() if name not in answer.forgotten}
    return dataclasses.replace(answer, told=told)
