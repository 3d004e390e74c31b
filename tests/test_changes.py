"""What is new, worse, better, gone, still there, and what comes and goes."""

from datetime import date, datetime, timedelta, timezone

import pytest

from clustercheck.changes import Acceptance, Kind, Night, sorted_out
from clustercheck.check import Status, fail, ok, skip, unknown, warn
from clustercheck.report import Report
from tests.past_runs import DEAD, FIRST, GOOD, HUNG, LOOK, SILENT, SLOW, last_of, night, said


def test_what_was_not_there_is_new() -> None:
    changed = last_of(night(0, n1=GOOD), night(1, n1=SLOW))
    assert said(changed) == ["new n1 nfs.speed warn"]
    assert changed[0].since == FIRST + timedelta(days=1)


def test_a_worse_status_is_worse_and_a_better_one_better() -> None:
    assert said(last_of(night(0, n1=SLOW), night(1, n1=DEAD))) == [
        "worse n1 nfs.speed fail (was warn)"
    ]
    assert said(last_of(night(0, n1=DEAD), night(1, n1=SLOW))) == [
        "better n1 nfs.speed warn (was fail)"
    ]


def test_what_stays_is_still_there_since_it_began() -> None:
    (changed,) = last_of(night(0, n1=GOOD), night(1, n1=SLOW), night(2, n1=DEAD), night(3, n1=DEAD))
    assert said([changed]) == ["still n1 nfs.speed fail (was fail)"]
    assert changed.since == FIRST + timedelta(days=1)


def test_what_is_well_again_is_gone_once() -> None:
    nights = night(0, n1=SLOW), night(1, n1=GOOD)
    (changed,) = last_of(*nights)
    assert said([changed]) == ["gone n1 nfs.speed (was warn)"]
    assert changed.earlier == SLOW and changed.since == FIRST
    assert last_of(*nights, night(2, n1=GOOD)) == []


@pytest.mark.parametrize(
    "tonight",
    [
        pytest.param(SILENT, id="the node was silent"),
        pytest.param(HUNG, id="the check came to nothing"),
        pytest.param({"ntp": [ok("offset", "in step")]}, id="no findings of the check"),
        pytest.param(skip("blocked", "blocked by ib"), id="the check was skipped"),
    ],
)
def test_what_nobody_could_look_at_is_not_gone(tonight: object) -> None:
    changed = last_of(night(0, n1=SLOW), night(1, n1=tonight))  # type: ignore[arg-type]
    (kept,) = (one for one in changed if one.code == "speed")
    assert (kept.kind, kept.unseen, kept.before) == (Kind.STILL, True, Status.WARN)
    back = last_of(
        night(0, n1=SLOW),
        night(1, n1=tonight),  # type: ignore[arg-type]
        night(2, n1=SLOW),
    )
    (again,) = (one for one in back if one.code == "speed")
    assert (again.kind, again.since) == (Kind.STILL, FIRST)


def test_what_was_not_asked_is_not_spoken_of_and_not_forgotten() -> None:
    other = {"ntp": [ok("offset", "in step")]}
    before = night(0, n1=SLOW, n2=SLOW)
    assert last_of(before, night(1, checks=["ntp"], n1=other)) == []
    changed = last_of(before, night(1, checks=["ntp"], n1=other), night(2, n1=SLOW, n2=GOOD))
    assert said(changed) == [
        "still n1 nfs.speed warn (was warn)",
        "gone n2 nfs.speed (was warn)",
    ]


def test_a_silent_node_that_answers_is_gone_as_a_trouble() -> None:
    assert said(last_of(night(0, n1=SILENT), night(1, n1=GOOD))) == [
        "gone n1 access.timeout (was unknown)"
    ]


def test_a_node_that_is_silent_in_another_way_has_not_recovered() -> None:
    refused = {"access": [unknown("refused", "nothing listens on port 22")]}
    assert said(last_of(night(0, n1=SILENT), night(1, n1=refused))) == [
        "new n1 access.refused unknown"
    ]


def test_what_could_not_be_found_out_and_is_a_failure_now_has_not_recovered() -> None:
    assert said(last_of(night(0, n1=HUNG), night(1, n1=DEAD))) == ["new n1 nfs.speed fail"]


def test_a_pair_is_judged_for_itself() -> None:
    hole2 = fail("hole", "nothing larger than 1500 B passes", LOOK, peer="n2")
    hole3 = fail("hole", "nothing larger than 1500 B passes", LOOK, peer="n3")
    good3 = ok("path", "9000 B pass", peer="n3")
    not_tried = unknown("not_answered", "nothing was reported", peer="n2")
    before = night(0, n1={"nfs": [hole2, hole3]})
    changed = last_of(before, night(1, n1={"nfs": [not_tried, good3]}))
    assert {(c.kind, c.code, c.peer) for c in changed} == {
        (Kind.NEW, "not_answered", "n2"),
        (Kind.STILL, "hole", "n2"),
        (Kind.GONE, "hole", "n3"),
    }


