"""JSON and JSON lines, held to the published schema."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from clustercheck.check import Quantity, fail, ok
from clustercheck.render import render
from clustercheck.render.escape import sound
from clustercheck.render.json import SCHEMAS, schema
from clustercheck.render.jsonl import Stream
from clustercheck.report import NodeResult, Report

from .example import MODE, REPORT
from .made_up import reports

VALIDATOR = jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def loads(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text, parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode()  # no lone surrogate
    return found


@pytest.mark.parametrize("of", SCHEMAS)
def test_the_schema_is_one(of: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(of))


@settings(deadline=None, max_examples=150)
@given(reports())
def test_every_report_fits_the_schema(report: Report) -> None:
    found = loads(render(report, "json"))
    VALIDATOR.validate(found)
    assert found["exit_code"] == report.exit_code
    names = [sound(name) for name in report.nodes]
    assert list(found["nodes"]) == names
    *nodes, summary = [loads(line) for line in render(report, "jsonl").splitlines()]
    for line in (*nodes, summary):
        VALIDATOR.validate(line)
    assert [line["node"] for line in nodes] == names
    assert all({"schema", "node"} | set(found["nodes"][n["node"]]) == set(n) for n in nodes)
    assert {**summary, "schema": "", "nodes": {}} == {**found, "schema": "", "nodes": {}}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.update(more=1),
        lambda r: r.pop("exit_code"),
        lambda r: r["nodes"]["gpu03"].update(status="error"),
        lambda r: r["nodes"]["gpu03"]["checks"]["ntp"].update(findings=[]),
        lambda r: r["nodes"]["gpu03"]["checks"]["ntp"]["findings"][0].update(code="offset"),
        lambda r: r["groups"][0].update(status="pass"),
        lambda r: r.update(schema="clustercheck.node/1"),
    ],
)
def test_the_schema_notices_drift(spoil: Any) -> None:
    found = loads(render(REPORT, "json"))
    VALIDATOR.validate(found)
    spoil(found)
    assert not VALIDATOR.is_valid(found)


@pytest.mark.parametrize("of", SCHEMAS)
def test_every_key_is_described(of: str) -> None:
    kinds = schema(of)["$defs"]
    for name, kind in kinds.items():
        assert kind["description"], name
        for key, value in kind.get("properties", {}).items():
            assert value.get("description") or {"const", "$ref"} & set(value), f"{name}.{key}"


def test_what_a_program_reads() -> None:
    found = loads(render(REPORT, "json"))
    assert found["schema"] == "clustercheck.report/1"
    assert found["started"] == "2026-03-01T02:30:00.000+00:00"
    assert found["exit_code"] == 2
    assert found["counts"] == {"pass": 9, "skip": 0, "warn": 2, "unknown": 1, "fail": 4}
    assert found["nodes"]["gpu09"]["checks"]["ntp"] == {
        "status": "fail",
        "findings": [
            {
                "status": "fail",
                "code": "ntp.offset",
                "message": "the clock is 4.07 s ahead, should be within 1 s",
                "value": {"number": 4.07, "unit": "s"},
                "remedy": {
                    "text": "Let chronyd step the clock with `chronyc makestep`, then look at "
                    "`chronyc sources`.",
                    "see": "§4.1.1",
                    "disturbs": True,
                },
            }
        ],
    }
    worst = found["groups"][0]
    assert (worst["code"], worst["node"], worst["messages"], worst["nodeset"]) == (
        "ntp.offset",
        "gpu09",
        4,
        "gpu[03-04,09,11]",
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_left_out(number: float) -> None:
    finding = ok("rate", "no rate", value=Quantity(number, "MB/s"))
    report = Report(REPORT.started, number, ["nfs"], {"n": NodeResult("n", {"nfs": [finding]})})
    found = loads(render(report, "json"))
    assert found["seconds"] is None
    assert "value" not in found["nodes"]["n"]["checks"]["nfs"]["findings"][0]


def test_a_node_that_only_differs_from_others_is_told_again() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    first = NodeResult("n1", {"ntp": [ok("a", "fine")]}, 1.0)
    stream.node(first)
    stream.node(NodeResult("n2", {"ntp": [ok("a", "fine")]}, 1.0))
    later = NodeResult("n1", {"ntp": [ok("a", "fine"), fail("odd", "unlike others", MODE)]}, 1.0)
    nodes = {"n1": later, "n2": NodeResult("n2", {"ntp": [ok("a", "fine")]}, 1.0)}
    stream.finish(Report(REPORT.started, 2.0, ["ntp"], nodes))
    told = [(loads(line).get("node"), loads(line).get("status")) for line in lines]
    assert told == [("n1", "pass"), ("n2", "pass"), ("n1", "fail"), (None, None)]
    assert loads(lines[-1])["schema"] == "clustercheck.summary/1"
