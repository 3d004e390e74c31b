"""The check munge: what is judged, and what the probe sees of real and made-up daemons."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clustercheck import script
from clustercheck.check import Facts, Status
from clustercheck.facts import Reader
from tests.command import clustercheck, ssh_words, write_inventory
from tests.conftest import MakeHost
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS, sh_folder, shell_words
from tests.slurm_facts import MUNGE
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


def test_credentials_are_tried_across_nodes_where_that_is_wanted(
    munged: Munged, tmp_path: Path
) -> None:
    """The credential is a fact of its own, which the frame takes away from all but `follow`."""
    munged.start()
    node = munged.node(tmp_path / "node")
    assert node.probe("munge", **munged.options)["offered"] == ""
    told = node.probe("munge", **munged.options, across=True)
    assert told["offered"] == "1" and told["credential"].startswith("MUNGE:")
    assert CHECKS["munge"].secrets == ("credential",)


class Cluster:
    """Real daemons, each as a node of its own, asked as a run asks them."""

    def __init__(self, nodes: dict[str, Munged], shell: str = "dash") -> None:
        self.nodes = nodes
        self.shell = shell
        self.options = {
            n: options_of("munge", **daemon.options, across=True) for n, daemon in nodes.items()
        }

    def found(self, folder: Path) -> dict[str, str]:
        check = CHECKS["munge"]
        assert check.compare and check.follow
        made = {n: daemon.node(folder / n) for n, daemon in self.nodes.items()}
        facts = {n: self.ask(node, self.options[n], "light") for n, node in made.items()}
        handed = check.follow(facts, self.options)
        assert isinstance(handed, dict)
        for name, text in handed.items():
            del facts[name]["credential"]
            facts[name].update(self.ask(made[name], self.options[name], "follow", text))
        return {
            node: f"{f.status.value} {f.code}: {f.message}"
            for node, f in check.compare(facts, self.options)
        }

    def ask(self, node: MadeUpNode, options: Any, step: script.Step, text: str = "") -> Facts:
        frame = script.Frame(
            mark="@mark",
            root=str(node.root),
            path=f"{node.bin}:{sh_folder(self.shell)}:{script.PATH}",
        )
        asked = [script.Asked("munge", CHECKS["munge"], options, text)]
        done = subprocess.run(
            [*shell_words(self.shell), "-s"],
            input=script.build(frame, asked, step=step).encode(),
            capture_output=True,
            timeout=60,
            check=True,
        )
        reader = Reader(frame.mark, time.time)
        reader.feed(done.stdout)
        return reader.told["munge"].facts


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[dict[str, Munged]]:
    """Four with one key, three of them running; the last has another key."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Munged] = {}
        for name in ("n1", "n2", "n3", "other"):
            (tmp_path / f"of-{name}").mkdir()
            daemon = found[name] = Munged(tmp_path / f"of-{name}")
            if name in ("n2", "n3"):
                daemon.key.chmod(0o600)
                daemon.key.write_bytes(found["n1"].key.read_bytes())
                daemon.key.chmod(0o400)
            daemon.start()
            stack.callback(daemon.stop)
        yield found


@pytest.mark.parametrize("shell", SHELLS)
def test_real_credentials_pass_between_daemons_with_one_key(
    daemons: dict[str, Munged], tmp_path: Path, shell: str
) -> None:
    del daemons["other"]
    words = "pass across: credentials of 2 other nodes are read here, and those of this node on 2"
    assert Cluster(daemons, shell).found(tmp_path) == dict.fromkeys(daemons, words)


def test_a_daemon_with_another_key_is_named_once(
    daemons: dict[str, Munged], tmp_path: Path
) -> None:
    found = Cluster(daemons).found(tmp_path)
    if os.geteuid() == 0:  # the key's file says so already
        assert found["other"].startswith("fail same_key: the key differs from that of 3 nodes")
    else:
        assert found["other"].startswith("fail across: 4 credentials between this node and 3 other")
    assert [n for n, words in found.items() if not words.startswith("pass across")] == ["other"]


def test_a_daemon_that_has_another_key_in_memory_than_in_its_file(
    daemons: dict[str, Munged], tmp_path: Path
) -> None:
    other = daemons["other"].key
    other.chmod(0o600)
    other.write_bytes(daemons["n1"].key.read_bytes())
    other.chmod(0o400)
    found = Cluster(daemons).found(tmp_path)
    words = (
        "fail across: 4 credentials between this node and 3 other nodes are refused as invalid:"
        " munged here has another key"
    )
    if os.geteuid() == 0:
        words += " in memory, though the file holds the same"
    assert found["other"] == words
    assert [n for n, text in found.items() if not text.startswith("pass across")] == ["other"]


def across(said: dict[tuple[str, str], str], *, elapsed: int = 3, **changed: str) -> list[str]:
    """What is found where (maker, reader) has said so; all else is a success."""
    names = ["a", "b", "c", "d"]
    facts = {}
    for place, name in enumerate(names):
        facts[name] = Facts({**MUNGE, "offered": "1", "now": str(1796061336 + elapsed)})
        for offset in (1, 2):
            maker = names[(place + offset) % 4]
            facts[name][f"theirs@{maker}"] = said.get((maker, name), unmunged(0, age=elapsed))
        facts[name].update(changed)
    compare = CHECKS["munge"].compare
    assert compare
    options = dict.fromkeys(facts, options_of("munge", across=True))
    found = list(compare(facts, options))
    for _, f in found:
        assert f.remedy is None or f.remedy in CHECKS["munge"].codes[f.code].remedies
    return [
        f"{node} {f.status.value} {f.code}: {f.message}"
        for node, f in found
        if f.status is not Status.PASS
    ]


