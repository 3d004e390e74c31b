"""What the kernel's log has on GPUs: Xid of the driver, SXid of the switches between GPUs.

Most Xid are a program's own fault, or follow another one. Which is which is said by a table that
comes with the package; an SXid counts in numbers of its own and says itself whether it is fatal.
"""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any, Literal, NamedTuple

from clustercheck.check import Facts, Finding, fail, ok, unknown, warn

from ._gpu_health_remedies import DRAIN_FOR_XID, FATAL_XID, READ_LOG, RESET_FOR_XID, SEE_XID

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Read when the checks are loaded, since a judge opens no file; understood when it is needed.
TEXT = resources.files("clustercheck").joinpath("data/xid.toml").read_text(encoding="utf-8")

Grade = Literal["fatal", "drain", "reset", "watch", "note"]
GRADES: tuple[Grade, ...] = ("note", "watch", "reset", "drain", "fatal")
CLASSES: dict[str, Grade] = {"fatal": "fatal", "drain": "drain", "reset": "reset"}
REMEDIES = {"fatal": FATAL_XID, "drain": DRAIN_FOR_XID, "reset": RESET_FOR_XID, "watch": SEE_XID}

LOST = 79  # what "has fallen off the bus" means where the driver gives no number
ADVICE = 154
# Of NVLink 5; the words say whether the link is lost or goes on.
OF_LINKS = range(144, 151)
# A row is put out of use at the next reset, a program was hit and the GPU goes on: watched.
WATCHED = (63, 94)
# What nvidia-smi tells as a state of now, and the driver told as an event.
OF_MEMORY = (48, 94, 95, 140, 171, 172)
OF_REMAPPING = (63, 64)

# of a MIG instance, its number stands behind the address: "(PCI:0000:01:00 GPU-I:05)"
EVENT = re.compile(r"(S?)Xid \((?:PCI:)?([0-9a-fA-F:.]{4,20})(?: GPU-[^)]{1,40})?\): (\d{1,6})")
GONE = re.compile(r"GPU (?:at )?(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})")
TIME = re.compile(r"\[ {0,9}(\d{1,10}\.\d{1,9})\]")
ACTION = re.compile(r" to 0x[0-9a-fA-F]{1,4} \(([A-Za-z0-9 ]{1,40})\)")
SAID_IN_GENERAL = ("drain the GPU and reset it", "nothing now", "not stated in the catalogue copy")


class Xid(NamedTuple):
    """What the table has on a code; grade "note" is the program's own, or nothing to do."""

    meaning: str
    grade: Grade
    action: str


class Event(NamedTuple):
    """One kind of event on one GPU or switch.

    times: how often. place: of its last line in the log. age: seconds; None where it has no time.
    switch: an SXid.
    """

    bus: str
    code: int
    times: int
    place: int
    age: float | None
    line: str
    switch: bool = False


@lru_cache(maxsize=1)
def table() -> dict[int, Xid]:
    """The codes that have a meaning."""
    rows: list[dict[str, Any]] = tomllib.loads(TEXT)["xid"]
    found = {}
    for row in rows:
        its: Grade = CLASSES.get(row["class"], "note")
        if row["code"] in WATCHED:
            its = "watch"
        found[row["code"]] = Xid(row["meaning"], its, row["action"])
    return found


def events(facts: Facts) -> list[Event]:
    """The events of the log, each kind once for each GPU."""
    uptime = _seconds(facts.get("uptime", ""))
    found: dict[tuple[bool, str, int, str], Event] = {}
    for text in facts["log"].splitlines():
        count, _, rest = text.partition(" ")
        place, _, line = rest.partition(" ")
        if not (re.fullmatch("[0-9]{1,9}", count) and re.fullmatch("[0-9]{1,9}", place)):
            continue
        if what := EVENT.search(line):
            switch, bus, code = bool(what[1]), what[2], int(what[3])
        elif gone := GONE.search(line):
            switch, bus, code = False, gone[1], LOST
        else:
            continue
        time = TIME.search(line)
        age = None
        if uptime is not None and time:
            age = max(uptime - float(time[1]), 0.0)
        bus = _bus(bus)
        event = Event(bus, code, int(count), int(place), age, line, switch)
        key = (switch, bus, code, _word(line))
        before = found.get(key)
        if before is None or before.place < event.place:
            found[key] = event
    return list(found.values())


