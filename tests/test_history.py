"""The history: nothing stored is lost, and nothing else is taken for it."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from clustercheck import history, history_file
from clustercheck.answer import Answer
from clustercheck.changes import Acceptance, Key, Standing, compare
from clustercheck.check import Facts, Status
from clustercheck.errors import ConfigError
from clustercheck.facts import Told
from clustercheck.history import History, Trouble, open_for_sweep, open_to_read, packed
from clustercheck.render import json
from clustercheck.report import Report
from tests.past_runs import DEAD, FIRST, GOOD, SILENT, SLOW, night
from tests.render.made_up import reports

OLD = Path(__file__).with_name("data") / "history" / "version1.sql"
KEEP = timedelta(days=90)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "hpc1.db"


@pytest.fixture
def kept(path: Path) -> Iterator[History]:
    made = open_for_sweep(path)
    yield made
    made.close()


def store(kept: History, *nights: Report, keep: timedelta = KEEP) -> dict[Key, Standing]:
    """Store nights as sweeps do."""
    standing = kept.standing()
    for report in nights:
        number = kept.begin(report.started, report.checks)
        standing = compare(report, standing).standing
        kept.store(number, report, standing, {}, keep)
    return standing


def test_a_stored_run_is_the_report_that_it_was(kept: History) -> None:
    report = night(0, n1=GOOD, n2={"nfs": [SLOW, DEAD]}, n3=SILENT)
    store(kept, report)
    assert kept.report(1) == report
    assert kept.last() == (FIRST, ["n1", "n2", "n3"])


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(report=reports())
def test_whatever_nodes_say_is_told_again_as_it_was(kept: History, report: Report) -> None:
    number = kept.begin(report.started, report.checks)
    kept.store(number, report, compare(report, {}).standing, {}, timedelta(days=300_000))
    again = json.render(kept.report(number)).splitlines()
    # the history has whole seconds, and SQLite no minus zero
    text = json.render(report).replace('"number": -0.0', '"number": 0.0')
    wanted = [line for line in text.splitlines() if '"started"' not in line]
    assert [line for line in again if '"started"' not in line] == wanted


def test_only_its_owner_may_read_it(path: Path, kept: History) -> None:
    store(kept, night(0, n1=GOOD))
    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in path.parent.iterdir()}
    assert set(modes.values()) == {0o600} and "hpc1.db" in modes, modes
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_remembered_is_that_of_the_night_before(path: Path) -> None:
    first = open_for_sweep(path)
    standing = store(first, night(0, n1=SLOW, n2=GOOD), night(1, n1=DEAD, n2=GOOD))
    first.close()
    again = open_to_read(path)
    assert again.standing() == standing and len(standing) == 1
    again.close()


def test_old_runs_are_forgotten_with_their_words_and_not_since_when(kept: History) -> None:
    nights = [night(n, n1=SLOW, n2=GOOD) for n in range(8)]
    nights[0] = night(0, n1=SLOW, n2=DEAD, n3=GOOD)
    store(kept, *nights, keep=timedelta(days=5))
    assert [run.number for run in kept.runs()] == [8, 7, 6, 5, 4, 3]
    texts = {text for (text,) in kept.database.execute("SELECT text FROM texts")}
    assert texts == {"900 MB/s", "200 MB/s"}
    assert not kept.knows("n3")
    (one,) = (s for s in kept.standing().values() if s.there)
    assert one.since == FIRST


def test_a_clock_that_leaps_for_a_night_costs_no_history(kept: History) -> None:
    store(kept, *(night(n, n1=SLOW) for n in range(3)))
    store(kept, night(20_000, n1=SLOW), night(-9_000, n1=SLOW), night(3, n1=SLOW))
    assert [run.number for run in kept.runs()] == [6, 5, 4, 3, 2, 1]
    (one,) = kept.standing().values()
    assert one.since == FIRST


def test_what_is_forgotten_is_given_back_to_the_disk(path: Path, kept: History) -> None:
    store(kept, night(0, {f"n{place}": SLOW for place in range(5000)}), night(1, n1=SLOW))
    large = path.stat().st_size
    store(kept, night(2, n1=SLOW), keep=timedelta(days=1))
    assert path.stat().st_size < large / 2


def test_facts_are_kept_once_and_found_for_each_run(kept: History) -> None:
    def told(**facts: str) -> dict[str, dict[str, bytes]]:
        answer = Answer("n1", ["os"], {"os": Told(Facts(facts), whole=True, status="0")})
        return {"n1": packed(answer)}

    standing: dict[Key, Standing] = {}
    same = {"os": [GOOD]}
    for number, kernel in enumerate(["5.14", "5.14", "6.1", "6.1"]):
        report = night(number, checks=["os"], n1=same)
        run = kept.begin(report.started, report.checks)
        kept.store(run, report, standing, told(kernel=kernel), timedelta(days=2, hours=1))
    (rows,) = kept.database.execute("SELECT count(*) FROM facts").fetchone()
    assert rows == 2
    # run 1 is forgotten; what it told counts on for run 2
    kernels = {run.number: kept.answers(run.number)[0].told["os"].facts for run in kept.runs()}
    assert kernels == {2: {"kernel": "5.14"}, 3: {"kernel": "6.1"}, 4: {"kernel": "6.1"}}


def test_values_of_a_node_are_a_trend(kept: History) -> None:
    store(kept, night(0, n1=GOOD), night(1, n1=SILENT), night(2, n1=SLOW))
    trend = kept.trends()["n1"]["nfs.speed"]
    assert [(p.when - FIRST, p.number, p.unit) for p in trend] == [
        (timedelta(days=0), 900, "MB/s"),
        (timedelta(days=2), 200, "MB/s"),
    ]


def test_an_acceptance_is_kept_with_who_and_when(kept: History) -> None:
    one = Acceptance("nfs", ("n1", "n2"), date(2027, 1, 15), "disk ordered", "eve", FIRST)
    number = kept.accept(one)
    (found,) = kept.acceptances()
    assert found == Acceptance(
        "nfs", ("n1", "n2"), date(2027, 1, 15), "disk ordered", "eve", FIRST, Status.FAIL, number
    )
    assert (kept.no_more(number), kept.no_more(number)) == (True, False)
    assert kept.acceptances() == []


# Other files --------------------------------------------------------------------------------------


def test_a_file_of_the_first_form_is_brought_up_to_todays(path: Path) -> None:
    path.parent.mkdir()
    old = sqlite3.connect(path)
    old.executescript(OLD.read_text("utf-8"))
    old.close()
    kept = open_to_read(path)
    assert kept.report(2) == night(1, n1=SLOW, n2=SLOW)
    standing = {key[0]: (s.there, s.since, s.track) for key, s in kept.standing().items()}
    assert standing == {
        "n1": (True, FIRST + timedelta(days=1), "-ww"),
        "n2": (False, FIRST, "-ww-"),
    }
    kept.close()
    again = open_for_sweep(path)
    store(again, night(3, n1=GOOD))
    assert [run.number for run in again.runs()] == [4, 3, 2, 1]
    again.close()


def test_a_newer_form_is_refused_and_left_alone(path: Path) -> None:
    open_for_sweep(path).close()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 3")
    newer.close()
    for opened in (open_for_sweep, open_to_read):
        with pytest.raises(ConfigError, match="a newer clustercheck wrote it, in form 3"):
            opened(path)
    assert [f.name for f in path.parent.iterdir() if "damaged" in f.name] == []


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="is a database, and no history"):
        open_for_sweep(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_put_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(ConfigError, match="is damaged .* the next sweep puts it aside"):
        open_to_read(path)
    kept = open_for_sweep(path)
    assert "the history was damaged (file is not a database), and is kept as " in kept.damage
    (aside,) = path.parent.glob("hpc1.db.damaged-*")
    assert aside.read_bytes().startswith(b"not a database at all ")
    assert kept.last() is None
    kept.close()


def test_damage_that_a_crash_left_is_found_and_the_file_put_aside(path: Path) -> None:
    kept = open_for_sweep(path)
    store(kept, *(night(n, {f"n{i}": SLOW for i in range(200)}) for n in range(5)))
    kept.begin(FIRST, ["nfs"])  # killed here
    (pages,) = kept.database.execute(
        "SELECT group_concat(rootpage) FROM sqlite_master WHERE name = 'findings'"
    ).fetchone()
    (size,) = kept.database.execute("PRAGMA page_size").fetchone()
    kept.close()
    with path.open("r+b") as file:
        file.seek((int(pages) - 1) * size)
        file.write(os.urandom(size))
    again = open_for_sweep(path)
    assert again.damage and again.last() is None
    assert len(list(path.parent.glob("hpc1.db.damaged-*"))) == 1
    again.close()


def test_a_run_that_was_killed_is_said_to_be_broken(path: Path) -> None:
    kept = open_for_sweep(path)
    store(kept, night(0, n1=SLOW))
    kept.begin(FIRST, ["nfs"])
    kept.close()
    again = open_for_sweep(path)
    assert [(run.number, run.state) for run in again.runs()] == [(2, "broken"), (1, "done")]
    assert again.last() == (FIRST, ["n1"])
    again.close()


def test_killed_at_any_moment_it_loses_the_run_in_progress_and_no_other(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kill_writers", path, "50"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("50 rounds, ")


def test_a_full_disk_is_said_and_what_was_stored_is_there(kept: History) -> None:
    store(kept, night(0, n1=SLOW))
    (pages,) = kept.database.execute("PRAGMA page_count").fetchone()
    kept.database.execute(f"PRAGMA max_page_count = {pages + 3}")
    large = night(1, {f"n{place}": SLOW for place in range(2000)})
    with pytest.raises(Trouble, match="cannot be written: database or disk is full; make room"):
        store(kept, large)
    assert kept.last() == (FIRST, ["n1"])
    kept.database.execute("PRAGMA max_page_count = 1000000")
    store(kept, large)
    assert len((kept.last() or (None, []))[1]) == 2000


def test_a_reader_does_not_wait_for_a_writer(path: Path, kept: History) -> None:
    store(kept, night(0, n1=SLOW))
    kept.database.execute("BEGIN IMMEDIATE")
    reader = open_to_read(path)
    reader.database.execute("PRAGMA busy_timeout = 0")
    assert reader.report(1).checks == ["nfs", "ntp"]
    reader.close()
    kept.database.execute("ROLLBACK")


def test_on_a_network_file_system_it_does_not_write_ahead(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_for_sweep(path).close()
    monkeypatch.setattr(history_file, "file_system", lambda path: "nfs4")
    kept = open_for_sweep(path)
    assert kept.database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert "lies on a network file system" in kept.notes[0]
    store(kept, night(0, n1=SLOW))
    assert sorted(f.name for f in path.parent.iterdir()) == ["hpc1.db"]
    kept.close()


def test_the_kind_of_a_file_system_is_known(tmp_path: Path) -> None:
    assert history_file.file_system(Path("/proc/self/status")) == "proc"
    assert history_file.file_system(tmp_path / "not" / "there" / "yet") not in ("", "proc")


def test_it_stands_where_the_state_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history.file_of(None, "hpc1") == tmp_path / "clustercheck" / "hpc1.db"
    assert history.file_of(tmp_path, "../../etc/x\n") == tmp_path / "..%2F..%2Fetc%2Fx%0A.db"


def test_where_nothing_can_be_made_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="the history cannot be kept there: File exists"):
        open_for_sweep(tmp_path / "file" / "hpc1.db")
