"""Which nodes a gate is about, and all that asking them needs.

What needs the checks or the inventory is loaded where it is used: most gates ask nobody.
"""

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from clustercheck import slurm_nodes
from clustercheck.cache import question
from clustercheck.cached_run import Asking
from clustercheck.errors import UsageError, nearest
from clustercheck.fold import fold
from clustercheck.fold import shorten as short
from clustercheck.nodeset import shorten

if TYPE_CHECKING:
    from clustercheck.answer import Answer as NodeAnswer
    from clustercheck.execute import Limits, Way
    from clustercheck.gate import Asked
    from clustercheck.judging import OptionsOf
    from clustercheck.planning import Chosen, Wanted
    from clustercheck.report import Report
    from clustercheck.run import Watch
    from clustercheck.settings import Inventory

JOB = "SLURM_JOB_NODELIST"
LARGEST_INVENTORY = 64 * 2**20


class Question:
    """Which nodes are meant, and all that asking them needs."""

    def __init__(
        self,
        asked: "Asked",
        wanted: "Wanted",
        way: "Way",
        limits: "Limits",
        answer: slurm_nodes.Answer,
    ) -> None:
        """Raises UsageError where nobody says which nodes are meant, or there is no such partition.

        answer: Slurm's, from a moment ago.
        """
        self.asked, self.way, self.limits, self.answer = asked, way, limits, answer
        self._answers = [answer]
        self.of_slurm: Sequence[str] = ()  # NodeNames, where Slurm names the nodes
        if asked.partition:
            if wanted.nodes is not None:
                raise UsageError("give one of -w and --partition")
            if asked.shrink or asked.requeue is not None:
                raise UsageError("--shrink and --requeue are about the job's nodes, no partition's")
            if not answer.trouble:
                self.of_slurm = nodes_of_partition(answer, asked.partition)
        elif wanted.nodes is None and os.environ.get(JOB):
            self.of_slurm = nodes_of_job(os.environ[JOB])
        elif wanted.nodes is None and wanted.inventory is None:
            raise UsageError(
                "which nodes? Name them with -w, as -w 'gpu[01-16]', or by --partition; in a job of"
                " Slurm it is the job's nodes"
            )
        if wanted.nodes is not None:
            from clustercheck.selection import text_of

            wanted = replace(wanted, nodes=text_of(wanted.nodes, sys.stdin))
        self.wanted = wanted

    def slurm(self) -> slurm_nodes.Answer:
        """What Slurm says: what it has said already, the first time."""
        return self._answers.pop() if self._answers else slurm_nodes.ask()

    def key(self) -> str:
        """Of all that the results depend on, without reading what it means."""
        wanted, way = self.wanted, self.way
        whole = b""
        if wanted.inventory:
            try:
                with wanted.inventory.open("rb") as file:
                    whole = file.read(LARGEST_INVENTORY)
            except (OSError, ValueError):
                whole = b"?"  # `prepare` says what is wrong with it
        parts = (
            *(str(wanted.inventory), repr(wanted.nodes), wanted.exclude, wanted.checks),
            *(wanted.skip, repr(tuple(wanted.options)), wanted.profile),
            *(self.asked.partition, repr(tuple(self.of_slurm)), str(os.geteuid())),
        )
        return question(whole, *parts, words_of(way))

    def prepare(self) -> Asking:
        """Read the inventory and the checks. Raises UsageError and ConfigError."""
        from clustercheck.profile import digest

        chosen, notes = self._chosen()
        self.asked.need_of(len(chosen.nodes))
        profile = chosen.inventory.profile
        names = [node.name for node in chosen.nodes]
        inventory = chosen.inventory
        number = digest(chosen.checks, names, inventory.options, inventory.fail_on)
        more = {"profile": profile.name if profile else "", "digest": number, "notes": notes}
        return Asking(chosen, chosen.inventory.options, self._ask, words_of(self.way), more)

    def _ask(
        self,
        chosen: "Chosen",
        watch: "Watch",
        options_of: "OptionsOf",
        only: Mapping[str, Collection[str]],
        known: "Mapping[str, NodeAnswer]",
    ) -> "Report":
        from clustercheck import execute

        return execute.ask(
            chosen,
            self.way,
            self.limits,
            watch,
            options_of=options_of,
            only=only,
            known=known,
            verbose=bool(self.asked.verbose),
        )

    def _chosen(self) -> tuple["Chosen", list[str]]:
        from clustercheck import planning
        from clustercheck.selection import select

        everything = planning.choose_all(self.wanted)
        inventory, text = everything.inventory, self.wanted.nodes
        if self.of_slurm:
            text = ",".join(_ours(self.of_slurm, inventory, self.answer))
        nodes = select(inventory, text, self.wanted.exclude, sys.stdin)
        chosen = replace(everything, nodes=planning.with_defaults(nodes, self.way.defaults))
        self._refuse_strangers(chosen)
        note = planning.strangers(chosen, self.wanted.inventory)
        return chosen, [note] if note else []

    def _refuse_strangers(self, chosen: "Chosen") -> None:
        """Raise UsageError for names that are neither Slurm's nor the inventory's, of a set that
        is Slurm's or meant to be."""
        hosts = {node.name: node.host for node in chosen.nodes}
        known = slurm_nodes.by_our_names(hosts, self.answer.nodes)
        strangers = [n for n in hosts if n not in known and n not in chosen.inventory.nodes]
        if not strangers or not self.answer.nodes:
            return
        names = [node.name for node in self.answer.nodes]
        hint = nearest(strangers[0], names)
        if known or hint:
            hint = hint or f"; Slurm has {short(fold(names), len(names), 60)}"
            text = f"no node is called {shorten(fold(strangers))}, in Slurm or in the inventory"
            raise UsageError(f"{text}{hint}")


def words_of(way: "Way") -> str:
    """How nodes are reached, without what is secret."""
    defaults = sorted(way.defaults.items())
    return repr((defaults, str(way.ssh_config), str(way.known_hosts), way.ssh, way.via))


def nodes_of_partition(answer: slurm_nodes.Answer, partition: str) -> list[str]:
    """The NodeNames of a partition, in Slurm's order. Raises UsageError."""
    if not answer.nodes:
        missing = not shutil.which("sinfo")
        why = "there is no sinfo on this machine's PATH" if missing else "Slurm has no node"
        raise UsageError(f"--partition {shorten(partition)}: {why}")
    found = [node.name for node in answer.nodes if partition in node.partitions]
    if not found:
        known = sorted({name for node in answer.nodes for name in node.partitions})
        hint = nearest(partition, known) or f"; the partitions are {', '.join(known[:12])}"
        raise UsageError(
            f"--partition: no partition with nodes is called {shorten(partition)}{hint}"
        )
    return found


def nodes_of_job(folded: str) -> list[str]:
    """The NodeNames of a job, from the node set in its environment. Raises UsageError."""
    from clustercheck.nodeset import NodeSetError, check_name, evaluate, expand

    try:
        names = list(evaluate(folded, lambda operand: dict.fromkeys(expand(operand))))
        for name in names:
            check_name(name)
        return names
    except NodeSetError as error:
        raise UsageError(f"${JOB}: {error}") from None


def _ours(names: Sequence[str], inventory: "Inventory", answer: slurm_nodes.Answer) -> list[str]:
    """The inventory's names of Slurm's nodes; a node that it does not have keeps Slurm's."""
    hosts = {name: node.host for name, node in inventory.nodes.items()}
    ours = {node.name: name for name, node in slurm_nodes.by_our_names(hosts, answer.nodes).items()}
    return [ours.get(name, name) for name in names]
