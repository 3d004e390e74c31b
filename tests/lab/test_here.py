"""This machine's own faults: no node is blamed for the clock, names or disk of the one who asks."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.planted import HEALTHY
from tests.lab.reports import Report, words
from tests.lab.spec import DOMAIN, NOBODY, address
from tools.fetch import TOOLS

NAMES = [spec.name for spec in HEALTHY]

Done = subprocess.CompletedProcess[str]


def run(lab: Lab, fault: str, *more: str) -> Done:
    """clustercheck in the head, with mounts of its own.

    fault: lines of sh that bring it about.
    more: of the command line; a later inventory takes the place of the laboratory's.
    """
    command = words(lab, "-w", ",".join(NAMES), *more)
    start = command.index("-m") - 1
    script = f"set -eu\n{fault}\nexec {shlex.join(command[start:])}"
    apart = [*command[:start], "unshare", "--mount", "sh", "-c", script]
    return subprocess.run(apart, capture_output=True, text=True, timeout=100)


def nobody_blamed(done: Done) -> Report:
    report = Report(done.stdout, done.returncode)
    assert {name: report.bad(name) for name in NAMES} == {name: [] for name in NAMES}
    return report


def test_its_clock_is_wrong(lab: Lab) -> None:
    """The nodes' true offsets are known all the same."""
    (library,) = (TOOLS / "faketime").rglob("libfaketime.so.1")
    ahead = f"export LD_PRELOAD={shlex.quote(str(library))} FAKETIME=+3s"
    report = nobody_blamed(run(lab, ahead, "-c", "ntp"))
    assert report.status == 0
    (note,) = report.data["notes"]
    assert note.startswith("this machine's own clock is 3.00") and "10.99.0.53" in note


@pytest.fixture
def no_resolver(tmp_path: Path) -> str:
    file = tmp_path / "resolv.conf"
    file.write_text(f"search {DOMAIN}\nnameserver {address(NOBODY)}\n")
    return f"mount --bind {shlex.quote(str(file))} /etc/resolv.conf"


def test_its_resolver_is_dead(lab: Lab, no_resolver: str) -> None:
    """The inventory has the addresses, and the nodes resolve names by servers of their own."""
    report = nobody_blamed(run(lab, no_resolver, "-c", "dns,tmp"))
    assert report.data["notes"] == ["this machine's name server 10.99.0.250 does not answer"]


def test_its_resolver_is_dead_and_the_inventory_has_names(
    lab: Lab, no_resolver: str, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("\n".join(NAMES))
    done = run(lab, no_resolver, "-i", str(inventory), "-c", "tmp")
    report = Report(done.stdout, done.returncode)
    assert report.status == 3
    for name in NAMES:
        (found,) = report.bad(name)
        assert found.brief == "unknown access.no_name"
        assert "name resolution" in found.message
    assert report.data["seconds"] < 30


def filled(folder: Path, room: str) -> str:
    """A disk with some room left at first, and none once clustercheck has begun."""
    there = shlex.quote(str(folder))
    return f"mount -t tmpfs -o size=64k disk {there}\nhead -c {room} /dev/zero >{there}/fill || :"


def test_its_disk_is_full_when_the_report_is_to_be_written(lab: Lab, tmp_path: Path) -> None:
    """The nodes were asked: what they said is not lost."""
    done = run(lab, filled(tmp_path, "64k"), "-c", "tmp", "--output", str(tmp_path / "report"))
    assert done.returncode == 64
    assert done.stderr.count("\n") == 1
    assert "No space left on device; make room or choose another place" in done.stderr
    assert set(json.loads(done.stdout)["nodes"]) == set(NAMES)


def test_its_disk_fills_while_answers_are_recorded(lab: Lab, tmp_path: Path) -> None:
    done = run(lab, filled(tmp_path, "48k"), "--record", str(tmp_path / "kept"))
    report = nobody_blamed(done)
    (note,) = report.data["notes"]
    assert "No space left on device" in note and "were not recorded" in note


def test_its_disk_is_full_before_anything_is_recorded(lab: Lab, tmp_path: Path) -> None:
    done = run(lab, filled(tmp_path, "64k"), "-c", "tmp", "--record", str(tmp_path / "kept"))
    assert done.returncode == 64
    assert "nothing can be recorded there: No space left on device" in done.stderr
