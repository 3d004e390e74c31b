"""What nodes say does no harm where it is shown."""

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from clustercheck.render import FORMS, render
from clustercheck.render.escape import cell, markdown, visible
from clustercheck.report import Report

from .example import REPORT
from .made_up import HOSTILE, reports, texts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as it is, §4.1 節", "as it is, §4.1 節"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b31m\x7f\x00", r"\x9b31m\x7f\x00"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("\u200b\ufeff\xa0", r"\u200b\ufeff\xa0"),
        ("\udc80", r"\udc80"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@settings(deadline=None, max_examples=60)
@given(reports())
def test_nothing_reaches_a_terminal_but_text_and_line_feeds(report: Report) -> None:
    for form in FORMS:
        for character in render(report, form).replace("\n", ""):
            assert unicodedata.category(character)[0] != "C", (form, character)
            assert unicodedata.category(character) not in ("Zl", "Zp"), (form, character)


@settings(deadline=None)
@given(texts)
def test_markdown_shows_just_the_text(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(f"- {markdown(text)}x")
    kinds = [token.type for token in tokens]
    assert kinds == [
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
        "inline",
        "paragraph_close",
        "list_item_close",
        "bullet_list_close",
    ]
    (inline,) = [token for token in tokens if token.type == "inline"]
    parts = inline.children or []
    assert {part.type for part in parts} <= {"text", "text_special"}
    assert "".join(part.content for part in parts) == visible(text).strip(" ") + "x"


@settings(deadline=None, max_examples=60)
@given(reports())
def test_no_text_breaks_the_table_of_markdown(report: Report) -> None:
    text = render(report, "markdown")
    cells = 4 if len(report.nodes) > 1 else 3
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert bool(rows) == bool(report.nodes)
    for row in rows:
        assert row.replace("\\\\", "").replace(r"\|", "").count("|") == cells + 1


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_is_a_formula(text: str) -> None:
    assert not cell(text).strip().startswith(tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [("=1+1", "'=1+1"), (" @x", "' @x"), ("\t=1", r"'\t=1"), ("a=1", "a=1"), ("a, b", "a, b")],
)
def test_cell(text: str, shown: str) -> None:
    assert cell(text) == shown


@settings(deadline=None, max_examples=60)
@given(reports())
def test_csv_has_a_row_for_each_finding(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(render(report, "csv")), strict=True))
    count = sum(len(fs) for result in report.nodes.values() for fs in result.findings.values())
    assert len(rows) == count
    assert all(None not in row and None not in row.values() for row in rows)


def test_json_text_can_be_read_by_any_decoder() -> None:
    text = render(REPORT, "json")
    assert text.isascii()
    assert "gpu16" in json.loads(text)["nodes"]
