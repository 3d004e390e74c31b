"""What a connection without a thread has to see to itself."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from clustercheck.node import Node
from clustercheck.transport import Unreachable
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.ssh import Ssh
from tests.conftest import MakeHost
from tests.transport.shared import answer, later, node, run, ssh

Behave = Callable[[paramiko.Transport, paramiko.Channel], None]


def test_keys_are_exchanged_anew_in_the_middle_of_output(make_host: MakeHost) -> None:
    host = make_host(config=("RekeyLimit 300K",))
    script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; read -r word; echo got $word"
    transport = ssh(host)
    connection = transport.connect(node(host), later())
    text, ended = answer(connection, script + "\n: " + "y" * 1_000_000 + "\n")
    assert text.startswith("x" * 3_000_000)
    assert ended.status == 0
    assert answer(connection, "echo still here")[0] == "still here\n"
    connection.close()


def test_no_thread_is_made(make_host: MakeHost) -> None:
    host = make_host()
    before = threading.active_count()
    connection = ssh(host).connect(node(host), later())
    channel = connection.start(b"echo here\n", later())
    assert channel.receive(60) == b"here\n"
    assert threading.active_count() == before
    channel.close()
    connection.close()


def test_a_server_that_asks_whether_somebody_is_there(make_host: MakeHost) -> None:
    host = make_host(config=("ClientAliveInterval 1", "ClientAliveCountMax 1"))
    assert run(ssh(host), node(host), "sleep 4; echo here")[0] == "here\n"


class Server(paramiko.ServerInterface):
    """Lets everybody in and runs nothing."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.asked.set()
        return True


@pytest.fixture
def cause(tmp_path: Path) -> Iterator[Callable[[Behave], Unreachable]]:
    """What comes of a script at a server that does something odd once it has been asked to run."""
    listening = socket.create_server(("127.0.0.1", 0))
    threads = []

    def ask(behave: Behave) -> Unreachable:
        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                transport = paramiko.Transport(connection)
                transport.add_server_key(paramiko.ECDSAKey.generate())
                server = Server()
                transport.start_server(server=server)
                channel = transport.accept(60)
                assert channel and server.asked.wait(60)
                with contextlib.suppress(OSError, EOFError):  # the client has had enough
                    behave(transport, channel)
                over.wait(60)
                transport.close()

        over = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        threads.append(thread)
        settings = SshSettings(
            config=(),
            known_hosts=(str(tmp_path / "known_hosts"),),
            host_keys="accept-new",
            password="x",
            agent=False,
        )
        port = listening.getsockname()[1]
        connection = Ssh(settings).connect(Node("node01", host="127.0.0.1", port=port), later())
        began = time.monotonic()
        with pytest.raises(Unreachable) as refusal:
            script = b": nothing\n" * (400_000 if behave is too_much else 1)
            channel = connection.start(script, began + 4)
            while channel.receive(60) != b"":
                pass
        assert time.monotonic() - began < 30
        connection.close()
        over.set()
        return refusal.value

    yield ask
    for thread in threads:
        thread.join()
    listening.close()


def message(kind: int, *numbers: int) -> paramiko.Message:
    made = paramiko.Message()
    made.add_byte(bytes([kind]))
    for number in numbers:
        made.add_int(number)
    return made


def send(transport: paramiko.Transport, text: paramiko.Message) -> None:
    transport.packetizer.send_message(text)


def too_much(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    """More output than was allowed: the client takes none while it cannot send its script."""
    data = message(94, 0)
    data.add_string(b"x" * 100_000)
    for _ in range(40):
        send(transport, data)


def another_channel(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    send(transport, message(96, 77))


def no_sense(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    send(transport, message(31, 1))  # of the key exchange, which is not going on


def farewell(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    text = message(1, 2)
    text.add_string("the node goes down now")
    send(transport, text)


def huge_packet(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    transport.sock.sendall(b"\x7f\xff\xff\xf0" + bytes(64))


def dripping_packet(transport: paramiko.Transport, channel: paramiko.Channel) -> None:
    """Output that is in order and comes a byte at a time."""
    data = message(94, 0)
    data.add_string(b"x" * 100)
    pieces: list[bytes] = []
    transport.packetizer.write_all = pieces.append  # type: ignore[method-assign,assignment]
    send(transport, data)
    for byte in b"".join(pieces)[:20]:
        transport.sock.sendall(bytes([byte]))
        time.sleep(0.3)


@pytest.mark.parametrize(
    ("behave", "code", "words"),
    [
        (too_much, "cut", "broke"),
        (another_channel, "cut", "broke"),
        (farewell, "cut", "the node goes down now"),
        (huge_packet, "cut", "broke"),
        (dripping_packet, "limit", "did not come to an end"),
        (no_sense, "limit", "did not come to an end"),  # it is told so, and goes on
    ],
)
def test_a_server_that_does_something_odd(
    cause: Callable[[Behave], Unreachable], behave: Behave, code: str, words: str
) -> None:
    refusal = cause(behave)
    assert refusal.code == code
    assert words in refusal.message
