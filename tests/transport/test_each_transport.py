"""What holds for each way to a node: one body, over all of them."""

import dataclasses
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from clustercheck.ask import ask
from clustercheck.facts import Reader
from clustercheck.node import Node
from clustercheck.reach import CODES
from clustercheck.transport import Transport, Unreachable
from clustercheck.transport.here import Here
from clustercheck.transport.openssh import OpenSsh
from clustercheck.transport.settings import SshSettings
from tests.host import Host
from tests.transport.shared import answer, everything, later, node, run, ssh


class Way(NamedTuple):
    transport: Transport
    node: Node


OVER_SSH = ["direct", "stock", "jump", "proxy command", "openssh"]
WAYS = ["here", *OVER_SSH]


@pytest.fixture(params=WAYS)
def way(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Way]:
    if request.param == "stock":  # as with a paramiko that has not the names we use
        monkeypatch.setattr("clustercheck.transport.ssh.MISSING", ("Transport._something",))
    if request.param == "here":
        yield Way(Here(), Node("node01"))
        return
    host: Host = request.getfixturevalue("host")
    config = tmp_path_factory.mktemp("config") / "config"
    to = node(host)
    if request.param == "proxy command":
        config.write_text(f"ProxyCommand exec python3 -c '{PROXY}' %h %p\n")
    else:
        config.write_text(f"IdentityFile {host.keys.plain}\n")
    if request.param == "jump":
        hop = f"{host.user}@127.0.0.2:{host.port}"
        to = dataclasses.replace(to, jump=hop)
    transport: Transport = ssh(host, config=config)
    if request.param == "openssh":
        files, known = (str(config),), (str(host.known_hosts),)
        transport = OpenSsh(SshSettings(config=files, known_hosts=known, agent=False))
    yield Way(transport, to)
    transport.close()


# What `nc %h %p` does, which need not be there.
PROXY = "; ".join(
    (
        "import os, socket, sys, threading",
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))",
        'up = lambda: [s.sendall(d) for d in iter(lambda: os.read(0, 65536), b"")]',
        "threading.Thread(target=up, daemon=True).start()",
        '[os.write(1, d) for d in iter(lambda: s.recv(65536), b"")]',
    )
)


def test_the_output_and_the_end_of_a_script(way: Way) -> None:
    output, ended = run(way.transport, way.node, "echo one; echo two; echo three >&2; exit 7")
    assert output == "one\ntwo\n"
    assert (ended.status, ended.signal, ended.stderr) == (7, "", "three\n")


def test_many_lines(way: Way) -> None:
    output, ended = run(
        way.transport, way.node, "i=0; while [ $i -lt 5000 ]; do echo $((i+=1)); done"
    )
    assert output.split() == [str(i) for i in range(1, 5001)]
    assert ended.status == 0


def test_more_than_the_window_comes_whole(way: Way) -> None:
    """OpenSSH's window is 2 MiB; 4 MiB are the most that is taken of a node."""
    output, ended = run(way.transport, way.node, "head -c 3500000 /dev/zero | tr '\\0' x")
    assert output == "x" * 3_500_000
    assert ended.status == 0


def test_a_question_is_answered_while_the_script_runs(way: Way) -> None:
    connection = way.transport.connect(way.node, later())
    channel = connection.start(b"echo ready\nread -r word\necho got $word\nexit\n", later())
    assert channel.receive(30) == b"ready\n"
    channel.send(b"something\n")
    assert everything(channel) == b"got something\n"
    assert channel.finish().status == 0
    channel.close()
    connection.close()


def test_nothing_said_is_none_and_not_the_end(way: Way) -> None:
    connection = way.transport.connect(way.node, later())
    channel = connection.start(b"echo ready; read -r word; exit\n", later())
    assert channel.receive(30) == b"ready\n"
    assert channel.receive(0.3) is None
    channel.send(b"go\n")
    assert channel.receive(30) == b""
    channel.close()
    connection.close()


def test_a_flood_on_standard_error_blocks_nothing_and_only_its_end_is_kept(way: Way) -> None:
    script = "head -c 3500000 /dev/zero | tr '\\0' e >&2; echo last >&2; echo done"
    output, ended = run(way.transport, way.node, script)
    assert output == "done\n"
    assert ended.stderr.endswith("eee\nlast\n") or ended.stderr.endswith("eeelast\n")
    assert len(ended.stderr) == 4096


def test_a_second_script_over_the_same_connection(way: Way) -> None:
    connection = way.transport.connect(way.node, later())
    assert answer(connection, "echo one")[0] == "one\n"
    assert answer(connection, "echo two")[0] == "two\n"
    connection.close()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "openssh"], indirect=True)
def test_a_script_ended_by_a_signal(way: Way) -> None:
    output, ended = run(way.transport, way.node, "echo before; kill -TERM $$")
    assert output == "before\n"
    assert (ended.status, ended.signal) == (None, "TERM")


def test_closing_in_the_middle_is_immediate(way: Way) -> None:
    connection = way.transport.connect(way.node, later())
    channel = connection.start(b"while :; do echo flood; done\n", later())
    assert channel.receive(30)
    began = time.monotonic()
    channel.close()
    connection.close()
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("way", OVER_SSH, indirect=True)
def test_the_deadline_ends_a_script_that_hangs(way: Way) -> None:
    connection = way.transport.connect(way.node, later())
    channel = connection.start(b"read -r word\n", later(2))
    with pytest.raises(Unreachable) as refusal:
        while channel.receive(60) is None:
            pass
    assert refusal.value.code == "limit"
    connection.close()


def test_no_thread_is_left(way: Way) -> None:
    before = threading.active_count()
    run(way.transport, way.node, "echo one")
    end = later()
    while threading.active_count() > before + 1 and time.monotonic() < end:
        time.sleep(0.05)
    # The jump host's connection, one thread, stays for the next node.
    assert threading.active_count() <= before + 1


def test_ssh_itself_says_why_not(host: Host, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What comes of the system's ssh is told apart by its words."""
    folder = tmp_path_factory.mktemp("openssh")
    (folder / "none").touch()
    for to, known, code in (
        (node(host), host.known_hosts, ""),
        (node(host), folder / "none", "host_key_unknown"),
        (node(host, key="stranger"), host.known_hosts, "login_refused"),
        (dataclasses.replace(node(host), port=1), host.known_hosts, "refused"),
        (dataclasses.replace(node(host), host="no.such.name.invalid"), host.known_hosts, "no_name"),
        (dataclasses.replace(node(host), user="nora"), host.known_hosts, "nologin"),
    ):
        if to.user == "nora" and not host.own_root:
            continue
        transport = OpenSsh(SshSettings(config=(), known_hosts=(str(known),), agent=False))
        reader = Reader("@mark", time.time)
        try:
            ask(transport.connect(to, later()), "echo @mark - done\nexit\n", reader, later())
            assert code == "" and reader.done
        except Unreachable as error:
            assert (error.code, error.code in CODES) == (code, True), error.message
