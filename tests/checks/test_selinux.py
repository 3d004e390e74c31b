"""The check selinux: what is judged, and what the probe sees on made-up nodes."""

import os
import time
from pathlib import Path

import pytest

from tests.made_up import MadeUpNode, judged
from tests.this_machine import SHELLS, facts_here

DATA = Path(__file__).resolve().parent.parent / "data" / "selinux"
ALL_MODES = ("enforcing", "permissive", "disabled")

# A node of Debian's kind: the kernel never started SELinux.
WITHOUT = {
    "kernel": "no",
    "mount": "none",
    "label": "unconfined",
    "lsm": "lockdown,capability,landlock,yama,apparmor",
    "apparmor": "Y",
    "cmdline": "",
    "config_state": "absent",
    "policies": "",
}
# A node of Red Hat's kind.
PERMISSIVE = {
    "kernel": "yes",
    "mount": "/sys/fs/selinux",
    "enforce": "0",
    "policy": "loaded",
    "label": "system_u:system_r:unconfined_t:s0",
    "lsm": "lockdown,capability,yama,selinux,bpf",
    "apparmor": "",
    "cmdline": "",
    "config_state": "read",
    "config": "SELINUX=permissive\nSELINUXTYPE=targeted",
    "policies": "targeted 33",
    "denials_from": "unreadable",
}
ENFORCING = {**PERMISSIVE, "enforce": "1", "config": "SELINUX=enforcing\nSELINUXTYPE=targeted"}
GOOD = ["pass mode: SELinux is permissive", "pass boot: permissive after the next boot, too"]
TOO = "pass boot: enforcing after the next boot, too"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_mode_that_is_allowed() -> None:
    assert judged("selinux", PERMISSIVE) == GOOD
    assert judged("selinux", ENFORCING, allow=("enforcing",)) == [
        "pass mode: SELinux is enforcing",
        TOO,
    ]


@pytest.mark.parametrize(
    ("facts", "cmdline", "expected"),
    [
        (WITHOUT, "selinux=0", "SELinux is disabled; AppArmor is active, should be enforcing:"
         " selinux=0 is on the kernel command line"),
        (PERMISSIVE, "enforcing=0", "SELinux is permissive, should be enforcing: enforcing=0 is on"
         " the kernel command line"),
        (PERMISSIVE, "enforcing=1", "SELinux is permissive, should be enforcing"),
        (PERMISSIVE, "selinux=0 selinux=1", "SELinux is permissive, should be enforcing"),
    ],
)  # fmt: skip
def test_what_the_boot_loader_switches_is_not_looked_for_in_the_file(
    facts: dict[str, str], cmdline: str, expected: str
) -> None:
    said = judged("selinux", {**facts, "cmdline": cmdline}, allow=("enforcing",))
    assert said[0] == f"fail mode: {expected}"


def test_a_kernel_without_it_is_disabled_and_says_what_stands_there_instead() -> None:
    assert judged("selinux", WITHOUT) == [
        "pass mode: SELinux is disabled; AppArmor is active",
        "pass boot: disabled after the next boot, too",
    ]


def test_a_mode_that_is_not_allowed() -> None:
    assert judged("selinux", ENFORCING) == [
        "fail mode: SELinux is enforcing, should be permissive or disabled",
    ]
    assert judged("selinux", WITHOUT, allow=("enforcing",)) == [
        "fail mode: SELinux is disabled; AppArmor is active, should be enforcing",
    ]


