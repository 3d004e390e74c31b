"""The check tmp: what is judged, what the probe sees on made-up nodes and on real file systems."""

import json
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.this_machine import SHELLS, facts_here
from tools.fetch import program

DATA = Path(__file__).resolve().parent.parent / "data" / "tmp"
ROOT_MOUNT = "27 1 8:3 / / rw,relatime shared:1 - ext4 /dev/sda3 rw,errors=remount-ro"
HEADER = "Filesystem 1024-blocks Used Available Capacity Mounted on"

HEALTHY = {
    "slurm": "none",
    "memory": "32000000",
    "directories": "1",
    "path@1": "/tmp",
    "from@1": "default",
    "state@1": "directory",
    "mode@1": "drwxrwxrwt",
    "owner@1": "0",
    "writable@1": "yes",
    "real@1": "/tmp",
    "mount@1": ROOT_MOUNT,
    "space@1": f"{HEADER}\n/dev/sda3 20511312 2305120 17141236 12% /",
    "inodes@1": "Filesystem Inodes IUsed IFree IUse% Mounted on\n"
    "/dev/sda3 1310720 13107 1297613 1% /",
}
MODE = "pass mode: /tmp has mode drwxrwxrwt"
SPACE = "pass space: /tmp 11.8 % full: 16.3 GiB free of 19.6 GiB"
INODES = "pass inodes: /tmp inodes 0.9 % used: 1297613 free of 1310720"


def df(used: int, free: int, total: int | None = None) -> str:
    """What df says of / with so many KiB."""
    return f"{HEADER}\n/dev/sda3 {total or used + free} {used} {free} 0% /"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_healthy_node() -> None:
    assert judged("tmp", HEALTHY) == [MODE, SPACE, INODES]


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (df(7_999_000, 2_001_000), "pass space: /tmp 79.9 % full: 1.91 GiB free of 9.54 GiB"),
        (
            df(8_000_000, 2_000_000),
            "warn space: /tmp 80 % full, should be below 80 %: 1.91 GiB free of 9.54 GiB",
        ),
        (
            df(9_000_000, 1_000_000),
            "fail space: /tmp 90 % full, should be below 90 %: 977 MiB free of 9.54 GiB",
        ),
        # what is kept for root is of no use to jobs
        (
            df(9_000_000, 0, 10_000_000),
            "fail space: /tmp 100 % full, should be below 90 %: 0 KiB free of 9.54 GiB",
        ),
        # used beyond what ordinary users may take
        (
            df(9_900_000, -400_000, 10_000_000),
            "fail space: /tmp 100 % full, should be below 90 %: 0 KiB free of 9.54 GiB",
        ),
        (
            df(100_000, 100_000),
            "fail space: /tmp 50 % full: 97.7 MiB free of 195 MiB, should be 100 MiB free or more",
        ),
        ("", "unknown space: /tmp: df gives no numbers for the file system"),
        (f"{HEADER}\nnas:/tmp - - - - /tmp", "unknown space: /tmp: df gives no numbers"),
        (f"{HEADER}\n/etc/auto.tmp 0 0 0 - /tmp", "unknown space: /tmp: df gives no numbers"),
    ],
)
def test_space(space: str, said: str) -> None:
    answer = judged("tmp", {**HEALTHY, "space@1": space})
    assert answer[0] == MODE
    assert answer[1].startswith(said)
    assert answer[2] == INODES


@pytest.mark.parametrize(
    ("inodes", "said"),
    [
        (df(1310720, 0), "fail inodes: /tmp inodes 100 % used, should be below 90 %: 0 free of"),
        (df(85, 15), "warn inodes: /tmp inodes 85 % used, should be below 80 %: 15 free of 100"),
        (f"{HEADER}\n/dev/sdb 0 0 0 - /tmp", "pass inodes: /tmp has no limit of inodes"),
        (f"{HEADER}\n- - - - - /tmp", "pass inodes: /tmp has no limit of inodes"),
        ("", "unknown inodes: /tmp: df does not tell the inodes"),
    ],
)
def test_inodes(inodes: str, said: str) -> None:
    answer = judged("tmp", {**HEALTHY, "inodes@1": inodes})
    assert answer[:2] == [MODE, SPACE]
    assert answer[2].startswith(said)


def test_a_full_xfs_has_few_inodes_and_is_one_finding() -> None:
    told = {
        **HEALTHY,
        "mount@1": ROOT_MOUNT.replace("ext4", "xfs"),
        "space@1": df(99, 1),
        "inodes@1": df(99, 1),
    }
    assert [line.split(":")[0] for line in judged("tmp", told)] == ["pass mode", "fail space"]


