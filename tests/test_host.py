"""The tests' own host is what it says: real, closed off, and gone afterwards."""

import os
import socket
import subprocess
import time

import pytest

from tests.conftest import MakeHost
from tests.host import USERS, Host
from tools.fetch import program

SYS_MODULE, SYS_TIME = 1 << 16, 1 << 25  # capabilities(7), by number


def ssh(host: Host, user: str, command: str, address: str = "127.0.0.1") -> str:
    """What OpenSSH prints, with both streams in one."""
    options = ["-F/dev/null", "-oBatchMode=yes", f"-oUserKnownHostsFile={host.known_hosts}"]
    call = [str(program("ssh")), *options, f"-i{host.keys.plain}", f"-p{host.port}"]
    done = subprocess.run(
        [*call, f"{user}@{address}", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.64", "::1", "localhost"])
def test_it_answers_at_every_loopback_address(host: Host, address: str) -> None:
    if address == "::1" and not host.ipv6:
        pytest.skip("cannot here: this machine has no IPv6")
    assert ssh(host, host.user, "echo here", address) == "here"


def test_it_answers_nowhere_else(host: Host) -> None:
    ask = [str(program("ss")), "-Hlnt", f"sport = {host.port}"]
    told = subprocess.run(ask, stdout=subprocess.PIPE, text=True).stdout
    assert told and all(line.split()[3].endswith(f"%lo:{host.port}") for line in told.splitlines())


@pytest.mark.parametrize(
    "user", ["root", *(user for user in USERS if user not in ("noisy", "nora"))]
)
def test_a_user_is_let_in_by_key(host: Host, user: str) -> None:
    host.need_own_root()
    assert ssh(host, user, "id -un") == user


def test_users_who_disturb(host: Host) -> None:
    host.need_own_root()
    assert ssh(host, "nora", "id -un") == "This account is currently not available."
    said = ssh(host, "noisy", "id -un")
    assert sorted(said.splitlines()) == ["Welcome to node", "module: command not found", "noisy"]


def test_sudo_with_and_without_a_password(host: Host) -> None:
    host.need_own_root()
    assert ssh(host, "ernie", "sudo -n id -un") == "root"
    assert ssh(host, "paula", "sudo -n id -un") == "sudo: a password is required"
    assert ssh(host, "paula", "echo open sesame | sudo -S -p '' id -un") == "root"


def test_root_in_the_host_has_no_way_to_the_machines_clock_and_kernel(host: Host) -> None:
    host.need_own_root()
    ask = "sed -n 's/^CapBnd:[^0-9a-f]*//p' /proc/self/status"
    for answer in (host.run(ask), ssh(host, "root", ask)):
        assert not int(answer, 16) & (SYS_MODULE | SYS_TIME)
    assert host.run("echo 1 2>/dev/null >/proc/sys/vm/swappiness || echo refused") == "refused\n"


def test_it_has_files_and_processes_of_its_own(host: Host) -> None:
    host.need_own_root()
    host.run("echo x >/etc/clustercheck-was-here; echo x >/tmp/clustercheck-was-here")
    for folder in ("/etc", "/tmp"):
        assert not os.path.exists(f"{folder}/clustercheck-was-here")
    assert host.run("hostname; ls -A /home /root /tmp").split()[:2] == ["node", "/home:"]
    assert str(os.getpid()) not in host.run("ls /proc").split()


def test_nobody_is_left_as_a_zombie(host: Host) -> None:
    host.need_own_root()
    host.run("(sleep 0.1 &)")
    deadline = time.monotonic() + 30
    while "sleep" in (seen := host.run("ps -eo stat,args")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "sleep" not in seen


def test_what_was_configured_wins_and_all_of_it_ends(make_host: MakeHost) -> None:
    host = make_host(config=("Banner /etc/hostname", "LogLevel DEBUG1"))
    assert "debug1:" in host.log()
    if host.own_root:
        assert ssh(host, "alice", "true").startswith("node")
        host.run("sleep 1234 </dev/null >/dev/null 2>&1 &")
    host.close()
    with socket.socket() as trial:
        assert trial.connect_ex(("127.0.0.1", host.port))
    assert (
        "sleep 1234"
        not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    )


@pytest.mark.parametrize(("layer", "daemon"), [("chrony", "chronyd"), ("ntpsec", "ntpd")])
def test_time_daemons_as_layers(make_host: MakeHost, layer: str, daemon: str) -> None:
    host = make_host(layers=(layer,))
    host.need_own_root()
    assert host.run(f"command -v {daemon}") == f"/usr/sbin/{daemon}\n"
