"""`clustercheck cuda`: which drivers and GPUs a CUDA version needs, without any node."""

import pytest

from clustercheck.cuda import page
from clustercheck.errors import UsageError
from tests.command import clustercheck


def test_a_version() -> None:
    said = page("12.4")
    for line in (
        "CUDA 12.4: 12.4 GA, 12.4 Update 1",
        "  550.54.14 or newer runs 12.4 GA by itself",
        "  525.60.13 or newer runs it by minor-version compatibility:",
        "Compatibility package cuda-compat-12-4",
        "  it makes machine code for compute capability 5.0 to 9.0",
        "  Kepler    3.5 to 3.7   no: the last is CUDA 11.8, up to driver 470",
        "  Hopper    9.0          yes; either module",
        "  Blackwell 10.0 to 12.1 only what brings PTX: code from CUDA 12.8 on",
        "  555 to 620  by itself",
        "  550         by itself from 550.54.14 on",
        "  525 to 545  by minor-version compatibility",
    ):
        assert line in said.splitlines(), line
    assert max(len(line) for line in said.splitlines()) <= 79


def test_a_version_that_no_old_driver_runs() -> None:
    said = page("9.2")
    assert "  an older one runs none of its programs\n" in said
    assert "  there is none for this version\n" in said


def test_each_figure_has_its_source() -> None:
    sources = page("13.4").partition("Sources, as of ")[2]
    assert "forward-compatibility.html, R615" in " ".join(sources.split())
    assert "general knowledge, found in no source" in sources


def test_all_versions() -> None:
    lines = page("").splitlines()
    assert lines[0] == "CUDA   driver of its own   of its family   compute capability"
    assert "12.8   570.26              525.60.13       5.0 to 12.0" in lines
    assert "10.2   440.33              -               3.0 to 7.5" in lines


@pytest.mark.parametrize("version", ["8.0", "10.2", "11.8", "12.8.1", "13.0", "13.5"])
def test_every_kind_of_version_has_a_page(version: str) -> None:
    assert page(version).startswith(f"CUDA {version}: ")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("12.7", "before and after it come 12.6 and 12.8; `clustercheck cuda` lists them"),
        ("99.0", "goes from 8.0 to 13.5; `clustercheck cuda` lists them"),
        ("twelve", "'twelve' is no CUDA version; give one such as 12.4"),
        ("12", "'12' is no CUDA version; give one such as 12.4"),
    ],
)
def test_a_version_that_is_not_there(version: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        page(version)


def test_the_command() -> None:
    done = clustercheck("cuda", "13.0")
    assert done.status == 0
    assert done.out == page("13.0")
    wrong = clustercheck("cuda", "13.7")
    assert (wrong.status, wrong.out) == (64, "")
    assert wrong.err.startswith("clustercheck: CUDA 13.7 is not in the table")
    assert len(wrong.err.splitlines()) == 1
