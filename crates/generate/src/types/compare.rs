//! The order of values in Cassandra: of clustering rows, of the elements of a set, of the keys of a map.

use std::cmp::Ordering;

use super::{CqlType, wire};

/// Compare two serialized values of `cql_type` as Cassandra's type of that name does. Bytes that are no value of the type
/// are compared as bytes, so that the order is total whatever a server sends. Empty values come first.
pub fn compare(left: &[u8], right: &[u8], cql_type: &CqlType) -> Ordering {
    let kind = cql_type.unfrozen();
    if left.is_empty() || right.is_empty() {
        return left.len().cmp(&right.len());
    }
    let proper = |length| left.len() == length && right.len() == length;
    match kind {
        CqlType::TinyInt if proper(1) => signed(left).cmp(&signed(right)),
        CqlType::SmallInt if proper(2) => signed(left).cmp(&signed(right)),
        CqlType::Int if proper(4) => signed(left).cmp(&signed(right)),
        CqlType::BigInt | CqlType::Counter | CqlType::Timestamp | CqlType::Time if proper(8) => {
            signed(left).cmp(&signed(right))
        }
        CqlType::Float if proper(4) => {
            real(f64::from(f32::from_bits(signed(left) as u32)), f64::from(f32::from_bits(signed(right) as u32)))
        }
        CqlType::Double if proper(8) => real(f64::from_bits(signed(left) as u64), f64::from_bits(signed(right) as u64)),
        CqlType::Varint => integer(left, right),
        CqlType::Decimal => decimal(left, right),
        CqlType::Uuid if proper(16) => uuid(left, right),
        CqlType::TimeUuid if proper(16) => time_uuid(left, right),
        CqlType::List(element) | CqlType::Set(element) => parts(left, right, |_, l, r| compare(l, r, element)),
        CqlType::Map(key, value) => {
            parts(left, right, |place, l, r| compare(l, r, if place % 2 == 0 { key } else { value }))
        }
        CqlType::Tuple(types) => fields(left, right, |place| types.get(place)),
        CqlType::Udt(udt) => fields(left, right, |place| udt.fields.get(place).map(|(_, field)| field)),
        CqlType::Vector(element, count) => vector(left, right, element, *count),
        _ => left.cmp(right),
    }
}

/// Up to 8 bytes, big-endian, two's complement.
fn signed(bytes: &[u8]) -> i64 {
    let start = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte))
}

/// Java's order of floating-point numbers: −0 before 0, all NaN equal and last.
fn real(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(&right),
        (left, right) => left.cmp(&right),
    }
}

/// Two's complement numbers of any length.
fn integer(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (wire::minimal(left), wire::minimal(right));
    let negative = |bytes: &[u8]| bytes.first().is_some_and(|first| *first >= 0x80);
    match (negative(left), negative(right)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        // In shortest form a longer number is farther from zero; of equal lengths the bytes decide, whatever the sign.
        (false, false) => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
        (true, true) => right.len().cmp(&left.len()).then_with(|| left.cmp(right)),
    }
}

/// Decimals by value: 1.0 equals 1.00. Scales far apart are brought together by their digits.
fn decimal(left: &[u8], right: &[u8]) -> Ordering {
    let split = |bytes: &[u8]| {
        let mut rest = bytes;
        let scale = wire::take_i32(&mut rest)?;
        Some((scale, super::text::integer(rest)))
    };
    let (Some((left_scale, left_digits)), Some((right_scale, right_digits))) = (split(left), split(right)) else {
        return left.cmp(right);
    };
    let sign = |digits: &str| {
        if digits == "0" {
            0
        } else if digits.starts_with('-') {
            -1
        } else {
            1
        }
    };
    let (left_sign, right_sign) = (sign(&left_digits), sign(&right_digits));
    if left_sign != right_sign || left_sign == 0 {
        return left_sign.cmp(&right_sign);
    }
    let magnitude = |digits: &str, scale: i32| {
        let digits = digits.trim_start_matches('-').to_owned();
        // Where the first digit stands, counted from the point.
        (digits.len() as i64 - i64::from(scale), digits)
    };
    let (left_place, left_digits) = magnitude(&left_digits, left_scale);
    let (right_place, right_digits) = magnitude(&right_digits, right_scale);
    let by_size = left_place
        .cmp(&right_place)
        .then_with(|| left_digits.trim_end_matches('0').cmp(right_digits.trim_end_matches('0')));
    if left_sign < 0 { by_size.reverse() } else { by_size }
}

