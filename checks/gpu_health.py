"""NVIDIA's GPUs are sound: no Xid that blames them, no memory errors, links and clocks as they are.

The driver tells of a fault once, in the kernel's log, as an Xid; most of them are a program's own
and no fault of the node. What lasts is in counters: uncorrected memory errors, rows that wait for
a reset to be remapped, a PCIe or NVLink that lost lanes, clocks held down by heat or power, and
what the driver itself asks for.

Nothing is run on a GPU: `dcgmi diag` takes it from jobs and answers nothing while one runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._gpu_health_links import judge_nvlink, judge_pcie
from ._gpu_health_memory import judge_memory
from ._gpu_health_probe import PROBE
from ._gpu_health_read import Board, boards, names
from ._gpu_health_remedies import (
    COOL_IT,
    DO_AS_ASKED,
    DRAIN_FOR_XID,
    FATAL_XID,
    READ_LOG,
    REPLACE,
    RESET_FOR_XID,
    RESET_WHEN_IDLE,
    SEAT_IT,
    SEE_ANSWER,
    SEE_ECC,
    SEE_GENERATION,
    SEE_LINKS,
    SEE_POWER,
    SEE_XID,
    START_FABRIC,
)
from ._gpu_health_xid import OF_REMAPPING, judge_log
from ._gpu_read import value
from ._gpu_trouble import TIMED_OUT, plural

UNKNOWN_STATES = re.compile(r"in progress|not started", re.IGNORECASE)


@dataclass(frozen=True)
class Options:
    xid_hours: Annotated[int, Ge(1), Le(8760)] = option(
        24, "how far back Xid in the kernel's log of this boot count", unit="h"
    )
    ecc_uncorrected: Annotated[int, Ge(0)] = option(
        0, "uncorrected memory errors of a GPU since its driver was loaded that pass", unit="errors"
    )
    pcie_width: Annotated[int, Ge(-1), Le(32)] = option(
        0,
        "lanes that each GPU's PCIe link must have; 0: as many as GPU and slot can, -1: PCIe is not"
        " looked at",
        unit="lanes",
    )
    nvlink_links: Annotated[int, Ge(-1), Le(64)] = option(
        -1,
        "NVLinks that each GPU must have active; 0: not looked at, -1: as many on each GPU of the"
        " node",
        unit="links",
    )
    answer_seconds: Annotated[int, Ge(1), Le(14)] = option(
        10, "how long nvidia-smi may take for one answer", unit="s"
    )


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    if "part" in facts:
        yield unknown("part", f"not all of its GPUs can be seen: {facts['part']}")
        return
    if facts["driver"] == "absent" and facts["tool"] == "absent":
        yield skip("none", "no NVIDIA driver")
        return
    answer = facts.get("answer", "")
    if facts["driver"] == "absent" and re.search("NVIDIA driver|Driver Not Loaded", answer):
        yield skip("none", "no NVIDIA driver is loaded")
        return
    if "No devices were found" in answer and facts["container"]:
        yield skip("none", "no GPU was given to this container")
        return
    found = boards(answer)
    problem = _trouble(facts, options, found)
    if problem:
        found = []
    blamed: dict[str, set[int]] = {}
    settled = {board.bus: _settled(board) for board in found if board.bus}
    for finding, by_bus in judge_log(facts, options.xid_hours, settled):
        blamed.update(by_bus)
        yield finding
    if problem:
        yield problem
        return
    yield from _answers(found)
    yield from _recovery(found, blamed)
    yield from judge_memory(found, blamed, options.ecc_uncorrected)
    yield from _throttle(found)
    yield from _fabric(found)
    yield from judge_pcie(facts, found, options.pcie_width)
    yield from judge_nvlink(facts, options.nvlink_links)
    yield from _not_told(facts, found)


def _trouble(facts: Facts, options: Options, found: list[Board]) -> Finding | None:
    """Why nvidia-smi says nothing on any GPU's health; the check gpu says more on it."""
    if facts["tool"] == "absent":
        return unknown("answer", "there is no nvidia-smi to ask", SEE_ANSWER)
    status = facts["answer_status"]
    said = " ".join(facts["answer"].split())[:200]
    if status in TIMED_OUT:
        message = f"no answer of nvidia-smi within {options.answer_seconds} s"
    elif status == "flood":
        message = "nvidia-smi prints thousands of lines that are no answer"
    elif status != "0":
        message = f"nvidia-smi ends with status {status[:20]}: {said or 'no word why'}"
    elif not found:
        message = f"nvidia-smi's answer cannot be read: {said or 'nothing'}"
    else:
        return None
    return unknown("answer", message, SEE_ANSWER)


