"""What disks say of their own health, by smartctl's JSON or, of one before 7.0, its text."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clustercheck.check import Facts, Finding, Remedy, fail, ok, skip, unknown, warn

from ._disk_remedies import COOL_DISK, GET_SMARTCTL, REPLACE_DISK, WATCH_DISK

# Attributes that count sectors: pending and uncorrectable ones hold data that cannot be read.
REALLOCATED, PENDING, UNCORRECTABLE = 5, 197, 198
# NVMe's critical warning, bit by bit (NVM Express base specification, SMART / health log)
CRITICAL = {
    0x01: "spare space below its threshold",
    0x02: "too hot",
    0x04: "reliability degraded",
    0x08: "read-only",
    0x10: "backup of volatile memory failed",
    0x20: "persistent memory region unreliable",
}
TOO_HOT = 0x02
CONTROLLER = re.compile(
    r"megaraid,|cciss,|areca,|3ware,|aacraid,|RAID controller|Unknown USB", re.I
)
ROW = re.compile(
    r"[ ]*([0-9]{1,3}) (\S{1,60})[ ]+0x[0-9a-f]{4}[ ]+([0-9]{3})[ ]+([0-9]{3})[ ]+([0-9]{3}|---)"
    r"[ ]+(\S{1,20})[ ]+(\S{1,20})[ ]+(\S{1,20})[ ]+([0-9]{1,15})\b[^\n]*"
)


@dataclass
class Health:
    """What one disk says. None and empty: it does not say.

    failing: names of attributes that are below their threshold now, with both values.
    sectors: raw counts of the attributes that count sectors, by number.
    wear: percent of the rated writes that are used; spare, threshold: percent.
    """

    passed: bool | None = None
    failing: list[str] = field(default_factory=list)
    sectors: dict[int, int] = field(default_factory=dict)
    grown: int | None = None
    critical: int | None = None
    wear: int | None = None
    spare: int | None = None
    threshold: int | None = None
    media_errors: int | None = None
    said: str = ""
    asleep: bool = False
    unavailable: bool = False


def judge_smart(facts: Facts, smart: str, sectors: int, wear_percent: int) -> Iterator[Finding]:
    state = facts["smart"]
    disks = facts["disks"].split()[:200]
    if state == "missing":
        if smart == "yes":
            message = "smartctl is not installed, and needed to tell how the disks are"
            yield unknown("smart", message, GET_SMARTCTL)
        else:
            yield skip("smart", "smartctl is not installed: the disks were not asked")
        return
    if state != "asked":
        return  # none, not wanted, or said once for the node as what root adds
    healthy, asleep, silent = [], [], []
    for disk in disks:
        if f"hung@smart@{disk}" in facts or facts.get(f"status@{disk}") in ("124", "137"):
            yield unknown("smart", f"{disk} did not answer smartctl within 8 s")
            continue
        if f"status@{disk}" not in facts:
            yield unknown("smart", f"{disk} was not asked")
            continue
        health = read_smart(facts[f"smart@{disk}"])
        found = list(_judge_disk(disk, health, sectors, wear_percent))
        yield from found
        if health.asleep:
            asleep.append(disk)
        elif health.unavailable:
            silent.append(disk)
        elif not found and health.passed is not None:
            healthy.append(disk)
        elif not found:
            reason = health.said or f"exit status {facts[f'status@{disk}']}"
            yield unknown("smart", f"{disk}: smartctl cannot tell how it is: {reason}")
    if healthy:
        yield ok("smart", f"healthy by their own word: {', '.join(healthy)}")
    if asleep:
        yield skip("asleep", f"asleep, and left so: {', '.join(asleep)}")
    if silent:
        message = f"{', '.join(silent)}: no SMART there, or a controller hides the disks behind it"
        yield skip("hidden", message)


def read_smart(text: str) -> Health:
    if text.startswith("{"):
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return Health(said="its JSON is not whole")
        return _from_json(told)
    return _from_text(text)


def _int(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _dig(told: Any, *path: str) -> Any:
    for key in path:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def _from_json(told: Any) -> Health:
    passed = _dig(told, "smart_status", "passed")
    health = Health(passed=passed if isinstance(passed, bool) else None)
    rows = _dig(told, "ata_smart_attributes", "table")
    for row in rows if isinstance(rows, list) else ():
        number, raw = _int(_dig(row, "id")), _int(_dig(row, "raw", "value"))
        if number is not None and raw is not None:
            health.sectors[number] = raw
        if _dig(row, "when_failed") == "now":
            name = str(_dig(row, "name"))[:40]
            health.failing.append(f"{name} {_dig(row, 'value')} below {_dig(row, 'thresh')}"[:80])
    log = _dig(told, "nvme_smart_health_information_log")
    health.critical = _int(_dig(log, "critical_warning"))
    health.wear = _int(_dig(log, "percentage_used"))
    health.spare = _int(_dig(log, "available_spare"))
    health.threshold = _int(_dig(log, "available_spare_threshold"))
    health.media_errors = _int(_dig(log, "media_errors"))
    if health.wear is None:
        health.wear = _int(_dig(told, "scsi_percentage_used_endurance_indicator"))
    health.grown = _int(_dig(told, "scsi_grown_defect_list"))
    messages = _dig(told, "smartctl", "messages")
    words = [_dig(m, "string") for m in messages] if isinstance(messages, list) else []
    _say(health, "; ".join(word for word in words if isinstance(word, str)))
    if _dig(told, "smart_support", "available") is False and health.passed is None:
        health.unavailable = True
    return health


def _from_text(text: str) -> Health:
    health = Health()
    text = text[:65536]
    if match := re.search(r"self-assessment test result: (\S{1,20})", text):
        health.passed = match[1] == "PASSED"
    elif match := re.search(r"SMART Health Status: ([^\n]{1,80})", text):
        health.passed = match[1].strip() == "OK"
    for line in text.split("\n"):
        if row := ROW.fullmatch(line[:200]):
            health.sectors[int(row[1])] = int(row[9])
            if row[8] == "FAILING_NOW":
                health.failing.append(f"{row[2]} {int(row[3])} below {row[5].lstrip('0') or '0'}")
    if match := re.search(r"Critical Warning:\s{1,60}0x([0-9a-fA-F]{2})\b", text):
        health.critical = int(match[1], 16)
    health.wear = _number(r"Percentage [Uu]sed(?: endurance indicator)?", text)
    health.spare = _number("Available Spare", text)
    health.threshold = _number("Available Spare Threshold", text)
    health.media_errors = _number("Media and Data Integrity Errors", text)
    health.grown = _number("Elements in grown defect list", text)
    _say(health, text)
    if re.search(r"SMART support is:\s{1,20}Unavailable", text) and health.passed is None:
        health.unavailable = True
    return health


def _number(name: str, text: str) -> int | None:
    match = re.search(rf"(?m)^{name}:[ ]{{1,60}}([0-9][0-9,]{{0,20}})", text)
    return int(match[1].replace(",", "")) if match else None


def _say(health: Health, words: str) -> None:
    """Take what smartctl says beside the values."""
    words = words.strip()
    health.asleep = bool(re.search(r"Device is in (?:STANDBY|SLEEP|IDLE)", words[:4096]))
    if health.passed is None and CONTROLLER.search(words[:4096]):
        health.unavailable = True
    lines = [line for line in words[:4096].split("\n") if line.strip()]
    health.said = (lines[-1] if lines else "")[:200]


def _judge_disk(disk: str, health: Health, sectors: int, wear_percent: int) -> Iterator[Finding]:
    """One finding a disk at most for what must be replaced, and one for what must be watched."""
    grave = list(_grave(health))
    if grave:
        message = f"{disk} is failing by its own word: {', '.join(grave)}"
        yield fail("smart", message, REPLACE_DISK)
        return
    if health.critical is not None and health.critical & TOO_HOT:
        yield warn("hot", f"{disk} says that it is too hot", COOL_DISK)
    slight = list(_slight(health, sectors, wear_percent))
    if slight:
        yield warn("wear", f"{disk}: {', '.join(slight)}", _remedy(health))


def _remedy(health: Health) -> Remedy:
    return REPLACE_DISK if health.failing else WATCH_DISK


def _grave(health: Health) -> Iterator[str]:
    critical = health.critical or 0
    words = [word for bit, word in CRITICAL.items() if critical & bit and bit != TOO_HOT]
    yield from words
    if health.passed is False and not words and not critical & TOO_HOT:
        yield "health FAILED"
        yield from health.failing
    spare, least = health.spare, health.threshold
    if spare is not None and least is not None and spare < least and not critical & 0x01:
        yield f"spare space {spare} %, should be {least} % or more"


def _slight(health: Health, sectors: int, wear_percent: int) -> Iterator[str]:
    yield from health.failing
    for number, words in ((PENDING, "cannot be read"), (UNCORRECTABLE, "are uncorrectable")):
        if health.sectors.get(number, 0) > 0:
            yield f"{health.sectors[number]} sectors {words}, should be 0"
    for count, words in (
        (health.sectors.get(REALLOCATED, 0), "sectors were replaced by spare ones"),
        (health.grown or 0, "defects have grown"),
    ):
        if count >= sectors:
            yield f"{count} {words}, should be below {sectors}"
    if health.wear is not None and health.wear >= wear_percent:
        yield f"{health.wear} % of the rated writes are used, should be below {wear_percent} %"
    if health.media_errors:
        yield f"{health.media_errors} media errors, should be 0"
