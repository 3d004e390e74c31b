"""What could not be sent is kept, is sent later, and is told of."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from clustercheck import exit_codes, spool
from clustercheck.deliver import Outgoing, Posted, deliver
from clustercheck.mail_options import Options
from tests.mail_servers import Keeper, server, talker

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=timezone.utc)
DATA = b"Subject: [hpc1] 2 new failures\r\n\r\nline\r\n"
GREY = "451 4.7.1 Greylisted"


@dataclass
class Clock:
    """Time that passes only where somebody sleeps."""

    now: float = 0.0
    naps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


@dataclass
class Office:
    """Sends mails from a folder to a port."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    patience: float = 360

    def send(self, port: int, *mails: Outgoing, after: int = 0) -> Posted:
        self.clock.naps.clear()
        return deliver(
            mails,
            Options(server=f"smtp://localhost:{port}", patience=self.patience),
            self.folder,
            now=NOW + timedelta(days=after),
            say=self.said.append,
            sleep=self.clock.sleep,
            clock=self.clock,
        )

    def kept(self) -> list[spool.Waiting]:
        found, trouble = spool.waiting(self.folder)
        assert trouble == []
        return found


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "state/mail")


@pytest.fixture
def nobody() -> Iterator[int]:
    with talker([]) as port:
        pass
    yield port


def mail(*to: str, data: bytes = DATA) -> Outgoing:
    return Outgoing("c@example.org", to or ("ops@example.org",), data)


def words(posted: Posted, port: int, office: Office) -> list[str]:
    return [
        line.replace(f":{port}", ":PORT").replace(str(office.folder), "FOLDER")
        for line in posted.lines
    ]


def test_what_is_sent_is_not_kept(office: Office) -> None:
    keeper = Keeper()
    with server(keeper) as port:
        posted = office.send(port, mail(), mail("b@example.org"))
    assert posted == Posted((), True)
    assert [got.to for got in keeper.got] == [["ops@example.org"], ["b@example.org"]]
    assert office.kept() == []
    assert posted.exit_code(2) == 2


def test_a_greylist_is_waited_for(office: Office) -> None:
    keeper = Keeper(answers=[GREY, GREY, GREY])
    with server(keeper) as port:
        posted = office.send(port, mail())
    assert posted == Posted((), True)
    assert office.clock.naps == [5, 15, 40]
    assert office.said[0].replace(f":{port}", "") == (
        f"mail: smtp://localhost puts off ops@example.org: {GREY}; tried again in 5 s"
    )
    assert len(keeper.got) == 1


def test_who_has_got_it_does_not_get_it_twice(office: Office) -> None:
    keeper = Keeper(answers=["250 OK", GREY])
    with server(keeper) as port:
        office.send(port, mail("a@example.org", "b@example.org"))
    assert [got.to for got in keeper.got] == [["a@example.org"], ["b@example.org"]]


def test_patience_has_an_end_and_the_next_sweep_sends_it(office: Office) -> None:
    keeper = Keeper(answers=[GREY] * 7)
    with server(keeper) as port:
        posted = office.send(port, mail())
        assert words(posted, port, office) == [
            f"mail to ops@example.org was not sent: smtp://localhost:PORT puts off ops@example.org:"
            f" {GREY}; 1 mail waits in FOLDER for the next sweep"
        ]
        assert sum(office.clock.naps) <= 360
        assert posted.exit_code(0) == exit_codes.NOT_SENT == 69
        keeper.answers.clear()
        second = office.send(port, mail(data=DATA + b"second\r\n"), after=1)
    assert second == Posted((), True)
    assert [got.data for got in keeper.got] == [DATA, DATA + b"second\r\n"]
    assert office.kept() == []


def test_nobody_listens_for_three_nights(office: Office, nobody: int) -> None:
    for night in range(3):
        posted = office.send(nobody, mail(data=DATA + b"%d\r\n" % night), after=night)
    assert words(posted, nobody, office) == [
        "mail to ops@example.org was not sent: no connection with smtp://localhost:PORT:"
        " Connection refused; 3 mails wait in FOLDER for the next sweep"
    ]
    keeper = Keeper()
    with server(keeper) as port:
        assert office.send(port, after=3) == Posted((), True)
    assert [got.data[-3:] for got in keeper.got] == [b"0\r\n", b"1\r\n", b"2\r\n"]


def test_one_that_is_refused_is_told_and_kept_and_tried_no_more(office: Office) -> None:
    keeper = Keeper(refuses=("gone@example.org",))
    with server(keeper) as port:
        posted = office.send(port, mail("gone@example.org", "ops@example.org"))
        (kept,) = (office.folder / "refused").iterdir()
        assert words(posted, port, office) == [
            "mail to gone@example.org: smtp://localhost:PORT refuses gone@example.org: 550 5.1.1 no"
            f" such user; kept as FOLDER/refused/{kept.name}. Take the address out of mail.to, or"
            " ask who runs the server."
        ]
        assert not posted.complete
        assert DATA in kept.read_bytes()
        assert office.send(port, after=1) == Posted((), True)
    assert [got.to for got in keeper.got] == [["ops@example.org"]]


