"""What Slurm says of its nodes and controllers, read from each form in which it says it.

`scontrol show node` as one line a node, in paragraphs, or as JSON; `sinfo -N` as a table or as
JSON. The JSON of 21.08 and 22.05 has one state and a list of flags, later ones a list of states.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

# What sinfo writes short, and what older releases called otherwise.
_WORDS = {
    "alloc": "ALLOCATED",
    "block": "BLOCKED",
    "boot": "REBOOT_ISSUED",
    "comp": "COMPLETING",
    "err": "ERROR",
    "failg": "FAILING",
    "futr": "FUTURE",
    "inval": "INVALID_REG",
    "invalid": "INVALID_REG",
    "maint": "MAINTENANCE",
    "mix": "MIXED",
    "no_respond": "NOT_RESPONDING",
    "noresp": "NOT_RESPONDING",
    "npc": "PERFCTRS",
    "plnd": "PLANNED",
    "pow_dn": "POWERING_DOWN",
    "pow_up": "POWERING_UP",
    "powerdown": "POWERING_DOWN",
    "powering_down": "POWERING_DOWN",
    "power": "POWERED_DOWN",  # up to 20.02
    "power_up": "POWERING_UP",
    "powerup": "POWERING_UP",
    "reboot": "REBOOT_REQUESTED",
    "reboot*": "REBOOT_ISSUED",
    "res": "RESERVED",
    "resv": "RESERVED",
    "unk": "UNKNOWN",
}
# Words that stand for two: what sinfo calls "drained" is IDLE+DRAIN to scontrol. Short "drain" is
# the flag in one and the state in the other, which is the same to us.
_PAIRS = {
    "drained": ("IDLE", "DRAIN"),
    "drng": ("ALLOCATED", "DRAIN"),
    "draining": ("ALLOCATED", "DRAIN"),
}
_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
    "+": "COMPLETING",
}
_STATE = re.compile(r"[A-Za-z_+]{2,80}[*~#!%$@^+-]{0,3}(?:\+[A-Za-z_+]{2,120}[*~#!%$@^+-]{0,3})?")

# The end of a reason, and what may follow it on the same line.
_SET_BY = re.compile(
    r" \[([^\s@\[\]]{1,64})@([0-9][0-9T:.+-]{1,40}|Unknown)\]"
    r"(?= (?:Comment|Extra|InstanceId|InstanceType|ReservationName)=|   |[ \t]{0,3}$)"
)


class Size(NamedTuple):
    """A node's processors and memory (MiB), as configured or as found."""

    cpus: int
    sockets: int
    cores: int
    threads: int
    memory: int

    @property
    def units(self) -> int:
        """Threads of all cores of all sockets."""
        return self.sockets * self.cores * self.threads

    @property
    def layout(self) -> str:
        """ "2*32*2"."""
        return f"{self.sockets}*{self.cores}*{self.threads}"

    @property
    def words(self) -> str:
        return f"{self.cpus} CPUs and {self.memory} MiB of memory"


_SIZE = ("CPUTot", "Sockets", "CoresPerSocket", "ThreadsPerCore", "RealMemory")


class Record(NamedTuple):
    """A node as Slurm has it.

    names: NodeName first, then the other names and addresses by which it is known.
    states: in capitals, without signs: {"IDLE", "DRAIN"}.
    gres: as configured, "gpu:a100:4(S:0-1)"; "" for none.
    reason, by, since: why the state is so, who said so and when; "" where not told.
    size: as configured; None where not told.
    host, address: NodeHostName and NodeAddr; "" where not told.
    """

    names: tuple[str, ...]
    states: tuple[str, ...]
    gres: str = ""
    reason: str = ""
    by: str = ""
    since: str = ""
    size: Size | None = None
    host: str = ""
    address: str = ""

    @property
    def state(self) -> str:
        """ "IDLE+DRAIN"."""
        return "+".join(self.states)

    def line(self) -> str:
        """The record as `read_nodes` reads it again."""
        words = [f"NodeName={self.names[0]}", f"NodeHostName={self.host}"]
        words += [f"NodeAddr={self.address}"] if self.address else []
        words += [f"State={self.state}", f"Gres={self.gres or '(null)'}"]
        if self.size:
            words += [f"{key}={number}" for key, number in zip(_SIZE, self.size, strict=True)]
        if self.reason:
            reason = " ".join(self.reason.split("\n"))
            words.append(f"Reason={reason} [{self.by or '?'}@{self.since or 'Unknown'}]")
        return " ".join(words)


