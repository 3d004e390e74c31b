"""TCP's counters and connections, as the check retrans reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """TCP's counters at a moment.

    uptime: in s.
    sent: segments with something new in them.
    again: segments sent again, without those that only ask a silent host for a connection.
    """

    uptime: float
    sent: int
    again: int

    def since(self, before: "Look") -> "Look":
        """What came between two looks."""
        return Look(self.uptime - before.uptime, self.sent - before.sent, self.again - before.again)

    @property
    def percent(self) -> float:
        return 100 * self.again / self.sent if self.sent > 0 else 0.0


def parse_looks(text: str) -> list[Look]:
    """Lines "UPTIME OutSegs RetransSegs TCPSynRetrans"; others are passed over."""
    looks = []
    for line in text.splitlines():
        if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?( [0-9]{1,20}){3}", line):
            uptime, sent, again, asking = line.split()
            looks.append(Look(float(uptime), int(sent), max(0, int(again) - int(asking))))
    return looks


@dataclass(frozen=True)
class Peer:
    """What connections to one address sent; in bytes, or in segments where that is all there is."""

    address: str
    sent: int
    again: int
    unit: str

    @property
    def percent(self) -> float:
        return 100 * self.again / self.sent


def parse_connections(text: str) -> list[Peer]:
    """The peers that most is sent to again, of `ss -tin`: the worst first."""
    found: dict[tuple[str, str], list[int]] = {}
    address = ""
    for line in text.splitlines():
        words = line.split()
        if words and not line[0].isspace():
            address = _peer(words)
        told = dict(word.split(":", 1) for word in words if ":" in word)
        # since Linux 4.19 bytes; before that only the segments
        sent, again, unit = told.get("bytes_sent"), told.get("bytes_retrans", "0"), "bytes"
        if sent is None:
            sent = told.get("data_segs_out", told.get("segs_out"))
            again, unit = told.get("retrans", "0/0").rpartition("/")[2], "segments"
        if address and sent and all(re.fullmatch("[0-9]{1,20}", n) for n in (sent, again)):
            sums = found.setdefault((address, unit), [0, 0])
            sums[0] += int(sent)
            sums[1] += int(again)
            address = ""
    peers = [
        Peer(address, sent, again, unit)
        for (address, unit), (sent, again) in found.items()
        if sent and again
    ]
    return sorted(peers, key=lambda peer: -peer.percent)


def _peer(words: list[str]) -> str:
    """The other end's address in a line of ss: "ESTAB 0 0 10.0.0.1:22 10.0.0.2:41000"."""
    if len(words) < 5 or not words[1].isdecimal():
        return ""
    return words[4].rpartition(":")[0].strip("[]").removeprefix("::ffff:")


def worst(peers: Iterable[Peer]) -> str:
    """The worst peer in words, "" where none is known."""
    for peer in peers:
        amount = f"{peer.sent / 1e6:.0f} MB" if peer.unit == "bytes" else f"{peer.sent} segments"
        return f"; most to {peer.address}, {peer.percent:.2g} % of {amount}"
    return ""
