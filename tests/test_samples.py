"""Every recorded output is kept and read by a test, or listed with the reason why none reads it.

`tests/data/samples.csv` lists them: a new sample is a file and a line. The file's digest is there
so that nobody mends a sample in place of a reader.
"""

import csv
import hashlib
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
DATA = HERE / "data"


class Sample(NamedTuple):
    """name: tool and file, as first recorded. kept: its file below tests/data, or "".

    sha256: the beginning of its digest. not_used: why no test reads it, or "".
    """

    name: str
    kept: str
    sha256: str
    not_used: str


ROWS = list(csv.reader((DATA / "samples.csv").read_text().splitlines()))
SAMPLES = [Sample(*row) for row in ROWS[1:]]
KEPT = [sample for sample in SAMPLES if sample.kept]


def test_the_list_is_complete() -> None:
    assert ROWS[0] == list(Sample._fields)
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES) >= 143
    assert len({sample.name.split("/")[0] for sample in SAMPLES}) >= 28
    assert [s.name for s in SAMPLES if bool(s.kept) == bool(s.not_used)] == []
    listed = {sample.kept for sample in KEPT}
    files = {str(path.relative_to(DATA)) for path in DATA.glob("*/samples/**/*.txt")}
    assert sorted(files - listed) == []


@pytest.mark.parametrize("sample", KEPT, ids=lambda sample: sample.name)
def test_a_sample_is_as_it_was_recorded(sample: Sample) -> None:
    digest = hashlib.sha256((DATA / sample.kept).read_bytes()).hexdigest()
    assert digest.startswith(sample.sha256), "a recorded output is not to be changed"


def test_a_sample_that_is_kept_is_named_by_a_test() -> None:
    texts = [path.read_text() for path in HERE.glob("**/test_*.py")]
    texts += [path.read_text() for path in DATA.glob("*/**/*.csv")]
    unread = [s.name for s in KEPT if not any(w in t for w in words_for(s) for t in texts)]
    assert unread == []


def words_for(sample: Sample) -> list[str]:
    """The file's name as tests write it: whole, or without the tool before it."""
    stem = Path(sample.kept).stem
    return [stem, stem.partition("-")[2] or stem]
