"""Situations that people reported against tools that do this job, each asked by a whole run."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clustercheck.render.text import render
from tests.cases.driver import (
    FOLDER,
    ask,
    lines_of,
    make,
    read_case,
    status_of,
    trouble,
    way_by_ssh,
    worst_of,
)
from tests.made_up import CHECKS
from tests.shells import shell_words

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


SLURM = FOLDER.parent / "data" / "slurm" / "cases"  # forms that the tests of slurm have as well


class Asked(NamedTuple):
    """A case's row of a verdicts.csv with one entry of the asked.toml beside it."""

    row: dict[str, str]
    files: tuple[Path, ...]
    entry: dict[str, Any]

    @property
    def words(self) -> str:
        more = ["busybox"] if self.entry.get("busybox") else []
        return "-".join([self.row["case"], *self.entry.get("options", []), *more])


def cases_of(folder: Path, inputs: Path) -> list[Asked]:
    found = []
    entries = tomllib.loads((folder / "asked.toml").read_text())
    rows = list(csv.DictReader((folder / "verdicts.csv").read_text().splitlines()))
    for row in rows:
        name = f"{row['case']}.txt"
        places = (inputs / row["file"], folder / "forms" / name, SLURM / name)
        files = tuple(file for file in places if file.exists())
        for entry in entries.pop(row["case"], [{"checks": []}]):
            found.append(Asked(row, files, entry))
    assert not entries, f"no case is called {', '.join(entries)}"
    return found


# 106 is of the number of nodes, and has a test of its own below
PUBLIC = [case for case in cases_of(FOLDER, FOLDER / "inputs") if case.row["case"] != "106"]
MORE = cases_of(FOLDER / "more", FOLDER / "more")


def reasons(case: Asked, folder: Path) -> list[str]:
    """What is not as the verdict says, in words."""
    row, entry = case.row, case.entry
    began = time.monotonic()
    read = read_case(*case.files)
    if "copies" in entry:
        (made_up,) = read.nodes.values()
        read.nodes = {f"node{i:02}": made_up for i in range(1, entry["copies"] + 1)}
    report = ask(
        read,
        folder,
        entry["checks"],
        entry.get("options", ()),
        user=entry.get("user", 0),
        become=entry.get("become", ""),
        busybox=shell_words("busybox sh")[0] if entry.get("busybox") else "",
        way=way_by_ssh(read, folder) if entry.get("ssh") else None,
    )
    seconds = time.monotonic() - began
    codes = entry.get("codes", ())
    wrong = []
    wanted = entry.get("status", row["expected"])
    status = worst_of(report, codes)
    if status not in wanted.split("|"):
        wrong.append(f"{status}, should be {wanted}")
    for node, expected in entry.get("nodes", {}).items():
        if (status := status_of(report, node, codes)) not in expected.split("|"):
            wrong.append(f"{node} is {status}, should be {expected}")
    table = render(report, width=200, colour=False, verbose=False)
    lines = [*lines_of(report), *(["", table] if len(report.nodes) > 1 else [])]
    text = "\n".join(lines)
    # what is wrong must be said where it is said to be wrong
    place = text if "mention" in entry or "PASS" in wanted else "\n".join(trouble(report))
    for word in entry.get("mention", [re.escape(w) for w in _words(row["must_mention"])]):
        if not re.search(word, place, re.MULTILINE):
            wrong.append(f"{word!r} is not mentioned")
    for word in entry.get("never", [re.escape(w) for w in _words(row["must_not"])]):
        if match := re.search(word, text, re.MULTILINE):
            wrong.append(f"{match[0]!r} is said")
    if seconds > entry.get("seconds", 60):
        wrong.append(f"it took {seconds:.1f} s")
    for status in ("crashed", "not_answered"):
        if f".{status}:" in text:
            wrong.append(f"a check is {status}")
    not_recorded = [f"{p.parent.name}: {p.read_text()}" for p in folder.glob("*/not-recorded")]
    return [*wrong, *lines, *not_recorded] if wrong else []


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(";") if word.strip()]


