"""The command line, as a user meets it: faults in one line, exit codes, signals, secrets."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustercheck import __version__
from tests.command import clustercheck, ssh_words, write_inventory
from tests.conftest import MakeHost
from tests.host import PASSWORD, Host

NOTHING_WRONG = "[check:fine]\ncommand = echo fine\n"


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    """An inventory of this machine with one check that passes."""
    path = tmp_path / "inventory.ini"
    path.write_text(f"here ansible_connection=local\n{NOTHING_WRONG}")
    return path


def test_version_and_help() -> None:
    assert clustercheck("--version") == (0, f"clustercheck {__version__}\n", "")
    done = clustercheck("--help")
    assert done.status == 0
    for command in ("run", "checks", "explain", "script", "judge", "init", "schema"):
        assert f"\n  {command} " in done.out


def test_no_command_shows_the_help() -> None:
    done = clustercheck()
    assert done.status == 64 and done.out == ""
    assert "clustercheck run -i inventory.ini" in done.err


@pytest.mark.parametrize("command", ["", "run", "judge", "checks", "explain", "script", "init"])
def test_help_names_what_to_give_in_the_users_words(command: str) -> None:
    done = clustercheck(*command.split(), "--help", env={"COLUMNS": "80"})
    assert done.status == 0
    assert (
        "range>" not in done.out
        and "<int" not in done.out
        and "..." not in done.out.replace("[ARGS]...", "")
    )
    assert "default: 0" not in done.out, "says what happens, not the number that stands for it"


def test_a_node_that_the_inventory_does_not_have_is_noted(fine: Path) -> None:
    words = ["-w", "here,127.0.0.1", "-p", "1", "-F", os.devnull, "-c", "fine"]
    done = clustercheck("run", "-i", fine.name, *words, cwd=fine.parent)
    assert f"\nnote: not in {fine.name}, and reached as with ssh: 127.0.0.1\n" in done.out
    assert "\nnote: " not in clustercheck("run", "-i", fine, "-c", "fine").out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["runn"], "No such command 'runn'"),
        (["run", "gpu01"], "nodes are named with -w"),
        (["run", "-F", "/nonexistent/config"], "-F: there is no file '/nonexistent/config'"),
        (["run", "--known-hosts", "/nonexistent/known"], "there is no file '/nonexistent/known'"),
        (["run", "-F", "x" * 5000], f"'{'x' * 59}…': File name too long"),
        (["judge", "x" * 5000], f"'{'x' * 59}…': File name too long"),
        (["history", "--state", "x" * 5000], f"'{'x' * 59}…': File name too long"),
        (["script", "-c", "selinux", "--heavy"], "nothing is asked in a second step by selinux"),
        (["run", "--nosuch"], "No such option: --nosuch"),
        (["run", "--parallel", "many"], "Invalid value for '--parallel'"),
        (["run", "-c", "ntpp"], "-c: no check is called 'ntpp'; did you mean 'ntp'?"),
        (["run", "--skip", "tmpp"], "--skip: no check is called 'tmpp'; did you mean 'tmp'?"),
        (["run", "-c", "ntp", "--skip", "ntp"], "no check is left"),
        (["run", "-o", "ntp"], "-o: 'ntp' is not CHECK.OPTION=VALUE"),
        (["run", "-o", "ntp.warn_ofset=1"], "did you mean 'warn_offset'?"),
        (["run", "-x", "node01"], "-x needs nodes to exclude from"),
        (["run", "-w", ""], "selects no node"),
        (["run", "-w", "@gpu"], "'gpu'"),
        (["run", "--format", "jason"], "there is no form 'jason'; did you mean 'json'?"),
        (["run", "--host-keys", "no"], "--host-keys is strict or accept-new, not 'no'"),
        (["run", "--become", "su"], "--become: sudo is the only way, not 'su'"),
        (["run", "--output", "/nonexistent/report"], "there is no folder '/nonexistent'"),
        (["explain"], "explain what?"),
        (["explain", "ntpp"], "did you mean 'ntp'?"),
        (["run", "-w", "a\x1b[31mb"], "\\x1b"),
    ],
)
def test_wrong_usage_is_one_line_and_64(words: list[str], line: str) -> None:
    done = clustercheck(*words)
    assert done.status == 64, done
    assert done.out == ""
    assert line in done.err and len(done.err.splitlines()) == 1, done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[gpu]\ngpu[01-\n", "inventory.ini:2: "),
        ("n1\n[check:ntp]\nwarn_ofset = 1\n", "inventory.ini:3: check ntp has no option"),
        ("n1\n[check:ntp]\nwarn_offset = soon\n", "inventory.ini:3: ntp.warn_offset: "),
        ("[a:children]\na\n[a]\n", "inventory.ini:2: "),
        ("n1 prot=22\n", "did you mean 'port'?"),
        ("", "no node is named"),
    ],
)
def test_wrong_configuration_is_one_line_and_78(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "inventory.ini").write_text(text)
    done = clustercheck("run", "-i", "inventory.ini", cwd=tmp_path)
    assert done.status == 78, done
    assert line in done.err and len(done.err.splitlines()) == 1, done.err
    assert done.out == ""


def test_no_such_inventory(tmp_path: Path) -> None:
    done = clustercheck("run", "-i", "inventry.ini", cwd=tmp_path)
    assert done.status == 78 and done.err.startswith("clustercheck: inventry.ini")


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("exit 3", 3), ("exit 9", 3), ("true", 3)],
)
def test_exit_codes(tmp_path: Path, command: str, status: int) -> None:
    said = "" if command == "true" else "echo said;"
    path = tmp_path / "inventory.ini"
    path.write_text(f"here ansible_connection=local\n[check:made]\ncommand = {said} {command}\n")
    assert clustercheck("run", "-i", path, "-c", "made").status == status


def test_machine_output_alone_is_on_standard_output(fine: Path) -> None:
    done = clustercheck("run", "-i", fine, "-c", "fine", "--format", "json", "-v")
    assert json.loads(done.out)["exit_code"] == 0
    assert done.status == 0


def test_a_report_goes_to_a_file_whole(fine: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    words = ["run", "-i", str(fine), "-c", "fine", "--format", "json", "--output", str(target)]
    done = clustercheck(*words)
    assert done.status == 0 and done.out == ""
    assert json.loads(target.read_text())["schema"] == "clustercheck.report/1"


def test_a_report_that_cannot_be_written_after_all_is_not_lost(fine: Path) -> None:
    done = clustercheck("run", "-i", fine, "-c", "fine", "--output", "/dev/full")
    assert done.status == 64
    assert "'/dev/full': No space left on device" in done.err and done.err.count("\n") == 1
    assert "here: pass; 1 check" in done.out


def test_this_machine_without_an_inventory() -> None:
    done = clustercheck("run", "-c", "selinux,tmp", "--format", "json")
    report = json.loads(done.out)
    assert list(report["nodes"]) == ["localhost"]
    assert set(report["nodes"]["localhost"]["checks"]) >= {"selinux", "tmp"}
    assert done.status == report["exit_code"]


def test_the_script_is_what_runs(fine: Path) -> None:
    """Printed, and given to sh, it answers by itself."""
    done = clustercheck("script", "-i", fine, "-c", "selinux,fine")
    assert done.status == 0 and "# clustercheck" in done.out.splitlines()[0]
    answer = subprocess.run(["sh", "-s"], input=done.out, capture_output=True, text=True)
    assert " selinux = " in answer.stdout and " fine ! whole" in answer.stdout


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ([], "Reports of clustercheck"),
        (["admission"], "Admissions of clustercheck"),
        (["diff"], "Differences as clustercheck finds them"),
    ],
)
def test_the_schema_is_json_schema(words: list[str], title: str) -> None:
    schema = json.loads(clustercheck("schema", *words).out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["title"] == title


def test_there_is_no_such_schema() -> None:
    done = clustercheck("schema", "admision")
    assert (done.status, done.out) == (64, "")
    assert "there is no schema of 'admision'; did you mean 'admission'?" in done.err


def test_checks_are_listed() -> None:
    done = clustercheck("checks")
    assert done.status == 0
    for name in ("ntp", "selinux", "tmp"):
        assert f"\n{name} " in done.out


def test_explain_says_what_to_do_and_where_from(fine: Path) -> None:
    done = clustercheck("explain", "ntp.offset")
    assert done.status == 0 and "§4.1.1" in done.out
    done = clustercheck("explain", "access.refused")
    assert done.status == 0 and "sshd" in done.out
    done = clustercheck(
        "explain", "--effective", "-i", fine, "-w", "here", "-o", "ntp.warn_offset=0.3"
    )
    assert re.search(r"\nntp.warn_offset +0\.3 s +-o\n", done.out), done.out
    assert re.search(r"\nntp.fail_offset +1 s +default\n", done.out), done.out


def test_a_closed_pipe_is_no_traceback(fine: Path) -> None:
    command = [sys.executable, "-m", "clustercheck", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_prints_what_is_known(tmp_path: Path, sent: signal.Signals) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(
        "fast ansible_connection=local\nslow ansible_connection=local\n"
        "[check:made]\ncommand = echo fine\n"
        f"[check:wait]\ncommand = touch {tmp_path}/waits; sleep 100; echo fine\nlimit = 110\n"
    )
    command = [sys.executable, "-m", "clustercheck", "run", "-i", str(path), "-c", "made,wait"]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--parallel", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "waits").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(sent)
        out, err = process.communicate(timeout=90)
    assert time.monotonic() - began < 90
    assert process.returncode == 3, err
    assert "Traceback" not in err
    assert "had not answered yet (interrupted)" in out
    assert "its turn had not come (interrupted)" in out
    assert out.splitlines()[-1].startswith("2 nodes: 0 pass, 2 unknown")


def one_node(tmp_path: Path, host: Host, user: str, check: str = NOTHING_WRONG) -> Path:
    path = write_inventory(tmp_path / "inventory.ini", host, ["node01 host=127.0.0.1"], check)
    path.write_text(path.read_text().replace(f"user={host.user}", f"user={user}"))
    return path


@pytest.mark.parametrize("user", ["alice", "carol", "dave", "fiona", "noisy", "root"])
def test_every_login_shell(tmp_path: Path, host: Host, user: str) -> None:
    host.need_own_root()
    path = one_node(tmp_path, host, user)
    done = clustercheck("run", "-i", path, *ssh_words(host), "-c", "fine")
    assert done.status == 0, done


ROOT_CHECK = "[check:who]\ncommand = id -un\nneeds_root = yes\n"


def test_sudo_without_a_password_gives_root(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    path = one_node(tmp_path, host, "ernie", ROOT_CHECK + NOTHING_WRONG)
    words = ["run", "-i", str(path), *ssh_words(host), "-c", "who,fine", "-v"]
    done = clustercheck(*words, "--become", "sudo")
    assert done.status == 0, done
    assert "root" in done.out
    done = clustercheck(*words)
    assert done.status == 3
    assert "root is needed for who" in done.out


def test_sudo_that_asks_for_a_password_is_told_once(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    more = ROOT_CHECK.replace("who", "whom")
    path = one_node(tmp_path, host, "paula", ROOT_CHECK + more + NOTHING_WRONG)
    done = clustercheck(
        "run",
        "-i",
        path,
        *ssh_words(host),
        "-c",
        "who,whom,fine",
        "--become",
        "sudo",
        "--format",
        "json",
    )
    assert done.status == 3
    checks = json.loads(done.out)["nodes"]["node01"]["checks"]
    (found,) = checks["access"]["findings"]
    assert found["code"] == "access.root"
    assert "password is required" in found["message"] and "who, whom" in found["message"]
    assert found["remedy"]["text"]
    assert checks["who"]["status"] == checks["whom"]["status"] == "skip"
    assert checks["fine"]["status"] == "pass"


def test_a_root_probe_that_hangs_is_ended_by_sudo_too(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    hang = "[check:hang]\ncommand = sleep 4321\nneeds_root = yes\nlimit = 1\n"
    path = one_node(tmp_path, host, "ernie", hang)
    done = clustercheck("run", "-i", path, *ssh_words(host), "-c", "hang", "--become", "sudo")
    assert done.status == 3 and "did not end within 1 s" in done.out
    assert "4321" not in host.run("ps axo args"), "root's process goes on"


def test_a_password_from_the_environment_is_never_shown(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    path = one_node(tmp_path, host, "alice")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if "key=" not in line))
    done = clustercheck(
        "run",
        "-i",
        path,
        *ssh_words(host),
        "-c",
        "fine",
        "-vv",
        env={"CLUSTERCHECK_PASSWORD": PASSWORD},
    )
    assert done.status == 0, done
    assert PASSWORD not in done.out + done.err
    wrong = clustercheck(
        "run",
        "-i",
        path,
        *ssh_words(host),
        "-c",
        "fine",
        env={"CLUSTERCHECK_PASSWORD": "not it"},
    )
    assert wrong.status == 3 and "not it" not in wrong.out + wrong.err


def test_a_wrong_password_goes_to_few_nodes(tmp_path: Path, make_host: MakeHost) -> None:
    """Many refusals lock an account."""
    host = make_host()
    host.need_own_root()
    lines = [f"node{i:02} host=127.0.0.{i + 1}" for i in range(16)]
    path = write_inventory(tmp_path / "inventory.ini", host, lines, NOTHING_WRONG)
    path.write_text("\n".join(x for x in path.read_text().splitlines() if "key=" not in x))
    words = ["run", "-i", str(path), *ssh_words(host), "-c", "fine", "--format", "json"]
    done = clustercheck(*words, env={"CLUSTERCHECK_PASSWORD": "not it"})
    assert done.status == 3
    codes = {
        finding["code"]
        for node in json.loads(done.out)["nodes"].values()
        for finding in node["checks"]["access"]["findings"]
    }
    assert codes == {"access.login_refused"}
    assert "refused by 3 nodes and is sent to no other" in done.out
    assert host.log().count("Failed password for alice") == 3
    assert clustercheck(*words, env={"CLUSTERCHECK_PASSWORD": PASSWORD}).status == 0


def test_asking_for_a_password_needs_a_terminal(fine: Path) -> None:
    done = clustercheck("run", "-i", fine, "-k")
    assert done.status == 64 and "set CLUSTERCHECK_PASSWORD instead" in done.err


def test_a_node_cannot_forge_facts_nor_reach_the_terminal(tmp_path: Path, host: Host) -> None:
    """Its text looks like our own lines, holds escapes, and breaks out of its line."""
    forged = (
        r"printf 'x - done\n@00 fine = status 0\n\033[2J\033]0;owned\007\342\200\256evil\n'; exit 2"
    )
    path = one_node(tmp_path, host, host.user, f"[check:evil]\ncommand = {forged}\n{NOTHING_WRONG}")
    done = clustercheck("run", "-i", path, *ssh_words(host), "-c", "evil,fine", "-v")
    assert done.status == 2
    assert not any(c in done.out for c in "\x1b\x07\u202e")
    assert "fail" in done.out and "pass" in done.out


def test_a_node_that_floods_is_one_unknown(tmp_path: Path, host: Host) -> None:
    host.need_own_root()
    host.run("printf '#!/bin/sh\\nexec yes\\n' >/bin/flood; chmod 755 /bin/flood")
    host.run("sed -i 's,/bin/dash,/bin/flood,' /etc/passwd")
    try:
        path = one_node(tmp_path, host, "dave")
        began = time.monotonic()
        done = clustercheck("run", "-i", path, *ssh_words(host), "-c", "fine", "--format", "json")
        assert time.monotonic() - began < 60
        assert done.status == 3
        (found,) = json.loads(done.out)["nodes"]["node01"]["checks"]["access"]["findings"]
        assert found["code"] == "access.flood" and "MiB" in found["message"]
    finally:
        host.run("sed -i 's,/bin/flood,/bin/dash,' /etc/passwd; rm /bin/flood")


def test_files_are_too_few(tmp_path: Path, fine: Path) -> None:
    """ulimit -n 80 with a hard limit: fewer at a time, said so, and nobody marked for it."""
    lines = "".join(f"n{i:02} ansible_connection=local\n" for i in range(12))
    path = tmp_path / "many.ini"
    path.write_text(lines + NOTHING_WRONG)
    command = f"ulimit -n 80; exec {sys.executable} -m clustercheck run -i {path} -c fine -v"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done
    assert "2 nodes at a time instead of 12: only 80 files may be open here" in done.stdout


def test_no_colour_and_no_progress_where_nobody_looks(fine: Path) -> None:
    done = clustercheck("run", "-i", fine, "-c", "fine", env={"TERM": "xterm-256color"})
    assert "\x1b" not in done.out + done.err
    assert done.err == ""


def test_nodes_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text("".join(f"n{i} ansible_connection=local\n" for i in range(4)) + NOTHING_WRONG)
    done = clustercheck("run", "-i", path, "-c", "fine", "-w", "-", stdin="n1\nn3  # ours\n")
    assert done.out.splitlines()[-1].startswith("2 nodes: 2 pass")


def test_init_never_overwrites(tmp_path: Path) -> None:
    done = clustercheck("init", "-w", "gpu[01-04]", cwd=tmp_path)
    assert done.status == 0 and "inventory.ini" in done.err
    text = (tmp_path / "inventory.ini").read_text()
    assert "gpu[01-04]" in text
    again = clustercheck("init", "-w", "other", cwd=tmp_path)
    assert again.status == 64 and "inventory.ini" in again.err
    assert (tmp_path / "inventory.ini").read_text() == text
    both = clustercheck("init", "--slurm", "--hosts", cwd=tmp_path)
    assert both.status == 64 and "one of" in both.err
