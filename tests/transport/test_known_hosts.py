"""known_hosts files mean what they mean to OpenSSH."""

import base64
import hmac
import logging
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from clustercheck.known_hosts import HostKey, KnownHosts, Trust, lookup_name
from tools.fetch import program


def key(number: int, kind: str = "ssh-ed25519") -> HostKey:
    """Some key of its own for each number."""
    name = kind.encode()
    body = number.to_bytes(32, "big")
    return HostKey(kind, b"\0\0\0" + bytes([len(name)]) + name + b"\0\0\0\x20" + body)


def line(names: str, of: HostKey) -> str:
    return f"{names} {of.kind} {base64.b64encode(of.blob).decode()}\n"


def hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return "|1|" + base64.b64encode(salt).decode() + "|" + base64.b64encode(digest).decode()


def index(folder: Path, text: str) -> KnownHosts:
    path = folder / "known_hosts"
    path.write_text(text, errors="surrogateescape")
    return KnownHosts((path,))


RSA = key(9, "ssh-rsa")


@pytest.mark.parametrize(
    ("text", "name", "trust"),
    [
        (line("node01", key(1)), "node01", Trust.KNOWN),
        (line("node01,10.0.0.1", key(1)), "10.0.0.1", Trust.KNOWN),
        (line("Node01", key(1)), "node01", Trust.KNOWN),
        (line("node02", key(1)), "node01", Trust.UNKNOWN),
        (line("node01", key(2)), "node01", Trust.CHANGED),
        (line("node01", key(2)) + line("node01", key(1)), "node01", Trust.KNOWN),
        (line("node01", RSA), "node01", Trust.CHANGED),
        (line("[node01]:2222", key(1)), "[node01]:2222", Trust.KNOWN),
        (line("node01", key(1)), "[node01]:2222", Trust.UNKNOWN),
        (line("node*", key(1)), "node01", Trust.KNOWN),
        (line("node0?", key(1)), "node01", Trust.KNOWN),
        (line("node*,!node01", key(1)), "node01", Trust.UNKNOWN),
        (line("node*", key(2)), "node01", Trust.CHANGED),
        (line(hashed("node01"), key(1)), "node01", Trust.KNOWN),
        (line(hashed("node02"), key(1)), "node01", Trust.UNKNOWN),
        (line(hashed("node01"), key(2)), "node01", Trust.CHANGED),
        (line("@revoked *", key(1)) + line("node01", key(1)), "node01", Trust.REVOKED),
        (line("@revoked *", key(2)) + line("node01", key(1)), "node01", Trust.KNOWN),
        (line("@cert-authority *", key(1)), "node01", Trust.UNKNOWN),
        ("# a comment\n\n  \n" + line("node01", key(1)), "node01", Trust.KNOWN),
        ("", "node01", Trust.UNKNOWN),
    ],
)
def test_judgement(tmp_path: Path, text: str, name: str, trust: Trust) -> None:
    assert index(tmp_path, text).judge(name, key(1)).trust is trust


def test_a_change_names_the_lines_with_the_other_key(tmp_path: Path) -> None:
    known = index(tmp_path, line("node02", key(3)) + line("node01", RSA))
    verdict = known.judge("node01", key(1))
    assert verdict.places == (f"{tmp_path}/known_hosts:2",)
    assert verdict.kinds == ("ssh-rsa",)


def test_an_authority_for_the_host_is_told(tmp_path: Path) -> None:
    assert index(tmp_path, line("@cert-authority node*", key(2))).judge("node01", key(1)).authority


def test_kinds_that_are_known_are_to_be_asked_for(tmp_path: Path) -> None:
    known = index(tmp_path, line("node01", RSA) + line("node*", key(1)) + line("node02", key(2)))
    assert known.kinds("node01") == ("ssh-rsa", "ssh-ed25519")


