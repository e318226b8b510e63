//! Rows laid out as in the data file of an SSTable.
//!
//! Source: Cassandra's `UnfilteredSerializer`, `ClusteringPrefix.Serializer`, `Cell.Serializer` (format `nb`, of 4.x, which
//! 5.0 writes by default too). The layout has to be right in what it costs and in what repeats, not to the bit: nobody
//! reads it.

use std::sync::Arc;

use brownout_base::random::{below, scramble};

use super::CompressError;
use crate::{
    rows::{Cells, Column, Order, PartitionGenerator, PartitionLayout, RowSettings},
    seeds::Seed,
    sizes::RowSize,
    types::{ColumnKind, CqlType, wire},
};

/// Timestamps are kept as microseconds since the oldest of the file; a file is taken to hold the writes of a minute.
const MICROSECONDS: u64 = 60_000_000;

/// Rows for a sample, and what they come to.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// The data file.
    pub data: Vec<u8>,
    partitions: u64,
    partition_bytes: u64,
    rows: u64,
    row_bytes: u64,
    cells: u64,
}

/// Make partitions, from the seed `first` on, until there are `length` bytes of them, at least.
pub(super) fn sample(layout: &PartitionLayout, length: usize, first: i64) -> Result<Sample, CompressError> {
    let layout = Arc::new(layout.clone());
    // Rows lie in clustering order in the file.
    let settings = RowSettings { order: Order::Sorted, ..RowSettings::new(0) };
    let mut generator = PartitionGenerator::new(&layout, &settings)?;
    let mut sample = Sample::default();
    for seed in first.. {
        if sample.data.len() >= length {
            break;
        }
        let time = below(scramble(seed as u64), MICROSECONDS);
        let start = sample.data.len();
        let has_rows = generator.write(&mut Seed::new(seed, 1));
        let key = generator.routing_key();
        sample.data.extend_from_slice(&(key.len() as u16).to_be_bytes());
        sample.data.extend_from_slice(key);
        // Not deleted: the largest local time, the smallest timestamp.
        sample.data.extend_from_slice(&i32::MAX.to_be_bytes());
        sample.data.extend_from_slice(&i64::MIN.to_be_bytes());
        let mut previous = 0;
        let mut is_first = true;
        let mut row_bytes = 0;
        // A partition without end would be all of the sample: it is cut where the sample is full.
        while has_rows
            && (is_first || sample.data.len() < length)
            && let Some(row) = generator.next_row()
        {
            if is_first && layout.values().iter().any(|column| column.kind == ColumnKind::Static) {
                // Flags: extended, static.
                sample.data.extend_from_slice(&[0x80, 0x01]);
                sample.cells += body(&layout, row, true, time, &mut previous, &mut sample.data);
            }
            is_first = false;
            let at = sample.data.len();
            // Rows of one partition are written one after the other, or at other times.
            let time = below(scramble(time ^ sample.rows), MICROSECONDS);
            sample.data.push(0x24);
            clustering(&layout, row, &mut sample.data);
            sample.cells += body(&layout, row, false, time, &mut previous, &mut sample.data);
            sample.rows += 1;
            row_bytes += (sample.data.len() - at) as u64;
        }
        sample.data.push(0x01);
        sample.partitions += 1;
        sample.row_bytes += row_bytes;
        sample.partition_bytes += (sample.data.len() - start) as u64 - row_bytes;
    }
    Ok(sample)
}

/// The mean size of the table's rows on disk before compression, with all that is around them, as nodetool counts it.
/// Partition sizes that the layout may have are left aside.
///
/// # Errors
/// The rows cannot be made.
pub fn row_size(layout: &PartitionLayout) -> Result<RowSize, CompressError> {
    let layout = PartitionLayout { sizes: None, ..layout.clone() };
    let sample = sample(&layout, 1 << 20, 1)?;
    let rows = sample.rows.max(1) as f64;
    Ok(RowSize {
        partition: sample.partition_bytes as f64 / sample.partitions.max(1) as f64,
        row: sample.row_bytes as f64 / rows,
        cells: sample.cells as f64 / rows,
    })
}

