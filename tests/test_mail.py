"""The mails of a sweep, read as who gets them reads them."""

import http.server
import json
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from clustercheck import chat, mail
from clustercheck.changes import Changed, Kind, Night
from clustercheck.check import Remedy, fail, unknown, warn
from clustercheck.mail_options import Options
from tests.mail_night import ACCEPTED, ALL_KINDS, LOST, NOW, SLOW, STEP, changed, night, slow
from tests.mail_servers import Keeper, server

MAIN = Options(to=("ops@example.org", "root"), sender="clustercheck@example.org")


def letters(of: Night, folder: Path, main: Options = MAIN, **more: Any) -> list[mail.Letter]:
    routes = mail.routes(main, more.pop("of_node", {}))
    return mail.letters(of, routes, folder, now=more.pop("now", NOW), **more)


def one(of: Night, folder: Path, main: Options = MAIN, **more: Any) -> EmailMessage:
    """The only mail, as it comes out of the wire."""
    (letter,) = letters(of, folder, main, **more)
    found = message_from_bytes(letter.message.as_bytes(policy=mail.POLICY), policy=policy.SMTP)
    assert isinstance(found, EmailMessage)
    return found


def body(message: EmailMessage, kind: str = "plain") -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def test_a_night_with_all_there_is(tmp_path: Path) -> None:
    of = night(
        ALL_KINDS,
        accepted=(ACCEPTED,),
        joined=("gpu511", "gpu512"),
        left=("gpu600",),
        silent=("gpu050",),
        troubles=("the history is full: 1 MB free in /var/lib/clustercheck",),
    )
    message = one(of, tmp_path, page=lambda of: b"<!doctype html><title>page</title>")
    assert message["Subject"] == (
        "[hpc1] 3 new failures on 6 nodes, 1 worse, 1 flapping, 1 better, 1 recovered on 2 nodes,"
        " 2 nodes joined, 1 node left, 502/512 pass"
    )
    assert (
        body(message)
        == """\
[hpc1] 3 new failures on 6 nodes, 1 worse, 1 flapping, 1 better, 1
recovered on 2 nodes, 2 nodes joined, 1 node left, 502/512 pass
Sweep of Tue 1 Dec 2026 03:00, compared with that of Mon 30 Nov 2026
  03:00.
512 nodes: 501 pass, 3 warn, 8 fail; 4 checks; 41.2 s; slowest gpu001
  1.0 s
But for what is accepted, 502 pass.

THE SWEEP ITSELF
- the history is full: 1 MB free in /var/lib/clustercheck

NEW
- FAIL nfs.slow on gpu[003-006]
  43 MB/s from fs1:/home, should be 100 MB/s at least (gpu003; 3 more
  nodes alike, 43 to 46 MB/s)
  What to do: Look with `nfsiostat` at what the server does. (field
    notes §4.1.3)
- FAIL gpu.hidden on gpu017
  2 of 8 GPUs are not seen
  What to do: [disturbs running work] Reset the node. (field notes
    §4.2.1)
- FAIL gpu.stuck on gpu018
  a GPU gives no answer
  What to do: as above for gpu.hidden.

WORSE
- FAIL ntp.offset on gpu019, was warn
  clock is 2.1 s fast, should be within 1 s
  What to do: Step the clock with `chronyc makestep`. (field notes
    §4.1.1)

COMES AND GOES
- WARN ntp.offset on gpu020, 5 changes in 10 nights
  clock is 0.7 s fast, should be within 0.5 s
  What to do: Step the clock with `chronyc makestep`. (field notes
    §4.1.1)

BETTER, AND NOT WELL YET
- WARN tmp.space on gpu021, was fail

RECOVERED
- nfs.slow on gpu[030-031], was fail

STILL THERE
- WARN tmp.space on gpu040, since 19 Nov 2026
- nfs.slow on gpu050, was fail, not looked at tonight; since 28 Nov 2026

ACCEPTED
- FAIL nfs on gpu060, until 15 Jan 2027: disk ordered (anna)

NODES
- gpu[511-512], joined
- gpu600, left
- gpu050, gave no answer

Node by node: hpc1-2026-12-01.html, attached.
More: clustercheck explain nfs.slow; clustercheck history gpu003
"""
    )
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == "hpc1-2026-12-01.html"
    assert attached.get_content_type() == "text/html"
    assert attached.get_payload(decode=True) == b"<!doctype html><title>page</title>"


