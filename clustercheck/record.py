"""A run kept in a folder, and judged again without any node.

    DIR/run.json           which checks were asked of which nodes, when, by which version
    DIR/nodes/NAME.json    a node's answer, written when it came

A folder whose run was killed can be read: nodes without a file had not answered.
"""

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clustercheck import __version__, reach, registry
from clustercheck.answer import Answer, from_json
from clustercheck.check import AnyCheck, NoOptions
from clustercheck.errors import ConfigError, UsageError
from clustercheck.facts import Told
from clustercheck.judging import OptionsOf, compare, judge_node
from clustercheck.report import Report

SCHEMA = "clustercheck.record/1"
_NOT_HERE = Told(whole=True, status="0")
LARGEST = 64 * 2**20  # bytes; escapes make 12 MiB of a node's 2 MiB at most
LONGEST_FILE_NAME = 150  # of 255 that file systems take, 143 with eCryptfs: and ".json.new"


@dataclass(frozen=True)
class Recorded:
    """What was asked of whom. nodes: in the order of the run's report."""

    version: str
    started: datetime
    checks: list[str]
    nodes: list[str]


class Recorder:
    """Keeps the answers of a run that begins now.

    trouble: why answers could not be kept any more (a full disk), or "". The run goes on.
    Raises UsageError where the folder holds anything already, or cannot be made.
    """

    def __init__(self, directory: Path, checks: Sequence[str], nodes: Sequence[str]) -> None:
        self.trouble = ""
        self._folder = directory / "nodes"
        content = {
            "schema": SCHEMA,
            "version": __version__,
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "checks": list(checks),
            "nodes": list(nodes),
        }
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (directory / "run.json").exists():
                raise UsageError(f"{directory} holds a recorded run already; name a new folder")
            if any(directory.iterdir()):
                raise UsageError(f"{directory} is not empty; name a new folder")
            self._folder.mkdir(mode=0o700)  # of two runs that begin at once, one fails here
            _write(directory / "run.json", json.dumps(content, indent=1) + "\n")
        except OSError as error:
            raise UsageError(f"{directory}: nothing can be recorded there: {_why(error)}") from None

    def keep(self, answer: Answer) -> None:
        """Write one node's answer, whole or not at all."""
        if self.trouble:
            return
        try:
            _write(self._folder / file_name(answer.node), answer.to_json())
        except OSError as error:
            self.trouble = (
                f"the answers of {answer.node} and of all after it were not recorded: {_why(error)}"
            )


def file_name(node: str) -> str:
    """A name that is one file's in one folder, whatever the node is called."""
    name = quote(node, safe="")
    if len(name) > LONGEST_FILE_NAME:
        name = name[: LONGEST_FILE_NAME - 33] + "-" + hashlib.sha256(node.encode()).hexdigest()[:32]
    return name + ".json"


def _write(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)  # half an answer is of no use to anybody
        raise


def _why(error: OSError) -> str:
    return f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")


def read(directory: Path) -> tuple[Recorded, list[Answer]]:
    """The recorded run and all its nodes' answers, in the order of the run's report.

    A node whose answer was not kept has one that says so. Raises ConfigError where no run was
    recorded, and with the file's name for one that cannot be read or is damaged.
    """
    about = directory / "run.json"
    if not about.exists():
        raise ConfigError(f"{directory} holds no recorded run; make one with run --record DIR")
    recorded = _recorded(_text(about), str(about))
    answers: dict[str, Answer] = {}
    try:
        files = sorted((directory / "nodes").glob("*.json"))
    except OSError as error:
        raise ConfigError(f"{directory}/nodes: {_why(error)}") from None
    asked = set(recorded.nodes)
    for path in files:
        answer = from_json(_text(path), str(path))
        if path.name != file_name(answer.node) or answer.node not in asked:
            raise ConfigError(f"{path}: holds the answer of {answer.node!r}; take it out")
        if answer.code and answer.code not in reach.CODES:
            raise ConfigError(f"{path}: the code {answer.code!r} is not known; record it again")
        answers[answer.node] = answer
    missing = "no answer was recorded: the run had ended before"
    return recorded, [
        answers.get(node)
        or Answer(node, list(recorded.checks), code="not_reached", message=missing)
        for node in recorded.nodes
    ]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ConfigError(f"{path}: larger than 64 MiB; this is no answer; take it out")
        return data.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8; record it again") from None


def _recorded(text: str, place: str) -> Recorded:
    try:
        content: dict[str, Any] = json.loads(text)
        schema = content["schema"]
        if schema != SCHEMA:
            raise ConfigError(
                f"{place}: recorded in the form {schema!r}, and {SCHEMA!r} is read here; "
                "record it again, or judge it with the version that recorded it"
            )
        names = {key: content[key] for key in ("checks", "nodes")}
        for key, value in names.items():
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                raise ValueError(f"{key} is not a list of names")
            if len(set(value)) != len(value):
                raise ValueError(f"{key} has a name twice")
            if not all(value):
                raise ValueError(f"{key} has an empty name")
        started = datetime.fromisoformat(content["started"])
        if started.tzinfo is None:
            raise ValueError("started has no time zone")
        return Recorded(str(content["version"]), started, names["checks"], names["nodes"])
    except KeyError as error:
        raise ConfigError(f"{place}: {error} is missing; record it again") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{place}: is damaged ({error}); record it again") from None


def rejudge(
    directory: Path,
    checks: Mapping[str, AnyCheck],
    options_of: OptionsOf,
    known: Mapping[str, AnyCheck] | None = None,
) -> Report:
    """Judge a recorded run as `run.run` does, with these checks' options, and touch no node.

    checks: those that are wanted; what of them was not recorded is named in the notes.
    known: all that there are, where `checks` is a choice among them. A recorded check that is not
        known here is UNKNOWN on each node, unless a choice was made.
    Raises what `read` raises, and UsageError where none of the checks was recorded.
    """
    began = time.monotonic()
    recorded, answers = read(directory)
    chosen = known is not None and len(checks) < len(known)
    judged: dict[str, AnyCheck] = {}
    strange = set()
    for name in recorded.checks:
        if name in checks:
            judged[name] = checks[name]
        elif not chosen:
            strange.add(name)
            judged[name] = registry.broken(f"no check is called {name!r} here, and it was recorded")
    if not judged:
        names = ", ".join(recorded.checks)
        raise UsageError(f"{directory} has nothing of {', '.join(checks)}; it has {names}")

    def options(check: str, node: str) -> Any:
        return NoOptions() if check in strange else options_of(check, node)

    answers = [_only(answer, judged) for answer in answers]
    for answer in answers:
        # whatever became of its probe, that the check is not here is what there is to say
        answer.told.update({name: _NOT_HERE for name in answer.told if name in strange})
    results = {answer.node: judge_node(answer, judged, options) for answer in answers}
    compare(answers, judged, options, results)
    when = recorded.started.isoformat(sep=" ", timespec="seconds")
    notes = [f"judged again from what clustercheck {recorded.version} recorded at {when}"]
    if chosen and (lacking := [name for name in checks if name not in judged]):
        notes.append(f"not recorded, so not judged: {', '.join(lacking)}")
    return Report(
        started=recorded.started,
        seconds=time.monotonic() - began,
        checks=list(judged),
        nodes=results,
        notes=notes,
    )


def _only(answer: Answer, checks: Mapping[str, AnyCheck]) -> Answer:
    """The answer as if only these checks had been asked."""
    return dataclasses.replace(
        answer,
        asked=[name for name in checks if name in answer.asked],
        told={name: told for name, told in answer.told.items() if name in checks},
    )