def test_what_settings_are_wrong_is_not_tried_again_at_once(office: Office) -> None:
    options = Options(server="/no/such/sendmail")
    posted = deliver([mail()], options, office.folder, now=NOW, sleep=office.clock.sleep)
    assert office.clock.naps == []
    assert posted.lines == (
        "mail to ops@example.org was not sent: /no/such/sendmail cannot be run: No such file or"
        f" directory; 1 mail waits in {office.folder} for the next sweep. Set mail.server to what"
        " can be used.",
    )
    assert len(office.kept()) == 1


def test_no_patience_is_one_try(office: Office, nobody: int) -> None:
    office.patience = 0
    assert not office.send(nobody, mail()).complete
    assert office.clock.naps == []


def test_only_the_owner_may_read_what_is_kept(office: Office, nobody: int) -> None:
    old = os.umask(0)
    try:
        office.send(nobody, mail())
    finally:
        os.umask(old)
    (kept,) = office.kept()
    assert kept.path is not None
    assert oct(kept.path.stat().st_mode)[-3:] == "600"
    assert oct(office.folder.stat().st_mode)[-3:] == "700"


def test_a_damaged_file_is_told_and_hinders_nothing(office: Office, nobody: int) -> None:
    office.send(nobody, mail())
    (kept,) = office.kept()
    assert kept.path is not None
    whole = kept.path.read_bytes()
    keeper = Keeper()
    faults = (whole[:-1], b"", b"[]\n", b'{"sender": 1, "to": [], "bytes": 0}\n', b"\xff\n")
    with server(keeper) as port:
        for damage in faults:
            kept.path.write_bytes(damage)
            posted = office.send(port, mail())
            assert words(posted, port, office) == [
                f"a kept mail, FOLDER/{kept.path.name}, cannot be read: it is damaged; look at it"
                " and remove it"
            ]
            assert not posted.complete
    assert len(keeper.got) == len(faults)


def test_the_oldest_are_given_up_and_that_is_told(office: Office, nobody: int) -> None:
    for night in range(spool.KEPT + 3):
        when = NOW + timedelta(days=night)
        spool.put(office.folder, "c@example.org", ["ops@example.org"], b"%d" % night, when)
    posted = office.send(nobody)
    assert posted.lines[0] == "3 mails were never sent, and are given up for 60 later ones"
    assert not posted.complete
    kept = office.kept()
    assert [one.data for one in (kept[0], kept[-1])] == [b"3", b"62"]


def full_disk(limit: int) -> Callable[[], None]:
    """As on a full disk: no file can grow beyond so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


FULL = """
import signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from datetime import datetime, timezone
from pathlib import Path
from clustercheck.deliver import Outgoing, deliver
from clustercheck.mail_options import Options
data = b"Subject: x\\r\\n\\r\\n" + b"y\\r\\n" * 9000
mails = [Outgoing("c@example.org", ("ops@example.org",), data)]
options = Options(server="smtp://localhost:" + sys.argv[2], patience=0)
posted = deliver(mails, options, Path(sys.argv[1]), now=datetime.now(timezone.utc))
print(*posted.lines, posted.complete, sep="\\n")
"""


def test_a_full_disk_keeps_no_mail_from_being_sent(office: Office, nobody: int) -> None:
    def run(port: int) -> list[str]:
        words = [sys.executable, "-c", FULL, str(office.folder), str(port)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, preexec_fn=full_disk(4096)
        )
        return done.stdout.replace(str(office.folder), "FOLDER").splitlines()

    keeper = Keeper()
    with server(keeper) as port:
        assert run(port) == ["a mail cannot be kept for later, in FOLDER: File too large", "True"]
    assert len(keeper.got) == 1
    assert run(nobody) == [
        "a mail cannot be kept for later, in FOLDER: File too large",
        f"mail to ops@example.org was not sent: no connection with smtp://localhost:{nobody}:"
        " Connection refused; it is lost",
        "False",
    ]
    assert office.kept() == []
    assert [path.name for path in office.folder.iterdir()] == []


KILLED = """
import os, signal, sys
from datetime import datetime, timezone
from pathlib import Path
from clustercheck.deliver import Outgoing, deliver
from clustercheck.mail_options import Options
def give(data, sender, to, options):
    os.kill(os.getpid(), signal.SIGKILL)
deliver([Outgoing("c@example.org", ("ops@example.org",), b"x")], Options(), Path(sys.argv[1]),
        now=datetime.now(timezone.utc), give=give)
"""


def test_one_whose_sender_is_killed_is_sent_later(office: Office) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(office.folder)], check=False)
    assert done.returncode == -9
    keeper = Keeper()
    with server(keeper) as port:
        office.send(port)
    assert [got.data.rstrip() for got in keeper.got] == [b"x"]
