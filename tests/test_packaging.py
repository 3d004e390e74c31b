"""What is published has all that is needed, and one top-level name."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import clustercheck
from clustercheck import registry
from tools.fetch import PROJECT

# Made by tools here, and no part of what is published.
NOT_OURS = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel that was made of it.

    Made of a copy, for setuptools leaves things lying about; without isolation, since that would
    download setuptools and tests should not need the network.
    """
    source = tmp_path_factory.mktemp("source") / "clustercheck"
    shutil.copytree(PROJECT, source, ignore=NOT_OURS)
    target = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return target


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [wheel] = built.glob("*.whl")
    return wheel


def test_the_wheel_has_every_file_of_the_package_and_one_top_level_name(wheel: Path) -> None:
    ours = {
        str(Path(to) / file.relative_to(PROJECT / folder))
        for folder, to in (("clustercheck", "clustercheck"), ("checks", "clustercheck/checks"))
        for file in (PROJECT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    info = f"clustercheck-{clustercheck.__version__}.dist-info/"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if not name.startswith(info)} == ours
    assert "clustercheck/py.typed" in ours


def test_the_wheel_says_how_it_is_called_and_licensed(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [metadata] = (name for name in archive.namelist() if name.endswith("/METADATA"))
    [points] = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    told = archive.read(metadata).decode()
    assert "\nLicense-Expression: Apache-2.0\n" in told
    assert "\nRequires-Python: >=3.10\n" in told
    assert "clustercheck = clustercheck.cli:main" in archive.read(points).decode()


def test_an_installed_wheel_works_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "an environment"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    # The dependencies are ours, named by path alone: so our editable clustercheck stays unseen.
    [site] = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(elsewhere)}

    def told(*words: str) -> str:
        command = [str(home / "bin" / "clustercheck"), *words]
        done = subprocess.run(
            command, cwd=elsewhere, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    where = [python, "-c", "import clustercheck; print(clustercheck.__file__)"]
    assert str(home) in subprocess.run(where, cwd=elsewhere, capture_output=True, text=True).stdout
    assert clustercheck.__version__ in told("--version")
    assert set(registry.load()) <= set(told("checks").split())
