"""Whatever a peer does or does not do, the deadline holds and the cause is named."""

import contextlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from paramiko.server import InteractiveQuery

from clustercheck.node import Node
from clustercheck.transport import Unreachable
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.ssh import Ssh
from tests.transport.shared import later
from tools.fetch import program

pytestmark = pytest.mark.usefixtures("each_engine")

Peer = Callable[[Callable[[socket.socket], None]], int]
ED25519 = "AAAAC3NzaC1lZDI1NTE5AAAAIDA" + "a" * 40 + "A"  # some public key
GREETING = b"SSH-2.0-OpenSSH_9.2\r\n"
PACKET_START = b"\x00\x00\x03\xfc\x08\x14"  # 1020 bytes are to follow
SLACK = 10  # seconds beyond its limit that a busy machine may need; a slow banner takes 18


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Starts a server that does one thing with each connection; gives its port."""
    servers: list[socket.socket] = []
    held: list[socket.socket] = []

    def start(behave: Callable[[socket.socket], None]) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                threading.Thread(target=behave_quietly, args=(connection,), daemon=True).start()

        def behave_quietly(connection: socket.socket) -> None:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                behave(connection)

        threading.Thread(target=accept, daemon=True).start()
        return int(server.getsockname()[1])

    yield start
    for sock in (*servers, *held):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@pytest.fixture
def transport(each_engine: None, tmp_path: Path) -> Iterator[Ssh]:
    settings = SshSettings(
        config=(),
        known_hosts=(str(tmp_path / "known_hosts"),),
        host_keys="accept-new",
        connect_timeout=1.5,
        password="open sesame",
        agent=False,
    )
    transport = Ssh(settings)
    yield transport
    transport.close()


def cause(transport: Ssh, port: int, seconds: float) -> tuple[str, str]:
    """Code and message of the failure, which has to come in time."""
    began = time.monotonic()
    with pytest.raises(Unreachable) as refusal:
        transport.connect(Node("node01", host="127.0.0.1", port=port), began + seconds)
    assert time.monotonic() - began < seconds + SLACK
    return refusal.value.code, refusal.value.message


def silent(connection: socket.socket) -> None:
    pass


def dripping(connection: socket.socket) -> None:
    for byte in b"SSH-2.0-a-banner-that-takes-its-time\r\n":
        connection.send(bytes([byte]))
        time.sleep(0.5)


def greeting_only(connection: socket.socket) -> None:
    connection.sendall(GREETING)


def half_a_packet(connection: socket.socket) -> None:
    connection.sendall(GREETING + PACKET_START + bytes(200))


def dripping_packet(connection: socket.socket) -> None:
    connection.sendall(GREETING + PACKET_START)
    while True:
        connection.send(b"\0")
        time.sleep(0.3)


def garbage(connection: socket.socket) -> None:
    """A whole packet of key exchange whose content makes no sense."""
    content = bytes([20]) + b"\xff" * 18
    connection.sendall(GREETING + len(b"\4" + content).to_bytes(4, "big") + b"\0" + content)


def greeting_and_end(connection: socket.socket) -> None:
    connection.sendall(GREETING)
    connection.shutdown(socket.SHUT_RDWR)


def web_server(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.shutdown(socket.SHUT_RDWR)


def flooding(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 65536)


def closing(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def too_many(connection: socket.socket) -> None:
    connection.sendall(b"Exceeded MaxStartups\r\n")
    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("behave", "code", "words"),
    [
        (silent, "no_banner", "nothing came within 1."),
        (dripping, "no_banner", "only 'SS"),
        (greeting_only, "handshake", "did not come to an end within 1."),
        (half_a_packet, "handshake", "did not come to an end"),
        (dripping_packet, "handshake", "did not come to an end"),
        (greeting_and_end, "handshake", "failed"),
        (garbage, "handshake", "failed"),
        (web_server, "no_banner", "belongs to no SSH server: it sent 'HTTP/1.1 400 Bad"),
        (flooding, "no_banner", "belongs to no SSH server: it sent 'xxx"),
        (closing, "max_startups", "without a greeting"),
        (too_many, "max_startups", "Exceeded MaxStartups"),
    ],
)
def test_before_the_login(
    transport: Ssh,
    peer: Peer,
    behave: Callable[[socket.socket], None],
    code: str,
    words: str,
) -> None:
    told, message = cause(transport, peer(behave), 4)
    assert told == code
    assert words in message


class Server(paramiko.ServerInterface):
    """A server that takes a password and then does what the test wants."""

    def __init__(self, stall: str) -> None:
        self.stall = stall
        self.socket: socket.socket | None = None
        self.asked = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "keyboard-interactive" if self.stall == "interactive" else "password"

    def check_auth_password(self, username: str, password: str) -> int:
        if self.stall == "login":
            time.sleep(60)
        return paramiko.common.AUTH_SUCCESSFUL

    def check_auth_interactive(self, username: str, submethods: str) -> int | InteractiveQuery:
        return InteractiveQuery("", "", ("One-time code: ", True), ("Password: ", False))

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        right = responses == ["", "open sesame"]
        return paramiko.common.AUTH_SUCCESSFUL if right else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self.stall == "session":
            time.sleep(60)
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.stall == "exec":
            time.sleep(60)
        if self.stall == "refuse exec":
            return False
        self.asked.set()
        return True


def serve(stall: str, end: Callable[[paramiko.Transport, paramiko.Channel], None] | None = None):  # type: ignore[no-untyped-def]
    """What a peer does that is a whole SSH server up to the place where it stalls."""
    key = paramiko.ECDSAKey.generate()

    def behave(connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(key)
        server = Server(stall)
        transport.start_server(server=server)
        if end:
            channel = transport.accept(30)
            assert channel
            assert server.asked.wait(30)
            end(transport, channel)

    return behave


@pytest.mark.usefixtures("keys")
def test_the_kind_of_host_key_that_is_known_is_asked_for(peer: Peer, tmp_path: Path) -> None:
    """A server that has two keys, where known_hosts has the one that it shows only if asked."""
    shown, asked_for = paramiko.ECDSAKey.generate(), paramiko.RSAKey.generate(2048)

    def behave(connection: socket.socket) -> None:
        server = paramiko.Transport(connection)
        server.add_server_key(shown)
        server.add_server_key(asked_for)
        server.start_server(server=Server(""))
        server.accept(30)

    port = peer(behave)
    known = tmp_path / "known_hosts"
    settings = SshSettings(config=(), known_hosts=(str(known),), password="x", agent=False)
    to = Node("node01", host="127.0.0.1", port=port, user="alice")
    for hashed in (False, True):
        known.write_text(f"[127.0.0.1]:{port} ssh-rsa {asked_for.get_base64()}\n")
        if hashed:
            keygen = [str(program("ssh-keygen")), "-q", "-H", "-f", str(known)]
            subprocess.run(keygen, check=True, capture_output=True)
        Ssh(settings).connect(to, later()).close()
    # A host that is known by a key which it has not is another host.
    known.write_text(f"[127.0.0.1]:{port} ssh-ed25519 {ED25519}\n")
    with pytest.raises(Unreachable) as refusal:
        Ssh(settings).connect(to, later())
    assert refusal.value.code == "host_key_changed"


def test_a_jump_host_that_breaks_off_is_connected_to_again(
    transport: Ssh, peer: Peer, tmp_path: Path
) -> None:
    asked: list[tuple[str, int]] = []
    key = paramiko.ECDSAKey.generate()

    class Forwarder(Server):
        def check_channel_direct_tcpip_request(
            self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
        ) -> int:
            asked.append(destination)
            if len(asked) == 1:
                assert self.socket
                self.socket.shutdown(socket.SHUT_RDWR)
            return paramiko.common.OPEN_FAILED_CONNECT_FAILED

    def behave(connection: socket.socket) -> None:
        server = paramiko.Transport(connection)
        server.add_server_key(key)
        forwarder = Forwarder("")
        forwarder.socket = connection
        server.start_server(server=forwarder)
        server.accept(30)

    to = Node("node01", host="10.0.0.1", jump=f"alice@127.0.0.1:{peer(behave)}")
    with pytest.raises(Unreachable) as refusal:
        transport.connect(to, later())
    assert refusal.value.code == "no_route"
    assert asked == [("10.0.0.1", 22)] * 2


def test_a_login_that_is_never_answered(transport: Ssh, peer: Peer) -> None:
    code, message = cause(transport, peer(serve("login")), 3)
    assert code == "auth_timeout"
    assert "the password was being tried" in message


def test_an_agent_that_never_signs(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for a touch: it lists its key, and says nothing more."""
    key = paramiko.ECDSAKey.generate()
    path = tempfile.mkdtemp() + "/agent"  # pytest's own folders are too long for a socket
    agent = socket.socket(socket.AF_UNIX)
    agent.bind(path)
    agent.listen()
    monkeypatch.setenv("SSH_AUTH_SOCK", path)

    def list_only() -> None:
        connection, _ = agent.accept()
        connection.recv(100)
        blob = key.asbytes()
        answer = b"\x0c" + struct.pack(">II", 1, len(blob)) + blob + struct.pack(">I", 4) + b"mine"
        connection.sendall(struct.pack(">I", len(answer)) + answer)
        with connection:
            release.wait(60)

    release = threading.Event()
    thread = threading.Thread(target=list_only, daemon=True)
    thread.start()
    known = str(tmp_path / "known_hosts")
    transport = Ssh(SshSettings(config=(), known_hosts=(known,), host_keys="accept-new"))
    code, message = cause(transport, peer(serve("")), 3)
    assert code == "auth_timeout"
    assert "mine (SHA256:" in message
    release.set()
    thread.join()
    transport.close()
    agent.close()
    shutil.rmtree(Path(path).parent)


