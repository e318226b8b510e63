-- Format 9 (2026-11-28): what --set changed, and the levels of a cell, are documents that say their format. What was set had been
-- a line for each change, and a JSON list since the middle of format 6.
UPDATE document SET text = CASE
    WHEN json_valid(text) THEN json_object('format', 2, 'assignments', json(text))
    ELSE json_object('format', 1, 'lines', text)
END WHERE name = 'set';
UPDATE cell SET levels = json_object('format', 1, 'levels', json(levels));
