"""TCP's counters and connections, as the check retrans reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address


@dataclass(frozen=True)
class Look:
    """TCP's counters at a moment.

    uptime: in s.
    sent: segments with something new in them.
    lost: segments sent again because they had not arrived; between two looks it may be below 0,
        for that one had arrived is told later.
    """

    uptime: float
    sent: int
    lost: int

    def since(self, before: "Look") -> "Look":
        """What came between two looks."""
        return Look(self.uptime - before.uptime, self.sent - before.sent, self.lost - before.lost)

    @property
    def percent(self) -> float:
        return 100 * max(0, self.lost) / self.sent if self.sent > 0 else 0.0


def parse_looks(text: str) -> list[Look]:
    """The probe's lines; others are passed over.

    "UPTIME OutSegs RetransSegs TCPSynRetrans TCPDSACKRecvSegs": of the segments sent again those
    are taken out that ask a silent host for a connection, and those that had arrived in fact, as
    the other end tells (RFC 2883): a busy machine that answers late makes many of them.
    """
    looks = []
    for line in text.splitlines():
        if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?( [0-9]{1,20}){4}", line):
            uptime, sent, again, asking, needless = line.split()
            lost = int(again) - int(asking) - int(needless)
            looks.append(Look(float(uptime), int(sent), lost))
    return looks


@dataclass(frozen=True)
class Peer:
    """Segments that connections to one address sent, and lost."""

    address: str
    sent: int
    lost: int

    @property
    def percent(self) -> float:
        return 100 * self.lost / self.sent


def parse_connections(text: str) -> list[Peer]:
    """The other machines that something was lost to, of `ss -tin`: the worst first."""
    found: dict[str, list[int]] = {}
    address = ""
    for line in text.splitlines():
        words = line.split()
        if words and not line[0].isspace():
            address = _peer(words)
        told = dict(word.split(":", 1) for word in words if ":" in word)
        sent = told.get("data_segs_out", told.get("segs_out", ""))
        again = told.get("retrans", "0/0").rpartition("/")[2]
        needless = told.get("dsack_dups", "0")
        if address and all(re.fullmatch("[0-9]{1,20}", n) for n in (sent, again, needless)):
            sums = found.setdefault(address, [0, 0])
            sums[0] += int(sent)
            sums[1] += max(0, int(again) - int(needless))
            address = ""
    peers = [Peer(address, sent, lost) for address, (sent, lost) in found.items() if sent and lost]
    return sorted(peers, key=lambda peer: -peer.percent)


def _peer(words: list[str]) -> str:
    """The other end's address in a line of ss, "ESTAB 0 0 10.0.0.1:22 10.0.0.2:41000"; else ""."""
    if len(words) < 5 or not words[1].isdecimal():
        return ""
    text = words[4].rpartition(":")[0].strip("[]").removeprefix("::ffff:")
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    return "" if address.is_loopback else text


def worst(peers: Iterable[Peer]) -> str:
    """The worst peer in words, "" where none is known."""
    for peer in peers:
        return f"; most to {peer.address}, {peer.percent:.2g} % of {peer.sent} segments"
    return ""
