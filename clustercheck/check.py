"""The contract between a check and the rest: read this first.

A check is a value of type `Check` called `CHECK` in a file of its own below `checks/`. The file's
name is the check's name. It says what to ask a node (`probe`), what is tolerated (`options`) and
what the answers mean (`judge`). It registers nothing and imports nothing else of ours.
"""

import dataclasses
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Status(Enum):
    """What was found out, from best to worst. UNKNOWN is never PASS.

    place: 0 for the best.
    """

    PASS = "pass"
    SKIP = "skip"
    WARN = "warn"
    UNKNOWN = "unknown"
    FAIL = "fail"

    def __init__(self, word: str) -> None:
        self.place = len(type(self).__members__)

    # Statuses are compared and counted for every finding of every node: what Enum and
    # functools.total_ordering offer for this is most of the time that judging takes.
    __hash__ = object.__hash__

    def __lt__(self, other: "Status") -> bool:
        return self.place < other.place

    def __gt__(self, other: "Status") -> bool:
        return self.place > other.place

    def __le__(self, other: "Status") -> bool:
        return self.place <= other.place

    def __ge__(self, other: "Status") -> bool:
        return self.place >= other.place


class Remedy(NamedTuple):
    """What to do about a finding.

    text: whole sentences, the right step first.
    see: the section of the field notes, "§4.1.1"; "" where the notes say nothing about it.
    disturbs: the step may disturb work that runs on the node (a restart, a reset, a new mode).
    """

    text: str
    see: str = ""
    disturbs: bool = False


class Quantity(NamedTuple):
    """A measured number and its unit ("s", "%", "MB/s", "B"), for history and metrics.

    less_is_worse: of several nodes the smallest is worst (free space, a rate); otherwise the one
        furthest from 0 is.
    """

    number: float
    unit: str
    less_is_worse: bool = False


@dataclass(frozen=True)
class Finding:
    """One thing that is so on one node. Made by `ok`, `skip`, `unknown`, `warn` and `fail` only.

    code: stable word, unique within its check; reports show it as "ntp.offset".
    message: what is and what should be, with units; no node, check or status word in it.
    peer: the other node where a pair is judged.
    """

    status: Status
    code: str
    message: str
    remedy: Remedy | None = None
    peer: str = ""
    value: Quantity | None = None


def ok(code: str, message: str, *, peer: str = "", value: Quantity | None = None) -> Finding:
    """As it should be."""
    return Finding(Status.PASS, code, message, None, peer, value)


def skip(code: str, message: str, *, peer: str = "") -> Finding:
    """Does not apply to this node."""
    return Finding(Status.SKIP, code, message, None, peer)


def unknown(code: str, message: str, remedy: Remedy | None = None, *, peer: str = "") -> Finding:
    """Could not be found out; the message is the cause."""
    return Finding(Status.UNKNOWN, code, message, remedy, peer)


def warn(
    code: str, message: str, remedy: Remedy, *, peer: str = "", value: Quantity | None = None
) -> Finding:
    """Not as it should be, and work still gets done."""
    return Finding(Status.WARN, code, message, remedy, peer, value)


def fail(
    code: str, message: str, remedy: Remedy, *, peer: str = "", value: Quantity | None = None
) -> Finding:
    """Not as it should be: no work should be sent there."""
    return Finding(Status.FAIL, code, message, remedy, peer, value)


class MissingFact(KeyError):  # so that facts.get("x", "") gives its default
    """The probe did not report a fact that the judge needs: the finding is UNKNOWN."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"the probe did not report {self.key!r}"


class Facts(UserDict[str, str]):
    """What was seen on one node: text by key. A fact about a pair has the key "name@peer"."""

    def __missing__(self, key: str) -> str:
        raise MissingFact(key)

    def at(self, name: str) -> dict[str, str]:
        """The facts called `name`, by peer: {"node02": "9000"} for the fact "mtu@node02"."""
        start = name + "@"
        return {k.removeprefix(start): v for k, v in self.items() if k.startswith(start)}


class Code(NamedTuple):
    """What a finding's code means, and every remedy that may come with it, for `explain`."""

    meaning: str
    remedies: tuple[Remedy, ...] = ()


class Target(NamedTuple):
    """Another node as a check needs it: its name, and the address and port it is reached by.

    port: 0 where the inventory says none.
    """

    name: str
    host: str
    port: int = 0


PEERS_AT_MOST = 12

# What makes a result that was kept (`clustercheck gate`) stale. boot: the node has booted since, or
# its slurmd has started. time: it is older than is asked for. use: a job or a user was there since.
Stale = Literal["boot", "time", "use"]

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")
ValueT = TypeVar("ValueT")


def option(default: ValueT, text: str, *, unit: str = "") -> ValueT:
    """A field of a check's options: its default is the product's, `text` says what it is for.

    unit: what the number counts ("s", "%", "MB/s"), shown by `explain` and the example inventory.
    """
    metadata = {"text": text, "unit": unit}
    value: ValueT = field(default=default, metadata=metadata)
    return value


@dataclass(frozen=True)
class NoOptions:
    """For a check that has nothing to set."""


