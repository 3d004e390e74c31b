"""What past sweeps found, in one file of SQLite.

A run is written at its end in one step: who kills it before loses this run and no other. Texts
that are said again and again stand once, and of what a node told, only what changed.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from clustercheck import __version__, changes
from clustercheck.answer import Answer
from clustercheck.changes import Acceptance, Key, Point, Standing
from clustercheck.check import Facts, Finding, Quantity, Remedy, Status
from clustercheck.errors import ConfigError
from clustercheck.facts import Told
from clustercheck.history_file import Damaged, connect, is_damage, now, set_aside
from clustercheck.render.escape import sound
from clustercheck.report import NodeResult, Report

NUMBERS = {
    Status.PASS: 0,
    Status.SKIP: 1,
    Status.WARN: 2,
    Status.UNKNOWN: 3,
    Status.FAIL: 4,
}
STATUSES = {number: status for status, number in NUMBERS.items()}
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
                (_text(started), json.dumps(list(checks)), __version__),
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
            _store_run(database, number, report)
            _store_facts(database, number, told)
            oldest = report.started - keep
            _store_standing(database, {k: s for k, s in standing.items() if s.seen >= oldest})
            _forget(database, oldest)
        try:
            self.database.execute("PRAGMA incremental_vacuum")
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            pass  # what was written is safe; SQLite does it another time

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
                    _text(acceptance.when),
                    NUMBERS[acceptance.status],
                ),
            )
            return int(found.lastrowid or 0)

    def no_more(self, number: int) -> bool:
        """Take an acceptance back; False where there is none of the number. Raises Trouble."""
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
        return _read_standing(self.database)

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
        found = self.database.execute(
            _SELECT + f" WHERE {where} AND f.run > ? ORDER BY f.run, r.place, f.place",
            (argument, since),
        )
        return [
            Past(run, datetime.fromisoformat(started), node, check, finding)
            for run, started, node, check, finding in _findings(found)
        ]

    def report(self, number: int) -> Report:
        """A stored run as its report. Raises Trouble where there is none of the number."""
        return _report(self.database, number)

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
            found = History(path, *connect(path, write=True, replay=_replay))
            try:
                found.last(), found.standing(), found.acceptances()  # what a sweep begins with
            except sqlite3.DatabaseError as error:
                found.close()
                raise Damaged(str(error)) from None
            return found
        except Damaged as damage:
            aside = set_aside(path, now())
            database, notes = connect(path, write=True, replay=_replay)
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
        return History(path, *connect(path, write=False, replay=_replay))
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


def _text(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


# A run ------------------------------------------------------------------------------------------

_SELECT = (
    "SELECT f.run, started, nodes.name, n.name, n.code, f.status, t.text, f.peer,"
    " m.text, m.see, m.disturbs, f.value, u.unit, u.less"
    " FROM findings f JOIN results r ON r.node = f.node AND r.run = f.run"
    " JOIN runs ON runs.number = f.run JOIN nodes ON nodes.id = f.node"
    " JOIN names n ON n.id = f.name JOIN texts t ON t.id = f.message"
    " LEFT JOIN remedies m ON m.id = f.remedy LEFT JOIN units u ON u.id = f.unit"
)


def _findings(rows: Iterable[Any]) -> Iterator[tuple[int, str, str, str, Finding]]:
    """(run, its start, node, check, finding) for rows of _SELECT."""
    for run, started, node, check, code, status, text, peer, *more in rows:
        words, see, disturbs, value, unit, less = more
        yield (
            run,
            started,
            node,
            check,
            Finding(
                STATUSES[status],
                code,
                text,
                None if words is None else Remedy(words, see, bool(disturbs)),
                peer or "",
                None if unit is None or value is None else Quantity(value, unit, bool(less)),
            ),
        )


def _report(database: sqlite3.Connection, number: int) -> Report:
    run = database.execute(
        "SELECT started, seconds, stopped, checks, notes FROM runs"
        " WHERE number = ? AND state = 'done'",
        (number,),
    ).fetchone()
    if run is None:
        raise Trouble(f"there is no run {number}; `clustercheck history --runs` lists them")
    started, seconds, stopped, checks, notes = run
    found: dict[str, dict[str, list[Finding]]] = {}
    times = {}
    for name, node_seconds in database.execute(
        "SELECT nodes.name, seconds FROM results JOIN nodes ON id = node WHERE run = ?"
        " ORDER BY place",
        (number,),
    ):
        found[name], times[name] = {}, node_seconds
    rows = database.execute(_SELECT + " WHERE r.run = ? ORDER BY r.place, f.place", (number,))
    for _, _, node, check, finding in _findings(rows):
        found[node].setdefault(check, []).append(finding)
    return Report(
        started=datetime.fromisoformat(started),
        seconds=seconds,
        checks=json.loads(checks),
        nodes={name: NodeResult(name, findings, times[name]) for name, findings in found.items()},
        stopped=stopped,
        notes=tuple(json.loads(notes)),
    )


class _Ids:
    """Numbers of what stands once, in a table: looked up, or added."""

    def __init__(self, database: sqlite3.Connection, table: str, columns: str) -> None:
        marks = ", ".join("?" * len(columns.split(", ")))
        where = " AND ".join(f"{column} = ?" for column in columns.split(", "))
        self._find = f"SELECT id FROM {table} WHERE {where}"
        self._add = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        self._database = database
        self._known: dict[tuple[Any, ...], int] = {}

    def __call__(self, *values: Any) -> int:
        if values not in self._known:
            found = self._database.execute(self._find, values).fetchone()
            if found is None:
                added = self._database.execute(self._add, values)
                self._known[values] = int(added.lastrowid or 0)
            else:
                self._known[values] = int(found[0])
        return self._known[values]


def _store_run(database: sqlite3.Connection, number: int, report: Report) -> None:
    node_id = _Ids(database, "nodes", "name")
    name_id = _Ids(database, "names", "name, code")
    text_id = _Ids(database, "texts", "text")
    remedy_id = _Ids(database, "remedies", "text, see, disturbs")
    unit_id = _Ids(database, "units", "unit, less")

    def row(node: int, place: int, check: str, finding: Finding) -> tuple[Any, ...]:
        value, remedy = finding.value, finding.remedy
        return (
            node,
            number,
            place,
            name_id(sound(check), sound(finding.code)),
            NUMBERS[finding.status],
            text_id(sound(finding.message)),
            sound(finding.peer) or None,
            remedy_id(sound(remedy.text), sound(remedy.see), int(remedy.disturbs))
            if remedy
            else None,
            float(value.number) if value else None,
            unit_id(sound(value.unit), int(value.less_is_worse)) if value else None,
        )

    for node_place, (name, result) in enumerate(report.nodes.items()):
        node = node_id(sound(name))
        database.execute(
            "INSERT INTO results VALUES (?, ?, ?, ?)", (node, number, node_place, result.seconds)
        )
        pairs = ((check, f) for check, found in result.findings.items() for f in found)
        database.executemany(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row(node, place, check, finding) for place, (check, finding) in enumerate(pairs)),
        )
    database.execute(
        "UPDATE runs SET seconds = ?, stopped = ?, notes = ?, state = 'done' WHERE number = ?",
        (
            report.seconds,
            sound(report.stopped),
            json.dumps([sound(note) for note in report.notes]),
            number,
        ),
    )


def _store_facts(
    database: sqlite3.Connection, number: int, told: Mapping[str, Mapping[str, bytes]]
) -> None:
    node_id = _Ids(database, "nodes", "name")
    for node, by_check in told.items():
        of_node = node_id(sound(node))
        before = {
            name: data
            for name, data, _ in database.execute(
                "SELECT name, told, max(run) FROM facts WHERE node = ? GROUP BY name", (of_node,)
            )
        }
        database.executemany(
            "INSERT INTO facts VALUES (?, ?, ?, ?)",
            (
                (of_node, check, number, data)
                for check, data in by_check.items()
                if before.get(check) != data
            ),
        )


def _forget(database: sqlite3.Connection, oldest: datetime) -> None:
    """Take out the runs before `oldest`, and texts that no other has."""
    numbers = [
        number
        for number, started in database.execute("SELECT number, started FROM runs")
        if datetime.fromisoformat(started) < oldest
    ]
    if not numbers:
        return
    last = max(numbers)
    for (node,) in database.execute("SELECT id FROM nodes").fetchall():
        database.execute("DELETE FROM findings WHERE node = ? AND run <= ?", (node, last))
        database.execute("DELETE FROM results WHERE node = ? AND run <= ?", (node, last))
    # the last row before counts on for the runs that are left
    database.execute(
        "DELETE FROM facts WHERE run <= ? AND EXISTS (SELECT 1 FROM facts later WHERE"
        " later.node = facts.node AND later.name = facts.name AND later.run > facts.run"
        " AND later.run <= ?)",
        (last, last + 1),
    )
    database.execute("DELETE FROM runs WHERE number <= ?", (last,))
    database.execute("DELETE FROM texts WHERE id NOT IN (SELECT message FROM findings)")
    database.execute(
        "DELETE FROM remedies WHERE id NOT IN"
        " (SELECT remedy FROM findings WHERE remedy IS NOT NULL)"
    )
    gone = "SELECT id FROM nodes WHERE id NOT IN (SELECT node FROM results)"
    database.execute(f"DELETE FROM facts WHERE node IN ({gone})")
    database.execute(f"DELETE FROM nodes WHERE id IN ({gone})")


# What is remembered -----------------------------------------------------------------------------


def _read_standing(database: sqlite3.Connection) -> dict[Key, Standing]:
    return {
        (node, check, code, peer): Standing(
            _finding_of(peer, json.loads(finding)),
            bool(there),
            datetime.fromisoformat(since),
            datetime.fromisoformat(seen),
            track,
        )
        for node, check, code, peer, finding, there, since, seen, track in database.execute(
            "SELECT node, name, code, peer, finding, there, since, seen, track FROM standing"
        )
    }


def _store_standing(database: sqlite3.Connection, standing: Mapping[Key, Standing]) -> None:
    database.execute("DELETE FROM standing")
    database.executemany(
        "INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *map(sound, key),
                json.dumps(_content(one.finding)),
                int(one.there),
                _text(one.since),
                _text(one.seen),
                one.track,
            )
            for key, one in standing.items()
        ),
    )


def _content(finding: Finding) -> list[Any]:
    value = finding.value
    return [
        finding.status.value,
        sound(finding.code),
        sound(finding.message),
        [sound(finding.remedy.text), sound(finding.remedy.see), finding.remedy.disturbs]
        if finding.remedy
        else None,
        [value.number, sound(value.unit), value.less_is_worse] if value else None,
    ]


def _finding_of(peer: str, content: list[Any]) -> Finding:
    status, code, message, remedy, value = content
    return Finding(
        Status(status),
        code,
        message,
        Remedy(*remedy) if remedy else None,
        peer,
        Quantity(*value) if value else None,
    )


def _replay(database: sqlite3.Connection) -> None:
    """Remember, from the runs that there are, what `standing` would have."""
    standing: dict[Key, Standing] = {}
    numbers = database.execute("SELECT number FROM runs WHERE state = 'done' ORDER BY number")
    for (number,) in numbers.fetchall():
        standing = changes.compare(_report(database, number), standing).standing
    _store_standing(database, standing)
