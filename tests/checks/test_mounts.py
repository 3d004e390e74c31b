"""The check mounts: what is judged, and what the probe sees on made-up nodes and on this one."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from clustercheck.check import Facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.storage_facts import LUSTRE, MOUNTS, MOUNTS_FULL, ROOT
from tests.this_machine import SHELLS, facts_here

DATA = Path(__file__).resolve().parent.parent / "data"
THERE = "pass there: mounted as wanted: /"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def node(tmp_path: Path) -> MadeUpNode:
    node = MadeUpNode(tmp_path)
    node.says("dmesg")
    mounted(node, ROOT)
    return node


def line(target: str, *, kind: str = "ext4", source: str = "/dev/sdb1", number: int = 40,
         own: str = "rw,relatime", whole: str = "rw") -> str:  # fmt: skip
    """A line of mountinfo."""
    return f"{number} 27 8:{number} / {target} {own} shared:9 - {kind} {source} {whole}"


def mounted(node: MadeUpNode, *lines: str) -> None:
    """Set what is mounted, and make its directories."""
    node.file("/proc/self/mountinfo", "\n".join(lines) + "\n")
    for one in lines:
        target = one.split(" ")[4].replace("\\040", " ").replace("\\011", "\t")
        place = node.root / target.replace("\\134", "\\").lstrip("/")
        place.mkdir(parents=True, exist_ok=True)


def from_proc_mounts(text: str) -> list[str]:
    """Lines of /proc/mounts as those of mountinfo, which has the same and more."""
    rows = [one.split(" ") for one in text.splitlines() if one.strip()]
    return [
        line(target, kind=kind, source=source, number=40 + at, own=flags.split(",")[0], whole=flags)
        for at, (source, target, kind, flags, *_) in enumerate(rows)
    ]


def found(node: MadeUpNode, shell: str = "sh", **changed: Any) -> list[str]:
    told = node.probe("mounts", shell=shell, **{k: v for k, v in changed.items() if k == "want"})
    return judged("mounts", told, **changed)


# ---------------------------------------------------------------- what should be there


def test_a_sound_node(node: MadeUpNode, shell: str) -> None:
    node.file("/etc/fstab", "# made by the installer\n/dev/sda2 / ext4 defaults 0 1\n")
    assert found(node, shell) == [THERE]


def test_nothing_wanted_is_left_out(node: MadeUpNode) -> None:
    assert found(node) == ["skip none: no mount is wanted, and none is at fault"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("/dev/sdb1 /local ext4 defaults 0 2", "fail absent: /local is not mounted (from /dev/sdb1)"
         ", should be"),
        ("/dev/sdb1 /local/ ext4 defaults 0 2", "fail absent: /local is not mounted (from "
         "/dev/sdb1), should be"),
        ("/dev/sdb1 /local ext4", "fail absent: /local is not mounted (from /dev/sdb1), should be"),
        ("/srv/a /local none bind", "fail absent: /local is not mounted (from /srv/a), should be"),
        ("10.30.0.6@tcp:/fs /lustre lustre _netdev", "fail absent: /lustre is not mounted (from "
         "10.30.0.6@tcp:/fs), should be"),
        ("/dev/sdb1 /local ext4 nofail,noatime", "warn absent: /local is not mounted (from "
         "/dev/sdb1), should be"),
        ("UUID=AB-12 /boot/efi vfat umask=0077 0 1", "warn absent: /boot/efi is not mounted (from "
         "UUID=AB-12), should be"),
        ("/dev/sdb1 /local ext4 noauto,user", ""),
        ("/dev/sdb1 /mnt auto defaults,nofail,comment=cloudconfig", ""),
        ("/dev/sdb1 none swap sw", ""),
        ("/dev/sdb1 swap swap sw", ""),
        ("#/dev/sdb1 /local ext4 defaults", ""),
        ("nas1:/export /home nfs4 _netdev", ""),
    ],
)  # fmt: skip
def test_mounts_of_fstab(node: MadeUpNode, entry: str, expected: str) -> None:
    node.file("/etc/fstab", f"/dev/sda2\t/   ext4\tdefaults\n{entry}\n")
    assert found(node) == [*filter(None, [expected]), THERE]


def test_fstab_says_nothing_in_a_container_nor_where_the_site_says_so(node: MadeUpNode) -> None:
    node.file("/etc/fstab", "/dev/sdb1 /local ext4 defaults\n")
    assert found(node, require_fstab=False)[0].startswith("skip none")
    node.file("/run/.containerenv")
    assert found(node)[0].startswith("skip none")


def test_fstab_that_may_not_be_read() -> None:
    told = {**MOUNTS, "fstab": "unreadable", "entries": ""}
    assert judged("mounts", told) == [
        "unknown fstab: /etc/fstab cannot be read, so what should be mounted is not known"
    ]


def test_wanted_mounts_are_exact_places(node: MadeUpNode, shell: str) -> None:
    mounted(node, ROOT, line("/data2", number=41), line("/scratch", number=42))
    assert found(node, shell, want=("/data", "/scratch/", "/")) == [
        "fail absent: /data is not mounted, should be",
        "pass there: mounted as wanted: /scratch, /",
    ]


def test_a_wanted_place_may_be_a_link(node: MadeUpNode, shell: str) -> None:
    mounted(node, ROOT, line("/export/scratch"))
    (node.root / "scratch").symlink_to("export/scratch")
    assert found(node, shell, want=("/scratch",)) == ["pass there: mounted as wanted: /scratch"]


def test_an_automounter_alone_is_no_mount(node: MadeUpNode, shell: str) -> None:
    waits = line("/apps", kind="autofs", source="systemd-1")
    mounted(node, ROOT, waits)
    assert found(node, shell, want=("/apps",)) == [
        "fail absent: /apps is not mounted, should be; an automounter waits there, and mounted "
        "nothing"
    ]
    mounted(node, ROOT, waits, line("/apps", kind="nfs4", source="nas1:/apps", number=41))
    assert found(node, shell, want=("/apps",)) == ["pass there: mounted as wanted: /apps"]


def test_an_automounter_that_fstab_wants(node: MadeUpNode, shell: str) -> None:
    node.file("/etc/fstab", "nas1:/apps /apps nfs4 noauto,x-systemd.automount 0 0\n")
    assert found(node, shell)[0].startswith("skip none"), "no systemd runs there"
    (node.root / "run/systemd/system").mkdir(parents=True)
    assert found(node, shell) == [
        "warn automount: /apps (from nas1:/apps) should be mounted on demand by /etc/fstab, and no "
        "automounter waits there"
    ]
    mounted(node, ROOT, line("/apps", kind="autofs", source="systemd-1"))
    assert found(node, shell)[0].startswith("skip none")


def test_why_a_mount_is_absent(node: MadeUpNode, shell: str) -> None:
    node.file("/etc/fstab", 'UUID="0d3c-11" /local xfs defaults\n/dev/sdb1 /opt ext4 defaults\n')
    node.file("/dev/disk/by-uuid/77-88")
    node.file("/dev/sdb1")
    (node.root / "run/systemd/system").mkdir(parents=True)
    node.command("systemd-escape", 'printf "%s\\n" "${3#/}.mount"')
    node.command(
        "journalctl",
        'case "$*" in *opt.mount*) echo "Mounting /opt..."; '
        'echo "mount: /opt: wrong fs type, bad option, bad superblock on /dev/sdb1."; '
        'echo "opt.mount: Mount process exited, code=exited, status=32/n/a" ;; '
        '*) echo "Dependency failed for local.mount - /local." ;; esac',
    )
    assert found(node, shell) == [
        'fail absent: /local is not mounted (from UUID="0d3c-11"), should be; no such device is '
        "there; the journal: Dependency failed for local.mount - /local.",
        "fail absent: /opt is not mounted (from /dev/sdb1), should be; the journal: mount: /opt: "
        "wrong fs type, bad option, bad superblock on /dev/sdb1.",
    ]


# ---------------------------------------------------------------- cases


def test_case_mount_points_with_blanks_tabs_and_backslashes(node: MadeUpNode, shell: str) -> None:
    proc_mounts = (
        "/dev/sdb1 /data/run\\0403 xfs rw,relatime,attr2,inode64,noquota 0 0\n"
        "/dev/sdc1 /data/a\\011b ext4 rw,relatime 0 0\n"
        "/dev/sdd1 /data/back\\134040slash ext4 rw,relatime 0 0\n"
    )
    mounted(node, *from_proc_mounts(proc_mounts))
    wanted = ("/data/run 3", "/data/a\tb", "/data/back\\040slash")
    assert found(node, shell, want=wanted) == [
        f"pass there: mounted as wanted: {', '.join(wanted)}"
    ]
    assert found(node, shell, want=("/data/run", "/data/back slash")) == [
        "fail absent: /data/run is not mounted, should be",
        "fail absent: /data/back slash is not mounted, should be",
    ]
    assert found(node, shell, want=("/data/back\\134040slash",))[0].startswith("fail absent")


def test_case_the_same_in_fstab(node: MadeUpNode, shell: str) -> None:
    node.file("/etc/fstab", "/dev/sdb1 /data/set\\0401/ xfs defaults\n/dev/sdc1 /d/50%\\134 xfs\n")
    mounted(node, ROOT, line("/data/set\\0401"))
    assert found(node, shell) == [
        "fail absent: /d/50%\\ is not mounted (from /dev/sdc1), should be",
        "pass there: mounted as wanted: /data/set 1",
    ]


def test_case_a_place_that_begins_another(node: MadeUpNode, shell: str) -> None:
    proc_mounts = (
        "/dev/sda2 / ext4 rw,relatime 0 0\n"
        "192.0.2.40:/data2 /data2 nfs4 rw,relatime,vers=4.1,hard,addr=192.0.2.40 0 0\n"
        "192.0.2.40:/img /srv/img nfs4 ro,relatime,vers=4.1,hard,addr=192.0.2.40 0 0\n"
    )
    fstab = (
        "192.0.2.40:/data  /data     nfs4 defaults,_netdev 0 0\n"
        "192.0.2.40:/img   /srv/img/ nfs4 ro,_netdev 0 0\n"
        "/dev/sda2 / ext4 defaults 0 1\n"
    )
    mounted(node, *from_proc_mounts(proc_mounts))
    node.file("/etc/fstab", fstab)
    assert found(node, shell) == [THERE], "NFS of fstab is told by the check nfs"
    assert found(node, shell, want=("/data", "/srv/img")) == [
        "fail absent: /data is not mounted (from 192.0.2.40:/data), should be",
        "pass there: mounted as wanted: /srv/img, /",
    ]


@pytest.mark.parametrize(
    ("place", "other"), [("/scratch", "/scratch-old"), ("/", "/home"), ("/opt/sw", "/opt")]
)
def test_case_more_of_that_kind(node: MadeUpNode, place: str, other: str) -> None:
    mounted(node, line(other))
    assert found(node, want=(place,)) == [f"fail absent: {place} is not mounted, should be"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nfs01.cluster.example:/export/apps", "mount.nfs4: Failed to resolve server"
         " nfs01.cluster.example: Name or service not known"),
        ("nas7:/sw", "mount.nfs: access denied by server while mounting nas7:/sw"),
        ("mgs2@tcp:/fs3", "mount.lustre: mount mgs2@tcp:/fs3 at /apps failed: Input/output error"),
    ],
)  # fmt: skip
def test_case_why_a_wanted_mount_is_absent(
    node: MadeUpNode, source: str, said: str, shell: str
) -> None:
    kind = "lustre" if "@" in source else "nfs4"
    node.file("/etc/fstab", f"{source} /apps {kind} ro,_netdev 0 0\n")
    (node.root / "run/systemd/system").mkdir(parents=True)
    node.says("systemd-escape", "apps.mount\n")
    node.says("journalctl", f"Mounting apps.mount - /apps...\n{said}\nFailed to mount /apps.\n")
    assert found(node, shell, want=("/apps",)) == [
        f"fail absent: /apps is not mounted (from {source}), should be; the journal: {said}"
    ]


# ---------------------------------------------------------------- dead and read-only


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", "pass answers: /lustre answers"),
        ("Transport endpoint is not connected", "fail dead: /lustre (lustre on 10.30.0.6@tcp:/fs) "
         "is mounted, and the program that serves it has ended (Transport endpoint is not "
         "connected)"),
        ("Cannot send after transport endpoint shutdown", "fail dead: /lustre (lustre on "
         "10.30.0.6@tcp:/fs) was cut off by its server (Cannot send after transport endpoint "
         "shutdown)"),
        ("Stale file handle", "fail dead: /lustre (lustre on 10.30.0.6@tcp:/fs) is stale (Stale "
         "file handle)"),
        ("Communication error on send", "fail broken: /lustre (lustre on 10.30.0.6@tcp:/fs) cannot "
         "be used: Communication error on send"),
        ("Permission denied", "unknown closed: /lustre (lustre on 10.30.0.6@tcp:/fs) cannot be "
         "looked at: Permission denied"),
    ],
)  # fmt: skip
def test_a_cluster_file_system(node: MadeUpNode, said: str, expected: str) -> None:
    mounted(node, ROOT, LUSTRE)
    text = f"stat: cannot read file system information for '/lustre': {said}"
    shim = f'case "$*" in *lustre*) echo "{text}" >&2; exit 1 ;; esac; exec /usr/bin/stat "$@"'
    if said:
        node.command("stat", shim)
    assert found(node)[0] == expected


def test_a_cluster_file_system_that_hangs_holds_up_nothing(node: MadeUpNode, shell: str) -> None:
    node.file("/etc/fstab", "/dev/sda2 / ext4 defaults\n")
    mounted(node, ROOT, LUSTRE)
    node.command("stat", 'case "$*" in *lustre*) sleep 30 ;; esac; exec /usr/bin/stat "$@"')
    assert found(node, shell) == [
        "fail hung: /lustre (lustre on 10.30.0.6@tcp:/fs) gives no answer within 4 s, and hangs "
        "whoever touches it",
        THERE,
    ]


def test_nfs_and_automounters_are_not_touched(node: MadeUpNode) -> None:
    mounts = [ROOT, line("/home", kind="nfs4"), line("/misc", kind="autofs", number=41)]
    mounted(node, *mounts)
    node.command("stat", 'case "$*" in *home*|*misc*) sleep 30 ;; esac; exec /usr/bin/stat "$@"')
    assert found(node) == ["skip none: no mount is wanted, and none is at fault"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Transport endpoint is not connected", ["warn dead: /home/a/m (fuse.sshfs on a@b:) is "
         "mounted, and the program that serves it has ended (Transport endpoint is not "
         "connected)"]),
        ("Permission denied", ["skip none: no mount is wanted, and none is at fault"]),
    ],
)  # fmt: skip
def test_what_a_user_has_mounted_for_himself(state: str, expected: list[str]) -> None:
    own = line("/home/a/m", kind="fuse.sshfs", source="a@b:", whole="rw,user_id=1000,group_id=100")
    told = {**MOUNTS, "entries": "", "mounts": own, "touched": "1", "touched@1": "/home/a/m"}
    assert judged("mounts", {**told, "state@1": state}) == expected


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        (line("/local", whole="ro,errors=remount-ro"), "fail read_only: /local (ext4 on /dev/sdb1) "
         "was made read-only by the kernel after an error; the kernel's log: [12.5] EXT4-fs error "
         "(device sdb1): bad block bitmap; [12.6] EXT4-fs (sdb1): Remounting filesystem read-only"),
        (line("/local", whole="rw,emergency_ro"), "fail read_only: /local (ext4 on /dev/sdb1) "
         "was made read-only by the kernel after an error; the kernel's log: [12.5] EXT4-fs error "
         "(device sdb1): bad block bitmap; [12.6] EXT4-fs (sdb1): Remounting filesystem read-only"),
        (line("/local", own="ro,relatime", whole="ro"), "fail read_only: /local (ext4 on /dev/sdb1)"
         " was made read-only by the kernel after an error; the kernel's log: [12.5] EXT4-fs error "
         "(device sdb1): bad block bitmap; [12.6] EXT4-fs (sdb1): Remounting filesystem read-only"),
        (line("/local", own="ro", whole="ro", source="/dev/sdd1"), "fail read_only: /local (ext4 on"
         " /dev/sdd1) is read-only, and /etc/fstab does not say so"),
        (line("/local", kind="xfs", whole="rw,attr2"), ""),
        (line("/local", kind="squashfs", own="ro", whole="ro"), ""),
    ],
)  # fmt: skip
def test_what_became_read_only(node: MadeUpNode, mount: str, expected: str, shell: str) -> None:
    node.file("/etc/fstab", "/dev/sdb1 /local ext4 defaults\n")
    node.says(
        "dmesg",
        "[11.0] EXT4-fs error (device sdb12): another\n"
        "[12.5] EXT4-fs error (device sdb1): bad block bitmap\n"
        "[12.6] EXT4-fs (sdb1): Remounting filesystem read-only\n",
    )
    mounted(node, ROOT, mount)
    there = "pass there: mounted as wanted: /local"
    assert found(node, shell) == [*filter(None, [expected]), there]


def test_read_only_by_the_kernel_needs_no_fstab(node: MadeUpNode, shell: str) -> None:
    node.says("dmesg", "[9.5] BTRFS info (device dm-3: state E): forced readonly\n")
    root = "27 1 253:3 / / ro,relatime shared:1 - btrfs /dev/mapper/vg-root ro,space_cache=v2"
    mounted(node, root)
    assert found(node, shell) == [
        "fail read_only: / (btrfs on /dev/mapper/vg-root) was made read-only by the kernel after an"
        " error; the kernel's log: [9.5] BTRFS info (device dm-3: state E): forced readonly"
    ]
    node.says("dmesg", "[9.5] BTRFS info (device dm-30: state E): forced readonly\n")
    assert found(node, shell) == ["skip none: no mount is wanted, and none is at fault"]


def test_read_only_on_purpose(node: MadeUpNode) -> None:
    mounted(node, ROOT, line("/local", own="ro", whole="ro"), line("/b", own="ro", number=41))
    node.file("/etc/fstab", "/dev/sdb1 /local ext4 ro,noatime\n")
    assert found(node) == ["pass there: mounted as wanted: /local"]
    node.file("/etc/fstab", "/dev/sdb1 /local ext4 defaults\n")
    assert found(node, read_only=("/local/",)) == ["pass there: mounted as wanted: /local"]


def test_a_file_system_that_the_kernel_shut_down(node: MadeUpNode, shell: str) -> None:
    mounted(node, ROOT, line("/local", kind="xfs"))
    node.command(
        "stat", "for last; do :; done; echo \"stat: cannot statx '$last': Input/output error\" >&2;"
        " exit 1",
    )  # fmt: skip
    assert found(node, shell) == [
        "fail read_only: /local (xfs on /dev/sdb1) was shut down by the kernel after an error "
        "(Input/output error)"
    ]


def test_mounted_over_itself() -> None:
    other = line("/data", number=41)
    told = {**MOUNTS, "mounts": "\n".join([ROOT, line("/data"), other, other, other, line("/b")])}
    assert judged("mounts", told) == [
        "warn twice: /data (ext4 on /dev/sdb1) is mounted 3 times over itself",
        THERE,
    ]


# ---------------------------------------------------------------- policy


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("/scratch noatime nosuid", "warn options: /scratch is mounted without nosuid, should be "
         "noatime nosuid"),
        ("/scratch proto=tcp rw", ""),
        ("/scratch ro", "warn options: /scratch is mounted without ro, should be ro"),
        ("/scratch !soft !ro", ""),
        ("/scratch !noatime hard", "warn options: /scratch is mounted with noatime, should be "
         "without noatime hard"),
        ("/scratch exec suid", ""),
        ("/scratch/ proto=tc", "warn options: /scratch is mounted without proto=tc, should be "
         "proto=tc"),
        ("/sw rw", "fail options: /sw is mounted without rw, should be rw"),
        ("/absent ro", ""),
    ],
)  # fmt: skip
def test_options_are_whole_words(policy: str, expected: str) -> None:
    flags = "rw,noatime,vers=3,hard,proto=tcp,addr=192.0.2.41"
    mounts = [ROOT, line("/scratch", kind="nfs", own="rw,noatime", whole=flags)]
    mounts.append(line("/sw", kind="nfs4", own="ro", whole="ro,proto=tcp", number=41))
    told = {**MOUNTS, "mounts": "\n".join(mounts)}
    assert judged("mounts", told, options=(policy,)) == [*filter(None, [expected]), THERE]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"want": ("scratch",)}, "'scratch' in want must begin with /"),
        ({"options": ("noatime",)}, "'noatime' in options must begin with a mount point"),
        ({"options": ("/scratch",)}, "'/scratch' in options names no mount option"),
    ],
)
def test_options_that_cannot_be(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        options_of("mounts", **changed)


# ---------------------------------------------------------------- between nodes


def compared(mounts: dict[str, str], entries: str = "", **changed: Any) -> list[tuple[str, str]]:
    """What shows between nodes with these mounts; the entries are those of node04's fstab."""
    told = {
        node: Facts({**MOUNTS, "mounts": f"{ROOT}\n{text}", "entries": ""})
        for node, text in mounts.items()
    }
    told["node04"]["entries"] = entries
    options = {node: options_of("mounts") for node in told}
    options["node04"] = options_of("mounts", **changed)
    compare = CHECKS["mounts"].compare
    assert compare
    return [(n, f"{f.status.value} {f.code}: {f.message}") for n, f in compare(told, options)]


