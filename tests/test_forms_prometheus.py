"""Metrics: promtool and Prometheus's own parser read them, whatever nodes say."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from prometheus_client.parser import text_string_to_metric_families

from clustercheck.check import Finding, Quantity, Status, ok
from clustercheck.render.escape import visible
from clustercheck.render.prometheus import render
from clustercheck.report import NodeResult, Report
from tests.command import clustercheck
from tests.render.example import REPORT
from tests.render.made_up import HOSTILE, reports
from tools.fetch import PROJECT, TOOLS, CannotFetch, fetch

pytestmark = pytest.mark.timeout(300)  # promtool may have to be fetched


def samples(report: Report) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus would take in: by name and labels."""
    found = {}
    for family in text_string_to_metric_families(render(report)):
        for sample in family.samples:
            key = (sample.name.removeprefix("clustercheck_"), tuple(sorted(sample.labels.items())))
            assert key not in found, "Prometheus refuses a whole file with a series told twice"
            found[key] = sample.value
    return found


def value(*values: Quantity) -> dict[str, float]:
    """The values of one node, by name and unit."""
    findings = [ok("code", "well", value=one) for one in values]
    report = replace(REPORT, nodes={"n1": NodeResult("n1", {"check": findings})})
    return {
        name + dict(labels).get("unit", ""): number
        for (name, labels), number in samples(report).items()
        if name.startswith("value")
    }


def test_the_example() -> None:
    found = samples(REPORT)
    assert found["run_timestamp_seconds", ()] == REPORT.started.timestamp()
    assert found["run_duration_seconds", ()] == 10.4
    assert found["run_complete", ()] == 1
    assert found["run_exit_code", ()] == 2
    assert found["nodes", (("status", "fail"),)] == 4
    assert found["node_status", (("node", "gpu03"),)] == 4
    assert found["node_duration_seconds", (("node", "gpu07"),)] == 10.02
    assert found["check_status", (("check", "selinux"), ("node", "gpu15"))] == 2
    assert found["check_status", (("check", "ntp"), ("node", "gpu01"))] == 0
    assert found["check_status", (("check", "access"), ("node", "gpu07"))] == 3
    assert ("check_status", (("check", "ntp"), ("node", "gpu07"))) not in found
    labels = (("check", "ntp"), ("code", "offset"), ("node", "gpu09"), ("peer", ""))
    assert found["value_seconds", labels] == 4.07


def test_a_status_that_is_worse_is_a_larger_number() -> None:
    """So that max() over nodes or checks is the worst."""
    nodes = {
        status.value: NodeResult(status.value, {"x": [Finding(status, "code", "said")]})
        for status in Status
    }
    found = samples(replace(REPORT, nodes=nodes))
    numbers = [found["node_status", (("node", status.value),)] for status in sorted(Status)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(Status)


def test_a_run_that_was_stopped_is_not_complete() -> None:
    assert samples(replace(REPORT, stopped="interrupted"))["run_complete", ()] == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Quantity(96.9, "%")], {"value_ratio": 0.969}),
        ([Quantity(10, "ms")], {"value_seconds": 0.01}),
        ([Quantity(112.5, "MB/s")], {"value_bytes_per_second": 112_500_000}),
        ([Quantity(100, "Gb/s")], {"value_bytes_per_second": 12_500_000_000}),
        ([Quantity(512, "B")], {"value_bytes": 512}),
        ([Quantity(3, "processes")], {"valueprocesses": 3}),
        ([Quantity(3, "")], {"value": 3}),
        ([Quantity(5, "GB")], {"valueGB": 5}),
        ([Quantity(float("nan"), "s"), Quantity(float("inf"), "s")], {}),
        ([Quantity(-3, "s"), Quantity(2, "s")], {"value_seconds": -3}),
        ([Quantity(70, "%", True), Quantity(20, "%", True)], {"value_ratio": 0.2}),
        ([Quantity(1, "s"), Quantity(2, "B")], {"value_seconds": 1, "value_bytes": 2}),
    ],
)
def test_values_are_in_base_units_and_of_several_the_worst_is_told(
    values: list[Quantity], expected: dict[str, float]
) -> None:
    assert value(*values) == expected


@settings(deadline=None, max_examples=25)
@given(reports())
def test_prometheus_reads_whatever_nodes_say(report: Report) -> None:
    found = samples(report)
    nodes = {dict(labels)["node"] for name, labels in found if name == "node_status"}
    assert nodes == {visible(node) for node in report.nodes}


def promtool(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    try:
        fetch("promtool")
    except CannotFetch as why:
        pytest.skip(str(why))
    path = os.pathsep.join([str(TOOLS / "promtool/usr/bin"), os.environ["PATH"]])
    return subprocess.run(
        ["promtool", *words],
        input=given,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )


def test_promtool_has_nothing_to_say_against_it() -> None:
    found = {}
    for text in HOSTILE:
        finding = Finding(Status.PASS, text, text, None, text, Quantity(1, text))
        found[text] = NodeResult(text, {"x": [finding]})
    for report in (REPORT, replace(REPORT, nodes=found)):
        done = promtool("check", "metrics", given=render(report))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_page_of_metrics_has_them_all_and_its_rules_are_sound(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "metrics.md").read_text("utf-8")
    findings = [ok("a", "x", value=Quantity(1, unit)) for unit in ("s", "%", "B", "MB/s", "files")]
    report = replace(REPORT, nodes={"n1": NodeResult("n1", {"check": findings}, 1.0)})
    made = {family.name for family in text_string_to_metric_families(render(report))}
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `clustercheck_")]
    told = set()
    for row in rows:
        first, *others = re.findall(r"`([a-z_]+)`", row)
        told |= {first, *(first.replace("_seconds", other) for other in others)}
    assert told == made
    (rules,) = re.findall(r"```yaml\n(groups:\n.*?)```", page, re.DOTALL)
    file = tmp_path / "rules.yml"
    file.write_text(rules)
    done = promtool("check", "rules", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert set(re.findall(r"clustercheck_[a-z_]+", rules)) <= made


def test_a_run_leaves_its_metrics_for_the_collector(tmp_path: Path) -> None:
    file = tmp_path / "clustercheck.prom"
    done = clustercheck("run", "-c", "tmp", "--format", "prometheus", "--output", str(file))
    assert (done.out, done.err) == ("", "")
    assert f"clustercheck_run_exit_code {done.status:.1f}\n" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["clustercheck.prom"]
