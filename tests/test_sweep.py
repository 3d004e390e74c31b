"""The command sweep as a user has it: one at a time, kept, told, and never silent about itself."""

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from clustercheck.acceptance import Accepted, accept, remove
from clustercheck.changes import compare
from clustercheck.check import Remedy, warn
from clustercheck.cli import ways
from clustercheck.errors import ConfigError, UsageError
from clustercheck.history import open_for_sweep, open_to_read
from clustercheck.history_file import now
from clustercheck.parts import SweepOptions
from clustercheck.past import Place, show
from clustercheck.planning import Wanted
from clustercheck.sweep import Asked, cluster_of, sweep
from clustercheck.sweep_lock import Busy, alone
from tests.command import Done, clustercheck
from tests.past_runs import GOOD, SILENT, night

SLOW = "echo 'WARNING - the disk is slow | rate=20MB'; exit 1"
DEAD = "echo 'CRITICAL - the disk is dead | rate=20MB'; exit 2"
WELL = "echo 'OK - the disk is well | rate=200MB'"


class Site:
    """An inventory of this machine, with a check of its own that says what a file has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.said = folder / "disk.sh"
        self.sent = folder / "sent"
        self.inventory = folder / "hpc1.ini"
        sendmail = folder / "sendmail"
        sendmail.write_text(f'#!/bin/sh\nhead -c 3000 >>"{self.sent}"\ncat >/dev/null\n')
        sendmail.chmod(0o755)
        self.write(f"mail.to = ops@example.org\nmail.server = {sendmail}\n")
        self.is_so(WELL)

    def write(self, sweep: str, nodes: str = "node01 ansible_connection=local\n") -> None:
        """The inventory, with these lines below [sweep]."""
        check = f"[check:disk_rate]\ncommand = /bin/sh {self.said}\n"
        self.inventory.write_text(f"{nodes}{check}[sweep]\n{sweep}")

    def is_so(self, script: str) -> None:
        """What the check will find."""
        self.said.write_text(script)

    def words(self, command: str = "sweep") -> list[str]:
        return [command, "-i", str(self.inventory), "--state", str(self.state)]

    def command(self, *more: str) -> Done:
        """A sweep as a process of its own."""
        return clustercheck(*self.words(), "-c", "disk_rate", *more)

    def sweep(self, *, print_mail: bool = False, seconds: float = 0) -> Done:
        """A sweep within this process, which costs less."""
        asked = Asked(self.state, None, print_mail, 0)
        wanted = Wanted(self.inventory, checks="disk_rate")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = sweep(asked, wanted, ways.way(), ways.limits(max_time=seconds))
        return Done(status, out.getvalue(), err.getvalue())

    def mails(self) -> str:
        """All that was ever sent."""
        return self.sent.read_text() if self.sent.exists() else ""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_finding_comes_stays_is_accepted_gets_worse_and_goes(site: Site) -> None:
    first = site.sweep()
    assert (first.status, first.out.splitlines()[0]) == (0, "[hpc1] first sweep, 1/1 pass")
    site.is_so(SLOW)
    new = site.sweep()
    assert new.status == 1 and "[hpc1] 1 new warning, 0/1 pass" in new.out
    words = ["disk_rate", "-w", "node01", "--until", "2999-01-15", "--why", "disk ordered"]
    accepted = clustercheck(*site.words("accept"), *words, env={"SUDO_USER": "eve"})
    assert accepted.out == "1: disk_rate on node01 is accepted until 2999-01-15\n"
    assert accepted.err == "note: it is warn now; what is worse comes back\n"
    listed = clustercheck(*site.words("accept"), "--list").out.splitlines()[2].split("  ")
    words = [word.strip() for word in listed if word.strip()]
    assert words[:4] == ["1", "disk_rate, up to warn", "node01", "2999-01-15"]
    assert words[4].startswith("eve, 20") and words[5] == "disk ordered"
    kept = site.sweep()
    assert (kept.status, kept.err) == (0, "") and "disk ordered (eve)" in kept.out
    wrong = clustercheck(*site.words("history")).out
    assert wrong.splitlines()[2].endswith("  accepted until 2999-01-15")
    site.is_so(DEAD)
    worse = site.sweep()
    assert worse.status == 2 and "\nWORSE\n- FAIL disk_rate." in worse.out
    assert "RECOVERED" not in worse.out
    site.is_so(WELL)
    gone = site.sweep()
    assert gone.status == 0 and "[hpc1] 1 recovered, 1/1 pass" in gone.out
    assert clustercheck(*site.words("history"), "node01").out.splitlines()[2].split()[1] == ".wwF."
    trend = clustercheck(*site.words("history"), "node01", "disk_rate").out
    assert trend.splitlines()[2] == "value: █▁▁▁█ 200 MB (20 to 200)"


def test_a_second_sweep_does_not_start_and_says_who_goes_on(site: Site) -> None:
    site.state.mkdir()
    with alone(site.state / "hpc1.lock", now()):
        second = site.command()  # a process does not keep itself out
    assert (second.status, second.out) == (75, "")
    who = f"process {os.getpid()} on {os.uname().nodename}"
    assert "a sweep goes on since 20" in second.err and who in second.err
    assert site.mails() == ""


@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (0, 0o777, "may be written to by everybody"),
        (0, 0o1777, "may be written to by everybody"),
        (1, 0o755, "belongs to another user"),
    ],
)
def test_a_folder_that_others_may_write_to_is_refused(
    owner: int, mode: int, why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    if owner:
        if os.geteuid() != 0:
            pytest.skip("cannot here: only root gives folders away")
        os.chown(folder, owner, owner)
    folder.chmod(mode)
    with pytest.raises(ConfigError, match=why), alone(folder / "hpc1.lock", now()):
        pass
    assert not list(folder.iterdir())


def test_the_lock_of_a_dead_process_is_none(tmp_path: Path) -> None:
    lock = tmp_path / "hpc1.lock"
    hold = (
        "import sys, time; from pathlib import Path; from clustercheck.sweep_lock import alone\n"
        "from clustercheck.history_file import now\n"
        "with alone(Path(sys.argv[1]), now()): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(lock)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(Busy, match=f"process {holder.pid} "), alone(lock, now()):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with alone(lock, now()):
        assert json.loads(lock.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("size", "known"), [(4096, False), (45_000, True)], ids=["not opened", "not stored"]
)
def test_on_a_full_disk_the_mail_goes_out_and_says_so(site: Site, size: int, known: bool) -> None:
    assert site.sweep().status == 0
    site.is_so(SLOW)
    site.sent.unlink()
    with largest_file(size):
        full = site.sweep()
    assert full.status == 1
    told = " ".join(full.out.split())
    assert ("nothing is known of sweeps before" not in told) == known
    assert "not kept: " in told and "; make room, or give another folder" in told
    mail = " ".join(site.mails().split())
    assert "Subject: [hpc1] 1 new warning" in mail and "not kept" in mail
    again = site.sweep()  # what could not be kept is new to the history
    assert again.status == 1 and "1 new warning" in again.out
    assert not list(site.state.glob("*.damaged-*"))


def test_the_mail_goes_out_where_standard_output_takes_nothing(site: Site) -> None:
    command = [sys.executable, "-m", "clustercheck", *site.words(), "-c", "disk_rate"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
    assert "Traceback" not in done.stderr and "cannot write standard output" in done.stderr
    assert "Subject: [hpc1] first sweep" in site.mails()


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No process that is started meanwhile can make a file larger than that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_damaged_history_is_put_aside_and_the_mail_says_so(site: Site) -> None:
    assert site.sweep().status == 0
    (site.state / "hpc1.db").write_bytes(b"\0" * 5000 + b"rubbish")
    done = site.sweep()
    assert "the history was damaged" in " ".join(done.out.split())
    assert "the history was damaged" in site.mails().replace("\n ", " ").replace("=\n", "")
    (aside,) = site.state.glob("hpc1.db.damaged-*")
    assert aside.read_bytes().endswith(b"rubbish")


def test_a_history_of_a_newer_form_stops_it_before_anybody_is_asked(site: Site) -> None:
    kept = open_for_sweep(site.state / "hpc1.db")
    kept.database.execute("PRAGMA user_version = 99")
    kept.close()
    done = site.command()
    assert (done.status, done.out) == (78, "")
    assert "a newer clustercheck wrote it" in done.err


def test_a_dry_run_shows_the_mail_and_keeps_and_sends_nothing(site: Site) -> None:
    page = site.folder / "page.html"
    done = site.command("--print-mail", "--page", str(page))
    assert done.status == 0
    assert "To: ops@example.org" in done.out and "Subject: [hpc1] first sweep" in done.out
    assert (site.mails(), page.exists()) == ("", False)
    assert site.sweep().out.startswith("[hpc1] first sweep")


def test_what_was_not_reached_in_time_is_named_and_not_gone(site: Site) -> None:
    site.is_so(SLOW)
    site.sweep()
    site.is_so("sleep 60")
    done = site.sweep(seconds=1)
    assert done.status == 3
    assert "access.not_reached on node01" in done.out
    assert "RECOVERED" not in done.out and "disk_rate" in done.out


def test_ended_by_its_timer_it_tells_and_keeps_what_it_knows(site: Site) -> None:
    began = site.folder / "began"
    os.mkfifo(began)
    site.is_so(f"echo >{began}; exec sleep 60")
    command = [sys.executable, "-m", "clustercheck", *site.words(), "-c", "disk_rate"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        began.read_text()  # it goes on now
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 3
    assert "access.not_reached on node01" in out and "(interrupted)" in out
    kept = open_to_read(site.state / "hpc1.db")
    assert [(run.state, run.stopped) for run in kept.runs()] == [("done", "interrupted")]
    kept.close()


def test_nodes_that_come_and_leave_are_named(site: Site) -> None:
    site.sweep()
    both = "node01 ansible_connection=local\nnode02 ansible_connection=local\n"
    site.write("", both)
    joined = site.sweep()
    assert "[hpc1] 1 node joined, 2/2 pass" in joined.out and "- node02, joined" in joined.out
    site.write("", "node02 ansible_connection=local\n")
    left = site.sweep()
    assert "[hpc1] 1 node left, 1/1 pass" in left.out and "- node01, left" in left.out


def test_the_cluster_is_called_as_it_is_set_or_as_the_inventory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "admin1.example.org")
    assert cluster_of(SweepOptions(cluster="big"), Path("/etc/hpc1.ini")) == "big"
    assert cluster_of(SweepOptions(), Path("/etc/hpc1.ini")) == "hpc1"
    assert cluster_of(SweepOptions(), Path("/etc/inventory.ini")) == "admin1"
    assert cluster_of(SweepOptions(), None) == "admin1"


def test_what_a_node_says_is_harmless_in_the_history(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    said = warn("slow", "\x1b[31mred\x1b[0m <script>\r\n\u202e", Remedy("Look."))
    kept = open_for_sweep(site.state / "hpc1.db")
    report = night(0, {"node01": {"disk_rate": [said]}}, checks=["disk_rate"])
    number = kept.begin(report.started, report.checks)
    kept.store(number, report, compare(report, {}).standing, {}, timedelta(days=9))
    kept.close()
    for words in (("node01", ""), ("node01", "disk_rate"), ("disk_rate", ""), ("", "")):
        assert show(Place(site.inventory, site.state), *words, runs=False) == 0
        out = capsys.readouterr().out
        assert "disk_rate" in out or "slow" in out
        assert all(c.isprintable() for c in out.replace("\n", ""))


@pytest.mark.parametrize(
    ("code", "nodes", "until", "why", "says"),
    [
        ("nfs", "node01", "2027-02-30", "x", "there is no day 2027-02-30"),
        ("nfs", "node01", "15.1.2027", "x", "'15.1.2027' is not a day; write such as 2027-01-15"),
        ("nfs", "node01", "2020-01-01", "x", "2020-01-01 has passed"),
        ("nfs", "node01", "2999-01-01", " ", "--why: say in a few words"),
        ("nsf", "node01", "2999-01-01", "x", "no check is called 'nsf'; did you mean 'nfs'"),
        ("nfs.thruput", "node01", "2999-01-01", "x", "did you mean 'nfs.throughput'"),
        ("nfs", "node07", "2999-01-01", "x", "no sweep has asked 'node07'"),
        ("nfs", "", "2999-01-01", "x", "on which nodes?"),
    ],
)
def test_what_cannot_be_accepted_is_said(
    site: Site, code: str, nodes: str, until: str, why: str, says: str
) -> None:
    kept = open_for_sweep(site.state / "hpc1.db")
    report = night(0, node01=GOOD)
    number = kept.begin(report.started, report.checks)
    kept.store(number, report, {}, {}, timedelta(days=9))
    kept.close()
    with pytest.raises(UsageError, match=re.escape(says)):
        accept(Place(site.inventory, site.state), Accepted(code, nodes, until, why))


def test_a_silent_night_has_a_sign_of_its_own(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = open_for_sweep(site.state / "hpc1.db")
    for report in (night(0, node01=GOOD), night(1, node01=SILENT), night(2, node01=GOOD)):
        number = kept.begin(report.started, report.checks)
        kept.store(number, report, {}, {}, timedelta(days=9))
    kept.close()
    show(Place(site.inventory, site.state), "node01", "", runs=False)
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:4]]
    assert rows == [["nfs", "._."], ["access", ".u."]]


def test_what_is_asked_of_the_history_and_is_not_there_is_said(site: Site) -> None:
    open_for_sweep(site.state / "hpc1.db").close()
    place = Place(site.inventory, site.state)
    with pytest.raises(UsageError, match="'node7' is neither a node of the history nor a check"):
        show(place, "node7", "", runs=False)
    with pytest.raises(UsageError, match="nothing is accepted under 5"):
        remove(place, 5)
    with pytest.raises(UsageError, match=f"nothing is accepted under {2**63}"):
        remove(place, 2**63)
    done = clustercheck("diff", str(2**63), "1", "--state", str(site.state))
    assert (done.status, done.err.partition(";")[0]) == (
        64,
        f"clustercheck: there is no sweep {2**63}",
    )
    done = clustercheck("diff", "9" * 5000, "1", "--state", str(site.state))
    assert (done.status, done.err) == (
        64,
        f"clustercheck: '{'9' * 59}…': no sweep has so high a number\n",
    )


def test_where_nothing_was_ever_swept_it_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no history yet; `clustercheck sweep` begins"):
        show(Place(None, tmp_path), "", "", runs=False)


def test_of_several_clusters_one_has_to_be_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        open_for_sweep(tmp_path / f"{name}.db").close()
    with pytest.raises(UsageError, match="Give its inventory with -i; there are a, b"):
        show(Place(None, tmp_path), "", "", runs=False)
