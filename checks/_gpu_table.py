"""The table that nvidia-smi prints for people, where it gives no other form.

It changes with every few drivers. So nothing is read by its place, only what has a form of its own:
a row with a PCI address, "4MiB / 81920MiB", a process with its type, and ERR! for what is broken.
"""

import re
from typing import NamedTuple

ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]")
MEMORY = re.compile(r"(?<![0-9])([0-9]{1,9})MiB\s?/\s{0,9}([0-9]{1,9})MiB")
USED = re.compile(r"([0-9]{1,9})MiB|N/A")
TYPES = ("C", "G", "C+G", "M+C", "M")


class Row(NamedTuple):
    """A GPU of the table; its name may be cut.

    place: its number there. used, total: MiB, "" where they are not told.
    """

    place: str
    name: str
    address: str
    used: str
    total: str
    broken: str


class UserRow(NamedTuple):
    """A process of the table; used is MiB, "" where it is not told."""

    place: str
    pid: str
    name: str
    used: str


def gpu_rows(table: str) -> list[Row]:
    """The GPUs of the table's first part."""
    found: list[Row] = []
    for line in re.split(r"\| (?:Processes|MIG devices):", table, maxsplit=1)[0].splitlines():
        if row := _gpu(line):
            found.append(row)
        if found and (memory := MEMORY.search(line)):
            found[-1] = found[-1]._replace(used=memory[1], total=memory[2])
        if found and "ERR!" in line:
            found[-1] = found[-1]._replace(broken="ERR!")
    return found


def _gpu(line: str) -> Row | None:
    """`|   0  Tesla K80           On   | 0000:05:00.0     Off |                    0 |`"""
    cells = line.split("|", 3)
    if len(cells) != 4 or cells[0].strip():
        return None
    number, *name = cells[1].split() or [""]
    if name and name[-1] in ("On", "Off", "N/A"):  # persistence
        name.pop()
    address = next(iter(cells[2].split()), "")
    if not number.isdecimal() or not name or not ADDRESS.fullmatch(address):
        return None
    return Row(number, " ".join(name).rstrip(". "), address, "", "", "")


def user_rows(table: str) -> list[UserRow]:
    """The processes of the table's last part."""
    rows = map(_user, table.partition("| Processes:")[2].splitlines())
    return [row for row in rows if row]


def _user(line: str) -> UserRow | None:
    """`|    0   N/A  N/A      4711      C   python3                   30512MiB |`"""
    number, *words = line.strip("| \t").split() or [""]
    if not number.isdecimal() or len(words) < 4:
        return None
    used = USED.fullmatch(words[-1])
    for place in range(1, min(len(words) - 2, 6)):
        if used and words[place] in TYPES and words[place - 1].isdecimal():
            name = " ".join(words[place + 1 : -1])
            return UserRow(number, words[place - 1], name, used[1] or "")
    return None
