"""The report as metrics in the text form of Prometheus, for node_exporter's textfile collector."""

import math
from collections.abc import Iterator
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from clustercheck import __version__
from clustercheck.check import Quantity, Status
from clustercheck.render.escape import visible
from clustercheck.report import Report, each

# The unit of a finding's value -> the base unit in the metric's name, and what one is in it. Not so
# KB, MB and GB of other people's plug-ins, of which some mean 1000 and some 1024.
BASE = {
    "s": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
    "us": ("seconds", 1e-6),
    "%": ("ratio", 0.01),
    "B": ("bytes", 1.0),
    "MB/s": ("bytes_per_second", 1e6),
    "Mb/s": ("bytes_per_second", 1e6 / 8),
    "Gb/s": ("bytes_per_second", 1e9 / 8),
}

_STATUSES = ", ".join(f"{status.place} {status.value}" for status in Status)


def render(report: Report) -> str:
    """All metrics, each with its help and type. What is no finite number is left out."""
    registry = CollectorRegistry()
    registry.register(_Metrics(report))
    return generate_latest(registry).decode()


class _Metrics(Collector):
    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[GaugeMetricFamily]:
        report = self._report
        yield _one("build_info", "What wrote this.", 1, version=__version__)
        yield _one("run_timestamp_seconds", "When the run began.", report.started.timestamp())
        yield _one("run_duration_seconds", "How long the whole run took.", report.seconds)
        yield _one("run_complete", "1, or 0 where the run was stopped early.", not report.stopped)
        yield _one("run_exit_code", "What the run ended with.", report.exit_code)
        nodes = _family("nodes", "Nodes by their worst finding.", "status")
        for status, count in report.counts.items():
            _add(nodes, count, status.value)
        yield nodes
        node_status = _family("node_status", f"A node's worst finding: {_STATUSES}.", "node")
        seconds = _family("node_duration_seconds", "How long a node took.", "node")
        status_of = _family(
            "check_status", f"The worst finding of a check on a node: {_STATUSES}.", "node", "check"
        )
        for name, result in report.nodes.items():
            _add(node_status, result.status.place, name)
            if result.seconds is not None:
                _add(seconds, result.seconds, name)
            for check in result.findings:
                _add(status_of, result.status_of(check).place, name, check)
        yield from (node_status, seconds, status_of, *self._values())

    def _values(self) -> Iterator[GaugeMetricFamily]:
        """The values, a metric for each base unit; of several alike, the worst."""
        worst: dict[str, dict[tuple[str, ...], Quantity]] = {}
        for node, check, finding in each(self._report):
            value = finding.value
            if value is None or not math.isfinite(value.number):
                continue
            labels: tuple[str, ...] = (node, check, finding.code, finding.peer)
            base, factor = BASE.get(value.unit, ("", 1.0))
            labels = labels if base else (*labels, value.unit)
            number = float(f"{value.number * factor:.12g}")  # 96.9 % are 0.969 and no more
            value = Quantity(number, base, value.less_is_worse)
            known = worst.setdefault(base, {})
            if labels not in known or _badness(value) > _badness(known[labels]):
                known[labels] = value
        for base, values in sorted(worst.items(), reverse=True):
            text = "What a check measured"
            names = ["node", "check", "code", "peer"]
            if base:
                family = _family(f"value_{base}", f"{text}, in {_words(base)}.", *names)
            else:
                family = _family(
                    "value", f"{text}, in the unit that a label tells.", *names, "unit"
                )
            for labels, value in values.items():
                _add(family, value.number, *labels)
            yield family


def _words(base: str) -> str:
    return "parts of one" if base == "ratio" else base.replace("_", " ")


def _badness(value: Quantity) -> float:
    return -value.number if value.less_is_worse else abs(value.number)


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"clustercheck_{name}", text, labels=labels)


def _one(name: str, text: str, number: float, **labels: str) -> GaugeMetricFamily:
    family = _family(name, text, *labels)
    if math.isfinite(number):
        _add(family, number, *labels.values())
    return family


def _add(family: GaugeMetricFamily, number: float, *labels: str) -> None:
    named: Any = [visible(label) for label in labels]
    family.add_metric(named, float(number))
