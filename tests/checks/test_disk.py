"""The check disk: what is judged, and what the probe sees on made-up nodes and on this one."""

import os
import re
from typing import Any

import pytest

from tests.disk_node import MISSING, QUIET, USED, asked, df_says, mounted, node, sample, shell
from tests.made_up import MadeUpNode, judged, options_of
from tests.storage_facts import DISK, DISK_FULL, HEADER, INODES, MDSTAT
from tests.this_machine import facts_here

__all__ = ["node", "shell"]


# ---------------------------------------------------------------- space


def test_a_sound_node() -> None:
    assert judged("disk", DISK) == [USED, MISSING, QUIET]


@pytest.mark.parametrize(
    ("used", "free", "expected"),
    [
        (84, 16, "pass space: used: /data 84 %, / 35.5 %"),
        (85, 15, "warn space: /data 85 % full, should be below 85 %: 15 KiB free of 100 KiB"),
        (949, 51, "warn space: /data 94.9 % full, should be below 85 %: 51 KiB free of 1000 KiB"),
        (95, 5, "fail space: /data 95 % full, should be below 95 %: 5 KiB free of 100 KiB"),
        (100, 0, "fail space: /data 100 % full, should be below 95 %: 0 KiB free of 100 KiB"),
    ],
)
def test_how_full(used: int, free: int, expected: str) -> None:
    space = f"{HEADER}\n/dev/sda2 51290592 17301004 31351748 36% /\n"
    space += f"/dev/sdb1 {used + free} {used} {free} {used}% /data"
    assert expected in judged("disk", {**DISK, "space@1": space})


def test_inodes() -> None:
    inodes = f"{INODES}\n/dev/sda2 1000 1000 0 100% /\n/dev/sdb1 1000 860 140 86% /data"
    assert judged("disk", {**DISK, "inodes@1": inodes})[:2] == [
        "fail inodes: / inodes 100 % used, should be below 95 %: 0 free of 1000",
        "warn inodes: /data inodes 86 % used, should be below 85 %: 140 free of 1000",
    ]
    none = f"{INODES}\n/dev/sda2 0 0 0 - /\n/dev/sdb1 0 0 0 - /data"
    assert judged("disk", {**DISK, "inodes@1": none})[0] == USED


def test_boot_is_needed_by_nobody_now() -> None:
    told = {
        **DISK,
        "asked@1": "ext4 /dev/sda1 /boot",
        "space@1": f"{HEADER}\n/dev/sda1 9 9 0 - /boot",
    }
    space = f"{HEADER}\n/dev/sda1 9 9 0 100% /boot"
    inodes = f"{INODES}\n/dev/sda1 9 1 8 11% /boot"
    assert judged("disk", {**told, "space@1": space, "inodes@1": inodes})[0] == (
        "warn space: /boot 100 % full, should be below 85 %: 0 KiB free of 9 KiB"
    )


def test_what_may_be_full() -> None:
    full = {**DISK, "space@1": DISK["space@1"].replace("488381292 488381292", "976762584 0")}
    assert judged("disk", full)[0].startswith("fail space: /data 100 %")
    assert judged("disk", full, ignore=("/data",))[0] == "pass space: used: / 35.5 %"


def test_df_that_does_not_answer_or_says_nothing() -> None:
    assert judged("disk", {**DISK, "space@1": "hung"})[0] == (
        "unknown space: df gave no answer within 4 s for /, /data"
    )
    assert judged("disk", {**DISK, "hung@space@1": "yes"})[0].startswith(
        "unknown space: df gave no"
    )
    assert judged("disk", {**DISK, "space@1": "df: unrecognized option: P"})[:2] == [
        "unknown space: /: df does not say how full it is",
        "unknown space: /data: df does not say how full it is",
    ]