def test_the_largest_entries_are_named_with_their_owners() -> None:
    told = {
        **HEALTHY,
        "space@1": df(95, 5),
        "inodes@1": df(95, 5),
        "largest@1": "41943040 alice Nov 30 10:12 /tmp/train set\n1024 bob Jan 2 2025 /tmp/b\ncut",
        "crowded@1": "1200000 bob Nov 29 23:01 /tmp/cache/a",
    }
    said = judged("tmp", told)
    assert said[1].endswith(
        "; largest (of what was seen in the time): 40 GiB of alice in /tmp/train set, changed"
        " Nov 30 10:12; 1 MiB of bob in /tmp/b, changed Jan 2 2025"
    )
    assert said[2].endswith(
        "; most entries: 1200000 entries of bob in /tmp/cache/a, changed Nov 29 23:01"
    )


def test_deleted_files_that_are_held_open() -> None:
    told = {
        **HEALTHY,
        "space@1": df(95, 5),
        "deleted": "2097152 1 4711 alice python3 /tmp/core dump\n1024 7 1 root x /scratch/y",
    }
    assert judged("tmp", told)[-1] == (
        "warn deleted: /tmp: 2 GiB are held by deleted files that are still open:"
        " 2 GiB by python3 (process 4711 of alice): /tmp/core dump"
    )
    assert len(judged("tmp", {**told, "deleted": "1024 1 4711 alice python3 /tmp/x"})) == 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mode@1": "drwxr-xr-x"}, "fail mode: /tmp has mode drwxr-xr-x, should be drwxrwxrwt"),
        (
            {"mode@1": "drwxrwxrwx."},
            "warn mode: /tmp has mode drwxrwxrwx, should end in t: all can remove each other's"
            " files",
        ),
        ({"owner@1": "1000"}, "warn mode: /tmp belongs to the user 1000, should to root (0)"),
        ({"writable@1": "no"}, "fail mode: /tmp has mode drwxrwxrwt and yet cannot be written to"),
        ({"real@1": "/data/tmp"}, "pass mode: /tmp (which is /data/tmp) has mode drwxrwxrwt"),
        ({"mount@1": ""}, "unknown mount: /tmp: how it is mounted could not be read"),
        (
            {"mount@1": ROOT_MOUNT.replace("rw,errors", "ro,errors"), "writable@1": "no"},
            "fail read_only: /tmp is read-only (ext4 on /dev/sda3), should be writable",
        ),
        (
            {"mount@1": ROOT_MOUNT.replace("rw,relatime", "ro,relatime")},
            "fail read_only: /tmp is read-only (ext4 on /dev/sda3), should be writable",
        ),
        (
            {"mount@1": ROOT_MOUNT.replace("rw,relatime", "rw,nosuid,nodev,noexec")},
            "warn noexec: /tmp is mounted noexec: no program can be run from it",
        ),
    ],
)
def test_mode_and_mount(changed: dict[str, str], said: str) -> None:
    answer = judged("tmp", {**HEALTHY, **changed})
    assert answer[0] == said
    assert answer[-2:] == [SPACE, INODES]


def test_noexec_may_be_wanted() -> None:
    told = {**HEALTHY, "mount@1": ROOT_MOUNT.replace("rw,relatime", "rw,noexec")}
    assert judged("tmp", told, warn_noexec=False) == [MODE, SPACE, INODES]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("No such file or directory", "fail missing: /tmp is not there"),
        ("Not a directory", "fail missing: /tmp is no directory"),
        ("Stale file handle", "fail broken: /tmp cannot be used: Stale file handle"),
        ("Input/output error", "fail broken: /tmp cannot be used: Input/output error"),
        ("Permission denied", "unknown unanswered: /tmp may not be looked at by this user"),
        ("hung", "unknown unanswered: /tmp did not answer within 3 s: its file system hangs"),
    ],
)
def test_a_directory_that_cannot_be_used(state: str, said: str) -> None:
    assert judged("tmp", {**HEALTHY, "state@1": state}) == [said]


@pytest.mark.parametrize(
    "changed",
    [{"warn_percent": 95}, {"inodes_fail_percent": 70}, {"paths": ("scratch",)}],
)
def test_options_that_cannot_be(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"above (inodes_)?fail_percent|must begin with /"):
        options_of("tmp", **changed)


