"""What past sweeps found, in one file of SQLite.

A run is written at its end in one step: who kills it before loses this run and no other. Texts
that are said again and again stand once, and of what a node told, only what changed.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from clustercheck import __version__, changes
from clustercheck.answer import Answer
from clustercheck.changes import Acceptance, Key, Point, Standing
from clustercheck.check import Facts, Finding, Status
from clustercheck.errors import ConfigError
from clustercheck.facts import Told
from clustercheck.history_file import Damaged, connect, is_damage, now, set_aside
from clustercheck.history_rows import (
    LARGEST,
    NUMBERS,
    SELECT,
    STATUSES,
    forget,
    read_findings,
    read_report,
    read_standing,
    replay,
    store_facts,
    store_run,
    store_standing,
    text_of,
)
from clustercheck.render.escape import sound
from clustercheck.report import Report

TREND_RUNS = 90  # of the newest runs, the values that a trend is made of


class Trouble(Exception):
    """The history cannot be written or read: a full disk, no rights. In words for the reader."""


class Run(NamedTuple):
    """A stored run. state: done, running, broken. wrong: findings by status."""

    number: int
    started: datetime
    seconds: float | None
    state: str
    stopped: str
    checks: tuple[str, ...]
    nodes: int
    wrong: Mapping[Status, int]


class Past(NamedTuple):
    """A finding of a past run."""

    run: int
    when: datetime
    node: str
    check: str
    finding: Finding


def folder() -> Path:
    """$XDG_STATE_HOME/clustercheck, else ~/.local/state/clustercheck."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return base / "clustercheck"


def file_of(state: Path | None, cluster: str) -> Path:
    """The file of a cluster's history."""
    return (state or folder()) / (quote(cluster, safe=" ")[:150] + ".db")