def unmunged(number: int, age: int = 0) -> str:
    """A sample of unmunge with another verdict and another time of reading."""
    word = {0: "Success", 15: "Expired credential", 16: "Rewound credential"}.get(
        number, "Replayed"
    )
    text = sample("01-good").replace("Success (0)", f"{word} ({number})")
    return text.replace("+0000 (1796061336)\nTTL", f"+0000 ({1796061336 + age})\nTTL")


def test_a_clock_that_differs_is_told_from_a_key_that_does() -> None:
    """Only b's clock is wrong, 500 s ahead: it finds others' old, and they find its rewound."""
    said = {
        ("c", "b"): unmunged(15, 503),
        ("d", "b"): unmunged(15, 504),
        ("b", "a"): unmunged(16, -497),
        ("b", "d"): unmunged(16, -497),
    }
    assert across(said) == [
        "b fail clock: 4 credentials between this node and 3 other nodes are refused as rewound"
        " and expired: the clock here is about 500 s ahead of theirs"
    ]


def test_a_run_that_took_longer_than_a_credential_lives_blames_nobody() -> None:
    pairs = [("b", "a"), ("c", "a"), ("c", "b"), ("d", "b"), ("d", "c"), ("a", "c"), ("a", "d")]
    said = dict.fromkeys([*pairs, ("b", "d")], unmunged(15, 340))
    assert across(said, elapsed=340) == [
        f"{node} unknown across: the run took 340 s until credentials were tried, and they live for"
        " 300 s"
        for node in "abcd"
    ]


def test_a_credential_that_was_read_before_had_the_right_key() -> None:
    """Two names of one machine share a daemon."""
    assert across({("b", "a"): unmunged(17), ("a", "c"): unmunged(17)}) == []


def test_a_daemon_that_cannot_read_at_all_is_no_wrong_key() -> None:
    gone = 'unmunge: Error: Failed to access "/run/munge/munge.socket.2": No such file or directory'
    assert across({("b", "a"): gone, ("c", "a"): gone}) == [
        "a unknown across: credentials of others cannot be read here: Failed to access"
        ' "/run/munge/munge.socket.2": No such file or directory'
    ]


def test_a_user_with_another_number_reads_none_and_the_key_is_right() -> None:
    said = "unmunge: Error: Unauthorized credential for client UID=1001 GID=1001"
    assert across({("b", "a"): said, ("c", "a"): said}) == []


def test_two_groups_with_a_key_each_are_both_named() -> None:
    no = "unmunge: Error: Invalid credential"  # all that munge 0.5.15 says of one
    bad = [("b", "a"), ("c", "b"), ("d", "c"), ("a", "d")]  # a and c have one key, b and d another
    assert across(dict.fromkeys(bad, no), digest="") == [
        f"{node} fail across: 2 credentials between this node and 2 other nodes are refused as"
        " invalid: munged here has another key"
        for node in "abcd"
    ]


def test_nodes_of_another_cluster_are_not_tried_with_these() -> None:
    facts = {
        name: Facts({**MUNGE, "cluster": cluster, "offered": "1", "credential": f"MUNGE:{name}:"})
        for name, cluster in {"a": "x", "b": "y", "c": "x", "new": "", "d": "x"}.items()
    }
    facts["d"]["credential"] = "MUNGE:d:\nand more"
    options = dict.fromkeys(facts, options_of("munge", across=True))
    check = CHECKS["munge"]
    assert check.follow and check.compare
    assert check.follow(facts, options) == {
        "a": "c MUNGE:c:",
        "c": "new MUNGE:new:",
        "d": "new MUNGE:new:\na MUNGE:a:",
        "new": "a MUNGE:a:\nc MUNGE:c:",
    }
    words = [(node, f.status.value, f.message) for node, f in check.compare(facts, options)]
    assert ("b", "skip", "no other node with a credential to try") in words
    assert (
        "a",
        "unknown",
        "credentials of other nodes could not be tried here: no answer",
    ) in words
    options = dict.fromkeys(facts, options_of("munge"))
    assert check.follow(facts, options) == {} and not list(check.compare(facts, options))


def test_a_run_over_ssh_tries_credentials_and_records_none(
    make_host: MakeHost, tmp_path: Path
) -> None:
    """The nodes are one machine, whose munged refuses the second reading of a credential."""
    host = make_host(layers=("slurm",))
    host.run(
        "mkdir -p /etc/munge /run/munge /var/log/munge /var/lib/munge\n"
        "chmod 700 /etc/munge /var/log/munge /var/lib/munge\n"
        "head -c 128 /dev/urandom >/etc/munge/munge.key\n"
        "chmod 400 /etc/munge/munge.key\n"
        "munged --force 2>&1"
    )
    lines = [f"n{last} host=127.0.0.{last}" for last in (1, 2, 3)]
    inventory = write_inventory(tmp_path / "inventory.ini", host, lines)
    kept = tmp_path / "kept"
    words = ["-c", "munge,reach", "-i", str(inventory), *ssh_words(host)]
    done = clustercheck("run", *words, "-v", "-o", "munge.across=yes", "--record", kept)
    assert done.status == 0, done.out + done.err
    assert "credentials of 2 other nodes are read here, and those of this node on 2" in done.out
    texts = [file.read_text() for file in (kept / "nodes").iterdir()]
    assert len(texts) == 3 and all("theirs@n" in text for text in texts)
    assert not any("MUNGE:" in text for text in texts)
    done = clustercheck("admit", "n3", *words)
    assert done.out.startswith("n3: admit\nCompared with n[1-2].\n\nPassed: munge, reach\n")
