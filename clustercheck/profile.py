"""Profiles: named sets of checks and of how strictly they judge, for one kind of work.

The product ships one, `benchmark`. A section `[profile:NAME]` of the inventory makes another, or
changes a shipped one: what it names takes the place of what is shipped.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from clustercheck import __version__
from clustercheck.check import AnyCheck, Finding, Status
from clustercheck.digest import canonical, hash_of
from clustercheck.report import NodeResult, Report
from clustercheck.settings import Layer, Profile, Setting

LISTS = ("checks", "skip", "fail_on")

# What makes the numbers of a benchmark incomparable, though the node would do its work: a clock
# that is off, small packets, a slow file server, GPU memory that is held, processes that were left
# behind, a load, a processor that is held down, no room in /tmp, a node that is unlike the others.
BENCHMARK_CHECKS = (
    *("cpu", "fingerprint", "gpu", "gpu_health", "ib", "link", "memory", "mtu", "nfs", "ntp"),
    *("processes", "tmp"),
)
BENCHMARK_FAILS_ON = (
    *("cpu.*", "gpu.memory", "gpu.hidden", "gpu.stuck", "gpu_health.*", "ib.*"),
    *("link.speed", "link.duplex", "link.differs", "memory.available", "memory.swap"),
    *("mtu.interface", "mtu.below", "mtu.differs", "mtu.path", "mtu.hole", "mtu.router"),
    *("nfs.throughput", "nfs.small_files", "nfs.differs", "ntp.offset", "ntp.spread"),
    *("processes.stuck", "processes.strays", "tmp.space"),
)
# NFS is timed with less than the check's own 1000 MB in 3 s, at the same rate: every node takes
# its turn at the server, and the gate waits.
BENCHMARK_OPTIONS = {
    "cpu": {"busy_percent": "10"},
    "fingerprint": {
        "must": "product, bios, os, kernel*, cmdline, clocksource, cpu.*, memory.*, numa.*, gpu.*,"
        " net.*, firmware.*, ib.*, glibc, version.*, sysctl.*"
    },
    "nfs": {"throughput": "yes", "size_mb": "200", "max_seconds": "0.6"},
}

SHIPPED = "benchmark"


def shipped() -> dict[str, Profile]:
    """The profiles of the product by name."""
    layer = {
        check: {option: Setting(text, f"profile {SHIPPED}") for option, text in options.items()}
        for check, options in BENCHMARK_OPTIONS.items()
    }
    made = Profile(SHIPPED, BENCHMARK_CHECKS, (), BENCHMARK_FAILS_ON, shipped=layer)
    return {SHIPPED: made}


def changed(name: str, lists: Mapping[str, tuple[str, ...]], settings: Layer) -> Profile:
    """A profile of the inventory; of the name of a shipped one, that one with these changes."""
    base = shipped().get(name, Profile(name))
    return replace(
        base,
        checks=lists.get("checks", base.checks),
        skip=lists.get("skip", base.skip),
        fail_on=lists.get("fail_on", base.fail_on),
        settings=settings,
    )


def unfitting(word: str, checks: Mapping[str, AnyCheck], others: Iterable[str]) -> bool:
    """Whether a word of `fail_on` is the name, or a pattern, of no finding.

    others: names of checks whose findings are not known yet, monitoring plug-ins.
    """
    if word.partition(".")[0] in others:
        return False
    known = (f"{name}.{code}" for name, check in checks.items() for code in check.codes)
    return not any(fnmatchcase(one, word) for one in known)


def digest(
    checks: Iterable[str],
    nodes: Sequence[str],
    options_of: Callable[[str, str], Any],
    fail_on: Iterable[str] = (),
) -> str:
    """One number for how these nodes are judged: "sha256:…".

    Of equal profiles it is equal, whatever they are called: it is made of the version, the checks,
    their options as they stand for the nodes, and which warnings count as failures.
    """
    options: dict[str, list[str]] = {}
    for check in sorted(checks):
        distinct = {id(of): of for of in (options_of(check, node) for node in nodes)}
        texts = {canonical(dataclasses.asdict(of)) for of in distinct.values()}
        options[check] = sorted(texts)
    whole = {"version": __version__, "options": options, "fail_on": sorted(set(fail_on))}
    return hash_of(whole)


def strict(result: NodeResult, fail_on: Sequence[str]) -> NodeResult:
    """The result with those warnings as failures."""
    if not fail_on:
        return result
    findings = {
        check: [_strict(check, finding, fail_on) for finding in found]
        for check, found in result.findings.items()
    }
    return NodeResult(result.node, findings, result.seconds)


def strict_report(report: Report, fail_on: Sequence[str]) -> Report:
    """The report with those warnings as failures, on all nodes."""
    if not fail_on:
        return report
    nodes = {name: strict(result, fail_on) for name, result in report.nodes.items()}
    return replace(report, nodes=nodes)


def _strict(check: str, finding: Finding, fail_on: Sequence[str]) -> Finding:
    if finding.status is not Status.WARN:
        return finding
    name = f"{check}.{finding.code}"
    if not any(fnmatchcase(name, word) for word in fail_on):
        return finding
    return replace(finding, status=Status.FAIL)
