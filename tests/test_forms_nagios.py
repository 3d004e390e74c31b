"""The form of monitoring plug-ins, read by what reads such plug-ins."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from clustercheck.check import Finding, Quantity, Status, fail, ok, skip, unknown, warn
from clustercheck.render.nagios import MOST, render
from clustercheck.report import NodeResult, Report
from tests.render.example import POWER, REPORT
from tests.render.made_up import reports
from tests.test_plugin import asked, loaded

# As in the Monitoring Plugins' guidelines: 'label'=value[UOM];[warn];[crit];[min];[max]
FIGURE = (
    r"(?:'[^'=]+'|[a-z]+)=-?[0-9.]+(?:e[-+][0-9]+)?(?:s|ms|us|%|B|KB|MB|GB|TB)?(?:;[0-9]*){0,4}"
)


def one(**findings: list[Finding]) -> Report:
    return replace(REPORT, checks=list(findings), nodes={"n1": NodeResult("n1", findings, 1.0)})


def test_the_example() -> None:
    assert render(REPORT).splitlines() == [
        "CLUSTERCHECK CRITICAL - 16 nodes: 4 fail, 1 unknown, 2 warn, 9 pass; ntp.offset, "
        "access.timeout, selinux.at_boot | pass=9;;;0;16 skip=0;;;0;16 warn=2;;;0;16 "
        "unknown=1;;;0;16 fail=4;;;0;16 time=10.400s;;;0;",
        "fail ntp.offset on gpu[03-04,09,11]: the clock is 4.07 s ahead, should be within 1 s "
        "(gpu09; 3 more nodes alike, 1.12 to 4.07 s)",
        "unknown access.timeout on gpu07: no answer from port 22 within 10 s",
        "warn selinux.at_boot on gpu[15-16]: enforcing after the next boot",
    ]


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (one(tmp=[ok("space", "well")]), "CLUSTERCHECK OK - 1 node: 1 pass"),
        (
            one(tmp=[skip("none", "well")]),
            "CLUSTERCHECK UNKNOWN - 1 node: 1 skip; nothing was checked",
        ),
        (
            one(tmp=[warn("space", "x", POWER)]),
            "CLUSTERCHECK WARNING - 1 node: 1 warn; tmp.space",
        ),
        (
            one(tmp=[unknown("space", "x")]),
            "CLUSTERCHECK UNKNOWN - 1 node: 1 unknown; tmp.space",
        ),
        (
            one(a=[fail("x", "y", POWER)], b=[fail("x", "y", POWER)], c=[fail("x", "y", POWER)],
                d=[fail("x", "y", POWER)]),
            "CLUSTERCHECK CRITICAL - 1 node: 1 fail; a.x, b.x, c.x and 1 more",
        ),
        (
            replace(REPORT, nodes={}),
            "CLUSTERCHECK UNKNOWN - 0 nodes: none; nothing was checked",
        ),
    ],
)  # fmt: skip
def test_the_word_is_that_of_the_exit_code(report: Report, first: str) -> None:
    line = render(report).splitlines()[0]
    assert line.partition(" | ")[0] == first


def test_of_one_node_the_values_are_figures() -> None:
    report = one(
        ntp=[ok("offset", "in step", value=Quantity(0.0002, "s"))],
        tmp=[
            ok("space", "room", value=Quantity(61, "%")),
            ok("it's=|", "x", value=Quantity(3, "files"), peer="n2"),
            ok("space", "not told twice", value=Quantity(62, "%")),
            ok("none", "no number", value=Quantity(float("nan"), "%")),
        ],
    )
    figures = render(report).splitlines()[0].partition(" | ")[2]
    assert figures.endswith("'ntp.offset'=0.0002s 'tmp.space'=61% 'tmp.it_s_¦ n2'=3")


def test_what_nagios_would_drop_is_counted() -> None:
    """It reads 8 KiB."""
    findings = {
        f"check{number}": [fail("wrong", f"{'long ' * 30}{number}", POWER)] for number in range(99)
    }
    text = render(one(**findings))
    assert 7_000 < len(text.encode()) < MOST + 100
    last = text.splitlines()[-1]
    shown = sum(line.startswith("fail ") for line in text.splitlines())
    assert last == f"… {99 - shown} more"


@settings(deadline=None, max_examples=25)
@given(reports())
def test_no_text_of_a_node_begins_figures(report: Report) -> None:
    text = render(report)
    assert len(text.encode()) < 8192
    first, *others = text.removesuffix("\n").split("\n")
    assert first.count("|") == 1
    assert not any("|" in line for line in others)
    figures = first.partition(" | ")[2]
    assert re.fullmatch(f"{FIGURE}(?: {FIGURE})*", figures), figures


@pytest.mark.parametrize(
    ("report", "status", "message"),
    [
        (REPORT, Status.FAIL, render(REPORT).partition(" | ")[0]),
        (one(tmp=[ok("space", "well")]), Status.PASS, "CLUSTERCHECK OK - 1 node: 1 pass"),
    ],
)
def test_a_reader_of_plug_ins_takes_it_for_one(
    tmp_path: Path, report: Report, status: Status, message: str
) -> None:
    """The product's own, which runs them as checks; the node count is the first figure."""
    file = tmp_path / "told"
    file.write_text(render(report))
    script = tmp_path / "check_cluster"
    script.write_text(f"#!/bin/sh\ncat {shlex.quote(str(file))}\nexit {report.exit_code}\n")
    script.chmod(0o755)
    answer = asked(*loaded(tmp_path, f"[check:it]\ncommand = '{script}'\n"))
    (found,) = answer.nodes["here"].findings["it"]
    assert (found.status, found.message) == (status, message)
    assert found.value is not None and found.value.number == report.counts[Status.PASS]
