"""The file that the history stands in: opened with its form, its rights and what a crash needs.

SQLite writes ahead to a second file (WAL), so that a reader waits for nobody. Network file systems
do not have the shared memory for it: there the file is locked as a whole while it is written.
"""

import os
import sqlite3
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import psutil

from clustercheck.errors import ConfigError

APPLICATION = 0x636C6368  # "clch", by which `file` and we know the form
VERSION = 2
CACHE_KIB = 64 * 1024
PATIENCE = 20.0  # seconds that a reader or writer waits for another one

NETWORK_FILE_SYSTEMS = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.ceph", "lustre", "gpfs"),
    *("beegfs", "beegfs_nodev", "fuse.sshfs", "fuse.glusterfs", "panfs", "wekafs", "orangefs"),
    *("pvfs2", "quobyte", "fuse.juicefs", "virtiofs"),
}

TABLES = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    started TEXT NOT NULL,
    seconds REAL,
    state TEXT NOT NULL,    -- running, done; broken: killed before its end
    stopped TEXT NOT NULL DEFAULT '',
    checks TEXT NOT NULL,   -- JSON
    notes TEXT NOT NULL DEFAULT '[]',
    version TEXT NOT NULL
);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE names (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, code TEXT NOT NULL, UNIQUE (name, code)
);
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE remedies (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, see TEXT NOT NULL, disturbs INTEGER NOT NULL,
    UNIQUE (text, see, disturbs)
);
CREATE TABLE units (
    id INTEGER PRIMARY KEY, unit TEXT NOT NULL, less INTEGER NOT NULL, UNIQUE (unit, less)
);
CREATE TABLE results (
    node INTEGER NOT NULL, run INTEGER NOT NULL, place INTEGER NOT NULL, seconds REAL,
    PRIMARY KEY (node, run)
) WITHOUT ROWID;
CREATE INDEX results_of_run ON results (run);
CREATE TABLE findings (     -- status: 0 pass, 1 skip, 2 warn, 3 unknown, 4 fail
    node INTEGER NOT NULL, run INTEGER NOT NULL, place INTEGER NOT NULL,
    name INTEGER NOT NULL, status INTEGER NOT NULL, message INTEGER NOT NULL,
    peer TEXT, remedy INTEGER, value REAL, unit INTEGER,
    PRIMARY KEY (node, run, place)
) WITHOUT ROWID;
CREATE INDEX wrong ON findings (run, name, status) WHERE status > 1;
"""

# What version 2 has beside version 1.
TABLES_2 = """
CREATE TABLE facts (        -- told: compressed JSON; a row counts until the next of its check
    node INTEGER NOT NULL, name TEXT NOT NULL, run INTEGER NOT NULL, told BLOB NOT NULL,
    PRIMARY KEY (node, name, run)
) WITHOUT ROWID;
CREATE TABLE standing (     -- finding: JSON; the rest as changes.Standing has it
    node TEXT NOT NULL, name TEXT NOT NULL, code TEXT NOT NULL, peer TEXT NOT NULL,
    finding TEXT NOT NULL, there INTEGER NOT NULL, since TEXT NOT NULL, seen TEXT NOT NULL,
    track TEXT NOT NULL,
    PRIMARY KEY (node, name, code, peer)
) WITHOUT ROWID;
CREATE TABLE accepted (
    number INTEGER PRIMARY KEY AUTOINCREMENT, code TEXT NOT NULL, nodes TEXT NOT NULL,
    until TEXT NOT NULL, why TEXT NOT NULL, who TEXT NOT NULL, at TEXT NOT NULL,
    status INTEGER NOT NULL
);
"""


class Damaged(Exception):
    """The file is no sound database."""


Replay = Callable[[sqlite3.Connection], None]


def connect(path: Path, *, write: bool, replay: Replay) -> tuple[sqlite3.Connection, list[str]]:
    """The database, in today's form, and what is to be said about it.

    write: makes the file where there is none, and looks for the traces of a crash.
    replay: fills what version 2 remembers from the runs of version 1.
    Raises Damaged, ConfigError where it is not to be used, and sqlite3.Error (a full disk).
    """
    if write:
        _make(path)
    elif not _exists(path):
        raise ConfigError(f"{path}: there is no history yet; `clustercheck sweep` begins it")
    notes: list[str] = []
    database = _open(path)
    try:
        _prepare(database, path, replay)
        network = file_system(path) in NETWORK_FILE_SYSTEMS
        mode = "DELETE" if network else "WAL"
        (before,) = database.execute("PRAGMA journal_mode").fetchone()
        if before.upper() != mode:
            database.execute(f"PRAGMA journal_mode = {mode}")
        if network:
            notes.append(
                f"{path} lies on a network file system: it is locked as a whole while it is"
                " written; a local folder (--state) is better"
            )
        database.execute("PRAGMA synchronous = FULL")
        if write:
            # a night of a large cluster: else pages go to the disk several times
            database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            _after_a_crash(database)
    except BaseException as error:
        database.close()
        if is_damage(error):
            raise Damaged(str(error)) from None
        raise
    return database, notes


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file itself is not as it should be."""
    words = str(error)
    return isinstance(error, Damaged) or (
        isinstance(error, sqlite3.DatabaseError)
        and ("malformed" in words or "not a database" in words)
    )