@pytest.mark.parametrize(
    ("file", "paths", "expected"),
    [
        ("tmp/df-plain.txt", ("/", "/tmp", "/home"), [
            "fail space: /tmp 95 % full, should be below 95 %: 89.4 GiB free of 1.75 TiB",
            "pass space: used: /home 72.5 %, / 35.5 %",
        ]),
        ("tmp/df-long-names.txt", ("/lustre", "/var/lib/containers"), [
            "fail space: /var/lib/containers 100 % full, should be below 95 %: 0 KiB free of 932"
            " GiB",
            "pass space: used: /lustre 5.5 %",
        ]),
        ("tmp/df-wrapped.txt", ("/", "/home"), ["pass space: used: /home 72.5 %, / 20 %"]),
        ("tmp/df-dashes.txt", ("/data/auto", "/mnt/dead"), [
            "unknown space: /mnt/dead: df does not say how full it is",
        ]),
        ("tmp/df-chinese.txt", ("/dev", "/mnt/with space"), [
            "pass space: used: /mnt/with space 0 %, /dev 0 %",
        ]),
        ("disk/df-stale.txt", ("/data", "/"), [
            "fail broken: /data cannot be used: Stale file handle",
            "pass space: used: / 35.5 %",
        ]),
    ],
)  # fmt: skip
def test_samples_of_df(file: str, paths: tuple[str, ...], expected: list[str]) -> None:
    lines = "\n".join(f"ext4 x {path.replace(' ', chr(92) + '040')}" for path in paths)
    inodes = "\n".join([INODES, *(f"x 9 1 8 11% {path}" for path in paths)])
    told = {**DISK, "asked@1": lines, "space@1": sample(file), "inodes@1": inodes}
    assert [said for said in judged("disk", told) if said not in (MISSING, QUIET)] == expected


def test_case_a_long_device_on_two_lines(node: MadeUpNode, shell: str) -> None:
    long = "/dev/mapper/vg_compute_very_long_name-lv_local_scratch"
    mounted(node, f"/scratch xfs {long} rw", "/boot ext4 /dev/sda1 rw", "/ ext4 /dev/sda2 rw")
    space = (
        "Filesystem           1K-blocks      Used Available Use% Mounted on\n"
        f"{long}\n                     1048576000 1006632960  41943040  96% /scratch\n"
        "/dev/sda1               521792     81540    440252  16% /boot\n"
    )
    df_says(node, space, f"{INODES}\n{long}\n     65536000 812345 64723655  2% /scratch\n"
            "/dev/sda1 65536 400 65136 1% /boot\n")  # fmt: skip
    assert judged("disk", node.probe("disk", shell=shell)) == [
        "fail space: /scratch 96 % full, should be below 95 %: 40 GiB free of 1000 GiB",
        "pass space: used: /boot 15.6 %",
        QUIET,
    ]
    assert asked(node) == "/scratch /boot"


@pytest.mark.parametrize(
    ("device", "place", "used", "free"),
    [
        ("/dev/mapper/rhel_node04--with--a--long--name-var", "/var", 50331648, 524288),
        ("10.30.0.6@tcp:10.30.0.7@tcp:/lustre-very-long-filesystem-name", "/lustre", 990, 10),
    ],
)
def test_case_more_long_devices(
    node: MadeUpNode, device: str, place: str, used: int, free: int
) -> None:
    """Where the site names it, whatever kind it is."""
    row = f"{device}\n      {used + free} {used} {free} 99% {place}\n"
    df_says(node, f"{HEADER}\n{row}", f"{INODES}\n{device}\n   100  1  99  1% {place}\n")
    said = judged("disk", node.probe("disk", paths=(place,)), paths=(place,))
    assert re.match(rf"fail space: {place} (98\.9|99) % full, should be below 95 %", said[0])


