//! The stub's data: rows by key; the newest timestamp wins.

use std::collections::HashMap;

/// A row's cells by the index of their column, including those of the key.
pub(super) type Cells = Vec<Option<Box<[u8]>>>;

/// A row: its cells now, and before the last write.
#[derive(Debug, Default)]
pub(super) struct Row {
    clustering: Vec<u8>,
    timestamp: i64,
    pub(super) cells: Cells,
    /// Empty before the second write.
    pub(super) before: Cells,
}

/// Rows of one table. Within a partition they are ordered by the bytes of their clustering key.
#[derive(Debug, Default)]
pub(super) struct Rows(HashMap<Box<[u8]>, Vec<Row>>);

/// What a write does to one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnChange<'a> {
    Set(usize, Option<&'a [u8]>),
    Add(usize, i64),
}

impl Rows {
    pub(super) fn partition(&self, key: &[u8]) -> &[Row] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn row(&self, key: &[u8], clustering: &[u8]) -> Option<&Row> {
        let rows = self.partition(key);
        rows.binary_search_by(|row| row.clustering.as_slice().cmp(clustering)).ok().map(|place| &rows[place])
    }

    /// All partitions, in no order.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &[Row]> {
        self.0.values().map(Vec::as_slice)
    }

    /// Writes a row of `columns` columns. Without a timestamp, the write received last is the newest.
    pub(super) fn write(
        &mut self,
        key: &[u8],
        clustering: &[u8],
        timestamp: Option<i64>,
        columns: usize,
        changes: &[ColumnChange<'_>],
    ) {
        if !self.0.contains_key(key) {
            self.0.insert(key.into(), Vec::new());
        }
        let Some(rows) = self.0.get_mut(key) else { return };
        let place = match rows.binary_search_by(|row| row.clustering.as_slice().cmp(clustering)) {
            Ok(place) => place,
            Err(place) => {
                let clustering = clustering.to_vec();
                rows.insert(place, Row { clustering, cells: vec![None; columns], ..Row::default() });
                place
            }
        };
        let row = &mut rows[place];
        let timestamp = timestamp.unwrap_or(row.timestamp + 1);
        if timestamp < row.timestamp {
            return;
        }
        // The first write has nothing before it.
        if row.timestamp > 0 {
            row.before.clone_from(&row.cells);
        }
        row.timestamp = timestamp;
        for change in changes {
            match *change {
                ColumnChange::Set(column, value) => row.cells[column] = value.map(Into::into),
                ColumnChange::Add(column, by) => {
                    let now = row.cells[column].as_deref().and_then(|cell| cell.try_into().ok());
                    let sum = now.map_or(0, i64::from_be_bytes).wrapping_add(by);
                    row.cells[column] = Some(sum.to_be_bytes().into());
                }
            }
        }
    }

    /// Deletes a row, or without a clustering key all rows of the partition.
    pub(super) fn delete(&mut self, key: &[u8], clustering: Option<&[u8]>) {
        match (clustering, self.0.get_mut(key)) {
            (Some(clustering), Some(rows)) => rows.retain(|row| row.clustering != clustering),
            _ => drop(self.0.remove(key)),
        }
    }
}
