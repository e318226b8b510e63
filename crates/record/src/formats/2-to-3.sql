-- Format 3 (2026-11-22): each JSON document says its own format. One that says none is of its first; only faults had
-- changed by then.
UPDATE fault SET json = json_set(json, '$.format', 2) WHERE json_extract(json, '$.format') IS NULL;
-- What the emulator dropped because it ran out was counted in dropped_queue: how much of that it was, nobody knows.
ALTER TABLE link ADD COLUMN dropped_emulator INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host_counters ADD COLUMN interface_dropped INTEGER NOT NULL DEFAULT 0;
