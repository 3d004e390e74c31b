"""What df says, and sizes in words."""

import math
import re
from typing import NamedTuple

# From the right, since a device's name may have blanks in it, and may be alone on its line. Only
# from the start of a line: tried from each letter, long text takes time by its square.
ENTRY = re.compile(
    r"^[^\S\n]*(?P<source>\S(?:[^\n]*\S)?)\s+(?P<total>[0-9]{1,18}|-)\s+(?P<used>-?[0-9]{1,18}|-)"
    r"\s+(?P<free>-?[0-9]{1,18}|-)\s+(?:-?[0-9]{1,18}%|-)\s+(?P<target>/[^\n]*)",
    re.MULTILINE,
)

LONGEST = 4096  # characters: a header and one file system


class Usage(NamedTuple):
    """What a file system holds: KiB from `df -k`, numbers of inodes from `df -i`.

    free: what an ordinary user may still take; blocks that are kept for root do not count.
    """

    total: int
    used: int
    free: int

    @property
    def percent(self) -> float:
        """Used of what an ordinary user can ever use, in percent, as df reckons."""
        usable = self.used + self.free
        return 100 * self.used / usable if usable else 0.0


def parse_df(text: str, path: str) -> Usage | None:
    """The numbers for the file system that holds a path, 0 where df gives none ("-").

    None where it says nothing that can be read.

    Lines that an old df wraps after a long name are read as one.
    """
    entries = list(ENTRY.finditer((text.partition("\n")[2] or text)[:LONGEST]))
    holding = [e for e in entries if f"{path}/".startswith(e["target"].strip().rstrip("/") + "/")]
    # asked for one directory, df may name it by another path
    best = max(holding, key=lambda e: len(e["target"].strip()), default=next(iter(entries), None))
    if best is None:
        return None
    if "-" in (best["total"], best["used"], best["free"]):
        return Usage(0, 0, 0)
    return Usage(int(best["total"]), int(best["used"]), max(int(best["free"]), 0))


def percent_words(percent: float) -> str:
    """One digit behind the point, never rounded up over a limit: "89.9" for 89.96."""
    return f"{math.floor(percent * 10) / 10:g}"


def size_words(kib: float) -> str:
    """A size in KiB as people say it: "79.6 GiB"."""
    number, unit = float(kib), "KiB"
    for larger in ("MiB", "GiB", "TiB", "PiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.3g} {unit}" if number < 1000 else f"{number:.0f} {unit}"
