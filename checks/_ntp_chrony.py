"""Reads chronyc's answers: tracking and sources, as csv (-c) or as the text of older versions.

Signs, as seen with chrony 4.3 and 4.6: "slow of NTP time" means that the clock is behind, and so
does a positive fifth field of the csv. Its error is no more than
|system time| + root dispersion + root delay / 2 (chronyc(1)).
"""

import re

from ._ntp_word import NotUnderstood, Source, State, Word, is_no_answer, number

# 127.127.1.1, in hexadecimal since chrony 3: the node's own clock, by the directive "local".
_OWN_CLOCK = ("7F7F0101", "127.127.1.1")
_NOBODY = ("00000000", "0.0.0.0")
_LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")

_STATES = {
    "*": State.SELECTED,
    "+": State.GOOD,
    "-": State.GOOD,
    "x": State.FALSETICKER,
    "~": State.VARIABLE,
}
_CSV_SOURCE = re.compile(r"^[\^=#],([*+x~?-]),([^,\n]+),\d+,-?\d+,([0-7]+),", re.MULTILINE)
_SOURCE = re.compile(
    r"^[\^=#]([*+x~? -])\s+(\S+)\s+\d+\s+-?\d+\s+([0-7]+)\s+\S+\s+[+-]", re.MULTILINE
)
_FIELD = re.compile(r"^([A-Z][A-Za-z]+(?: [A-Za-z]+)?) *: +(.*?) *$", re.MULTILINE)


def read(tracking: str, sources: str) -> Word | None:
    """chronyd's word; None if it gave no answer. Raises NotUnderstood.

    tracking, sources: what `chronyc -n tracking` and `chronyc -n sources` printed, with -c or not.
    """
    row = re.search(r"^[0-9A-F]{8},.*$", tracking, re.MULTILINE)
    fields = dict(_FIELD.findall(tracking))
    told = _sources(sources)
    if row:
        return _word(*_of_csv(row[0]), told)
    if "Leap status" in fields or "System time" in fields:
        return _word(*_of_text(fields), told)
    if told is not None and sources != "none" and not tracking.strip():
        server = next((s.name for s in told if s.state is State.SELECTED), "")
        why = "" if server else "no source is selected"
        return Word("chronyd", bool(server), why, server=server, sources=told)
    if is_no_answer(tracking):
        return None
    raise NotUnderstood(f"chronyc's tracking is {tracking.strip()[:60]!r}")


def _of_csv(row: str) -> tuple[str, str, str, str, float, str, str]:
    cells = row.strip().split(",")
    if len(cells) != 14:
        raise NotUnderstood(f"chronyc's tracking has {len(cells)} fields, should be 14")
    ahead = -number(cells[4], "chronyc's system time")
    return cells[0], cells[1], cells[2], cells[13], ahead, cells[10], cells[11]


def _of_text(fields: dict[str, str]) -> tuple[str, str, str, str, float, str, str]:
    for name in ("Reference ID", "Stratum", "System time", "Leap status"):
        if name not in fields:
            raise NotUnderstood(f"chronyc's tracking has no line {name!r}")
    ident, _, name = fields["Reference ID"].partition(" ")
    match = re.fullmatch(r"(\S+) seconds (slow|fast) of NTP time", fields["System time"])
    if not match:
        raise NotUnderstood(f"chronyc's system time is {fields['System time']!r}")
    ahead = number(match[1], "chronyc's system time") * (1 if match[2] == "fast" else -1)
    delay, dispersion = (
        fields.get(key, "").removesuffix(" seconds") for key in ("Root delay", "Root dispersion")
    )
    leap = fields["Leap status"]
    return ident, name.strip("()"), fields["Stratum"], leap, ahead, delay, dispersion


def _word(
    ident: str,
    name: str,
    stratum: str,
    leap: str,
    ahead: float,
    delay: str,
    dispersion: str,
    sources: tuple[Source, ...] | None,
) -> Word:
    if leap not in _LEAPS:
        raise NotUnderstood(f"chronyc's leap status is {leap!r}, not one of {', '.join(_LEAPS)}")
    level = int(number(stratum, "chronyc's stratum"))
    bound = None
    if delay and dispersion:
        bound = number(dispersion, "chronyc's root dispersion")
        bound += number(delay, "chronyc's root delay") / 2
    if leap == "Not synchronised" or ident in _NOBODY or not 0 < level < 16:
        # its offset is then 0.000000000, and means nothing
        why = f"leap status {leap}, reference {ident}, stratum {level}"
        return Word("chronyd", False, why, sources=sources)
    own = ident in _OWN_CLOCK
    return Word("chronyd", True, "", own, name or ident, level, ahead, bound, sources=sources)


def _sources(text: str) -> tuple[Source, ...] | None:
    rows = _CSV_SOURCE.findall(text) or _SOURCE.findall(text)
    if rows:
        return tuple(Source(name, _state(mark, reach)) for mark, name, reach in rows)
    # Only an answer without rows is no source; anything else is no answer.
    bare = re.search(r"^MS Name/IP", text, re.MULTILINE) or text == "none"
    return () if bare else None


def _state(mark: str, reach: str) -> State:
    # The reach register holds the last eight polls, in octal.
    return State.SILENT if int(reach, 8) == 0 else _STATES.get(mark, State.UNUSABLE)
