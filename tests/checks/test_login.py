"""The check login: what is judged, and what real shells with good and bad start-up files do."""

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from clustercheck import facts, script
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import sh_folder, shell_words
from tests.storage_facts import LOGIN, LOGIN_FULL
from tests.this_machine import SHELLS
from tools.fetch import program

OPEN = "pass nologin: no file keeps users out"
HOME = "pass home: the home /home/ops is there, and writable"
STARTS = "pass start: /bin/bash starts in 0.05 s"
QUIET = "pass noise: the shell prints nothing that would spoil scp or rsync"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asked(home: Path, shell: str = "dash", login_shell: str = "bash", **changed: Any) -> list[str]:
    """What is found of this machine by a login with that home and shell."""
    own = program(login_shell)
    if own is None:
        pytest.skip(f"no {login_shell} here")
    frame = script.Frame(path=f"{sh_folder(shell)}:{script.PATH}")
    check = [script.Asked("login", CHECKS["login"], options_of("login", **changed))]
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "SHELL": str(own),
        "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22",
        "SSH_CLIENT": "192.0.2.1 50000 22",
    }
    done = subprocess.run(
        ["setsid", "--wait", *shell_words(shell), "-s"],
        input=script.build(frame, check).encode(),
        capture_output=True,
        timeout=100,
        env=environment,
        check=False,
    )
    reader = facts.Reader(frame.mark, time.time)
    reader.feed(done.stdout)
    assert reader.done, done.stderr.decode(errors="replace")
    told = reader.told["login"]
    assert told.whole, told
    return judged("login", told.facts, **changed)


def said_of(code: str, found: list[str]) -> list[str]:
    return [said for said in found if said.split(" ")[1] == f"{code}:"]


# ---------------------------------------------------------------- real shells


def test_a_quiet_and_quick_shell(tmp_path: Path, shell: str) -> None:
    found = asked(tmp_path, shell, warn_seconds=8)
    assert re.fullmatch(r"pass start: \S+ starts in [0-9.]+ s", said_of("start", found)[0])
    assert said_of("noise", found) == [QUIET]
    assert said_of("home", found) == [f"pass home: the home {tmp_path} is there, and writable"]


