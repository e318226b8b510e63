use std::path::PathBuf;

use thiserror::Error;

/// Why a run could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file is not there.
    #[error("no run at {path}: {why}; name a run directory or its run.db")]
    NotFound {
        /// What was looked for.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The file is something else.
    #[error("{path} is not a run this version can read: {why}")]
    NotARun {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The run, or a part of it, is of a format that came after this version.
    #[error("the run's {what} was written by a newer Brownout: {why}; read it with that version")]
    Newer {
        /// Which part.
        what: &'static str,
        /// What was found.
        why: String,
    },
    /// Somebody is in a transaction in a run that is to be written again.
    #[error(
        "{path} cannot be written while it is read, and {by} has been in a transaction there for {seconds} s: end that, and try \
         again"
    )]
    BeingRead {
        /// The file.
        path: PathBuf,
        /// Who reads: "sqlite3 (process 4711)".
        by: String,
        /// How long that was waited for.
        seconds: u64,
    },
    /// SQLite refused. A full disk comes here.
    #[error("cannot {doing} in {path}: {source}")]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// SQLite's own words.
        source: rusqlite::Error,
    },
    /// What a machine has recorded cannot be put on the time line of the run.
    #[error(
        "it is not known how far the clock of {machine} is from the others': nobody answers it there, or a clock was set or stopped \
         meanwhile; see to it that machines reach each other, and do not sleep"
    )]
    Apart {
        /// The machine.
        machine: String,
    },
    /// A blob or a JSON text in the file is broken.
    #[error("the run's {what} cannot be read: {why}; the file is damaged")]
    Damaged {
        /// Which part.
        what: &'static str,
        /// What its decoder said.
        why: String,
    },
}
