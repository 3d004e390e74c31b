"""What the clock is: findings from measured offsets, each with its uncertainty.

An offset counts as beyond a limit only where it is so with all of its uncertainty, and as within
it likewise. Where the uncertainty spans the lower limit, the finding is unknown.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from clustercheck.check import Facts, Finding, Quantity, Status, fail, ok, unknown, warn

from ._ntp_remedy import FIND_OUT, NEARER, WHICH_IS_WRONG, WRONG_SOURCE
from ._ntp_word import Word

BREAKS = "Slurm's job credentials break at 120 s, Munge and Kerberos at 300 s"


class Limits(NamedTuple):
    """Seconds, both."""

    warn: float
    fail: float

    def severity(self, least: float) -> tuple[Callable[..., Finding], float]:
        """For what is beyond `warn`: the maker of the finding and the limit that it is beyond."""
        return (fail, self.fail) if least > self.fail else (warn, self.warn)


class Clock(NamedTuple):
    """The node's clock is `offset` seconds ahead of `whom`, give or take `uncertainty`.

    known: `whom` is the reference, not a clock that may itself be wrong.
    """

    offset: float
    uncertainty: float
    whom: str
    known: bool


def measured(facts: Facts, limits: Limits) -> Clock | None:
    """What was measured, against the best that could be asked; None where nothing was."""
    if "clock.offset" not in facts:
        return None
    offset, uncertainty = _pair(facts, "clock")
    if "here.offset" in facts:
        here, doubt = _pair(facts, "here")
        whom = f"the reference {facts['here.server']}"
        if uncertainty and abs(here) - doubt > limits.warn:  # else the node is this machine
            whom += f" (this machine itself is {side(here)} it)"
        return Clock(offset + here, uncertainty + doubt, whom, True)
    if uncertainty == 0:  # this machine, held against itself
        return None
    reason = facts.get("here.error", "no reference was asked")
    return Clock(offset, uncertainty, f"this machine's clock ({reason})", False)


def own_clock(here: Facts, limits: Limits) -> str:
    """What is wrong with the clock of this machine, or ""."""
    if "here.offset" not in here:
        return ""
    offset, doubt = _pair(here, "here")
    if abs(offset) - doubt <= limits.warn:
        return ""
    return (
        f"this machine's own clock is {side(offset, doubt)} the reference {here['here.server']}, "
        f"should be within {limits.warn:g} s; what is said of the nodes' clocks allows for it"
    )


def judge_clock(clock: Clock, limits: Limits, word: Word | None) -> Iterator[Finding]:
    """word: that of the daemon that keeps the clock, to be held against the measurement."""
    offset, uncertainty, whom, known = clock
    least, most = abs(offset) - uncertainty, abs(offset) + uncertainty
    value = Quantity(offset, "s")
    said = f"the clock is {side(offset, uncertainty)} {whom}"
    if least > limits.warn:
        make, limit = limits.severity(least)
        said += f", should be within {limit:g} s"
        said += "" if known else "; either may be wrong"
        if word is None or not word.synchronised or word.by_itself or word.offset is None:
            yield make("offset", said, FIND_OUT, value=value)
        elif abs(word.offset) - (word.bound or 0) <= limit or word.offset * offset < 0:
            said += f", yet {word.daemon} says that it is {side(word.offset)} {word.server}"
            remedy = WRONG_SOURCE if known else WHICH_IS_WRONG
            yield make("daemon_wrong", said, remedy, value=value)
        elif not word.lasting:
            yield make("offset", said, FIND_OUT, value=value)
        # else the daemon itself says so, which is a finding as grave already
    elif most <= limits.warn:
        yield ok("offset", said, value=value)
    else:
        what = "too coarse" if uncertainty > limits.warn else "not fine enough"
        said += f": {what} to tell whether it is within {limits.warn:g} s"
        yield unknown("coarse", said, NEARER)


def is_settled(facts: Facts, spread: Finding, limits: Limits, spread_limits: Limits) -> bool:
    """Does the reference say already what a difference to other nodes says, or clear the node?

    limits: those of the offset from the reference.
    """
    clock = measured(facts, limits)
    if clock is None or not clock.known:
        return False
    if abs(clock.offset) + clock.uncertainty <= spread_limits.warn:
        return True  # then the others are off
    least = abs(clock.offset) - clock.uncertainty
    return least > limits.warn and (spread.status is Status.WARN or least > limits.fail)


def judge_spread(
    facts: Mapping[str, Facts], limits: Mapping[str, Limits]
) -> Iterator[tuple[str, Finding]]:
    """Each node's clock against the median of all; of two nodes, against each other."""
    clocks = {name: _pair(f, "clock") for name, f in facts.items() if "clock.offset" in f}
    if len(clocks) < 2:
        return
    middle = statistics.median(offset for offset, _ in clocks.values())
    doubt = statistics.median(uncertainty for _, uncertainty in clocks.values())
    for name, (offset, uncertainty) in clocks.items():
        if len(clocks) == 2:  # the middle lies half way, its doubt is the mean of both
            distance, total = 2 * (offset - middle), 2 * doubt
            whom = "the other node's, which of them is wrong is not known"
        else:
            distance, total = offset - middle, uncertainty + doubt
            whom = f"the median of {len(clocks)} nodes"
        least = abs(distance) - total
        if least > limits[name].warn:
            make, limit = limits[name].severity(least)
            said = f"the clock is {side(distance, total)} {whom}"
            said += f", should be within {limit:g} s; {BREAKS}"
            yield name, make("spread", said, FIND_OUT, value=Quantity(distance, "s"))


def _pair(facts: Facts, name: str) -> tuple[float, float]:
    """Offset and uncertainty in seconds; raises ValueError where they are no numbers."""
    offset, uncertainty = float(facts[f"{name}.offset"]), float(facts[f"{name}.uncertainty"])
    if not math.isfinite(offset) or not 0 <= uncertainty < math.inf:
        raise ValueError(f"{name} is {offset} s, give or take {uncertainty} s")
    return offset, uncertainty


def side(ahead: float, uncertainty: float | None = None) -> str:
    """ "0.002 s (± 0.001 s) ahead of", said of a clock."""
    doubt = f" (± {span(uncertainty)})" if uncertainty is not None else ""
    return f"{span(abs(ahead))}{doubt} {'ahead of' if ahead >= 0 else 'behind'}"


def span(seconds: float) -> str:
    """Seconds to the millisecond, finer where they are less, to 0.1 s where they are many."""
    decimals = 6 if seconds < 0.001 else 3 if seconds < 1000 else 1
    return f"{seconds:.{decimals}f} s"