@dataclass
class History:
    """An open history. Made by `open_for_sweep` and `open_to_read`; `close` it.

    notes: what may be said about the file. damage: what must be.
    """

    path: Path
    database: sqlite3.Connection
    notes: list[str]
    damage: str = ""

    def close(self) -> None:
        """No more of it."""
        self.database.close()

    # Writing ------------------------------------------------------------------------------------

    def begin(self, started: datetime, checks: Sequence[str]) -> int:
        """Note that a run begins; returns its number. Raises Trouble."""
        with self._writing() as database:
            found = database.execute(
                "INSERT INTO runs (started, state, checks, version) VALUES (?, 'running', ?, ?)",
                (text_of(started), json.dumps(list(checks)), __version__),
            )
            return int(found.lastrowid or 0)

    def store(
        self,
        number: int,
        report: Report,
        standing: Mapping[Key, Standing],
        told: Mapping[str, Mapping[str, bytes]],
        keep: timedelta,
    ) -> None:
        """Write a run whole, and forget what is older than `keep`. Raises Trouble.

        told: by node and check, what `packed` made.
        """
        with self._writing() as database:
            store_run(database, number, report)
            store_facts(database, number, told)
            oldest = report.started - keep
            if self._is_plausible(number, oldest):
                standing = {key: one for key, one in standing.items() if one.seen >= oldest}
                forget(database, oldest)
            store_standing(database, standing)
        try:
            # execute would take the first of its steps only, which is one page
            self.database.executescript("PRAGMA incremental_vacuum")
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            pass  # what was written is safe; SQLite does it another time

    def _is_plausible(self, number: int, oldest: datetime) -> bool:
        """Whether so much time has passed; a clock that leapt must not cost the whole history."""
        before = self.database.execute(
            "SELECT started FROM runs WHERE number < ? AND state = 'done'"
            " ORDER BY number DESC LIMIT 1",
            (number,),
        ).fetchone()
        return before is not None and datetime.fromisoformat(before[0]) >= oldest

    def accept(self, acceptance: Acceptance) -> int:
        """Keep it; returns its number. Raises Trouble."""
        with self._writing() as database:
            found = database.execute(
                "INSERT INTO accepted (code, nodes, until, why, who, at, status)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    sound(acceptance.code),
                    json.dumps(acceptance.nodes),
                    acceptance.until.isoformat(),
                    sound(acceptance.why),
                    sound(acceptance.who),
                    text_of(acceptance.when),
                    NUMBERS[acceptance.status],
                ),
            )
            return int(found.lastrowid or 0)

    def no_more(self, number: int) -> bool:
        """Take an acceptance back; False where there is none of the number. Raises Trouble."""
        if number > LARGEST:
            return False
        with self._writing() as database:
            found = database.execute("DELETE FROM accepted WHERE number = ?", (number,))
            return found.rowcount > 0

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self.database.execute("BEGIN IMMEDIATE")
            try:
                yield self.database
                self.database.execute("COMMIT")
            except BaseException:
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise Trouble(f"{self.path}: {_why(error)}") from error

    # Reading ------------------------------------------------------------------------------------

    def standing(self) -> dict[Key, Standing]:
        """What is remembered to hold the next run against."""
        return read_standing(self.database)

    def acceptances(self) -> list[Acceptance]:
        """All, also those whose day has passed."""
        return [
            Acceptance(
                code=code,
                nodes=tuple(json.loads(nodes)),
                until=date.fromisoformat(until),
                why=why,
                who=who,
                when=datetime.fromisoformat(at),
                status=STATUSES[status],
                number=number,
            )
            for number, code, nodes, until, why, who, at, status in self.database.execute(
                "SELECT number, code, nodes, until, why, who, at, status FROM accepted"
                " ORDER BY number"
            )
        ]

    def runs(self) -> list[Run]:
        """All, the newest first."""
        wrong: dict[int, dict[Status, int]] = {}
        for run, status, count in self.database.execute(
            "SELECT run, status, count(*) FROM findings WHERE status > 1 GROUP BY run, status"
        ):
            wrong.setdefault(run, {})[STATUSES[status]] = count
        nodes = dict(self.database.execute("SELECT run, count(*) FROM results GROUP BY run"))
        return [
            Run(
                number,
                datetime.fromisoformat(started),
                seconds,
                state,
                stopped,
                tuple(json.loads(checks)),
                nodes.get(number, 0),
                wrong.get(number, {}),
            )
            for number, started, seconds, state, stopped, checks in self.database.execute(
                "SELECT number, started, seconds, state, stopped, checks FROM runs"
                " ORDER BY number DESC"
            )
        ]

    def last(self) -> tuple[datetime, list[str]] | None:
        """When the last whole run began, and its nodes."""
        found = self.database.execute(
            "SELECT number, started FROM runs WHERE state = 'done' ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if found is None:
            return None
        return datetime.fromisoformat(found[1]), self.nodes(found[0])

    def nodes(self, number: int) -> list[str]:
        """The nodes of a run, in its order."""
        return [
            name
            for (name,) in self.database.execute(
                "SELECT name FROM results JOIN nodes ON id = node WHERE run = ? ORDER BY place",
                (number,),
            )
        ]

    def knows(self, node: str) -> bool:
        """Whether a node was ever asked."""
        found = self.database.execute("SELECT 1 FROM nodes WHERE name = ?", (sound(node),))
        return found.fetchone() is not None

    def of_node(self, node: str, since: int = 0) -> list[Past]:
        """All that was found on a node from a run on, the oldest first."""
        return self._past("f.node = (SELECT id FROM nodes WHERE name = ?)", sound(node), since)

    def of_check(self, check: str, since: int = 0) -> list[Past]:
        """What was wrong with a check on all nodes, the oldest first."""
        where = "f.status > 1 AND f.name IN (SELECT id FROM names WHERE name = ?)"
        return self._past(where, sound(check), since)

    def _past(self, where: str, argument: str, since: int) -> list[Past]:
        began = {
            run: datetime.fromisoformat(started)
            for run, started in self.database.execute("SELECT number, started FROM runs")
        }
        found = self.database.execute(
            SELECT + f" WHERE {where} AND f.run > ? ORDER BY f.run, f.node, f.place",
            (argument, since),
        )
        return [
            Past(run, began[run], node, check, finding)
            for run, node, check, finding in read_findings(self.database, found)
        ]

    def report(self, number: int) -> Report:
        """A stored run as its report. Raises Trouble where there is none of the number."""
        found = read_report(self.database, number)
        if found is None:
            raise Trouble(f"there is no sweep {number}; `clustercheck history --runs` lists them")
        return found

    def answers(self, number: int) -> list[Answer]:
        """What the nodes told in a run; a node that told nothing has an answer without facts."""
        report = self.report(number)
        answers = []
        for name, result in report.nodes.items():
            answer = Answer(name, list(report.checks), seconds=result.seconds)
            rows = self.database.execute(
                "SELECT name, told, max(run) FROM facts"
                " WHERE node = (SELECT id FROM nodes WHERE name = ?) AND run <= ? GROUP BY name",
                (name, number),
            )
            for check, told, _ in rows:
                if check in result.findings:
                    answer.told[check] = _unpacked(told)
            answers.append(answer)
        return answers

    def trends(self) -> "Trends":
        """The values of the newest runs by node."""
        return Trends(self)


class Trends(Mapping[str, Mapping[str, Sequence[Point]]]):
    """Values by node and finding; a node's are read when it is asked for."""

    def __init__(self, history: History) -> None:
        self._history = history
        rows = history.database.execute(
            "SELECT number, started FROM runs WHERE state = 'done' ORDER BY number DESC LIMIT ?",
            (TREND_RUNS,),
        )
        self._when = {number: datetime.fromisoformat(started) for number, started in rows}
        self._nodes = history.nodes(max(self._when)) if self._when else []

    def __getitem__(self, node: str) -> Mapping[str, Sequence[Point]]:
        if node not in self._nodes:
            raise KeyError(node)
        found: dict[str, list[Point]] = {}
        rows = self._history.database.execute(
            "SELECT f.run, n.name, n.code, f.peer, f.value, u.unit FROM findings f"
            " JOIN names n ON n.id = f.name JOIN units u ON u.id = f.unit"
            " WHERE f.node = (SELECT id FROM nodes WHERE name = ?) AND f.run >= ?"
            " AND f.value IS NOT NULL ORDER BY f.run, f.place",
            (sound(node), min(self._when)),
        )
        for run, check, code, peer, value, unit in rows:
            if run in self._when:
                # a plug-in's values go on whatever it thinks of them
                codes = changes.OF_PLUGINS if code in changes.OF_PLUGINS else (code,)
                for one in codes:
                    key = f"{check}.{one} {peer or ''}".rstrip()
                    found.setdefault(key, []).append(Point(self._when[run], value, unit))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def open_for_sweep(path: Path) -> History:
    """The history to be written to, made where there is none; the caller holds the sweep's lock.

    A damaged file is renamed and said; a new one is begun.
    Raises ConfigError where it is not to be used, Trouble where it cannot be.
    """
    try:
        try:
            found = History(path, *connect(path, write=True, replay=replay))
            try:
                found.last(), found.standing(), found.acceptances()  # what a sweep begins with
            except sqlite3.DatabaseError as error:
                found.close()
                raise Damaged(str(error)) from None
            return found
        except Damaged as damage:
            aside = set_aside(path, now())
            database, notes = connect(path, write=True, replay=replay)
            said = (
                f"the history was damaged ({damage}), and is kept as {aside}; a new one is begun."
                f" `sqlite3 {aside} .recover` shows what is left of it"
            )
            return History(path, database, notes, said)
    except (sqlite3.Error, OSError) as error:
        raise Trouble(f"{path}: {_why(error)}") from error


def open_to_read(path: Path) -> History:
    """The history as it is, for looking things up and for acceptances. Raises ConfigError."""
    try:
        return History(path, *connect(path, write=False, replay=replay))
    except (Damaged, sqlite3.Error) as error:
        what = "is damaged" if is_damage(error) else "cannot be read"
        hint = "; the next sweep puts it aside and begins a new one" if is_damage(error) else ""
        raise ConfigError(f"{path}: {what} ({error}){hint}") from None


def packed(answer: Answer) -> dict[str, bytes]:
    """What a node told, by check, compressed; equal facts give equal bytes."""
    found = {}
    for name, told in answer.told.items():
        content = asdict(told) | {"facts": dict(sorted(told.facts.items()))}
        found[name] = zlib.compress(json.dumps(content).encode(), 9)
    return found


def _unpacked(data: bytes) -> Told:
    content: dict[str, Any] = json.loads(zlib.decompress(data))
    known = {name: content[name] for name in asdict(Told()) if name in content}
    return Told(**{**known, "facts": Facts(content["facts"])})


def _why(error: Exception) -> str:
    words = str(error)
    if isinstance(error, OSError):
        words = error.strerror or words
    full = ("full" in words, "No space" in words, "disk I/O error" in words, "quota" in words)
    if any(full):
        return (
            f"the history cannot be written: {words}; make room, or give another folder (--state)"
        )
    if "locked" in words:
        return f"the history is in use by another program ({words}); try again"
    if "readonly" in words or "read-only" in words:
        return f"the history cannot be written: {words}; look at the file's rights"
    return f"the history cannot be used: {words}"
