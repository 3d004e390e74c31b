"""From what a node told to findings. Honesty lives here: what was not found out is UNKNOWN."""

import dataclasses
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from clustercheck.check import AnyCheck, Code, Finding, MissingFact, Status, skip, unknown
from clustercheck.facts import Told

# Codes that the frame gives for any check.
COMMON_CODES = {
    "limit": Code("The probe did not end within its limit; what it waits on is named."),
    "not_answered": Code("The probe did not report what the judge needs, or ended too early."),
    "missing_tool": Code("A command that the probe needs is not on the node."),
    "needs_root": Code("The probe is worth nothing without root; see access.root."),
    "no_peers": Code("It is tried between nodes, and no other node was asked."),
    "not_compared": Code("Its answer is too long to be kept for comparing it with other nodes."),
    "left_out": Code("There are more findings than any honest answer leads to."),
    "blocked": Code("Another check failed, which explains or prevents this one."),
    "crashed": Code("The check itself is at fault: please report it."),
}

MESSAGE_LIMIT = 2000  # characters; the longest honest one has some hundred
FINDINGS_LIMIT = (
    50_000  # characters of all messages of a check on a node, with what goes round them
)
PEER_LIMIT = 2000  # as many more for each peer


def judge(
    check: AnyCheck,
    told: Told | None,
    options: Any,
    *,
    failed: Sequence[str] = (),
    peers: Sequence[str] = (),
) -> list[Finding]:
    """The findings of one check on one node; never empty, never raises.

    told: what the node said, its facts with those that were taken here; None for no answer.
    failed: names of checks that failed on the node.
    peers: the peers that the probe was told of. A check must speak of each; with none, it may
        still have something to say of the node itself.
    """
    causes = [name for name in check.after if name in failed]
    if causes:
        return [skip("blocked", f"blocked by {', '.join(causes)}")]
    if told is None:
        return [unknown("not_answered", "the node gave no answer to it")]
    if told.missing:
        return [unknown("missing_tool", f"{told.missing} is not installed, and needed to tell")]
    if told.needs_root:
        return [skip("needs_root", "not looked at: needs root")]
    if told.status == "limit":
        return [unknown("limit", _limit_message(check, told))]
    if not told.whole:
        # Facts that came before the break might tell half of the story, and sound like a pass.
        return [unknown("not_answered", _broken_off(told))]
    try:
        findings = list(check.judge(told.facts, options))
    except MissingFact as missing:
        detail = f" ({told.error})" if told.error else ""
        return [unknown("not_answered", f"{missing}{detail}")]
    except Exception as error:
        return [crashed(error)]
    if check.probe_peers:
        said = {f.peer for f in findings}
        findings += [
            unknown("not_answered", "nothing was reported", peer=peer)
            for peer in peers[: check.peer_count(options)]
            if peer not in said
        ]
        if not peers and not findings:
            findings = [skip("no_peers", "no other node to try")]
    limit = FINDINGS_LIMIT + PEER_LIMIT * len(peers)
    return bounded(findings, limit) or [unknown("not_answered", "the check came to no finding")]


def bounded(findings: Sequence[Finding], limit: int = FINDINGS_LIMIT) -> list[Finding]:
    """The findings within bounds, whatever the facts were: else one node could fill our memory.

    What is left out is what is least bad.
    """
    short = [
        dataclasses.replace(f, message=f"{f.message[:MESSAGE_LIMIT]}…")
        if len(f.message) > MESSAGE_LIMIT
        else f
        for f in findings
    ]
    if sum(len(f.message) + 100 for f in short) <= limit:
        return short
    kept, room = set(), limit
    for place in sorted(range(len(short)), key=lambda place: -short[place].status.place):
        room -= len(short[place].message) + 100
        if room < 0:
            break
        kept.add(place)
    words = f"{len(short) - len(kept)} more findings are left out"
    return [*(short[place] for place in sorted(kept)), unknown("left_out", words)]


def crashed(error: Exception) -> Finding:
    """UNKNOWN for a check that raised: its error and the line where it did."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return unknown("crashed", f"the check itself failed: {type(error).__name__}: {error}{place}")


def _broken_off(told: Told) -> str:
    detail = f": {told.error}" if told.error else ""
    if not told.status:
        return f"the answer broke off before the probe's end{detail}"
    if told.status in ("153", "25"):  # SIGXFSZ, as a shell's status and as a plain one
        return f"the probe's output is too long, and was cut{detail}"
    return f"the probe ended early (status {told.status}){detail}"


def _limit_message(check: AnyCheck, told: Told) -> str:
    message = f"the probe did not end within {check.limit:g} s"
    if told.hung:
        message += f"; it waits on {told.hung}"
    if told.stays:
        message += f"; still there after it was killed: {told.stays}"
    return message


def worst(findings: Iterable[Finding]) -> Status:
    """The worst status; UNKNOWN for no findings at all, for nothing checked is no success."""
    return max((f.status for f in findings), default=Status.UNKNOWN)
