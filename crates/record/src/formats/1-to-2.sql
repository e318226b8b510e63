-- Format 2 (2026-11-21): faults of every kind, in places of every kind.
-- The emulator of format 1 only delayed and lost packets: that it did nothing else is known, not assumed.
ALTER TABLE link ADD COLUMN duplicated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link ADD COLUMN corrupted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link ADD COLUMN reordered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link ADD COLUMN too_big INTEGER NOT NULL DEFAULT 0;
CREATE TABLE witness (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL,
    host TEXT NOT NULL, receiver TEXT, folder TEXT,
    quantity TEXT NOT NULL, source TEXT NOT NULL, value REAL NOT NULL, error REAL NOT NULL
);
CREATE INDEX witness_by_trial ON witness (trial, at_ns);
CREATE TABLE host_counters (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, host TEXT NOT NULL,
    checksum_errors INTEGER NOT NULL,
    PRIMARY KEY (trial, starts_ns, host)
) WITHOUT ROWID;
-- Documents did not say their format yet. Those of faults were of the first one; document.rs brings them up to date.
UPDATE fault SET json = json_set(json, '$.format', 1);
