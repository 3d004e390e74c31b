"""The rows of the history: a run and what is remembered, to rows and back."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from clustercheck import changes
from clustercheck.changes import Key, Standing
from clustercheck.check import Finding, Quantity, Remedy, Status
from clustercheck.render.escape import sound
from clustercheck.report import NodeResult, Report

LARGEST = 2**63 - 1  # number that SQLite can be asked for
NUMBERS = {
    Status.PASS: 0,
    Status.SKIP: 1,
    Status.WARN: 2,
    Status.UNKNOWN: 3,
    Status.FAIL: 4,
}
STATUSES = {number: status for status, number in NUMBERS.items()}


def text_of(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


# A run ------------------------------------------------------------------------------------------

SELECT = (
    "SELECT f.run, f.node, f.name, f.status, t.text, f.peer, f.remedy, f.value, f.unit"
    " FROM findings f JOIN texts t ON t.id = f.message"
)


def read_findings(
    database: sqlite3.Connection, rows: Iterable[Any]
) -> Iterator[tuple[int, str, str, Finding]]:
    """(run, node, check, finding) for rows of SELECT.

    The small tables are read whole: to join them for each row takes longer than all the rest.
    """
    nodes = dict(database.execute("SELECT id, name FROM nodes"))
    names = {i: (name, code) for i, name, code in database.execute("SELECT * FROM names")}
    units = {i: (unit, bool(less)) for i, unit, less in database.execute("SELECT * FROM units")}
    remedies = {
        i: Remedy(text, see, bool(disturbs))
        for i, text, see, disturbs in database.execute("SELECT * FROM remedies")
    }
    for run, node, name, status, text, peer, remedy, value, unit in rows:
        check, code = names[name]
        quantity = None if unit is None or value is None else Quantity(value, *units[unit])
        found = Finding(STATUSES[status], code, text, remedies.get(remedy), peer or "", quantity)
        yield run, nodes[node], check, found


def read_report(database: sqlite3.Connection, number: int) -> Report | None:
    """A stored run as its report; None where there is none of the number."""
    if number > LARGEST:
        return None
    run = database.execute(
        "SELECT started, seconds, stopped, checks, notes FROM runs"
        " WHERE number = ? AND state = 'done'",
        (number,),
    ).fetchone()
    if run is None:
        return None
    started, seconds, stopped, checks, notes = run
    found: dict[str, dict[str, list[Finding]]] = {}
    times = {}
    for name, node_seconds in database.execute(
        "SELECT nodes.name, seconds FROM results JOIN nodes ON id = node WHERE run = ?"
        " ORDER BY place",
        (number,),
    ):
        found[name], times[name] = {}, node_seconds
    rows = database.execute(
        SELECT + " JOIN results r ON r.node = f.node AND r.run = f.run WHERE r.run = ?"
        " ORDER BY r.place, f.place",
        (number,),
    )
    for _, node, check, finding in read_findings(database, rows):
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


def store_run(database: sqlite3.Connection, number: int, report: Report) -> None:
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


def store_facts(
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


def forget(database: sqlite3.Connection, oldest: datetime) -> None:
    """Take out the runs before `oldest`, and texts that no other has."""
    last = 0
    for number, started in database.execute("SELECT number, started FROM runs ORDER BY number"):
        if datetime.fromisoformat(started) >= oldest:
            break  # what came after was not before, whatever the clock said
        last = number
    if not last:
        return
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


def read_standing(database: sqlite3.Connection) -> dict[Key, Standing]:
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


def store_standing(database: sqlite3.Connection, standing: Mapping[Key, Standing]) -> None:
    database.execute("DELETE FROM standing")
    database.executemany(
        "INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *map(sound, key),
                json.dumps(_content(one.finding)),
                int(one.there),
                text_of(one.since),
                text_of(one.seen),
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


def replay(database: sqlite3.Connection) -> None:
    """Remember, from the runs that there are, what `standing` would have."""
    standing: dict[Key, Standing] = {}
    numbers = database.execute("SELECT number FROM runs WHERE state = 'done' ORDER BY number")
    for (number,) in numbers.fetchall():
        report = read_report(database, number)
        standing = changes.compare(report, standing).standing if report else standing
    store_standing(database, standing)
