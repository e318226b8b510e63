//! Values to the native protocol's bytes.

use std::net::IpAddr;

use thiserror::Error;

use super::{CqlType, Value, wire};

/// A value that is not one of the type.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{value} is not a value of the type {cql_type}; give one of that type")]
pub struct EncodeError {
    /// The value, as CQL.
    pub value: String,
    /// The type it was to be.
    pub cql_type: String,
}

/// Append `value` as a value of `cql_type`, without a length before it. The parts of a value may be null, the whole may
/// not: that is a length of −1, which the caller writes.
pub fn encode(value: &Value, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = append(value, cql_type, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append(value: &Value, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mismatch = || EncodeError { value: value.to_string(), cql_type: cql_type.to_string() };
    match (cql_type.unfrozen(), value) {
        (_, Value::Empty) => {}
        (CqlType::Ascii, Value::Text(text)) if text.is_ascii() => out.extend_from_slice(text.as_bytes()),
        (CqlType::Text, Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (CqlType::Blob | CqlType::Custom(_), Value::Blob(bytes)) => out.extend_from_slice(bytes),
        (CqlType::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
        (CqlType::TinyInt, Value::TinyInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::SmallInt, Value::SmallInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Int, Value::Int(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::BigInt | CqlType::Counter, Value::BigInt(value))
        | (CqlType::Timestamp, Value::Timestamp(value))
        | (CqlType::Time, Value::Time(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Float, Value::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Double, Value::Double(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Varint, Value::Varint(bytes)) if !bytes.is_empty() => out.extend_from_slice(wire::minimal(bytes)),
        (CqlType::Decimal, Value::Decimal { scale, unscaled }) if !unscaled.is_empty() => {
            out.extend_from_slice(&scale.to_be_bytes());
            out.extend_from_slice(wire::minimal(unscaled));
        }
        (CqlType::Uuid | CqlType::TimeUuid, Value::Uuid(value)) => out.extend_from_slice(&value.to_be_bytes()),
        // Day 0 is in the middle of the unsigned range.
        (CqlType::Date, Value::Date(days)) => out.extend_from_slice(&((*days as u32) ^ 1 << 31).to_be_bytes()),
        (CqlType::Inet, Value::Inet(IpAddr::V4(address))) => out.extend_from_slice(&address.octets()),
        (CqlType::Inet, Value::Inet(IpAddr::V6(address))) => out.extend_from_slice(&address.octets()),
        (CqlType::Duration, Value::Duration(duration)) => {
            wire::put_vint(out, i64::from(duration.months));
            wire::put_vint(out, i64::from(duration.days));
            wire::put_vint(out, duration.nanoseconds);
        }
        (CqlType::List(element), Value::List(values)) | (CqlType::Set(element), Value::Set(values)) => {
            wire::put_count(out, values.len());
            for value in values {
                part(value, element, out)?;
            }
        }
        (CqlType::Map(key_type, value_type), Value::Map(entries)) => {
            wire::put_count(out, entries.len());
            for (key, value) in entries {
                part(key, key_type, out)?;
                part(value, value_type, out)?;
            }
        }
        (CqlType::Tuple(types), Value::Tuple(values)) if values.len() <= types.len() => {
            for (value, field) in values.iter().zip(types) {
                part(value, field, out)?;
            }
        }
        (CqlType::Udt(udt), Value::Udt(values)) if values.len() <= udt.fields.len() => {
            for ((name, value), (field, field_type)) in values.iter().zip(&udt.fields) {
                if name != field {
                    return Err(mismatch());
                }
                part(value, field_type, out)?;
            }
        }
        (CqlType::Vector(element, count), Value::List(values)) if values.len() == *count => {
            let mut one = Vec::new();
            for value in values {
                if matches!(value, Value::Null) {
                    return Err(mismatch());
                }
                one.clear();
                append(value, element, &mut one)?;
                if element.fixed_length().is_none() {
                    wire::put_unsigned_vint(out, one.len() as u64);
                }
                out.extend_from_slice(&one);
            }
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// A part of a value, with its length.
fn part(value: &Value, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if matches!(value, Value::Null) {
        wire::put_null(out);
        return Ok(());
    }
    let mut result = Ok(());
    wire::put_bytes(out, |out| result = append(value, cql_type, out));
    result
}
