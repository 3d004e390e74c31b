"""A report of 10,000 nodes and 10 checks is there in a few seconds."""

import random
import time

import pytest

from clustercheck.check import Finding, Quantity, fail, ok, unknown
from clustercheck.render import render
from clustercheck.report import NodeResult, Report

from .example import MODE, REPORT, STEP

NODES, CHECKS = 10_000, 10


def _finding(dice: random.Random) -> Finding:
    number = dice.random()
    if number < 0.95:
        return ok("offset", "in step", value=Quantity(number, "s"))
    if number < 0.99:
        return fail("offset", f"{number:.6f} s ahead", STEP, value=Quantity(number, "s"))
    return unknown("limit", "the probe did not end within 10 s", MODE)


@pytest.fixture(scope="module")
def large() -> Report:
    dice = random.Random(1)
    checks = [f"check{number}" for number in range(CHECKS)]
    nodes = {
        name: NodeResult(name, {check: [_finding(dice)] for check in checks}, dice.random())
        for name in (f"r{number // 100}n{number % 100:02}" for number in range(NODES))
    }
    return Report(REPORT.started, 60.0, checks, nodes)


@pytest.mark.parametrize(("form", "lines"), [("text", 300), ("json", NODES + 20)])
def test_a_large_report(large: Report, form: str, lines: int) -> None:
    began = time.process_time()
    text = render(large, form)
    # 2 s on an idle machine of 2026; what grows with the square of the nodes takes minutes.
    assert time.process_time() - began < 20
    assert len(text.splitlines()) <= lines
    assert "r99n99" in text or form == "text"
