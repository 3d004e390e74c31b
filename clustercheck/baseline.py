"""A baseline: a small file that says what nodes of a kind are, to hold later ones against.

A line for each field, "kernel 5.14.0-427.el9.x86_64"; # begins a remark. It is made to be read, and
kept under version control.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from clustercheck.admission import Admission
from clustercheck.answer import Answer
from clustercheck.check import AnyCheck
from clustercheck.errors import ConfigError, UsageError
from clustercheck.judging import OptionsOf
from clustercheck.output import write_atomically

LARGEST = 1_000_000  # bytes; one has some thousand


def read(path: Path) -> tuple[str, ...]:
    """The lines with a field and its value. Raises ConfigError and UsageError."""
    try:
        data = path.read_bytes()[: LARGEST + 1]
    except OSError as error:
        raise UsageError(f"--baseline: {path} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise ConfigError(f"{path}: is larger than any baseline; give the right file")
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8; write it with --save-baseline") from None
    found = []
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if not all(line.partition(" ")[::2]):
            raise ConfigError(f"{path}:{number}: a field has no value; write it as: kernel 6.1.0")
        found.append(line)
    if not found:
        raise ConfigError(f"{path}: has no field; write it with --save-baseline")
    return tuple(found)


def expecting(
    options_of: OptionsOf, candidates: Collection[str], path: Path, checks: Mapping[str, AnyCheck]
) -> OptionsOf:
    """The options, for candidates with what the file says of them."""
    lines = read(path)
    if not any(_expects(check) for check in checks.values()):
        raise UsageError("--baseline: none of the checks that were chosen can use it; see -c")
    kept: dict[int, Any] = {}

    def of(check: str, node: str) -> Any:
        options = options_of(check, node)
        if node not in candidates or not _expects(checks[check]):
            return options
        if id(options) not in kept:  # equal options stay one object
            kept[id(options)] = replace(options, expect=lines)
        return kept[id(options)]

    return of


def _expects(check: AnyCheck) -> bool:
    return any(field.name == "expect" for field in fields(check.options))


def save(
    path: Path,
    found: Sequence[Admission],
    answers: Mapping[str, Answer],
    checks: Mapping[str, AnyCheck],
) -> None:
    """Write what the first candidate that is admitted is and has. Raises UsageError."""
    for one in found:
        if one.admitted:
            told = fields_of(answers[one.node], checks)
            if told:
                lines = [f"{name} {value}" for name, value in told.items() if value]
                text = f"# what {one.node} is and has, written by clustercheck admit"
                write_atomically(path, "\n".join([text, *lines]) + "\n")
                return
    raise UsageError("--save-baseline: nothing was written, for no candidate is admitted")


def fields_of(answer: Answer, checks: Mapping[str, AnyCheck]) -> dict[str, str]:
    """What the checks say that a node is and has; empty where it did not tell."""
    found: dict[str, str] = {}
    for name, check in checks.items():
        told = answer.told.get(name)
        if check.fields and told and told.whole:
            try:
                found.update(check.fields(told.facts))
            except Exception:  # its judge meets the same fault, and shows it
                continue
    return found