@pytest.mark.parametrize(
    "found, subject",
    [
        (
            [
                changed(Kind.NEW, "gpu003", "nfs", slow(40)),
                changed(Kind.NEW, "gpu017", "gpu", fail("hidden", "no", LOST)),
                changed(Kind.GONE, "gpu030", "ntp", None),
            ],
            "[hpc1] 2 new failures, 1 recovered, 510/512 pass",
        ),
        (
            [
                changed(Kind.NEW, "gpu003", "access", unknown("timeout", "no answer")),
                changed(Kind.NEW, "gpu004", "tmp", warn("space", "85 %", STEP)),
                changed(Kind.NEW, "gpu004", "tmp", warn("inodes", "85 %", STEP)),
            ],
            "[hpc1] 1 new unknown, 2 new warnings, 510/512 pass",
        ),
        (
            [changed(Kind.NEW, f"gpu{n:03}", "nfs", slow(40)) for n in range(1, 513)],
            "[hpc1] 1 new failure on 512 nodes, 0/512 pass",
        ),
        (
            [changed(Kind.STILL, "gpu003", "nfs", slow(40))],
            "[hpc1] no change, 511/512 pass",
        ),
        ([], "[hpc1] no change, 512/512 pass"),
    ],
)
def test_subjects(tmp_path: Path, found: list[Changed], subject: str) -> None:
    message = one(night(found), tmp_path, replace(MAIN, when="always"))
    assert message["Subject"] == subject


def test_a_thousand_equal_findings_are_one_line(tmp_path: Path) -> None:
    found = [changed(Kind.NEW, f"n{n:04}", "nfs", slow(n % 90)) for n in range(1000)]
    text = body(one(night(found, nodes=0), tmp_path))
    assert text.count("nfs.slow on") == 1
    assert "- FAIL nfs.slow on n[0000-0999]\n" in text
    assert "(n0000; 999 more nodes alike, 0 to 89 MB/s) →" in " ".join(text.split())
    assert "look first at what these nodes share" in " ".join(text.split())
    assert len(text) < 1200


def test_what_many_have_points_at_what_they_share(tmp_path: Path) -> None:
    hint = "→ look first at what these nodes share"
    for check, finding in (("nfs", slow(40)), ("access", unknown("timeout", "no answer"))):
        for ill, common in ((6, True), (5, False)):
            found = [changed(Kind.NEW, f"gpu{n:03}", check, finding) for n in range(1, ill + 1)]
            text = " ".join(body(one(night(found, nodes=10), tmp_path)).split())
            assert (hint in text) is common, (check, ill)


def test_a_thousand_different_findings_do_not_fill_the_mail(tmp_path: Path) -> None:
    found = [
        changed(Kind.NEW, f"n{n:04}", "nfs", fail(f"code{n}", "words " * 1000, SLOW))
        for n in range(1000)
    ]
    text = body(one(night(found, nodes=0), tmp_path))
    assert "- and 960 more\n" in text
    assert len(text) < 40_000


def test_the_first_sweep(tmp_path: Path) -> None:
    found = [changed(Kind.NEW, "gpu003", "nfs", slow(40))]
    message = one(night(found, before=None, joined=("gpu001",)), tmp_path)
    assert message["Subject"] == "[hpc1] 1 new failure, 511/512 pass"
    assert "the first: all that is not well stands below New." in " ".join(body(message).split())
    message = one(night([], before=None), tmp_path)
    assert message["Subject"] == "[hpc1] first sweep, 512/512 pass"


def test_a_sweep_that_was_stopped_or_asked_nobody(tmp_path: Path) -> None:
    of = night([])
    stopped = replace(of, report=replace(of.report, stopped="--max-time of 60 s"))
    message = one(stopped, tmp_path)
    assert message["Subject"] == "[hpc1] no change, stopped early, 512/512 pass"
    assert "stopped early: --max-time of 60 s" in " ".join(body(message).split())
    nobody = one(night([], nodes=0), tmp_path)
    assert nobody["Subject"] == "[hpc1] no change, nothing was checked"


HOSTILE = "<script>alert(1)</script>\r\nBcc: evil@example.org\x1b[31m\u202e&\"'\ud800`"


