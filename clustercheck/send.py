"""Gives one mail to a server or to the sendmail program, and says how that ended.

Nothing is kept here: what is to be tried later is the spool's affair.
"""

import contextlib
import os
import shutil
import smtplib
import socket
import ssl
import stat
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clustercheck.mail_options import Options, Server, server_of
from clustercheck.render.escape import visible

TIMEOUT = 30.0  # seconds for a connection, and for each answer (RFC 5321 would allow minutes)
LIMIT = 120.0  # seconds for one mail as a whole, whatever the server does
LONGEST = 200  # characters of a server's words that are shown
USER, PASSWORD = "CLUSTERCHECK_MAIL_USER", "CLUSTERCHECK_MAIL_PASSWORD"
SENDMAIL = ("/usr/sbin/sendmail", "/usr/lib/sendmail", "/usr/bin/sendmail")
TEMPORARY = 75  # EX_TEMPFAIL, as sendmail programs end


class Login(NamedTuple):
    """Who we are to the server."""

    user: str
    password: str

    def __repr__(self) -> str:  # a traceback or a log must not tell it
        return f"Login({self.user!r})"


@dataclass(frozen=True)
class Sent:
    """How giving away one mail ended.

    later: recipients to be tried again with the same mail. refused: those that the server will
    not take it for. Whoever is in neither has got it.
    cause: what happened, in one line; "" where all is well.
    remedy: what to do about it, where that is known.
    settled: it is our own settings (login, certificate, no program) that are wrong: to try again
    at once is of no use. reached: the server answered, so that other mails may fare better.
    """

    later: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    cause: str = ""
    remedy: str = ""
    settled: bool = False
    reached: bool = True


