"""Nodes that are short of something, or whose own commands misbehave, over a real sshd."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import clustercheck, ssh_words, write_inventory
from tests.host import Host

CHECKS = "[check:fine]\ncommand = echo fine\n[check:who]\ncommand = id -un\nneeds_root = yes\n"


def checks_of(tmp_path: Path, host: Host, user: str, *words: str) -> dict[str, Any]:
    """The one node's checks, as the JSON report has them."""
    path = write_inventory(tmp_path / "inventory.ini", host, ["node01 host=127.0.0.1"], CHECKS)
    path.write_text(path.read_text().replace(f"user={host.user}", f"user={user}"))
    done = clustercheck("run", "-i", path, *ssh_words(host), *words, "--format", "json")
    assert done.status == 3, done
    checks: dict[str, Any] = json.loads(done.out)["nodes"]["node01"]["checks"]
    return checks


def test_a_user_who_may_start_no_process(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    host.run("echo 'ulimit -u 1' >/home/alice/.bashrc")
    try:
        checks = checks_of(tmp_path, host, "alice", "-c", "fine")
    finally:
        host.run("rm /home/alice/.bashrc")
    assert list(checks) == ["access"]
    (found,) = checks["access"]["findings"]
    assert found["code"] == "access.no_process" and "fork" in found["message"]
    assert "ulimit -u" in found["remedy"]["text"]


@contextlib.contextmanager
def sudo_is(host: Host, body: str) -> Iterator[None]:
    """The host's sudo is a script of sh."""
    host.need_own_root()
    host.run(
        "mv /usr/bin/sudo /usr/bin/sudo.kept\n"
        f"printf '%s\\n' '#!/bin/sh' '{body}' >/usr/bin/sudo; chmod 755 /usr/bin/sudo"
    )
    try:
        yield
    finally:
        host.run("mv /usr/bin/sudo.kept /usr/bin/sudo")


def test_a_sudo_that_hangs_is_ended_with_what_it_started(tmp_path: Path, host: Host) -> None:
    with sudo_is(host, "sleep 5432; exit 1"):
        checks = checks_of(tmp_path, host, "ernie", "--become", "sudo", "-c", "fine,who")
    assert "sudo did not answer within 5 s" in checks["access"]["findings"][0]["message"]
    assert checks["fine"]["status"] == "pass" and checks["who"]["status"] == "skip"
    assert "5432" not in host.run("ps axo args")


@pytest.mark.parametrize("says", ["yes lecture | head -c 9000000; echo sorry; exit 1"])
def test_a_sudo_that_says_much_does_not_cost_the_node(
    tmp_path: Path, host: Host, says: str
) -> None:
    with sudo_is(host, says):
        checks = checks_of(tmp_path, host, "ernie", "--become", "sudo", "-c", "fine,who")
    (found,) = checks["access"]["findings"]
    assert found["code"] == "access.root" and "sorry" in found["message"]
    assert len(found["message"]) < 600
    assert checks["fine"]["status"] == "pass"
