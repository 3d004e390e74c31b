"""SSH servers that mean harm by what no reader of an answer ever sees."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from clustercheck import reach
from clustercheck.node import Node
from clustercheck.transport import Unreachable
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.ssh import Ssh
from tests.transport.shared import later

pytestmark = pytest.mark.usefixtures("each_engine")

IGNORE, DISCONNECT, BANNER, EXTENDED = 2, 1, 53, 95
MUCH = b"x" * 30_000
Do = Callable[[paramiko.Transport], None]


@pytest.fixture(params=["without threads", "stock"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "stock":
        monkeypatch.setattr("clustercheck.transport.ssh.MISSING", ("Transport._something",))


def message(kind: int, *parts: int | bytes) -> paramiko.Message:
    made = paramiko.Message()
    made.add_byte(bytes([kind]))
    for part in parts:
        made.add_int(part) if isinstance(part, int) else made.add_string(part)
    return made


class Server(paramiko.ServerInterface):
    """Lets everybody in, does what the test wants at a login or once a script is to be run."""

    def __init__(self, transport: paramiko.Transport, at_login: Do | None) -> None:
        self.transport = transport
        self.at_login = at_login
        self.asked = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        if self.at_login:
            self.at_login(self.transport)
        return paramiko.common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.asked.set()
        return True


Ask = Callable[[Do | None, Do | None], Unreachable]


@pytest.fixture
def ask(each_engine: None, tmp_path: Path) -> Iterator[Ask]:
    """Why there is no answer from a server that does the first at a login, the second then."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()
    threads: list[threading.Thread] = []

    def serve(at_login: Do | None, then: Do | None) -> None:
        connection, _ = listening.accept()
        with connection:
            transport = paramiko.Transport(connection)
            transport.add_server_key(paramiko.ECDSAKey.generate())
            server = Server(transport, at_login)
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                transport.start_server(server=server)  # the client may be gone before the end of it
            if then:
                channel = transport.accept(60)  # kept, for it closes when it is forgotten
                assert channel and server.asked.wait(60)
                with contextlib.suppress(OSError, EOFError):  # the client has had enough
                    then(transport)
            over.wait(60)
            transport.close()

    def tell(at_login: Do | None, then: Do | None) -> Unreachable:
        thread = threading.Thread(target=serve, args=(at_login, then))
        thread.start()
        threads.append(thread)
        settings = SshSettings(
            config=(),
            known_hosts=(str(tmp_path / "known_hosts"),),
            host_keys="accept-new",
            password="x",
            agent=False,
        )
        node = Node("node01", host="127.0.0.1", port=listening.getsockname()[1])
        with pytest.raises(Unreachable) as refusal, contextlib.ExitStack() as ends:
            connection = Ssh(settings).connect(node, later())
            ends.callback(connection.close)
            channel = connection.start(b"exit\n", later())
            while channel.receive(60) != b"":
                pass
        over.set()
        return refusal.value

    yield tell
    over.set()
    for thread in threads:
        thread.join()
    listening.close()


def again_and_again(*parts: int | bytes) -> Do:
    def do(transport: paramiko.Transport) -> None:
        with contextlib.suppress(OSError, EOFError):
            for _ in range(1000):
                transport.packetizer.send_message(message(*parts))  # type: ignore[arg-type]

    return do


def test_banners_without_end_at_the_login(ask: Ask) -> None:
    refusal = ask(again_and_again(BANNER, MUCH, b""), None)
    assert (refusal.code, refusal.message) == (
        "flood",
        "more than 4 MiB came, standard error included",
    )


@pytest.mark.parametrize(
    ("banner", "expected"),
    [
        (
            b"Access denied by pam_slurm_adopt:\r\n you have no active jobs on this node\n",
            ("account_closed", " in: Access denied by pam_slurm_adopt: you have no active"),
        ),
        (b"Authorised users only.\n", ("login_refused", "the server ended the login of ")),
    ],
)
def test_why_a_server_ends_a_login(ask: Ask, banner: bytes, expected: tuple[str, str]) -> None:
    def refuse(transport: paramiko.Transport) -> None:
        transport.packetizer.send_message(message(BANNER, banner, b""))
        transport.close()

    refusal = ask(refuse, None)
    assert refusal.code == expected[0] and expected[1] in refusal.message


@pytest.mark.parametrize("kind", [IGNORE, BANNER])
def test_messages_that_mean_nothing_without_end(ask: Ask, kind: int) -> None:
    assert ask(None, again_and_again(kind, MUCH)).code == "flood"


def test_a_farewell_without_end_is_cut_where_it_is_shown(ask: Ask) -> None:
    refusal = ask(
        None, lambda t: t.packetizer.send_message(message(DISCONNECT, 2, b"\x1b" * 200_000))
    )
    assert refusal.code == "cut"
    assert len(reach.finding(refusal.code, refusal.message).message) <= reach.LONGEST + 1