def test_a_tmpfs_is_memory() -> None:
    mount = "35 27 0:31 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw,size=16000000k,nr_inodes=1048576"
    told = {**HEALTHY, "mount@1": mount, "space@1": df(0, 16_000_000)}
    assert judged("tmp", told)[2] == (
        "pass memory: /tmp is in memory (tmpfs), and may take 15.3 GiB of the node's 30.5 GiB"
    )
    assert judged("tmp", {**told, "memory": "16000000"})[2] == (
        "warn memory: /tmp is in memory (tmpfs), and may take 15.3 GiB of the node's 15.3 GiB,"
        " should be 60 % at most"
    )
    assert judged("tmp", {**told, "memory": ""})[2].startswith("unknown memory: ")


def test_two_directories_of_one_file_system_are_one_finding() -> None:
    second = {k.replace("@1", "@2"): v for k, v in HEALTHY.items() if "@1" in k}
    second |= {"path@2": "/scratch", "real@2": "/scratch", "mode@2": "drwxr-xr-x"}
    told = {**HEALTHY, **second, "directories": "2", "space@1": df(85, 15)}
    assert [line.partition(" full")[0] for line in judged("tmp", told, fail_free_mb=0)] == [
        MODE,
        "pass mode: /scratch has mode drwxr-xr-x",
        "warn space: /tmp, /scratch 85 %",
        INODES.replace("/tmp", "/tmp, /scratch"),
    ]


def test_slurm_conf_that_cannot_be_read_is_said() -> None:
    assert judged("tmp", {**HEALTHY, "slurm": "unreadable"})[-1] == (
        "unknown slurm: slurm.conf cannot be read, so TmpFS is not known"
    )


@pytest.mark.parametrize(
    ("file", "path", "said"),
    [
        ("df-plain.txt", "/tmp", "fail space: /tmp 95 % full"),
        ("df-plain.txt", "/home", "pass space: /home 72.5 % full"),
        ("df-long-names.txt", "/var/lib/containers", "fail space: /var/lib/containers 100 % full"),
        ("df-wrapped.txt", "/", "pass space: / 20 % full"),
        ("df-wrapped.txt", "/home", "pass space: /home 72.5 % full"),
        ("df-dashes.txt", "/mnt/dead", "unknown space: /mnt/dead: df gives no numbers"),
        ("df-dashes.txt", "/data/auto", "unknown space: /data/auto: df gives no numbers"),
        ("df-chinese.txt", "/mnt/with space", "pass space: /mnt/with space 0 % full"),
        ("df-chinese.txt", "/mnt", "pass space: /mnt 0 % full"),
    ],
)
def test_what_df_of_many_kinds_said(file: str, path: str, said: str) -> None:
    told = {**HEALTHY, "path@1": path, "real@1": path, "space@1": (DATA / file).read_text()}
    assert judged("tmp", told, fail_free_mb=0)[1].startswith(said)


def made_up(folder: Path, *paths: str) -> MadeUpNode:
    """A node with /tmp and other directories, all on its root file system."""
    node = MadeUpNode(folder)
    for path in ("/tmp", *paths):
        (node.root / path[1:]).mkdir(parents=True)
        (node.root / path[1:]).chmod(0o1777)
    node.file("/proc/self/mountinfo", ROOT_MOUNT + "\n")
    node.file("/proc/meminfo", "MemTotal:       32000000 kB\nMemFree: 1 kB\n")
    node.says("df", HEALTHY["space@1"] + "\n")
    return node


def test_the_probe_on_a_healthy_node(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path)
    node.command("df", f"printf '{HEADER}\\n/dev/sda3 '; echo 20511312 2305120 17141236 12% /")
    told = node.probe("tmp", shell=shell)
    owner = str((node.root / "tmp").stat().st_uid)
    same = {k: v for k, v in HEALTHY.items() if not k.startswith("inodes")}
    assert told == {**same, "owner@1": owner, "inodes@1": told["space@1"]}


def test_the_probe_finds_slurms_directory(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path, "/local/scratch", "/old")
    node.file("/etc/slurm/slurm.conf", "ClusterName=c\n#TmpFS=/no\nTmpFS=/old\nInclude more.conf\n")
    node.file("/etc/slurm/more.conf", "SlurmdPort=6818  tmpfs = /local/scratch # local disk\n")
    told = node.probe("tmp", shell=shell)
    assert told["slurm"] == "/etc/slurm/slurm.conf"
    assert (told["path@2"], told["from@2"]) == ("/local/scratch", "Slurm")
    assert told["directories"] == "2"
    assert node.probe("tmp", shell=shell, paths=("/local/scratch",))["from@2"] == "option"


