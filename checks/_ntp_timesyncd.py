"""Reads timedatectl's answers: what systemd-timesyncd says, and what the kernel says.

timesyncd's offset is that of its last answer, before it was corrected; positive when the clock was
behind. NTPSynchronized is a flag of the kernel that any daemon sets, and that stays for hours
after the last one has gone.
"""

import re

from ._ntp_word import NotUnderstood, Source, State, Word, number

_NAME = "systemd-timesyncd"
_SPAN = re.compile(r"([\d.]+)\s*(us|ms|min|s|h|d|month|w|y)?(?![a-z])")
_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "month": 2629800,
    "y": 31557600,
}


def read(text: str) -> Word | None:
    """systemd-timesyncd's word; None if it gave no answer. Raises NotUnderstood.

    text: what `timedatectl timesync-status` or `timedatectl show-timesync` printed, or both.
    """
    told = dict(re.findall(r"^ *([A-Z][A-Za-z ]+): +(.*?) *$", text, re.MULTILINE))
    shown = dict(re.findall(r"^([A-Za-z]+)=(.*?) *$", text, re.MULTILINE))
    message = dict(re.findall(r"(\w+)=([^,}]*?) *[,}]", shown.get("NTPMessage", "")))
    known = {"Server", "Packet count", "Poll interval"} & told.keys()
    if not known and not {"ServerName", "ServerAddress", "PollIntervalMinUSec"} & shown.keys():
        return None  # nobody is there, or systemd is too old to tell
    server = told.get("Server") or shown.get("ServerAddress") or shown.get("ServerName") or "n/a"
    server = server.partition(" ")[0]
    if server in ("n/a", "null", ""):
        return Word(_NAME, False, "it has no server", sources=())
    packets = number(
        told.get("Packet count") or message.get("PacketCount") or "0", "timesyncd's packet count"
    )
    if packets == 0:
        return Word(_NAME, False, "packet count 0", sources=(Source(server, State.SILENT),))
    leap = told.get("Leap") or message.get("Leap") or ""
    stratum = int(
        number(told.get("Stratum") or message.get("Stratum") or "", "timesyncd's stratum")
    )
    if leap in ("not synchronized", "3") or not 0 < stratum < 16:
        why = f"{server} answers with leap {leap or 'unknown'}, stratum {stratum}"
        return Word(_NAME, False, why, sources=(Source(server, State.UNUSABLE),))
    ahead = -seconds(told["Offset"]) if "Offset" in told else None
    return Word(
        _NAME, True, "", False, server, stratum, ahead, _bound(told, message), lasting=False
    )


def _bound(told: dict[str, str], message: dict[str, str]) -> float | None:
    if "Root distance" in told:
        distance = seconds(told["Root distance"].partition("(")[0])
    elif "RootDelay" in message and "RootDispersion" in message:
        distance = seconds(message["RootDelay"]) / 2 + seconds(message["RootDispersion"])
    else:
        return None
    return distance + seconds(told.get("Delay", "0")) / 2


def service_is_active(timedatectl: str) -> bool:
    """Does systemd say that one of the time services that it knows is active?"""
    return bool(re.search(r"^NTP=yes|^ *NTP service: active", timedatectl, re.MULTILINE))


def kernel_synchronised(timedatectl: str, adjtimex: str) -> bool | None:
    """What the kernel's flag says; None where it was not told.

    timedatectl: what `timedatectl show`, or `timedatectl` of systemd before 239, printed.
    adjtimex: what busybox's adjtimex printed.
    """
    flag = re.search(
        r"^[ \t]*(?:NTPSynchronized=|(?:System clock|NTP) synchronized: *)(yes|no)\b",
        timedatectl,
        re.MULTILINE,
    )
    if flag:
        return flag[1] == "yes"
    status = re.search(r"^[ \t]*status: +([0-9]{1,9})", adjtimex, re.MULTILINE)
    return None if status is None else not int(status[1]) & 0x40  # STA_UNSYNC


def seconds(text: str) -> float:
    """A span of time as systemd writes it: "1min 4s", "+129us", "-3.2s", "0"."""
    bare = text.strip().lstrip("+-").lstrip()
    if not bare or _SPAN.sub("", bare).strip():
        raise NotUnderstood(f"timedatectl's {text!r} is no span of time")
    total = sum(number(n, "a span of time") * _SECONDS[unit] for n, unit in _SPAN.findall(bare))
    return -total if text.strip().startswith("-") else total