def _settled(board: Board) -> tuple[int, ...]:
    """The Xid whose state now is told by nvidia-smi, and judged there."""
    told = board.yes("rows.pending") is not None or board.yes("pages.pending") is not None
    if board.yes("rows.failure"):
        return OF_REMAPPING
    return OF_REMAPPING[:1] if told else ()  # 64: it could not be recorded, so no state tells


def _answers(found: list[Board]) -> Iterator[Finding]:
    """A GPU that gives words in place of values; one that asks for a reset is told of as that."""
    broken = [board for board in found if board.broken and "requires" not in board.broken]
    if lost := [board for board in broken if "lost" in board.broken]:
        message = f"{names(lost)}: {lost[0].broken.strip('[]')}; should tell its state"
        yield fail("answer", message, FATAL_XID)
    if silent := [board for board in broken if board not in lost]:
        message = f"{names(silent)} answers {silent[0].broken.strip('[]')} in place of its state"
        yield unknown("answer", message, SEE_ANSWER)


def _recovery(found: list[Board], blamed: dict[str, set[int]]) -> Iterator[Finding]:
    asks: dict[str, list[Board]] = {}
    told = 0
    for board in found:
        action = value(board.values.get("action", ""))
        reset, drain = board.yes("reset"), board.yes("drain")
        wanted = ""
        if "requires" in board.broken:
            wanted = "a reset"
        elif action and "deprecated" not in action:
            wanted = "" if action.lower() == "none" else action[:40]
        elif reset or drain:
            wanted = "a reset" if reset else "Drain and Reset"
        elif reset is None and drain is None:
            continue
        told += 1
        # where an Xid has said why, that is the one finding
        if wanted and board.bus not in blamed:
            asks.setdefault(wanted, []).append(board)
    for wanted, some in asks.items():
        message = f"the driver asks for {wanted} of {names(some)}, should ask for nothing"
        yield fail("recovery", message, DO_AS_ASKED)
    if told and not asks and not blamed:
        yield ok("recovery", f"the driver asks for nothing on {plural(told)}")


def _throttle(found: list[Board]) -> Iterator[Finding]:
    """Clocks held down by heat or power; idleness and a set limit do so rightly."""
    hot, short_of_power, slow = [], [], []
    told = 0
    for board in found:
        states = {key: board.yes(key) for key in board.values if key.startswith("throttle.")}
        told += any(yes is not None for key, yes in states.items() if ".hw_" in key)
        heat = states.get("throttle.hw_thermal_slowdown") or states.get(
            "throttle.sw_thermal_slowdown"
        )
        power = states.get("throttle.hw_power_brake_slowdown")
        if heat:
            hot.append(board)
        if power:
            short_of_power.append(board)
        if states.get("throttle.hw_slowdown") and not heat and not power:
            slow.append(board)
    if hot:
        yield warn("throttle", f"clocks are held down by heat on {names(hot)}", COOL_IT)
    if short_of_power:
        message = f"clocks are held down by the power brake on {names(short_of_power)}"
        yield warn("throttle", message, SEE_POWER)
    if slow:
        message = f"clocks are held down by the board (HW slowdown) on {names(slow)}"
        yield warn("throttle", message, SEE_POWER)
    if told and not (hot or short_of_power or slow):
        yield ok("throttle", f"no clock is held down by heat or power on {plural(told)}")


