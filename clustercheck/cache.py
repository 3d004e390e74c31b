"""Results that are kept from one gate to the next.

A folder holds two kinds of files. One for each question (a set of nodes and checks, with their
options) has what was found: it is small, and all that is read where the answer still holds. One for
each node has its answers to every check that it was ever asked: they are read where a part has to
be asked again, so that nodes are judged and compared as if all had been asked now.

Files are replaced as a whole, and believed only where they are this user's or root's. What cannot
be read is as if it were not there, and `Cache.notes` says so.
"""

import contextlib
import hashlib
import json
import os
import secrets
import stat
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from clustercheck import __version__
from clustercheck.cache_lock import Lock
from clustercheck.freshness import Clock
from clustercheck.kept import (
    Kept,
    KeptAnswer,
    answer_as_json,
    answer_from_json,
    kept_as_json,
    kept_from_json,
)

SCHEMA = "clustercheck.cache/1"
LONGEST_FILE = 256 * 1024 * 1024  # bytes; ten thousand nodes' results are some ten MB
KEPT_DAYS = 7  # what nobody has written for so long is removed

ReadT = TypeVar("ReadT")


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

        def read(data: bytes) -> Kept:
            return kept_from_json(json.loads(data), key)

        return self._believed(self._question(key), read)

    def write(self, key: str, kept: Kept) -> None:
        """Keep what was found."""
        self._replace(self._question(key), json.dumps(kept_as_json(kept, key)).encode())

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
            return answer_from_json(json.loads(zlib.decompress(data)), node)

        try:
            return self._believed(self._node(node), read)
        except ConfigError:
            return None

    def keep(self, kept: KeptAnswer) -> None:
        """Keep what a node has answered."""
        text = json.dumps(answer_as_json(kept))
        self._replace(self._node(kept.answer.node), zlib.compress(text.encode(), 1))

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
