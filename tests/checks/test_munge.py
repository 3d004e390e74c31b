"""The check munge: what is judged, and what the probe sees of real and made-up daemons."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.slurm_facts import MUNGE
from tests.this_machine import SHELLS
from tests.time_daemons import libraries, tool

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "munge" / "samples"
WORKS = "pass works: munged makes and reads credentials (aes128 and sha256)"
KEPT = "pass key: /etc/munge/munge.key is kept well (mode 0400, 128 bytes)"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text().rstrip("\n")


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("01-good", "0", WORKS),
        (
            "02-expired",
            "15",
            "fail works: Expired credential: read 4 s after it was made, time to live 1 s",
        ),
        (
            "05-rewound",
            "16",
            "fail works: Rewound credential: made 878 s later than it was read, by the clocks,"
            " time to live 300 s",
        ),
    ],
)
def test_each_sample_of_unmunge_is_read_right(name: str, status: str, expected: str) -> None:
    assert judged("munge", {**MUNGE, "read": sample(name), "read_status": status}) == [
        expected,
        KEPT,
    ]


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        (
            sample("04-no-daemon"),
            "6",
            "fail works: munged does not run: there is no /run/munge/munge.socket.2",
        ),
        (
            'munge: Error: Failed to connect to "/run/munge/munge.socket.2": Connection refused',
            "6",
            "fail works: munged does not run: nobody listens at /run/munge/munge.socket.2",
        ),
        (
            'munge: Error: Failed to access "/run/munge/munge.socket.2": Permission denied',
            "6",
            "fail works: munged cannot be reached by this user: Failed to access"
            ' "/run/munge/munge.socket.2": Permission denied',
        ),
        (
            "munge: Error: Failed to receive message header: Timed-out",
            "6",
            "fail works: munged does not answer within 5 s",
        ),
        ("", "124", "fail works: munged does not answer within 5 s"),
        ("munge: Error: Bad", "1", "fail works: munged makes no credentials: Bad"),
    ],
)
def test_a_daemon_that_gives_no_credential(said: str, status: str, expected: str) -> None:
    told = {**MUNGE, "made_status": status, "made": said}
    assert judged("munge", told) == [expected, KEPT]


def test_munge_that_nothing_uses_is_no_fault() -> None:
    dead = {**MUNGE, "made_status": "6", "made": sample("04-no-daemon"), "socket": ""}
    assert judged("munge", {**dead, "auth": "auth/slurm"}) == [
        "skip unused: Slurm does without Munge here (AuthType=auth/slurm)"
    ]
    assert judged("munge", {**dead, "enabled": "no", "slurm": "none"}) == [
        "skip unused: Munge is installed, and nothing starts it"
    ]
    assert judged("munge", {"installed": "no"}) == ["skip absent: Munge is not installed"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("400 998 995 128 1796000000", KEPT),
        ("600 998 995 1024 1796000000", KEPT.replace("0400, 128", "0600, 1024")),
        (
            "644 998 995 128 1796000000",
            "fail key: /etc/munge/munge.key is open to all users (mode 0644), should be 0400 or"
            " 0600",
        ),
        (
            "440 998 995 128 1796000000",
            "fail key: /etc/munge/munge.key is open to its group (mode 0440), should be 0400 or"
            " 0600",
        ),
        (
            "400 0 0 128 1796000000",
            "warn key: /etc/munge/munge.key belongs to uid 0, should be munged's, 998",
        ),
        ("400 998 995 16 1", "warn key: /etc/munge/munge.key has 16 bytes, should be 32 or more"),
        (
            "400 998 995 128 1796003600",
            "warn key_newer: /etc/munge/munge.key was written 3500 s after munged was started:"
            " munged has read what was there before",
        ),
        (
            "absent No such file or directory",
            "warn key: /etc/munge/munge.key is not there (No such file or directory), and munged"
            " runs",
        ),
        ("400 998", "unknown key: what /etc/munge/munge.key is cannot be read: '400 998'"),
        ("490 998 995 128 1", "unknown key: what /etc/munge/munge.key is cannot be read:"),
    ],
)
def test_the_key(key: str, expected: str) -> None:
    found = judged("munge", {**MUNGE, "key": key})
    assert found[0] == WORKS
    assert len(found) == 2
    assert found[1].startswith(expected)


def test_an_ordinary_user_hears_nothing_of_the_key() -> None:
    assert judged("munge", {**MUNGE, "key": "unreadable"}) == [WORKS]


def compared(**digests: str) -> list[str]:
    """Nodes named "digest/cluster" by what they have."""
    nodes = {
        name: Facts({**MUNGE, "digest": said.split("/")[0] * 16, "cluster": said.split("/")[1]})
        for name, said in digests.items()
    }
    options = dict.fromkeys(nodes, options_of("munge"))
    compare = CHECKS["munge"].compare
    assert compare
    return [f"{node} {f.status.value} {f.code}: {f.message}" for node, f in compare(nodes, options)]


def test_another_key_than_that_of_most_nodes() -> None:
    words = "fail same_key: the key differs from that of"
    end = ": each refuses the other's credentials"
    assert compared(a="1/x", b="1/x", c="2/x") == [f"c {words} 2 nodes{end}"]
    assert compared(a="1/x", b="2/x") == [
        f"a {words} as many other nodes{end}",
        f"b {words} as many other nodes{end}",
    ]
    assert compared(a="1/x", b="1/x", c="2/y", d="2/y") == []


def test_numbers_of_the_user_are_compared_where_that_is_wanted() -> None:
    nodes = {n: Facts({**MUNGE, "socket": f"{n} 995 1"}) for n in ("998", "997")}
    nodes["third"] = nodes["998"]
    compare = CHECKS["munge"].compare
    assert compare
    assert not list(compare(nodes, dict.fromkeys(nodes, options_of("munge"))))
    wanted = dict.fromkeys(nodes, options_of("munge", same_ids=True))
    assert [(n, f.message) for n, f in compare(nodes, wanted)] == [
        ("997", "munged runs as uid 997, gid 995, as uid 998, gid 995 on 2 nodes")
    ]


class Munged:
    """A real munged with its files in a folder; `node` has its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "munged"
        self.folder.mkdir(mode=0o755)
        for place in (folder, folder.parent):
            place.chmod(0o755)
        self.key = self.folder / "key"
        self.key.write_bytes(os.urandom(128))
        self.key.chmod(0o400)
        self.environment = libraries("slurm")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log"}
        words = [f"--{name}={self.folder / file}" for name, file in files.items()]
        words += [f"--seed-file={self.folder / 'seed'}", "--force", "--foreground"]
        self._process = subprocess.Popen(
            [tool("slurm", "munged"), *words],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 30
        while not (self.folder / "socket").exists():
            assert self._process.poll() is None and time.monotonic() < end
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def node(self, folder: Path) -> MadeUpNode:
        folder.mkdir()
        node = MadeUpNode(folder)
        where = self.environment["LD_LIBRARY_PATH"]
        node.command("munged", "exit 1")
        for name in ("munge", "unmunge"):
            program = f"exec {tool('slurm', name)}"
            # the last -S counts: a made-up node's own path would be too long for a socket
            node.command(name, f'LD_LIBRARY_PATH={where} {program} "$@" -S {self.folder}/socket')
        for name in ("socket", "key"):
            link = node.root / self.folder.relative_to("/") / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.folder / name)
        return node

    @property
    def options(self) -> dict[str, str]:
        return {"socket": str(self.folder / "socket"), "key": str(self.folder / "key")}


