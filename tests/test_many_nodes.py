"""Many nodes at once over a real sshd, by the command line: what the product is for."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Done, clustercheck, ssh_words, write_inventory
from tests.host import Host

HUNG = "node07"
DEAD = "node13"
LIMIT = 10


@pytest.fixture(scope="module")
def inventory(shared_host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """64 nodes: one hangs in a command, at one nothing listens."""
    folder = tmp_path_factory.mktemp("many")
    lines = [f"node{i:02} host=127.0.0.{i + 1}" for i in range(64)]
    lines[13] += " port=1"
    hang = f"{HUNG.replace('node', '127.0.0.').replace('.07', '.8')}"
    rest = (
        "[check:answers]\n"
        f"command = case $SSH_CONNECTION in *' {hang} '*) sleep 300;; esac; echo fine\n"
        f"limit = {LIMIT}\n"
    )
    yield write_inventory(folder / "inventory.ini", shared_host, lines, rest)


def test_sixty_four_nodes_in_one_go(host: Host, inventory: Path) -> None:
    began = time.monotonic()
    # All 64 are this machine: what all checks cost would be 64 times that of a node.
    words = ["-c", "answers,ntp,selinux,tmp", "--format", "json"]
    done = clustercheck("run", "-i", inventory, *ssh_words(host), *words)
    wall = time.monotonic() - began
    assert done.status in (2, 3), done.err
    report = json.loads(done.out)
    assert len(report["nodes"]) == 64
    healthy = [
        node
        for name, node in report["nodes"].items()
        if name not in (HUNG, DEAD)
        and node["checks"].get("access", {"status": "skip"})["status"] == "skip"
    ]
    assert len(healthy) == 62, done.out
    answers = [node["checks"]["answers"] for node in healthy]
    assert [answer for answer in answers if answer["status"] != "pass"] == []
    (hung,) = report["nodes"][HUNG]["checks"]["answers"]["findings"]
    assert hung["code"] == "answers.limit" and hung["status"] == "unknown"
    assert "sleep (process" in hung["message"]
    (dead,) = report["nodes"][DEAD]["checks"]["access"]["findings"]
    assert dead["code"] == "access.refused"
    assert "port 1" in dead["message"]
    assert dead["remedy"]["text"]
    # the hung node's limit, and what the machine needs for the 63 others and to start at all
    slowest = max(node["seconds"] for node in healthy)
    assert wall < slowest + LIMIT + 60


def test_the_table_tells_the_hung_and_the_dead_apart(host: Host, inventory: Path) -> None:
    done = clustercheck("run", "-i", inventory, *ssh_words(host), "-c", "answers")
    assert done.status == 3
    lines = done.out.splitlines()
    (hung,) = (line for line in lines if line.startswith("unknown") and HUNG in line)
    assert "answers" in hung
    (dead,) = (line for line in lines if line.startswith("unknown") and DEAD in line)
    assert "access" in dead
    (passed,) = (line for line in lines if line.startswith("pass"))
    assert "node[00-06,08-12,14-63]" in passed
    assert lines[-1].startswith("64 nodes: 62 pass, 2 unknown; 1 check; ")


def run_on(host: Host, inventory: Path, *words: str) -> Done:
    return clustercheck("run", "-i", inventory, *ssh_words(host), "-c", "answers", *words)


def test_nodes_are_chosen_and_left_out(host: Host, inventory: Path) -> None:
    done = run_on(host, inventory, "-w", "node[00-09]!node07", "-x", "node03")
    assert done.status == 0, done.out
    assert done.out.splitlines()[-1].startswith("8 nodes: 8 pass; ")


def test_recorded_answers_are_judged_again(host: Host, inventory: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ["-w", "node[00-03],node13", "--record", str(kept), "--format", "json"]
    live = json.loads(run_on(host, inventory, *words).out)
    again = clustercheck("judge", kept, "-i", inventory, "--format", "json")
    assert again.status == 3
    judged = json.loads(again.out)
    for name, node in live["nodes"].items():
        assert judged["nodes"][name]["checks"] == node["checks"]
    twice = run_on(host, inventory, *words)
    assert twice.status == 64 and "recorded run already" in twice.err


def test_json_lines_come_one_a_node(host: Host, inventory: Path) -> None:
    done = run_on(host, inventory, "-w", "node[00-03]", "--format", "jsonl")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert sorted(line["node"] for line in lines[:-1]) == [f"node0{i}" for i in range(4)]
    assert lines[-1]["schema"] == "clustercheck.summary/1" and lines[-1]["exit_code"] == 0


def test_an_interrupted_run_reports_what_it_knows(host: Host, inventory: Path) -> None:
    """By --max-time here; signals are in test_cli.py."""
    done = run_on(host, inventory, "--max-time", "2", "-w", "node[00-03,07]", "--format", "json")
    report = json.loads(done.out)
    assert done.status == 3
    (found,) = report["nodes"][HUNG]["checks"]["access"]["findings"]
    assert found["code"] == "access.not_reached"


def test_by_the_systems_ssh(host: Host, inventory: Path) -> None:
    words = ["-w", "node[00-03],node13", "--ssh", "openssh", "--format", "json"]
    report = json.loads(run_on(host, inventory, *words).out)
    for name in ("node00", "node01", "node02", "node03"):
        assert report["nodes"][name]["checks"]["answers"]["status"] == "pass"
    (dead,) = report["nodes"][DEAD]["checks"]["access"]["findings"]
    assert dead["code"] == "access.refused"
    assert "Connection refused" in dead["message"]