@pytest.mark.parametrize(
    ("changed", "boot"),
    [
        ({"config": "SELINUX=enforcing"}, "enforcing after the next boot (/etc/selinux/config)"),
        ({"config": "SELINUX=disabled"}, "disabled after the next boot (/etc/selinux/config)"),
        ({"config": "SELINUX= Enforcing # ours"}, "enforcing after"),
        ({"config": "SELINUX=enforcing\nSELINUX=permissive"}, "enforcing after"),
        ({"config": "SELINUX=maybe\nSELINUX=enforcing"}, "enforcing after"),
        ({"cmdline": "selinux=0"}, "disabled after the next boot (selinux=0 on the kernel"),
        ({"cmdline": "enforcing=1"}, "enforcing after the next boot (enforcing=1 on the kernel"),
        ({"cmdline": "enforcing=0 enforcing=1"}, "enforcing after"),
        ({"config": "SELINUX=disabled", "cmdline": "enforcing=1"}, "disabled after"),
        ({"lsm": "capability,apparmor"}, "disabled after the next boot (the kernel's list of"),
    ],
)
def test_another_mode_after_the_next_boot(changed: dict[str, str], boot: str) -> None:
    said = judged("selinux", {**PERMISSIVE, **changed})
    assert said[0] == "pass mode: SELinux is permissive"
    assert said[1].startswith(f"warn boot: permissive now, {boot}")
    assert said[1].endswith("should be permissive or disabled") == ("enforcing after" in boot)


@pytest.mark.parametrize(
    ("changed", "config"),
    [
        ({}, "SELINUX=permissive"),
        ({}, "SELINUX=PERMISSIVE   # SELINUX=enforcing"),
        ({}, "SELINUXTYPE=targeted"),
        ({"cmdline": "selinux=1 enforcing=0"}, "SELINUX=enforcing"),
        ({"cmdline": "selinux=off"}, "SELINUX=permissive"),
    ],
)
def test_the_same_mode_after_the_next_boot(changed: dict[str, str], config: str) -> None:
    assert judged("selinux", {**PERMISSIVE, **changed, "config": config}) == GOOD


@pytest.mark.parametrize(
    "line",
    [
        "SELINUX = enforcing",
        " SELINUX=enforcing",
        'SELINUX="enforcing"',
        "selinux=enforcing",
        "SELINUX=enforce",
    ],
)
def test_a_line_that_libselinux_passes_over(line: str) -> None:
    assert judged("selinux", {**PERMISSIVE, "config": line}) == [
        *GOOD,
        f"warn config: /etc/selinux/config: {line.strip()!r} is not read as a mode",
    ]


def test_the_old_file_beside_the_one_that_counts() -> None:
    said = judged("selinux", {**PERMISSIVE, "sysconfig": "SELINUX=disabled"})
    assert said == [
        *GOOD,
        "warn config: /etc/sysconfig/selinux is a file of its own that says disabled; nobody reads"
        " it, and /etc/selinux/config says permissive",
    ]
    assert judged("selinux", {**PERMISSIVE, "sysconfig": "SELINUX=permissive"}) == GOOD


def test_no_config_on_a_node_that_has_a_mode() -> None:
    said = judged("selinux", {**ENFORCING, "config_state": "absent"}, allow=("enforcing",))
    assert said == [
        "pass mode: SELinux is enforcing",
        "warn boot: enforcing now, and nothing sets the mode for the next boot:"
        " there is no /etc/selinux/config",
    ]


def test_a_config_that_cannot_be_read() -> None:
    said = judged("selinux", {**PERMISSIVE, "config_state": "unreadable"})
    assert said == [
        GOOD[0],
        "unknown boot: the mode at the next boot: /etc/selinux/config cannot be read",
    ]


@pytest.mark.parametrize("config", ["SELINUXTYPE=mls", "SELINUXTYPE=targeted # ours"])
def test_a_policy_that_is_not_there_for_the_next_boot(config: str) -> None:
    told = {**ENFORCING, "config": f"SELINUX=enforcing\n{config}"}
    assert judged("selinux", told, allow=ALL_MODES) == [
        "pass mode: SELinux is enforcing",
        TOO,
        f"warn boot_policy: the policy '{config.partition('=')[2]}' is not installed:"
        " the boot stops at the next boot",
    ]


def test_no_policy_loaded() -> None:
    said = judged("selinux", {**ENFORCING, "policy": "none"}, allow=ALL_MODES)
    assert said == [
        "pass mode: SELinux is enforcing",
        "warn policy: enforcing, but no policy is loaded: nothing is refused",
        TOO,
    ]
    off = {**PERMISSIVE, "policy": "none", "config": "SELINUX=disabled"}
    assert judged("selinux", off) == [
        "pass mode: SELinux is disabled: no policy is loaded",
        "pass boot: disabled after the next boot, too",
    ]
    # how a newer kernel looks when the file says disabled
    off |= {"mount": "none", "label": "kernel"}
    del off["enforce"], off["policy"]
    assert judged("selinux", off)[0] == "pass mode: SELinux is disabled: no policy is loaded"


