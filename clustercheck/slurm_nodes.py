"""What Slurm's controller says of all nodes, in one question: when each booted, and was last used.

`scontrol show nodes --json` has it from Slurm 23.02 on; before, `sinfo --json`, whose newer form
sums nodes up and has no times. Numbers are plain in the old form, and objects of "set", "infinite"
and "number" in the new one; states are a word and flags in the old form, a list in the new one.
A Slurm that was built without JSON has it as text, one line a node.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clustercheck.freshness import NodeState

# A controller that is away lets its clients try for MessageTimeout (10 s) or more.
ANSWER_SECONDS = 10.0
MOST_BYTES = 256 * 1024 * 1024  # ten thousand nodes are some 30 MB
LONGEST_WORDS = 300  # characters of a reason or complaint

# Times as seconds since the epoch, in the form that is text.
SET = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}

# In these states Slurm gives a node no new job, and will not by itself.
OUT_OF_SERVICE = {
    "DOWN": "down",
    "DRAIN": "drained",
    "FAIL": "failing",
    "ERROR": "in error",
    "NOT_RESPONDING": "not responding",
    "INVALID": "invalid",
    "INVALID_REG": "registered with less than slurm.conf says",
    "UNKNOWN": "not registered since the controller's start",
    "REBOOT_ISSUED": "being rebooted",
    "FUTURE": "kept for a node that is to come",
}
AT_WORK = {"ALLOCATED", "MIXED", "COMPLETING"}


class SlurmNode(NamedTuple):
    """A node as Slurm has it. Times are in seconds since the epoch, 0 where there is none.

    name: its NodeName, which is what sbatch and scontrol take.
    host, address: its NodeHostName and NodeAddr.
    states: in capitals, "IDLE", "DRAIN".
    """

    name: str
    host: str
    address: str
    states: tuple[str, ...]
    reason: str
    reason_by: str
    partitions: tuple[str, ...]
    boot: float
    slurmd: float
    busy: float

    @property
    def trouble(self) -> str:
        """Why Slurm gives it no job: "drained: bad disk, by root"; "" where it does."""
        words = [OUT_OF_SERVICE[state] for state in self.states if state in OUT_OF_SERVICE]
        if "being rebooted" in words:
            words = ["being rebooted"]
        if not words:
            return ""
        by = f", by {self.reason_by}" if self.reason_by and self.reason else ""
        return " and ".join(words) + (f": {self.reason}{by}" if self.reason else "")

    @property
    def state(self) -> NodeState:
        """As results that were kept are held against it."""
        return NodeState(
            boot=self.boot,
            slurmd=self.slurmd,
            busy=self.busy,
            in_use=not AT_WORK.isdisjoint(self.states),
            trouble=self.trouble,
        )


class Answer(NamedTuple):
    """What the controller said. trouble: why it said nothing ("" where there is no Slurm here)."""

    nodes: tuple[SlurmNode, ...] = ()
    trouble: str = ""


class Unreadable(ValueError):
    """Slurm said something that is not understood."""


def ask(environment: Mapping[str, str] | None = None, seconds: float = ANSWER_SECONDS) -> Answer:
    """Ask the controller of all its nodes, by the commands of this machine.

    environment: in place of our own.
    """
    whole = {**(os.environ if environment is None else environment), **SET}
    until = time.monotonic() + seconds
    trouble = ""
    for words, reader in _QUESTIONS:
        program = shutil.which(words[0], path=whole.get("PATH"))
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, *words[1:]],
                env=whole,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(0.1, until - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            return Answer(trouble=f"Slurm's controller did not answer within {seconds:g} s")
        except OSError as error:
            trouble = f"{words[0]} cannot be run: {error.strerror}"
            continue
        said = done.stderr.decode("utf-8", "replace")
        try:
            return Answer(tuple(reader(done.stdout)))
        except Unreadable as error:
            trouble = _complaint(said) or f"{words[0]}: {error}"
        if done.returncode and "json" not in said:  # else it cannot do that, and others may
            break
    return Answer(trouble=trouble)


def read(data: bytes) -> Iterator[SlurmNode]:
    """The nodes in the output of `scontrol show nodes --json` or `sinfo --json`.

    Raises Unreadable where it is neither, tells of an error, or has no times.
    """
    try:
        content = json.loads(data[:MOST_BYTES])
        errors = content.get("errors") or ()
        nodes = content["nodes"]
    except (ValueError, RecursionError):
        raise Unreadable("its output is no JSON") from None
    except (KeyError, TypeError, AttributeError):
        raise Unreadable("its output has no list of nodes") from None
    if errors:
        # with its controller down, sinfo 22.05 ends with status 0 and says so in here alone
        raise Unreadable(f"it tells of an error: {_short(_error_words(errors))}")
    if not isinstance(nodes, list) or not nodes:
        raise Unreadable("its output has no list of nodes")
    for node in nodes:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or not node["name"]:
            raise Unreadable("a node in its output has no name")
        if "boot_time" not in node:
            raise Unreadable("its output does not have when nodes booted")
        yield SlurmNode(
            name=node["name"],
            host=_text(node.get("hostname")) or node["name"],
            address=_text(node.get("address")) or node["name"],
            states=tuple(_states(node)),
            reason=_short(_text(node.get("reason"))),
            reason_by=_text(node.get("reason_set_by_user")),
            partitions=tuple(_text(name) for name in _list(node.get("partitions"))),
            boot=_number(node.get("boot_time")),
            slurmd=_number(node.get("slurmd_start_time")),
            busy=_number(node.get("last_busy")),
        )


def read_lines(data: bytes) -> Iterator[SlurmNode]:
    """The nodes in the output of `scontrol show nodes --oneliner`, with times as SET makes them.

    Raises Unreadable where there is none.
    """
    lines = data[:MOST_BYTES].decode("utf-8", "replace").split("\n")
    nodes = [line for line in lines if line.startswith("NodeName=")]
    if not nodes:
        raise Unreadable("its output has no node")
    for line in nodes:
        about, _, reason = line.partition(" Reason=")
        of = dict(word.partition("=")[::2] for word in reversed(about.split(" ")))  # 1st of a name
        why, _, by = reason.rpartition(" [")
        yield SlurmNode(
            name=of["NodeName"],
            host=of.get("NodeHostName") or of["NodeName"],
            address=of.get("NodeAddr") or of["NodeName"],
            states=tuple(_states_in_words(of.get("State", ""))),
            reason=_short(why or reason),
            reason_by=by.partition("@")[0] if why else "",
            partitions=tuple(filter(None, of.get("Partitions", "").split(","))),
            boot=_epoch(of.get("BootTime", "")),
            slurmd=_epoch(of.get("SlurmdStartTime", "")),
            busy=_epoch(of.get("LastBusyTime", "")),
        )


_QUESTIONS: tuple[tuple[tuple[str, ...], Callable[[bytes], Iterator[SlurmNode]]], ...] = (
    (("scontrol", "show", "nodes", "--json"), read),
    (("sinfo", "--json"), read),
    (("scontrol", "show", "nodes", "--oneliner"), read_lines),
)


def _states_in_words(text: str) -> Iterator[str]:
    """The states in "DOWN*+DRAIN": a sign behind one stands for another."""
    for word in text.split("+"):
        yield word.rstrip("*~#!%$@^-")
        if word.endswith("*"):
            yield "NOT_RESPONDING"
        if word.endswith("^"):
            yield "REBOOT_ISSUED"


def _epoch(text: str) -> float:
    return _number(int(text)) if text.isascii() and text.isdigit() and len(text) < 13 else 0


def _short_name(word: str) -> str:
    """The name without its domain; an address as it is."""
    is_address = ":" in word or word.replace(".", "").isdecimal()
    return word if is_address else word.partition(".")[0]


# What Slurm calls a node, the surest first.
_WAYS: tuple[Callable[[SlurmNode], str], ...] = (
    lambda node: node.name,
    lambda node: node.host,
    lambda node: node.address,
    lambda node: _short_name(node.host),
    lambda node: _short_name(node.address),
)


def by_our_names(hosts: Mapping[str, str], nodes: Iterable[SlurmNode]) -> dict[str, SlurmNode]:
    """Slurm's nodes by our names; those that Slurm does not know are not in it.

    hosts: by our name, the address or name that the node is reached by, or "". Held against
    NodeName first, then NodeHostName, then NodeAddr, the full name before the short one. Where
    several nodes of Slurm fit (slurmd more than once on a machine), none does.
    """
    found: dict[str, SlurmNode] = {}
    nodes, left = list(nodes), dict(hosts)
    for name_in in _WAYS:  # most are found by the first
        if not left:
            break
        way: dict[str, SlurmNode | None] = {}
        for node in nodes:
            word = name_in(node).lower()
            way[word] = None if word in way else node
        for name, host in tuple(left.items()):
            full = [word.lower() for word in (name, host) if word]
            words = (*full, *map(_short_name, full))
            fits = next((way[word] for word in words if word in way), None)
            if fits:
                found[name] = fits
                del left[name]
    return {name: found[name] for name in hosts if name in found}


def states(hosts: Mapping[str, str], nodes: Iterable[SlurmNode]) -> dict[str, NodeState]:
    """The nodes' states by our names, as results that were kept are held against them.

    A node that has not registered is not in it: Slurm does not know when it booted.
    """
    found = by_our_names(hosts, nodes)
    return {name: node.state for name, node in found.items() if node.boot}


def _states(node: Mapping[str, Any]) -> list[str]:
    words = node.get("state")
    told = [words] if isinstance(words, str) else [*_list(words)]
    return [_text(word).upper() for word in (*told, *_list(node.get("state_flags")))]


def _number(value: Any) -> float:
    """A number of either form; 0 where it is not set or has no end."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return float(value) if 0 < value < 2**40 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _error_words(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) else errors
    if isinstance(first, dict):
        first = first.get("description") or first.get("error")
    return _text(first) or repr(errors)


def _complaint(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_WORDS else f"{words[:LONGEST_WORDS]}…"