def _bus(text: str) -> str:
    """`0000:3b:00`, however long the domain was, without the function."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:].rjust(4, '0')}:{rest.partition('.')[0]}"


def _word(line: str) -> str:
    if re.search("Non-?fatal", line):
        return "lesser"
    return "fatal" if "Fatal" in line else ""


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?", text) else None


def grade(event: Event) -> Grade:
    """How much a kind of event says against the GPU."""
    word = _word(event.line)
    if event.switch:
        return "drain" if word == "fatal" else "watch"
    if event.code == ADVICE:
        action = ACTION.search(event.line)
        if action is None:
            return "watch"
        wanted = action[1].lower()
        if wanted == "none":
            return "note"
        return "fatal" if "reboot" in wanted else "drain" if "drain" in wanted else "reset"
    if event.code in OF_LINKS and word == "lesser":
        return "watch"
    row = table().get(event.code)
    return row.grade if row else "watch"


def judge_log(
    facts: Facts, hours: int, settled: dict[str, tuple[int, ...]]
) -> Iterator[tuple[Finding, dict[str, set[int]]]]:
    """One finding on the log, and the codes that it blames by the bus of the GPU.

    settled: by bus, codes whose state now is known and told from elsewhere.
    """
    source, log = facts["log_from"], facts["log"]
    tail = dict(line.split(" ", 1) for line in log.splitlines()[-3:] if " " in line)
    if source == "refused":  # said once for the node, as what root adds
        return
    if source == "none":
        yield (
            unknown("xid", "the kernel's log: there is neither dmesg nor journalctl", READ_LOG),
            {},
        )
        return
    if tail.get("ended") != "0" or source not in ("dmesg", "journal"):
        ended = tail.get("ended", "unknown")[:20]
        message = f"the kernel's log cannot be read (exit status {ended})"
        yield unknown("xid", message, READ_LOG), {}
        return
    if source == "dmesg" and not re.fullmatch("[1-9][0-9]{0,9}", tail.get("lines", "")):
        yield unknown("xid", "the kernel's log is empty, should begin with the boot", READ_LOG), {}
        return
    span = _span(facts, tail.get("first", ""), hours)
    recent = [e for e in events(facts) if e.age is None or e.age <= hours * 3600]
    over = {e.bus: e.place for e in recent if e.code == ADVICE and grade(e) == "note"}
    blamed: dict[Grade, list[Event]] = {}
    notes: list[Event] = []
    for event in sorted(recent, key=lambda event: event.place):
        its = grade(event)
        past = event.place < over.get(event.bus, -1) and its in ("reset", "drain", "watch")
        if past or (event.code in settled.get(event.bus, ()) and not event.switch):
            its = "note"
        (notes if its == "note" else blamed.setdefault(its, [])).append(event)
    worst = max(blamed, key=GRADES.index, default="note")
    if worst == "note":
        of = f"; of programs or of no weight: {_listed(notes)}" if notes else ""
        yield ok("xid", f"no Xid that blames a GPU {span}{of}"), {}
        return
    named = [e for its in reversed(GRADES) for e in blamed.get(its, [])]
    grave = {e.bus for e in named if grade(e) != "watch"}
    named = [e for e in named if grade(e) != "watch" or e.bus not in grave]
    message = f"{_told(named)} {span}"
    by_bus: dict[str, set[int]] = {}
    for event in named:
        by_bus.setdefault(event.bus, set()).add(event.code)
    make = warn if worst == "watch" else fail
    yield make("xid", message, REMEDIES[worst]), by_bus


def _span(facts: Facts, first: str, hours: int) -> str:
    """How far back the log was looked at: it may begin later than asked for."""
    uptime, begins = _seconds(facts.get("uptime", "")), _seconds(first)
    if uptime is None or (begins is None and facts["log_from"] == "dmesg"):
        return "in the kernel's log"
    if uptime <= hours * 3600 and not (begins and begins > 60):
        return f"since the boot {_hours(uptime)} ago"
    if facts["log_from"] == "dmesg" and begins is not None and uptime - begins < hours * 3600:
        return f"in the last {_hours(max(uptime - begins, 0))}, as far back as the log goes"
    return f"in the last {hours} h"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _name(event: Event) -> str:
    return f"{'SXid' if event.switch else 'Xid'} {event.code}"


def _by_code(some: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in some:
        found.setdefault(_name(event), []).append(event)
    return found


def _where(some: list[Event]) -> str:
    buses = list(dict.fromkeys(event.bus for event in some))
    return ", ".join(buses[:3]) + (f" and {len(buses) - 3} more" if len(buses) > 3 else "")


def _listed(some: list[Event]) -> str:
    kinds = _by_code(some)
    words = [f"{name} on {_where(of)}" for name, of in list(kinds.items())[:6]]
    return "; ".join(words) + (f"; and {len(kinds) - 6} kinds more" if len(kinds) > 6 else "")


def _told(some: list[Event]) -> str:
    """`Xid 79 on 0000:18:00, 3 min ago (the GPU no longer answers on PCIe: reboot …)`"""
    words = []
    kinds = _by_code(some)
    for name, of in list(kinds.items())[:5]:
        times = sum(event.times for event in of)
        ages = [event.age for event in of if event.age is not None]
        ago = f", {_hours(min(ages))} ago" if ages else ""
        often = f", {times} times" if times > len(of) else ""
        words.append(f"{name} on {_where(of)}{often}{ago} ({_meaning(of[-1])})")
    more = f"; and {len(kinds) - 5} kinds more" if len(kinds) > 5 else ""
    return "; ".join(words) + more


def _meaning(event: Event) -> str:
    if event.switch:
        fatal = "" if _word(event.line) == "fatal" else "not "
        return f"a fault of an NVSwitch that it calls {fatal}fatal"
    if event.code == ADVICE and (action := ACTION.search(event.line)):
        return f"the driver asks for: {action[1]}"
    row = table().get(event.code)
    if row is None:
        return "a code without a known meaning"
    meaning = (
        row.meaning[0].lower() + row.meaning[1:] if row.meaning[1:2].islower() else row.meaning
    )
    return meaning if row.action in SAID_IN_GENERAL else f"{meaning}: {row.action}"