def params(cases: list[Asked]) -> list[Any]:
    """Each case; one that is not right yet is to say so itself once it is."""
    return [
        pytest.param(case, id=case.words, marks=[pytest.mark.xfail(strict=True, reason=why)])
        if (why := _not_yet(case))
        else pytest.param(case, id=case.words)
        for case in cases
    ]


def _not_yet(case: Asked) -> str:
    missing = [name for name in case.entry["checks"] if name not in CHECKS]
    if missing:
        return f"no check is called {', '.join(missing)}"
    return str(case.entry.get("not_yet", "" if case.entry["checks"] else "no check is asked"))


@pytest.mark.parametrize("case", params(PUBLIC))
def test_case(case: Asked, tmp_path: Path) -> None:
    wrong = reasons(case, tmp_path)
    assert not wrong, "\n".join(wrong)


# An ssh that runs nothing, and answers as a node whose plug-in is content.
FAKE_SSH = r"""#!/bin/sh
while read -r line; do
    case $line in cc_mark=*) mark=${line#cc_mark=} && break ;; esac
done
mark=${mark%% *}
sleep 0.2
printf '%s\n' "$mark - begin 0 boot host" "$mark answers = status 0" "$mark answers = output ok" \
    "$mark answers = stderr " "$mark answers ! whole" "$mark answers ! end 0" "$mark - done"
"""


def test_case_106_more_nodes_than_files_may_be_open(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text(FAKE_SSH)
    (tmp_path / "ssh").chmod(0o755)
    path = tmp_path / "inventory.ini"
    path.write_text("n[0001-1500]\n[check:answers]\ncommand = echo ok\n")
    words = f"run -i {path} -c answers --ssh openssh -F /dev/null --parallel 1024 --format json"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 1024; exec {sys.executable} -m clustercheck {words}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    nodes = json.loads(done.stdout)["nodes"]
    assert len(nodes) == 1500
    assert {node["status"] for node in nodes.values()} == {"pass"}
    assert "only 1024 files may be open" in done.stdout + done.stderr


@pytest.mark.parametrize("case", params(MORE))
def test_more_of_the_kind(case: Asked, tmp_path: Path) -> None:
    wrong = reasons(case, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_a_wrong_verdict_would_be_seen(tmp_path: Path) -> None:
    case = next(case for case in PUBLIC if case.row["case"] == "045")
    for number, changed in enumerate(
        ({"expected": "PASS"}, {"must_mention": "no such words"}, {"must_not": "192.0.2.16"}, {})
    ):
        wrong = case._replace(row={**case.row, **changed})
        assert bool(reasons(wrong, tmp_path / str(number))) == bool(changed), changed


def test_a_made_up_program_knows_what_was_recorded_and_nothing_else(tmp_path: Path) -> None:
    case = tmp_path / "case.txt"
    case.write_bytes(
        b"@command tell --me 'a  b'\n@rc 3\n@stdout\n\xe9\n@end\n@stderr\nwhy\n@end\n"
        b"@command tell *end\n@host other\n@rc 0\n@command gone\n@rc 127\n@stderr\n"
        b"sh: gone: not found\n@end\n"
    )
    read = read_case(case)
    make(read.nodes["other"], tmp_path / "other")
    programs = tmp_path / "other" / "bin"

    def run(*words: str) -> tuple[int, bytes, bytes]:
        path = {"PATH": str(programs)}
        done = subprocess.run([programs / words[0], *words[1:]], capture_output=True, env=path)
        return done.returncode, done.stdout, done.stderr

    assert run("tell", "--me", "a  b") == (3, b"\xe9\n", b"why\n")
    assert run("tell", "the", "end") == (0, b"", b"")
    assert run("tell", "--you")[0] == 2
    assert not (programs / "gone").exists() and not (programs / "python3").exists()