@pytest.mark.parametrize(
    ("login_shell", "file"), [("tcsh", ".cshrc"), ("fish", ".config/fish/config.fish")]
)
def test_other_shells_that_print(tmp_path: Path, login_shell: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("echo Welcome to node01\n")
    found = asked(tmp_path, login_shell=login_shell, warn_seconds=8)
    assert said_of("noise", found) == [
        "warn noise: the shell prints 'Welcome to node01' when scp, rsync or sftp start it, should "
        "print nothing"
    ]
    assert said_of("start", found)[0].startswith("pass start")


def test_a_start_that_hangs_names_what_it_waits_for(tmp_path: Path, shell: str) -> None:
    (tmp_path / ".bash_profile").write_text("sleep 987\n")
    (found,) = said_of(
        "start", asked(tmp_path, shell, start_shell="login", fail_seconds=5, warn_seconds=1)
    )
    assert re.fullmatch(
        r"fail start: \S+bash did not start within 5 s; it waits for sleep \(process [0-9]+, state "
        r"S(, in \S+)?\)",
        found,
    )


def test_a_slow_start_is_tried_twice(tmp_path: Path, shell: str) -> None:
    profile = tmp_path / ".bash_profile"
    profile.write_text("sleep 1.3\n")
    (found,) = said_of("start", asked(tmp_path, shell, start_shell="login", warn_seconds=1.0))
    assert re.fullmatch(
        r"warn start: \S+ took [1-9][.0-9]+ s to start, should be 1 s or less", found
    )
    # what had to be fetched from afar once is there the second time
    profile.write_text(f'[ -e "{tmp_path}/seen" ] || sleep 3\n: >"{tmp_path}/seen"\n')
    (found,) = said_of("start", asked(tmp_path, shell, start_shell="login", warn_seconds=2.5))
    assert found.startswith("pass start"), found


def test_start_up_files_that_end_the_shell(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("exit 3\n")
    found = asked(tmp_path, start_shell="login", warn_seconds=8)
    assert re.fullmatch(
        r"warn status: \S+bash ended with status 3 when it was to start and do nothing",
        said_of("status", found)[0],
    )


def test_a_profile_is_not_read_unasked(tmp_path: Path) -> None:
    """It may start what stays: an ssh-agent."""
    (tmp_path / ".bash_profile").write_text(f": >{tmp_path}/seen\n")
    found = asked(tmp_path, warn_seconds=8)
    assert said_of("start", found)[0].startswith("pass start")
    assert not (tmp_path / "seen").exists()
    asked(tmp_path, start_shell="login")
    assert (tmp_path / "seen").exists()


def test_a_flood_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / ".config/fish").mkdir(parents=True)
    (tmp_path / ".config/fish/config.fish").write_text("yes noise\n")
    found = asked(tmp_path, login_shell="fish", fail_seconds=2, warn_seconds=1)
    assert said_of("start", found)[0].startswith("fail start")


def test_what_is_left_out(tmp_path: Path) -> None:
    found = asked(tmp_path, start_shell="no")
    assert [said.split(":")[0] for said in found] == ["pass nologin", "pass home"]


# ---------------------------------------------------------------- made-up nodes


@pytest.fixture
def node(tmp_path: Path) -> MadeUpNode:
    return MadeUpNode(tmp_path)


def test_it_was_not_ssh_that_led_here(node: MadeUpNode, shell: str) -> None:
    told = node.probe("login", shell=shell)
    assert "skip start: the shell was not started: it was not SSH that led here" in judged(
        "login", told
    )


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("/etc/nologin", "Maintenance until Friday\nmore\n", "warn nologin: /etc/nologin keeps all "
         'users but root out: "Maintenance until Friday"'),
        ("/run/nologin", "System is booting up. Unprivileged users are not permitted to log in yet."
         "\n", 'warn nologin: /run/nologin keeps all users but root out: "System is booting up. '
         'Unprivileged users are not permitted to log in yet."'),
        ("/etc/nologin", "", "warn nologin: /etc/nologin keeps all users but root out"),
    ],
)  # fmt: skip
def test_files_that_keep_users_out(
    node: MadeUpNode, file: str, text: str, expected: str, shell: str
) -> None:
    node.file(file, text)
    told = node.probe("login", shell=shell)
    assert judged("login", told)[0] == expected
    assert judged("login", told, nologin="fail")[0] == expected.replace("warn", "fail", 1)
    assert judged("login", told, nologin="allow")[0].startswith("pass nologin")


def test_var_run_is_a_link_to_run(node: MadeUpNode) -> None:
    node.file("/run/nologin", "x\n")
    (node.root / "var").mkdir()
    (node.root / "var/run").symlink_to("../run")
    assert len(said_of("nologin", judged("login", node.probe("login")))) == 1


# ---------------------------------------------------------------- the judge


def test_a_sound_node() -> None:
    assert judged("login", LOGIN) == [OPEN, HOME, STARTS, QUIET]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"home_state": "hung"}, "fail home: /home/ops gives no answer within 4 s"),
        ({"home_state": "No such file or directory"}, "warn home: the home /home/ops is not there"),
        ({"home_state": "Permission denied"}, "warn home: the home /home/ops cannot be used: "
         "Permission denied"),
        ({"home_writable": "no", "home_owner": "0"}, "warn home: the home /home/ops is not "
         "writable by its user (it belongs to user 0)"),
        ({"home_writable": "no"}, "warn home: the home /home/ops is not writable by its user"),
        ({"home": ""}, "unknown home: the session names no home"),
    ],
)  # fmt: skip
def test_the_home(changed: dict[str, str], expected: str) -> None:
    assert judged("login", {**LOGIN, **changed}) == [OPEN, expected, STARTS, QUIET]


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        ("Welcome to node01! 3 updates available.\n\x1b[1mstatus 0", "warn noise: the shell prints "
         "'Welcome to node01! 3 updates available.' when scp, rsync or sftp start it, should print "
         "nothing"),
        ("Last maintenance: status 7\nstatus 0", "warn noise: the shell prints 'Last maintenance: "
         "status 7' when scp, rsync or sftp start it, should print nothing"),
        ("\n\nLoading gcc/12.2\nstatus 0", "warn noise: the shell prints 'Loading gcc/12.2' when "
         "scp, rsync or sftp start it, should print nothing"),
        ("status 1", QUIET),
        ("status 124", "unknown noise: what the shell prints is not known: it took over 5 s to "
         "start"),
        ("", "unknown noise: what the shell prints could not be read"),
    ],
)  # fmt: skip
def test_case_text_of_the_start_up_files(noise: str, expected: str) -> None:
    assert judged("login", {**LOGIN, "noise": noise}) == [OPEN, HOME, STARTS, expected]


