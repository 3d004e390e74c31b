"""The check services: what is judged, and what the probe sees on made-up nodes."""

from pathlib import Path

import pytest

from tests.made_up import MadeUpNode, judged
from tests.this_machine import SHELLS

NONE = {"init": "systemd", "first": "systemd", "failed_status": "0", "failed": ""}
CLEAN = "pass failed: no unit has failed"


def unit(name: str = "slurmd.service", **changed: str) -> str:
    """A unit as `systemctl show` has it: the properties asked for, in systemd's own order."""
    values = {
        "Type": "simple",
        "Result": "success",
        "NRestarts": "0",
        "ExecMainStartTimestampMonotonic": "20000000",
        "Id": name,
        "WantedBy": "multi-user.target",
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "UnitFileState": "enabled",
        "StateChangeTimestampMonotonic": "20000000",
        **changed,
    }
    return "\n".join(f"{key}={value}" for key, value in values.items())


def wanted(*units: str, want: tuple[str, ...] = ("slurmd",), uptime: str = "90020.5") -> list[str]:
    told = {**NONE, "uptime": uptime, "units_status": "0", "units": "\n\n".join(units)}
    assert judged("services", told, want=want)[0] == CLEAN
    return judged("services", told, want=want)[1:]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["pass wanted: slurmd is active (running)"]),
        (
            {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"},
            ["fail wanted: slurmd is failed (exit-code) for 25 h, should be active"],
        ),
        (
            {"ActiveState": "inactive", "SubState": "dead"},
            ["fail wanted: slurmd is inactive (dead) for 25 h, should be active"],
        ),
        (
            {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead"},
            ["fail wanted: slurmd: there is no such unit"],
        ),
        (
            {"LoadState": "masked", "ActiveState": "inactive", "UnitFileState": "masked"},
            ["fail wanted: slurmd is masked: it cannot be started"],
        ),
        (
            {"LoadState": "bad-setting", "ActiveState": "inactive"},
            ["fail wanted: slurmd cannot be loaded (bad-setting)"],
        ),
        (
            {"ActiveState": "activating", "SubState": "start"},
            [
                "fail wanted: slurmd is activating (start) for 25 h, should be active within 300 s",
            ],
        ),
        (
            {
                "ActiveState": "activating",
                "SubState": "start-pre",
                "StateChangeTimestampMonotonic": "90000000000",
            },
            [
                "warn wanted: slurmd is activating (start-pre) for 20 s, should be active within"
                " 300 s"
            ],
        ),
        (
            {"ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "812"},
            ["fail wanted: slurmd ends and is started again and again (812 times)"],
        ),
        (
            {"NRestarts": "7", "StateChangeTimestampMonotonic": "90000000000"},
            [
                "warn wanted: slurmd is active (running) for 20 s, after 7 restarts by itself,"
                " should be fewer than 5"
            ],
        ),
        ({"NRestarts": "7"}, ["pass wanted: slurmd is active (running)"]),
        (
            {"UnitFileState": "disabled", "WantedBy": ""},
            [
                "pass wanted: slurmd is active (running)",
                "warn at_boot: slurmd runs, and nothing starts it at the next boot",
            ],
        ),
        ({"UnitFileState": "disabled"}, ["pass wanted: slurmd is active (running)"]),
        (
            {"Type": "oneshot", "ActiveState": "inactive", "SubState": "dead"},
            ["pass wanted: slurmd has run and ended well"],
        ),
        (
            {
                "Type": "oneshot",
                "ActiveState": "inactive",
                "SubState": "dead",
                "ExecMainStartTimestampMonotonic": "0",
                "StateChangeTimestampMonotonic": "0",
            },
            ["fail wanted: slurmd is inactive (dead), should be active"],
        ),
        (
            {"ActiveState": "inactive", "SubState": "dead", "TriggeredBy": "slurmd.socket"},
            [
                "pass wanted: slurmd is inactive (dead), and started by slurmd.socket when it is"
                " needed"
            ],
        ),
        (
            {"ActiveState": "dreaming"},
            ["unknown wanted: slurmd: the state 'dreaming' is not known here"],
        ),
    ],
)
def test_a_service_that_is_wanted(changed: dict[str, str], expected: list[str]) -> None:
    assert wanted(unit(**changed)) == expected


def test_of_two_names_the_better_one_counts() -> None:
    gone = {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead"}
    blocks = (unit("ssh.service", **gone), unit("sshd.service"), unit("munge.service"))
    assert wanted(*blocks, want=("ssh|sshd", "munge")) == [
        "pass wanted: sshd is active (running)",
        "pass wanted: munge is active (running)",
    ]


def test_an_old_systemd_does_not_count_restarts() -> None:
    # 219, of RHEL 7, has neither NRestarts nor TriggeredBy of a service
    text = "\n".join(line for line in unit().splitlines() if not line.startswith("NRestarts"))
    assert wanted(text) == ["pass wanted: slurmd is active (running)"]


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("", "unknown wanted: how the services are is not understood: no word"),
        (
            "Failed to connect to bus: No such file or directory",
            "unknown wanted: how the services are is not understood: Failed to connect to bus:",
        ),
        (
            f"{unit()}\n\n{unit()}",
            "unknown wanted: how the services are is not understood: StateChangeTimestamp",
        ),
    ],
)
def test_what_is_not_understood_passes_nowhere(units: str, expected: str) -> None:
    assert wanted(units)[0].startswith(expected)