def test_a_password_is_given_where_it_is_asked_for_interactively(
    transport: Ssh, peer: Peer
) -> None:
    port = peer(serve("interactive"))
    transport.connect(Node("node01", host="127.0.0.1", port=port, user="alice"), later()).close()


def start_cause(transport: Ssh, port: int, seconds: float) -> Unreachable:
    """How starting a script fails, which has to be in time."""
    connection = transport.connect(Node("node01", host="127.0.0.1", port=port), later())
    began = time.monotonic()
    with pytest.raises(Unreachable) as refusal:
        channel = connection.start(b"exit\n", began + seconds)
        while channel.receive(seconds) != b"":
            pass
    assert time.monotonic() - began < seconds + SLACK
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < SLACK
    return refusal.value


@pytest.mark.parametrize("stall", ["session", "exec", "nothing"])
def test_a_script_that_is_never_answered(transport: Ssh, peer: Peer, stall: str) -> None:
    assert start_cause(transport, peer(serve(stall)), 3).code == "limit"


def test_a_server_that_runs_no_command(transport: Ssh, peer: Peer) -> None:
    refusal = start_cause(transport, peer(serve("refuse exec")), 20)
    assert refusal.code == "channel_refused"


def test_a_connection_that_breaks_in_the_middle_of_output(transport: Ssh, peer: Peer) -> None:
    def cut(server: paramiko.Transport, channel: paramiko.Channel) -> None:
        channel.send(b"half of")
        time.sleep(0.2)
        server.sock.shutdown(socket.SHUT_RDWR)

    assert start_cause(transport, peer(serve("", cut)), 20).code == "cut"