def set_aside(path: Path, now: datetime) -> Path:
    """Rename a damaged file, with those that belong to it; returns its new name."""
    aside = path.with_name(f"{path.name}.damaged-{now:%Y%m%dT%H%M%S}")
    for end in ("-wal", "-shm", "-journal", ""):  # the file itself last: it is what is looked for
        part = path.with_name(path.name + end)
        if part.exists():
            os.replace(part, aside.with_name(aside.name + end))
    return aside


def file_system(path: Path) -> str:
    """The kind of file system that the path lies on; "" where that is not known."""
    real = os.path.realpath(path)
    kinds = {p.mountpoint: p.fstype for p in psutil.disk_partitions(all=True)}
    for folder in (real, *map(str, Path(real).parents)):
        if folder in kinds:
            return kinds[folder]
    return ""


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the files beside it the rights of this one
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigError(
            f"{path}: the history cannot be kept there: {error.strerror}; give another folder"
            " with --state"
        ) from None


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; whose is it?") from None
    if not os.access(path, os.R_OK | os.W_OK):  # a reader has to leave a mark beside the file
        raise ConfigError(f"{path}: only the user who sweeps may read it")
    return True


def _open(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise ConfigError(f"{path}: cannot be opened: {error}") from None


def _prepare(database: sqlite3.Connection, path: Path, replay: Replay) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION:
        raise ConfigError(f"{path}: is a database, and no history; give another folder (--state)")
    if version > VERSION:
        raise ConfigError(
            f"{path}: a newer clustercheck wrote it, in form {version}, and {VERSION} is known"
            " here; use that one, or another folder (--state)"
        )
    if version == VERSION:
        return
    if not tables:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("BEGIN IMMEDIATE")
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()  # another may have been
        if version < 1:
            _run_all(database, TABLES)
        if version < 2:
            _run_all(database, TABLES_2)
            replay(database)
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _run_all(database: sqlite3.Connection, script: str) -> None:
    """As executescript, which would end the transaction first."""
    for statement in script.split(";\n"):
        if statement.strip():
            database.execute(statement)


def _after_a_crash(database: sqlite3.Connection) -> None:
    """A run that never ended was killed, or the machine went down: is the file still sound?

    Whoever writes holds the sweep's lock, so no such run goes on still.
    """
    if not database.execute("SELECT 1 FROM runs WHERE state = 'running'").fetchone():
        return
    (said,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise Damaged(said)
    database.execute("UPDATE runs SET state = 'broken' WHERE state = 'running'")


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(timezone.utc)