class NotOurs(Exception):
    """Something on this machine keeps a mail from being sent: what, and the remedy."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


def send(
    data: bytes,
    sender: str,
    to: Sequence[str],
    options: Options,
    *,
    timeout: float = TIMEOUT,
    limit: float = LIMIT,
) -> Sent:
    """Try once to give the mail `data`, whole as it goes over the wire, to the server.

    Never raises for what a server, the network or a setting does.
    """
    server = server_of(options.server)
    try:
        if server.way == "sendmail":
            return _by_program(data, sender, to, server, limit)
        return _by_smtp(data, sender, to, server, options, timeout, limit)
    except NotOurs as error:
        return Sent(tuple(to), (), error.cause, error.remedy, True)


def login(options: Options) -> Login | None:
    """From the environment, else from the file of `mail.login`; None where neither is set.

    Raises NotOurs where the file cannot be used or others than its owner may read it.
    """
    if os.environ.get(USER) and os.environ.get(PASSWORD):
        return Login(os.environ[USER], os.environ[PASSWORD])
    if not options.login:
        return None
    path = Path(os.path.expanduser(options.login))
    try:
        with path.open(encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise NotOurs(
                    f"mail.login: {path} is not a plain file", "Name a file of two lines."
                )
            if about.st_mode & 0o077:
                raise NotOurs(
                    f"mail.login: {path} may be read or written by others than its owner"
                    f" (mode {stat.S_IMODE(about.st_mode):04o}, should be 0600)",
                    f"Run `chmod 600 {path}`, and take another password if others had access.",
                )
            if about.st_uid not in (os.geteuid(), 0):
                raise NotOurs(
                    f"mail.login: {path} belongs to another user (uid {about.st_uid})",
                    f"Run `chown {os.geteuid()} {path}` as root.",
                )
            lines = file.read(4096).splitlines()
    except OSError as error:
        raise NotOurs(
            f"mail.login: {path} cannot be read: {error.strerror}",
            "Write the file, with the user in its first line and the password in its second.",
        ) from None
    except ValueError:  # no UTF-8, or a NUL in the path
        raise NotOurs(f"mail.login: {path} is not text in UTF-8", "Write it anew.") from None
    if len(lines) < 2 or not lines[0] or not lines[1]:
        raise NotOurs(
            f"mail.login: {path} has not two lines",
            "Write the user in the first line and the password in the second.",
        )
    return Login(lines[0].strip(), lines[1])


def _by_program(data: bytes, sender: str, to: Sequence[str], server: Server, limit: float) -> Sent:
    program = server.host or shutil.which("sendmail") or next(filter(os.path.exists, SENDMAIL), "")
    if not program:
        raise NotOurs(
            "this machine has no sendmail program",
            "Set mail.server = smtp://HOST to your mail server, or install one.",
        )
    words = [program, "-i", "-f", sender, "--", *to]
    try:
        done = subprocess.run(
            words,
            input=data.replace(b"\r\n", b"\n"),  # these programs read a file of this machine
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Sent(tuple(to), (), f"{program} did not end within {limit:g} s")
    except OSError as error:
        raise NotOurs(
            f"{program} cannot be run: {error.strerror}", "Set mail.server to what can be used."
        ) from None
    if not done.returncode:
        return Sent()
    said = _words(done.stdout)
    cause = f"{program} ended with {done.returncode}" + (f": {said}" if said else "")
    if done.returncode == TEMPORARY or done.returncode < 0:
        return Sent(tuple(to), (), cause)
    return Sent(tuple(to), (), cause, f"Send a mail with {program} by hand to see why.", True)


def _by_smtp(
    data: bytes,
    sender: str,
    to: Sequence[str],
    server: Server,
    options: Options,
    timeout: float,
    limit: float,
) -> Sent:
    own = login(options)
    everybody = tuple(to)
    smtp: smtplib.SMTP | None = None
    try:
        if server.way == "smtps":
            smtp = smtplib.SMTP_SSL(timeout=timeout, context=_trust(options))
        else:
            smtp = smtplib.SMTP(timeout=timeout)
        smtp._host = server.host  # type: ignore[attr-defined]  # the name its certificate is for
        with _within(smtp, limit) as late:
            try:
                return _talk(smtp, data, sender, everybody, server, options, own)
            except (OSError, smtplib.SMTPException) as error:
                if late.is_set():
                    cause = f"{server} did not take it within {limit:g} s"
                    return Sent(everybody, (), cause, reached=False)
                return _trouble(error, server, everybody)
    finally:
        if smtp is not None:
            with contextlib.suppress(OSError):
                smtp.close()


def _talk(
    smtp: smtplib.SMTP,
    data: bytes,
    sender: str,
    to: tuple[str, ...],
    server: Server,
    options: Options,
    own: Login | None,
) -> Sent:
    code, said = smtp.connect(server.host, server.port)
    if code != 220:
        raise smtplib.SMTPConnectError(code, said)
    smtp.ehlo_or_helo_if_needed()
    secret = server.way == "smtps"
    if not secret and _wants_tls(smtp, server, options):
        smtp.starttls(context=_trust(options))
        smtp.ehlo()
        secret = True
    if own:
        if not secret and not _is_here(server.host):
            raise NotOurs(
                f"{server} offers no TLS, so that the password would go there in the clear",
                "Use a server with TLS, or one that wants no login.",
            )
        try:
            smtp.login(own.user, own.password)
        except smtplib.SMTPNotSupportedError:
            raise NotOurs(
                f"{server} takes no login" + ("" if secret else " without TLS"),
                "Take mail.login away, or name another port, such as 587.",
            ) from None
    try:
        refused = smtp.sendmail(sender, to, data)
    except smtplib.SMTPRecipientsRefused as error:
        refused = error.recipients
    with contextlib.suppress(OSError, smtplib.SMTPException):
        smtp.quit()  # it has been taken by now
    later = tuple(one for one in to if one in refused and refused[one][0] < 500)
    never = tuple(one for one in to if one in refused and refused[one][0] >= 500)
    if not refused:
        return Sent()
    code, words = next(iter(refused.values()))
    cause = f"{server} {'refuses' if never else 'puts off'} {', '.join(never or later)}"
    if never:
        code, words = refused[never[0]]
    remedy = "Take the address out of mail.to, or ask who runs the server." if never else ""
    return Sent(later, never, f"{cause}: {code} {_words(words)}", remedy)


def _wants_tls(smtp: smtplib.SMTP, server: Server, options: Options) -> bool:
    """Whether to turn to TLS. Raises NotOurs where it must be and cannot."""
    if options.tls == "never":
        return False
    offered = smtp.has_extn("starttls")
    if options.tls == "always" and not offered:
        raise NotOurs(
            f"{server} offers no STARTTLS, and mail.tls is always",
            "Use a server with TLS, or set mail.tls = auto.",
        )
    # A mail server on this machine mostly has a certificate that nobody signed.
    return offered and (options.tls == "always" or not _is_here(server.host))


def _is_here(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _trust(options: Options) -> ssl.SSLContext:
    """The system's certificates, or those of `mail.ca`."""
    if not options.ca:
        return ssl.create_default_context()
    path = os.path.expanduser(options.ca)
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or "no certificate in it"
        why = "no certificate in it" if isinstance(error, ssl.SSLError) else why
        raise NotOurs(
            f"mail.ca: {path} cannot be used: {why}", "Name a file of certificates in PEM."
        ) from None