def test_a_peer_that_reads_nothing_more(transport: Ssh, peer: Peer) -> None:
    """The script is larger than all buffers on the way: sending it would wait for ever."""
    port = peer(serve("nothing"))
    connection = transport.connect(Node("node01", host="127.0.0.1", port=port), later())
    began = time.monotonic()
    with pytest.raises(Unreachable) as refusal:
        connection.start(b"# nothing\n" * 3_000_000, began + 3)
    assert refusal.value.code == "limit"
    assert time.monotonic() - began < 6
    connection.close()


def test_nothing_listens(transport: Ssh) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, message = cause(transport, port, 5)
    assert (code, message) == ("refused", f"nothing listens on port {port} of 127.0.0.1")


def test_a_server_that_accepts_nothing(transport: Ssh) -> None:
    """A full queue of connections makes the kernel drop further ones, as a firewall would."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            code, message = cause(transport, port, 5)
    assert code == "timeout"
    assert "within 1.5 s" in message


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("n" * 70, "has no address: not a host name"),
        ("::1", "has no address"),  # of the family that the configuration asks for
    ],
)
def test_a_name_without_an_address(tmp_path: Path, host: str, told: str) -> None:
    config = tmp_path / "config"
    config.write_text("AddressFamily inet\n")
    with pytest.raises(Unreachable) as refusal:
        Ssh(SshSettings(config=(str(config),))).connect(Node("node01", host=host), later())
    assert refusal.value.code == "no_name"
    assert f"{host!r} {told}" in refusal.value.message
