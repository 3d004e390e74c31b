"""The laboratory itself: it ends with whoever made it, and it cannot harm the machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.host import Keys
from tests.lab import faults
from tests.lab.cluster import DidNotComeUp, Lab
from tests.lab.ending import end, remove
from tests.lab.planted import HEALTHY
from tests.lab.reports import Report, checked, words
from tests.lab.spec import Spec

MAKER = """
import sys, time
from pathlib import Path
from tests.host import Keys
from tests.lab import faults
from tests.lab.cluster import Lab
from tests.lab.spec import healthy
folder, stays = Path(sys.argv[1]), sys.argv[2] == "stays"
keys = Keys(*(Path(path) for path in sys.argv[3:]))
lab = Lab(folder, keys, healthy(1), stays=stays)
print(lab.head, flush=True)
time.sleep(1000)
"""


def crashed_maker(folder: Path, keys: Keys, stays: str) -> int:
    """The head of a laboratory whose maker was killed."""
    folder.mkdir()
    given = [str(key) for key in (keys.plain, keys.locked, keys.stranger, keys.host)]
    command = [sys.executable, "-c", MAKER, str(folder), stays, *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout
        head = int(maker.stdout.readline())
        maker.send_signal(signal.SIGKILL)
    return head


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"


def gone(pid: int, within: float = 30) -> bool:
    deadline = time.monotonic() + within
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not lives(pid)


def test_it_ends_when_its_maker_crashes(possible: None, keys: Keys, tmp_path: Path) -> None:
    assert gone(crashed_maker(tmp_path / "lab", keys, "ends"))


def test_one_that_stays_is_taken_away_afterwards(
    possible: None, keys: Keys, tmp_path: Path
) -> None:
    folder = tmp_path / "lab"
    head = crashed_maker(folder, keys, "stays")
    assert lives(head)
    assert remove(folder)
    assert gone(head)
    assert not folder.exists()
    assert not remove(folder)


def test_a_process_id_used_again_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()} 1\n")
    assert not end(tmp_path)


def test_a_node_that_does_not_come_up_is_named(possible: None, keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(DidNotComeUp, match=r"^wrong: .*not-there"):
        Lab(tmp_path, keys, [Spec("wrong", before="not-there")])


@pytest.mark.parametrize("command", ["date -s '1 hour'", "echo 1 >/proc/sys/vm/swappiness"])
def test_the_machines_clock_and_kernel_are_out_of_reach(lab: Lab, command: str) -> None:
    for run in (lab.run_in_head, lambda script: lab.run("node01", script)):
        with pytest.raises(RuntimeError, match="not permitted|Read-only|annot create"):
            run(command)


def test_there_is_no_way_out(lab: Lab) -> None:
    for run in (lab.run_in_head, lambda script: lab.run("node01", script)):
        assert run("ip route show default; ip -6 route show default") == ""


def test_a_cable_pulled_in_the_middle_of_a_run(lab: Lab) -> None:
    """The node is unknown with the cause, and the others are judged."""
    names = [*(spec.name for spec in HEALTHY), "slow"]
    command = words(lab, "-w", ",".join(names), "-c", "tmp", "--timeout", "80")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lab.run("slow", f"until pgrep -f '{faults.HANGS}' >/dev/null; do sleep 0.05; done")
            lab.unplug("slow")
            out, _ = process.communicate(timeout=100)
        finally:
            lab.plug("slow")
            process.kill()
    report = Report(out, process.returncode)
    assert [found.brief for found in report.bad("slow")] == ["unknown access.cut"]
    assert report.blamed() == {"slow"}
    assert report.status == 3


def test_one_cpu_under_load(lab: Lab) -> None:
    """Five programs want the node's only CPU: its answers come later, and are the same."""
    pin = 'taskset -cp {} "$(cat /run/sshd.pid)" >/dev/null'
    lab.run("node03", pin.format(0))
    spin = ["taskset", "-c", "0", "timeout", "90", "sh", "-c", "while :; do :; done"]
    load = [subprocess.Popen(lab.in_node("node03", spin)) for _ in range(5)]
    try:
        report = checked(lab, ["node02", "node03"])
    finally:
        for process in load:
            process.terminate()
            process.wait()
        lab.run("node03", pin.format("0-127"))
    assert {name: report.bad(name) for name in report.nodes} == {"node02": [], "node03": []}


def test_a_host_key_that_changed(lab: Lab) -> None:
    lab.run(
        "rekeyed",
        "rm /etc/ssh/host_key; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/host_key\n"
        'kill -HUP "$(cat /run/sshd.pid)"; sleep 0.5',
    )
    report = checked(lab, ["node01", "rekeyed"], "-c", "tmp")
    assert [found.brief for found in report.bad("rekeyed")] == ["unknown access.host_key_changed"]
    assert report.blamed() == {"rekeyed"}