@pytest.mark.parametrize(
    "damaged",
    ["node01\n", "node01 ssh-ed25519\n", "node01 ssh-ed25519 AAAA!\n", "|1|x node01 a b\n"]
    + [line("node01", key(1))[:-20] + "\n" + line("", key(1))[:30] + "\n"]
    + ["node01 ssh-rsa " + line("x", key(1)).split()[2] + "\n", "@odd " + line("x", key(1))]
    + ["\udcff\udcfe \udc89\udcff AAAAAAAA\n"],  # no text at all
)
def test_a_damaged_line_is_left_out_and_named(
    tmp_path: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        known = index(tmp_path, line("node00", key(5)) + damaged + line("node09", key(7)))
    assert f"{tmp_path}/known_hosts:" in caplog.text
    assert known.judge("node00", key(5)).trust is Trust.KNOWN
    assert known.judge("node09", key(7)).trust is Trust.KNOWN


@pytest.mark.usefixtures("keys")
def test_an_accepted_key_is_found_by_openssh(tmp_path: Path) -> None:
    path = tmp_path / ".ssh/known_hosts"
    known = KnownHosts((path,))
    assert known.accept("node01", key(1), hashed=False).trust is Trust.KNOWN
    assert known.accept("[node02]:2222", key(2), hashed=True).trust is Trust.KNOWN
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "node02" not in path.read_text()
    for name in ("node01", "[node02]:2222"):
        keygen = program("ssh-keygen")
        assert keygen
        found = subprocess.run([keygen, "-F", name, "-f", path], capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr
    again = KnownHosts((path,))
    assert again.judge("[node02]:2222", key(2)).trust is Trust.KNOWN


def test_a_last_line_without_its_end_is_not_spoilt(tmp_path: Path) -> None:
    known = index(tmp_path, line("node01", key(1)).rstrip("\n"))
    known.accept("node02", key(2), hashed=False)
    again = KnownHosts((tmp_path / "known_hosts",))
    assert again.judge("node01", key(1)).trust is Trust.KNOWN
    assert again.judge("node02", key(2)).trust is Trust.KNOWN


def test_what_is_changed_or_revoked_is_never_accepted(tmp_path: Path) -> None:
    text = line("node01", key(2)) + line("@revoked *", key(3))
    known = index(tmp_path, text)
    assert known.accept("node01", key(1), hashed=False).trust is Trust.CHANGED
    assert known.accept("node02", key(3), hashed=False).trust is Trust.REVOKED
    assert (tmp_path / "known_hosts").read_text() == text


def test_many_threads_accept_at_once(tmp_path: Path) -> None:
    known = index(tmp_path, "")
    threads = [
        threading.Thread(target=known.accept, args=(f"node{i % 50}", key(i % 50), False))
        for i in range(200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "known_hosts").read_text().splitlines(keepends=True)
    assert sorted(lines) == sorted(line(f"node{i}", key(i)) for i in range(50))


def test_ten_thousand_lines_are_no_burden(tmp_path: Path) -> None:
    """The bounds are ten times what is aimed at: the machine may have other work."""
    plain = "".join(line(f"node{i},10.0.{i // 256}.{i % 256}", key(i)) for i in range(10_000))
    began = time.process_time()
    known = index(tmp_path, plain)
    for i in range(10_000):
        assert known.judge(f"node{i}", key(i)).trust is Trust.KNOWN
    assert time.process_time() - began < 2


@pytest.mark.parametrize("shared", [False, True])
def test_ten_thousand_hashed_lines_are_no_burden(tmp_path: Path, shared: bool) -> None:
    """Also where all nodes share a key, as nodes that boot one image do."""
    number = (lambda i: 0) if shared else (lambda i: i)
    text = "".join(line(hashed(f"node{i}"), key(number(i))) for i in range(10_000))
    began = time.process_time()
    known = index(tmp_path, text)
    for i in range(10_000):
        assert known.judge(f"node{i}", key(number(i))).trust is Trust.KNOWN
    assert time.process_time() - began < 5


def test_a_port_is_part_of_the_name() -> None:
    assert lookup_name("Node01", 22) == "node01"
    assert lookup_name("::1", 2222) == "[::1]:2222"