THREE = dict.fromkeys(("node01", "node02", "node03"), LUSTRE)


def test_a_node_without_what_the_others_have() -> None:
    assert compared({**THREE, "node04": ""}) == [
        ("node04", "warn differs: /lustre (10.30.0.6@tcp:/fs) is not mounted, 3 of 4 have it")
    ]
    assert compared({**THREE, "node04": ""}, compare=False) == []
    assert compared({**THREE, "node04": ""}, want=("/lustre",)) == []
    assert compared({**THREE, "node04": ""}, entries="x /lustre lustre defaults") == []
    waits = line("/lustre", kind="autofs")
    assert compared({**THREE, "node04": waits}) == []
    assert compared({**THREE, "node04": LUSTRE}) == []
    assert compared({"node01": LUSTRE, "node02": LUSTRE, "node03": "", "node04": ""}) == []


def test_a_node_that_mounts_from_elsewhere() -> None:
    other = LUSTRE.replace("10.30.0.6", "10.99.0.6")
    assert compared({**THREE, "node04": other}) == [
        (
            "node04",
            "warn differs: /lustre is mounted from 10.99.0.6@tcp:/fs, most nodes (3 of 4) have it "
            "from 10.30.0.6@tcp:/fs",
        )
    ]


# ---------------------------------------------------------------- the probe