def test_what_comes_from_nodes_is_text_and_nothing_else(tmp_path: Path) -> None:
    finding = fail("slow", HOSTILE, Remedy(HOSTILE, HOSTILE))
    found = [changed(Kind.NEW, HOSTILE, HOSTILE, finding)]
    of = replace(night(found, joined=(HOSTILE,), troubles=(HOSTILE,)), cluster=HOSTILE)
    of = replace(of, report=replace(of.report, notes=(HOSTILE,), stopped=HOSTILE))
    message = one(of, tmp_path, page=lambda of: b"page")
    assert message["Bcc"] is None
    assert set(message.keys()) == {
        *("Subject", "From", "To", "Date", "Message-ID", "In-Reply-To", "References"),
        *("List-Id", "Auto-Submitted", "X-Auto-Response-Suppress", "MIME-Version", "Content-Type"),
    }
    assert "\\r\\nBcc: evil@example.org\\x1b[31m\\u202e" in message["Subject"]
    text, html = body(message), body(message, "html")
    for shown in (text, html):
        assert not set(shown) & {"\x1b", "\r", "\u202e", "\ud800"}
    assert "<script>" in text
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\r\\nBcc: evil@example.org" in html
    assert [part.get_filename() for part in message.iter_attachments()] == [
        "script-alert-1-script-Bcc-evil-example-o-2026-12-01.html"
    ]


def test_ten_megabytes_from_a_node_are_cut(tmp_path: Path) -> None:
    found = [changed(Kind.NEW, "gpu003", "nfs", fail("slow", "\x1b" * 10_000_000, SLOW))]
    data = letters(night(found), tmp_path)[0].message.as_bytes(policy=mail.POLICY)
    assert len(data) < 20_000


def test_no_line_is_too_long_for_a_server(tmp_path: Path) -> None:
    found = [changed(Kind.NEW, "gpu003", "nfs", fail("slow", "ä" * 5000, Remedy("x" * 5000, "§1")))]
    of = night(found, troubles=("y" * 5000,))
    (letter,) = letters(of, tmp_path, page=lambda of: ("<p>" + "ö" * 9000).encode())
    data = letter.message.as_bytes(policy=mail.POLICY)
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert data.isascii()
    assert b"\n" not in data.replace(b"\r\n", b"")


def test_headers(tmp_path: Path) -> None:
    message = one(night(ALL_KINDS), tmp_path)
    assert message["From"] == "clustercheck hpc1 <clustercheck@example.org>"
    assert message["To"] == "ops@example.org, root"
    assert message["Date"] == "Tue, 01 Dec 2026 03:01:00 +0100"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Id"] == "clustercheck hpc1 <hpc1.clustercheck.example.org>"
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]


def test_mails_of_a_cluster_are_one_thread(tmp_path: Path) -> None:
    first = one(night(ALL_KINDS), tmp_path)
    second = one(night(ALL_KINDS[:1]), tmp_path, now=NOW + timedelta(days=1))
    other = one(replace(night(ALL_KINDS), cluster="hpc2"), tmp_path)
    assert first["References"] == second["References"] == first["In-Reply-To"]
    assert first["Message-ID"] != second["Message-ID"]
    assert other["References"] != first["References"]


def test_a_page_that_is_too_large_is_not_attached(tmp_path: Path) -> None:
    message = one(night(ALL_KINDS), tmp_path, page=lambda of: b"x" * 6_000_000)
    assert list(message.iter_attachments()) == []
    assert "The page has 6.0 MB, more than the 5 MB attached." in body(message)
    message = one(night(ALL_KINDS), tmp_path, replace(MAIN, page_mb=0), page=lambda of: b"x")
    assert list(message.iter_attachments()) == []
    assert "page" not in body(message)


QUIET = night([changed(Kind.STILL, "gpu003", "nfs", slow(40))])
WELL = night([])


