"""Real mail servers of many tempers, on loopback ports, with certificates made for the test."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Leads to this machine, and is not taken for it: so TLS and logins are as with a server elsewhere.
ELSEWHERE = "0.0.0.0"
USER, PASSWORD = "sweeper", "top secret"


@dataclass(frozen=True)
class Trust:
    """authority: the file to trust. server: a file with a certificate and its key."""

    authority: Path
    server: Path

    def context(self) -> ssl.SSLContext:
        """For a server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.server)
        return context


def secret_file(folder: Path, text: str = f"{USER}\n{PASSWORD}\n", mode: int = 0o600) -> str:
    """A file with user and password, for `mail.login`."""
    path = folder / "login"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def make_trust(folder: Path, *, name: str = ELSEWHERE, days: int = 1) -> Trust:
    """An authority of our own, and a certificate for a name; with days below 0 it has expired."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    start, end = now - datetime.timedelta(days=9), now + datetime.timedelta(days=days)
    top = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the test's authority")])
    base = x509.CertificateBuilder().issuer_name(issuer).not_valid_before(start)
    authority = (
        base.subject_name(issuer)
        .not_valid_after(now + datetime.timedelta(days=1))
        .public_key(top.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(top, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    try:
        called: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        called = x509.DNSName(name)
    own = (
        base.subject_name(x509.Name([]))
        .not_valid_after(end)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([called]), critical=True)
        .sign(top, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "server.pem").write_bytes(own.public_bytes(pem) + private)
    return Trust(folder / "authority.pem", folder / "server.pem")


@dataclass
class Got:
    """A mail as the server got it."""

    sender: str
    to: list[str]
    data: bytes
    secret: bool
    user: str

    @property
    def message(self) -> EmailMessage:
        found = message_from_bytes(self.data, policy=policy.SMTP)
        assert isinstance(found, EmailMessage)
        return found


@dataclass
class Keeper:
    """Keeps what it gets.

    answers: what is said to a recipient, one after the other; then "250 OK".
    of_data: what is said to the mail itself.
    """

    answers: list[str] = field(default_factory=list)
    refuses: tuple[str, ...] = ()
    of_data: str = "250 OK"
    got: list[Got] = field(default_factory=list)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refuses:
            return "550 5.1.1 no such user"
        if self.answers and (answer := self.answers.pop(0)) != "250 OK":
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.of_data == "250 OK":
            self.got.append(
                Got(
                    envelope.mail_from,
                    envelope.rcpt_tos,
                    envelope.content,
                    session.ssl is not None,
                    str(session.auth_data or ""),
                )
            )
        return self.of_data


def _known(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    assert isinstance(data, LoginPassword)
    right = (data.login.decode(), data.password.decode()) == (USER, PASSWORD)
    return AuthResult(
        success=right, handled=right, auth_data=data.login.decode() if right else None
    )


@contextlib.contextmanager
def server(
    keeper: Keeper, *, trust: Trust | None = None, way: str = "smtp", login: bool = False
) -> Iterator[int]:
    """A mail server; its port. trust: it has TLS, at once with smtps. login: nobody else may."""
    words: dict[str, Any] = {}
    if login:
        words = {
            "authenticator": _known,
            "auth_required": True,
            "auth_require_tls": bool(trust) and way == "smtp",
        }
    if trust and way == "smtp":
        words["tls_context"] = trust.context()
    context = trust.context() if trust and way == "smtps" else None
    controller = Controller(keeper, hostname="127.0.0.1", port=0, ssl_context=context, **words)
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        controller.port = free.getsockname()[1]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Requiring AUTH while not requiring TLS")
        controller.start()
        try:
            yield controller.port
        finally:
            controller.stop()


@contextlib.contextmanager
def talker(says: Sequence[bytes], *, again: float = 0) -> Iterator[int]:
    """A server that says this to whoever comes and then nothing, or the last of it for ever.

    again: seconds between two times.
    """
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    open_now: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listening.accept()
                open_now.append(one)
                for words in says:
                    one.sendall(words)
                while again and not over.wait(again):
                    one.sendall(says[-1])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        over.set()
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        for one in (listening, *open_now):
            one.close()
        thread.join()
