#!/usr/bin/env python3
"""The tests of SSH over the oldest libraries that pyproject.toml allows.

    python tools/oldest.py [words for pytest]

Each ">=" of the dependencies is taken at its word, in an environment of its own (.tools/oldest).
Newer libraries warn of what old ones do, so warnings are no errors here.
"""

import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / ".tools/oldest"
TESTS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "jsonschema")


def pinned() -> list[str]:
    """The dependencies, at the oldest version that each may have."""
    text = (PROJECT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    return [one.replace(">=", "==") for one in project["dependencies"]]


def main() -> int:
    python = FOLDER / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, *pinned(), *TESTS], check=True)
    words = sys.argv[1:] or ["tests/transport"]
    command = [str(python), "-m", "pytest", "-n", "4", "-o", "filterwarnings=default", *words]
    return subprocess.run(command, cwd=PROJECT).returncode


if __name__ == "__main__":
    sys.exit(main())
