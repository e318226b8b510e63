//! Writing a run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, params};

use crate::{
    CellRow, CpuRow, Description, Event, FaultRecord, HostCounterRow, LatencyRow, LinkReading, LinkRow, LoadRow,
    OperationRows, PhaseRow, ProbeRow, RecordError, SessionRow, Subject, TrialRow, WitnessRow,
    blob::encode_histogram,
    design::Levels,
    document::{self, Document},
    format::{APPLICATION_ID, FORMAT},
    reader::Run,
    readers,
    samples::encode_samples,
};

/// Sessions are at least this far apart on the run's axis.
const BETWEEN_SESSIONS_NS: u64 = 1_000_000_000;

/// A writer of one run.
///
/// One session may have several, see [`Recorder::beside`]; each batch is written by one of them at a time.
pub struct Recorder {
    db: Connection,
    path: PathBuf,
    session: SessionRow,
    /// Held while a batch is written. SQLite would let the others try again and again; here the next one goes on at once.
    turn: Arc<Mutex<()>>,
}

impl Recorder {
    /// Creates the file, and begins its first session; `zero_ns` is `CLOCK_MONOTONIC` at the run's zero.
    pub fn create(path: &Path, zero_ns: u64, started_unix_ms: u64) -> Result<Self, RecordError> {
        let error = |source| RecordError::Sqlite { doing: "create the run", path: path.to_owned(), source };
        let session =
            SessionRow { session: 1, boot_id: boot_id(), started_unix_ms, zero_monotonic_ns: zero_ns, starts_ns: 0 };
        let mut db = Connection::open(path).map_err(error)?;
        db.pragma_update(None, "journal_mode", "wal").map_err(error)?;
        // A killed process loses nothing; only a power cut may lose the last batches.
        db.pragma_update(None, "synchronous", "normal").map_err(error)?;
        db.pragma_update(None, "application_id", APPLICATION_ID).map_err(error)?;
        db.pragma_update(None, "user_version", FORMAT).map_err(error)?;
        let transaction = db.transaction().map_err(error)?;
        transaction.execute_batch(include_str!("schema.sql")).map_err(error)?;
        for (key, value) in [("zero_monotonic_ns", zero_ns), ("started_unix_ms", started_unix_ms)] {
            transaction.execute("INSERT INTO meta VALUES (?, ?)", params![key, value.to_string()]).map_err(error)?;
        }
        transaction.commit().map_err(error)?;
        let mut recorder = Recorder { db, path: path.to_owned(), session, turn: Arc::default() };
        recorder.batch(Recorder::write_session)?;
        Ok(recorder)
    }

    /// Goes on with a run that has ended, or was killed: begins another session of it. `now_ns` is `CLOCK_MONOTONIC`, and its
    /// place on the run's axis is as far from the run's zero as the wall clock says, but behind all that is there.
    ///
    /// # Errors
    /// The file cannot be written, somebody reads it ([`crate::wait_for_readers`]), or it is of another format: a run is
    /// resumed by the version that began it.
    pub fn resume(path: &Path, now_ns: u64, now_unix_ms: u64) -> Result<Self, RecordError> {
        let run = Run::open(path)?;
        let (first, last) = (run.started_unix_ms()?, run.last_ns()?);
        let session = run.sessions()?.len() as u32 + 1;
        drop(run);
        let error = |source| RecordError::Sqlite { doing: "go on with the run", path: path.to_owned(), source };
        let db = Connection::open(path).map_err(error)?;
        let format: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(error)?;
        if format != FORMAT {
            let why = format!("{} has format {format}, and this version writes {FORMAT}", path.display());
            return Err(RecordError::NotARun { path: path.to_owned(), why });
        }
        readers::unhindered(&db, path, || db.pragma_update(None, "journal_mode", "wal"))?;
        db.pragma_update(None, "synchronous", "normal").map_err(error)?;
        let by_wall_clock = now_unix_ms.saturating_sub(first).saturating_mul(1_000_000);
        let session = SessionRow {
            session,
            boot_id: boot_id(),
            started_unix_ms: now_unix_ms,
            zero_monotonic_ns: now_ns,
            starts_ns: by_wall_clock.max(last + BETWEEN_SESSIONS_NS),
        };
        let mut recorder = Recorder { db, path: path.to_owned(), session, turn: Arc::default() };
        recorder.batch(Recorder::write_session)?;
        Ok(recorder)
    }

    /// Another writer of the same session, for another thread.
    ///
    /// # Errors
    /// The file cannot be opened once more.
    pub fn beside(&self) -> Result<Self, RecordError> {
        let error = |source| RecordError::Sqlite { doing: "open the run once more", path: self.path.clone(), source };
        let db = Connection::open(&self.path).map_err(error)?;
        // Unlike the journal's mode this is the connection's own.
        db.pragma_update(None, "synchronous", "normal").map_err(error)?;
        Ok(Recorder { db, path: self.path.clone(), session: self.session.clone(), turn: Arc::clone(&self.turn) })
    }

