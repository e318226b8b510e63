-- Format 5 (2026-11-23): how long the client stood still, and what found no free user. Of an earlier run only the lateness of
-- what was sent is known.
ALTER TABLE load ADD COLUMN stood_still_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE load ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0;
