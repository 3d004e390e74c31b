"""What is not needed is not loaded: paramiko alone takes longer to load than most answers."""

import json
import subprocess
import sys
from pathlib import Path

SSH = {"paramiko", "fabric", "invoke", "cryptography"}
METADATA = "importlib.metadata"  # tabulate and paramiko load it for themselves
OTHERS = {"pydantic", "rich", "dns", "ntplib", "psutil", "pynvml", "tabulate", METADATA}

# Words of the command line, and which of these are loaded by them.
LOADED: dict[str, set[str]] = {
    "": set(),
    "--version": set(),
    "--help": set(),
    "run --help": set(),
    "run -c selinux": {"tabulate", METADATA},
    "run -c selinux --format json": set(),
    "run -c selinux -o selinux.denial_hours=12 --timeout 20 --format json -p 22": set(),
    "run -c tmp --format json": {"psutil"},
    "run -w 127.0.0.1 -p 1 -c selinux -F /dev/null --format json": {
        "paramiko",
        "cryptography",
        METADATA,
    },
    "checks": {"tabulate", METADATA},
    "script -c tmp": set(),
}

# It forks for each, and so pays once for what all need; nothing of ours is loaded by then.
TRY = """
import json, os, sys
table, output = json.loads(sys.argv[1]), sys.argv[2]
for number, line in enumerate(table):
    if os.fork():
        os.wait()
        continue
    try:
        import clustercheck
        if line:
            sys.argv = ["clustercheck", *line.split()]
            os.dup2(os.open(f"{output}/{number}.out", os.O_WRONLY | os.O_CREAT), 1)
            from clustercheck.cli import main
            main()
    finally:
        with open(f"{output}/{number}.json", "w") as file:
            json.dump(sorted(sys.modules), file)
        os._exit(0)
"""


def test_a_command_loads_what_it_needs(tmp_path: Path) -> None:
    words = [sys.executable, "-c", TRY, json.dumps(list(LOADED)), str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "Traceback" not in done.stderr
    for number, (line, expected) in enumerate(LOADED.items()):
        modules = set(json.loads((tmp_path / f"{number}.json").read_text()))
        assert modules & (SSH | OTHERS) == expected, line
        assert not line or (tmp_path / f"{number}.out").read_text(), f"{line!r} says nothing"
        checks = {name for name in modules if name.startswith("clustercheck.checks.")}
        if "-c selinux" in line:
            assert checks and all("selinux" in name for name in checks), line
