"""The check nfs: how fast a node writes, by recorded answers and in real directories."""

from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.checks.test_nfs import HOME_ANSWERS, HOME_OWNER, one, with_facts
from tests.made_up import CHECKS, judged, options_of
from tests.nfs_node import V4, NfsNode, listening, mount_line
from tests.shells import SHELLS

TIMED = {
    "heavy.status": "whole",
    "heavy.busy": "",
    "heavy.place": "/home",
    "heavy.free_mb": "400000",
    "heavy.quota_mb": "",
    "heavy.device": "eth0",
    "heavy.speed": "10000",
    "heavy.direct": "yes",
    "heavy.first_status": "0",
    "heavy.first": "8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.02 s, 419 MB/s",
    "heavy.dd_status": "0",
    "heavy.dd": "1048576000 bytes (1.0 GB, 1000 MiB) copied, 2.5 s, 419 MB/s",
}
SLOW = {"heavy.dd": "524288000 bytes (524 MB, 500 MiB) copied, 3.0 s, 175 MB/s"}


def timed(**changed: str) -> list[str]:
    told = one() | TIMED | {key.replace("_", ".", 1): value for key, value in changed.items()}
    return judged("nfs", told, throughput=True)[2:]


def test_nothing_is_said_unless_asked_for() -> None:
    assert judged("nfs", one() | TIMED) == [HOME_ANSWERS, HOME_OWNER]
    shared = CHECKS["nfs"].shared
    assert shared
    assert shared(Facts(one()), options_of("nfs")) == ""
    assert shared(Facts(one()), options_of("nfs", throughput=True)) == "10.30.0.5"
    denied = Facts(with_facts(one(), touch="Permission denied"))
    assert shared(denied, options_of("nfs", throughput=True)) == ""
    elsewhere = options_of("nfs", throughput=True, throughput_dir="/scratch")
    assert shared(Facts(one()), elsewhere) == ""


def test_the_message_gives_both_figures() -> None:
    assert timed() == [
        "pass throughput: /home: 419 MB/s (1000 MiB of zeros in 2.5 s, O_DIRECT), should be 350"
        " MB/s or more (1000 MiB in 3 s; 60 % of eth0's 10,000 Mbit/s are 750 MB/s)"
    ]
    assert timed(heavy_speed="1000", heavy_dd=SLOW["heavy.dd"]) == [
        "pass throughput: /home: 175 MB/s (500 MiB of zeros in 3 s, O_DIRECT), should be 75 MB/s or"
        " more (60 % of eth0's 1,000 Mbit/s are 75 MB/s, less than 1000 MiB in 3 s)"
    ]


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        ("10000", "fail throughput: /home: 175 MB/s"),
        ("1000", "pass throughput: /home: 175 MB/s"),
        # a virtual link tells no speed: below the notes' figure, but who knows what it can
        ("-1", "warn throughput: /home: 175 MB/s"),
        ("", "warn throughput: /home: 175 MB/s"),
        ("4294967295", "warn throughput: /home: 175 MB/s"),
    ],
)
def test_the_limit_follows_the_link(speed: str, said: str) -> None:
    assert timed(heavy_speed=speed, heavy_dd=SLOW["heavy.dd"])[0].startswith(said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heavy_busy": "a job runs (slurmstepd, process 812)"}, "skip throughput: not timed: a j"),
        ({"heavy_status": "did not end within its limit"}, "unknown throughput: not timed: did no"),
        ({"heavy_refused": "Disk quota exceeded"}, "unknown throughput: not timed: no file can"),
        ({"heavy_free_mb": "3999"}, "skip throughput: not timed: /home has 3999 MiB free, should"),
        ({"heavy_quota_mb": "1999"}, "skip throughput: not timed: the quota leaves 1999 MiB in"),
        ({"heavy_first_status": "124"}, "fail throughput: /home: writing 8 MiB did not end within"),
        ({"heavy_dd_status": "124"}, "fail throughput: /home: writing slowed down so much that it"),
        (
            {"heavy_dd_status": "1", "heavy_dd": "dd: error writing: Input/output error"},
            "unknown throughput: /home: writing failed: dd: error writing: Input/output error",
        ),
        (
            {
                "heavy_first_status": "1",
                "heavy_dd": "",
                "heavy_first": "dd: error writing '/x: y': No space left on device\n"
                "3+0 records in\n2+0 records out\n2097152 bytes (2.1 MB) copied, 0.2 s, 10 MB/s\n",
            },
            "fail full: /home: writing failed: no space left on device, though free space is told",
        ),
        (
            {
                "heavy_dd_status": "1",
                "heavy_dd": "/bin/dd: error writing '/x': Disk quota exceeded\n1+0 records in",
            },
            "warn quota: /home: writing failed: the quota of the login user is used up",
        ),
        ({"heavy_dd": "what?"}, "unknown throughput: /home: dd's answer cannot be read"),
        ({"heavy_direct": "no"}, "pass throughput: /home: 419 MB/s (1000 MiB of zeros in 2.5 s, f"),
    ],
)
def test_what_stands_in_the_way_is_no_pass(changed: dict[str, str], said: str) -> None:
    assert timed(**changed)[0].startswith(said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"heavy_gone": "open", "heavy_first_status": "124"},
            "fail hung: /home answered, and no longer since it is to be timed: writing 8 MiB did"
            " not end within 20 s, nor a look at its free space within 10 s",
        ),
        (
            {"heavy_gone": "no answer", "heavy_dd_status": "137", "heavy_left": "/home/.x"},
            "fail server: /home answered, and no longer since it is to be timed: writing did not"
            " end within 25 s, and TCP port 2049 of nas1 gave no answer within 3 s; the next run"
            " removes /home/.x",
        ),
        (
            {"heavy_gone": "not tried", "heavy_small@create": "124 1 2"},
            "fail hung: /home answered, and no longer since it is to be timed: small files took"
            " more than 10 s, nor a look at its free space within 10 s",
        ),
        (
            {"heavy_gone": "Connection refused"},
            "fail server: /home answered, and no longer since it is to be timed: making a directory"
            " did not end within 4 s, and TCP port 2049 of nas1 cannot be reached: Connection"
            " refused",
        ),
    ],
)
def test_a_server_that_is_gone_is_no_slowness(changed: dict[str, str], said: str) -> None:
    assert timed(**changed) == [said]


