"""Writes a report to a file so that a reader finds the old one or the new one, never a half."""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from clustercheck.errors import UsageError

_NEW_MODE = 0o644  # less the umask


def check_writable(path: Path) -> None:
    """Raise UsageError where `write_atomically` would fail, before a long run is wasted on it."""
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise UsageError(_line(path, "is a folder; name a file in it"))
        if not target.parent.is_dir():
            folder = str(target.parent)
            raise UsageError(_line(path, f"there is no folder {folder!r}; make it first"))
        if _is_special(target):
            usable = os.access(target, os.W_OK)
        else:
            usable = os.access(target.parent, os.W_OK | os.X_OK)
    except OSError as error:  # a name that is too long
        raise UsageError(_line(path, f"{error.strerror}; {_remedy(error)}")) from None
    if not usable:
        raise UsageError(_line(path, "no permission to write there; choose another place"))


def write_atomically(path: Path, text: str) -> None:
    """Replace the file by `text` in UTF-8, or leave it as it was and raise UsageError.

    A new file has mode 0644 less the umask; an existing one keeps its mode and, where that is
    allowed, its owner. A symbolic link stays and its target is replaced. What is no plain file
    (/dev/stdout, a pipe) is written to as it is.
    """
    data = text.encode("utf-8", "backslashreplace")
    target = Path(os.path.realpath(path))
    check_writable(path)
    try:
        if _is_special(target):
            with open(target, "wb", buffering=0) as file:
                _write(file.fileno(), data)
        else:
            _replace(target, data)
    except OSError as error:
        cause = error.strerror or str(error)
        raise UsageError(_line(path, f"{cause}; {_remedy(error)}")) from error


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".clustercheck-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _NEW_MODE)
    try:
        try:
            _keep_rights(target, descriptor)
            _write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C leaves nothing behind either
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse it for a folder
            os.fsync(folder)
    finally:
        os.close(folder)


def _keep_rights(target: Path, descriptor: int) -> None:
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):  # only root can give a file away
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _line(path: Path, what: str) -> str:
    return f"cannot write {str(path)!r}: {what}"


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room or choose another place"
    return "choose another place"