def test_the_probe_asks_the_controller_only_without_a_file(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path, "/var/spool/slurmd", "/scratch")
    node.says("scontrol", "SlurmdSpoolDir          = /var/spool/slurmd\nTmpFS    = /scratch\n")
    told = node.probe("tmp", shell=shell)
    assert (told["slurm"], told["path@2"]) == ("scontrol", "/scratch")
    recorded = (DATA / "scontrol-config.txt").read_text()
    node.says("scontrol", recorded)
    told = node.probe("tmp", shell=shell)
    assert (told["slurm"], told["directories"]) == ("scontrol", "1")  # its TmpFS is /tmp
    node.says("scontrol", recorded.replace("= /tmp\n", "= /scratch\n"))
    assert node.probe("tmp", shell=shell)["path@2"] == "/scratch"
    node.says("scontrol", "", "slurm_load_ctl_conf error: Unable to contact slurm controller", 1)
    assert node.probe("tmp", shell=shell)["slurm"] == "unreadable"


def test_the_probe_with_a_long_device_name(tmp_path: Path, shell: str) -> None:
    """`df -k` of an old df, as the probe would be answered by one that did not know -P."""
    node = made_up(tmp_path, "/scratch")
    text = (
        "Filesystem           1K-blocks      Used Available Use% Mounted on\n"
        "/dev/mapper/vg_compute_very_long_name-lv_local_scratch\n"
        "                     1048576000 1006632960  41943040  96% /scratch\n"
    )
    node.says("df", text)
    told = node.probe("tmp", shell=shell, paths=("/scratch",))
    said = [line for line in judged("tmp", told, paths=("/scratch",)) if "space" in line]
    assert len(said) == 1
    assert said[0].startswith("fail space: /tmp, /scratch 96 % full, should be below 90 %")


def test_the_probe_when_the_inodes_are_gone(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path)
    for number in range(30):
        node.file(f"/tmp/user/cache/{number}")
    node.command(
        "df",
        f"echo '{HEADER}'\n"
        "case $* in\n"
        "*-i*) echo /dev/sda3 1310720 1310720 0 100% /tmp ;;\n"
        "*) echo /dev/sda3 20511312 2305120 17141236 12% /tmp ;;\n"
        "esac",
    )
    said = judged("tmp", node.probe("tmp", shell=shell))
    assert [line.split(":")[0] for line in said[-2:]] == ["pass space", "fail inodes"]
    assert "most entries: 30 entries of " in said[-1]
    assert " in /tmp/user/cache, changed " in said[-1]


def test_the_probe_searches_no_file_system_that_nodes_share(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path, "/scratch")
    node.file("/scratch/big", b"x" * 100_000)
    node.says("df", df(99, 1).replace("0% /", "99% /scratch") + "\n")
    shared = "50 27 0:44 / /scratch rw - {} nas:/scratch rw,vers=4.2"
    searched = {}
    for kind in ("xfs", "nfs4"):
        node.file("/proc/self/mountinfo", f"{ROOT_MOUNT}\n{shared.format(kind)}\n")
        told = node.probe("tmp", shell=shell, paths=("/scratch",))
        searched[kind] = "largest@2" in told
    assert searched == {"xfs": True, "nfs4": False}


def test_the_probe_without_df(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path)
    node.command("df", "echo 'df: unrecognized option: P' >&2; exit 1")
    node.says("stat", "4096 1000000 500000 450000 0 0\n")
    said = judged("tmp", node.probe("tmp", shell=shell))
    assert said[-2:] == [
        "pass space: /tmp 52.6 % full: 1.72 GiB free of 3.81 GiB",
        "pass inodes: /tmp has no limit of inodes",
    ]


def test_a_file_system_that_hangs_holds_up_nothing(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path, "/net")
    node.command("df", f"case $* in */net) sleep 60 ;; *) echo '{df(1, 99)}' ;; esac")
    began = time.monotonic()
    said = judged("tmp", node.probe("tmp", shell=shell, paths=("/net",)), fail_free_mb=0)
    assert time.monotonic() - began < 50
    assert "unknown unanswered: /net did not answer within 3 s: its file system hangs" in said
    assert "pass space: /tmp 1 % full: 99 KiB free of 100 KiB" in said


