"""Set-up says in one line what is wrong, and CI lets no skip pass that could be avoided."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import fetch
from tools.fetch import PROJECT, CannotFetch


def test_fetching_again_does_nothing(keys: object, capfd: pytest.CaptureFixture[str]) -> None:
    before = {layer: (fetch.TOOLS / layer).stat().st_mtime_ns for layer in os.listdir(fetch.TOOLS)}
    assert fetch.main() == 0
    assert capfd.readouterr() == ("", "")
    after = {layer: (fetch.TOOLS / layer).stat().st_mtime_ns for layer in os.listdir(fetch.TOOLS)}
    assert after == before


def test_without_apt_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "TOOLS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotFetch) as told:
        fetch.fetch()
    assert str(told.value).startswith("install these commands with the machine's package manager:")
    assert " busybox " in str(told.value)


def test_a_package_that_is_not_to_be_had_is_said_with_apts_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("apt-get", "dpkg-deb"):
        (commands / name).write_text("#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
        (commands / name).chmod(0o755)
    monkeypatch.setattr(fetch, "TOOLS", tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{commands}")
    assert fetch.main() == 1
    assert capfd.readouterr().err.endswith(" update failed:\nE: no network\n")
    assert not (tmp_path / "tools" / "root").exists()


def made_up_python(folder: Path, script: str) -> str:
    python = folder / "python9"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return str(python)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("case $2 in *print*) echo 3.9 ;; *) exit 1 ;; esac", "Python 3.10 or newer is needed, "),
        ("case $2 in *print*) echo 3.12 ;; *ensurepip*) exit 1 ;; esac", "has no venv module: "),
    ],
)
def test_a_python_that_will_not_do_is_one_line(tmp_path: Path, script: str, expected: str) -> None:
    project = tmp_path / "a project"
    (project / "tools").mkdir(parents=True)
    shutil.copy(PROJECT / "tools" / "venv.sh", project / "tools")
    commands = tmp_path / "bin"  # without apt-get: or root would install the missing package
    commands.mkdir()
    for name in ("dirname", "id"):
        (commands / name).symlink_to(str(shutil.which(name)))
    environment = {"PATH": str(commands), "PYTHON": made_up_python(tmp_path, script)}
    done = subprocess.run(
        ["/bin/sh", project / "tools" / "venv.sh"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert expected in line
    assert not (project / ".venv").exists()


@pytest.mark.parametrize(("reason", "status"), [("sshd is absent", 1), ("cannot here: no IPv6", 0)])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_ci_fails_for_a_skip_that_could_be_avoided(
    tmp_path: Path, reason: str, status: int, workers: str
) -> None:
    test = tmp_path / "test_skip.py"
    test.write_text(f"import pytest\ndef test(): pytest.skip({reason!r})\ndef test_2(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", f"--rootdir={tmp_path}"]
    environment = {**os.environ, "CI": "true"}
    done = subprocess.run(
        [*command, "-c/dev/null", f"-n{workers}", str(test)],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout
    assert ("the machine could have avoided it" in done.stdout) == bool(status)
    assert "1 passed, 1 skipped" in done.stdout
