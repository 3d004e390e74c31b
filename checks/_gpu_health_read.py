"""What nvidia-smi says of each GPU's health, by one name for each value whatever the form.

Three forms are read: the XML of `-q -x`, the rows of `--query-gpu` and, as the last, the table for
people. Nothing is found by its place.
"""

import re
from dataclasses import dataclass, field

from ._gpu_read import BROKEN, NO_VALUE, cells, number, short
from ._gpu_table import ADDRESS, gpu_rows

# elements by the end of their path, the query's columns by their name
ELEMENTS = {
    "product_name": "name",
    "virtualization_mode": "mode",
    "gpu_recovery_action": "action",
    "gpu_reset_status/reset_required": "reset",
    "gpu_reset_status/drain_and_reset_recommended": "drain",
    "pcie_gen/current_link_gen": "generation",
    "pcie_gen/max_link_gen": "generation.most",
    "link_widths/current_link_width": "width",
    "link_widths/max_link_width": "width.most",
    "ecc_mode/current_ecc": "ecc.mode",
    "aggregate/sram_threshold_exceeded": "ecc.exceeded",
    "multiple_single_bit_retirement/retired_count": "pages.single",
    "double_bit_retirement/retired_count": "pages.double",
    "pending_retirement": "pages.pending",
    "pending_blacklist": "pages.pending",
    "remapped_rows/remapped_row_corr": "rows.correctable",
    "remapped_rows/remapped_row_unc": "rows.uncorrectable",
    "remapped_rows/remapped_row_pending": "rows.pending",
    "remapped_rows/remapped_row_failure": "rows.failure",
    "gpu_util": "busy",
    "performance_state": "state",
    "fabric/state": "fabric.state",
    "fabric/status": "fabric.status",
}
COLUMNS = {
    "name": "name",
    "gpu_recovery_action": "action",
    "pcie.link.gen.current": "generation",
    "pcie.link.gen.max": "generation.most",
    "pcie.link.width.current": "width",
    "pcie.link.width.max": "width.most",
    "ecc.mode.current": "ecc.mode",
    "ecc.errors.uncorrected.volatile.total": "ecc.volatile",
    "ecc.errors.uncorrected.aggregate.total": "ecc.aggregate",
    "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "ecc.exceeded",
    "retired_pages.single_bit_ecc.count": "pages.single",
    "retired_pages.double_bit.count": "pages.double",
    "retired_pages.pending": "pages.pending",
    "remapped_rows.correctable": "rows.correctable",
    "remapped_rows.uncorrectable": "rows.uncorrectable",
    "remapped_rows.pending": "rows.pending",
    "remapped_rows.failure": "rows.failure",
    "utilization.gpu": "busy",
    "pstate": "state",
    "fabric.state": "fabric.state",
    "fabric.status": "fabric.status",
}
REASON = re.compile(
    r"clocks_(?:throttle|event)_reason(?:s\.|_)"
    "(hw_slowdown|hw_thermal_slowdown|hw_power_brake_slowdown|sw_thermal_slowdown)"
)
TAG = re.compile(r"\s*<(/?)([a-z_]{1,60})(?:\s[^<>]{0,100})?>(?:([^<]{0,200})</)?")
START = re.compile(r'\s*<gpu id="([^"]{1,40})"')
LINK = re.compile(r"\s*Link (\d{1,3}): (\S.{0,40})")
LINKS_OF = re.compile(r"GPU (\d{1,4}): (.{1,120}?) \(UUID")


@dataclass
class Board:
    """One GPU; its values are text as nvidia-smi has it, by our own names for them.

    address: "3b:00.0" in whatever length and case it came; "" where it is not told.
    """

    index: str
    address: str = ""
    values: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """`GPU 2 (0000:3b:00.0)`."""
        return f"GPU {self.index}" + (f" ({short(self.address)})" if self.address else "")

    @property
    def name(self) -> str:
        """The product's name, "" where it is not told."""
        return self.values.get("name", "")

    @property
    def bus(self) -> str:
        """The address as the kernel's log has it: without the function."""
        return short(self.address).partition(".")[0] if self.address else ""

    @property
    def broken(self) -> str:
        """What stands in place of values when the GPU does not answer any more."""
        return next((text for text in self.values.values() if BROKEN.fullmatch(text)), "")

    def count(self, key: str) -> int | None:
        """A value that is a number ("16x", "2", "98 %"); None where there is none."""
        return number(self.values.get(key, ""))

    def yes(self, key: str) -> bool | None:
        """A value that is Yes or No, or Active or Not Active; None where it is neither."""
        word = self.values.get(key, "").lower()
        return {"yes": True, "active": True, "no": False, "not active": False}.get(word)