def test_the_probe_finds_deleted_files_where_one_process_can_be_seen(
    tmp_path: Path, shell: str
) -> None:
    node = made_up(tmp_path)
    node.says("df", df(99, 1).replace("0% /", "99% /tmp") + "\n")
    held = node.file("/tmp/core (deleted)", b"x" * 3_000_000)
    node.file("/proc/4711/comm", "python3\n")
    link = node.root / "proc/4711/fd/9"
    link.parent.mkdir()
    link.symlink_to(held)
    (line,) = node.probe("tmp", shell=shell)["deleted"].splitlines()
    kib, number, pid, _, command, path = line.split(" ", 5)
    assert int(kib) >= 2900 and (number, pid, command) == ("1", "4711", "python3")
    assert path == str(held).removesuffix(" (deleted)")


def test_numbers_of_inodes_that_cannot_be_read_are_no_lack_of_a_limit() -> None:
    for text in ("no such option", f"{HEADER}\n/dev/sda3 many few some 1% /"):
        said = judged("tmp", {**HEALTHY, "inodes@1": text})
        assert said[2] == "unknown inodes: /tmp: df does not tell the inodes"
    dashes = f"{HEADER}\n/dev/sda3 - - - - /"
    said = judged("tmp", {**HEALTHY, "inodes@1": dashes})
    assert said[2] == "pass inodes: /tmp has no limit of inodes"