class Controller(NamedTuple):
    """A slurmctld: its role ("primary", "backup1"), the machine, and whether it answers."""

    role: str
    host: str
    up: bool


class Gpus(NamedTuple):
    """GPUs that a Gres string counts. sliced: MIG instances are among them."""

    number: int
    sliced: bool


def read_states(text: str) -> tuple[str, ...]:
    """ "down*+DRAIN" to ("DOWN", "NOT_RESPONDING", "DRAIN"); () for what is no state."""
    if not _STATE.fullmatch(text):
        return ()
    found: list[str] = []
    words = text.split("+")
    if text.endswith("+"):
        words += ["completing"]
    for word in words:
        marks = word[len(word.rstrip("*~#!%$@^-")) :]
        plain = word.removesuffix(marks).lower() if marks else word.lower()
        if plain:
            found += _PAIRS.get(plain, (_WORDS.get(plain, plain.upper()),))
        found += [_MARKS[mark] for mark in marks]
    return tuple(dict.fromkeys(found))


def read_nodes(text: str) -> list[Record]:
    """The records in any of the forms, each node once; [] where there are none."""
    if text.lstrip()[:1] == "{":
        found = _of_json(text)
    elif "NodeName=" in text or text.startswith("Nodes="):
        found = _of_scontrol(text)
    else:
        found = _of_sinfo(text)
    return list({record.names[0]: record for record in found}.values())


def _of_scontrol(text: str) -> Iterator[Record]:
    paragraph: list[str] = []
    for line in [*text.splitlines(), "NodeName="]:
        if line.startswith(("NodeName=", "Nodes=")):
            yield from _of_paragraph(paragraph)
            paragraph = []
        paragraph.append(line)


def _of_paragraph(lines: Sequence[str]) -> Iterator[Record]:
    """One node's lines, or the one line that stands for several nodes ("Nodes=a,b State=…")."""
    first = lines[0] if lines else ""
    kind, _, rest = first.partition("=")
    names = rest.split(" ", 1)[0].split(",")
    head = " ".join(line.strip() for line in lines if not line.startswith("   Reason="))
    states = read_states(_word(head, "State"))
    if not names[0] or not states:
        return
    gres = _word(head, "Gres")
    gres = "" if gres in ("(null)", "N/A") else gres
    if kind == "Nodes":
        for name in names:  # with "@" and the address, where it is another word
            name, _, address = name.partition("@")
            both = (name, address) if address else (name,)
            yield Record(both, states, gres, size=_size(head), host=name, address=address or name)
        return
    host, address = _word(head, "NodeHostName"), _word(head, "NodeAddr")
    known = tuple(dict.fromkeys(name for name in (names[0], host, address) if name))
    own = next((line.strip() for line in lines if line.startswith("   Reason=")), "")
    why = _reason(f" {own}" if own else head)
    yield Record(known, states, gres, *why, size=_size(head), host=host, address=address)


def _size(text: str) -> Size | None:
    """What is configured, where all of it is told."""
    return _size_of([_word(text, key) for key in _SIZE])


def _size_of(values: Sequence[object]) -> Size | None:
    words = [str(value) for value in values]
    if not all(re.fullmatch("[0-9]{1,12}", word) for word in words):
        return None
    return Size(*(int(word) for word in words))


def _word(text: str, key: str) -> str:
    """What stands behind the first KEY=: the words of people come after all the keys."""
    return text.partition(f" {key}=")[2].split(" ", 1)[0]


def _reason(text: str) -> tuple[str, str, str]:
    """Reason, who set it, and when, from a whole record in one line.

    A comment may say "Reason=" too: it follows the reason, but is before it in some accounts.
    """
    start = text.find(" Reason=")
    if start < 0:
        return "", "", ""
    if any(0 <= text.find(f" {key}=") < start for key in ("Comment", "Extra")):
        start = text.rfind(" Reason=")
    text = text[start + len(" Reason=") :]
    end = _SET_BY.search(text)
    if end is None:
        return text.strip(), "", ""
    return text[: end.start()].strip(), end[1].replace("?", ""), end[2].replace("Unknown", "")


def _of_sinfo(text: str) -> Iterator[Record]:
    """Rows of `sinfo -N`: the node is first, its state in the column that the header names.

    Without a header, they are the rows of "%N %P %t".
    """
    column = 2
    for row in text.splitlines():
        words = row.split(None, 12)
        if "NODELIST" in words:
            named = [n for n, word in enumerate(words) if word in ("STATE", "STATECOMPLETE")]
            column = named[0] if named and words[0] == "NODELIST" else 1000
        elif len(words) > column and words[0] != "n/a":
            states = read_states(words[column])
            if set(states) & KNOWN:
                yield Record((words[0],), states)


