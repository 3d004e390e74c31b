"""This machine's clock against the reference, asked by NTP from here.

Of several exchanges with a server the one with the smallest delay counts: its offset lies within
half the delay, plus the server's own root distance, whatever the way there and back took.
"""

import queue
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import ntplib  # type: ignore[import-untyped]

EXCHANGES = 4
ANSWER_WITHIN = 1.0  # seconds, each exchange
ALL_WITHIN = 6.0  # seconds, all servers together; names may be slow to resolve
MOST_SERVERS = 4


class NoAnswer(Exception):
    """A server that gave no time; the message says why."""


class Measured(NamedTuple):
    """This machine's clock is `offset` seconds ahead of the server, give or take `uncertainty`."""

    offset: float
    uncertainty: float
    server: str


def facts(reference: Sequence[str]) -> dict[str, str]:
    """ "here.offset", "here.uncertainty" and "here.server", or "here.error" with the reason.

    reference: servers to ask, "host", "host:port" or "[address]:port"; where there are none, those
        that this machine itself follows, and no others.
    """
    servers = list(reference) or own_servers()
    if not servers:
        return {"here.error": "no reference is set, and this machine itself follows none"}
    measured, errors = _ask_all(servers[:MOST_SERVERS] if not reference else servers)
    if not measured:
        return {"here.error": "; ".join(errors)}
    best = agreed(measured)
    if best is None:
        words = ", ".join(f"{m.server} {-m.offset:+.6f} s" for m in measured)
        return {"here.error": f"the references disagree (from this machine: {words})"}
    return {
        "here.offset": repr(best.offset),
        "here.uncertainty": repr(best.uncertainty),
        "here.server": best.server,
    }


def agreed(measured: Sequence[Measured]) -> Measured | None:
    """The most certain one that more than half of all agree with; None if they disagree."""
    for one in sorted(measured, key=lambda m: m.uncertainty):
        agree = [
            m for m in measured if abs(m.offset - one.offset) <= m.uncertainty + one.uncertainty
        ]
        if 2 * len(agree) > len(measured):
            return one
    return None


def _ask_all(servers: Sequence[str]) -> tuple[list[Measured], list[str]]:
    """Ask all at once: a dead one, or a name server that hangs, holds up nobody for long."""
    answers: queue.SimpleQueue[tuple[str, Measured | NoAnswer]] = queue.SimpleQueue()

    def ask_one(server: str) -> None:
        try:
            answers.put((server, ask(server)))
        except NoAnswer as why:
            answers.put((server, why))

    for server in servers:
        threading.Thread(target=ask_one, args=(server,), daemon=True).start()
    end = time.monotonic() + ALL_WITHIN
    open_ones = set(servers)
    measured: list[Measured] = []
    errors: list[str] = []
    while open_ones:
        try:
            server, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        open_ones.discard(server)
        if isinstance(answer, Measured):
            measured.append(answer)
        else:
            errors.append(str(answer))
    errors += [f"{server} gave no answer within {ALL_WITHIN:g} s" for server in sorted(open_ones)]
    return measured, errors


def ask(server: str) -> Measured:
    """This machine's clock against one server's. Raises NoAnswer."""
    host, port = _split(server)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"{server} cannot be resolved: {error}") from error
    why = NoAnswer(f"{server} has no address")
    for address in list(dict.fromkeys(str(entry[4][0]) for entry in found))[:3]:
        try:
            return _ask_address(server, address, port)
        except NoAnswer as error:
            why = error
    raise why


def _ask_address(server: str, address: str, port: int) -> Measured:
    best: Measured | None = None
    for _ in range(EXCHANGES):
        try:
            answer = ntplib.NTPClient().request(
                address, version=4, port=port, timeout=ANSWER_WITHIN
            )
        except ntplib.NTPException as error:
            if best:  # one lost packet matters to nobody
                break
            raise NoAnswer(f"{server} gave no answer to an NTP request") from error
        except OSError as error:
            raise NoAnswer(f"{server} cannot be reached: {error.strerror or error}") from error
        one = _measured(server, answer)
        if best is None or one.uncertainty < best.uncertainty:
            best = one
    assert best
    return best


def _measured(server: str, answer: ntplib.NTPStats) -> Measured:
    if answer.stratum == 0 and answer.ref_id:
        kiss = answer.ref_id.to_bytes(4, "big").decode("ascii", "replace").strip("\0")
        raise NoAnswer(f"{server} refuses to tell the time (kiss of death {kiss})")
    if answer.leap == 3 or not 0 < answer.stratum < 16:
        raise NoAnswer(
            f"{server} is not synchronised itself (leap {answer.leap}, stratum {answer.stratum})"
        )
    # Timestamps are floats since 1900 here, good to half a microsecond.
    if answer.mode != 4 or not -0.001 < answer.delay < 2 * ANSWER_WITHIN:
        raise NoAnswer(f"{server} gave an answer that does not fit the request")
    distance = answer.root_delay / 2 + answer.root_dispersion
    return Measured(-answer.offset, max(answer.delay, 1e-6) / 2 + distance, server)


def _split(server: str) -> tuple[str, int]:
    match = re.fullmatch(r"\[([^\]]+)\](?::(\d{1,5}))?|([^:]+):(\d{1,5})", server)
    if not match:
        return server, 123
    return match[1] or match[3], int(match[2] or match[4] or 123)


def own_servers() -> list[str]:
    """The time servers that this machine's own daemon follows and that answer it."""
    rows = re.findall(r"^\^,([*+-]),([^,]+),", _output("chronyc", "-n", "-c", "sources"), re.M)
    if not rows:
        table = _output("ntpq", "-n", "-p")
        rows = re.findall(r"^([*+#-])(\S+) +\S+ +\d+ +[us] ", table, re.M)
    if not rows and re.search(r"^NTP=yes", _output("timedatectl", "show"), re.M):
        # asked only where a service runs: the question alone may start timesyncd
        rows = re.findall(r"^(Server)Address=(\S+)", _output("timedatectl", "show-timesync"), re.M)
    # Its own choice ("*") first, then those that agree with it ("+").
    order = {"*": 0, "Server": 0, "+": 1}
    names = [name for _, name in sorted(rows, key=lambda row: order.get(row[0], 2))]
    return [f"[{name}]" if ":" in name else name for name in names]


def _output(*command: str) -> str:
    if not shutil.which(command[0]):
        return ""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=3,
            stdin=subprocess.DEVNULL,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