    fn write_session(&self) -> Result<(), RecordError> {
        let session = &self.session;
        self.execute(
            "write a session",
            "INSERT INTO session (session, boot_id, started_unix_ms, zero_monotonic_ns, starts_ns) VALUES (?, ?, ?, ?, ?)",
            params![
                session.session,
                session.boot_id,
                sql_ns(session.started_unix_ms),
                sql_ns(session.zero_monotonic_ns),
                sql_ns(session.starts_ns)
            ],
        )
    }

    /// A `CLOCK_MONOTONIC` time of this session on the run's axis; that of its start for a time before it.
    pub fn at(&self, monotonic_ns: u64) -> u64 {
        self.session.starts_ns + monotonic_ns.saturating_sub(self.session.zero_monotonic_ns)
    }

    /// The session, from 1.
    pub fn session(&self) -> u32 {
        self.session.session
    }

    fn error(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> RecordError {
        let path = self.path.clone();
        move |source| RecordError::Sqlite { doing, path: path.clone(), source }
    }

    /// Runs `write` as one transaction: all of it is in the file afterwards, or nothing.
    pub fn batch<T>(&mut self, write: impl FnOnce(&Recorder) -> Result<T, RecordError>) -> Result<T, RecordError> {
        let error = self.error("write a batch");
        let turn = Arc::clone(&self.turn);
        // Whoever panicked in its turn has committed nothing.
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(&error)?;
        match write(self).and_then(|value| {
            self.db.execute_batch("COMMIT").map_err(&error)?;
            Ok(value)
        }) {
            Ok(value) => Ok(value),
            Err(failure) => {
                // The first error is the one worth telling.
                let _ = self.db.execute_batch("ROLLBACK");
                Err(failure)
            }
        }
    }

    pub(crate) fn execute(
        &self,
        doing: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<(), RecordError> {
        let error = self.error(doing);
        self.db.prepare_cached(sql).map_err(&error)?.execute(values).map_err(&error)?;
        Ok(())
    }

    /// Stores a text under a name, replacing an earlier one.
    pub fn document(&self, name: &str, text: &str) -> Result<(), RecordError> {
        self.execute("write a document", "INSERT OR REPLACE INTO document VALUES (?, ?)", params![name, text])
    }

    /// Stores a value as JSON under a name.
    pub fn json(&self, name: &str, value: &impl Document) -> Result<(), RecordError> {
        self.document(name, &document::write(value)?)
    }

    /// Inserts or updates a cell of the design.
    pub fn cell(&self, row: &CellRow) -> Result<(), RecordError> {
        let levels = document::write(&Levels { levels: row.levels.clone() })?;
        let description = document::write(&row.description)?;
        self.execute(
            "write a cell",
            "INSERT OR REPLACE INTO cell (cell, levels, compared_with, description) VALUES (?, ?, ?, ?)",
            params![row.cell, levels, row.compared_with, description],
        )
    }

    /// The one cell of a run in which nothing varies.
    pub fn single_cell(&self, description: &Description) -> Result<(), RecordError> {
        let description = description.clone();
        self.cell(&CellRow { cell: 1, levels: Vec::new(), compared_with: 1, description })
    }

    /// Inserts or updates a trial.
    pub fn trial(&self, row: &TrialRow) -> Result<(), RecordError> {
        self.execute(
            "write a trial",
            "INSERT OR REPLACE INTO trial
             (trial, planned, cell, block, arm, attempt, stand, lab, processors, session, seed, starts_ns, ends_ns, state)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                row.trial,
                row.planned,
                row.cell,
                row.block,
                row.arm.to_string(),
                row.attempt,
                row.stand,
                row.lab,
                row.processors,
                row.session,
                row.seed.cast_signed(),
                sql_ns(row.starts_ns),
                row.ends_ns.map(sql_ns),
                row.state.to_string()
            ],
        )
    }

    /// Inserts or updates a phase.
    pub fn phase(&self, row: &PhaseRow) -> Result<(), RecordError> {
        self.execute(
            "write a phase",
            "INSERT OR REPLACE INTO phase VALUES (?, ?, ?, ?, ?)",
            params![row.trial, row.name, sql_ns(row.starts_ns), row.ends_ns.map(sql_ns), row.ended_by],
        )
    }

    /// Takes a phase back that has got another name.
    pub fn no_phase(&self, trial: u32, name: &str) -> Result<(), RecordError> {
        self.execute("take a phase back", "DELETE FROM phase WHERE trial = ? AND name = ?", params![trial, name])
    }

    /// Ends the writing, once all others of the session are gone: folds the log into the file, so that it can be read alone
    /// and from where nothing may be written.
    ///
    /// Not while somebody reads it: then the log stays beside the file, and belongs to it. A run is as whole with it, and
    /// whoever reads harms nothing.
    pub fn finish(self) -> Result<(), RecordError> {
        let Recorder { db, path, .. } = self;
        let error = |source| RecordError::Sqlite { doing: "finish the run", path: path.clone(), source };
        // All that readers let: this never waits for them.
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(error)?;
        match db.pragma_update(None, "journal_mode", "delete") {
            Err(refused) if readers::are_in_the_way(&refused) => {}
            other => other.map_err(error)?,
        }
        db.close().map_err(|(_, source)| error(source))
    }

    /// Appends an event.
    pub fn event(&self, event: &Event) -> Result<(), RecordError> {
        self.execute(
            "write an event",
            "INSERT INTO event (trial, at_ns, error_ns, kind, subject, text) VALUES (?, ?, ?, ?, ?, ?)",
            params![event.trial, sql_ns(event.at_ns), sql_ns(event.error_ns), event.kind, event.subject, event.text],
        )
    }

    /// Appends an event of a trial that was seen at a `CLOCK_MONOTONIC` time, in a batch of its own.
    pub fn seen(&mut self, trial: u32, at_ns: u64, kind: &str, subject: &str, text: &str) -> Result<(), RecordError> {
        let event = Event {
            trial: Some(trial),
            at_ns: self.at(at_ns),
            error_ns: 0,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            text: text.to_owned(),
        };
        self.batch(|recorder| recorder.event(&event))
    }

    /// Inserts or updates a fault of a trial.
    pub fn fault(&self, trial: u32, fault: &FaultRecord) -> Result<(), RecordError> {
        self.execute(
            "write a fault",
            "INSERT OR REPLACE INTO fault VALUES (?, ?, ?)",
            params![trial, fault.index, document::write(fault)?],
        )
    }

    /// Inserts or updates all that became of the operations of an interval.
    pub fn operations(&self, trial: u32, rows: &OperationRows) -> Result<(), RecordError> {
        self.load(trial, &rows.load)?;
        rows.latencies.iter().try_for_each(|row| self.latency(trial, row))?;
        rows.watches.iter().try_for_each(|row| self.watch(trial, row))
    }

    /// Inserts or updates the load of an interval.
    pub fn load(&self, trial: u32, row: &LoadRow) -> Result<(), RecordError> {
        self.execute(
            "write the load",
            "INSERT OR REPLACE INTO load VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            load_values(trial, row),
        )?;
        row.never_sent_by_operation.iter().try_for_each(|(operation, count)| {
            self.execute(
                "write what was never sent",
                "INSERT OR REPLACE INTO never_sent VALUES (?, ?, ?, ?)",
                params![trial, sql_ns(row.starts_ns), operation, sql_ns(*count)],
            )
        })
    }

    /// Inserts the load of an interval unless there is one: for intervals in which nothing was to start.
    pub fn load_if_absent(&self, trial: u32, row: &LoadRow) -> Result<(), RecordError> {
        self.execute(
            "write the load",
            "INSERT OR IGNORE INTO load VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            load_values(trial, row),
        )
    }

    /// Inserts or updates latencies of an interval.
    pub fn latency(&self, trial: u32, row: &LatencyRow) -> Result<(), RecordError> {
        self.latencies("INSERT OR REPLACE INTO latency VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", trial, row)
    }

    /// Inserts or updates what watches saw in an interval: `statement` is `watch`, `coordinator` the node that was watched.
    pub fn watch(&self, trial: u32, row: &LatencyRow) -> Result<(), RecordError> {
        self.latencies("INSERT OR REPLACE INTO watch VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", trial, row)
    }

    fn latencies(&self, sql: &str, trial: u32, row: &LatencyRow) -> Result<(), RecordError> {
        self.execute(
            "write latencies",
            sql,
            params![
                trial,
                sql_ns(row.starts_ns),
                row.statement,
                row.coordinator,
                row.outcome,
                sql_ns(row.count),
                row.wait.bytes(),
                row.service.bytes(),
                row.response.bytes()
            ],
        )
    }

    /// Inserts the counters of a link.
    pub fn link(&self, trial: u32, row: &LinkRow) -> Result<(), RecordError> {
        let (release_error, held) = (encode_histogram(&row.release_error), encode_histogram(&row.held));
        let encoded = LinkReading {
            starts_ns: row.starts_ns,
            length_ns: row.length_ns,
            from: &row.from,
            to: &row.to,
            offered: row.offered,
            offered_bytes: row.offered_bytes,
            delivered: row.delivered,
            delivered_bytes: row.delivered_bytes,
            lost: row.lost,
            dropped_queue: row.dropped_queue,
            dropped_emulator: row.dropped_emulator,
            duplicated: row.duplicated,
            corrupted: row.corrupted,
            reordered: row.reordered,
            cut: row.cut,
            too_big: row.too_big,
            release_error: &release_error,
            held: &held,
        };
        self.link_as_read(trial, &encoded)
    }

    /// The same of what was read elsewhere, with its histograms as they are: decoded, they take a hundred times the room.
    pub fn link_as_read(&self, trial: u32, row: &LinkReading<'_>) -> Result<(), RecordError> {
        self.execute(
            "write link counters",
            "INSERT OR REPLACE INTO link VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                trial,
                sql_ns(row.starts_ns),
                sql_ns(row.length_ns),
                row.from,
                row.to,
                sql_ns(row.offered),
                sql_ns(row.offered_bytes),
                sql_ns(row.delivered),
                sql_ns(row.delivered_bytes),
                sql_ns(row.lost),
                sql_ns(row.dropped_queue),
                sql_ns(row.dropped_emulator),
                sql_ns(row.duplicated),
                sql_ns(row.corrupted),
                sql_ns(row.reordered),
                sql_ns(row.cut),
                sql_ns(row.too_big),
                row.release_error,
                row.held
            ],
        )
    }

