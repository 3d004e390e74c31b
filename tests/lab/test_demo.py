"""What the README shows of the demo is what it says: the same findings on the same nodes."""

import re
import subprocess
import sys

from tools.fetch import PROJECT

ROW = re.compile(r"^(fail|unknown|warn|pass) +([a-z]\S*(?:, \S+)*)  +(node\S+)", re.MULTILINE)


def rows(text: str) -> set[tuple[str, ...]]:
    """Status, check and nodes of each row; measured figures and sentences are left out."""
    return set(ROW.findall(text))


def remedies(text: str) -> set[str]:
    return set(re.findall(r"^  for (\S+ on \S+)", text, re.MULTILINE))


def test_the_demo_is_as_shown(possible: None) -> None:
    command = [sys.executable, "-m", "tests.lab", "demo"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    shown = (PROJECT / "README.md").read_text()
    assert len(rows(shown)) > 10
    # Which of the sound nodes try a path to the faulty one is the run's choice.
    paths = {row for row in rows(shown) | rows(done.stdout) if row[:2] == ("warn", "mtu")}
    paths |= {row for row in rows(shown) | rows(done.stdout) if row[:2] == ("pass", "mtu")}
    assert rows(done.stdout) - paths == rows(shown) - paths
    trouble = {line for line in remedies(shown) | remedies(done.stdout) if "mtu.hole" in line}
    assert remedies(done.stdout) - trouble == remedies(shown) - trouble
    assert done.stdout.rstrip().endswith("$ echo $?\n2")
