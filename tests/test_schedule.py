"""What starts the sweep each night: read by systemd itself, by a shell as cron starts one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clustercheck import schedule as module
from clustercheck.errors import ConfigError, UsageError
from clustercheck.schedule import Asked, schedule
from tests.command import clustercheck
from tools.fetch import TOOLS, CannotFetch, fetch

# systemd-analyze may have to be fetched.
pytestmark = pytest.mark.timeout(600)

NODES = "gpu[01-04]\n[sweep]\ncluster = hpc1\n"
MAILS = NODES + "mail.to = ops@example.org\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written on this machine, and who runs the tests is root to the command."""
    for name in ("SYSTEM_UNITS", "USER_UNITS", "CRON_FOLDER"):
        folder = tmp_path / name.lower()
        if name != "USER_UNITS":
            folder.mkdir()
        monkeypatch.setattr(module, name, folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("getpass.getuser", lambda: "root")


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("getpass.getuser", lambda: "anna")


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.ini"
    path.write_text(MAILS)
    return path


def asked(
    at: str = "03:00",
    user: str = "",
    cron: bool | None = False,
    max_seconds: int = 7200,
    install: bool = False,
) -> Asked:
    return Asked(at, user, cron, max_seconds, install)


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., str]:
    """What systemd has to say of units; "" where it is content."""
    try:
        fetch("units")
    except CannotFetch as why:
        pytest.skip(str(why))
    path = os.pathsep.join([os.environ["PATH"], "/usr/bin", str(TOOLS / "units/usr/bin")])
    libraries = {str(file.parent) for file in TOOLS.glob("units/usr/lib/**/*.so*")}

    def run(folder: Path, *words: str) -> str:
        units = [str(unit) for unit in sorted(folder.iterdir())]
        runtime = tmp_path / "runtime"
        runtime.mkdir(exist_ok=True)
        done = subprocess.run(
            ["systemd-analyze", *words, "verify", "--man=no", *units],
            env={
                "PATH": path,
                "XDG_RUNTIME_DIR": str(runtime),
                "HOME": str(tmp_path),
                "LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries)),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        said = done.stdout + done.stderr
        return said or (f"status {done.returncode}" if done.returncode else "")

    return run


def test_the_units(inventory: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert schedule(asked("2:30", "daemon"), inventory) == 0
    out, err = capsys.readouterr()
    command = f"{sys.executable} -m clustercheck sweep -i {inventory}"
    assert (
        out
        == f"""\
# {tmp_path}/system_units/clustercheck-hpc1.service
[Unit]
Description=clustercheck: the sweep of hpc1
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
User=daemon
ExecStart={command} --max-time 7200
# What is found on nodes (1, 2, 3) is no failure of this unit; a mail not sent (69) is.
SuccessExitStatus=1 2 3
# The sweep ends by itself; this is for the case that it does not.
TimeoutStartSec=7800
TimeoutStopSec=120
KillMode=mixed
Nice=10
UMask=0077

# {tmp_path}/system_units/clustercheck-hpc1.timer
[Unit]
Description=clustercheck: the sweep of hpc1, each night

[Timer]
OnCalendar=*-*-* 02:30:00
Persistent=true

[Install]
WantedBy=timers.target
"""
    )
    assert (
        err
        == f"""\
Nothing was written; with --install it is.
Try it first, as the user daemon: sudo -u daemon {command} --print-mail
Then start it:
  systemctl daemon-reload
  systemctl enable --now clustercheck-hpc1.timer
What it said: journalctl -u clustercheck-hpc1.service
At night there is no ssh-agent: the user daemon needs a key without a passphrase.
"""
    )
    assert list((tmp_path / "system_units").iterdir()) == []


def test_systemd_takes_them(inventory: Path, verify: Callable[..., str], tmp_path: Path) -> None:
    units = tmp_path / "system_units"
    schedule(asked(user="daemon", install=True), inventory)
    assert len(list(units.iterdir())) == 2
    assert verify(units) == ""
    (units / "clustercheck-hpc1.timer").write_text("[Timer]\nOnCalendar=*-*-* 33:00:00\n")
    assert "Failed to parse calendar specification" in verify(units)


def test_a_user_has_units_of_his_own(
    inventory: Path,
    verify: Callable[..., str],
    ordinary: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    units = tmp_path / "user_units"
    schedule(asked(install=True), inventory)
    assert verify(units, "--user") == ""
    service = (units / "clustercheck-hpc1.service").read_text()
    assert "User=" not in service
    assert "network-online" not in service
    err = capsys.readouterr().err
    assert "systemctl --user enable --now clustercheck-hpc1.timer\n" in err
    assert "loginctl enable-linger anna " in err


ODD = "a %b $HOME 'c' \"d\" \\e;.ini"


def test_odd_names_reach_the_command_whole_by_systemd(
    tmp_path: Path, verify: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / ODD
    odd.write_text(MAILS)
    schedule(asked(install=True), odd)
    units = tmp_path / "system_units"
    assert verify(units) == ""
    line = next(
        line
        for line in (units / "clustercheck-hpc1.service").read_text().splitlines()
        if line.startswith("ExecStart=")
    )
    quoted = 'a %%b $$HOME \'c\' \\"d\\" \\\\e;.ini"'
    assert f' -i "{tmp_path}/{quoted} --max-time' in line


def test_odd_names_reach_the_command_whole_by_cron(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / ODD
    odd.write_text(MAILS)
    schedule(asked(cron=True), odd)
    out = capsys.readouterr().out
    path, line = out.splitlines()
    assert path == f"# {tmp_path}/cron_folder/clustercheck-hpc1"
    assert line.startswith("0 3 * * * root nice -n 10 timeout -k 120 7800 ")
    assert line.endswith(" --max-time 7200 >/dev/null")
    command = line.split(" root ")[1].removesuffix(" >/dev/null").replace("\\%", "%")
    shown = subprocess.run(
        ["/bin/sh", "-c", f"set -- {command}; printf '%s\\n' \"$@\""],
        capture_output=True,
        text=True,
        check=True,
    )
    words = shown.stdout.splitlines()
    assert words[-7:] == ["-m", "clustercheck", "sweep", "-i", str(odd), "--max-time", "7200"]


def test_cron_for_an_ordinary_user(
    tmp_path: Path, ordinary: None, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = tmp_path / "hpc1.ini"
    inventory.write_text("gpu01\n")
    schedule(asked(cron=True), inventory)
    out, err = capsys.readouterr()
    path, line = out.splitlines()
    assert path == "# for the crontab of anna"
    assert line.startswith("0 3 * * * nice -n 10 timeout ")
    assert line.endswith(" --max-time 7200")  # who gets no mail of ours gets cron's
    assert "Then add the line by `crontab -e`.\n" in err
    assert "set mail.to below [sweep] for what changed.\n" in err
    with pytest.raises(UsageError, match="add the line by `crontab -e`"):
        schedule(asked(cron=True, install=True), inventory)


def test_systemd_is_taken_where_it_runs(
    inventory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for there, first in ((tmp_path, "system_units"), (tmp_path / "no", "cron_folder")):
        monkeypatch.setattr(module, "RUNS_SYSTEMD", there)
        schedule(asked(cron=None), inventory)
        assert f"{first}/clustercheck-hpc1" in capsys.readouterr().out.splitlines()[0]


def test_what_is_there_is_never_overwritten(
    inventory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units = tmp_path / "system_units"
    timer = units / "clustercheck-hpc1.timer"
    schedule(asked(install=True), inventory)
    err = capsys.readouterr().err
    assert err.splitlines()[:2] == [
        f"{units}/clustercheck-hpc1.service written",
        f"{timer} written",
    ]
    schedule(asked(install=True), inventory)
    assert f"{timer} is there already\n" in capsys.readouterr().err
    service = units / "clustercheck-hpc1.service"
    service.unlink()
    with pytest.raises(UsageError) as caught:
        schedule(asked("04:00", install=True), inventory)
    assert str(caught.value) == (
        f"--install: {timer} is there and says something else; nothing was written. Compare it"
        " with what this command prints without --install, and remove it first"
    )
    assert not service.exists()
    assert "03:00:00" in timer.read_text()


@pytest.mark.parametrize(
    "wanted, words",
    [
        (asked("25:00"), "--at: '25:00' is not a time of the day; write such as 03:00"),
        (asked("3"), "--at: '3' is not a time of the day; write such as 03:00"),
        (asked(user="a b"), "--user: 'a b' is no user's name"),
        (asked(user="x\nExecStart=y"), "--user: 'x\\nExecStart=y' is no user's name"),
    ],
)
def test_wrong_usage(inventory: Path, wanted: Asked, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schedule(wanted, inventory)
    assert str(caught.value) == words


def test_who_is_not_root_names_no_other(inventory: Path, ordinary: None) -> None:
    with pytest.raises(UsageError, match="only root may have another user do it"):
        schedule(asked(user="root"), inventory)


def test_an_inventory_is_needed_and_is_looked_at(inventory: Path) -> None:
    with pytest.raises(UsageError, match="Give the inventory with -i"):
        schedule(asked(), None)
    inventory.write_text(NODES + "mail.too = x\n")
    with pytest.raises(ConfigError, match="did you mean 'to'"):
        schedule(asked(), inventory)


def test_a_folder_where_one_may_not_write(
    inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SYSTEM_UNITS", tmp_path / "no")
    with pytest.raises(UsageError, match="there is no folder"):
        schedule(asked(install=True), inventory)


def test_a_hostile_name_of_a_cluster_stays_in_its_line(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory.write_text('gpu01\n[sweep]\ncluster = "a/../b %h\x0cUser=root\'"\n')
    schedule(asked(), inventory)
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].endswith("/system_units/clustercheck-a-b-h-User-root.service")
    assert lines[2] == 'Description=clustercheck: the sweep of "a/../b %%h\\x0cUser=root\'"'


def test_the_command_line_and_its_completion(inventory: Path) -> None:
    done = clustercheck("schedule", "-i", inventory, "--systemd", "--cron")
    assert (done.status, done.err) == (
        64,
        "clustercheck: give one of --systemd and --cron\n",
    )
    shown = clustercheck(env={"_CLUSTERCHECK_COMPLETE": "source_bash"})
    assert shown.status == 0
    assert "complete -o default -F _clustercheck_completion clustercheck" in shown.out
    # as that function asks
    asks = {
        "_CLUSTERCHECK_COMPLETE": "complete_bash",
        "COMP_WORDS": "clustercheck sc",
        "COMP_CWORD": "1",
    }
    assert set(clustercheck(env=asks).out.split()) == {"schedule", "schema", "script"}
