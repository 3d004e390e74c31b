"""The links of GPUs: PCIe to the node, NVLink among themselves."""

import re
from collections.abc import Iterator

from clustercheck.check import Facts, Finding, fail, ok, skip, unknown, warn

from ._gpu_health_read import Board, Links, links
from ._gpu_health_remedies import SEAT_IT, SEE_GENERATION, SEE_LINKS
from ._gpu_read import short
from ._gpu_trouble import TIMED_OUT, plural

LANES = (1, 2, 4, 8, 12, 16, 32)
# Boards whose links lead through the machine's own board, so that none being active is no design;
# cards of PCIe have a bridge or have none.
WIRED = re.compile(r"SXM|HBM3$|\bH200$|\bG?B[23]00$")
# An idle GPU lowers the link's generation; one that is so busy has it where it can be.
BUSY = 50


def judge_pcie(facts: Facts, found: list[Board], wanted: int) -> Iterator[Finding]:
    """Findings on width and generation.

    wanted: lanes, 0 for as many as GPU and slot can, -1 for no matter.
    """
    if wanted < 0:
        return
    of_bus = _widths(facts)
    narrow, told, notes = [], 0, []
    widest: dict[str, int] = {}
    now: dict[str, int] = {}
    for board in found:
        width = of_bus.get(short(board.address), (0, 0))[0] or board.count("width") or 0
        if width in LANES:
            now[board.title] = width
            widest[board.name] = max(widest.get(board.name, 0), width)
    for board in found:
        if board.title not in now:
            continue
        told += 1
        width = now[board.title]
        machine = value_of(board, "mode") not in ("", "none")  # its slot is not a real one
        most = board.count("width.most") or 0
        can = 0 if machine else of_bus.get(short(board.address), (0, 0))[1]
        least = wanted or max(can, widest[board.name])
        if width < least:
            narrow.append((board, width, least))
        elif width < most:
            notes.append(f"{board.title} has x{width} of its x{most}")
    if narrow:
        words = "; ".join(
            f"{board.title}: x{width}, should be x{least}" for board, width, least in narrow
        )
        make = fail if wanted else warn
        yield make("pcie", f"PCIe lanes: {words}", SEAT_IT)
    slow = [board for board in found if _is_slow(board)]
    if slow:
        words = "; ".join(
            f"{board.title}: generation {board.count('generation')} at {board.count('busy')} % use,"
            f" should be {board.count('generation.most')}"
            for board in slow
        )
        yield warn("pcie", f"PCIe link: {words}", SEE_GENERATION)
    if told and not narrow and not slow:
        widths = " and ".join(f"x{width}" for width in sorted(set(now.values())))
        note = f"; {'; '.join(notes[:4])}, which may be the slot's" if notes else ""
        yield ok("pcie", f"PCIe {widths} on {plural(told)}{note}")
    elif found and not told:
        yield skip("pcie", "the width of the PCIe link is not told")


def value_of(board: Board, key: str) -> str:
    """A value in small letters, without what stands for none."""
    text = board.values.get(key, "").lower()
    return "" if text in ("n/a", "[n/a]") else text


def _is_slow(board: Board) -> bool:
    now, most, busy = (board.count(key) for key in ("generation", "generation.most", "busy"))
    if now is None or most is None or busy is None or value_of(board, "mode") not in ("", "none"):
        return False
    return now < most and busy >= BUSY and value_of(board, "state") == "p0"


def _widths(facts: Facts) -> dict[str, tuple[int, int]]:
    """By address: the lanes that a GPU has, and that both it and its slot can; 0 where unknown."""
    found = {}
    for line in facts.get("widths", "").splitlines():
        words = line.split(" ")
        if len(words) == 4:
            lanes = [int(w) if re.fullmatch("[0-9]{1,2}", w) else 0 for w in words[1:]]
            width, most, slot = (lane if lane in LANES else 0 for lane in lanes)
            found[short(words[0])] = (width, min(most, slot))
    return found


def judge_nvlink(facts: Facts, wanted: int) -> Iterator[Finding]:
    """Findings on NVLink; wanted: active links of each GPU, 0 for none, -1 for equal numbers."""
    if wanted == 0:
        yield skip("nvlink", "NVLink is not looked at: no link is wanted")
        return
    status = facts["nvlink_status"]
    if status == "-":  # a GPU whose kind has none, and none was wanted
        return
    if status != "0":
        said = " ".join(facts["nvlink"].split())[:120]
        why = "no answer in time" if status in TIMED_OUT else f"status {status[:20]}: {said}"
        yield unknown("nvlink", f"nvidia-smi does not tell of NVLink: {why}", SEE_LINKS)
        return
    found = links(facts["nvlink"])
    most: dict[str, int] = {}
    for gpu in found:
        most[gpu.name] = max(most.get(gpu.name, 0), len(gpu.active))
    dark = [gpu for gpu in found if not gpu.active and WIRED.search(gpu.name)]
    if wanted < 0 and 1 < len(found) == len(dark):
        message = f"no NVLink is active on any of {plural(len(found))} that the board connects"
        yield warn("nvlink", f"{message}, should be all", SEE_LINKS)
        return
    if not found or not any(gpu.active or gpu.inactive for gpu in found):
        all_down = "inactive" in facts["nvlink"].lower()
        message = "no NVLink of any GPU is active" if all_down else "no GPU has NVLink"
        if wanted > 0:
            yield fail("nvlink", f"{message}, should be {wanted} links on each", SEE_LINKS)
        else:
            yield skip("nvlink", message)
        return
    few = [gpu for gpu in found if len(gpu.active) < (wanted if wanted > 0 else most[gpu.name])]
    if few:
        words = "; ".join(_told(gpu, wanted if wanted > 0 else most[gpu.name]) for gpu in few)
        make = fail if wanted > 0 else warn
        like = "" if wanted > 0 else ", as on others of the node"
        yield make("nvlink", f"NVLinks active: {words}{like}", SEE_LINKS)
    elif wanted < 0 and len(found) == 1:
        gpu = found[0]
        yield skip(
            "nvlink", f"{len(gpu.active)} NVLinks active, {len(gpu.inactive)} not; none wanted"
        )
    else:
        counts = " and ".join(str(n) for n in sorted({len(gpu.active) for gpu in found}))
        yield ok("nvlink", f"{counts} NVLinks active on each of {plural(len(found))}")


def _told(gpu: Links, least: int) -> str:
    down = f" (not active: {', '.join(map(str, gpu.inactive))})" if gpu.inactive else ""
    return f"GPU {gpu.index}: {len(gpu.active)}{down}, should be {least}"