@pytest.mark.parametrize(
    "changed",
    [
        {"mount": "none"},
        {"mount": "none", "getenforce": "Disabled"},
        {"enforce": "unreadable", "getenforce": "getenforce:  getenforce() failed"},
        {"enforce": "unreadable"},
        {"mount": "none", "kernel": "unreadable", "label": ""},
    ],
)
def test_a_mode_that_cannot_be_read_is_never_a_pass(changed: dict[str, str]) -> None:
    told = {k: v for k, v in ENFORCING.items() if k not in ("enforce", "policy")} | changed
    said = judged("selinux", told, allow=ALL_MODES)
    assert [line.split(":")[0] for line in said] == ["unknown mode"]


def test_the_tools_say_what_the_kernel_does_not() -> None:
    word = (DATA / "getenforce-enforcing.txt").read_text().strip()
    told = {**ENFORCING, "enforce": "unreadable", "getenforce": word}
    assert judged("selinux", told)[0].startswith("fail mode: SELinux is enforcing, should be")
    del told["getenforce"]
    told["sestatus"] = (DATA / "sestatus-enforcing.txt").read_text()
    assert judged("selinux", told)[0].startswith("fail mode: SELinux is enforcing, should be")
    told |= {"kernel": "unreadable", "mount": "none", "label": ""}
    told["sestatus"] = (DATA / "sestatus-disabled.txt").read_text()
    assert judged("selinux", told)[0] == "pass mode: SELinux is disabled"


@pytest.mark.parametrize(
    ("denials", "said"),
    [
        ("", "pass denials: no denials of slurmd and munged in the last 24 h of the journal"),
        (
            "4 slurmd { read } file 0\n1 munged { open } dir 0",
            "warn denials: 5 denials of slurmd and munged in the last 24 h of the journal,"
            " most of all slurmd { read } file",
        ),
        (
            "4 slurmd { read } file 1",
            "pass denials: 4 denials of slurmd and munged in the last 24 h of the journal,"
            " recorded only, most of all slurmd { read } file: enforcing would refuse them",
        ),
        ("status 124", "unknown denials: the journal could not be read (exit status 124)"),
    ],
)
def test_denials(denials: str, said: str) -> None:
    told = {**PERMISSIVE, "denials_from": "the journal", "denials": denials}
    assert judged("selinux", told) == [*GOOD, said]


def test_an_old_kernel_does_not_say_whether_a_denial_was_permissive() -> None:
    told = {**ENFORCING, "denials_from": "the audit log", "denials": "2 slurmd { read } file ?"}
    assert judged("selinux", told, allow=ALL_MODES)[2].startswith("warn denials: 2 denials")


def red_hat(node: MadeUpNode, enforce: str, config: str) -> None:
    """A made-up node whose kernel has SELinux with a policy."""
    node.file("/proc/filesystems", "nodev\tproc\nnodev\tselinuxfs\n\text4\n")
    node.file("/proc/mounts", "selinuxfs /sys/fs/selinux selinuxfs rw,relatime 0 0\n")
    node.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz ro enforcing=* -- selinux=0\n")
    node.file("/proc/self/attr/current", b"system_u:system_r:unconfined_t:s0\0")
    node.file("/sys/kernel/security/lsm", "lockdown,capability,yama,selinux")
    node.file("/sys/fs/selinux/enforce", enforce)
    node.file("/sys/fs/selinux/class/file/index", "6")
    node.file("/etc/selinux/config", config)
    node.file("/etc/selinux/targeted/policy/policy.33", "policy")


def test_the_probe_reads_the_kernel_when_getenforce_is_not_on_the_path(
    tmp_path: Path, shell: str
) -> None:
    node = MadeUpNode(tmp_path)
    red_hat(node, "1", (DATA / "config-comments.txt").read_text())
    node.hide("getenforce", "sestatus")
    told = node.probe("selinux", shell=shell)
    assert told["config"].splitlines()[0] == "SELINUX=enforcing   # set by site policy 2024-03"
    assert judged("selinux", told, allow=("enforcing",))[:2] == [
        "pass mode: SELinux is enforcing",
        TOO,
    ]


