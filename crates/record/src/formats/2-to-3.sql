-- Format 3 (2026-11-22): each JSON document says its own format. One that says none is of its first; only faults had
-- changed by then.
UPDATE fault SET json = json_set(json, '$.format', 2) WHERE json_extract(json, '$.format') IS NULL;
