"""The user's private keys and the agent's, each read once for all nodes."""

import base64
import errno
import logging
import math
import re
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import paramiko

from clustercheck.known_hosts import HostKey

log = logging.getLogger(__name__)

KEY_CLASSES: tuple[type[paramiko.PKey], ...] = (
    paramiko.Ed25519Key,
    paramiko.RSAKey,
    paramiko.ECDSAKey,
)
_MAGIC = b"openssh-key-v1\0"
_ARMOUR = re.compile(
    rb"-----BEGIN OPENSSH PRIVATE KEY-----(.*)-----END OPENSSH PRIVATE KEY-----", re.DOTALL
)


@dataclass(frozen=True)
class Key:
    """A key that may be tried.

    label: what the user knows it by: its file, or the agent's comment.
    blob: its public half; b"" where that cannot be seen.
    private: for logging in; None where `problem` says why not.
    problem: "", or a code: "key_passphrase" or "key_unreadable".
    reason: what is wrong with it, in words.
    missing: there is no such file.
    """

    label: str
    blob: bytes
    private: paramiko.PKey | None
    problem: str = ""
    reason: str = ""
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.label} ({HostKey('', self.blob).fingerprint})" if self.blob else self.label


class AgentKey(paramiko.PKey):
    """A key in the agent; signatures are asked for one at a time, for it has one connection."""

    def __init__(
        self, inner: paramiko.AgentKey, turn: threading.Lock, deadline: float = math.inf
    ) -> None:
        """deadline: of time.monotonic(), for each signature."""
        self.public_blob = None
        self._inner = inner
        self._turn = turn
        self._deadline = deadline

    def by(self, deadline: float) -> "AgentKey":
        """The same key, with an end to the waiting: an agent may ask for a touch."""
        return AgentKey(self._inner, self._turn, deadline)

    def asbytes(self) -> bytes:
        return self._inner.asbytes()

    def get_name(self) -> str:
        return self._inner.get_name()

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> paramiko.Message:
        """The agent's signature as SSH sends it; empty where the agent refuses.

        Raises TimeoutError at the deadline, with a number, without which paramiko trips over it.
        """
        # Raised further a refusal would end the connection, with other keys still to be tried.
        signature = cast(paramiko.Message, b"")
        done = threading.Event()

        def sign() -> None:
            nonlocal signature
            try:
                signature = self._inner.sign_ssh_data(data, algorithm)
            except (paramiko.SSHException, OSError) as error:
                log.warning("the agent does not sign with %s: %s", self.get_name(), error)
            finally:
                self._turn.release()
                done.set()

        if not self._turn.acquire(timeout=self._left()):
            raise TimeoutError(errno.ETIMEDOUT, "the agent is busy")
        threading.Thread(target=sign, name="agent", daemon=True).start()
        if not done.wait(self._left()):
            raise TimeoutError(errno.ETIMEDOUT, "the agent does not answer")
        return signature

    def _left(self) -> float:
        """Seconds; a moment more than there are, so that the deadline is past when they are."""
        left = max(self._deadline - time.monotonic(), 0) + 0.01
        return min(left, threading.TIMEOUT_MAX)


class Keyring:
    """All keys of the run. Thread-safe."""

    def __init__(self, passphrase: str, agent: bool) -> None:
        """agent: whether there is one to be asked."""
        self._passphrase = passphrase
        self._ask_agent = agent
        self._lock = threading.Lock()
        self._files: dict[Path, Key] = {}
        self._agent: paramiko.Agent | None = None
        self._agent_keys: tuple[Key, ...] | None = None

    def file(self, path: Path) -> Key:
        """The key of a file, with what is wrong with it."""
        with self._lock:
            if path not in self._files:
                self._files[path] = _read(path, self._passphrase)
            return self._files[path]

    def agent(self) -> tuple[Key, ...]:
        """The keys that the agent holds; () where there is none."""
        with self._lock:
            if self._agent_keys is None:
                self._agent_keys = self._list_agent() if self._ask_agent else ()
            return self._agent_keys

    def _list_agent(self) -> tuple[Key, ...]:
        turn = threading.Lock()
        try:
            self._agent = paramiko.Agent()
        except (paramiko.SSHException, OSError) as error:
            log.warning("the agent at $SSH_AUTH_SOCK cannot be asked: %s", error)
            return ()
        return tuple(
            Key(key.comment or "agent", key.asbytes(), AgentKey(key, turn))
            for key in self._agent.get_keys()
        )

    def close(self) -> None:
        """Leave the agent."""
        if self._agent is not None:
            self._agent.close()


def _read(path: Path, passphrase: str) -> Key:
    label = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        missing = isinstance(error, FileNotFoundError)
        text = f"{path} cannot be read: {reason}"
        return Key(label, b"", None, "key_unreadable", text, missing)
    blob, locked = _public_half(data)
    if not blob:
        blob = _companion(path)
    if locked and not passphrase:
        return Key(label, blob, None, "key_passphrase", f"{path} needs a passphrase")
    for key_class in KEY_CLASSES:
        try:
            private = key_class.from_private_key_file(label, passphrase if locked else None)
        except (paramiko.SSHException, ValueError, IndexError, UnicodeError):
            continue
        certificate = Path(f"{path}-cert.pub")
        if certificate.exists():
            private.load_certificate(str(certificate))
        return Key(label, private.asbytes(), private)
    if locked:
        return Key(label, blob, None, "key_passphrase", f"the passphrase does not open {path}")
    return Key(label, blob, None, "key_unreadable", f"{path} holds no private key of a known form")


def _public_half(data: bytes) -> tuple[bytes, bool]:
    """The public key in a private key file, and whether the file is locked."""
    armoured = _ARMOUR.search(data)
    if not armoured:
        return b"", b"ENCRYPTED" in data
    try:
        body = base64.b64decode(armoured[1])
        if not body.startswith(_MAGIC):
            return b"", False
        place = len(_MAGIC)
        fields = []
        for _ in range(3):  # cipher, key derivation, its options
            (size,) = struct.unpack_from(">I", body, place)
            fields.append(body[place + 4 : place + 4 + size])
            place += 4 + size
        _count, size = struct.unpack_from(">II", body, place)
    except (ValueError, struct.error):
        return b"", False
    return body[place + 8 : place + 8 + size], fields[0] != b"none"


def _companion(path: Path) -> bytes:
    """The public key in the .pub beside a private key, as ssh uses for keys in the agent."""
    try:
        return base64.b64decode(Path(f"{path}.pub").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return b""