def _of_json(text: str) -> Iterator[Record]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(said, dict):
        return
    for entry in _list(said.get("nodes")):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry["name"]:
            yield _of_node(entry)
    for entry in _list(said.get("sinfo")):
        if not isinstance(entry, dict):
            continue
        node, nodes = _dict(entry.get("node")), _dict(entry.get("nodes"))
        states = _states(node.get("state"))
        reason = _dict(entry.get("reason"))
        gres = _text(_dict(entry.get("gres")).get("total"))
        why = _text(reason.get("description"))
        for name in _list(nodes.get("nodes")):
            if isinstance(name, str) and name and states:
                by = _text(reason.get("user")) if why else ""
                yield Record((name,), states, gres, why, by, _when(reason.get("time")))


def _of_node(entry: Mapping[str, Any]) -> Record:
    names = [entry["name"], _text(entry.get("hostname")), _text(entry.get("address"))]
    return Record(
        tuple(dict.fromkeys(name for name in names if name)),
        _states(entry.get("state"), entry.get("state_flags")),
        _text(entry.get("gres")),
        _text(entry.get("reason")).strip(),
        _text(entry.get("reason_set_by_user")) if entry.get("reason") else "",
        _when(entry.get("reason_changed_at")),
        _size_of(
            [entry.get(key) for key in ("cpus", "sockets", "cores", "threads", "real_memory")]
        ),
        *names[1:],
    )


def _states(*values: Any) -> tuple[str, ...]:
    found: list[str] = []
    for value in values:
        for word in [value] if isinstance(value, str) else _list(value):
            if isinstance(word, str):
                found += read_states(word)
    return tuple(dict.fromkeys(found))


def _when(value: Any) -> str:
    """Seconds since 1970, bare or as {"set": true, "number": …}, as scontrol writes them."""
    number = value.get("number") if isinstance(value, dict) else value
    if not isinstance(number, int) or not 0 < number < 1 << 40:
        return ""
    return datetime.fromtimestamp(number).isoformat()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_ping(text: str) -> list[Controller]:
    """The controllers of `scontrol ping`; old releases put two in a line: "a/b are UP/DOWN"."""
    found = []
    for line in text.splitlines()[:50]:
        said = re.fullmatch(
            r"Slurmctld\(([\w/]{1,40})\) at (\S{1,300}) (?:is|are) ([A-Z/]{2,80})", line.strip()
        )
        if said:
            roles, hosts, words = (part.split("/") for part in said.groups())
            for role, host, word in zip(roles, hosts, words, strict=False):
                found.append(Controller(role, host, word == "UP"))
    return found


def count_gpus(gres: str) -> Gpus:
    """The GPUs of a Gres string; shards, licences and space are none.

    "gpu:a100:8(S:0,2),shard:64", "gpu:(null):4(IDX:0-3)", "gpu:2,gpu:tesla:2", "gpu" (one).
    """
    count, sliced = 0, False
    for entry in re.sub(r"\([^()]{0,4000}\)", "", gres).split(","):
        name, *more = entry.strip().split(":")
        if name != "gpu":
            continue
        number = more[-1] if more and re.fullmatch("[0-9]{1,6}", more[-1]) else "1"
        count += int(number)
        sliced = sliced or re.search(r"[0-9]g[._][0-9]{1,3}gb", entry) is not None
    return Gpus(count, sliced)


# States in which a node does its work, or will.
FIT = {"IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "RESERVED", "BLOCKED"}
# What is no state of its own and says nothing bad.
HARMLESS = {
    "CLOUD",
    "DYNAMIC",
    "DYNAMIC_NORM",
    "DYNAMIC_FUTURE",
    "PERFCTRS",
    "UNDRAIN",
    "NET",
    "EXTERNAL",
}
ASLEEP = {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_DRAIN"}
REBOOT = {"REBOOT_REQUESTED", "REBOOT_ISSUED"}
BROKEN = {"DOWN", "ERROR", "FAIL", "FAILING", "INVALID_REG"}
OTHER = {"DRAIN", "NOT_RESPONDING", "MAINTENANCE", "UNKNOWN", "FUTURE"}
KNOWN = FIT | HARMLESS | ASLEEP | REBOOT | BROKEN | OTHER