@pytest.mark.parametrize(
    "when, of, comes",
    [
        ("always", WELL, True),
        ("change", WELL, False),
        ("fail", WELL, False),
        ("change", QUIET, False),
        ("fail", QUIET, True),
        ("change", night([changed(Kind.GONE, "gpu003", "nfs", None)]), True),
        ("fail", night([changed(Kind.GONE, "gpu003", "nfs", None)]), False),
        ("fail", night([changed(Kind.NEW, "gpu003", "x", unknown("no", "no answer"))]), True),
        ("fail", night([changed(Kind.NEW, "gpu003", "x", warn("no", "85 %", STEP))]), False),
        ("change", night([], joined=("gpu001",)), True),
        ("fail", night([], accepted=(ACCEPTED,)), False),
        ("fail", night([], troubles=("the history is full",)), True),
        ("change", night([], troubles=("the history is full",)), True),
    ],
)
def test_when_a_mail_comes(tmp_path: Path, when: Any, of: Night, comes: bool) -> None:
    main = replace(MAIN, when=when)
    (tmp_path / mail.LAST).write_text(
        json.dumps({"hpc1 ops@example.org root": (NOW - timedelta(days=1)).isoformat()})
    )
    assert bool(letters(of, tmp_path, main)) is comes


def test_a_sign_of_life_each_week(tmp_path: Path) -> None:
    sent = []
    keeper = Keeper()
    with server(keeper) as port:
        main = replace(MAIN, server=f"smtp://localhost:{port}")
        for day in range(16):
            now = NOW + timedelta(days=day)
            found = letters(WELL, tmp_path, main, now=now)
            assert mail.post(found, main, tmp_path, now=now).complete
            sent += [day] * len(found)
    assert sent == [0, 7, 14]
    texts = [" ".join(body(got.message).split()) for got in keeper.got]
    assert "The first mail to these addresses, to show that it gets there." in texts[0]
    assert "Nothing to tell for 7 days: this mail shows that the sweep still runs." in texts[1]
    assert keeper.got[1].message["Subject"] == "[hpc1] no change, 512/512 pass"


def test_no_sign_of_life_where_none_is_wanted(tmp_path: Path) -> None:
    main = replace(MAIN, sign_of_life=0)
    (tmp_path / mail.LAST).write_text('{"hpc1 ops@example.org root": "2020-01-01T03:00:00+01:00"}')
    assert letters(WELL, tmp_path, main) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": "yesterday"}', "\0"])
def test_a_damaged_memory_of_mails_hinders_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / mail.LAST).write_text(text)
    assert len(letters(WELL, tmp_path)) == 1


def test_groups_get_what_concerns_their_nodes(tmp_path: Path) -> None:
    team = replace(MAIN, to=("gpu-team@example.org", "root"))
    of_node = {f"gpu{n:03}": team if n <= 4 else MAIN for n in range(1, 513)}
    pages: list[int] = []

    def page(of: Night) -> bytes:
        pages.append(len(of.report.nodes))
        return b"page"

    of = night(ALL_KINDS, silent=("gpu050",), left=("gpu600",))
    first, second = letters(of, tmp_path, of_node=of_node, page=page)
    assert (first.message["To"], second.message["To"]) == (
        "ops@example.org, root",
        "gpu-team@example.org",
    )
    assert second.message["Subject"] == "[hpc1] 1 new failure on 2 nodes, 2/4 pass"
    text = body(second.message)
    assert "This mail is about gpu[001-004] only.\n" in text
    assert "- FAIL nfs.slow on gpu003\n" in text
    assert "- FAIL nfs.slow on gpu004\n" in text
    assert "gpu017" not in text + body(second.message, "html")
    assert pages == [512, 4]


def test_a_group_without_news_gets_no_mail(tmp_path: Path) -> None:
    team = replace(MAIN, to=("cpu-team@example.org",))
    last = {"hpc1 cpu-team@example.org": NOW.isoformat()}
    (tmp_path / mail.LAST).write_text(json.dumps(last))
    (only,) = letters(night(ALL_KINDS), tmp_path, of_node={"gpu500": team})
    assert only.message["To"] == "ops@example.org, root"
    # nor one whose nodes were not asked
    (only,) = letters(night(ALL_KINDS), tmp_path, of_node={"cpu01": team})
    assert only.message["To"] == "ops@example.org, root"


def test_a_group_may_have_people_where_nobody_gets_all(tmp_path: Path) -> None:
    nobody = replace(MAIN, to=())
    (only,) = letters(night(ALL_KINDS), tmp_path, nobody, of_node={"gpu017": MAIN})
    assert only.message["Subject"] == "[hpc1] 1 new failure, 0/1 pass"
    assert letters(night(ALL_KINDS), tmp_path, nobody) == []