def test_failed_units_count_where_they_matter() -> None:
    told = {
        **NONE,
        # the second as systemd 219 writes it, though it is asked for plain rows
        "failed": "sssd.service        loaded failed failed System Security Services Daemon\n"
        "* kdump.service loaded failed failed Crash recovery kernel arming\n"
        "gpfs.service loaded activating auto-restart-queued General Parallel File System\n"
        "fwupd-refresh.service loaded failed failed Refresh fwupd metadata",
    }
    assert judged("services", told) == [
        "warn failed: sssd.service has failed",
        "warn failed: gpfs.service ends and is started again and again",
        "pass failed: degraded, by units that are not watched: kdump.service,"
        " fwupd-refresh.service",
    ]
    assert judged("services", told, watch=("kdump*",)) == [
        "warn failed: kdump.service has failed",
        "pass failed: degraded, by units that are not watched: sssd.service, gpfs.service,"
        " fwupd-refresh.service",
    ]


def test_a_failed_service_that_is_wanted_is_one_finding() -> None:
    told = {
        **NONE,
        "failed": "sssd.service loaded failed failed System Security Services Daemon",
        "uptime": "90020.5",
        "units_status": "0",
        "units": unit("sssd.service", ActiveState="failed", SubState="failed", Result="timeout"),
    }
    assert judged("services", told, want=("sssd",)) == [
        "pass failed: no other unit has failed",
        "fail wanted: sssd is failed (timeout) for 25 h, should be active",
    ]


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        ("124", "", "unknown failed: systemd gives no list of failed units: no answer within 5 s"),
        ("127", "", "unknown failed: systemd gives no list of failed units: no systemctl"),
        (
            "1",
            "Failed to list units: Connection timed out",
            "unknown failed: systemd gives no list of failed units: Failed to list units:"
            " Connection timed out",
        ),
        (
            "0",
            "what is this",
            "unknown failed: the list of failed units is not understood: what is this",
        ),
    ],
)
def test_a_systemd_that_does_not_answer(status: str, said: str, expected: str) -> None:
    assert judged("services", {**NONE, "failed_status": status, "failed": said}) == [expected]


def test_without_systemd_nothing_is_guessed() -> None:
    other = {"init": "other", "first": "tini"}
    assert judged("services", other) == [
        "skip manager: no systemd that could be asked, and no service is asked for"
    ]
    assert judged("services", other, want=("slurmd",)) == [
        "unknown manager: neither systemd nor OpenRC runs here (process 1 is tini): whether the"
        " services run cannot be found out"
    ]
    # a container that sees the host's folder: what systemctl 252 says there
    inside = {
        **NONE,
        "failed_status": "1",
        "failed": "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
        "Failed to connect to bus: Host is down",
    }
    assert judged("services", inside)[0].startswith("skip manager: ")


def test_openrc() -> None:
    told = {"init": "openrc", "first": "init"}
    said = "munge started\nslurmd failed\nsshd not-found\nchronyd stopped"
    want = ("munge", "slurmd", "sshd|munge", "chronyd", "ntpd", "sshd")
    assert judged("services", {**told, "openrc": said}, want=want) == [
        "pass wanted: munge is started",
        "fail wanted: slurmd is failed, should be started",
        "pass wanted: munge is started",
        "fail wanted: chronyd is stopped, should be started",
        "unknown wanted: ntpd: how it is was not told",
        "fail wanted: sshd: there is no such service",
    ]
    assert judged("services", told)[0].startswith("skip manager: ")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe_asks_systemd_once_for_all_units(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/run/systemd/system/x")
    node.file("/proc/1/comm", "systemd\n")
    node.file("/proc/uptime", "90020.50 1.00\n")
    node.file("/answer", "\n\n".join(unit(name) for name in ("a.service", "b@1.service", "c")))
    log = tmp_path / "log"
    node.command(
        "systemctl",
        f'echo "$*" >>{log}\ncase $1 in show) cat {node.root}/answer ;; *) exit 0 ;; esac',
    )
    want = ("a", "b@1|c*", "$(touch x)")
    told = node.probe("services", shell=shell, want=want)
    asked = log.read_text().splitlines()
    assert len(asked) == 2
    assert asked[1].endswith(" -- a b@1 c* $(touch x)")
    assert told["uptime"] == "90020.50"
    assert len(told["units"].split("\n\n")) == 3
    log.unlink()
    assert set(node.probe("services", shell=shell)) == {"init", "first", "failed_status", "failed"}
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe_reads_openrc_without_a_command(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    for path in ("run/openrc/started/munge", "run/openrc/failed/slurmd"):
        node.file(path)
    for name in ("munge", "slurmd", "chronyd"):
        node.file(f"/etc/init.d/{name}")
    told = node.probe("services", shell=shell, want=("munge", "slurmd", "chronyd", "sshd"))
    said = ["munge started", "slurmd failed", "chronyd stopped", "sshd not-found"]
    assert (told["init"], told["openrc"].splitlines()) == ("openrc", said)
