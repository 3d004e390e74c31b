"""Broken and hostile nodes over a real sshd: what is found at each, and what they cost."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import clustercheck, ssh_words
from tests.host import Host, Keys
from tests.hostile.nodes import CHECKS, NODES, prepare

WORDS = ("-c", "fine,tmp,ntp")
CONTROL = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def inventory(path: Path, host: Host, *, good: int, copies: int = 1) -> Path:
    """So many honest nodes and so many copies of each kind of hostile ones, mixed.

    Of a kind that is waited for until its time is over, there is one.
    """
    bad = [
        f"{name}.{copy} user={name}"
        for copy in range(1, copies + 1)
        for name in NODES
        if copy == 1 or not NODES[name].slow
    ]
    fair = [f"good-{number:03} user=alice" for number in range(1, good + 1)]
    mixed = [line for pair in zip(bad, fair, strict=False) for line in pair]
    mixed += bad[len(fair) :] + fair[len(bad) :]
    hosts = [f"{line} host=127.0.0.{1 + i % 250}" for i, line in enumerate(mixed)]
    common = [f"port={host.port}", f"key={host.keys.plain}"]
    path.write_text("\n".join(["[all]", *hosts, "[all:vars]", *common, CHECKS]))
    return path


def findings(report: str) -> dict[str, list[str]]:
    """By node, "status check.code: message" of each finding."""
    nodes: dict[str, Any] = json.loads(report)["nodes"]
    return {
        name: [
            f"{f['status']} {f['code']}: {f['message']}"
            for check in node["checks"].values()
            for f in check["findings"]
        ]
        for name, node in nodes.items()
    }


def not_found(kind: str, found: list[str]) -> list[str]:
    """What should have been found at a node of a kind, and was not."""
    return [
        wanted
        for wanted in NODES[kind].found
        if not any(
            line.startswith(wanted.partition(": ")[0]) and wanted.partition(": ")[2] in line
            for line in found
        )
    ]


def passed_wrongly(kind: str, found: list[str]) -> list[str]:
    """What passes at a node that has not let us find out."""
    node = NODES[kind]
    may = tuple(line.partition(": ")[0] for line in node.found)
    return [
        line
        for line in found
        if line.startswith("pass ") and not node.honest and not line.startswith(may)
    ]


@pytest.fixture(scope="module")
def host(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"), keys, layers=("faketime",))
    prepare(host)
    yield host
    host.close()


@pytest.fixture(scope="module")
def kept(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run over one of each, recorded."""
    folder = tmp_path_factory.mktemp("hostile")
    path = inventory(folder / "inventory.ini", host, good=3)
    words: list[str | Path] = [
        "--record",
        folder / "kept",
        "--format",
        "json",
        "--output",
        folder / "report",
    ]
    done = clustercheck("run", "-i", path, *ssh_words(host), *WORDS, "--timeout", "10", *words)
    assert done.status == 2 and not done.err, done
    return folder


@pytest.fixture(scope="module")
def found(kept: Path) -> dict[str, list[str]]:
    return findings((kept / "report").read_text())


@pytest.mark.parametrize("kind", NODES)
def test_what_is_found_at_a_hostile_node(found: dict[str, list[str]], kind: str) -> None:
    assert not not_found(kind, found[f"{kind}.1"]), found[f"{kind}.1"]
    assert not passed_wrongly(kind, found[f"{kind}.1"])


def test_every_kind_of_node_has_a_remedy_for_what_is_found(kept: Path) -> None:
    nodes = json.loads((kept / "report").read_text())["nodes"]
    for kind in NODES:
        for finding in nodes[f"{kind}.1"]["checks"].get("access", {"findings": []})["findings"]:
            assert finding["status"] == "skip" or finding["remedy"]["text"], (kind, finding)


def test_the_same_is_found_in_the_record(kept: Path) -> None:
    done = clustercheck("judge", kept / "kept", "-i", kept / "inventory.ini", "--format", "json")
    again = findings(done.out)
    live = findings((kept / "report").read_text())
    assert {n: f for n, f in again.items() if f != live[n]} == {}


