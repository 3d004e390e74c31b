"""SSH to a real sshd: who is trusted, who is let in, and what is said when not."""

import dataclasses
import logging
import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clustercheck.node import Node
from clustercheck.reach import CODES
from clustercheck.transport import Unreachable
from clustercheck.transport.settings import SshSettings
from clustercheck.transport.ssh import Ssh
from tests.conftest import MakeHost
from tests.host import PASSPHRASE, PASSWORD, Host, make_key
from tests.transport.shared import later, node, run, ssh
from tools.fetch import program

pytestmark = pytest.mark.usefixtures("each_engine")


def refused(transport: Ssh, to: Node) -> Unreachable:
    """Why the node cannot be connected to."""
    with pytest.raises(Unreachable) as refusal:
        transport.connect(to, later()).close()
    assert refusal.value.code in CODES
    transport.close()
    return refusal.value


def fingerprint(key: Path) -> str:
    keygen = str(program("ssh-keygen"))
    told = subprocess.run([keygen, "-lf", f"{key}.pub"], capture_output=True, text=True, check=True)
    return told.stdout.split()[1]


# The host's key


def trusting(path: Path, host_keys: str = "strict") -> Ssh:
    return Ssh(
        SshSettings(
            config=(),
            known_hosts=(str(path),),
            host_keys="accept-new" if host_keys == "accept-new" else "strict",
            agent=False,
        )
    )


def test_an_unknown_host_key_is_refused_and_shown(host: Host, tmp_path: Path) -> None:
    refusal = refused(trusting(tmp_path / "none"), node(host))
    assert refusal.code == "host_key_unknown"
    assert fingerprint(host.keys.host) in refusal.message
    assert f"[127.0.0.1]:{host.port}" in refusal.message


@pytest.mark.parametrize("host_keys", ["strict", "accept-new"])
def test_a_changed_host_key_is_always_refused(host: Host, tmp_path: Path, host_keys: str) -> None:
    known = tmp_path / "known_hosts"
    text = "# first line\n" + host.known_hosts_line("127.0.0.1", host.keys.stranger)
    known.write_text(text)
    refusal = refused(trusting(known, host_keys), node(host))
    assert refusal.code == "host_key_changed"
    assert fingerprint(host.keys.host) in refusal.message
    assert f"{known}:2" in refusal.message
    assert known.read_text() == text


@pytest.mark.parametrize("host_keys", ["strict", "accept-new"])
def test_a_revoked_host_key_is_always_refused(host: Host, tmp_path: Path, host_keys: str) -> None:
    known = tmp_path / "known_hosts"
    line = host.known_hosts_line("127.0.0.1")
    known.write_text(line + "@revoked * " + line.split(" ", 1)[1])
    refusal = refused(trusting(known, host_keys), node(host))
    assert refusal.code == "host_key_revoked"
    assert f"{known}:2" in refusal.message