def test_what_comes_and_goes_is_said_to() -> None:
    turns = [GOOD, SLOW, GOOD, SLOW, GOOD, SLOW]
    kinds = [
        [one.kind for one in last_of(*(night(n, n1=f) for n, f in enumerate(turns[: last + 1])))]
        for last in range(len(turns))
    ]
    assert kinds == [[], [Kind.NEW], [Kind.GONE], [Kind.NEW], [Kind.GONE], [Kind.FLAPPING]]
    (changed,) = last_of(*(night(n, n1=f) for n, f in enumerate(turns)))
    assert (changed.turns, changed.nights) == (5, 5)
    calm = last_of(*(night(n, n1=f) for n, f in enumerate([*turns, SLOW])))
    assert [one.kind for one in calm] == [Kind.STILL]


def test_of_two_findings_with_one_name_the_worst_counts() -> None:
    both = {"nfs": [SLOW, DEAD]}
    assert said(last_of(night(0, n1=SLOW), night(1, n1=both))) == [
        "worse n1 nfs.speed fail (was warn)"
    ]


def test_a_monitoring_plug_in_is_one_finding_whatever_its_code() -> None:
    warning = {"nfs": [warn("warning", "40 % free", LOOK)]}
    critical = {"nfs": [fail("critical", "4 % free", LOOK)]}
    assert said(last_of(night(0, n1=warning), night(1, n1=critical))) == [
        "worse n1 nfs.critical fail (was warn)"
    ]
    assert said(last_of(night(0, n1=critical), night(1, n1={"nfs": [ok("ok", "90 % free")]}))) == [
        "gone n1 nfs.critical (was fail)"
    ]
    for code in ("nfs", "nfs.warning"):
        assert night_with(night(0, n1=warning), accepted(code)).exit_code == 0
        assert night_with(night(0, n1=critical), accepted(code)).exit_code == 2


# What is accepted -------------------------------------------------------------------------------

DAY = FIRST.date()


def accepted(
    code: str = "nfs.speed", until: date = DAY, status: Status = Status.WARN
) -> Acceptance:
    when = datetime(2026, 11, 30, tzinfo=timezone.utc)
    return Acceptance(code, ("n1",), until, "disk ordered", "ops", when, status)


def night_with(report: Report, one: Acceptance, before: date | None = None) -> Night:
    changed = last_of(report)
    told, kept = sorted_out(changed, [one], report.started.date(), before)
    return Night("hpc1", report, changed=tuple(told), accepted=tuple(kept))


@pytest.mark.parametrize("code", ["nfs.speed", "nfs"])
def test_what_is_accepted_stands_apart_and_does_not_set_the_exit_code(code: str) -> None:
    found = night_with(night(0, n1=SLOW), accepted(code))
    assert (found.changed, len(found.accepted), found.exit_code) == ((), 1, 0)


def test_what_else_is_wrong_sets_the_exit_code_all_the_same() -> None:
    late = {"nfs": [SLOW], "ntp": [fail("offset", "3 s ahead", LOOK)]}
    assert night_with(night(0, n1=late), accepted()).exit_code == 2
    assert night_with(night(0, n1=SLOW, n2=SLOW), accepted()).exit_code == 1


@pytest.mark.parametrize("code", ["nfs.speeds", "ntp", "nfs.hole"])
def test_another_finding_is_not_accepted(code: str) -> None:
    assert night_with(night(0, n1=SLOW), accepted(code)).exit_code == 1


def test_what_is_worse_than_accepted_comes_back() -> None:
    found = night_with(night(0, n1=DEAD), accepted(status=Status.WARN))
    assert (said(found.changed), found.exit_code) == (["new n1 nfs.speed fail"], 2)


def test_it_comes_back_as_new_on_the_day_after_the_last() -> None:
    nights = [night(0, n1=SLOW), night(1, n1=SLOW), night(2, n1=SLOW)]
    kinds = []
    for number in (0, 1, 2):
        changed = last_of(*nights[: number + 1])
        today = FIRST.date() + timedelta(days=number)
        before = today - timedelta(days=1) if number else None
        told, kept = sorted_out(changed, [accepted()], today, before)
        kinds.append(([one.kind for one in told], len(kept)))
    assert kinds == [([], 1), ([Kind.NEW], 0), ([Kind.STILL], 0)]


def test_what_is_accepted_and_gone_is_told_as_gone() -> None:
    changed = last_of(night(0, n1=SLOW), night(1, n1=GOOD))
    told, kept = sorted_out(changed, [accepted(until=DAY + timedelta(days=9))], DAY, DAY)
    assert (said(told), kept) == (["gone n1 nfs.speed (was warn)"], [])


def test_nothing_checked_is_no_success() -> None:
    nothing = skip("none", "no NFS here")
    assert night_with(night(0, n1=nothing), accepted()).exit_code == 3


def test_a_node_with_nothing_but_accepted_findings_passes() -> None:
    found = night_with(
        night(0, n1={"nfs": [SLOW, warn("retrans", "3 % lost", LOOK)]}), accepted("nfs")
    )
    assert found.status_of("n1") is Status.PASS


def test_a_node_whose_silence_is_accepted_is_no_sound_one() -> None:
    found = night_with(night(0, n1=SILENT, n2=GOOD), accepted("access", status=Status.UNKNOWN))
    assert len(found.accepted) == 1
    assert (found.status_of("n1"), found.status_of("n2")) == (Status.SKIP, Status.PASS)
    assert found.exit_code == 0
