"""Mail that could not be sent yet, kept in a folder until it can be.

A mail is put here before it is first tried, so that one whose sender is killed is not lost. A
file has a line of JSON with sender and recipients, then the mail as it goes over the wire. What a
server refuses for good is moved to `refused/` and tried no more.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

KEPT = 60  # mails; two months of nights
LARGEST = 64 * 2**20  # bytes of a file that is read

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}\.mail")


@dataclass(frozen=True)
class Waiting:
    """A mail that waits. data: as it goes over the wire, headers and all.

    path: its file; None where it could not be kept.
    """

    path: Path | None
    sender: str
    to: tuple[str, ...]
    data: bytes


def put(folder: Path, sender: str, to: Sequence[str], data: bytes, now: datetime) -> Waiting:
    """Keep a mail; it is on the disk when this returns. Raises OSError where it cannot be."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"{now.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(4)}.mail"
    path = folder / name
    mail = Waiting(path, sender, tuple(to), data)
    _write(path, mail)
    return mail


def give_up(folder: Path) -> int:
    """Keep the last 60 only; how many were given up. Raises OSError where that cannot be."""
    old = _files(folder)[:-KEPT]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def waiting(folder: Path) -> tuple[list[Waiting], list[str]]:
    """What is kept, oldest first, and a line for each file that cannot be read."""
    found, trouble = [], []
    for path in _files(folder):
        try:
            found.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = getattr(error, "strerror", None) or "it is damaged"
            trouble.append(f"a kept mail, {path}, cannot be read: {why}; look at it and remove it")
    return found, trouble


def done(mail: Waiting) -> None:
    """It has been sent."""
    if mail.path:
        mail.path.unlink(missing_ok=True)


def left(mail: Waiting, to: Sequence[str]) -> None:
    """Only these recipients still wait for it."""
    if mail.path and tuple(to) != mail.to:
        _write(mail.path, replace(mail, to=tuple(to)))


def refuse(mail: Waiting, to: Sequence[str]) -> Path | None:
    """Keep it apart, for these recipients, never to be tried again; the file that has it."""
    if not mail.path:
        return None
    folder = mail.path.parent / "refused"
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = folder / mail.path.name
    _write(kept, replace(mail, to=tuple(to)))
    give_up(folder)
    return kept


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []
    return [folder / name for name in names]


def _write(path: Path, mail: Waiting) -> None:
    head = json.dumps({"sender": mail.sender, "to": mail.to, "bytes": len(mail.data)})
    new = path.with_suffix(".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600), "wb") as file:
            file.write(head.encode() + b"\n" + mail.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _read(path: Path) -> Waiting:
    with path.open("rb") as file:
        head, _, data = file.read(LARGEST).partition(b"\n")
    about = json.loads(head)
    sender, to = about["sender"], tuple(about["to"])
    if len(data) != about["bytes"] or not all(isinstance(one, str) for one in (sender, *to)):
        raise ValueError(path)
    return Waiting(path, sender, to, data)
