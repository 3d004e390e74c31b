"""What needs no SSH does not load it: loading paramiko takes longer than most answers."""

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {"paramiko", "fabric", "invoke", "cryptography"}
TRY = f"""
import sys
sys.argv = ["clustercheck", *sys.argv[1:]]
try:
    import clustercheck
    if sys.argv[1:]:
        from clustercheck.cli import main
        main()
finally:
    print("loaded:", *{SLOW!r} & set(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    ["", "--version", "--help", "checks", "run -c tmp"],
    ids=lambda words: words or "import",
)
def test_no_ssh_is_loaded(words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRY, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stderr.splitlines()[-1] == "loaded:", done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or not words


def test_a_run_over_ssh_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    words = ["run", "-w", "127.0.0.1", "-p", "1", "-c", "tmp", "-F", "/dev/null"]
    code = TRY.replace(repr(SLOW), repr({"paramiko", "fabric", "invoke"}))
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stderr.splitlines()[-1] == "loaded: paramiko", done.stderr