def _trouble(error: Exception, server: Server, to: tuple[str, ...]) -> Sent:
    """What went wrong before the mail was taken, and whose affair it is."""
    if isinstance(error, ssl.SSLCertVerificationError):
        cause = f"the certificate of {server} cannot be trusted: {visible(error.verify_message)}"
        remedy = (
            "Give the server's name as its certificate has it, or set mail.ca to the file of your"
            " own authority's certificate."
        )
        return Sent(to, (), cause, remedy, True)
    if isinstance(error, ssl.SSLError):
        remedy = "Ports with TLS from the start are written smtps://, others smtp://."
        return Sent(to, (), f"no TLS with {server}: {visible(str(error))}", remedy, True)
    if isinstance(error, smtplib.SMTPAuthenticationError) and error.smtp_code >= 500:
        cause = f"{server} refuses the login: {error.smtp_code} {_words(error.smtp_error)}"
        remedy = "Look at user and password in mail.login, or in the environment."
        return Sent(to, (), cause, remedy, True)
    if isinstance(error, smtplib.SMTPResponseException):
        cause = f"{error.smtp_code} {_words(error.smtp_error)}"
        if error.smtp_code >= 500:
            remedy = "Ask who runs the server; mail.sender is what it may not like."
            return Sent((), to, f"{server} refuses the mail: {cause}", remedy)
        return Sent(to, (), f"{server} puts the mail off: {cause}")
    remedy = ""
    if isinstance(error, socket.gaierror):
        cause = f"no address is found for {server.host}: {error.strerror}"
        remedy = "Look at the name in mail.server."
    elif isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        cause = f"no answer from {server}"
    elif isinstance(error, smtplib.SMTPServerDisconnected):
        cause = f"{server} ended the connection"
    else:
        why = getattr(error, "strerror", "") or visible(str(error))
        cause = f"no connection with {server}: {why}"
    return Sent(to, (), cause, remedy, reached=False)


@contextlib.contextmanager
def _within(smtp: smtplib.SMTP, limit: float) -> Iterator[threading.Event]:
    """Ends the connection after `limit` seconds: a server may send a sign each minute for days.

    The event is set where that was done.
    """
    late, over = threading.Event(), threading.Event()

    def watch() -> None:
        if over.wait(limit):
            return
        late.set()
        while not over.wait(0.1):  # it may still be on its way to a connection
            if smtp.sock:
                with contextlib.suppress(OSError):
                    smtp.sock.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield late
    finally:
        over.set()
        thread.join()


def _words(said: bytes | str) -> str:
    """A server's words in one harmless line."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    text = " ".join(text.split())
    return visible(text[:LONGEST] + ("…" if len(text) > LONGEST else ""))