/// `uuid`: by version first; of version 1 by time, then by bytes.
fn uuid(left: &[u8], right: &[u8]) -> Ordering {
    let version = |bytes: &[u8]| bytes[6] >> 4;
    version(left)
        .cmp(&version(right))
        .then_with(|| if version(left) == 1 { ticks(left).cmp(&ticks(right)) } else { Ordering::Equal })
        .then_with(|| left.cmp(right))
}

/// `timeuuid`: by time, then by the other half as signed bytes.
fn time_uuid(left: &[u8], right: &[u8]) -> Ordering {
    let tail = |bytes: &[u8]| bytes[8..].iter().map(|byte| *byte as i8).collect::<Vec<_>>();
    ticks(left).cmp(&ticks(right)).then_with(|| tail(left).cmp(&tail(right)))
}

/// The 60 bits of a version-1 UUID's time: low, middle and high part in this order in the bytes.
fn ticks(bytes: &[u8]) -> u64 {
    let order = [6, 7, 4, 5, 0, 1, 2, 3];
    order.iter().fold(0, |ticks, place| ticks << 8 | u64::from(bytes[*place])) & 0x0fff_ffff_ffff_ffff
}

/// Collections: part by part, then the shorter first.
fn parts(left: &[u8], right: &[u8], mut order: impl FnMut(usize, &[u8], &[u8]) -> Ordering) -> Ordering {
    let (mut l, mut r) = (left, right);
    let (Some(left_count), Some(right_count)) = (wire::take_i32(&mut l), wire::take_i32(&mut r)) else {
        return left.cmp(right);
    };
    let mut place = 0;
    while !l.is_empty() && !r.is_empty() {
        let (Some(one), Some(other)) = (wire::take_bytes(&mut l), wire::take_bytes(&mut r)) else {
            return left.cmp(right);
        };
        let by_part = nullable(one, other, |one, other| order(place, one, other));
        if by_part.is_ne() {
            return by_part;
        }
        place += 1;
    }
    left_count.cmp(&right_count)
}

/// Tuples and user-defined types: field by field, null first.
fn fields<'a>(left: &[u8], right: &[u8], field: impl Fn(usize) -> Option<&'a CqlType>) -> Ordering {
    let (mut l, mut r) = (left, right);
    for place in 0.. {
        let Some(field) = field(place) else { break };
        if l.is_empty() || r.is_empty() {
            break;
        }
        let (Some(one), Some(other)) = (wire::take_bytes(&mut l), wire::take_bytes(&mut r)) else {
            return left.cmp(right);
        };
        let by_field = nullable(one, other, |one, other| compare(one, other, field));
        if by_field.is_ne() {
            return by_field;
        }
    }
    l.len().cmp(&r.len())
}

fn nullable(left: Option<&[u8]>, right: Option<&[u8]>, order: impl FnOnce(&[u8], &[u8]) -> Ordering) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => order(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

fn vector(left: &[u8], right: &[u8], element: &CqlType, count: usize) -> Ordering {
    let (mut l, mut r) = (left, right);
    let take = |bytes: &mut &[u8]| -> Option<(usize, usize)> {
        let before = bytes.len();
        let length = match element.fixed_length() {
            Some(length) => length,
            None => wire::take_unsigned_vint(bytes)?.try_into().ok()?,
        };
        let start = before - bytes.len();
        bytes.split_at_checked(length).map(|(_, rest)| *bytes = rest)?;
        Some((start, length))
    };
    for _ in 0..count {
        let (one, other) = (l, r);
        let (Some((ls, ln)), Some((rs, rn))) = (take(&mut l), take(&mut r)) else { return left.cmp(right) };
        let by_element = compare(&one[ls..ls + ln], &other[rs..rs + rn], element);
        if by_element.is_ne() {
            return by_element;
        }
    }
    Ordering::Equal
}