/// The clustering values: for up to 32 of them a header of which are empty or null, then each.
fn clustering(layout: &PartitionLayout, row: &Cells, out: &mut Vec<u8>) {
    let first = layout.key_columns();
    let columns = layout.clustering();
    if columns.is_empty() {
        return;
    }
    out.push(0);
    for (place, column) in columns.iter().enumerate() {
        value(column.cql_type.unfrozen(), row.get(first + place).value().unwrap_or_default(), out);
    }
}

/// Sizes of the row and of that before it, then the cells. An `UPDATE` leaves no timestamp on the row: each cell has its
/// own. Returns the number of cells.
fn body(layout: &PartitionLayout, row: &Cells, statics: bool, time: u64, previous: &mut u64, out: &mut Vec<u8>) -> u64 {
    let first = layout.key_columns() + layout.clustering_columns();
    let mut cells = Vec::new();
    let mut count = 0;
    let mut missing = 0u64;
    for (place, column) in layout.values().iter().enumerate() {
        if (column.kind == ColumnKind::Static) != statics {
            continue;
        }
        match row.get(first + place).value() {
            Some(bytes) => count += column_cells(column, bytes, time, &mut cells),
            None => missing |= 1 << (place & 63),
        }
    }
    let mut subset = Vec::new();
    if missing != 0 {
        wire::put_unsigned_vint(&mut subset, missing);
    }
    let before = wire::unsigned_vint_length(*previous);
    let size = (before + subset.len() + cells.len()) as u64;
    let start = out.len();
    wire::put_unsigned_vint(out, size);
    wire::put_unsigned_vint(out, *previous);
    out.extend_from_slice(&subset);
    out.extend_from_slice(&cells);
    *previous = (out.len() - start) as u64;
    count
}

/// The cells of a column: one, or one for each element of a collection that is not frozen.
fn column_cells(column: &Column, bytes: &[u8], time: u64, out: &mut Vec<u8>) -> u64 {
    let flags_and_time = |out: &mut Vec<u8>| {
        out.push(0);
        wire::put_unsigned_vint(out, time);
    };
    if !column.cql_type.is_multi_cell() {
        flags_and_time(out);
        value(&column.cql_type, bytes, out);
        return 1;
    }
    let is_udt = matches!(column.cql_type, CqlType::Udt(_));
    // A user-defined type is its fields; a collection begins with their number.
    let mut rest = if is_udt { bytes } else { bytes.get(4..).unwrap_or_default() };
    let mut take = || wire::take_bytes(&mut rest).map(Option::unwrap_or_default);
    let mut count = 0u64;
    let mut cells = Vec::new();
    while let Some(part) = take() {
        flags_and_time(&mut cells);
        match &column.cql_type {
            CqlType::Set(_) => {
                wire::put_unsigned_vint(&mut cells, part.len() as u64);
                cells.extend_from_slice(part);
            }
            CqlType::Map(_, values) => {
                wire::put_unsigned_vint(&mut cells, part.len() as u64);
                cells.extend_from_slice(part);
                value(values, take().unwrap_or_default(), &mut cells);
            }
            CqlType::List(element) => {
                // The place is a time UUID of the write.
                cells.push(16);
                cells.extend_from_slice(&scramble(time).to_be_bytes());
                cells.extend_from_slice(&count.to_be_bytes());
                value(element, part, &mut cells);
            }
            _ => {
                cells.push(2);
                cells.extend_from_slice(&(count as u16).to_be_bytes());
                wire::put_unsigned_vint(&mut cells, part.len() as u64);
                cells.extend_from_slice(part);
            }
        }
        count += 1;
    }
    // The deletion of what the collection was before, then the number of cells.
    wire::put_unsigned_vint(out, time);
    out.extend_from_slice(&[0; 4]);
    wire::put_unsigned_vint(out, count);
    out.extend_from_slice(&cells);
    count
}

/// A value: as it is if all of its type are of one length, else with its length before it.
fn value(cql_type: &CqlType, bytes: &[u8], out: &mut Vec<u8>) {
    if cql_type.fixed_length().is_none() {
        wire::put_unsigned_vint(out, bytes.len() as u64);
    }
    out.extend_from_slice(bytes);
}