def _fabric(found: list[Board]) -> Iterator[Finding]:
    """The fabric of NVSwitches, where there is one: without it CUDA does not start (error 802)."""
    states = [(b, value(b.values.get("fabric.state", ""))) for b in found]
    waiting = [board for board, state in states if UNKNOWN_STATES.fullmatch(state)]
    done = [board for board, state in states if state.lower() == "completed"]
    failed = [
        board
        for board in done
        if value(board.values.get("fabric.status", "")).lower() not in ("", "success")
    ]
    if waiting:
        state = value(waiting[0].values["fabric.state"])
        message = (
            f"the NVLink fabric is not set up on {names(waiting)}: {state}, should be Completed"
        )
        yield fail("fabric", message, START_FABRIC)
    if failed:
        status = value(failed[0].values["fabric.status"])[:60]
        message = f"the NVLink fabric was not set up on {names(failed)}: {status}"
        yield fail("fabric", message, START_FABRIC)
    if done and not failed and not waiting:
        yield ok("fabric", f"the NVLink fabric is set up on {plural(len(done))}")


ITEMS = {
    "ecc.volatile": "uncorrected memory errors",
    "rows.pending": "row remapping",
    "pages.pending": "retired pages",
    "throttle.hw_": "reasons for lower clocks",
    "action": "recovery action",
}


def _not_told(facts: Facts, found: list[Board]) -> Iterator[Finding]:
    """What no GPU here tells: it has no such thing, or its driver does not say."""
    without, old = [], []
    for key, words in ITEMS.items():
        texts = [t for b in found for k, t in b.values.items() if k == key or k.startswith(key)]
        good = [text for text in texts if value(text) and "deprecated" not in text]
        if key == "action":
            good += [t for b in found for k, t in b.values.items() if k == "reset" and value(t)]
            good = [text for text in good if "deprecated" not in text]
        if not good and any("deprecated" in text for text in texts):
            old.append(words)
        elif not good:
            without.append(words)
    # a GPU has the one or the other
    alike = [ITEMS["rows.pending"], ITEMS["pages.pending"]]
    if not set(alike) <= {*without, *old}:
        without = [words for words in without if words not in alike]
    if old:
        yield skip("field", f"this driver does not tell any more (deprecated): {', '.join(old)}")
    if without:
        yield skip("field", f"not told of these GPUs: {', '.join(without)}")


CHECK = Check(
    title="GPUs: Xid, memory errors, links, clocks, and the driver's advice",
    stale="use",
    options=Options(),
    judge=judge,
    codes={
        "none": Code("No driver of NVIDIA's, or no GPU given to this container."),
        "part": Code("Asked from within a job of Slurm that has not all GPUs of the node."),
        "xid": Code(
            "What the driver wrote into the kernel's log. Xid of programs (13, 31, 43, 45, …) blame"
            " no GPU; 63 and 94 are to be watched; the others by NVIDIA's catalogue.",
            (FATAL_XID, DRAIN_FOR_XID, RESET_FOR_XID, SEE_XID, READ_LOG),
        ),
        "answer": Code("Whether nvidia-smi tells of each GPU.", (SEE_ANSWER, FATAL_XID)),
        "recovery": Code("What the driver asks to be done with a GPU.", (DO_AS_ASKED,)),
        "ecc": Code(
            "Uncorrected memory errors since the driver was loaded, and those of on-chip memory"
            " past NVIDIA's limit.",
            (SEE_ECC, REPLACE),
        ),
        "remap": Code(
            "Bad rows of memory that wait for a reset, or for which there is no spare one.",
            (RESET_WHEN_IDLE, REPLACE),
        ),
        "pages": Code(
            "Bad pages of memory, on GPUs older than Ampere.", (RESET_WHEN_IDLE, REPLACE)
        ),
        "throttle": Code(
            "Clocks held down by heat or power. Idle GPUs and a set power limit are no fault.",
            (COOL_IT, SEE_POWER),
        ),
        "fabric": Code("Whether the GPUs have joined the fabric of NVSwitches.", (START_FABRIC,)),
        "pcie": Code(
            "Lanes of the PCIe link, and its generation while the GPU works: idle, it is lowered.",
            (SEAT_IT, SEE_GENERATION),
        ),
        "nvlink": Code("Active NVLinks of each GPU.", (SEE_LINKS,)),
        "field": Code("What no GPU here tells."),
    },
    probe=PROBE,
    probe_options=("xid_hours", "nvlink_links", "answer_seconds"),
    root_adds="Xid in the kernel's log",
    limit=60,
    after=("gpu",),
)
