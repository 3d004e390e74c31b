"""Reads ntpq's answers, of the classic ntpd and of NTPsec: the system variables and the peers.

Delay, offset, root delay and dispersion are in milliseconds; a positive offset means that the
clock is behind. A peer that is marked as selected is no proof: with the clock discipline off,
NTPsec 1.2.3 keeps leap=11 beside it.
"""

import re

from ._ntp_word import NotUnderstood, Source, State, Word, first_line, is_no_answer, number

_STATES = {
    "*": State.SELECTED,
    "o": State.SELECTED,  # selected, with pulses per second
    "+": State.GOOD,
    "#": State.GOOD,
    "-": State.GOOD,
    ".": State.GOOD,
    "x": State.FALSETICKER,
}
_VARIABLE = re.compile(r'\b([a-z_]+)=("[^"]*"|[^\s,]+)')
# A long address has the line for itself: `\s` stands for the line feed after it, too.
_PEER = re.compile(
    r"^([ x.#*o+-])(?P<remote>\S+)\s+(?P<refid>\S+)\s+\d+\s+(?P<type>[A-Za-z-])\s+\S+\s+\S+"
    r"\s+(?P<reach>[0-7]+)\s+\S+\s+(?P<offset>\S+)\s+\S+\s*$",
    re.MULTILINE,
)


def read(text: str) -> Word | None:
    """ntpd's word; None if it gave no answer. Raises NotUnderstood.

    text: what `ntpq -n -c rv -c peers` printed, either part may be missing.
    """
    variables = dict(_VARIABLE.findall(text))
    peers = [p for p in _PEER.finditer(text) if p["type"] != "p" and p["refid"] != ".POOL."]
    selected = next((p for p in peers if _STATES.get(p[1]) is State.SELECTED), None)
    table = peers or re.search(r"^ +remote +refid ", text, re.MULTILINE)
    sources = tuple(Source(p["remote"], _state(p)) for p in peers if not _is_own(p))
    told = sources if table or "No association" in text else None
    server = selected["remote"] if selected else variables.get("refid", "")
    if "leap" in variables or "stratum" in variables:
        return _of_variables(variables, server, told, selected is not None)
    if told is None:
        if is_no_answer(text):
            return None
        raise NotUnderstood(f"ntpq says {first_line(text)!r}")
    if selected is None:
        return Word("ntpd", False, "no peer is selected", sources=told)
    ahead = -number(selected["offset"], "ntpq's offset") / 1000
    return Word("ntpd", True, "", _is_own(selected), server, offset=ahead, sources=told)


def _of_variables(
    variables: dict[str, str], server: str, sources: tuple[Source, ...] | None, selected: bool
) -> Word:
    for name in ("leap", "stratum"):
        if name not in variables:
            raise NotUnderstood(f"ntpq tells no {name}")
    leap, stratum = variables["leap"], int(number(variables["stratum"], "ntpq's stratum"))
    leap = {"0": "00", "1": "01", "2": "10", "3": "11"}.get(leap, leap)  # some write it in decimal
    if leap not in ("00", "01", "10", "11"):
        raise NotUnderstood(f"ntpq's leap is {leap!r}, not one of 00, 01, 10, 11")
    if leap == "11" or not 0 <= stratum < 16:
        why = f"leap={leap}, stratum={stratum}"
        if leap == "11" and selected:
            why = f"leap={leap} though {server} is selected: the clock is not disciplined"
        return Word("ntpd", False, why, sources=sources)
    # LOCL: the driver of the undisciplined clock; 127.0.0.1: orphan mode
    refid = variables.get("refid", "").strip('".')
    own = refid in ("LOCL", "127.0.0.1") or _is_own_name(refid) or _is_own_name(server)
    if sources and not selected and not own:
        return Word("ntpd", False, "no peer is selected", sources=sources)
    if "offset" not in variables:
        raise NotUnderstood("ntpq tells no offset")
    ahead = -number(variables["offset"], "ntpq's offset") / 1000
    bound = None
    if "rootdelay" in variables and "rootdisp" in variables:
        bound = number(variables["rootdisp"], "ntpq's rootdisp") / 1000
        bound += number(variables["rootdelay"], "ntpq's rootdelay") / 2000
    return Word("ntpd", True, "", own, server, stratum, ahead, bound, sources=sources)


def _is_own(peer: re.Match[str]) -> bool:
    return peer["refid"] == ".LOCL." or _is_own_name(peer["remote"])


def _is_own_name(name: str) -> bool:
    return name.startswith(("127.127.1.", "LOCAL("))


def _state(peer: re.Match[str]) -> State:
    # The reach register holds the last eight polls, in octal.
    return State.SILENT if int(peer["reach"], 8) == 0 else _STATES.get(peer[1], State.UNUSABLE)
