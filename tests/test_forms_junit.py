"""JUnit XML, held against what its readers ask for.

There is no standard. The rules below are those of the schema of Jenkins's xUnit plug-in (junit-10:
which elements and attributes may stand where, and what a time looks like) and of GitLab's page on
unit test reports (a test is known by its class's name and its own together).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from clustercheck.check import Finding, Status, fail, ok, skip, unknown, warn
from clustercheck.render.junit import render
from clustercheck.report import NodeResult, Report
from tests.render.example import MODE, POWER, REPORT, STEP
from tests.render.made_up import reports

# Element -> what may be in it, the attributes that it must have, and those that it may have.
RULES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"testcase", "properties", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file"},
    ),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name"},
        {"time", "classname"},
    ),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}
TIME = re.compile(r"[0-9]+(\.[0-9]+)?")


def faults(root: ElementTree.Element) -> Iterator[str]:
    """What a reader would find wrong with the document."""
    if root.tag != "testsuites":
        yield f"the root is {root.tag}"
    for element in root.iter():
        children, must, may = RULES[element.tag]
        yield from (f"{c.tag} in {element.tag}" for c in element if c.tag not in children)
        yield from (f"{element.tag} lacks {name}" for name in must - set(element.attrib))
        yield from (f"{element.tag} has {name}" for name in set(element.attrib) - must - may)
        if not TIME.fullmatch(element.get("time", "0")):
            yield f"time {element.get('time')}"
        if children and (element.text or "").strip():
            yield f"text in {element.tag}"
    for suite in root:
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            if int(suite.get(name, "-1")) != len(suite.findall(f"testcase/{tag}")):
                yield f"{name} are counted wrongly"
        if int(suite.get("tests", "-1")) != len(suite):
            yield "tests are counted wrongly"
    keys = [(test.get("classname"), test.get("name")) for test in root.iter("testcase")]
    if len(set(keys)) != len(keys):
        yield "two tests have one name"


def inside(*findings: Finding) -> list[str]:
    """What stands in the test of one check."""
    report = replace(REPORT, nodes={"n1": NodeResult("n1", {"x": list(findings)}, 1.0)})
    (test,) = ElementTree.fromstring(render(report)).iter("testcase")
    return [f"{part.tag} {part.attrib} {part.text}" for part in test]


def test_the_example() -> None:
    root = ElementTree.fromstring(render(REPORT))
    assert list(faults(root)) == []
    assert root.attrib == {
        "name": "clustercheck",
        "tests": "46",
        "failures": "6",
        "errors": "1",
        "time": "10.400",
    }
    (suite,) = (suite for suite in root if suite.get("name") == "gpu07")
    assert suite.attrib == {
        "name": "gpu07",
        "tests": "1",
        "failures": "0",
        "errors": "1",
        "skipped": "0",
        "time": "10.020",
        "timestamp": "2026-03-01T02:30:00",
        "hostname": "gpu07",
    }


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ([ok("a", "well")], ["system-out {} pass x.a: well"]),
        ([skip("a", "no GPU")], ["skipped {'message': 'no GPU'} None"]),
        (
            [warn("a", "later", MODE._replace(see=""))],
            ["failure {'message': 'later', 'type': 'warn'} warn x.a: later\n"
             f"  what to do: {MODE.text}"],
        ),
        (
            [unknown("a", "no answer")],
            ["error {'message': 'no answer', 'type': 'unknown'} unknown x.a: no answer"],
        ),
        (
            [ok("a", "well"), warn("b", "so so", POWER), fail("c", "bad", STEP)],
            ["failure {'message': 'bad', 'type': 'fail'} fail x.c: bad\n"
             f"  what to do: {STEP.text} (field notes §4.1.1)\n"
             "warn x.b: so so\n"
             f"  what to do: {POWER.text}\n"
             "pass x.a: well"],
        ),
        (
            [ok("a", "well"), skip("b", "not looked at: needs root")],
            ["system-out {} skip x.b: not looked at: needs root\npass x.a: well"],
        ),
    ],
    ids=["pass", "skip", "warn", "unknown", "several", "skipped in part"],
)  # fmt: skip
def test_only_what_passes_passes(findings: list[Finding], told: list[str]) -> None:
    assert inside(*findings) == told


@settings(deadline=None, max_examples=25)
@given(reports())
def test_readers_take_whatever_nodes_say(report: Report) -> None:
    root = ElementTree.fromstring(render(report).encode())
    assert [fault for fault in faults(root) if "one name" not in fault] == []
    assert len(root) == len(report.nodes)
    wrong = {Status.FAIL, Status.UNKNOWN, Status.WARN}
    for suite, result in zip(root, report.nodes.values(), strict=True):
        red = [
            test
            for test in suite
            if test.find("failure") is not None or test.find("error") is not None
        ]
        assert bool(red) == (result.status in wrong)
