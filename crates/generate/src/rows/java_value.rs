//! Serialized values as cassandra-stress's Java objects would fold into seeds and sort.

use std::cmp::Ordering;

use crate::{
    java::{fold_bytes, fold_number, fold_uuid},
    types::{CqlType, compare},
};

/// Fold a value into a seed (its `PartitionIterator.seed`): numbers by their value as a long, UUIDs by their halves, all
/// else by its bytes.
pub(super) fn fold(seed: i64, bytes: &[u8], cql_type: &CqlType) -> i64 {
    match cql_type.unfrozen() {
        CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::BigInt | CqlType::Counter | CqlType::Time => {
            fold_number(seed, signed(bytes))
        }
        // A date is the number of days to it, which travels with 2³¹ added.
        CqlType::Date => fold_number(seed, i64::from(signed(bytes) as i32 ^ i32::MIN)),
        CqlType::Varint => fold_number(seed, signed(bytes)),
        // All scales are 0.
        CqlType::Decimal => fold_number(seed, signed(bytes.get(4..).unwrap_or_default())),
        CqlType::Float => fold_number(seed, f32::from_bits(signed(bytes) as u32) as i64),
        CqlType::Double => fold_number(seed, f64::from_bits(signed(bytes) as u64) as i64),
        CqlType::Uuid | CqlType::TimeUuid => {
            let (high, low) = bytes.split_at(bytes.len().min(8));
            fold_uuid(seed, signed(high), signed(low))
        }
        _ => fold_bytes(seed, bytes),
    }
}

/// Big-endian two's complement; the low 64 bits of longer ones.
fn signed(bytes: &[u8]) -> i64 {
    let start = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte))
}

/// Java's order of the values, `None` where the class has none (addresses, collections).
pub(super) fn order(left: &[u8], right: &[u8], cql_type: &CqlType) -> Option<Ordering> {
    let as_signed = |bytes: &[u8]| bytes.iter().map(|byte| *byte as i8).collect::<Vec<_>>();
    Some(match cql_type.unfrozen() {
        CqlType::Inet | CqlType::List(_) | CqlType::Set(_) => return None,
        CqlType::Blob => as_signed(left).cmp(&as_signed(right)),
        CqlType::Uuid | CqlType::TimeUuid => {
            let halves = |bytes: &[u8]| (signed(&bytes[..8]), signed(&bytes[8..]));
            halves(left).cmp(&halves(right))
        }
        // Of all other types the server's order is that of the numbers or letters, as Java's.
        other => compare(left, right, other),
    })
}
