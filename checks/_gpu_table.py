"""The table that nvidia-smi prints for people, where it gives no other form.

It changes with every few drivers. So nothing is read by its place, only what has a form of its own:
a row with a PCI address, "4MiB / 81920MiB", a process with its type, and ERR! for what is broken.
"""

import re
from typing import NamedTuple

GPU = re.compile(
    r"\|\s+(\d+)\s+(.*?)\s+(?:On|Off|N/A)?\s*\|\s*"
    r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s"
)
MEMORY = re.compile(r"(\d+)MiB\s*/\s*(\d+)MiB")
PROCESS = re.compile(r"\|\s+(\d+)\s.*?\b(\d+)\s+(?:C|G|C\+G|M\+C)\s+(\S.*?)\s+(\d+MiB|N/A)\s*\|")


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
    for line in re.split(r"\| (?:Processes|MIG devices):", table)[0].splitlines():
        if row := GPU.match(line):
            found.append(Row(row[1], row[2].rstrip(". "), row[3], "", "", ""))
        if found and (memory := MEMORY.search(line)):
            found[-1] = found[-1]._replace(used=memory[1], total=memory[2])
        if found and "ERR!" in line:
            found[-1] = found[-1]._replace(broken="ERR!")
    return found


def user_rows(table: str) -> list[UserRow]:
    """The processes of the table's last part."""
    rows = [PROCESS.match(line) for line in table.partition("| Processes:")[2].splitlines()]
    return [UserRow(r[1], r[2], r[3], r[4].removesuffix("MiB")) for r in rows if r]