def test_a_second_step_that_did_not_run_is_unknown() -> None:
    assert judged("nfs", one(), throughput=True)[-1] == (
        "unknown throughput: not timed: it was not run"
    )
    denied = with_facts(one(), touch="Permission denied")
    assert judged("nfs", denied, throughput=True)[-1] == (
        "skip throughput: not timed: the login user cannot write to any NFS mount"
    )


@pytest.mark.parametrize(
    ("dd", "status", "rate"),
    [
        ("1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.631 s, 1.7 GB/s", "pass", "1702 MB/s"),
        ("1073741824 bytes (1.1 GB, 1.0 GiB) copied, 3.464 s, 310 MB/s", "pass", "310 MB/s"),
        ("16777216 bytes (17 MB, 16 MiB) copied, 17.66 s, 950 kB/s", "fail", "0.95 MB/s"),
        # busybox, and a very old dd
        ("1073741824 bytes (1.0GB) copied, 3.464 seconds, 295.6MB/s", "pass", "310 MB/s"),
        ("1073741824 bytes (1.1 GB) copied, 3.464 s, 310 MB/s", "pass", "310 MB/s"),
    ],
)
def test_case_units(dd: str, status: str, rate: str) -> None:
    """The rate is worked out: dd's own has a unit that changes."""
    told = one() | TIMED | {"heavy.dd": dd, "heavy.speed": ""}
    said = judged("nfs", told, throughput=True, min_mb_per_second=50)[-1]
    assert said.startswith(f"{status} throughput: /home: {rate} (")
    assert said.endswith("should be 50 MB/s or more (as set)")


def small(create: str) -> dict[str, str]:
    steps = {f"heavy.small@{step}": "0 1000.00 1000.40" for step in ("stat", "rename", "unlink")}
    return one() | TIMED | steps | {"heavy.small@create": create}


def test_small_files() -> None:
    assert judged("nfs", small("0 1000.0 1001.2"), throughput=True)[-1] == (
        "pass small_files: /home: a small file is made 12 ms, looked at 4 ms, renamed 4 ms, removed"
        " 4 ms"
    )
    assert judged("nfs", small("0 1000.0 1003.0"), throughput=True)[-1].startswith(
        "warn small_files: /home: a small file is made 30 ms"
    )
    assert judged("nfs", small("124 1000.0 1010.0"), throughput=True)[-1] == (
        "warn small_files: /home: 100 small files could not be made: it did not end within 10 s"
    )
    assert judged("nfs", small("1 1000.0 1000.1"), throughput=True)[-1].startswith(
        "unknown small_files: /home: 100 small files could not be made"
    )


