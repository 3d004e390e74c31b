"""A mail gets to a real server, or it is told in one line why not and what to do."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from clustercheck import send as module
from clustercheck.mail_options import Options
from clustercheck.send import Login, NotOurs, Sent, login, send
from tests.mail_servers import (
    ELSEWHERE,
    PASSWORD,
    USER,
    Keeper,
    Trust,
    make_trust,
    secret_file,
    server,
    talker,
)
from tools.fetch import TOOLS, CannotFetch, fetch

MAIL = b"Subject: [hpc1] 2 new failures\r\nFrom: c@example.org\r\n\r\n.a line\r\n"


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return make_trust(tmp_path_factory.mktemp("trust"))


def give(url: str, *to: str, timeout: float = 20, limit: float = 60, **options: object) -> Sent:
    made = Options(server=url, **options)  # type: ignore[arg-type]
    people = to or ("ops@example.org",)
    return send(MAIL, "c@example.org", people, made, timeout=timeout, limit=limit)


def told(sent: Sent, port: int = 0) -> str:
    """Cause and remedy, without what is another each time."""
    return f"{sent.cause}. {sent.remedy}".replace(f":{port}", ":PORT")


def test_plain_from_this_machine() -> None:
    keeper = Keeper()
    with server(keeper) as port:
        assert give(f"smtp://localhost:{port}", "a@example.org", "b@example.org") == Sent()
    (got,) = keeper.got
    assert (got.sender, got.to) == ("c@example.org", ["a@example.org", "b@example.org"])
    assert got.data == MAIL
    assert got.message["Subject"] == "[hpc1] 2 new failures"


def test_starttls_with_login(trust: Trust, tmp_path: Path) -> None:
    keeper = Keeper()
    with server(keeper, trust=trust, login=True) as port:
        url = f"smtp://{ELSEWHERE}:{port}"
        assert give(url, ca=str(trust.authority), login=secret_file(tmp_path)) == Sent()
    (got,) = keeper.got
    assert got.secret
    assert got.user == USER


def test_tls_from_the_start(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.USER, USER)
    monkeypatch.setenv(module.PASSWORD, PASSWORD)
    keeper = Keeper()
    with server(keeper, trust=trust, way="smtps", login=True) as port:
        assert give(f"smtps://{ELSEWHERE}:{port}", ca=str(trust.authority)) == Sent()
    assert [got.user for got in keeper.got] == [USER]


def test_the_systems_certificates_are_what_counts(
    trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper()
    with server(keeper, trust=trust) as port:
        url = f"smtp://{ELSEWHERE}:{port}"
        sent = give(url)
        assert told(sent, port) == (
            f"the certificate of smtp://{ELSEWHERE}:PORT cannot be trusted: unable to get local"
            " issuer certificate. Give the server's name as its certificate has it, or set mail.ca"
            " to the file of your own authority's certificate."
        )
        assert (sent.later, sent.settled) == (("ops@example.org",), True)
        monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))  # as if it were the system's
        assert give(url) == Sent()
    assert len(keeper.got) == 1


@pytest.mark.parametrize(
    "text, why",
    [(None, "No such file or directory"), ("none", "no certificate in it")],
)
def test_a_file_of_certificates_that_is_none(tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    sent = give("smtps://localhost:9", ca=str(file))
    assert (
        told(sent) == f"mail.ca: {file} cannot be used: {why}. Name a file of certificates in PEM."
    )
    assert sent.settled


@pytest.mark.parametrize(
    "name, days, why",
    [
        ("other.example.org", 1, "IP address mismatch, certificate is not valid for '0.0.0.0'."),
        (ELSEWHERE, -2, "certificate has expired"),
    ],
)
@pytest.mark.parametrize("way", ["smtp", "smtps"])
def test_a_wrong_certificate(tmp_path: Path, name: str, days: int, why: str, way: str) -> None:
    wrong = make_trust(tmp_path, name=name, days=days)
    keeper = Keeper()
    with server(keeper, trust=wrong, way=way) as port:
        sent = give(f"{way}://{ELSEWHERE}:{port}", ca=str(wrong.authority))
    expected = f"the certificate of {way}://{ELSEWHERE}:PORT cannot be trusted: {why}"
    assert told(sent, port).startswith(expected)
    assert keeper.got == []


def test_starttls_is_not_asked_of_this_machine_unless_always(trust: Trust) -> None:
    keeper = Keeper()
    with server(keeper, trust=trust) as port:
        url = f"smtp://127.0.0.1:{port}"
        assert give(url) == Sent()
        assert give(url, tls="always").settled
        assert give(f"smtp://{ELSEWHERE}:{port}", tls="never") == Sent()
    assert [got.secret for got in keeper.got] == [False, False]


def test_no_mail_without_tls_where_it_is_to_be() -> None:
    with server(Keeper()) as port:
        sent = give(f"smtp://{ELSEWHERE}:{port}", tls="always")
    assert told(sent, port) == (
        f"smtp://{ELSEWHERE}:PORT offers no STARTTLS, and mail.tls is always."
        " Use a server with TLS, or set mail.tls = auto."
    )


def test_no_password_in_the_clear(tmp_path: Path) -> None:
    keeper = Keeper()
    with server(keeper, login=True) as port:
        sent = give(f"smtp://{ELSEWHERE}:{port}", login=secret_file(tmp_path))
    assert told(sent, port) == (
        f"smtp://{ELSEWHERE}:PORT offers no TLS, so that the password would go there in the"
        " clear. Use a server with TLS, or one that wants no login."
    )
    assert keeper.got == []


def test_a_wrong_password(trust: Trust, tmp_path: Path) -> None:
    with server(Keeper(), trust=trust, login=True) as port:
        file = secret_file(tmp_path, f"{USER}\nguessed\n")
        sent = give(f"smtp://{ELSEWHERE}:{port}", ca=str(trust.authority), login=file)
    assert told(sent, port) == (
        f"smtp://{ELSEWHERE}:PORT refuses the login: 535 5.7.8 Authentication credentials invalid."
        " Look at user and password in mail.login, or in the environment."
    )
    assert sent.settled
    assert "guessed" not in told(sent)


def test_a_server_that_takes_no_login(trust: Trust, tmp_path: Path) -> None:
    with server(Keeper(), trust=trust) as port:
        url, file = f"smtp://127.0.0.1:{port}", secret_file(tmp_path)
        sent = give(url, login=file)
    # aiosmtpd offers AUTH only with TLS
    assert told(sent, port) == (
        "smtp://127.0.0.1:PORT takes no login without TLS."
        " Take mail.login away, or name another port, such as 587."
    )


def test_refused_for_good() -> None:
    keeper = Keeper(refuses=("gone@example.org",))
    with server(keeper) as port:
        url = f"smtp://localhost:{port}"
        some = give(url, "gone@example.org", "ops@example.org")
        alone = give(url, "gone@example.org")
    words = (
        "smtp://localhost:PORT refuses gone@example.org: 550 5.1.1 no such user."
        " Take the address out of mail.to, or ask who runs the server."
    )
    assert (told(some, port), told(alone, port)) == (words, words)
    assert (some.later, some.refused) == ((), ("gone@example.org",))
    assert [got.to for got in keeper.got] == [["ops@example.org"]]


def test_the_mail_itself_is_refused_or_put_off() -> None:
    with server(Keeper(of_data="554 5.7.1 looks like spam")) as port:
        sent = give(f"smtp://localhost:{port}")
    assert (sent.later, sent.refused) == ((), ("ops@example.org",))
    assert "refuses the mail: 554 5.7.1 looks like spam" in sent.cause
    with server(Keeper(of_data="452 4.3.1 disk full")) as port:
        sent = give(f"smtp://localhost:{port}")
    assert (sent.later, sent.refused) == (("ops@example.org",), ())
    assert "puts the mail off: 452 4.3.1 disk full" in sent.cause


def test_put_off_by_a_greylist() -> None:
    keeper = Keeper(answers=["250 OK", "451 4.7.1 Greylisted, come back later"])
    with server(keeper) as port:
        sent = give(f"smtp://localhost:{port}", "a@example.org", "b@example.org")
    assert sent.later == ("b@example.org",)
    assert told(sent, port) == (
        "smtp://localhost:PORT puts off b@example.org: 451 4.7.1 Greylisted, come back later. "
    )
    assert (sent.settled, sent.reached) == (False, True)


def test_a_server_that_hangs() -> None:
    with talker([]) as port:
        sent = give(f"smtp://localhost:{port}", timeout=0.2)
    assert told(sent, port) == "no answer from smtp://localhost:PORT. "
    assert not sent.reached


@pytest.mark.parametrize("words", [b"220-patience\r\n", b"x"])
def test_a_server_that_never_comes_to_the_point(words: bytes) -> None:
    with talker([words], again=0.05) as port:
        sent = give(f"smtp://localhost:{port}", limit=0.5)
    assert told(sent, port) == "smtp://localhost:PORT did not take it within 0.5 s. "


def test_a_server_that_talks_something_else() -> None:
    with talker([b"HTTP/1.1 400 \x1b[31mBad\r\n\r\n"]) as port:
        sent = give(f"smtp://localhost:{port}", timeout=0.2)
    assert "\x1b" not in told(sent)
    assert sent.later == ("ops@example.org",)


def test_tls_on_the_wrong_port() -> None:
    with server(Keeper()) as port:
        sent = give(f"smtps://localhost:{port}")
    assert sent.settled
    assert told(sent, port).endswith(
        "Ports with TLS from the start are written smtps://, others smtp://."
    )


def test_nobody_listens() -> None:
    with talker([]) as port:
        pass
    sent = give(f"smtp://localhost:{port}")
    assert told(sent, port) == "no connection with smtp://localhost:PORT: Connection refused. "


def test_a_name_that_is_none() -> None:
    sent = give("smtp://no-such-host.invalid")
    assert sent.cause.startswith("no address is found for no-such-host.invalid: ")
    assert sent.remedy == "Look at the name in mail.server."


@pytest.mark.parametrize(
    "mode, words",
    [
        (0o644, "may be read or written by others than its owner (mode 0644, should be 0600)"),
        (0o620, "may be read or written by others than its owner (mode 0620, should be 0600)"),
    ],
)
def test_a_login_that_others_may_read_is_refused(tmp_path: Path, mode: int, words: str) -> None:
    file = secret_file(tmp_path, mode=mode)
    with pytest.raises(NotOurs) as caught:
        login(Options(login=file))
    assert caught.value.cause == f"mail.login: {file} {words}"
    assert f"`chmod 600 {file}`" in caught.value.remedy
    sent = give("smtp://localhost:9", login=file)
    assert (sent.settled, sent.cause) == (True, caught.value.cause)


@pytest.mark.parametrize("text", ["", "sweeper\n", "\n\n", "sweeper secret\n"])
def test_a_login_that_is_none(tmp_path: Path, text: str) -> None:
    file = secret_file(tmp_path, text)
    with pytest.raises(NotOurs, match="has not two lines"):
        login(Options(login=file))


def test_a_login_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotOurs, match="cannot be read: No such file or directory"):
        login(Options(login=str(tmp_path / "no")))
    with pytest.raises(NotOurs, match="cannot be read: Is a directory"):
        login(Options(login=str(tmp_path)))


def test_a_login_is_not_shown(tmp_path: Path) -> None:
    found = login(Options(login=secret_file(tmp_path)))
    assert found == Login(USER, PASSWORD)
    assert PASSWORD not in repr(found)


def script(folder: Path, text: str) -> str:
    path = folder / "sendmail"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_sendmail_program(tmp_path: Path) -> None:
    program = script(tmp_path, 'cd "${0%/*}" || exit; printf "%s\\n" "$@" >words; cat >mail')
    assert give(program, "a@example.org", "root") == Sent()
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["-i", "-f", "c@example.org", "--", "a@example.org", "root"]
    assert (tmp_path / "mail").read_bytes() == MAIL.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    "text, words, settled",
    [
        ("echo queue full >&2; exit 75", "ended with 75: queue full", False),
        ("printf 'no\\033[1m\\n such user'; exit 67", "ended with 67: no\\x1b[1m such user", True),
        ("exec sleep 60", "did not end within 0.3 s", False),
    ],
)
def test_a_sendmail_program_in_trouble(
    tmp_path: Path, text: str, words: str, settled: bool
) -> None:
    program = script(tmp_path, text)
    sent = give(program, limit=0.3 if "sleep" in text else 60)
    assert sent.cause == f"{program} {words}"
    assert (sent.later, sent.settled) == (("ops@example.org",), settled)


def test_no_sendmail_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "SENDMAIL", ())
    sent = give("sendmail")
    assert f"{sent.cause}. {sent.remedy}" == (
        "this machine has no sendmail program."
        " Set mail.server = smtp://HOST to your mail server, or install one."
    )
    sent = give(str(tmp_path / "no"))
    assert sent.cause == f"{tmp_path}/no cannot be run: No such file or directory"


@pytest.fixture
def msmtp(tmp_path: Path) -> Callable[[int], str]:
    """Debian's msmtp, called as sendmail, which gives its mail to a port of this machine."""
    try:
        fetch("mail")
    except CannotFetch as why:
        pytest.skip(str(why))
    program = TOOLS / "mail/usr/bin/msmtp"

    def make(port: int) -> str:
        config = tmp_path / "msmtprc"
        config.write_text(f"account default\nhost 127.0.0.1\nport {port}\n")
        libraries = ":".join(sorted({str(p.parent) for p in TOOLS.glob("mail/usr/lib/**/*.so.*")}))
        words = f"LD_LIBRARY_PATH={shlex.quote(libraries)} exec {shlex.quote(str(program))}"
        return script(tmp_path, f'{words} -C {shlex.quote(str(config))} "$@"')

    return make


@pytest.mark.timeout(600)  # it may have to be fetched
def test_a_real_sendmail_program(msmtp: Callable[[int], str]) -> None:
    keeper = Keeper(refuses=("gone@example.org",))
    with server(keeper) as port:
        program = msmtp(port)
        assert give(program, "a@example.org", "b@example.org") == Sent()
        sent = give(program, "gone@example.org")
    (got,) = keeper.got
    assert (got.sender, got.to) == ("c@example.org", ["a@example.org", "b@example.org"])
    assert got.message["Subject"] == "[hpc1] 2 new failures"
    assert got.message.get_content().rstrip() == ".a line"
    assert "no such user" in sent.cause
    assert sent.later == ("gone@example.org",)
