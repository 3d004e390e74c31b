"""The commands that lead to a report: `run` and `judge`, and `script`, which only shows."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustercheck import planning, render
from clustercheck.answer import Answer
from clustercheck.errors import UsageError, nearest
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.planning import Wanted
from clustercheck.report import NodeResult, Report
from clustercheck.run import Watch
from clustercheck.run import run as run_plan
from clustercheck.script import build
from clustercheck.transport import Transport

WIDTH_WITHOUT_TERMINAL = 100


@dataclass(frozen=True)
class Way:
    """What the command line says about SSH.

    defaults: user, port, key, jump and become, for nodes that say nothing themselves.
    """

    defaults: Mapping[str, str | int]
    ssh_config: Path | None
    known_hosts: Path | None
    host_keys: str
    password: str
    passphrase: str
    connect_timeout: float


@dataclass(frozen=True)
class Limits:
    """What the command line says about limits; 0 leaves one to us, None is no limit. Seconds."""

    parallel: int
    node_seconds: float
    max_seconds: float | None
    heavy_parallel: int


@dataclass(frozen=True)
class Shown:
    """How the report is to be shown, and where."""

    form: str
    output: Path | None
    verbose: int

    def __post_init__(self) -> None:
        if self.form not in render.FORMS:
            hint = nearest(self.form, render.FORMS) or f"; it is one of {', '.join(render.FORMS)}"
            raise UsageError(f"--format: there is no form {self.form!r}{hint}")


def run(wanted: Wanted, way: Way, limits: Limits, shown: Shown, record: Path | None) -> int:
    """Ask, judge, report; the exit code is the report's."""
    from clustercheck.record import Recorder
    from clustercheck.render.progress import Progress

    if way.defaults["become"] not in ("", "sudo"):
        raise UsageError(f"--become: sudo is the only way, not {way.defaults['become']!r}")
    chosen = planning.choose(wanted)
    nodes = planning.with_defaults(chosen.nodes, way.defaults)
    ssh = None if all(node.local for node in nodes) else _ssh(way)
    parallel, note = planning.parallel(limits.parallel, len(nodes))
    bounds = Bounds(
        parallel,
        planning.node_seconds(chosen.checks, limits.node_seconds, way.connect_timeout),
        limits.heavy_parallel,
    )
    plan = planning.plan(chosen, nodes, ssh, bounds, limits.max_seconds)
    recorder = Recorder(record, list(chosen.checks)) if record else None
    stream = Stream(shown)
    with Progress(len(nodes)) as progress:

        def ended(answer: Answer, result: NodeResult) -> None:
            progress.ended(answer.node, result.status)
            if recorder:
                recorder.keep(answer)
            stream.node(result)

        notes = [*([note] if note else []), *(chosen.inventory.notes if shown.verbose else ())]
        report = run_plan(plan, Watch(progress.began, ended, notes))
    if ssh:
        ssh.close()
    stream.report(report)
    return report.exit_code


def judge(directory: Path, wanted: Wanted, shown: Shown) -> int:
    """Judge what `run --record` kept; the exit code is the report's."""
    from clustercheck.record import rejudge

    chosen = planning.choose_all(wanted)
    report = rejudge(directory, chosen.checks, chosen.inventory.options)
    Stream(shown).report(report)
    return report.exit_code


def script_text(wanted: Wanted, become: str, heavy: bool) -> str:
    """What would run on the first of the chosen nodes."""
    chosen = planning.choose(wanted)
    plan = planning.plan(chosen, chosen.nodes, None, Bounds(1, 1), None)
    node = chosen.nodes[0]
    asked = plan.asked(_asked_by_script(node))
    return build(
        plan.frame(), asked, become=become or node.become, peers=plan.peers(node), heavy=heavy
    )


def _asked_by_script(node: Node) -> Node:
    """The node as if it were another: what would be asked by sh, not what this machine may ask
    of itself without."""
    return Node(node.name)


def _ssh(way: Way) -> Transport:
    from clustercheck.transport.settings import SshSettings
    from clustercheck.transport.ssh import Ssh

    if way.host_keys not in ("strict", "accept-new"):
        raise UsageError(f"--host-keys is strict or accept-new, not {way.host_keys!r}")
    return Ssh(
        SshSettings(
            config=(str(way.ssh_config),) if way.ssh_config else None,
            known_hosts=(str(way.known_hosts),) if way.known_hosts else None,
            host_keys="accept-new" if way.host_keys == "accept-new" else "strict",
            connect_timeout=way.connect_timeout,
            password=way.password,
            passphrase=way.passphrase,
        )
    )


class Stream:
    """Standard output or a file; `jsonl` goes out node by node, all else at the end."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._live = shown.form == "jsonl" and shown.output is None

    def node(self, result: NodeResult) -> None:
        """A node is judged."""
        if self._live:
            sys.stdout.write(render.node_line(result))
            sys.stdout.flush()

    def report(self, report: Report) -> None:
        """All is judged."""
        if self._live:
            sys.stdout.write(render.summary_line(report))
        elif self._shown.output is not None:
            from clustercheck.output import write_atomically

            write_atomically(self._shown.output, self._text(report, to_terminal=False))
        else:
            sys.stdout.write(self._text(report, to_terminal=sys.stdout.isatty()))
        sys.stdout.flush()

    def _text(self, report: Report, to_terminal: bool) -> str:
        width = shutil.get_terminal_size().columns if to_terminal else WIDTH_WITHOUT_TERMINAL
        return render.render(
            report,
            self._shown.form,
            width=width,
            colour=render.wants_colour(to_terminal),
            verbose=bool(self._shown.verbose),
        )
