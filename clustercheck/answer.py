"""What one node answered: all that judging needs, so it can be kept in a file and judged again."""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from clustercheck.check import Facts
from clustercheck.errors import ConfigError
from clustercheck.facts import Reader, Told

SCHEMA = "clustercheck.facts/1"


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
        told = {
            name: Told(**{**entry, "facts": Facts(_texts(entry["facts"]))})
            for name, entry in content.pop("told").items()
        }
        clock = content.pop("clock")
        answer = Answer(**content, told=told, clock=(clock[0], clock[1]) if clock else None)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ConfigError(f"{place}: not a recorded answer ({error}): record it again") from error
    return answer


def _texts(facts: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(value, str) for value in facts.values()):
        raise ValueError("a fact is not text")
    return facts