def test_the_probe_reads_the_kernels_escapes_and_links(tmp_path: Path, shell: str) -> None:
    node = made_up(tmp_path, "/my data/x")
    mounts = (ROOT_MOUNT, "40 27 8:17 / /my\\040data rw,noexec - ext4 /dev/sdb1 rw")
    node.file("/proc/self/mountinfo", "\n".join(mounts) + "\n")
    (node.root / "link").symlink_to("my data/x")
    told = node.probe("tmp", shell=shell, paths=("/my data/x", "/link", "/gone", "/proc/meminfo"))
    assert told["mount@2"] == told["mount@3"] == mounts[1]
    assert told["real@3"] == "/my data/x"
    assert told["state@4"] == "No such file or directory"
    assert told["state@5"] == "Not a directory"
    assert "warn noexec: /link (which is /my data/x) is mounted noexec" in "\n".join(
        judged("tmp", told)
    )


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A place for a real tmpfs in a mount namespace that the test has to itself."""
    tools = [program("unshare"), program("mount")]
    if None in tools or os.getuid() != 0:
        pytest.skip("cannot here: only root mounts a file system")
    if subprocess.run([str(tools[0]), "-m", "true"], check=False).returncode:
        pytest.skip("cannot here: no mount namespace can be made")
    path = tmp_path / "scratch"
    path.mkdir()
    return path


def inside(scratch: Path, options: str, then: str = ":") -> list[str]:
    """Words that start a command where `scratch` is a tmpfs, after `then` was run in it."""
    script = f'mount -t tmpfs -o "{options}" tmpfs "$0" && cd "$0" && {{ {then}; }} && exec "$@"'
    return [str(program("unshare")), "-m", "sh", "-c", script, str(scratch)]


def real(scratch: Path, shell: str, options: str, then: str = ":") -> list[str]:
    """What the real probe and the judge say of a tmpfs at `scratch`."""
    chosen = {"paths": (str(scratch),), "fail_free_mb": 0, "deleted_warn_mb": 1}
    told = facts_here("tmp", shell, before=inside(scratch, options, then), **chosen)
    said = judged("tmp", told, **chosen)
    return [line.replace(str(scratch), "/scratch") for line in said if str(scratch) in line]


@pytest.mark.parametrize("shell", SHELLS)
class TestReal:
    """The real probe on real file systems."""

    def test_healthy(self, scratch: Path, shell: str) -> None:
        said = real(scratch, shell, "size=16m,mode=1777")
        assert [line.split(":")[0] for line in said] == [
            "pass mode",
            "pass space",
            "pass memory",
            "pass inodes",
        ]
        assert said[1] == "pass space: /scratch 0 % full: 16 MiB free of 16 MiB"

    def test_nearly_full(self, scratch: Path, shell: str) -> None:
        then = "mkdir theirs && head -c 15900000 /dev/zero >theirs/big && chown -R 65534 theirs"
        said = real(scratch, shell, "size=16m,mode=1777", then)
        owner = pwd.getpwuid(65534).pw_name
        assert said[1].startswith("fail space: /scratch 94.")
        assert f"; largest: 15.2 MiB of {owner} in /scratch/theirs, changed " in said[1]

    def test_no_inodes_left(self, scratch: Path, shell: str) -> None:
        then = "mkdir -p a/b && for i in 1 2 3 4 5 6 7 8 9; do : >a/b/$i; done; : >y; : >z"
        said = real(scratch, shell, "size=16m,mode=1777,nr_inodes=14", then)
        assert said[-1].startswith("fail inodes: /scratch inodes 100 % used, should be below 90 %")
        assert "most entries: 9 entries of root in /scratch/a/b, changed" in said[-1]

    def test_unlimited_inodes(self, scratch: Path, shell: str) -> None:
        said = real(scratch, shell, "size=16m,mode=1777,nr_inodes=0")
        assert said[-1] == "pass inodes: /scratch has no limit of inodes"

    def test_made_read_only(self, scratch: Path, shell: str) -> None:
        then = 'cd / && mount -o remount,ro "$0"'
        said = real(scratch, shell, "size=16m,mode=1777", then)
        assert (
            said[0] == "fail read_only: /scratch is read-only (tmpfs on tmpfs), should be writable"
        )

    def test_wrong_mode_and_noexec(self, scratch: Path, shell: str) -> None:
        said = real(scratch, shell, "size=16m,mode=777,noexec")
        assert [line.split(":")[0] for line in said[:2]] == ["warn noexec", "warn mode"]

    def test_deleted_and_still_open(self, scratch: Path, shell: str) -> None:
        then = "exec 9>gone && head -c 15900000 /dev/zero >&9 && rm gone"
        said = real(scratch, shell, "size=16m,mode=1777", then)
        assert said[1].startswith("fail space: /scratch 94.")
        held = [line for line in said if "deleted" in line]
        assert held[0].startswith("warn deleted: /scratch: 15.2 MiB are held by deleted files")
        assert "(process " in held[0] and held[0].endswith(" of root): /scratch/gone")


@pytest.mark.parametrize("shell", SHELLS)
def test_tmp_itself_with_the_wrong_mode(scratch: Path, shell: str) -> None:
    if Path(__file__).is_relative_to("/tmp"):
        pytest.skip("cannot here: this test would hide the project itself")
    told = facts_here("tmp", shell, before=inside(Path("/tmp"), "size=200m,mode=755"))
    assert judged("tmp", told)[:2] == [
        "fail mode: /tmp has mode drwxr-xr-x, should be drwxrwxrwt",
        "pass space: /tmp 0 % full: 200 MiB free of 200 MiB",
    ]


PSUTIL = """
import json, sys
from tests.made_up import CHECKS, options_of
options = options_of("tmp", paths=(sys.argv[1],), fail_free_mb=0)
print(json.dumps(dict(CHECKS["tmp"].probe_here(options))))
"""


def test_psutil_sees_the_same(scratch: Path) -> None:
    then = "mkdir x && head -c 15900000 /dev/zero >x/big && exec 9>gone && echo yes >&9 && rm gone"
    then += " && touch -d '2026-01-02 03:04' x/big x"  # it is made twice, in two minutes maybe
    before = inside(scratch, "size=16m,mode=1777,nr_inodes=20", then)
    back = ["sh", "-c", 'cd "$0" && exec "$@"', os.getcwd()]
    python = [sys.executable, "-c", PSUTIL, str(scratch)]
    done = subprocess.run([*before, *back, *python], capture_output=True, check=True)
    chosen: dict[str, Any] = {"paths": (str(scratch),), "fail_free_mb": 0}
    here = json.loads(done.stdout)
    there = facts_here("tmp", before=before, **chosen)
    assert sorted(here) == sorted(there)
    for key in ("state@2", "mode@2", "owner@2", "writable@2", "real@2", "directories", "slurm"):
        assert here[key] == there[key]
    own = [
        [line for line in judged("tmp", told, **chosen) if str(scratch) in line]
        for told in (here, there)
    ]
    assert own[0] == own[1]
    assert own[0][1].startswith("fail space")


def test_this_machine_by_psutil() -> None:
    told = CHECKS["tmp"].probe_here
    assert told
    said = judged("tmp", told(options_of("tmp")))
    assert said[0].split(":")[0] in ("pass mode", "warn mode", "fail mode", "fail read_only")
    assert told(options_of("tmp"))["memory"] == str(psutil.virtual_memory().total // 1024)