def test_a_dry_run_shows_the_mail(tmp_path: Path) -> None:
    found = letters(night(ALL_KINDS), tmp_path, page=lambda of: b"x" * 300_000)
    wanted = mail.routes(MAIN, {})
    lines = mail.preview(found, wanted).splitlines()
    assert lines[:4] == [
        "From: clustercheck hpc1 <clustercheck@example.org>",
        "To: ops@example.org, root",
        "Subject: [hpc1] 3 new failures on 6 nodes, 1 worse, 1 flapping, 1 better, 1 recovered on"
        " 2 nodes, 502/512 pass",
        "Date: Tue, 01 Dec 2026 03:01:00 +0100",
    ]
    assert "NEW" in lines
    assert lines[-1].startswith("[The same as HTML (")
    assert lines[-1].endswith(" kB); hpc1-2026-12-01.html (0.3 MB)]")
    assert mail.preview([], wanted) == (
        "No mail is due (mail.when is change). To see one: -o mail.when=always\n"
    )
    assert mail.preview([], mail.routes(Options(), {})) == (
        "Nobody gets a mail: set mail.to below [sweep] in the inventory.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_it_gets_there(tmp_path: Path) -> None:
    keeper = Keeper()
    with server(keeper) as port:
        main = replace(MAIN, server=f"smtp://localhost:{port}")
        found = letters(night(ALL_KINDS), tmp_path, main, page=lambda of: "<p>ä".encode())
        assert mail.post(found, main, tmp_path, now=NOW).lines == ()
    (got,) = keeper.got
    assert got.to == ["ops@example.org", "root"]
    assert body(got.message) == body(found[0].message)
    (page,) = got.message.iter_attachments()
    assert page.get_payload(decode=True) == "<p>ä".encode()


@pytest.mark.parametrize(
    "here, domain",
    [("head.example.org", "head.example.org"), ("my head_1", "my-head-1"), ("::1", "1"), ("", "")],
)
def test_the_sender_is_this_machine_where_none_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, domain: str
) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda: here)
    message = one(night(ALL_KINDS), tmp_path, replace(MAIN, sender=""))
    assert message["From"] == f"clustercheck hpc1 <clustercheck@{domain or 'localhost'}>"


class Chat(http.server.BaseHTTPRequestHandler):
    """What Apprise posts to, as to any web hook."""

    got: list[dict[str, str]] = []
    answer = 200

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append(json.loads(data))
        self.send_response(self.answer)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def chat_port() -> Any:
    Chat.got, Chat.answer = [], 200
    web = http.server.HTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield web.server_port
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.mark.filterwarnings("ignore")  # of what Apprise loads
def test_a_chat_gets_a_few_lines(tmp_path: Path, chat_port: int) -> None:
    main = Options(sender="c@example.org", chat=(f"json://localhost:{chat_port}/secret",))
    found = letters(night(ALL_KINDS), tmp_path, main)
    preview = mail.preview(found, mail.routes(main, {}))
    assert "\nIn the chat (json):\nSweep of Tue 1 Dec 2026 03:00, " in preview
    assert "secret" not in preview
    posted = mail.post(found, main, tmp_path, now=NOW)
    assert (posted.lines, posted.complete) == ((), True)
    (got,) = Chat.got
    assert got["title"].startswith("[hpc1] 3 new failures on 6 nodes, 1 worse")
    lines = got["message"].splitlines()
    assert lines[1] == "512 nodes: 502 pass, 3 warn, 7 fail; 4 checks; 41.2 s; slowest gpu001 1.0 s"
    assert lines[3] == "FAIL gpu.hidden on gpu017: 2 of 8 GPUs are not seen"
    Chat.answer = 403
    posted = mail.post(found, main, tmp_path, now=NOW)
    assert posted.lines == ("no message by json: it was not taken; look at its URL",)
    assert not posted.complete


def test_a_chat_without_apprise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_port: int
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.setenv(chat.VARIABLE, f"json://localhost:{chat_port}/secret")
    found = letters(night(ALL_KINDS), tmp_path, Options(sender="c@example.org"))
    assert mail.post(found, Options(), tmp_path, now=NOW).lines == (
        "no message in a chat: Apprise is not installed; pip install 'clustercheck[chat]'",
    )