def test_no_login_is_tried_where_the_host_key_is_not_right(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host()
    refused(trusting(tmp_path / "none"), node(host))
    assert "Accepted key" not in host.log()


def test_hashed_known_hosts(host: Host, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(host.known_hosts.read_text())
    subprocess.run(
        [str(program("ssh-keygen")), "-q", "-H", "-f", str(known)], check=True, capture_output=True
    )
    assert "127.0.0.1" not in known.read_text()
    assert run(trusting(known), node(host), "echo here")[0] == "here\n"


def test_a_line_without_the_port_will_do(host: Host, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("127.0.0.1 " + host.known_hosts_line("127.0.0.1").split(" ", 1)[1])
    assert run(trusting(known), node(host), "echo here")[0] == "here\n"


def test_accept_new_writes_the_key_once_and_then_knows_it(host: Host, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    transport = trusting(known, "accept-new")
    to = node(host)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: run(transport, to, "echo here"), range(8)))
    assert known.read_text() == host.known_hosts_line("127.0.0.1")
    assert run(trusting(known), to, "echo here")[0] == "here\n"


def test_host_key_alias_and_known_hosts_of_the_configuration(host: Host, tmp_path: Path) -> None:
    known, config = tmp_path / "known_hosts", tmp_path / "config"
    known.write_text("rack1 " + host.known_hosts_line("127.0.0.1").split(" ", 1)[1])
    config.write_text(f"HostKeyAlias rack1\nUserKnownHostsFile {known}\nStrictHostKeyChecking no\n")
    transport = Ssh(SshSettings(config=(str(config),), agent=False))
    assert run(transport, node(host), "echo here")[0] == "here\n"
    known.unlink()
    # StrictHostKeyChecking of the configuration does not weaken ours.
    again = Ssh(SshSettings(config=(str(config),), agent=False))
    assert refused(again, node(host)).code == "host_key_unknown"


def test_a_known_hosts_file_that_cannot_be_read_is_named(host: Host, tmp_path: Path) -> None:
    refusal = refused(trusting(tmp_path), node(host))
    assert refusal.code == "host_key_unknown"
    assert str(tmp_path) in refusal.message


# Keys and passwords


def test_a_key_that_is_not_authorised(host: Host) -> None:
    refusal = refused(ssh(host), node(host, key="stranger"))
    assert refusal.code == "login_refused"
    assert "the server offers publickey" in refusal.message
    assert fingerprint(host.keys.stranger) in refusal.message
    assert str(host.keys.stranger) in refusal.message


def test_a_key_with_a_passphrase(host: Host) -> None:
    to = node(host, key="locked")
    refusal = refused(ssh(host), to)
    assert (refusal.code, refusal.message) == (
        "key_passphrase",
        f"{host.keys.locked} needs a passphrase",
    )
    refusal = refused(ssh(host, passphrase="not this"), to)
    assert (refusal.code, refusal.message) == (
        "key_passphrase",
        f"the passphrase does not open {host.keys.locked}",
    )
    assert run(ssh(host, passphrase=PASSPHRASE), to, "echo here")[0] == "here\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "cannot be read: no such file"), ("nonsense\n", "holds no private key")],
)
def test_a_key_file_that_is_of_no_use(
    host: Host, tmp_path: Path, text: str | None, told: str
) -> None:
    path = tmp_path / "key"
    if text:
        path.write_text(text)
    refusal = refused(ssh(host), dataclasses.replace(node(host), key=str(path)))
    assert refusal.code == "key_unreadable"
    assert f"{path} {told}" in refusal.message


@pytest.mark.parametrize("kind", [("rsa", "-b", "2048"), ("ecdsa",), ("rsa", "-m", "PEM")])
def test_other_kinds_of_keys(make_host: MakeHost, tmp_path: Path, kind: tuple[str, ...]) -> None:
    host = make_host()
    host.need_own_root()
    path = tmp_path / "key"
    command = [str(program("ssh-keygen")), "-q", "-t", *kind, "-N", "", "-f", str(path)]
    subprocess.run(command, check=True)
    public = Path(f"{path}.pub").read_text().strip()
    host.run(f"echo '{public}' >>/etc/ssh/authorized_keys")
    to = dataclasses.replace(node(host), key=str(path))
    assert run(ssh(host), to, "echo here")[0] == "here\n"


def test_no_key_at_all_is_told_with_what_the_server_offers(host: Host) -> None:
    refusal = refused(ssh(host), node(host, key=""))
    assert refusal.code == "login_refused"
    assert "offers publickey" in refusal.message
    assert "nothing, for there is no key or password" in refusal.message


def test_a_password(host: Host) -> None:
    host.need_own_root()
    to = node(host, key="")
    assert run(ssh(host, password=PASSWORD), to, "id -un")[0] == "alice\n"
    refusal = refused(ssh(host, password="not this"), to)
    assert refusal.code == "login_refused"
    assert "tried: the password" in refusal.message
    assert "not this" not in refusal.message


def test_secrets_are_not_shown() -> None:
    shown = repr(SshSettings(password="open sesame", passphrase="a fine day"))
    assert "sesame" not in shown
    assert "fine" not in shown


def test_too_many_keys(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host(config=("MaxAuthTries 2",))
    config = tmp_path / "config"
    for number in range(3):
        make_key(tmp_path / f"key{number}")
    config.write_text("".join(f"IdentityFile {tmp_path}/key{i}\n" for i in range(3)))
    refusal = refused(ssh(host, config=config), node(host, key="stranger"))
    assert refusal.code == "login_refused"
    assert "Too many authentication failures" in refusal.message


@pytest.fixture
def agent(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real agent that holds the locked key, opened."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    socket = folder / "agent"
    process = subprocess.Popen(
        [str(program("ssh-agent")), "-D", "-a", str(socket)], stdout=subprocess.DEVNULL
    )
    end = later()
    while not socket.exists() and time.monotonic() < end:
        time.sleep(0.02)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    ask = folder / "ask"
    ask.write_text(f"#!/bin/sh\necho '{PASSPHRASE}'\n")
    ask.chmod(0o700)
    subprocess.run(
        [str(program("ssh-add")), "-q", str(host.keys.locked)],
        env={**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"},
        check=True,
    )
    yield socket
    process.terminate()
    process.wait()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def with_agent(host: Host, config: Path | None = None) -> Ssh:
    files = (str(config),) if config else ()
    return Ssh(SshSettings(config=files, known_hosts=(str(host.known_hosts),)))


def test_the_agent_lets_many_in_at_once(host: Host, agent: Path) -> None:
    transport = with_agent(host)
    to = node(host, key="")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: run(transport, to, "echo here")[0], range(16)))
    assert answers == ["here\n"] * 16
    transport.close()


def test_a_locked_key_needs_no_passphrase_where_the_agent_has_it(
    host: Host, agent: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("IdentitiesOnly yes\n")
    transport = with_agent(host, config)
    assert run(transport, node(host, key="locked"), "echo here")[0] == "here\n"
    transport.close()
    # The agent's key is not among those named.
    assert refused(with_agent(host, config), node(host, key="stranger")).code == "login_refused"


def test_identity_agent_none(host: Host, agent: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("IdentityAgent none\n")
    assert refused(with_agent(host, config), node(host, key="")).code == "login_refused"


# Shells and sessions


@pytest.mark.parametrize("user", ["alice", "carol", "dave", "fiona"])
def test_any_login_shell_runs_the_script(host: Host, user: str) -> None:
    host.need_own_root()
    script = "x='a b'; for i in 1 2; do echo \"$x $i\"; done; exit 3"
    output, ended = run(ssh(host), node(host, user=user), script)
    assert (output, ended.status) == ("a b 1\na b 2\n", 3)


@pytest.mark.parametrize("size", [0, 5_000_000])
def test_a_login_shell_that_lets_nobody_in_says_so(host: Host, size: int) -> None:
    """Also where it has ended before the script is sent, as the larger one makes sure."""
    host.need_own_root()
    output, ended = run(ssh(host), node(host, user="nora"), "#" * size)
    assert "not available" in output
    assert ended.status == 1


def test_banners_are_no_output_and_bashrc_is_told_apart_by_nobody_here(
    make_host: MakeHost,
) -> None:
    host = make_host(config=("Banner /etc/hostname", "PrintMotd yes"))
    user = "noisy" if host.own_root else host.user
    output, ended = run(ssh(host), node(host, user=user), "echo here")
    assert output.endswith("here\n")
    assert "node\n" not in output.replace("Welcome to node\n", "")
    assert ended.status == 0


def test_a_server_that_opens_no_session(make_host: MakeHost) -> None:
    host = make_host(config=("MaxSessions 0",))
    connection = ssh(host).connect(node(host), later())
    with pytest.raises(Unreachable) as refusal:
        connection.start(b"exit\n", later())
    assert refusal.value.code == "channel_refused"
    connection.close()


def test_a_server_that_takes_one_login_at_a_time_is_asked_again(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
) -> None:
    host = make_host(config=("MaxStartups 1:100:1",))
    transport = ssh(host)
    with caplog.at_level(logging.INFO, "clustercheck"), ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: run(transport, node(host), "echo here")[0], range(24)))
    assert answers == ["here\n"] * 24
    assert "Exceeded MaxStartups; trying again in" in caplog.text


# Jump hosts and proxies


def behind(host: Host, tmp_path: Path, hop: str = "") -> tuple[Ssh, Node]:
    """A node behind a jump host; the jump host's key comes from the configuration."""
    config = tmp_path / "config"
    config.write_text(f"IdentityFile {host.keys.plain}\n")
    hop = hop or f"{host.user}@127.0.0.2:{host.port}"
    return ssh(host, config=config), dataclasses.replace(node(host), jump=hop)


def test_nodes_behind_a_jump_host_share_one_connection_to_it(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host()
    transport, to = behind(host, tmp_path)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: run(transport, to, "echo here")[0], range(6)))
    assert answers == ["here\n"] * 6
    transport.close()
    end = later()
    while host.log().count("Closing connection to") < 7 and time.monotonic() < end:
        time.sleep(0.05)
    assert host.log().count("Accepted publickey") == 7
    assert host.log().count("Closing connection to") == 7


def test_a_jump_host_whose_connection_broke_is_connected_to_again(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host()
    host.need_own_root()
    transport, to = behind(host, tmp_path)
    run(transport, to, "echo here")
    host.run(
        "for process in /proc/[0-9]*; do"
        " grep -q '^sshd: alice' $process/cmdline 2>/dev/null && kill ${process#/proc/}; done; true"
    )
    assert run(transport, to, "echo again")[0] == "again\n"
    transport.close()


def test_the_first_nodes_deadline_is_not_the_jump_hosts(host: Host, tmp_path: Path) -> None:
    transport, to = behind(host, tmp_path)
    end = later(4)
    transport.connect(to, end).close()
    assert run(transport, to, "sleep 5; echo here")[0] == "here\n"
    transport.close()


def test_a_chain_of_jump_hosts(host: Host, tmp_path: Path) -> None:
    hops = ",".join(f"{host.user}@127.0.0.{i}:{host.port}" for i in (2, 3))
    transport, to = behind(host, tmp_path, hops)
    # The last hop is the peer that the node's sshd sees.
    assert run(transport, to, "echo $SSH_CONNECTION")[0].startswith("127.0.0.1 ")
    transport.close()


def test_jump_hosts_by_the_configuration_of_each(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host node01\n HostName 127.0.0.1\n ProxyJump inner\n"
        f"Host inner\n HostName 127.0.0.2\n ProxyJump outer\n"
        f"Host outer\n HostName 127.0.0.3\n"
        f"Host *\n Port {host.port}\n User {host.user}\n IdentityFile {host.keys.plain}\n"
    )
    transport = ssh(host, config=config)
    assert run(transport, Node("node01"), "echo here")[0] == "here\n"
    transport.close()


def test_jump_hosts_in_a_circle(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host node01\n ProxyJump a\nHost a\n ProxyJump b\nHost b\n ProxyJump a\n")
    refusal = refused(ssh(host, config=config), Node("node01"))
    assert (refusal.code, refusal.message) == ("jump", "the jump hosts lead in a circle: a to b")


def test_a_jump_host_that_fails_is_asked_once_and_named(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host()
    transport, to = behind(host, tmp_path, f"mallory@127.0.0.2:{host.port}")

    def cause(number: int) -> tuple[str, str]:
        with pytest.raises(Unreachable) as refusal:
            transport.connect(dataclasses.replace(to, name=f"node{number}"), later())
        return refusal.value.code, refusal.value.message

    with ThreadPoolExecutor(4) as pool:
        causes = set(pool.map(cause, range(4)))
    ((code, message),) = causes
    assert code == "jump"
    assert f"the jump host mallory@127.0.0.2:{host.port} cannot be used" in message
    assert "user mallory was refused" in message
    assert host.log().count("Connection from") == 1
    transport.close()


def test_a_jump_host_whose_key_is_unknown(host: Host, tmp_path: Path) -> None:
    transport, to = behind(host, tmp_path, f"{host.user}@127.99.0.1:{host.port}")
    refusal = refused(transport, to)
    assert refusal.code == "jump"
    assert f"the host key of [127.99.0.1]:{host.port} is not known" in refusal.message


def test_a_node_that_refuses_behind_a_jump_host(host: Host, tmp_path: Path) -> None:
    transport, to = behind(host, tmp_path)
    refusal = refused(transport, dataclasses.replace(to, port=1))
    assert refusal.code == "refused", refusal.message
    assert "says of port 1 of 127.0.0.1" in refusal.message


def test_a_jump_host_that_forwards_nothing(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host(config=("AllowTcpForwarding no",))
    transport, to = behind(host, tmp_path)
    assert refused(transport, to).code == "jump"


def test_a_host_block_for_all_does_not_make_the_jump_host_jump(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host gate\n HostName 127.0.0.2\n"
        f"Host *\n ProxyJump gate\n Port {host.port}\n User {host.user}\n"
        f" IdentityFile {host.keys.plain}\n"
    )
    transport = ssh(host, config=config)
    assert run(transport, Node("node01", host="127.0.0.1"), "echo here")[0] == "here\n"
    transport.close()


def test_a_proxy_command_that_fails(host: Host, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("ProxyCommand sh -c 'echo no way to %h >&2; exit 9'\n")
    refusal = refused(ssh(host, config=config), node(host))
    assert refusal.code == "proxy_command"
    assert "ended with status 9: no way to 127.0.0.1" in refusal.message
    config.write_text("ProxyCommand /no/such/program %h\n")
    refusal = refused(ssh(host, config=config), node(host))
    assert refusal.code == "proxy_command"
    assert "/no/such/program" in refusal.message
    assert "ended with status 127" in refusal.message


# Many at once


def test_sixty_four_addresses_at_once(host: Host) -> None:
    transport = ssh(host)
    nodes = [node(host, name=f"node{i:02}", at=f"127.0.0.{i}") for i in range(1, 65)]
    before = threading.active_count()
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda n: run(transport, n, "echo $SSH_CONNECTION")[0], nodes))
    assert [a.split()[2] for a in answers] == [n.host for n in nodes]
    end = later()
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert threading.active_count() == before


def test_by_ipv6_and_by_name(host: Host, tmp_path: Path) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("cannot here: this machine has no IPv6")
    assert run(ssh(host), node(host, at="::1"), "echo here")[0] == "here\n"
    known = tmp_path / "known_hosts"
    known.write_text("localhost " + host.known_hosts_line("127.0.0.1").split(" ", 1)[1])
    assert run(trusting(known), node(host, at="localhost"), "echo here")[0] == "here\n"


def test_the_way_is_told(host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    transport, to = behind(host, tmp_path)
    with caplog.at_level(logging.INFO, "clustercheck"):
        run(transport, to, "echo here")
    transport.close()
    lines = [record.getMessage() for record in caplog.records]
    where = f"{host.user}@127.0.0.{{}} port {host.port} by "
    assert f"node01: {where.format(1)}fabric, jump host {to.jump}" in lines
    assert f"{to.jump}: {where.format(2)}paramiko" in lines


def test_nothing_but_known_hosts_is_written(host: Host, tmp_path: Path) -> None:
    known = tmp_path / "new" / "known_hosts"
    run(trusting(known, "accept-new"), node(host), "echo here")
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    assert sorted(p.name for p in known.parent.iterdir()) == ["known_hosts"]