def test_a_shell_whose_output_is_held() -> None:
    told = {**LOGIN, "hung@noise": "yes"}
    del told["noise"]
    assert judged("login", told)[-1] == (
        "warn noise: the shell leaves a process behind that holds its output: ssh and scp do not"
        " end"
    )


def test_how_long_it_takes() -> None:
    slow = {**LOGIN, "start": "0 100.00 103.40"}
    took = "warn start: /bin/bash took 3.4 s to start, should be 2 s or less"
    assert judged("login", slow)[2] == took
    assert judged("login", {**slow, "again": "0 103.40 105.50"})[2] == took.replace("3.4", "2.1")
    assert judged("login", {**slow, "again": "0 103.40 103.45"})[2] == STARTS
    assert judged("login", slow, warn_seconds=5)[2] == "pass start: /bin/bash starts in 3.40 s"
    killed = {
        **LOGIN,
        "start": "124 100.00 110.00",
        "youngest": "4711 D rpc_wait_bit_killable bash",
    }
    assert judged("login", killed)[2:] == [
        "fail start: /bin/bash did not start within 10 s; it waits for bash (process 4711, state "
        "D, in rpc_wait_bit_killable)"
    ]
    assert judged("login", {**LOGIN, "start": "0 ? ?"})[2] == (
        "unknown start: how long /bin/bash takes to start could not be measured"
    )


@pytest.mark.parametrize(
    ("changed", "told", "expected"),
    [
        ({"locked_memory": "unlimited"}, {}, "fail locked_memory: a session may lock 8192 KiB of "
         "memory, should be unlimited"),
        ({"locked_memory": "unlimited"}, {"locked_memory": "unlimited"}, "pass locked_memory: a "
         "session may lock any memory"),
        ({"open_files": 4096}, {}, "warn open_files: a session may open 1024 files, should be 4096 "
         "or more"),
        ({"open_files": 1024}, {}, "pass open_files: a session may open 1024 files"),
        ({"open_files": 1024}, {"open_files": ""}, "unknown open_files: how many files may be open "
         "cannot be read"),
    ],
)  # fmt: skip
def test_limits(changed: dict[str, Any], told: dict[str, str], expected: str) -> None:
    assert judged("login", {**LOGIN, **told}, **changed)[-1] == expected


def test_limits_of_this_session(node: MadeUpNode, shell: str) -> None:
    node.file("/proc/self/limits", Path("/proc/self/limits").read_text())
    told = node.probe("login", shell=shell)
    assert re.fullmatch("[0-9]+|unlimited", told["open_files"])
    assert re.fullmatch("[0-9]+|unlimited", told["locked_memory"])


def test_options_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=re.escape("warn_seconds (12 s) is above fail_seconds")):
        options_of("login", warn_seconds=12.0)


def test_a_node_with_every_fault() -> None:
    found = judged("login", LOGIN_FULL, locked_memory="unlimited", open_files=4096)
    assert [said.split(":")[0] for said in found] == [
        "warn nologin",
        "warn home",
        "warn status",
        "warn start",
        "warn noise",
        "fail locked_memory",
        "warn open_files",
    ]