@dataclass(frozen=True, kw_only=True)
class Check(Generic[OptionsT]):
    """A check as a value.

    title: what is looked at, in a few words.
    options: an instance; its values are the defaults and thresholds.
    judge: facts and options to findings. Pure: no clock, no environment, no I/O.
    codes: every code that judge and compare may give, with meaning and remedies.
    probe: POSIX sh, run on each node in a session of its own under the prelude (`fact`, `within`,
        `as_root`, `$ROOT`, …: see prelude.sh).
    probe_options: names of options that the probe reads, as shell variables of the same name (a
        tuple is joined by line feeds, true is 1, false is empty).
    needs: commands without which the probe is not run (UNKNOWN, the tool named).
    needs_root: the whole probe is worth nothing without root.
    root_adds: what `as_root` in the probe adds where root can be had; said once a node where not.
    limit: seconds after which the probe is given up on the node.
    stale: what makes a result that was kept stale; "time" for whatever may change at any moment.
    after: checks whose FAIL on the node makes this one SKIP ("blocked by …").
    follows: codes of this check that are only what follows from a FAIL of other checks on the
        node: by code, their names or one of their findings ("munge", "mounts.read_only"). What
        is so is SKIP ("state: blocked by …"); the check's other findings stand.
    clock: wants the facts "clock.offset" and "clock.uncertainty": seconds by which the node's
        clock is ahead of this machine's, measured over the channel.
    probe_peers: the probe is told names of other nodes in $PEERS, one a line, and in $HOSTS and
        $PORTS, in the same order, the addresses or names by which the inventory reaches them, and
        the ports, 0 where it says none.
    most_peers: by the options, how many peers at most; 12 where it is not said.
    probe_nodes: the probe is told the names of all nodes of the run in $NODES, one a line.
    heavy_probe: a second probe for what loads something shared; it runs over the same connection
        after all light probes of the node, one node at a time for each thing that `shared` names.
        Once two nodes in a row report the fact "heavy.gone", the others do not ask it any more.
    heavy_limit: seconds after which the heavy probe is given up.
    shared: from the first probe's facts, the name of the thing that the heavy probe would load
        ("" leaves the heavy probe out).
    follow_probe: a probe for the few nodes that `follow` names once all have answered, such as
        those that differ from the majority; its facts are added to theirs before `judge`.
    follow: from the facts and options of all nodes that answered, the nodes to be asked again; as
        a mapping, with a text for each that the follow probe finds in $FOLLOW. What other nodes
        have said may be in it: to the node it is data.
    secrets: names of facts ("made", also of pairs) that `follow` sees and nobody else: they are
        neither judged nor shown nor recorded.
    probe_here: the same facts as `probe` without sh, for this machine (psutil, pynvml).
    probe_from_here: what only this machine can see, for all nodes with equal options at once:
        facts by node name, and under "" what the report says of this machine itself, of which no
        node is to be blamed: lines, the key is of no account. Called once in a run, beside the
        fan-out.
    fields: what a node is and has, by name, for two nodes or two days to be held against each
        other (`clustercheck diff`, `admit --save-baseline`); nothing that is one node's own. "" is
        what was not asked for, or not told, of which nobody knows whether the node has it.
    compare: what only shows between nodes: (node, finding) for each that differs, from the facts
        and options of all nodes that answered. A finding about a peer takes the place of the
        judge's with that code and peer: where others tell better whose fault it is.
    """

    title: str
    options: OptionsT
    judge: Callable[[Facts, OptionsT], Iterable[Finding]]
    codes: Mapping[str, Code]
    probe: str = ""
    probe_options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    needs_root: bool = False
    root_adds: str = ""
    limit: float = 10
    stale: Stale = "time"
    after: tuple[str, ...] = ()
    follows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clock: bool = False
    probe_peers: bool = False
    most_peers: Callable[[OptionsT], int] | None = None
    probe_nodes: bool = False
    heavy_probe: str = ""
    heavy_limit: float = 60
    shared: Callable[[Facts, OptionsT], str] | None = None
    follow_probe: str = ""
    follow: Callable[[Mapping[str, Facts], Mapping[str, OptionsT]], Iterable[str]] | None = None
    secrets: tuple[str, ...] = ()
    probe_here: Callable[[OptionsT], Mapping[str, str]] | None = None
    probe_from_here: (
        Callable[[Sequence[Target], OptionsT], Mapping[str, Mapping[str, str]]] | None
    ) = None
    fields: Callable[[Facts], Mapping[str, str]] | None = None
    compare: (
        Callable[
            [Mapping[str, Facts], Mapping[str, OptionsT]],
            Iterable[tuple[str, Finding]],
        ]
        | None
    ) = None

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """The options in the order in which the check declares them."""
        return dataclasses.fields(self.options)

    def peer_count(self, options: OptionsT) -> int:
        """How many peers of a node the check is told of at most; 0 where it asks for none."""
        if not self.probe_peers:
            return 0
        return PEERS_AT_MOST if self.most_peers is None else self.most_peers(options)


AnyCheck = Check[Any]
