"""What makes a kept result stale: a table of what was, what is, and whether it still holds."""

import pytest

from clustercheck.check import Finding, Remedy, Stale, fail, ok, skip, unknown, warn
from clustercheck.freshness import (
    Clock,
    Moment,
    NodeState,
    Stamp,
    failed,
    fresh,
    same_boot,
)

ASKED = 1_000_000.0
MINUTE, HOUR = 60.0, 3600.0
SLURM = NodeState(boot=ASKED - HOUR, slurmd=ASKED - HOUR + 30, busy=ASKED - 1800)
PROBED = NodeState(boot_id="a", cpu=500)
REBOOTED = SLURM._replace(boot=ASKED + 20, slurmd=ASKED + 50)


def later(seconds: float, max_age: float = 15 * MINUTE, since: float | None = None) -> Moment:
    now = ASKED + seconds
    return Moment(now, now if since is None else since, max_age)


@pytest.mark.parametrize(
    ("stale", "before", "now", "moment", "holds"),
    [
        # time: its age alone, and a boot
        ("time", SLURM, SLURM, later(14 * MINUTE), True),
        ("time", SLURM, None, later(14 * MINUTE), True),
        ("time", SLURM, SLURM, later(16 * MINUTE), False),
        ("time", SLURM, REBOOTED, later(MINUTE), False),
        # boot: whatever its age, until the node boots, or its slurmd starts
        ("boot", SLURM, SLURM, later(3 * HOUR), True),
        ("boot", SLURM, SLURM, later(9 * HOUR), False),
        ("boot", SLURM, REBOOTED, later(MINUTE), False),
        ("boot", SLURM, SLURM._replace(slurmd=ASKED + 9), later(MINUTE), False),
        ("boot", SLURM, SLURM._replace(boot=SLURM.boot + 1), later(MINUTE), True),
        ("boot", SLURM, None, later(MINUTE), False),
        ("boot", NodeState(), SLURM, later(MINUTE), False),
        ("boot", PROBED, PROBED, later(3 * HOUR), True),
        ("boot", PROBED, PROBED._replace(boot_id="b"), later(MINUTE), False),
        ("boot", PROBED, SLURM, later(MINUTE), False),  # of different kinds: nothing is known
        # use, by Slurm: idle ever since
        ("use", SLURM, SLURM, later(3 * HOUR), True),
        ("use", SLURM, SLURM._replace(busy=ASKED + 5), later(MINUTE), False),
        ("use", SLURM, SLURM._replace(busy=ASKED - 2), later(MINUTE), False),  # clocks differ
        ("use", SLURM, SLURM._replace(in_use=True), later(MINUTE), False),
        ("use", SLURM, SLURM._replace(in_use=True), later(5), True),  # it was just looked at
        ("use", SLURM, REBOOTED, later(MINUTE), False),
        # use, by the probe: what daemons take is no use
        ("use", PROBED, PROBED._replace(cpu=510), later(5 * MINUTE), True),
        ("use", PROBED, PROBED._replace(cpu=700), later(5 * MINUTE), False),
        ("use", PROBED, PROBED._replace(cpu=510), later(16 * MINUTE), False),
        ("use", PROBED, PROBED._replace(cpu=-1), later(MINUTE), False),
        # no age can be told of what comes from the future: the clock was set back
        ("time", SLURM, SLURM, later(-MINUTE), False),
        ("boot", SLURM, SLURM, later(-MINUTE, since=0), False),
        ("time", SLURM, SLURM, later(-2), True),  # another machine's clock
        # nothing can be fresher than what was asked after the caller came
        ("use", SLURM, SLURM._replace(in_use=True), later(MINUTE, since=ASKED - 1), True),
        ("time", SLURM, None, later(MINUTE, max_age=0, since=ASKED - 1), True),
        ("boot", SLURM, SLURM, later(MINUTE, max_age=0), False),
    ],
)
def test_what_makes_a_result_stale(
    stale: Stale, before: NodeState, now: NodeState | None, moment: Moment, holds: bool
) -> None:
    assert fresh(Stamp(ASKED, before), stale, False, now, moment) is holds


@pytest.mark.parametrize("stale", ["boot", "time", "use"])
def test_a_failure_is_looked_at_again_after_two_minutes(stale: Stale) -> None:
    stamp = Stamp(ASKED, SLURM)
    assert fresh(stamp, stale, True, SLURM, later(119))
    assert fresh(stamp, stale, True, None, later(119)), "a node that is gone has no state"
    assert not fresh(stamp, stale, True, SLURM, later(121))
    assert not fresh(stamp, stale, True, REBOOTED, later(60))
    assert not fresh(stamp, stale, True, SLURM, later(60, max_age=30))


@pytest.mark.parametrize(
    ("finding", "bad"),
    [
        (ok("a", "fine"), False),
        (skip("a", "not here"), False),
        (warn("a", "so so", Remedy("Do.")), False),
        (fail("a", "bad", Remedy("Do.")), True),
        (unknown("a", "who knows"), True),
        (skip("blocked", "blocked by gpu"), True),
        (skip("needs_root", "not looked at: needs root"), True),
    ],
)
def test_what_is_bad_and_what_hides_behind_it(finding: Finding, bad: bool) -> None:
    assert failed([ok("b", "fine"), finding]) is bad


def test_boots_are_the_same_where_all_that_is_known_is() -> None:
    assert same_boot(SLURM, SLURM) is True
    assert same_boot(SLURM._replace(boot_id="a"), SLURM._replace(boot_id="b")) is False
    assert same_boot(NodeState(), SLURM) is None


@pytest.mark.parametrize(
    ("then", "now", "set_back"),
    [
        (Clock(1000, 50, "a"), Clock(1100, 150, "a"), False),
        (Clock(1000, 50, "a"), Clock(900, 150, "a"), True),
        (Clock(1000, 50, "a"), Clock(1040, 150, "a"), True),  # by a minute, and it is later yet
        (Clock(1000, 50, "a"), Clock(4700, 150, "a"), False),  # set forward: all is older at most
        (Clock(1000, 50, "a"), Clock(1010, 9000, "b"), False),  # another machine, or another boot
        (Clock(1000, 50, ""), Clock(1010, 9000, ""), False),
        (Clock(1000, 50, "a"), Clock(900, 10, "b"), True),
    ],
)  # fmt: skip
def test_a_clock_that_was_set_back_is_noticed(then: Clock, now: Clock, set_back: bool) -> None:
    assert now.set_back_since(then) is set_back


def test_the_clock_now_is_this_machines() -> None:
    clock = Clock.now()
    assert len(clock.boot_id) == 36 and clock.ran > 0
    assert not Clock.now().set_back_since(clock)
