//! Reading a run.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Row};

use crate::{
    Arm, CellRow, CpuRow, Description, DesignDescription, EncodedTimes, Environment, Event, FaultRecord,
    HostCounterRow, LatencyRow, LinkReading, LinkRow, LoadRow, PhaseRow, ProbeRow, Quantity, RecordError, SessionRow,
    Subject, TrialRow, TrialState, WitnessRow,
    blob::decode_histogram,
    design::Levels,
    document::{self, Document},
    format::{self, APPLICATION_ID, FORMAT},
    open::open,
    samples::decode_samples,
};

/// A run, opened for reading, as it was at that moment: it may still be written by another process, which is never hindered;
/// open it again to see more. The file itself is not changed; one of an earlier format is read from a copy brought up to date.
pub struct Run {
    db: Connection,
    path: PathBuf,
}

impl Run {
    /// Opens a run by its directory or by its `run.db`.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let path = if path.is_dir() { path.join("run.db") } else { path.to_owned() };
        if let Err(error) = std::fs::metadata(&path) {
            return Err(RecordError::NotFound { path, why: error.to_string() });
        }
        let not_a_run = |why: String| RecordError::NotARun { path: path.clone(), why };
        let db = open(&path).map_err(|error| not_a_run(error.to_string()))?;
        let pragma = |name: &str| {
            db.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(|error| not_a_run(error.to_string()))
        };
        if pragma("application_id")? != APPLICATION_ID {
            return Err(not_a_run("it is a database of another program".to_owned()));
        }
        match pragma("user_version")? {
            FORMAT => Ok(Run { db, path }),
            format @ 1..FORMAT => {
                let copied = format::copy(&db).and_then(|copy| format::migrate(&copy, format).map(|()| copy));
                let doing = "read an earlier format from a temporary copy";
                match copied {
                    Ok(db) => Ok(Run { db, path }),
                    Err(source) => Err(RecordError::Sqlite { doing, path, source }),
                }
            }
            format if format > FORMAT => {
                let why = format!("{} has format {format}, this version reads up to {FORMAT}", path.display());
                Err(RecordError::Newer { what: "file", why })
            }
            format => Err(not_a_run(format!("there was never a format {format}"))),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, source: rusqlite::Error) -> RecordError {
        RecordError::Sqlite { doing: "read", path: self.path.clone(), source }
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, RecordError> {
        let mut statement = self.db.prepare_cached(sql).map_err(|error| self.error(error))?;
        let rows = statement.query_map(values, read).map_err(|error| self.error(error))?;
        rows.collect::<rusqlite::Result<Vec<T>>>().map_err(|error| self.error(error))
    }

    /// A text stored under a name.
    pub fn document(&self, name: &str) -> Result<Option<String>, RecordError> {
        Ok(self.rows("SELECT text FROM document WHERE name = ?", [name], |row| row.get(0))?.pop())
    }

    /// All texts, by their names.
    pub fn documents(&self) -> Result<Vec<(String, String)>, RecordError> {
        self.rows("SELECT name, text FROM document ORDER BY name", [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn json<T: Document>(&self, name: &str) -> Result<Option<T>, RecordError> {
        self.document(name)?.map(|text| document::read(&text)).transpose()
    }

    /// The run as planned: the plan of its first cell.
    pub fn description(&self) -> Result<Description, RecordError> {
        self.cells()?.into_iter().next().map(|cell| cell.description).ok_or(RecordError::Damaged {
            what: "description",
            why: "it is missing: the run was killed before its plan was written".to_owned(),
        })
    }

    /// The design; none if nothing varies and the run says no more of it.
    pub fn design(&self) -> Result<Option<DesignDescription>, RecordError> {
        self.json("design")
    }

    /// The cells of the design, in order.
    pub fn cells(&self) -> Result<Vec<CellRow>, RecordError> {
        self.rows("SELECT cell, levels, compared_with, description FROM cell ORDER BY cell", [], |row| {
            let (levels, description): (String, String) = (row.get(1)?, row.get(3)?);
            Ok(CellRow {
                cell: row.get(0)?,
                levels: document::read::<Levels>(&levels).map_err(|error| damaged(1, error))?.levels,
                compared_with: row.get(2)?,
                description: document::read(&description).map_err(|error| damaged(3, error))?,
            })
        })
    }

    /// The times in which the run was made, in order.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, RecordError> {
        let sql =
            "SELECT session, boot_id, started_unix_ms, zero_monotonic_ns, starts_ns FROM session ORDER BY session";
        self.rows(sql, [], |row| {
            Ok(SessionRow {
                session: row.get(0)?,
                boot_id: row.get(1)?,
                started_unix_ms: unsigned(row, 2)?,
                zero_monotonic_ns: unsigned(row, 3)?,
                starts_ns: unsigned(row, 4)?,
            })
        })
    }

    /// The last moment that the run has something of, ns since its zero.
    pub(crate) fn last_ns(&self) -> Result<u64, RecordError> {
        let sql = "SELECT max(
            (SELECT coalesce(max(starts_ns), 0) FROM session), (SELECT coalesce(max(at_ns), 0) FROM event),
            (SELECT coalesce(max(max(starts_ns, coalesce(ends_ns, 0))), 0) FROM trial),
            (SELECT coalesce(max(starts_ns + length_ns), 0) FROM load),
            (SELECT coalesce(max(starts_ns + length_ns), 0) FROM cpu))";
        Ok(self.rows(sql, [], |row| unsigned(row, 0))?.pop().unwrap_or(0))
    }

    /// The machine and versions; none if the run was killed before they were known.
    pub fn environment(&self) -> Result<Option<Environment>, RecordError> {
        self.json("environment")
    }

    /// Wall-clock time of the run's start, ms since 1970 UTC.
    pub fn started_unix_ms(&self) -> Result<u64, RecordError> {
        let text: Vec<String> =
            self.rows("SELECT value FROM meta WHERE key = 'started_unix_ms'", [], |row| row.get(0))?;
        text.first()
            .and_then(|text| text.parse().ok())
            .ok_or(RecordError::Damaged { what: "start time", why: format!("{text:?} is not a number") })
    }

    /// All trials, in order.
    pub fn trials(&self) -> Result<Vec<TrialRow>, RecordError> {
        let sql = "SELECT trial, planned, cell, block, arm, attempt, stand, lab, processors, session, seed, starts_ns, ends_ns,
                   state FROM trial ORDER BY trial";
        self.rows(sql, [], |row| {
            let (arm, state): (String, String) = (row.get(4)?, row.get(13)?);
            Ok(TrialRow {
                trial: row.get(0)?,
                planned: row.get(1)?,
                cell: row.get(2)?,
                block: row.get(3)?,
                arm: Arm::ALL.into_iter().find(|known| known.to_string() == arm).unwrap_or(Arm::Fault),
                attempt: row.get(5)?,
                stand: row.get(6)?,
                lab: row.get(7)?,
                processors: row.get(8)?,
                session: row.get(9)?,
                seed: row.get::<_, i64>(10)?.cast_unsigned(),
                starts_ns: unsigned(row, 11)?,
                ends_ns: row.get::<_, Option<i64>>(12)?.map(i64::cast_unsigned),
                state: TrialState::ALL
                    .into_iter()
                    .find(|known| known.to_string() == state)
                    .unwrap_or(TrialState::Failed),
            })
        })
    }

    /// The phases of a trial, in order.
    pub fn phases(&self, trial: u32) -> Result<Vec<PhaseRow>, RecordError> {
        self.rows(
            "SELECT name, starts_ns, ends_ns, ended_by FROM phase WHERE trial = ? ORDER BY starts_ns",
            [trial],
            |row| {
                Ok(PhaseRow {
                    trial,
                    name: row.get(0)?,
                    starts_ns: unsigned(row, 1)?,
                    ends_ns: row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
                    ended_by: row.get(3)?,
                })
            },
        )
    }

    /// All events, in order of time.
    pub fn events(&self) -> Result<Vec<Event>, RecordError> {
        self.rows("SELECT trial, at_ns, error_ns, kind, subject, text FROM event ORDER BY at_ns, id", [], event)
    }

    /// Those of one trial, in order of time.
    pub fn events_of(&self, trial: u32) -> Result<Vec<Event>, RecordError> {
        let sql = "SELECT trial, at_ns, error_ns, kind, subject, text FROM event WHERE trial = ? ORDER BY at_ns, id";
        self.rows(sql, [trial], event)
    }

    /// The faults of a trial, in the experiment's order.
    pub fn faults(&self, trial: u32) -> Result<Vec<FaultRecord>, RecordError> {
        self.rows("SELECT json FROM fault WHERE trial = ? ORDER BY fault", [trial], |row| row.get::<_, String>(0))?
            .iter()
            .map(|text| document::read(text))
            .collect()
    }

    /// The load of a trial, interval by interval.
    pub fn load(&self, trial: u32) -> Result<Vec<LoadRow>, RecordError> {
        let mut never_sent: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
        for (starts_ns, operation, count) in
            self.rows("SELECT starts_ns, statement, count FROM never_sent WHERE trial = ?", [trial], |row| {
                Ok((unsigned(row, 0)?, row.get(1)?, unsigned(row, 2)?))
            })?
        {
            never_sent.entry(starts_ns).or_default().insert(operation, count);
        }
        let mut rows = self.rows(
            "SELECT starts_ns, length_ns, settled, scheduled, sent, never_sent, stale, lateness, stood_still_ns,
             withheld, looked_for, lost FROM load WHERE trial = ? ORDER BY starts_ns",
            [trial],
            |row| {
                Ok(LoadRow {
                    starts_ns: unsigned(row, 0)?,
                    length_ns: unsigned(row, 1)?,
                    settled: row.get(2)?,
                    scheduled: unsigned(row, 3)?,
                    sent: unsigned(row, 4)?,
                    never_sent: unsigned(row, 5)?,
                    never_sent_by_operation: BTreeMap::new(),
                    stale: unsigned(row, 6)?,
                    lateness: times(row, 7)?,
                    stood_still_ns: unsigned(row, 8)?,
                    withheld: unsigned(row, 9)?,
                    looked_for: unsigned(row, 10)?,
                    lost: unsigned(row, 11)?,
                })
            },
        )?;
        for row in &mut rows {
            row.never_sent_by_operation = never_sent.remove(&row.starts_ns).unwrap_or_default();
        }
        Ok(rows)
    }

    /// The latencies of the intervals of a trial that start within `window`.
    pub fn latencies(&self, trial: u32, window: Range<u64>) -> Result<Vec<LatencyRow>, RecordError> {
        let sql = "SELECT starts_ns, statement, coordinator, outcome, count, wait, service, response
                   FROM latency WHERE trial = ? AND starts_ns >= ? AND starts_ns < ? ORDER BY starts_ns";
        self.rows(sql, window_params(trial, &window), latency)
    }

    /// What watches saw of the puts of the intervals of a trial that start within `window`.
    pub fn watches(&self, trial: u32, window: Range<u64>) -> Result<Vec<LatencyRow>, RecordError> {
        let sql = "SELECT starts_ns, statement, coordinator, outcome, count, wait, service, response
                   FROM watch WHERE trial = ? AND starts_ns >= ? AND starts_ns < ? ORDER BY starts_ns";
        self.rows(sql, window_params(trial, &window), latency)
    }

    /// The link counters of the intervals of a trial that start within `window`.
    pub fn links(&self, trial: u32, window: Range<u64>) -> Result<Vec<LinkRow>, RecordError> {
        let mut rows = Vec::new();
        self.each_link(trial, window, |reading| {
            rows.push(LinkRow {
                starts_ns: reading.starts_ns,
                length_ns: reading.length_ns,
                from: reading.from.to_owned(),
                to: reading.to.to_owned(),
                offered: reading.offered,
                offered_bytes: reading.offered_bytes,
                delivered: reading.delivered,
                delivered_bytes: reading.delivered_bytes,
                lost: reading.lost,
                dropped_queue: reading.dropped_queue,
                dropped_emulator: reading.dropped_emulator,
                duplicated: reading.duplicated,
                corrupted: reading.corrupted,
                reordered: reading.reordered,
                cut: reading.cut,
                too_big: reading.too_big,
                release_error: decode_histogram(reading.release_error)?,
                held: decode_histogram(reading.held)?,
            });
            Ok(())
        })?;
        Ok(rows)
    }

    /// Shows the same one by one, in order of time and pair, with their histograms still encoded.
    pub fn each_link(
        &self,
        trial: u32,
        window: Range<u64>,
        mut visit: impl FnMut(LinkReading<'_>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let sql = "SELECT starts_ns, length_ns, sender, receiver, offered, offered_bytes, delivered, delivered_bytes,
                          lost, dropped_queue, dropped_emulator, duplicated, corrupted, reordered, cut, too_big,
                          release_error, held
                   FROM link WHERE trial = ? AND starts_ns >= ? AND starts_ns < ? ORDER BY starts_ns, sender, receiver";
        let mut statement = self.db.prepare_cached(sql).map_err(|error| self.error(error))?;
        let mut rows = statement.query(window_params(trial, &window)).map_err(|error| self.error(error))?;
        while let Some(row) = rows.next().map_err(|error| self.error(error))? {
            visit(reading(row).map_err(|error| self.error(error))?)?;
        }
        Ok(())
    }

    /// All probes of a trial, by interval of sending and pair.
    pub fn probes(&self, trial: u32) -> Result<Vec<ProbeRow>, RecordError> {
        let sql = "SELECT starts_ns, sender, receiver, samples FROM probe WHERE trial = ?
                   ORDER BY starts_ns, sender, receiver";
        self.rows(sql, [trial], probe)
    }

    /// The same of those that went through the overlay.
    pub fn overlay_probes(&self, trial: u32) -> Result<Vec<ProbeRow>, RecordError> {
        let sql = "SELECT starts_ns, sender, receiver, samples FROM overlay_probe WHERE trial = ?
                   ORDER BY starts_ns, sender, receiver";
        self.rows(sql, [trial], probe)
    }

    /// CPU time of a trial, interval by interval.
    pub fn cpu(&self, trial: u32) -> Result<Vec<CpuRow>, RecordError> {
        self.rows(
            "SELECT starts_ns, length_ns, subject, busy_ns FROM cpu WHERE trial = ? ORDER BY starts_ns, subject",
            [trial],
            |row| {
                Ok(CpuRow {
                    starts_ns: unsigned(row, 0)?,
                    length_ns: unsigned(row, 1)?,
                    subject: row.get(2)?,
                    busy_ns: unsigned(row, 3)?,
                })
            },
        )
    }

    /// What the witnesses of a trial saw, in order of time.
    pub fn witnesses(&self, trial: u32) -> Result<Vec<WitnessRow>, RecordError> {
        self.rows(
            "SELECT at_ns, host, receiver, directory, quantity, source, value, error, overlay
             FROM witness WHERE trial = ? ORDER BY at_ns, id",
            [trial],
            |row| {
                let host: String = row.get(1)?;
                let subject = match (row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?) {
                    (Some(to), _) if row.get(8)? => Subject::Overlay { from: host, to },
                    (Some(to), _) => Subject::Pair { from: host, to },
                    (None, Some(directory)) => Subject::Directory { host, directory },
                    (None, None) => Subject::Host { host },
                };
                let name: String = row.get(4)?;
                let quantity = Quantity::of(&name).ok_or_else(|| {
                    let why = format!("{name:?} is not a quantity that this version knows");
                    damaged(4, RecordError::Newer { what: "witness table", why })
                })?;
                Ok(WitnessRow {
                    at_ns: unsigned(row, 0)?,
                    subject,
                    quantity,
                    source: row.get(5)?,
                    value: row.get(6)?,
                    error: row.get(7)?,
                })
            },
        )
    }

    /// What the kernels of the hosts counted in a trial, interval by interval.
    pub fn host_counters(&self, trial: u32) -> Result<Vec<HostCounterRow>, RecordError> {
        self.rows(
            "SELECT starts_ns, length_ns, host, checksum_errors, interface_dropped FROM host_counters WHERE trial = ?
             ORDER BY starts_ns, host",
            [trial],
            |row| {
                Ok(HostCounterRow {
                    starts_ns: unsigned(row, 0)?,
                    length_ns: unsigned(row, 1)?,
                    host: row.get(2)?,
                    checksum_errors: unsigned(row, 3)?,
                    interface_dropped: unsigned(row, 4)?,
                })
            },
        )
    }
}

fn window_params(trial: u32, window: &Range<u64>) -> impl rusqlite::Params + use<> {
    let bound = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (from, to) = (bound(window.start), bound(window.end));
    (trial, from, to)
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        trial: row.get(0)?,
        at_ns: unsigned(row, 1)?,
        error_ns: unsigned(row, 2)?,
        kind: row.get(3)?,
        subject: row.get(4)?,
        text: row.get(5)?,
    })
}

fn latency(row: &Row<'_>) -> rusqlite::Result<LatencyRow> {
    Ok(LatencyRow {
        starts_ns: unsigned(row, 0)?,
        statement: row.get(1)?,
        coordinator: row.get(2)?,
        outcome: row.get(3)?,
        count: unsigned(row, 4)?,
        wait: times(row, 5)?,
        service: times(row, 6)?,
        response: times(row, 7)?,
    })
}

fn probe(row: &Row<'_>) -> rusqlite::Result<ProbeRow> {
    let bytes: Vec<u8> = row.get(3)?;
    Ok(ProbeRow {
        starts_ns: unsigned(row, 0)?,
        from: row.get(1)?,
        to: row.get(2)?,
        samples: decode_samples(&bytes).map_err(|error| damaged(3, error))?,
    })
}

fn reading<'a>(row: &'a Row<'_>) -> rusqlite::Result<LinkReading<'a>> {
    let column = |at: usize| row.get_ref(at);
    Ok(LinkReading {
        starts_ns: unsigned(row, 0)?,
        length_ns: unsigned(row, 1)?,
        from: column(2)?.as_str()?,
        to: column(3)?.as_str()?,
        offered: unsigned(row, 4)?,
        offered_bytes: unsigned(row, 5)?,
        delivered: unsigned(row, 6)?,
        delivered_bytes: unsigned(row, 7)?,
        lost: unsigned(row, 8)?,
        dropped_queue: unsigned(row, 9)?,
        dropped_emulator: unsigned(row, 10)?,
        duplicated: unsigned(row, 11)?,
        corrupted: unsigned(row, 12)?,
        reordered: unsigned(row, 13)?,
        cut: unsigned(row, 14)?,
        too_big: unsigned(row, 15)?,
        release_error: column(16)?.as_blob()?,
        held: column(17)?.as_blob()?,
    })
}

fn times(row: &Row<'_>, column: usize) -> rusqlite::Result<EncodedTimes> {
    EncodedTimes::read(row.get_ref(column)?.as_blob()?).map_err(|error| damaged(column, error))
}

fn damaged(column: usize, error: RecordError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, Box::new(error))
}
