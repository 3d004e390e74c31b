"""Asks one node over an open connection: sends the script, reads until the answer is whole."""

import re
import time

from clustercheck.facts import Flood, Reader
from clustercheck.transport import Channel, Connection, Exit, Unreachable

# The script speaks once a second while it waits: after so long a silence, it or the way is gone.
SECONDS_OF_SILENCE = 20


def ask(connection: Connection, script: str, reader: Reader, deadline: float) -> None:
    """Run the script and read its answer into `reader`.

    deadline: of time.monotonic(). Raises Unreachable with the cause where the answer does not
    come to its end; `reader` then holds what was understood up to there.
    """
    channel = connection.start(script.encode(), deadline)
    try:
        _read(channel, reader, deadline)
        if not reader.done:
            raise ended_early(channel.finish(), reader)
    finally:
        channel.close()


def _read(channel: Channel, reader: Reader, deadline: float) -> None:
    began = heard = time.monotonic()
    while not reader.done:
        now = time.monotonic()
        if now >= deadline:
            raise late(reader, now - began, now - heard)
        silent = heard + SECONDS_OF_SILENCE if reader.begun else deadline
        if now >= silent:
            raise Unreachable("cut", f"nothing more was heard of it for {now - heard:.0f} s")
        try:
            data = channel.receive(min(deadline, silent) - now)
        except Unreachable as error:
            if error.code == "limit":
                raise late(reader, time.monotonic() - began, time.monotonic() - heard) from error
            raise
        if data is None:
            continue
        if not data:
            return
        heard = time.monotonic()
        try:
            reply = reader.feed(data)
        except Flood as flood:
            raise Unreachable("flood", str(flood)) from flood
        if reply:
            channel.send(reply)


def late(reader: Reader, seconds: float, silence: float) -> Unreachable:
    """The answer has not come to its end in time."""
    if not reader.begun:
        return Unreachable(
            "no_start", f"logged in, and the script had not begun in {seconds:.0f} s"
        )
    return Unreachable(
        "limit", f"no whole answer within {seconds:.0f} s; last heard of {silence:.0f} s before"
    )


def ended_early(exit: Exit, reader: Reader) -> Unreachable:
    """Why the script ended before its last line."""
    errors = " ".join(exit.stderr.split())[-300:]
    # a login that runs nothing gives its reason on either
    said = " ".join(filter(None, (errors, reader.said_before)))
    how = f"signal {exit.signal}" if exit.signal else f"exit status {exit.status}"
    words = f"{how}: {said}" if said else how
    if reader.no_directory:
        return Unreachable(
            "no_directory",
            "none of /dev/shm, /run/user, /tmp, /var/tmp and the home can be written to",
        )
    if reader.full:
        return Unreachable("no_directory", "the folder of the script on the node filled up")
    if re.search(r"\bfork\b", errors):  # the words of every sh and of the login shell
        return Unreachable("no_process", f"no further process could be started ({words})")
    if reader.begun:
        return Unreachable("garbled", f"the script ended before its last line ({words})")
    if exit.status in (126, 127):  # found and not to be run, or not found
        return Unreachable("no_sh", f"sh could not be run ({words})")
    return Unreachable("nologin", f"the login ran no script ({words})")
