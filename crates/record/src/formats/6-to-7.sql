-- Format 7 (2026-11-23): several labs at once. Before there was one at a time, and nobody wrote what it ran on.
ALTER TABLE trial ADD COLUMN lab INTEGER NOT NULL DEFAULT 1;
ALTER TABLE trial ADD COLUMN processors TEXT NOT NULL DEFAULT '';
CREATE INDEX event_by_trial ON event (trial, at_ns);
