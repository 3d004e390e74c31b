"""Which host keys are known: OpenSSH's known_hosts files, parsed once for all nodes.

Plain names are found by a dictionary. A hashed name can only be compared by an HMAC with each
line, so those lines are first narrowed to the ones that hold the key which the host showed.
Host certificates are not supported: lines with @cert-authority are kept apart and only named.
"""

import base64
import binascii
import fcntl
import hashlib
import hmac
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from clustercheck.ssh_config import patterns_match

log = logging.getLogger(__name__)


class HostKey(NamedTuple):
    """A public key as SSH sends it. kind: "ssh-ed25519", "ssh-rsa", …"""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As OpenSSH shows it: "SHA256:…"."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return "SHA256:" + digest.rstrip("=")


class Trust(Enum):
    """What the files say about a key that a host shows."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True)
class Verdict:
    """What the files say, and what the user needs to mend it.

    places: "file:line" of each line for the host that holds another key, or that revokes this one.
    kinds: the kinds of those keys.
    authority: a @cert-authority line is for this host, so a certificate would have been expected.
    """

    trust: Trust
    places: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    authority: bool = False


@dataclass(frozen=True)
class _Line:
    place: str
    key: HostKey
    names: tuple[str, ...] = ()  # patterns, where the names are no plain words
    salt: bytes = b""
    digest: bytes = b""

    def is_for(self, name: str) -> bool:
        if self.salt:
            return hmac.compare_digest(hmac.digest(self.salt, name.encode(), "sha1"), self.digest)
        return patterns_match(self.names, name)


def lookup_name(host: str, port: int) -> str:
    """The name under which known_hosts has a host: "[host]:port" where the port is not 22."""
    host = host.lower()
    return host if port == 22 else f"[{host}]:{port}"


class KnownHosts:
    """An index over known_hosts files; those that do not exist are empty. Thread-safe.

    Lines that cannot be understood are left out with a warning that names them. Raises OSError
    where a file is there and cannot be read.
    """

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._plain: dict[str, list[_Line]] = {}
        self._patterns: list[_Line] = []
        self._hashed: dict[bytes, list[_Line]] = {}
        self._next: dict[bytes, int] = {}
        self._revoked: list[_Line] = []
        self._authorities: list[_Line] = []
        for path in paths:
            if path.exists():
                self._read(path)

    def kinds(self, name: str) -> tuple[str, ...]:
        """The kinds of key known for a name, hashed lines left aside: to be asked for first."""
        lines = [*self._plain.get(name, ()), *self._matching(self._patterns, name)]
        return tuple(dict.fromkeys(line.key.kind for line in lines))

    def judge(self, name: str, key: HostKey) -> Verdict:
        """What is known about a key that the host of that name shows."""
        revoked = [x for x in self._matching(self._revoked, name) if x.key.blob == key.blob]
        if revoked:
            return Verdict(Trust.REVOKED, tuple(line.place for line in revoked))
        lines = [*self._plain.get(name, ()), *self._matching(self._patterns, name)]
        if any(line.key.blob == key.blob for line in lines) or self._is_hashed(name, key):
            return Verdict(Trust.KNOWN)
        with self._lock:
            hashed = [line for same in self._hashed.values() for line in same]
        lines += self._matching(hashed, name)
        authority = any(True for _ in self._matching(self._authorities, name))
        return Verdict(
            Trust.CHANGED if lines else Trust.UNKNOWN,
            tuple(line.place for line in lines),
            tuple(dict.fromkeys(line.key.kind for line in lines)),
            authority,
        )

    def accept(self, name: str, key: HostKey, hashed: bool) -> Verdict:
        """Add a key that is unknown so far to the first file; says what is so afterwards.

        hashed: write the name hashed, as HashKnownHosts asks for. A name that another thread has
        got a key for in the meantime is judged by that key. Raises OSError where the file cannot
        be written.
        """
        with _WRITING:
            verdict = self.judge(name, key)
            if verdict.trust is not Trust.UNKNOWN:
                return verdict
            salt = os.urandom(20)
            shown = name
            if hashed:
                digest = hmac.digest(salt, name.encode(), "sha1")
                shown = "|1|" + "|".join(base64.b64encode(x).decode() for x in (salt, digest))
            text = f"{shown} {key.kind} {base64.b64encode(key.blob).decode()}"
            _append(self._paths[0], text)
            self._take(text, str(self._paths[0]))
            return Verdict(Trust.KNOWN)

    def _is_hashed(self, name: str, key: HostKey) -> bool:
        with self._lock:
            lines = self._hashed.get(key.blob, [])
            start = self._next.get(key.blob, 0)
        # Nodes of one image share a key. Each then has a line with it, most often in the nodes'
        # order: going on behind the last hit makes this one HMAC a node and not a walk of all.
        for step in range(len(lines)):
            place = (start + step) % len(lines)
            if lines[place].is_for(name):
                with self._lock:
                    self._next[key.blob] = place + 1
                return True
        return False

    @staticmethod
    def _matching(lines: list[_Line], name: str) -> Iterator[_Line]:
        return (line for line in lines if line.is_for(name))

    def _read(self, path: Path) -> None:
        text = path.read_text(errors="surrogateescape")
        for number, line in enumerate(text.splitlines(), 1):
            if line and not line.isspace() and not line.lstrip().startswith("#"):
                self._take(line, f"{path}:{number}")

    def _take(self, text: str, place: str) -> None:
        fields = text.split(None, 4)
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        try:
            names, kind, encoded = fields[:3]
            blob = binascii.a2b_base64(encoded)
            salt, digest = _salt_and_digest(names)
        except ValueError:
            log.warning("%s: not a line of known_hosts, left out", place)
            return
        if marker not in ("", "@revoked", "@cert-authority"):
            log.warning("%s: the marker %s is not known, line left out", place, marker)
            return
        # The blob begins with its own kind; a line cut short or glued together shows here.
        if blob[4 : 4 + len(kind)] != kind.encode(errors="surrogateescape"):
            log.warning("%s: the key is damaged, line left out", place)
            return
        key = HostKey(kind, blob)
        plain = not salt and not marker and not any(c in names for c in "*?!")
        with self._lock:
            if plain:
                line = _Line(place, key)
                for name in names.lower().split(","):
                    self._plain.setdefault(name, []).append(line)
                return
            line = _Line(place, key, tuple(names.lower().split(",")), salt, digest)
            if marker == "@revoked":
                self._revoked.append(line)
            elif marker == "@cert-authority":
                self._authorities.append(line)
            elif salt:
                self._hashed.setdefault(blob, []).append(line)
            else:
                self._patterns.append(line)


_WRITING = threading.Lock()


def _salt_and_digest(names: str) -> tuple[bytes, bytes]:
    if not names.startswith("|"):
        return b"", b""
    empty, version, salt, digest = names.split("|")
    if empty or version != "1":
        raise ValueError(names)
    return binascii.a2b_base64(salt), binascii.a2b_base64(digest)


def _append(path: Path, line: str) -> None:
    """Add a line in one write under a lock that other processes see as well."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        whole = not size or os.pread(file, 1, size - 1) == b"\n"
        os.write(file, (("" if whole else "\n") + line + "\n").encode(errors="surrogateescape"))
    finally:
        os.close(file)
