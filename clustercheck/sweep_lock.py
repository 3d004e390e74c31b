"""One sweep of a cluster at a time. The lock is the kernel's: that of a dead process is none."""

import contextlib
import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from clustercheck.errors import ConfigError
from clustercheck.render.escape import visible


class Busy(Exception):
    """Another sweep goes on. In words: whose, and since when."""


def _check_owner(folder: Path) -> None:
    """Whoever may write there could give us a history, or a mail to send, of his own making."""
    about = folder.stat()
    if about.st_uid not in (os.geteuid(), 0):
        why = "belongs to another user"
    elif about.st_mode & stat.S_IWOTH:
        why = "may be written to by everybody"
    else:
        return
    raise ConfigError(f"{folder}: {why}; give a folder of your own with --state")


@contextlib.contextmanager
def alone(path: Path, now: datetime) -> Iterator[None]:
    """Hold the lock in the file. Raises Busy, and ConfigError where there can be no lock."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}; give another folder with --state"
        ) from None
    try:
        try:
            # not flock: that would be held on by what we fork
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(_holder(descriptor)) from None
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be locked: {error.strerror}; give a local folder with --state"
            ) from None
        content = {"pid": os.getpid(), "host": socket.gethostname(), "since": now.isoformat()}
        with contextlib.suppress(OSError):  # a full disk: who waits is told less
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(content).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
        since = datetime.fromisoformat(content["since"]).astimezone()
        who = f"process {int(content['pid'])} on {visible(str(content['host']))}"
        return f"a sweep goes on since {since:%Y-%m-%d %H:%M:%S}: {who}"
    except (ValueError, KeyError, TypeError, OSError):
        return "a sweep goes on; it has not said yet whose it is"