def test_case_places_with_blanks_and_signs_that_df_does_not_show(
    node: MadeUpNode, shell: str
) -> None:
    mounted(
        node,
        "/data/run\\0403 xfs /dev/sdb1 rw",
        "/data/a\\011b ext4 /dev/sdc1 rw",
        "/data/back\\134040slash ext4 /dev/sdd1 rw",
    )
    rows = (
        "/dev/sdb1         10485760  1048576   9437184      10% /data/run 3\n"
        "/dev/sdc1         10485760  9961472    524288      95% /data/a?b\n"
        "/dev/sdd1         10485760  5242880   5242880      50% /data/back\\040slash\n"
    )
    df_says(node, f"{HEADER}\n{rows}", f"{INODES}\n{rows.replace(' 95%', ' 5%')}")
    told = node.probe("disk", shell=shell)
    assert judged("disk", told)[0].startswith("fail space: /data/a\tb 95 % full")
    assert "pass space: used: /data/back\\040slash 50 %, /data/run 3 10 %" in judged("disk", told)
    assert asked(node) == "/data/run 3/. /data/a\tb/. /data/back\\040slash/.".replace("/.", "")
    # the site's policy is on one of them
    policy: dict[str, Any] = {"paths": ("/data/run 3",), "fail_percent": 90}
    df_says(node, f"{HEADER}\n{rows.splitlines()[0]}\n")
    told = node.probe("disk", shell=shell, **policy)
    assert judged("disk", told, **policy)[0] == "pass space: used: /data/run 3 10 %"


# ---------------------------------------------------------------- which file systems


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        (["/ ext4 /dev/sda2 rw", "/var xfs /dev/sda3 rw"], "/var"),
        (["/ ext4 /dev/sda2 rw", "/tmp tmpfs tmpfs rw", "/var xfs /dev/sda3 rw"], "/ /var"),
        (["/ overlay overlay rw,lowerdir=/x", "/tmp xfs /dev/sdb1 rw"], "/"),
        (["/ nfs4 nas1:/root rw", "/tmp tmpfs tmpfs rw", "/home nfs nas1:/home rw"], ""),
        (["/tmp tmpfs none rw", "/boot ext4 /dev/sda1 rw", "/boot/efi vfat /dev/sda2 rw"], "/boot"),
        (
            ["/tmp tmpfs none rw", "/snap/core/1 squashfs /dev/loop0 ro", "/m iso9660 /dev/sr0 ro"],
            "",
        ),
        (["/tmp tmpfs none rw", "/img ext4 /dev/loop1 ro", "/sw xfs /dev/sdb1 ro"], ""),
        (["/tmp tmpfs none rw", "/run tmpfs tmpfs rw", "/dev/shm tmpfs tmpfs rw"], "/run /dev/shm"),
        (["/tmp tmpfs none rw", "/run/user/7 tmpfs tmpfs rw", "/sys/fs/c tmpfs tmpfs rw"], ""),
        (["/tmp tmpfs none rw", "/var/lib/docker/overlay2/a/merged overlay overlay rw"], ""),
        (["/tmp tmpfs none rw", "/tank zfs tank rw", "/tank/a zfs tank/a rw"], "/tank"),
        (["/tmp tmpfs none rw", "/lustre lustre a@tcp:/fs rw", "/gpfs gpfs g rw"], ""),
    ],
)
def test_local_file_systems_but_for_that_of_tmp(
    node: MadeUpNode, mounts: list[str], expected: str
) -> None:
    mounted(node, *mounts)
    df_says(node, HEADER)
    node.probe("disk")
    assert asked(node) == expected


def test_tmp_may_be_a_link(node: MadeUpNode, shell: str) -> None:
    mounted(node, "/ ext4 /dev/sda2 rw", "/var xfs /dev/sda3 rw")
    node.file("/var/tmp/.keep")
    (node.root / "tmp").symlink_to("var/tmp")
    df_says(node, HEADER)
    node.probe("disk", shell=shell)
    assert asked(node) == "/"


def test_a_directory_that_hangs_holds_up_nothing(node: MadeUpNode, shell: str) -> None:
    node.command("df", 'case "$*" in *gone*) sleep 30 ;; esac; exec /usr/bin/df "$@"')
    node.file("/here/.keep")
    told = node.probe("disk", shell=shell, paths=("/here", "/gone"))
    said = judged("disk", told, paths=("/here", "/gone"), warn_percent=100, fail_percent=100)
    assert said[0] == "unknown space: df gave no answer within 4 s for /gone"
    assert said[1].startswith("pass space: used: /here ")


