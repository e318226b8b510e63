-- Format 6 (2026-11-23): designs. A run of before has one cell, each of its trials is a block of its own with its faults,
-- on a stand of its own, tried once; and it was made in one session, by one lab at a time.
CREATE TABLE session (
    session INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, started_unix_ms INTEGER NOT NULL,
    zero_monotonic_ns INTEGER NOT NULL, starts_ns INTEGER NOT NULL
);
INSERT INTO session SELECT 1, '',
    CAST((SELECT value FROM meta WHERE key = 'started_unix_ms') AS INTEGER),
    CAST((SELECT value FROM meta WHERE key = 'zero_monotonic_ns') AS INTEGER), 0;
CREATE TABLE cell (
    cell INTEGER PRIMARY KEY, levels TEXT NOT NULL, compared_with INTEGER NOT NULL, description TEXT NOT NULL
);
INSERT INTO cell SELECT 1, '[]', 1, text FROM document WHERE name = 'description';
DELETE FROM document WHERE name = 'description';
CREATE TABLE trial_of_before AS SELECT * FROM trial;
DROP TABLE trial;
CREATE TABLE trial (
    trial INTEGER PRIMARY KEY, planned INTEGER NOT NULL, cell INTEGER NOT NULL, block INTEGER NOT NULL,
    arm TEXT NOT NULL, attempt INTEGER NOT NULL, stand INTEGER NOT NULL,
    lab INTEGER NOT NULL, processors TEXT NOT NULL, session INTEGER NOT NULL,
    seed INTEGER NOT NULL, starts_ns INTEGER NOT NULL, ends_ns INTEGER, state TEXT NOT NULL
);
INSERT INTO trial SELECT trial, trial, 1, trial, 'fault', 1, trial, 1, '', 1, seed, starts_ns, ends_ns, state FROM trial_of_before;
DROP TABLE trial_of_before;
-- The database's own evidence: of an earlier run there is none.
CREATE TABLE evidence (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    node TEXT NOT NULL, source TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL
);
CREATE INDEX evidence_by_trial ON evidence (trial, at_ns);
