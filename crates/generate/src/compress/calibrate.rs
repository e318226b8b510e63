//! Finding the share of bytes that must repeat.

use super::{CompressError, Compression, sstable};
use crate::{
    rows::{Column, PartitionLayout},
    types::{ColumnKind, CqlType, wire},
    values::{ColumnGenerator, Flavour, has_free_content},
};

/// Chunks that are compressed at each trial, and the bytes that they are at least and at most.
const CHUNKS: usize = 48;
const SMALLEST_SAMPLE: usize = 1 << 20;
const LARGEST_SAMPLE: usize = 8 << 20;
/// How near a ratio is brought to what was asked.
const NEAR: f64 = 0.001;
/// How far outside the reachable range an asked ratio may lie and still be taken as its edge.
const TOLERANCE: f64 = 0.01;

/// What a dial was set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// The column; `None`: all columns that the table's ratio governs.
    pub column: Option<String>,
    /// The ratio asked for.
    pub asked: f64,
    /// The ratio that the sample has.
    pub ratio: f64,
    /// The share of bytes that repeat.
    pub repeat: f64,
}

/// Set the `repeat` of the columns so that each column with a `compress` of its own reaches that ratio in its own bytes, and
/// the whole table, if `table` is given, reaches that one. A table's ratio moves the texts and blobs outside the primary
/// key, also those inside of collections, tuples and user-defined types, of the columns that have none of their own.
///
/// # Errors
/// A ratio out of reach (with what is in reach), no column to move, a key that would no longer differ, rows that cannot be
/// made.
pub fn calibrate(
    layout: &mut PartitionLayout,
    compression: Compression,
    table: Option<f64>,
) -> Result<Vec<Calibrated>, CompressError> {
    let mut done = Vec::new();
    for place in 0..layout.columns.len() {
        let column = layout.columns[place].clone();
        let Some(asked) = column.settings.compress else { continue };
        if !is_own_content(&column) && is_key(&column) {
            return Err(CompressError::Key { column: column.name, cql_type: column.cql_type.to_string() });
        }
        let mut trial = column.clone();
        let found = search(asked, |repeat| {
            trial.settings.repeat = Some(repeat);
            column_ratio(&trial, compression)
        })?;
        let (repeat, ratio) = found.map_err(|(least, most)| CompressError::Unreachable {
            asked,
            what: format!("column '{}'", column.name),
            compressor: compression.compressor,
            chunk: compression.chunk,
            least,
            most,
            remedy: if is_own_content(&column) {
                "larger values (size:) reach further down, and blobs further up than texts"
            } else {
                "larger parts (element_size:) reach further down, and blobs further up than texts; keys of maps and elements of sets do not repeat"
            },
        })?;
        layout.columns[place].settings.repeat = Some(repeat);
        done.push(Calibrated { column: Some(column.name), asked, ratio, repeat });
    }
    let Some(asked) = table else { return Ok(done) };
    let moved: Vec<usize> = (0..layout.columns.len()).filter(|place| is_moved(&layout.columns[*place])).collect();
    if moved.is_empty() {
        return Err(CompressError::NoColumns);
    }
    let mut trial = PartitionLayout { sizes: None, ..layout.clone() };
    let found = search(asked, |repeat| {
        moved.iter().for_each(|place| trial.columns[*place].settings.repeat = Some(repeat));
        measure(&trial, compression)
    })?;
    let (repeat, ratio) = found.map_err(|(least, most)| CompressError::Unreachable {
        asked,
        what: "the table".to_owned(),
        compressor: compression.compressor,
        chunk: compression.chunk,
        least,
        most,
        remedy: "keys, timestamps, keys of maps, elements of sets and the other columns are as they are; larger texts or blobs \
                 (size:, inside of collections element_size:) give more room",
    })?;
    moved.iter().for_each(|place| layout.columns[*place].settings.repeat = Some(repeat));
    done.push(Calibrated { column: None, asked, ratio, repeat });
    Ok(done)
}

/// The ratio that rows of this layout are compressed to, as `nodetool tablestats` shows it after a flush, or for compressors
/// that Cassandra does not flush with (Zstd, Deflate: `flush_compression: fast`) after a compaction.
///
/// # Errors
/// The rows cannot be made.
pub fn measure(layout: &PartitionLayout, compression: Compression) -> Result<f64, CompressError> {
    compression.ratio(&sstable::sample(layout, sample_length(compression), 1)?.data)
}

fn sample_length(compression: Compression) -> usize {
    (compression.chunk * CHUNKS).clamp(SMALLEST_SAMPLE, LARGEST_SAMPLE).max(compression.chunk)
}

/// The ratio of a column's own bytes: values with their lengths, one after the other.
fn column_ratio(column: &Column, compression: Compression) -> Result<f64, CompressError> {
    let mut generator = ColumnGenerator::new(&column.spelled, &column.cql_type, &column.settings)
        .map_err(|error| CompressError::Rows(error.into()))?;
    let length = sample_length(compression);
    let (mut data, mut value) = (Vec::with_capacity(length), Vec::new());
    for seed in 0.. {
        if data.len() >= length {
            break;
        }
        value.clear();
        generator.append(seed, &mut value);
        wire::put_unsigned_vint(&mut data, value.len() as u64);
        data.extend_from_slice(&value);
    }
    compression.ratio(&data)
}

fn is_key(column: &Column) -> bool {
    matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering { .. })
}

/// Whether its values are texts or blobs themselves, not what holds them. As keys these begin with what makes them differ,
/// whatever repeats behind it.
fn is_own_content(column: &Column) -> bool {
    matches!(column.cql_type.unfrozen(), CqlType::Ascii | CqlType::Text | CqlType::Blob)
}

/// Whether a table's ratio may choose what the column's values repeat.
fn is_moved(column: &Column) -> bool {
    !is_key(column)
        && has_free_content(&column.cql_type)
        && column.settings.flavour == Flavour::V2
        && column.settings.compress.is_none()
}

type Found = Result<(f64, f64), (f64, f64)>;

/// The share at which `ratio` is what is asked, and what it is there; or the range that it has. More repeats compress
/// better, so the interval can be halved.
fn search(asked: f64, mut ratio: impl FnMut(f64) -> Result<f64, CompressError>) -> Result<Found, CompressError> {
    if !(asked > 0.0 && asked < 1.0) {
        return Err(CompressError::Ratio(asked));
    }
    let (most, least) = (ratio(0.0)?, ratio(1.0)?);
    if asked > most + TOLERANCE || asked < least - TOLERANCE {
        return Ok(Err((least, most)));
    }
    let (mut fresh, mut repeated) = (0.0, 1.0);
    let mut best = if (most - asked).abs() < (least - asked).abs() { (0.0, most) } else { (1.0, least) };
    for _ in 0..20 {
        let middle = (fresh + repeated) / 2.0;
        let found = ratio(middle)?;
        if (found - asked).abs() < (best.1 - asked).abs() {
            best = (middle, found);
        }
        if (found - asked).abs() < NEAR {
            break;
        }
        if found > asked {
            fresh = middle;
        } else {
            repeated = middle;
        }
    }
    Ok(Ok(best))
}
