//! The formats of the run file, and how each becomes the next.
//!
//! To change the format: change `schema.sql`, and add a step to [`STEPS`] that makes the same of a file of the format
//! before. [`FORMAT`] follows. Then keep a small run of the new format in `tests/formats/`; `tests/formats.rs` writes it. A file
//! is never changed: the steps run on a copy.

use rusqlite::{Connection, backup::Backup};

/// `PRAGMA application_id`: "Brno" as bytes, so that `file(1)` and we can tell a run from any other SQLite file.
pub(crate) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Brno");

/// SQL that makes a file of format 2 of one of format 1, of format 3 of one of format 2, and so on.
const STEPS: &[&str] = &[
    include_str!("formats/1-to-2.sql"),
    include_str!("formats/2-to-3.sql"),
    include_str!("formats/3-to-4.sql"),
    include_str!("formats/4-to-5.sql"),
    include_str!("formats/5-to-6.sql"),
    include_str!("formats/6-to-7.sql"),
    include_str!("formats/7-to-8.sql"),
    include_str!("formats/8-to-9.sql"),
    include_str!("formats/9-to-10.sql"),
];

/// `PRAGMA user_version` of what is written today.
pub(crate) const FORMAT: i32 = STEPS.len() as i32 + 1;

/// A copy of `db`, with all that its log holds. It is a temporary file of SQLite's own, gone with its connection.
pub(crate) fn copy(db: &Connection) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open("")?;
    Backup::new(db, &mut copy)?.step(-1)?;
    Ok(copy)
}

/// Brings a copy of a run of `format` up to [`FORMAT`].
pub(crate) fn migrate(copy: &Connection, format: i32) -> rusqlite::Result<()> {
    let done = usize::try_from(format - 1).unwrap_or(0);
    STEPS.iter().skip(done).try_for_each(|step| copy.execute_batch(step))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::{collections::BTreeSet, path::Path};

    use rusqlite::OpenFlags;

    use super::*;

    /// Every column: table, name, type, whether it must be there, and its position in the primary key.
    type Columns = BTreeSet<(String, String, String, bool, i64)>;

    fn columns(db: &Connection) -> Columns {
        let sql = "SELECT t.name, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_schema t, pragma_table_info(t.name) c
                   WHERE t.type = 'table'";
        let mut statement = db.prepare(sql).unwrap();
        let column = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        statement.query_map([], column).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn fixture(format: i32) -> Connection {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{format}.db"));
        Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap_or_else(|error| panic!("every format needs a small run, {}: {error}", path.display()))
    }

    #[test]
    fn a_run_of_every_format_becomes_what_the_schema_is_today() {
        let today = Connection::open_in_memory().unwrap();
        today.execute_batch(include_str!("schema.sql")).unwrap();
        for format in 1..=FORMAT {
            let db = fixture(format);
            let version: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!(version, format);
            let copy = copy(&db).unwrap();
            migrate(&copy, format).unwrap();
            // What is missing here is missing in a step; what is too much there, in schema.sql.
            assert_eq!(columns(&copy), columns(&today), "format {format}");
        }
    }
}