    /// Appends probes: those already there for the same pair and interval stay in front.
    pub fn probe(&self, trial: u32, row: &ProbeRow) -> Result<(), RecordError> {
        let sql = "INSERT INTO probe VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT DO UPDATE SET samples = CAST(samples || excluded.samples AS BLOB)";
        self.probes(sql, trial, row)
    }

    /// The same of probes that went through the overlay.
    pub fn overlay_probe(&self, trial: u32, row: &ProbeRow) -> Result<(), RecordError> {
        let sql = "INSERT INTO overlay_probe VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT DO UPDATE SET samples = CAST(samples || excluded.samples AS BLOB)";
        self.probes(sql, trial, row)
    }

    fn probes(&self, sql: &str, trial: u32, row: &ProbeRow) -> Result<(), RecordError> {
        self.execute(
            "write probes",
            sql,
            params![trial, sql_ns(row.starts_ns), row.from, row.to, encode_samples(&row.samples)],
        )
    }

    /// Inserts CPU time.
    pub fn cpu(&self, trial: u32, row: &CpuRow) -> Result<(), RecordError> {
        self.execute(
            "write CPU time",
            "INSERT OR REPLACE INTO cpu VALUES (?, ?, ?, ?, ?)",
            params![trial, sql_ns(row.starts_ns), sql_ns(row.length_ns), row.subject, sql_ns(row.busy_ns)],
        )
    }

