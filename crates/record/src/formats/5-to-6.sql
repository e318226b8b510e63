-- Format 6 (2026-11-23): the database's own evidence. Of an earlier run there is none.
CREATE TABLE evidence (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    node TEXT NOT NULL, source TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL
);
CREATE INDEX evidence_by_trial ON evidence (trial, at_ns);
