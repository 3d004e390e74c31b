"""The memory of GPUs: uncorrected errors, and what is put out of use because of them."""

from collections.abc import Iterator, Mapping

from clustercheck.check import Finding, Quantity, fail, ok, skip, warn

from ._gpu_health_read import Board, names
from ._gpu_health_remedies import REPLACE, RESET_WHEN_IDLE, SEE_ECC
from ._gpu_health_xid import OF_MEMORY
from ._gpu_trouble import plural

# DCGM fails a board at 63 retired pages; there is room for 64 (NVIDIA, Dynamic Page Retirement).
MOST_PAGES = 63


def judge_memory(
    found: list[Board], blamed: Mapping[str, set[int]], allowed: int
) -> Iterator[Finding]:
    """Findings on the memory of GPUs.

    blamed: by bus, the Xid that are told of already. allowed: uncorrected errors of a GPU.
    """
    yield from _ecc(found, blamed, allowed)
    yield from _rows(found)
    yield from _pages(found)


def _ecc(found: list[Board], blamed: Mapping[str, set[int]], allowed: int) -> Iterator[Finding]:
    exceeded = [board for board in found if board.yes("ecc.exceeded")]
    if exceeded:
        message = f"{names(exceeded)}: more uncorrected errors of on-chip memory than NVIDIA allows"
        yield fail("ecc", message, REPLACE)
    by_xid = [board for board in found if blamed.get(board.bus, set()) & set(OF_MEMORY)]
    rest = [board for board in found if board not in exceeded and board not in by_xid]
    told = [(board, count) for board in rest if (count := board.count("ecc.volatile")) is not None]
    many = [(board, count) for board, count in told if count > allowed]
    if many:
        words = "; ".join(f"{board.title}: {count}" for board, count in many[:8])
        message = (
            f"uncorrected memory errors since the driver was loaded: {words}; should be"
            f" {allowed} at most"
        )
        worst = max(count for _, count in many)
        yield warn("ecc", message, SEE_ECC, value=Quantity(worst, "errors"))
    elif told:
        life = sum(board.count("ecc.aggregate") or 0 for board, _ in told)
        before = f", {life} in their lives" if life else ""
        off = [board for board in found if board.values.get("ecc.mode") == "Disabled"]
        without = f"; ECC is switched off on {names(off)}" if off else ""
        most = max(count for _, count in told)
        yield ok(
            "ecc",
            f"{most or 'no'} uncorrected memory errors on {plural(len(told))} since the driver was"
            f" loaded{before}{without}",
            value=Quantity(most, "errors"),
        )
    elif off := [board for board in rest if board.values.get("ecc.mode") == "Disabled"]:
        yield skip("ecc", f"ECC is switched off on {names(off)}: memory errors are not counted")


def _rows(found: list[Board]) -> Iterator[Finding]:
    """Bad rows of memory from Ampere on: in place of which spare ones come at a reset."""
    failed = [board for board in found if board.yes("rows.failure")]
    if failed:
        message = f"{names(failed)}: a bad row of memory could not be remapped"
        yield fail("remap", message, REPLACE)
    waiting = [b for b in found if b.yes("rows.pending") and b not in failed]
    if waiting:
        message = f"{names(waiting)}: a bad row of memory is remapped only at the next reset"
        yield warn("remap", message, RESET_WHEN_IDLE)
    sound = [b for b in found if b.yes("rows.pending") is False and b.yes("rows.failure") is False]
    if sound and not failed and not waiting:
        rows = sum(
            (board.count("rows.correctable") or 0) + (board.count("rows.uncorrectable") or 0)
            for board in sound
        )
        done = f"; {rows} remapped so far" if rows else ""
        yield ok("remap", f"no row of memory waits to be remapped on {plural(len(sound))}{done}")


def _pages(found: list[Board]) -> Iterator[Finding]:
    """Bad pages of memory up to Volta and Turing: at most 64 of them can be put out of use."""
    counts = {}
    for board in found:
        single, double = board.count("pages.single"), board.count("pages.double")
        if single is not None or double is not None:
            counts[board.title] = (single or 0) + (double or 0)
    full = [board for board in found if counts.get(board.title, 0) >= MOST_PAGES]
    waiting = [board for board in found if board.yes("pages.pending") and board not in full]
    if full:
        words = ", ".join(f"{board.title}: {counts[board.title]}" for board in full)
        message = f"retired pages of memory: {words}; should be fewer than {MOST_PAGES}"
        yield fail("pages", message, REPLACE)
    if waiting:
        message = f"{names(waiting)}: a bad page of memory is retired only at the next reset"
        yield warn("pages", message, RESET_WHEN_IDLE)
    told = [board for board in found if board.yes("pages.pending") is not None]
    if told and not full and not waiting:
        retired = sum(counts.values())
        message = f"no page of memory waits to be retired on {plural(len(told))}"
        yield ok("pages", message + (f"; {retired} retired so far" if retired else ""))