    /// Appends a measurement of a witness.
    pub fn witness(&self, trial: u32, row: &WitnessRow) -> Result<(), RecordError> {
        let (host, receiver, directory) = match &row.subject {
            Subject::Pair { from, to } | Subject::Overlay { from, to } => (from, Some(to), None),
            Subject::Host { host } => (host, None, None),
            Subject::Directory { host, directory } => (host, None, Some(directory)),
        };
        self.execute(
            "write what a witness saw",
            "INSERT INTO witness (trial, at_ns, host, receiver, directory, quantity, source, value, error, overlay)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                trial,
                sql_ns(row.at_ns),
                host,
                receiver,
                directory,
                row.quantity.name(),
                row.source,
                row.value,
                row.error,
                matches!(row.subject, Subject::Overlay { .. })
            ],
        )
    }

    /// Inserts what the kernel of a host counted.
    pub fn host_counters(&self, trial: u32, row: &HostCounterRow) -> Result<(), RecordError> {
        self.execute(
            "write the counters of a host",
            "INSERT OR REPLACE INTO host_counters VALUES (?, ?, ?, ?, ?, ?)",
            params![
                trial,
                sql_ns(row.starts_ns),
                sql_ns(row.length_ns),
                row.host,
                sql_ns(row.checksum_errors),
                sql_ns(row.interface_dropped)
            ],
        )
    }
}

fn load_values(trial: u32, row: &LoadRow) -> impl rusqlite::Params {
    (
        trial,
        sql_ns(row.starts_ns),
        sql_ns(row.length_ns),
        row.settled,
        sql_ns(row.scheduled),
        sql_ns(row.sent),
        sql_ns(row.never_sent),
        sql_ns(row.stale),
        row.lateness.bytes(),
        sql_ns(row.stood_still_ns),
        sql_ns(row.withheld),
        sql_ns(row.looked_for),
        sql_ns(row.lost),
    )
}

/// What the kernel calls this time that the machine is up; empty where it does not tell.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// SQLite's integers are signed; 2^63 ns are 292 years.
pub(crate) fn sql_ns(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
