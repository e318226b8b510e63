//! Opening a run's file without ever changing it, whether its writer ended, was killed, or is still at work.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::format;

/// Opens a run's file. All that is read from it is of one moment.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_READ_ONLY;
    Connection::open_with_flags(path, flags).and_then(snapshot).or_else(|error| {
        if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
            return Err(error);
        }
        // Where nothing may be written beside it, or where a change of the file was broken off.
        if beside(path).iter().any(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0)) {
            return open_aside(path).and_then(snapshot).map_err(|_| error);
        }
        // All is in the file itself, and nobody can be changing it.
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let uri = format!("file:{escaped}?immutable=1");
        Connection::open_with_flags(uri, flags).and_then(snapshot).map_err(|_| error)
    })
}

/// Begins to read; until the connection is closed, it sees the file as it is at this moment.
fn snapshot(db: Connection) -> rusqlite::Result<Connection> {
    db.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map(|()| db)
}

/// The files that may hold a part of the run: its log, and what takes a broken change of the file back.
fn beside(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-journal"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// Opens a copy of the run, with what lies beside it.
fn open_aside(path: &Path) -> rusqlite::Result<Connection> {
    let copies = || -> io::Result<(tempfile::TempDir, PathBuf)> {
        let directory = tempfile::tempdir()?;
        let copy = directory.path().join("run.db");
        fs::copy(path, &copy)?;
        for (from, to) in beside(path).iter().zip(beside(&copy)) {
            if from.exists() {
                fs::copy(from, to)?;
            }
        }
        Ok((directory, copy))
    };
    let failed = |error: io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    let (_directory, copy) = copies().map_err(failed)?;
    // Once more, so that the directory can go.
    format::copy(&Connection::open(copy)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn where_nothing_may_be_written_what_the_log_holds_is_read_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.db");
        let writer = Connection::open(&path).unwrap();
        let made = "PRAGMA journal_mode = wal; CREATE TABLE seen (at); INSERT INTO seen VALUES (1), (2)";
        writer.execute_batch(made).unwrap();
        // A killed writer closes nothing.
        std::mem::forget(writer);
        let before = fs::read(&path).unwrap();
        for db in [open(&path).unwrap(), open_aside(&path).unwrap()] {
            assert_eq!(db.query_row("SELECT count(*) FROM seen", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
