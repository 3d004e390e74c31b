"""Asks one node over an open connection: sends the script, reads until the answer is whole."""

import re
import time

from clustercheck.facts import Flood, Reader
from clustercheck.transport import Channel, Connection, Exit, Unreachable


def ask(connection: Connection, script: str, reader: Reader, deadline: float) -> None:
    """Run the script and read its answer into `reader`.

    deadline: of time.monotonic(). Raises Unreachable with the cause where the answer does not
    come to its end; `reader` then holds what was understood up to there.
    """
    channel = connection.start(script.encode(), deadline)
    try:
        _read(channel, reader, deadline)
        if not reader.done:
            raise _ended_early(channel.finish(), reader)
    finally:
        channel.close()


def _read(channel: Channel, reader: Reader, deadline: float) -> None:
    began = time.monotonic()
    while not reader.done:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("limit", f"no whole answer within {time.monotonic() - began:.0f} s")
        data = channel.receive(left)
        if data is None:
            continue
        if not data:
            return
        try:
            reply = reader.feed(data)
        except Flood as flood:
            raise Unreachable("flood", str(flood)) from flood
        if reply:
            channel.send(reply)


def _ended_early(exit: Exit, reader: Reader) -> Unreachable:
    said = " ".join(exit.stderr.split())[-300:]
    how = f"signal {exit.signal}" if exit.signal else f"exit status {exit.status}"
    words = f"{how}: {said}" if said else how
    if reader.no_directory:
        return Unreachable(
            "no_directory",
            "none of /dev/shm, /run/user, /tmp, /var/tmp and the home can be written to",
        )
    if reader.full:
        return Unreachable("no_directory", "the folder of the script on the node filled up")
    if re.search(r"\bfork\b", said):  # the words of every sh and of the login shell
        return Unreachable("no_process", f"no further process could be started ({words})")
    if reader.begun:
        return Unreachable("garbled", f"the script ended before its last line ({words})")
    if exit.status == 127:
        return Unreachable("no_sh", f"sh could not be run ({words})")
    return Unreachable("nologin", f"the login ran no script ({words})")