# ---------------------------------------------------------------- quota


ROWS = "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        ("0", "     /dev/sda2    512000  800000 1000000       0      10       0       0       0",
         ["pass quota: the login user's quota on /dev/sda2: 500 MiB of 977 MiB"]),
        ("1", "nas1:/home   900000* 800000 1000000 1730000000      10       0       0       0",
         ["warn quota: the login user's quota on nas1:/home is exceeded, for a time: 879 MiB of"
          " 977 MiB"]),
        ("1", "      /dev/sdb1  1000000* 800000 1000000 1730000000   500*  400 500 1730000000",
         ["fail quota: the login user's quota on /dev/sdb1 is used up: 977 MiB of 977 MiB",
          "fail quota: the login user's quota on /dev/sdb1 is used up: 500 files of 500"]),
        ("0", "none", ["skip quota: no quota is set for the login user"]),
        ("missing", "", ["unknown quota: quota(1) is not installed, and needed to tell"]),
        ("124", "", ["unknown quota: quota(1) gave no answer within 6 s"]),
        ("0", "quelque chose", ["unknown quota: what quota(1) says cannot be read"]),
    ],
)  # fmt: skip
def test_quota_of_the_login_user(status: str, said: str, expected: list[str]) -> None:
    head = "Disk quotas for user ops (uid 1000): "
    text = head + said if said == "none" else f"{head}\n{ROWS}{said}"
    told = {**DISK, "quota_status": status, "quota": text}
    found = judged("disk", told, quota=True)
    assert [one for one in found if " quota: " in one] == expected


def test_quota_is_asked_for_only_where_the_site_wants_it(node: MadeUpNode, shell: str) -> None:
    node.says("quota", f"Disk quotas for user ops (uid 1000):\n{ROWS} /dev/a 1 2 3 0 1 0 0 0\n")
    assert "quota" not in node.probe("disk", shell=shell)
    assert node.probe("disk", shell=shell, quota=True)["quota_status"] == "0"
    node.command("quota", "sleep 30")
    told = node.probe("disk", shell=shell, quota=True)
    assert "unknown quota: quota(1) gave no answer within 6 s" in judged("disk", told, quota=True)


# ---------------------------------------------------------------- SMART


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("[90100.5] blk_update_request: I/O error, dev sdb, sector 2048",
         "warn log: sdb gave errors once in the last 24 h by the kernel's log: blk_update_request: "
         "I/O error, dev sdb, sector 2048"),
        ("[90100.5] I/O error, dev nvme0n1, sector 8 op 0x1:(WRITE)\n[90101.5] Buffer I/O error on "
         "dev nvme0n1p2, logical block 1, lost async page write", "warn log: nvme0n1 gave errors 2 "
         "times in the last 24 h by the kernel's log: Buffer I/O error on dev nvme0n1p2, logical "
         "block 1, lost async page write"),
        ("<3>[90100.5] critical medium error, dev sdc, sector 9", "warn log: sdc gave errors once "
         "in the last 24 h by the kernel's log: critical medium error, dev sdc, sector 9"),
        ("[90100.5] nvme nvme1: I/O 12 QID 3 timeout, aborting", "warn log: nvme1 gave errors once "
         "in the last 24 h by the kernel's log: nvme nvme1: I/O 12 QID 3 timeout, aborting"),
        ("[90100.5] XFS (sdb1): metadata I/O error in \"xfs_read\" at daddr 0x2", "warn log: sdb "
         "gave errors once in the last 24 h by the kernel's log: XFS (sdb1): metadata I/O error in "
         "\"xfs_read\" at daddr 0x2"),
        ("[12.5] I/O error, dev sdb, sector 1", QUIET),
        ("[90100.5] blk_update_request: I/O error, dev fd0, sector 0", QUIET),
        ("[90100.5] I/O error, dev loop3, sector 0\n[90100.6] I/O error, dev sr0, sector 0", QUIET),
    ],
)  # fmt: skip
def test_errors_in_the_kernels_log(node: MadeUpNode, lines: str, expected: str) -> None:
    node.says("dmesg", f"[1.0] Linux version\n{lines}\n")
    told = node.probe("disk", log_hours=24)
    told["uptime"] = "100000.00"
    assert judged("disk", {**DISK, **told})[-1] == expected