def test_samples_of_proc_mounts_are_read(node: MadeUpNode, shell: str) -> None:
    text = (DATA / "nfs" / "proc-mounts-v3-v4.txt").read_text()
    mounted(node, *from_proc_mounts(text))
    assert found(node, shell, want=("/home", "/scratch", "/")) == [
        "pass there: mounted as wanted: /home, /scratch, /"
    ]
    mounted(node, *from_proc_mounts((DATA / "nfs" / "proc-mounts-autofs.txt").read_text()))
    assert found(node, shell, want=("/misc", "/misc/sw")) == [
        "fail absent: /misc is not mounted, should be; an automounter waits there, and mounted "
        "nothing",
        "pass there: mounted as wanted: /misc/sw",
    ]
    soft = (DATA / "nfs" / "proc-mounts-soft-sync-udp.txt").read_text()
    mounted(node, *from_proc_mounts(soft))
    assert found(node, options=("/data !soft proto=tcp async",)) == [
        "warn options: /data is mounted without proto=tcp, async and with soft, should be without "
        "soft proto=tcp async"
    ]


def test_what_containers_mount_is_left_out(node: MadeUpNode, shell: str) -> None:
    inside = [
        line(f"/var/lib/docker/overlay2/{n}/merged", kind="overlay", number=50 + n)
        for n in range(700)
    ]
    mounted(node, ROOT, *inside, line("/run/netns/a", kind="nsfs"), line("/data", number=41))
    told = node.probe("mounts", shell=shell)
    assert [one.split(" ")[4] for one in told["mounts"].splitlines()] == ["/", "/data"]
    assert told["over"] == "0"
    mounted(node, ROOT, *(line(f"/d{n}", number=50 + n) for n in range(700)))
    assert "unknown mounts: 101 more mounts were not looked at" in found(node, shell)