def test_the_probe_on_a_node_without_selinux(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/filesystems", "nodev\tproc\n\text4\n")
    node.file("/proc/mounts", "proc /proc proc rw 0 0\n")
    node.file("/proc/cmdline", "quiet\n")
    node.file("/sys/kernel/security/lsm", "capability,apparmor")
    node.hide("getenforce", "sestatus")
    assert judged("selinux", node.probe("selinux", shell=shell)) == [
        "pass mode: SELinux is disabled; AppArmor is active",
        "pass boot: disabled after the next boot, too",
    ]


def test_the_probe_on_an_empty_node_knows_nothing(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("getenforce", "sestatus")
    said = judged("selinux", node.probe("selinux", shell=shell))
    assert [line.split(":")[0] for line in said] == ["unknown mode"]


def test_the_probe_asks_getenforce_where_the_kernel_does_not_tell(
    tmp_path: Path, shell: str
) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/cmdline", "quiet\n")
    node.says("getenforce", "Enforcing\n")
    said = judged("selinux", node.probe("selinux", shell=shell))
    assert said[0] == "fail mode: SELinux is enforcing, should be permissive or disabled"


def test_the_probe_finds_selinuxfs_elsewhere_and_a_split_old_file(
    tmp_path: Path, shell: str
) -> None:
    node = MadeUpNode(tmp_path)
    red_hat(node, "0", "SELINUX=permissive\n")
    node.file("/proc/mounts", "selinuxfs /selinux selinuxfs rw 0 0\n")
    node.file("/selinux/enforce", "1")
    node.file("/etc/sysconfig/selinux", "# a copy\nSELINUX=disabled\n")
    told = node.probe("selinux", shell=shell)
    assert (told["mount"], told["enforce"]) == ("/selinux", "1")
    assert told["sysconfig"] == "SELINUX=disabled"


def test_the_probe_passes_over_the_old_file_that_is_a_link(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    red_hat(node, "0", "SELINUX=permissive\n")
    link = node.file("/etc/sysconfig/selinux")
    link.unlink()
    link.symlink_to("../selinux/config")
    assert "sysconfig" not in node.probe("selinux", shell=shell)


@pytest.mark.skipif(os.getuid() != 0, reason="cannot here: only root reads the audit log")
def test_the_probe_counts_denials_in_the_audit_log(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    red_hat(node, "1", "SELINUX=enforcing\n")
    now = int(time.time())
    text = (DATA / "audit.log").read_text().replace("@OLD@", str(now - 100_000))
    node.file("/var/log/audit/audit.log", text.replace("@NEW@", str(now - 3_000)))
    told = node.probe("selinux", shell=shell)
    assert told["denials"].splitlines() == [
        "2 slurmd { read write } file 0",
        "1 slurmstepd { connectto } unix_stream_socket 0",
    ]
    assert "munged" in node.probe("selinux", shell=shell, denial_hours=100)["denials"]


@pytest.mark.skipif(os.getuid() != 0, reason="cannot here: only root reads the journal")
def test_the_probe_counts_denials_in_the_journal(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    red_hat(node, "0", "SELINUX=permissive\n")
    node.says("journalctl", (DATA / "journal-cat.txt").read_text())
    told = node.probe("selinux", shell=shell)
    assert told["denials_from"] == "the journal"
    assert told["denials"] == "1 munged { getattr } dir 1"
    node.says("journalctl", "", "no journal files were found", 1)
    said = judged("selinux", node.probe("selinux", shell=shell))
    assert said[-1] == "unknown denials: the journal could not be read (exit status 1)"


@pytest.mark.parametrize("shell", SHELLS)
def test_this_machine(shell: str) -> None:
    told = facts_here("selinux", shell)
    assert told["kernel"] in ("yes", "no")
    said = judged("selinux", told, allow=ALL_MODES)
    assert [line.split(":")[0] for line in said][:2] == ["pass mode", "pass boot"]
