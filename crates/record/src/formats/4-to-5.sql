-- Format 5 (2026-11-23): how long the client stood still. Of an earlier run only the lateness of what was sent is known.
ALTER TABLE load ADD COLUMN stood_still_ns INTEGER NOT NULL DEFAULT 0;