@pytest.mark.parametrize("form", ["text", "markdown", "jsonl", "csv", "json"])
def test_no_form_of_the_report_carries_what_a_terminal_obeys(kept: Path, form: str) -> None:
    words = ("-i", kept / "inventory.ini", "--format", form)
    done = clustercheck("judge", kept / "kept", *words, "-v")
    assert "31mred" in done.out
    bad = {c for c in done.out.replace("\n", "") if unicodedata.category(c) in CONTROL}
    assert not bad, bad
    if form == "csv":
        cells = {cell for row in csv.reader(io.StringIO(done.out)) for cell in row}
        assert "'=cmd" in cells
        formulas = [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
        assert not [cell for cell in formulas if not re.fullmatch(r"-[0-9.e-]+", cell)]
    if form == "markdown":
        assert "<script>" not in done.out


WATCHED = """
import json, os, sys, threading, time
import psutil
from clustercheck import cli

try:
    cli.main(sys.argv[2:])
except SystemExit as ended:
    status = ended.code
end = time.monotonic() + 20  # a thread may need its moment to see that it is not wanted any more
while threading.active_count() > 1 and time.monotonic() < end:
    time.sleep(0.1)
me = psutil.Process()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")[:-1]]
with open(sys.argv[1], "w") as file:
    json.dump(
        {
            "status": status,
            "peak": int(peak.split()[1]),
            "threads": [t.name for t in threading.enumerate() if t is not threading.main_thread()],
            "children": [str(child) for child in me.children()],
            "sockets": [name for name in left if name.startswith("socket:")],
        },
        file,
    )
"""


@pytest.mark.timeout(240)
def test_two_hundred_among_two_hundred(host: Host, tmp_path: Path) -> None:
    """They cost bounded memory and time, leave nothing behind, and no honest node its verdict."""
    path = inventory(tmp_path / "inventory.ini", host, good=200, copies=6)
    report, cost = tmp_path / "report", tmp_path / "cost"
    words = ["run", "-i", str(path), *ssh_words(host), *WORDS, "--timeout", "20"]
    words += ["--max-time", "200"]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, cost, *words, "--format", "json", "--output", report],
        capture_output=True,
        text=True,
        timeout=220,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert not done.stderr
    told = json.loads(cost.read_text())
    assert told["peak"] < 300 * 1024, told  # KiB
    assert not (told["threads"] or told["children"] or told["sockets"]), told
    all_of_it = json.loads(report.read_text())
    assert not all_of_it["stopped"]
    found = findings(report.read_text())
    assert len(found) > 400
    for name, lines in found.items():
        kind = name.partition(".")[0]
        if kind in NODES:
            # which limit is met first depends on how busy everything is
            gone = any(wanted.startswith("unknown access.") for wanted in NODES[kind].found)
            cut_off = NODES[kind].honest or any(f.startswith("unknown access.") for f in lines)
            assert not gone or cut_off, (name, lines)
            assert gone or not not_found(kind, lines), (name, lines)
            assert not passed_wrongly(kind, lines), (name, lines)
        else:
            assert "pass fine.ok: fine" in lines, (name, lines)
            # how exactly a clock can be read depends on how busy everything is
            unknown = [f for f in lines if f.startswith("unknown ") and "ntp.coarse" not in f]
            assert unknown == [], (name, lines)
    # what was cut off on its way sees so within a second
    look = (
        "ps -eo args | grep '[.]clustercheck-';"
        # who may start no process cannot start rm either: that is for the next run
        " find /dev/shm /tmp -maxdepth 1 -name '.clustercheck-*' ! -user few-processes -ls"
    )
    end = time.monotonic() + 60
    while (left := host.run(f"{{ {look}; }} 2>/dev/null || true")) and time.monotonic() < end:
        time.sleep(0.5)
    assert not left


BY_OPENSSH = (
    *("output-without-end", "errors-without-end", "50-mb-of-bytes", "fact-without-end"),
    *("million-facts", "echo", "escapes", "ends-at-once", "no-sh", "closes-in-mid-answer"),
    *("no-process", "facts-of-others"),
)


def test_the_same_is_found_by_the_systems_own_ssh(host: Host, tmp_path: Path) -> None:
    path = inventory(tmp_path / "inventory.ini", host, good=1)
    names = ",".join(["good-001", *(f"{kind}.1" for kind in BY_OPENSSH)])
    words = ("-w", names, "--ssh", "openssh", "--timeout", "20", "--format", "json")
    done = clustercheck("run", "-i", path, *ssh_words(host), *WORDS, *words)
    found = findings(done.out)
    assert "pass fine.ok: fine" in found["good-001"]
    for kind in BY_OPENSSH:
        assert not not_found(kind, found[f"{kind}.1"]), (kind, found[f"{kind}.1"])
        assert not passed_wrongly(kind, found[f"{kind}.1"])
