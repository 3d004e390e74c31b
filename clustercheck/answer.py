"""What one node answered: all that judging needs, so it can be kept in a file and judged again."""

import dataclasses
import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any

from clustercheck.check import Facts
from clustercheck.errors import ConfigError
from clustercheck.facts import Reader, Told

SCHEMA = "clustercheck.facts/1"
KEPT_LIMIT = 256 * 1024  # bytes of facts; a whole honest answer is some ten KiB


@dataclass
class Answer:
    """A node's answer, or why there is none.

    told: by check; a check that was asked and is not in it gave no answer.
    asked: the checks that the node was asked.
    peers: the other nodes that pairwise probes were told of.
    code, message: why the answer is missing or not whole (a code of `reach`), or "".
    uid, host_name, boot_id: as the node gave them; "" where it did not.
    root_refused: what sudo said when it refused, or "".
    leftovers: directories of killed runs that were removed.
    noise: the login printed text of its own.
    clock: (offset, uncertainty) of the node's clock in seconds, or None where it was not asked.
    seconds: how long the node took; None where it was never tried.
    forgotten: checks whose facts were too many to be kept.
    """

    node: str
    asked: list[str]
    told: dict[str, Told] = field(default_factory=dict)
    peers: list[str] = field(default_factory=list)
    code: str = ""
    message: str = ""
    uid: str = ""
    host_name: str = ""
    boot_id: str = ""
    root_refused: str = ""
    leftovers: list[str] = field(default_factory=list)
    noise: bool = False
    clock: tuple[float, float] | None = None
    seconds: float | None = None
    forgotten: list[str] = field(default_factory=list)

    def sizes(self) -> dict[str, int]:
        """Bytes of memory that each check's facts take."""
        return {
            name: sum(sys.getsizeof(text) for pair in told.facts.items() for text in pair)
            for name, told in self.told.items()
        }

    def forget(self) -> None:
        """Once judged, keep no more than KEPT_LIMIT: facts of the longest-winded checks go."""
        sizes = self.sizes()
        total = sum(sizes.values())
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            if total <= KEPT_LIMIT:
                return
            self.told[name] = Told()
            self.forgotten.append(name)
            total -= sizes[name]

    def take(self, reader: Reader) -> None:
        """Take over what a reader has understood."""
        self.told.update(reader.told)
        self.uid, self.host_name, self.boot_id = reader.uid, reader.host_name, reader.boot_id
        self.root_refused = reader.root_refused
        self.leftovers = reader.leftovers
        self.noise = reader.noise
        self.clock = reader.clock

    def to_json(self) -> str:
        """As text for a file; `from_json` gives the same answer back."""
        content = dataclasses.asdict(self)
        del content["forgotten"]  # it is kept before anything is
        content["told"] = {
            name: {**dataclasses.asdict(told), "facts": dict(told.facts)}
            for name, told in self.told.items()
        }
        return json.dumps({"schema": SCHEMA, **content}, indent=1) + "\n"


def from_json(text: str, place: str) -> Answer:
    """An answer from a file's text. Raises ConfigError naming `place` for anything else."""
    try:
        content: dict[str, Any] = json.loads(text)
        if content.pop("schema") != SCHEMA:
            raise ConfigError(f"{place}: not of the form {SCHEMA}: record it again")
        told = {name: _told(entry) for name, entry in content.pop("told").items()}
        clock, seconds = content.pop("clock"), content.pop("seconds")
        return Answer(
            **_alike(Answer("", []), content),
            told=told,
            clock=(_number(clock[0]), _number(clock[1])) if clock else None,
            seconds=None if seconds is None else _number(seconds),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ConfigError(f"{place}: not a recorded answer ({why}): record it again") from error


def _told(entry: dict[str, Any]) -> Told:
    facts = entry.pop("facts")
    if not all(isinstance(value, str) for value in facts.values()):
        raise ValueError("a fact is not text")
    return Told(Facts(facts), **_alike(Told(), entry))


def _alike(example: object, content: dict[str, Any]) -> dict[str, Any]:
    """The content; ValueError where a value is of another type than the example's."""
    for name, value in content.items():
        texts = not isinstance(value, list) or all(isinstance(one, str) for one in value)
        if type(value) is not type(getattr(example, name)) or not texts:
            raise ValueError(f"{name} cannot be {value!r:.40}")
    return content


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is not a number")
    return float(value)
