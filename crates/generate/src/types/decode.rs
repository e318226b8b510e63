//! The native protocol's bytes to values, and to text for messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::{CqlType, Duration, Value, wire};

/// Bytes that are not a value of the type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{length} bytes (0x{start}…) are not a value of the type {cql_type}: {what}")]
pub struct DecodeError {
    /// The type they were to be.
    pub cql_type: String,
    /// How many there are.
    pub length: usize,
    /// The first of them, in hexadecimal.
    pub start: String,
    /// What is wrong with them.
    pub what: &'static str,
}

/// The value that `bytes` (without a length before them) are as a value of `cql_type`.
pub fn decode(bytes: &[u8], cql_type: &CqlType) -> Result<Value, DecodeError> {
    let error = |what| DecodeError {
        cql_type: cql_type.to_string(),
        length: bytes.len(),
        start: bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect(),
        what,
    };
    let short = || error("too few bytes");
    let kind = cql_type.unfrozen();
    if bytes.is_empty() && !matches!(kind, CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Custom(_)) {
        return Ok(Value::Empty);
    }
    if let Some(length) = kind.exact_length()
        && bytes.len() != length
    {
        return Err(error("the type has another length"));
    }
    let mut rest = bytes;
    let value = match kind {
        CqlType::Ascii | CqlType::Text => {
            Value::Text(str::from_utf8(bytes).map_err(|_| error("not UTF-8"))?.to_owned())
        }
        CqlType::Blob | CqlType::Custom(_) => Value::Blob(bytes.to_vec()),
        CqlType::Boolean => Value::Boolean(bytes != [0]),
        CqlType::TinyInt => Value::TinyInt(number(bytes) as i8),
        CqlType::SmallInt => Value::SmallInt(number(bytes) as i16),
        CqlType::Int => Value::Int(number(bytes) as i32),
        CqlType::BigInt | CqlType::Counter => Value::BigInt(number(bytes) as i64),
        CqlType::Timestamp => Value::Timestamp(number(bytes) as i64),
        CqlType::Time => Value::Time(number(bytes) as i64),
        CqlType::Float => Value::Float(f32::from_bits(number(bytes) as u32)),
        CqlType::Double => Value::Double(f64::from_bits(number(bytes) as u64)),
        CqlType::Uuid | CqlType::TimeUuid => Value::Uuid(number(bytes)),
        CqlType::Date => Value::Date((number(bytes) as u32 ^ 1 << 31) as i32),
        CqlType::Varint => Value::Varint(bytes.to_vec()),
        CqlType::Decimal => {
            let scale = wire::take_i32(&mut rest).filter(|_| !rest.is_empty()).ok_or_else(short)?;
            Value::Decimal { scale, unscaled: rest.to_vec() }
        }
        CqlType::Inet => Value::Inet(match bytes.len() {
            4 => IpAddr::V4(Ipv4Addr::from_bits(number(bytes) as u32)),
            16 => IpAddr::V6(Ipv6Addr::from_bits(number(bytes))),
            _ => return Err(error("an address has 4 or 16 bytes")),
        }),
        CqlType::Duration => {
            let mut next = || wire::take_vint(&mut rest);
            let parts = next().zip(next()).zip(next());
            let ((months, days), nanoseconds) =
                parts.filter(|_| rest.is_empty()).ok_or_else(|| error("not three vints"))?;
            let small = |value: i64| i32::try_from(value).map_err(|_| error("months or days beyond 32 bits"));
            Value::Duration(Duration { months: small(months)?, days: small(days)?, nanoseconds })
        }
        CqlType::List(element) => Value::List(elements(&mut rest, element).ok_or_else(short)??),
        CqlType::Set(element) => Value::Set(elements(&mut rest, element).ok_or_else(short)??),
        CqlType::Map(key, value) => {
            let count = wire::take_i32(&mut rest).ok_or_else(short)?;
            let mut entries = Vec::new();
            for _ in 0..count {
                let name = field(&mut rest, key).ok_or_else(short)??;
                entries.push((name, field(&mut rest, value).ok_or_else(short)??));
            }
            Value::Map(entries)
        }
        CqlType::Tuple(types) => {
            let mut values = Vec::with_capacity(types.len());
            for field_type in types {
                if rest.is_empty() {
                    break;
                }
                values.push(field(&mut rest, field_type).ok_or_else(short)??);
            }
            Value::Tuple(values)
        }
        CqlType::Udt(udt) => {
            let mut values = Vec::with_capacity(udt.fields.len());
            for (name, field_type) in &udt.fields {
                if rest.is_empty() {
                    break;
                }
                values.push((name.clone(), field(&mut rest, field_type).ok_or_else(short)??));
            }
            Value::Udt(values)
        }
        CqlType::Vector(element, count) => {
            let mut values = Vec::with_capacity(*count);
            for _ in 0..*count {
                let length = match element.fixed_length() {
                    Some(length) => length,
                    None => wire::take_unsigned_vint(&mut rest).and_then(|n| n.try_into().ok()).ok_or_else(short)?,
                };
                let (one, after) = rest.split_at_checked(length).ok_or_else(short)?;
                rest = after;
                values.push(decode(one, element)?);
            }
            Value::List(values)
        }
        CqlType::Frozen(_) => return Err(error("frozen")),
    };
    let composed = matches!(
        kind,
        CqlType::List(_)
            | CqlType::Set(_)
            | CqlType::Map(..)
            | CqlType::Tuple(_)
            | CqlType::Udt(_)
            | CqlType::Vector(..)
    );
    if composed && !rest.is_empty() {
        return Err(error("bytes are left over"));
    }
    Ok(value)
}

/// The value as CQL for a message, at most `limit` characters of it, or the bytes in hexadecimal where they are no
/// value of the type.
pub fn describe(bytes: Option<&[u8]>, cql_type: &CqlType, limit: usize) -> String {
    let Some(bytes) = bytes else { return "null".to_owned() };
    let text = match decode(bytes, cql_type) {
        Ok(value) => value.to_string(),
        Err(_) => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    };
    if text.chars().count() <= limit {
        return text;
    }
    let start: String = text.chars().take(limit).collect();
    format!("{start}… ({} bytes)", bytes.len())
}

/// Up to 16 bytes, big-endian.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

type Part<T> = Option<Result<T, DecodeError>>;

fn elements(rest: &mut &[u8], element: &CqlType) -> Part<Vec<Value>> {
    let count = wire::take_i32(rest)?;
    let mut values = Vec::new();
    for _ in 0..count {
        match field(rest, element)? {
            Ok(value) => values.push(value),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(values))
}

fn field(rest: &mut &[u8], cql_type: &CqlType) -> Part<Value> {
    match wire::take_bytes(rest)? {
        None => Some(Ok(Value::Null)),
        Some(bytes) => Some(decode(bytes, cql_type)),
    }
}
