"""The commands that lead to a report: `run` and `judge`, and `script`, which only shows."""

import contextlib
import io
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clustercheck import planning, render, silent
from clustercheck.answer import Answer
from clustercheck.check import AnyCheck
from clustercheck.errors import UsageError, nearest
from clustercheck.fanout import Bounds, Workers
from clustercheck.fold import fold
from clustercheck.judging import OptionsOf
from clustercheck.node import Node
from clustercheck.output import check_writable, write_atomically
from clustercheck.planning import Chosen, Wanted
from clustercheck.profile import strict, strict_report
from clustercheck.render.terminal import WIDTH_ELSEWHERE, look
from clustercheck.report import NodeResult, Report
from clustercheck.run import Plan, Watch, workers
from clustercheck.run import run as run_plan
from clustercheck.script import build
from clustercheck.transport import Transport
from clustercheck.wanted import Limits as Limits
from clustercheck.wanted import Way as Way

if TYPE_CHECKING:
    from clustercheck.render.jsonl import Stream as JsonLines


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

    if way.via == "srun":
        wanted = _nodes_of_job(wanted)
    chosen = planning.choose(wanted)
    out = Out(shown)
    names = [node.name for node in chosen.nodes]
    recorder = Recorder(record, list(chosen.checks), names) if record else None
    notes = [text for text in [planning.strangers(chosen, wanted.inventory)] if text]
    notes += chosen.inventory.notes if shown.verbose else ()

    def keep(answer: Answer) -> None:
        if recorder:
            recorder.keep(answer)

    def ended(answer: Answer, result: NodeResult) -> None:
        keep(answer)
        out.node(result)

    watch = Watch(ended=ended, followed=keep, notes=notes)
    report = ask(chosen, way, limits, watch, verbose=bool(shown.verbose))
    if recorder and recorder.trouble:
        notes.append(recorder.trouble)  # the report has this list
    out.report(report)
    return report.exit_code


def ask(
    chosen: Chosen,
    way: Way,
    limits: Limits,
    watch: Watch,
    *,
    options_of: OptionsOf | None = None,
    only: Mapping[str, Collection[str]] | None = None,
    known: Mapping[str, Answer] | None = None,
    verbose: bool = False,
) -> Report:
    """Ask the chosen nodes, with progress where somebody looks, and judge.

    watch: is told of each node, and takes notes; `began` is ours.
    options_of: where the inventory's options are not to be those.
    only, known: as `Plan` has them, where only a part is to be asked.
    """
    from clustercheck.render.progress import Progress

    nodes = planning.with_defaults(chosen.nodes, way.defaults)
    asked = [node for node in nodes if only is None or only.get(node.name)]
    far = [node for node in asked if not node.local]
    node_seconds = planning.node_seconds(chosen.checks, limits.node_seconds, way.connect_timeout)
    by_ssh = bool(far) and way.via == "ssh"
    transport: Transport | None = _ssh(way) if by_ssh else None
    if far and not by_ssh:
        transport = _srun(far, chosen.checks, limits, node_seconds)
    parallel, note = planning.parallel(limits.parallel, len(asked))
    if note:
        watch.notes.insert(0, note)
    bounds = Bounds(
        parallel,
        node_seconds,
        limits.heavy_parallel,
    )
    were_silent = silent.read() if by_ssh else set()
    plan = planning.plan(chosen, nodes, transport, bounds, limits.max_seconds, were_silent)
    if options_of:
        plan = replace(plan, options_of=options_of)
    if only is not None:
        plan = replace(plan, only=only, known=known or {})
    fail_on = chosen.inventory.fail_on
    codes: dict[str, str] = {}
    # Before there is a thread, and Progress has one.
    elsewhere = _elsewhere(plan, limits.processes, len(asked), by_ssh=by_ssh or not far)
    with contextlib.ExitStack() as ends, Progress(sys.stderr) as progress:
        if transport:
            ends.callback(transport.close)
        if elsewhere:
            ends.callback(elsewhere.close)
        if asked and not verbose:  # else the log has the terminal for itself
            progress.start(len(asked))

        def ended(answer: Answer, result: NodeResult) -> None:
            result = strict(result, fail_on)
            progress.ended(answer.node, result.status)
            codes[answer.node] = answer.code
            watch.ended(answer, result)

        watching = replace(watch, began=progress.began, ended=ended)
        report = run_plan(plan, watching, elsewhere)
    if by_ssh:
        silent.write(were_silent, codes)
    return replace(strict_report(report, fail_on), members=chosen.inventory.groups)