def test_this_machine(shell: str) -> None:
    told = facts_here("mounts", shell)
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert any(one.split(" ")[4] == "/" for one in file)
    assert [one.split(" ")[4] for one in told["mounts"].splitlines()].count("/") >= 1
    assert "pass there: mounted as wanted: /" in judged("mounts", told, want=("/",))


@pytest.mark.skipif(os.getuid() != 0, reason="cannot here: only root may mount")
def test_real_mounts_twice_over_themselves_and_read_only(tmp_path: Path, shell: str) -> None:
    at = str(tmp_path)
    script = f'mount -t tmpfs -o ro,nosuid none "{at}" && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", script, "sh")
    told = facts_here("mounts", shell, before=before, want=(at,))
    policy = (f"{at} rw", f"{at} nosuid !noexec")
    assert judged("mounts", told, want=(at,), require_fstab=False, options=policy) == [
        f"fail options: {at} is mounted without rw, should be rw",
        f"pass there: mounted as wanted: {at}",
    ]


def test_nothing_is_known_without_mountinfo(node: MadeUpNode) -> None:
    (node.root / "proc/self/mountinfo").unlink()
    assert found(node) == ["unknown mounts: how file systems are mounted could not be read"]


def test_a_node_with_every_fault() -> None:
    assert [said.split(":")[0] for said in judged("mounts", MOUNTS_FULL)] == [
        "warn absent",
        "fail read_only",
        "fail read_only",
        "fail dead",
        "warn twice",
        "pass there",
    ]
