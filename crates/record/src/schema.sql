-- One run of Brownout. Times are nanoseconds since the run's zero; see `session`.
-- Histograms are HdrHistogram V2 blobs, values in nanoseconds.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- JSON texts: 'design', 'environment', 'set'; the experiment file as it was given: 'experiment'
CREATE TABLE document (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

-- A run that goes on after it was interrupted, or after a reboot, has a session for each time.
CREATE TABLE session (
    session INTEGER PRIMARY KEY,
    boot_id TEXT NOT NULL,           -- of the kernel; '' in a run of format 5 and before
    started_unix_ms INTEGER NOT NULL,
    zero_monotonic_ns INTEGER NOT NULL, -- CLOCK_MONOTONIC when it began ...
    starts_ns INTEGER NOT NULL       -- ... which was this time of the run
);
-- The cells of the design.
CREATE TABLE cell (
    cell INTEGER PRIMARY KEY,
    levels TEXT NOT NULL,            -- JSON: `levels`, the name of its level of each factor
    compared_with INTEGER NOT NULL,  -- the cell under whose number its trials without a fault are
    description TEXT NOT NULL        -- JSON: its plan
);
CREATE TABLE trial (
    trial INTEGER PRIMARY KEY,       -- in the order in which they were run
    planned INTEGER NOT NULL,        -- its number in the design: attempts share it
    cell INTEGER NOT NULL, block INTEGER NOT NULL,
    arm TEXT NOT NULL,               -- fault, none
    attempt INTEGER NOT NULL,
    stand INTEGER NOT NULL,          -- the network and cluster that served it
    lab INTEGER NOT NULL,            -- of those that worked at once, from 1 ...
    processors TEXT NOT NULL,        -- ... and what it ran on: '0-3,8'; '' in a run of format 6 and before
    session INTEGER NOT NULL,
    seed INTEGER NOT NULL, starts_ns INTEGER NOT NULL, ends_ns INTEGER,
    state TEXT NOT NULL              -- running, done, interrupted, failed
);
CREATE TABLE phase (
    trial INTEGER NOT NULL, name TEXT NOT NULL, starts_ns INTEGER NOT NULL, ends_ns INTEGER,
    ended_by TEXT,                   -- 'time', 'stationary', 'limit', 'interrupt'
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;
CREATE TABLE event (
    id INTEGER PRIMARY KEY, trial INTEGER, at_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    kind TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX event_by_trial ON event (trial, at_ns);
CREATE TABLE fault (
    trial INTEGER NOT NULL, fault INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (trial, fault)
) WITHOUT ROWID;

-- Operations by the interval of their intended start. An unsettled interval still has operations open.
CREATE TABLE load (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, settled INTEGER NOT NULL,
    scheduled INTEGER NOT NULL, sent INTEGER NOT NULL, never_sent INTEGER NOT NULL, stale INTEGER NOT NULL,
    lateness BLOB NOT NULL,
    stood_still_ns INTEGER NOT NULL, -- of the length: the client owed an operation and did not send it
    withheld INTEGER NOT NULL,       -- was due, and found no free user: no part of scheduled
    looked_for INTEGER NOT NULL DEFAULT 0, -- acknowledged writes that a read of the interval was the first to look for
    lost INTEGER NOT NULL DEFAULT 0, -- of these, not found
    PRIMARY KEY (trial, starts_ns)
) WITHOUT ROWID;
-- What was never sent in the intervals of `load`, by operation; no row: nothing.
CREATE TABLE never_sent (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, statement TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (trial, starts_ns, statement)
) WITHOUT ROWID;
CREATE TABLE latency (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, statement TEXT NOT NULL, coordinator TEXT NOT NULL,
    outcome TEXT NOT NULL,           -- ok, failed:CLASS, timed-out, late
    count INTEGER NOT NULL, wait BLOB NOT NULL, service BLOB NOT NULL, response BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, statement, coordinator, outcome)
) WITHOUT ROWID;
-- Watches of what was put (etcd): by the interval of the put's intended start, no operations themselves. `coordinator` is the node
-- that the watch is on; wait: put sent - intended, service: seen - sent, response: seen - intended; timed-out: not seen in time.
CREATE TABLE watch (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, statement TEXT NOT NULL, coordinator TEXT NOT NULL,
    outcome TEXT NOT NULL,           -- ok, timed-out, late
    count INTEGER NOT NULL, wait BLOB NOT NULL, service BLOB NOT NULL, response BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, statement, coordinator, outcome)
) WITHOUT ROWID;

-- What the emulator counted on the ordered pair sender → receiver, in wire packets and bytes.
CREATE TABLE link (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL,
    sender TEXT NOT NULL, receiver TEXT NOT NULL,
    offered INTEGER NOT NULL, offered_bytes INTEGER NOT NULL,
    delivered INTEGER NOT NULL, delivered_bytes INTEGER NOT NULL,
    lost INTEGER NOT NULL, dropped_queue INTEGER NOT NULL, dropped_emulator INTEGER NOT NULL,
    duplicated INTEGER NOT NULL, corrupted INTEGER NOT NULL, reordered INTEGER NOT NULL, cut INTEGER NOT NULL, too_big INTEGER NOT NULL,
    release_error BLOB NOT NULL, held BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, sender, receiver)
) WITHOUT ROWID;
-- Probes by the interval of their sending; samples: see samples.rs
CREATE TABLE probe (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, sender TEXT NOT NULL, receiver TEXT NOT NULL,
    samples BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, sender, receiver)
) WITHOUT ROWID;
-- The same through the overlay, where there is one.
CREATE TABLE overlay_probe (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, sender TEXT NOT NULL, receiver TEXT NOT NULL,
    samples BLOB NOT NULL,
    PRIMARY KEY (trial, starts_ns, sender, receiver)
) WITHOUT ROWID;
-- CPU time used in an interval; subject: 'machine' (of the lab's processors together), 'stolen', 'cores' (what there was),
-- 'node:NAME', 'emulator', 'overlay' (its thread and processes), 'load', 'instrument' (all of Brownout, these three
-- and more), 'interrupts';
-- outside of the lab 'programs', the largest of them 'program:PID:NAME', 'kernel' (its threads); not CPU time but time spent
-- waiting for a processor: 'waited:NODE', 'emulator-waited', 'load-waited', 'pressure' (in which anything waited); no row where the
-- kernel does not tell
CREATE TABLE cpu (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL,
    subject TEXT NOT NULL, busy_ns INTEGER NOT NULL,
    PRIMARY KEY (trial, starts_ns, subject)
) WITHOUT ROWID;

-- What those saw who look at the subject of a fault itself: one row for each measurement. The subject is a host; or, with a
-- receiver, the way from that host to it; or, with a directory, that directory of the host. Values: ns, shares 0 to 1, bit/s;
-- a single heartbeat, or one write that could have failed, is 1 or 0.
CREATE TABLE witness (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL,
    host TEXT NOT NULL, receiver TEXT, directory TEXT,
    quantity TEXT NOT NULL,          -- rate, answers, running, processor-share, sync-time, clock-offset, …
    source TEXT NOT NULL,            -- train, heartbeat, process, governor, disk-probe, disk, sntp, database
    value REAL NOT NULL, error REAL NOT NULL,
    overlay INTEGER NOT NULL DEFAULT 0 -- 1: the way to the receiver is the one through the overlay
);
CREATE INDEX witness_by_trial ON witness (trial, at_ns);
-- One exchange by NTP over the network: what the clock of `server` shows − what that of `host` shows, by host; the truth lies
-- within ± bound_ns. Where the plan asks for it, and of the nodes of an external cluster always.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL, host TEXT NOT NULL, server TEXT NOT NULL,
    round_trip_ns INTEGER NOT NULL, offset_ns INTEGER NOT NULL, bound_ns INTEGER NOT NULL
);
CREATE INDEX clock_by_trial ON clock (trial, at_ns);
-- What the kernel of a host counted in an interval: packets thrown away because a checksum was wrong.
CREATE TABLE host_counters (
    trial INTEGER NOT NULL, starts_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, host TEXT NOT NULL,
    checksum_errors INTEGER NOT NULL, interface_dropped INTEGER NOT NULL,
    PRIMARY KEY (trial, starts_ns, host)
) WITHOUT ROWID;
-- What the database itself tells of what it does: counters and gauges, one row whenever a value has changed (the first is
-- left out if it is 0), and what happened, one row each.
CREATE TABLE evidence (
    id INTEGER PRIMARY KEY, trial INTEGER NOT NULL, at_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    node TEXT NOT NULL,
    source TEXT NOT NULL,            -- jmx, system-log, safepoint-log
    subject TEXT NOT NULL,           -- another node, a verb, a thread pool, a cause; empty where there is only one
    name TEXT NOT NULL,              -- speculative-retries, snitch-score, hints-stored, marked-down, pause, …
    value REAL NOT NULL              -- a count since the node's start, a gauge, or a length in ns
);
CREATE INDEX evidence_by_trial ON evidence (trial, at_ns);
-- Of a run over several machines: which there were. No row: all of the run was one machine's.
CREATE TABLE machine (
    trial INTEGER NOT NULL, machine TEXT NOT NULL,
    role TEXT NOT NULL,              -- agent: hosts run there; load: operations are sent from there
    hosts TEXT NOT NULL,             -- JSON: a list of their names
    PRIMARY KEY (trial, machine)
) WITHOUT ROWID;
-- By how much the monotonic clock of another machine was ahead of that of a machine: the truth lies within ± error_ns. Times of the
-- run are by the clock of the machine that all others have a row with.
CREATE TABLE machine_clock (
    trial INTEGER NOT NULL, machine TEXT NOT NULL, other TEXT NOT NULL, at_ns INTEGER NOT NULL,
    ahead_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,
    PRIMARY KEY (trial, machine, other, at_ns)
) WITHOUT ROWID;