@pytest.mark.parametrize("shell", SHELLS)
class TestReal:
    """The real second step in a real directory that stands in for a mount."""

    CHOSEN: dict[str, Any] = {"throughput": True, "size_mb": 16, "small_files": 10}

    def node(self, folder: Path, options: str) -> NfsNode:
        node = NfsNode(folder)
        node.mounted(mount_line("/home", options=f"{V4},{options}"))
        node.file("/proc/loadavg", "0.10 0.10 0.10 1/100 4711\n")
        node.file("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n")
        node.says("ip", "10.30.0.5 dev eth7 src 10.30.0.21 uid 0\n    cache\n")
        node.file("/sys/class/net/eth7/speed", "25000\n")
        return node

    def heavy(self, node: NfsNode, shell: str, **changed: Any) -> dict[str, str]:
        told = node.asked(shell=shell, step="heavy", **(self.CHOSEN | changed))
        assert told.whole and told.error == "", told
        return dict(told.facts)

    def test_it_is_timed_and_nothing_is_left(self, tmp_path: Path, shell: str) -> None:
        with listening() as server:
            node = self.node(tmp_path, server.at)
            light = node.facts(shell=shell, **self.CHOSEN)
            heavy = self.heavy(node, shell)
        assert (heavy["heavy.device"], heavy["heavy.speed"]) == ("eth7", "25000")
        assert "16777216 bytes" in heavy["heavy.dd"]
        told = light | heavy | {"heavy.status": "whole"}
        said = judged("nfs", told, **self.CHOSEN, min_mb_per_second=0.001, small_ms=5000.0)
        assert [line.split(":")[0] for line in said[-2:]] == [
            "pass throughput",
            "pass small_files",
        ]
        assert node.left() == []

    def test_a_node_with_a_job_is_left_alone(self, tmp_path: Path, shell: str) -> None:
        node = self.node(tmp_path, "addr=127.0.0.1")
        node.file("/proc/812/comm", "slurmstepd\n")
        assert self.heavy(node, shell) == {"heavy.busy": "a job runs (slurmstepd, process 812)"}
        (node.root / "proc/812/comm").unlink()
        node.file("/proc/loadavg", "1.20 0.10 0.10 1/100 4711\n")
        busy = "the load is 1.20, should be 1 or less (CPUs: 2)"
        assert self.heavy(node, shell) == {"heavy.busy": busy}

    def test_one_cpu_is_not_busy_with_our_own_questions(self, tmp_path: Path, shell: str) -> None:
        node = self.node(tmp_path, "addr=127.0.0.1")
        node.file("/proc/cpuinfo", "processor\t: 0\n")
        node.file("/proc/loadavg", "0.90 0.10 0.10 1/100 4711\n")
        assert self.heavy(node, shell)["heavy.busy"] == ""
        node.file("/proc/loadavg", "1.10 0.10 0.10 1/100 4711\n")
        assert self.heavy(node, shell)["heavy.busy"] == (
            "the load is 1.10, should be 1 or less (CPUs: 1)"
        )

    def test_a_mount_that_stops_to_answer_is_told_and_asked_no_further(
        self, tmp_path: Path, shell: str
    ) -> None:
        with listening() as server:
            node = self.node(tmp_path, server.at)
            node.command(
                "mkdir", 'case "$*" in */home/*) exec sleep 3600 ;; esac; exec /usr/bin/mkdir "$@"'
            )
            node.command(
                "stat", 'case "$*" in *-f*) exec sleep 3600 ;; esac; exec /usr/bin/stat "$@"'
            )
            assert self.heavy(node, shell)["heavy.gone"] == "open"
        assert self.heavy(node, shell)["heavy.gone"] == "Connection refused"

    def test_space_and_quota_are_looked_at_first(self, tmp_path: Path, shell: str) -> None:
        node = self.node(tmp_path, "addr=127.0.0.1")
        node.command("dd", f"echo written >>{tmp_path}/written")
        assert "heavy.first" not in self.heavy(node, shell, size_mb=10**9)
        node.says(
            "quota",
            " Filesystem blocks quota limit grace files quota limit grace\n"
            "nas1:/export 990000* 900000 1000000 6days 10 0 0\n",
        )
        told = self.heavy(node, shell)
        assert told["heavy.quota_mb"] == "9"
        assert "heavy.first" not in told
        assert not (tmp_path / "written").exists()

    def test_without_o_direct_it_says_so(self, tmp_path: Path, shell: str) -> None:
        node = self.node(tmp_path, "addr=127.0.0.1")
        node.command(
            "dd",
            "case $* in *oflag*) echo \"dd: setting flags for 'standard output': Invalid argument\""
            ' >&2; exit 1 ;; *) exec /usr/bin/dd "$@" ;; esac',
        )
        told = self.heavy(node, shell)
        assert (told["heavy.direct"], told["heavy.first_status"]) == ("no", "0")
        assert node.left() == []

    def test_the_file_is_gone_while_it_is_written(self, tmp_path: Path, shell: str) -> None:
        """However the writer ends, the kernel frees what has no name any more."""
        node = self.node(tmp_path, "addr=127.0.0.1")
        node.command("dd", f'ls -A {node.root}/home/.* >>{tmp_path}/seen; exec /usr/bin/dd "$@"')
        self.heavy(node, shell)
        assert "-timed" in (tmp_path / "seen").read_text()
        assert "zeros" not in (tmp_path / "seen").read_text()
        assert node.left() == []

    def test_another_directory(self, tmp_path: Path, shell: str) -> None:
        node = self.node(tmp_path, "addr=127.0.0.1")
        (node.root / "home/bench marks").mkdir()
        chosen = {"throughput_dir": "/home/bench marks"}
        assert self.heavy(node, shell, **chosen)["heavy.place"] == "/home/bench marks"
        assert self.heavy(node, shell, throughput_dir="/tmp")["heavy.refused"]