def names(some: list[Board]) -> str:
    """Their titles, the first three of many."""
    if len(some) > 4:
        return f"{', '.join(board.title for board in some[:3])} and {len(some) - 3} more GPUs"
    return ", ".join(board.title for board in some)


def boards(answer: str) -> list[Board]:
    """The GPUs of nvidia-smi's answer, in its order; none where it is none of the three forms."""
    return _of_xml(answer) or _of_rows(answer) or _of_table(answer)


def _of_xml(answer: str) -> list[Board]:
    found: list[Board] = []
    path: list[str] = []
    for line in answer.splitlines() if "<gpu id=" in answer else ():
        if start := START.match(line):
            found.append(Board(str(len(found)), start[1]))
            path = []
        elif found and (tag := TAG.match(line)):
            closes, name, text = tag.groups()
            if closes:
                while name in path and path.pop() != name:
                    pass
            elif text is None:
                if len(path) < 8:  # deeper than any that is looked at
                    path.append(name)
            else:
                _take(found[-1].values, [*path, name], text.strip())
    return found


def _take(values: dict[str, str], path: list[str], text: str) -> None:
    ends = (path[-1], "/".join(path[-2:]))
    if reason := REASON.fullmatch(path[-1]):
        values[f"throttle.{reason[1]}"] = text
    elif "ecc_errors" in path and (path[-1] == "total" or "uncorrectable" in path[-1]):
        span = next((s for s in ("volatile", "aggregate") if s in path), "")
        if path[-1] != "total" or "double_bit" in path:
            _add(values, f"ecc.{span}", text)
    else:
        key = next((ELEMENTS[end] for end in ends if end in ELEMENTS), "")
        if key and NO_VALUE.fullmatch(values.get(key, "")):
            values[key] = text


def _add(values: dict[str, str], key: str, text: str) -> None:
    """Errors of several kinds of memory are one number; a word stays where there is none."""
    before, more = number(values.get(key, "")), number(text)
    if more is None:
        values.setdefault(key, text)
    else:
        values[key] = str((before or 0) + more)


def _of_rows(answer: str) -> list[Board]:
    found = []
    for place, row in enumerate(cells(answer)):
        board = Board(row.get("index", "") or str(place), row.get("pci.bus_id", ""))
        for column, text in row.items():
            if reason := REASON.fullmatch(column):
                board.values[f"throttle.{reason[1]}"] = text
            elif key := COLUMNS.get(column):
                board.values[key] = text
        found.append(board)
    return found


def _of_table(answer: str) -> list[Board]:
    if "|" not in answer:
        return []
    errors = {}
    for line in answer.splitlines():
        parts = line.split("|")
        if len(parts) > 3 and (address := ADDRESS.search(parts[2])):
            errors[address[0]] = parts[3].strip()
    found = []
    for row in gpu_rows(answer):
        said = errors.get(row.address, "")
        values = {"name": row.name, "ecc.volatile": said}
        if said == "Off":
            values |= {"ecc.mode": "Disabled", "ecc.volatile": "N/A"}
        if row.broken:
            values["state"] = row.broken
        found.append(Board(row.place, row.address, values))
    return found


@dataclass
class Links:
    """The NVLinks of one GPU: numbers of those that are active, and of those that are not."""

    index: str
    name: str
    active: list[int] = field(default_factory=list)
    inactive: list[int] = field(default_factory=list)


def links(answer: str) -> list[Links]:
    """What `nvidia-smi nvlink -s` lists; the words are compared without regard to case."""
    found: list[Links] = []
    for line in answer.splitlines():
        if head := LINKS_OF.match(line):
            found.append(Links(head[1], head[2]))
        elif found and (link := LINK.match(line)):
            up = "inactive" not in link[2].lower() and re.match(r"[0-9.]{1,12} ?GB/s", link[2])
            (found[-1].active if up else found[-1].inactive).append(int(link[1]))
    return found
