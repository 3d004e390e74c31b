"""The check processes: made-up processes by the real probe, and what is judged of them."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.made_up import MadeUpNode, judged
from tests.processes_node import KERNEL_THREAD, owned, process
from tests.this_machine import SHELLS, facts_here, shell_words

NO_ZOMBIE = "pass zombies: none is dead and not collected"
NO_STRAY = "pass strays: no user has a process here without a job"
STEP = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0"
SESSION = "0::/user.slice/user-1001.slice/session-3.scope"


def meanwhile(node: MadeUpNode, what: str) -> None:
    """What happens on the node between the two looks, which takes no time here."""
    node.command("sleep", f'case $1 in 2) {what} ;; *) exec /bin/sleep "$@" ;; esac')


@pytest.fixture
def node(tmp_path: Path) -> MadeUpNode:
    made = MadeUpNode(tmp_path)
    meanwhile(made, ":")
    made.file("/proc/uptime", "90000.10 1.00\n")
    process(made, 1, "systemd", parent=0, wait="ep_poll")
    process(made, 2, "kthreadd", parent=0, flags=KERNEL_THREAD)
    return made


def said(node: MadeUpNode, shell: str = "sh", **options: Any) -> list[str]:
    return judged("processes", node.probe("processes", shell=shell, **options), **options)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_sound_node(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    process(node, 70, "kworker/u8:1 (x) D", parent=2, state="D", flags=KERNEL_THREAD)
    process(node, 812, "a) D 1 (b", parent=1)
    assert said(node, shell) == [
        "pass stuck: nothing of 4 is stuck in the kernel (state D)",
        NO_ZOMBIE,
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_case_099_a_process_that_waits_for_a_file_server(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    process(node, 41022, "python3", state="D", wait="rpc_wait_bit_killable")
    owned(node, p41022=1001)
    assert said(node, shell)[0] == (
        "warn stuck: 1 stuck in the kernel (state D) for 2 s and more: python3 (41022 of uid 1001)"
        " waits for an NFS server (rpc_wait_bit_killable)"
    )


@pytest.mark.parametrize(
    ("command", "wait", "words"),
    [
        ("tar", "nfs_wait_bit_killable", "waits for an NFS server (nfs_wait_bit_killable)"),
        ("vasp_std", "io_schedule", "waits for a disk (io_schedule)"),
        ("python3", "_nv042348rm", "waits for the GPU's driver (_nv042348rm)"),
        ("cp", "ptlrpc_set_wait", "waits for a Lustre server (ptlrpc_set_wait)"),
        ("a b", "something_new", "waits in something_new"),
    ],
)
def test_case_099_more_of_its_kind(node: MadeUpNode, command: str, wait: str, words: str) -> None:
    process(node, 733, command, state="D", wait=wait)
    owned(node, p733=1002)
    assert said(node)[0] == (
        "warn stuck: 1 stuck in the kernel (state D) for 2 s and more:"
        f" {command} (733 of uid 1002) {words}"
    )


def test_one_that_was_killed_and_cannot_end(node: MadeUpNode) -> None:
    process(node, 733, state="D", wait="rpc_wait_bit_killable", waiting="0000000000000100")
    owned(node, p733=1002)
    assert said(node)[0].endswith(
        "waits for an NFS server (rpc_wait_bit_killable), and cannot be ended though it was killed"
    )


def test_one_that_runs_meanwhile_is_not_stuck(node: MadeUpNode) -> None:
    process(node, 733, state="D", wait="io_schedule")
    status = node.root / "proc/733/status"
    meanwhile(node, f"sed -i 's/^\\(voluntary.*\\)150/\\1151/' '{status}'")
    assert said(node)[0] == "pass stuck: nothing of 3 is stuck in the kernel (state D)"


def test_one_that_is_gone_meanwhile_is_not_stuck(node: MadeUpNode) -> None:
    process(node, 733, state="D", wait="io_schedule")
    process(node, 734, state="Z")
    meanwhile(node, f"rm -r '{node.root}/proc/733' '{node.root}/proc/734'")
    assert said(node) == ["pass stuck: nothing of 4 is stuck in the kernel (state D)", NO_ZOMBIE]


@pytest.mark.parametrize("wait", ["__refrigerator", "do_freezer_trap", "wait_for_vfork_done"])
def test_what_waits_by_design(node: MadeUpNode, wait: str) -> None:
    process(node, 733, state="D", wait=wait)
    assert said(node)[0].startswith("pass stuck")


def test_what_only_root_is_told(node: MadeUpNode) -> None:
    node.command("id", "echo 1000")
    process(node, 733, state="D", wait="0")
    owned(node, p733=1002)
    told = node.told("processes")
    assert told.wanted_root
    assert judged("processes", told.facts)[0].endswith(
        "python3 (733 of uid 1002) waits on what, only root is told"
    )


def test_many_that_are_stuck(node: MadeUpNode) -> None:
    for pid in range(1000, 1060):
        process(node, pid, state="D", wait="nfs4_wait")
    found = said(node)[0]
    assert found.startswith("warn stuck: 40 stuck in the kernel (state D) for 2 s and more: ")
    assert found.endswith("; and 35 more; 60 wait in all")


def test_dead_ones_are_told_with_their_parent(node: MadeUpNode) -> None:
    process(node, 500, "bad server")
    for pid in range(600, 625):
        process(node, pid, "worker", parent=500, state="Z")
    process(node, 700, "sh", parent=1, state="Z")
    assert said(node)[1] == (
        "warn zombies: 26 are dead and not collected by their parents: 25 of bad server (500;"
        " worker), 1 of systemd (1; sh); should be 20 at most"
    )
    assert said(node, zombies=26)[1] == (
        "pass zombies: 26 dead and not collected: 25 of bad server (500; worker), 1 of systemd (1;"
        " sh)"
    )


def test_hidepid(node: MadeUpNode) -> None:
    (node.root / "proc/1/stat").unlink()
    node.command("id", "echo 1000")
    told = node.told("processes")
    assert told.wanted_root
    assert judged("processes", told.facts) == [
        "unknown hidden: only what the login user runs can be seen (/proc hides the rest: hidepid)"
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="cannot here: only root sees what hidepid hides")
def test_hidepid_and_root(node: MadeUpNode) -> None:
    (node.root / "proc/1/stat").unlink()
    assert said(node)[0].startswith("pass stuck: nothing of 1 is stuck")


def test_no_proc(tmp_path: Path) -> None:
    made = MadeUpNode(tmp_path)
    made.command("id", "echo 1000")
    assert judged("processes", made.told("processes").facts) == [
        "unknown hidden: no process can be seen in /proc"
    ]


def slurm_node(node: MadeUpNode) -> None:
    process(node, 300, "slurmd")
    process(node, 310, "sshd")


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_user_without_a_job_left_behind(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    slurm_node(node)
    process(node, 5001, "python3", groups=SESSION)
    process(node, 5002, "a b", groups="0::/system.slice/slurmd.service", started=7200000)
    process(node, 5003, "tmux", groups=SESSION)
    owned(node, p5001=1001, p5002=1001, p5003=1002)
    found = said(node, shell)
    assert len(found) == 3 and found[2].startswith(
        "warn strays: left by users without a job here: "
    )
    for words in ("python3 (5001, 25.0 h old)", "a b (5002, 5.0 h old)", "uid 1002: tmux (5003"):
        assert words in found[2]


@pytest.mark.parametrize(
    ("groups", "uid", "parent", "started"),
    [
        (STEP, 1001, 1, 100),  # of a job
        ("9:memory:/slurm/uid_1001/job_77/step_0", 1001, 1, 100),
        ("0::/user.slice/user-1001.slice/user@1001.service/init.scope", 1001, 1, 100),
        ("0::/system.slice/grafana.service", 1001, 1, 100),  # a service
        ("0::/system.slice/docker-0123456789ab.scope", 1001, 1, 100),
        ("0::/machine.slice/libpod-0123.scope/container", 1001, 1, 100),
        (SESSION, 998, 1, 100),  # a user of the system
        (SESSION, 65534, 1, 100),
        (SESSION, 61200, 1, 100),
        (SESSION, 1001, 310, 100),  # a login
        (SESSION, 1001, 1, 8900000),  # of this moment
    ],
)
def test_what_is_no_stray(
    node: MadeUpNode, groups: str, uid: int, parent: int, started: int
) -> None:
    slurm_node(node)
    process(node, 5001, groups=groups, parent=parent, started=started)
    owned(node, p5001=uid)
    assert said(node)[2] == NO_STRAY


def test_a_user_with_a_job_may_have_more_than_its_processes(node: MadeUpNode) -> None:
    slurm_node(node)
    process(node, 400, "slurmstepd", groups=STEP)
    process(node, 401, "bash", parent=400, groups=STEP)
    process(node, 5001, groups=SESSION)
    process(node, 5002, groups=SESSION)
    owned(node, p401=1001, p5001=1001, p5002=1002)
    found = said(node)[2]
    assert "uid 1002: python3 (5002" in found and "1001" not in found


def test_where_users_without_a_job_are_looked_for(node: MadeUpNode) -> None:
    process(node, 5001, groups=SESSION)
    owned(node, p5001=1001)
    assert len(said(node)) == 2  # no slurmd
    assert said(node, strays="always")[2].startswith("warn strays: left by users without a job")
    slurm_node(node)
    assert len(said(node, strays="never")) == 2


def test_a_real_process_that_nobody_collects() -> None:
    child = subprocess.Popen(["sh", "-c", "exit 0"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        facts = facts_here("processes")
    finally:
        child.wait()
    assert f"{child.pid} {os.getpid()} " in facts["zombies"]


def test_a_real_process_that_is_stopped_is_not_stuck() -> None:
    child = subprocess.Popen(["sleep", "60"])
    child.send_signal(signal.SIGSTOP)
    try:
        time.sleep(0.1)
        facts = facts_here("processes")
    finally:
        child.kill()
        child.wait()
    assert f"{child.pid} " not in facts["stuck"]
