//! Others who read a run that is to be written.
//!
//! While it is made, nobody is in anybody's way: its log (WAL) lets all read. A run that has ended is one file without a log,
//! and it can have one again only while nobody is in a transaction there.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode};

use crate::RecordError;

/// So long they are waited for: a query is over by then, an open transaction is not.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bytes that SQLite locks for reading ("SHARED_FIRST" in its os_unix.c). They are far behind those of any run.
const LOCKED_BY_READERS: u64 = 0x4000_0002;

/// Waits until a run that has ended can be written again: until nobody is in a transaction in it.
///
/// # Errors
/// After some seconds somebody still is; or the file cannot be written at all.
pub fn wait_for_readers(path: &Path) -> Result<(), RecordError> {
    let error = |source| RecordError::Sqlite { doing: "go on with the run", path: path.to_owned(), source };
    let db = Connection::open(path).map_err(error)?;
    unhindered(&db, path, || db.execute_batch("BEGIN EXCLUSIVE; ROLLBACK"))
}

/// Does what nobody may read beside, and waits for those who do.
pub(crate) fn unhindered<T>(
    db: &Connection,
    path: &Path,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> Result<T, RecordError> {
    match db.busy_timeout(PATIENCE).and_then(|()| work()) {
        Err(refused) if are_in_the_way(&refused) => {
            let (path, by) = (path.to_owned(), readers_of(path));
            Err(RecordError::BeingRead { path, by, seconds: PATIENCE.as_secs() })
        }
        other => {
            other.map_err(|source| RecordError::Sqlite { doing: "go on with the run", path: path.to_owned(), source })
        }
    }
}

/// Whether SQLite refused something because of what others do.
pub(crate) fn are_in_the_way(refused: &rusqlite::Error) -> bool {
    refused.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Who reads a file, for people, as far as this process can see them.
fn readers_of(path: &Path) -> String {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = fs::metadata(path).map(|file| file.ino());
    let processes = inode.map(|inode| processes_in(&locks, inode)).unwrap_or_default();
    let own = std::process::id();
    let named = processes.into_iter().filter(|process| *process != own).map(|process| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        format!("{} (process {process})", name.trim())
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => format!("a process that cannot be seen from here (as root: fuser {})", path.display()),
        false => named.join(", "),
    }
}

/// The processes that have SQLite's lock for reading on a file, by `/proc/locks`:
/// `12: POSIX  ADVISORY  READ 4711 fe:00:123456 1073741826 1073742335` (kind, how, what, process, device and inode, bytes from
/// and to). The device of some filesystems is another one than their files say, so only the inode is looked at.
fn processes_in(locks: &str, inode: u64) -> Vec<u32> {
    let mut found: Vec<u32> = locks.lines().filter_map(|line| reader(line, inode)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn reader(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let ["POSIX", _, "READ", process, file, from, _] = fields.get(1..)? else { return None };
    let of_file = file.rsplit(':').next()?.parse() == Ok(inode);
    let of_readers = from.parse() == Ok(LOCKED_BY_READERS);
    process.parse().ok().filter(|_| of_file && of_readers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_is_found_among_all_locks() {
        let locks = "1: POSIX  ADVISORY  READ 4711 fe:00:77 1073741826 1073742335\n\
                     2: POSIX  ADVISORY  WRITE 4712 fe:00:77 1073741826 1073742335\n\
                     2: -> POSIX  ADVISORY  WRITE 4716 fe:00:77 1073741826 1073742335\n\
                     3: POSIX  ADVISORY  READ 4713 fe:00:78 1073741826 1073742335\n\
                     4: FLOCK  ADVISORY  WRITE 4714 fe:00:77 0 EOF\n\
                     5: POSIX  ADVISORY  READ 4715 fe:00:77 0 EOF\n\
                     6: POSIX  ADVISORY  READ 9 fe:00:77 1073741826 1073742335\n\
                     7: POSIX  ADVISORY  READ 9 fe:00:77 1073741826 1073742335\n";
        assert_eq!(processes_in(locks, 77), [9, 4711]);
        assert_eq!(processes_in("", 77), [0; 0]);
    }
}
