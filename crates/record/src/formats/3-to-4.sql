-- Format 4 (2026-11-22): what was never sent, by operation. Of an earlier run only the sum of all operations is known.
CREATE TABLE never_sent (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, statement TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (trial, starts_ns, statement)
) WITHOUT ROWID;
-- One word for one thing.
ALTER TABLE witness RENAME COLUMN folder TO directory;