def test_a_log_that_cannot_be_read(node: MadeUpNode, shell: str) -> None:
    node.hide("journalctl")
    node.says("dmesg", "", "dmesg: read kernel buffer failed: Operation not permitted\n", 1)
    told = node.probe("disk", shell=shell)
    assert judged("disk", {**told, "log_from": "refused"}) == judged("disk", told, log_hours=0)
    assert judged("disk", {**told, "log_from": "dmesg"})[-1] == (
        "unknown log: the kernel's log cannot be read (exit status 1)"
    )
    node.says("dmesg")
    assert judged("disk", node.probe("disk", shell=shell))[-1] == (
        "unknown log: the kernel's log is empty, should begin with the boot"
    )
    node.says("dmesg", "[86600.1] a line\n[90000.1] another\n")
    assert judged("disk", node.probe("disk", shell=shell))[-1] == (
        "pass log: no errors of disks in the last 1.0 h (the log goes no further back) by the"
        " kernel's log"
    )
    assert "log_from" not in node.probe("disk", shell=shell, log_hours=0)


def test_disks_that_the_kernel_gave_up() -> None:
    told = {**DISK, "states": "sda running\nsdb offline\nnvme0n1 dead\nnvme1n1 resetting"}
    assert judged("disk", told)[1:3] == [
        "fail state: given up by the kernel: sdb (offline), nvme0n1 (dead)",
        "warn state: not ready, by the kernel: nvme1n1 (resetting)",
    ]


def test_arrays(node: MadeUpNode, shell: str) -> None:
    indented = re.sub(r"(?m)^([0-9\[])", r"      \1", MDSTAT)
    node.file("/proc/mdstat", indented + "\n")
    assert judged("disk", node.probe("disk", shell=shell))[:2] == [
        "warn array: md1 has 2 of 3 members; failed: sdc1; recovery at 12.6%",
        "pass array: RAID with all its members: md0",
    ]
    node.file("/proc/mdstat", "Personalities :\nmd127 : inactive sdb[1](S)\n      9 blocks\n")
    assert judged("disk", node.probe("disk", shell=shell))[0] == (
        "fail array: md127 is inactive, should be active"
    )
    node.file("/proc/mdstat", "Personalities : [raid1]\nunused devices: <none>\n")
    assert judged("disk", node.probe("disk", shell=shell)) == [QUIET]


# ---------------------------------------------------------------- all together


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"warn_percent": 96}, "warn_percent (96 %) is above fail_percent (95 %)"),
        ({"paths": ("data",)}, "'data' in paths must begin with /"),
    ],
)
def test_options_that_cannot_be(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        options_of("disk", **changed)


def test_this_machine(shell: str) -> None:
    at = os.path.realpath(os.getcwd())
    told = facts_here("disk", shell, paths=(at,))
    said = judged("disk", told, paths=(at,), warn_percent=100, fail_percent=100)
    assert said[0].startswith(f"pass space: used: {at} ")
    nowhere = judged("disk", facts_here("disk", shell, paths=("/nowhere",)), paths=("/nowhere",))
    assert nowhere[0] == "fail missing: /nowhere is not there"


def test_a_place_that_is_not_there_as_df_of_busybox_says_it() -> None:
    told = {**DISK, "space@1": "df: /data: can't find mount point", "inodes@1": ""}
    told["asked@1"] = "- - /data"
    assert judged("disk", told)[0] == "fail missing: /data is not there"


def test_a_node_with_every_fault() -> None:
    assert [said.split(":")[0] for said in judged("disk", DISK_FULL, quota=True)] == [
        "fail space",
        "pass space",
        "warn quota",
        "fail state",
        "warn wear",
        "unknown smart",
        "pass smart",
        "warn array",
        "pass array",
        "warn log",
        "warn log",
    ]
