"""The report as JUnit XML, which GitLab, Jenkins and others show as the results of tests.

A node is a suite and a check on it a test. JUnit knows no warning: a test passes only where the
check does, so a warning is a failure whose type says "warn"; what could not be found out is an
error.
"""

import math
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from clustercheck.check import Finding, Status
from clustercheck.render.escape import visible
from clustercheck.report import NodeResult, Report

# What stands for a status in a test; one that passed has nothing.
TAGS = {
    Status.SKIP: "skipped",
    Status.WARN: "failure",
    Status.UNKNOWN: "error",
    Status.FAIL: "failure",
}


def render(report: Report) -> str:
    """The whole document."""
    suites = [_suite(result, report) for result in report.nodes.values()]
    root = ElementTree.Element(
        "testsuites",
        {"name": "clustercheck", **_totals(suites), "time": _seconds(report.seconds)},
    )
    root.extend(suites)
    return _document(root)


def suite(name: str, tests: Sequence[tuple[str, str, str, str]]) -> str:
    """A document of one suite.

    tests: of each its class, its name, "failure" or "error" or "" where it passes, and why.
    """
    tags = [tag for _, _, tag, _ in tests]
    root = ElementTree.Element(
        "testsuite",
        {
            "name": name,
            "tests": str(len(tests)),
            "failures": str(tags.count("failure")),
            "errors": str(tags.count("error")),
        },
    )
    for of, test, tag, why in tests:
        one = ElementTree.SubElement(
            root, "testcase", {"classname": visible(of), "name": visible(test)}
        )
        if tag:
            ElementTree.SubElement(one, tag, {"message": visible(why)})
    return _document(root)


def _document(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(result: NodeResult, report: Report) -> ElementTree.Element:
    tests = [_test(result.node, check, found) for check, found in result.findings.items()]
    tags = [child.tag for test in tests for child in test]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": visible(result.node),
            "tests": str(len(tests)),
            "failures": str(tags.count("failure")),
            "errors": str(tags.count("error")),
            "skipped": str(tags.count("skipped")),
            "time": _seconds(result.seconds),
            "timestamp": report.started.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": visible(result.node),
        },
    )
    suite.extend(tests)
    return suite


def _totals(suites: Sequence[ElementTree.Element]) -> dict[str, str]:
    names = ("tests", "failures", "errors")
    return {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in names}


def _test(node: str, check: str, findings: Sequence[Finding]) -> ElementTree.Element:
    """What is wrong stands in it, or why it was skipped; what is well in its output."""
    ranked = sorted(findings, key=lambda finding: finding.status, reverse=True)
    statuses = {finding.status for finding in findings}
    status = max(statuses - {Status.SKIP}, default=Status.SKIP)
    test = ElementTree.Element(
        "testcase", {"classname": visible(node), "name": visible(check), "time": "0"}
    )
    told = [finding for finding in ranked if finding.status is status]
    if tag := TAGS.get(status):
        attributes = {"message": visible(told[0].message)}
        if status is not Status.SKIP:
            attributes["type"] = status.value
        one = ElementTree.SubElement(test, tag, attributes)
        if status is not Status.SKIP:
            one.text = "\n".join(line for finding in ranked for line in _lines(check, finding))
        return test
    out = ElementTree.SubElement(test, "system-out")
    out.text = "\n".join(line for finding in ranked for line in _lines(check, finding))
    return test


def _lines(check: str, finding: Finding) -> Iterator[str]:
    peer = f" (peer {finding.peer})" if finding.peer else ""
    yield visible(f"{finding.status.value} {check}.{finding.code}: {finding.message}{peer}")
    if finding.remedy:
        see = f" (field notes {finding.remedy.see})" if finding.remedy.see else ""
        yield visible(f"  what to do: {finding.remedy.text}{see}")


def _seconds(seconds: float | None) -> str:
    return f"{seconds:.3f}" if seconds is not None and math.isfinite(seconds) else "0"
