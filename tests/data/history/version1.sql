-- The history of three nights in its first form, as a program of that form wrote it.
PRAGMA application_id = 1668047720;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE findings (     -- status: 0 pass, 1 skip, 2 warn, 3 unknown, 4 fail
    node INTEGER NOT NULL, run INTEGER NOT NULL, place INTEGER NOT NULL,
    name INTEGER NOT NULL, status INTEGER NOT NULL, message INTEGER NOT NULL,
    peer TEXT, remedy INTEGER, value REAL, unit INTEGER,
    PRIMARY KEY (node, run, place)
) WITHOUT ROWID;
INSERT INTO "findings" VALUES(1,1,0,1,0,1,NULL,NULL,900.0,1);
INSERT INTO "findings" VALUES(1,2,0,1,2,2,NULL,1,200.0,1);
INSERT INTO "findings" VALUES(1,3,0,1,2,2,NULL,1,200.0,1);
INSERT INTO "findings" VALUES(2,1,0,1,2,2,NULL,1,200.0,1);
INSERT INTO "findings" VALUES(2,2,0,1,2,2,NULL,1,200.0,1);
INSERT INTO "findings" VALUES(2,3,0,1,0,1,NULL,NULL,900.0,1);
CREATE TABLE names (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, code TEXT NOT NULL, UNIQUE (name, code)
);
INSERT INTO "names" VALUES(1,'nfs','speed');
CREATE TABLE nodes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO "nodes" VALUES(1,'n1');
INSERT INTO "nodes" VALUES(2,'n2');
CREATE TABLE remedies (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, see TEXT NOT NULL, disturbs INTEGER NOT NULL,
    UNIQUE (text, see, disturbs)
);
INSERT INTO "remedies" VALUES(1,'Look at the server.','§4.1.3',0);
CREATE TABLE results (
    node INTEGER NOT NULL, run INTEGER NOT NULL, place INTEGER NOT NULL, seconds REAL,
    PRIMARY KEY (node, run)
) WITHOUT ROWID;
INSERT INTO "results" VALUES(1,1,0,1.5);
INSERT INTO "results" VALUES(1,2,0,1.5);
INSERT INTO "results" VALUES(1,3,0,1.5);
INSERT INTO "results" VALUES(2,1,1,1.5);
INSERT INTO "results" VALUES(2,2,1,1.5);
INSERT INTO "results" VALUES(2,3,1,1.5);
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
INSERT INTO "runs" VALUES(1,'2026-12-01T03:00:00+00:00',4.0,'done','','["nfs", "ntp"]','[]','0.1');
INSERT INTO "runs" VALUES(2,'2026-12-02T03:00:00+00:00',4.0,'done','','["nfs", "ntp"]','[]','0.1');
INSERT INTO "runs" VALUES(3,'2026-12-03T03:00:00+00:00',4.0,'done','','["nfs", "ntp"]','[]','0.1');
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
INSERT INTO "texts" VALUES(1,'900 MB/s');
INSERT INTO "texts" VALUES(2,'200 MB/s');
CREATE TABLE units (
    id INTEGER PRIMARY KEY, unit TEXT NOT NULL, less INTEGER NOT NULL, UNIQUE (unit, less)
);
INSERT INTO "units" VALUES(1,'MB/s',1);
CREATE INDEX results_of_run ON results (run);
CREATE INDEX wrong ON findings (run, name, status) WHERE status > 1;
COMMIT;
