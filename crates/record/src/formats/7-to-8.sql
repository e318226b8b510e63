-- Format 8 (2026-11-24): what watches saw, and overlays with probes and witnesses of their own; before there were none. (That a
-- cell's database, overlay and encryption are named, the description's own format says.)
CREATE TABLE watch (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, statement TEXT NOT NULL, coordinator TEXT NOT NULL,
    outcome TEXT NOT NULL,
    count INTEGER NOT NULL, wait BLOB NOT NULL, service BLOB NOT NULL, response BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, statement, coordinator, outcome)
) WITHOUT ROWID;
CREATE TABLE overlay_probe (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, sender TEXT NOT NULL, receiver TEXT NOT NULL,
    samples BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, sender, receiver)
) WITHOUT ROWID;
ALTER TABLE witness ADD COLUMN overlay INTEGER NOT NULL DEFAULT 0;
-- Acknowledged writes that later reads looked for and did not find; and what hosts' clocks say of each other. Before nobody counted.
ALTER TABLE load ADD COLUMN looked_for INTEGER NOT NULL DEFAULT 0;
ALTER TABLE load ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
CREATE TABLE clock (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL, host TEXT NOT NULL, server TEXT NOT NULL,
    round_trip_ns INTEGER NOT NULL, offset_ns INTEGER NOT NULL, bound_ns INTEGER NOT NULL
);
CREATE INDEX clock_by_trial ON clock (trial, at_ns);