def judge(directory: Path, wanted: Wanted, shown: Shown) -> int:
    """Judge what `run --record` kept; the exit code is the report's."""
    from clustercheck.record import rejudge

    chosen = planning.choose_all(wanted)
    report = rejudge(directory, chosen.checks, chosen.inventory.options, chosen.inventory.checks)
    report = replace(report, members=chosen.inventory.groups)
    report = strict_report(report, chosen.inventory.fail_on)
    Out(shown).report(report)
    return report.exit_code


def script_text(wanted: Wanted, become: str, heavy: bool) -> str:
    """What would run on the first of the chosen nodes."""
    chosen = planning.choose(wanted)
    if heavy and not any(check.heavy_probe for check in chosen.checks.values()):
        raise UsageError(
            f"--heavy: nothing is asked in a second step by {', '.join(chosen.checks)}"
        )
    plan = planning.plan(chosen, chosen.nodes, None, Bounds(1, 1), None)
    node = chosen.nodes[0]
    asked = plan.asked(_asked_by_script(node))
    return build(
        plan.frame(),
        asked,
        become=become or node.become,
        peers=plan.peers(node),
        nodes=plan.names,
        step="heavy" if heavy else "light",
    )


def _asked_by_script(node: Node) -> Node:
    """The node as if it were another: what would be asked by sh, not what this machine may ask
    of itself without."""
    return Node(node.name)


def _ssh(way: Way) -> Transport:
    from clustercheck.transport import lean

    lean.load()
    from clustercheck.transport.settings import SshSettings

    settings = SshSettings(
        config=(str(way.ssh_config),) if way.ssh_config else None,
        known_hosts=(str(way.known_hosts),) if way.known_hosts else None,
        host_keys="accept-new" if way.host_keys == "accept-new" else "strict",
        connect_timeout=way.connect_timeout,
        password=way.password,
        passphrase=way.passphrase,
    )
    if way.ssh == "openssh":
        from clustercheck.transport.openssh import OpenSsh

        return OpenSsh(settings)
    from clustercheck.transport.ssh import Ssh

    return Ssh(settings)


def _srun(
    nodes: Sequence[Node], checks: Mapping[str, AnyCheck], limits: Limits, node_seconds: float
) -> Transport:
    """The way by Slurm; nodes outside of our job are allocated for as long as it may take."""
    from clustercheck.transport.slurm import find_places
    from clustercheck.transport.srun import Srun

    # each turn of what loads something shared may be a node's alone
    heavy = sum(check.heavy_limit for check in checks.values() if check.heavy_probe)
    seconds = limits.max_seconds or 3 * node_seconds + len(nodes) * heavy / 10 + 120
    return Srun(find_places(nodes, seconds))


def _elsewhere(plan: Plan, processes: int, nodes: int, *, by_ssh: bool) -> Workers | None:
    if by_ssh:
        return workers(plan, planning.processes(processes, nodes))
    from clustercheck.at_once import AtOnce

    return AtOnce(plan.frame(), plan.bounds, plan.jobs())


def _nodes_of_job(wanted: Wanted) -> Wanted:
    """Where nothing says which nodes, those of the job that we are in."""
    if wanted.nodes is not None or wanted.inventory is not None:
        return wanted
    from clustercheck.transport.slurm_says import SlurmTrouble, job_nodes

    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise UsageError("--via srun outside of a job: say which nodes with -w or -i")
    try:
        return replace(wanted, nodes=fold(job_nodes(job)))
    except SlurmTrouble as trouble:
        raise UsageError(f"--via srun: the nodes of job {job} are not known: {trouble}") from None


class Out:
    """Standard output or a file; JSON lines go out node by node, all else at the end."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._stream: JsonLines | None = None
        if shown.output is not None:
            check_writable(shown.output)
        elif shown.form == "jsonl":
            from clustercheck.render.jsonl import Stream

            self._stream = Stream(_write)

    def node(self, result: NodeResult) -> None:
        """A node is judged."""
        if self._stream:
            self._stream.node(result)

    def report(self, report: Report) -> None:
        """All is judged."""
        if self._stream:
            self._stream.finish(report)
            return
        there = self._shown.output
        width, colour = (WIDTH_ELSEWHERE, False) if there else look(sys.stdout, os.environ)
        text = render.render(
            report,
            self._shown.form,
            width=width,
            colour=colour,
            verbose=bool(self._shown.verbose),
        )
        if not there:
            if self._shown.form in render.UTF8 and isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            _write(text)
            return
        try:
            write_atomically(there, text)
        except UsageError as trouble:  # the disk filled while the nodes were asked
            _write(text)
            raise UsageError(f"{trouble}; the report is on standard output") from None


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
