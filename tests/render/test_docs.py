"""The examples in docs/report.md are what the program prints today."""

import io
from pathlib import Path

from cogapp import Cog  # type: ignore[import-untyped]

from clustercheck.render import FORMS

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def test_the_examples_are_true() -> None:
    text = PAGE.read_text("utf-8")
    made = io.StringIO()
    Cog().process_file(io.StringIO(text), made, str(PAGE))
    assert made.getvalue() == text, "run: cog -r docs/report.md"


def test_every_form_has_its_chapter() -> None:
    chapters = [line[3:] for line in PAGE.read_text("utf-8").splitlines() if line[:3] == "## "]
    assert chapters == list(FORMS)
