"""The report that docs/report.md shows in every form."""

from datetime import datetime, timezone

from clustercheck.check import Finding, Quantity, Remedy, fail, ok, skip, unknown, warn
from clustercheck.render import render
from clustercheck.report import NodeResult, Report

STEP = Remedy(
    "Let chronyd step the clock with `chronyc makestep`, then look at `chronyc sources`.",
    "§4.1.1",
    disturbs=True,
)
MODE = Remedy(
    "Set SELINUX=permissive in /etc/selinux/config; it holds from the next boot.", "§4.1.5"
)
POWER = Remedy("Look at the node's power and console.")

WELL: dict[str, list[Finding]] = {
    "ntp": [ok("synchronised", "synchronised to 10.0.0.1", value=Quantity(0.0002, "s"))],
    "selinux": [ok("mode", "SELinux is permissive")],
    "tmp": [ok("space", "61 % of /tmp is free", value=Quantity(61, "%", less_is_worse=True))],
}


def _fast(seconds: float) -> Finding:
    message = f"the clock is {seconds:.2f} s ahead, should be within 1 s"
    return fail("offset", message, STEP, value=Quantity(seconds, "s"))


def _nodes() -> dict[str, dict[str, list[Finding]]]:
    nodes = {f"gpu{number:02}": dict(WELL) for number in range(1, 17)}
    for node, seconds in {"gpu03": 1.31, "gpu04": 1.12, "gpu09": 4.07, "gpu11": 1.5}.items():
        nodes[node]["ntp"] = [_fast(seconds)]
    nodes["gpu07"] = {"access": [unknown("timeout", "no answer from port 22 within 10 s", POWER)]}
    for node in ("gpu15", "gpu16"):
        nodes[node]["selinux"] = [warn("at_boot", "enforcing after the next boot", MODE)]
    nodes["gpu16"]["tmp"] = [skip("needs_root", "not looked at: needs root")]
    return nodes


REPORT = Report(
    started=datetime(2026, 3, 1, 2, 30, tzinfo=timezone.utc),
    seconds=10.4,
    checks=["ntp", "selinux", "tmp"],
    nodes={
        node: NodeResult(node, findings, 10.02 if node == "gpu07" else 1.25)
        for node, findings in _nodes().items()
    },
    notes=["gpu16 is checked without root: sudo asks for a password there."],
)


def shown(form: str, *, lines: int = 0, longest: int = 0) -> str:
    """The example in a form; cut to `lines` lines of `longest` characters where they are given."""
    text = render(REPORT, form, width=80).rstrip("\n")
    kept = text.split("\n")[: lines or None]
    if longest:
        kept = [line if len(line) <= longest else line[: longest - 1] + "…" for line in kept]
    return "\n".join(kept)