@pytest.fixture
def munged(tmp_path: Path) -> Iterator[Munged]:
    daemon = Munged(tmp_path)
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(daemon.stop)
        yield daemon


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_daemon(munged: Munged, tmp_path: Path, shell: str) -> None:
    munged.start()
    node = munged.node(tmp_path / "node")
    told = node.probe("munge", shell=shell, **munged.options)
    found = judged("munge", told, **munged.options)
    assert found[0] == WORKS
    if os.geteuid() == 0:
        assert len(told["digest"]) == 16
        key = munged.options["key"]
        assert found[1] == f"pass key: {key} is kept well (mode 0400, 128 bytes)"
        os.chmod(munged.folder / "key", 0o640)
        told = node.probe("munge", shell=shell, **munged.options)
        assert judged("munge", told, **munged.options)[1] == (
            f"fail key: {key} is open to its group (mode 0640), should be 0400 or 0600"
        )


def test_a_real_daemon_that_is_stopped(munged: Munged, tmp_path: Path) -> None:
    munged.start()
    munged.stop()
    node = munged.node(tmp_path / "node")
    node.file("/etc/systemd/system/multi-user.target.wants/munge.service")
    socket = munged.options["socket"]
    assert judged("munge", node.probe("munge", **munged.options), **munged.options)[0] == (
        f"fail works: munged does not run: there is no {socket}"
    )


def test_the_digest_tells_nothing_of_the_key_and_the_probe_says_it_nowhere(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    for name in ("munge", "unmunge"):
        node.says(name, "STATUS: Success (0)")
    node.says("munged")
    node.file("/etc/munge/munge.key", "the key of this cluster, of some length", 0o400)
    node.file("/etc/slurm/slurm.conf", "ClusterName = demo # ours\nauthtype=auth/munge\n")
    first, second = node.probe("munge"), node.probe("munge")
    assert (first["cluster"], first["auth"]) == ("demo", "auth/munge")
    if os.geteuid() == 0:
        assert first["digest"] != second["digest"]  # another run, another mark
        assert first["key"].startswith("400 0 0 39 ")
    assert "of this cluster" not in "\n".join(first.values())


def test_where_munge_is_not_installed_next_to_nothing_is_asked(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("munged", "munge", "unmunge")
    assert node.probe("munge") == {"installed": "no"}
