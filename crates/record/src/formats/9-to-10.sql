-- Format 10 (2026-11-29): runs over several machines, and what these know of each other's clocks. Runs of before were of one.
CREATE TABLE machine (
    trial INTEGER NOT NULL, machine TEXT NOT NULL, role TEXT NOT NULL, hosts TEXT NOT NULL,
    PRIMARY KEY (trial, machine)
) WITHOUT ROWID;
CREATE TABLE machine_clock (
    trial INTEGER NOT NULL, machine TEXT NOT NULL, other TEXT NOT NULL, at_ns INTEGER NOT NULL,
    ahead_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    PRIMARY KEY (trial, machine, other, at_ns)
) WITHOUT ROWID;
