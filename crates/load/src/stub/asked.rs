//! What a request asks besides its statement: values and query parameters (section 4.1.4).

use crate::wire::{Garbage, Version, query, reader::Reader};

/// A value for a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Null,
    /// The stored value stays as it is.
    Unset,
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        }
    }
}

/// Query parameters.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) values: Vec<Value<'a>>,
    pub(super) skip_metadata: bool,
    pub(super) page_size: Option<u32>,
    pub(super) paging_state: Option<&'a [u8]>,
    pub(super) timestamp: Option<i64>,
}

const NAMES: u8 = 0x40;

pub(super) fn values<'a>(reader: &mut Reader<'a>, named: bool) -> Result<Vec<Value<'a>>, Garbage> {
    let count = reader.short()?;
    let value = |reader: &mut Reader<'a>| {
        if named {
            reader.string()?;
        }
        Ok(match reader.int()? as i32 {
            -1 => Value::Null,
            length if length < 0 => Value::Unset,
            length => Value::Bytes(reader.take(length as usize)?),
        })
    };
    (0..count).map(|_| value(reader)).collect()
}

/// A `[byte]` in version 4, an `[int]` in version 5, of which only the last byte matters here.
pub(super) fn flags(reader: &mut Reader<'_>, version: Version) -> Result<u8, Garbage> {
    match version {
        Version::V4 => reader.byte(),
        Version::V5 => reader.int().map(|flags| flags as u8),
    }
}

impl<'a> Asked<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Garbage> {
        let _consistency = reader.short()?;
        let flags = flags(reader, version)?;
        let has = |flag| flags & flag != 0;
        let values = if has(query::VALUES) { values(reader, has(NAMES))? } else { Vec::new() };
        let page_size = if has(query::PAGE_SIZE) { Some(reader.int()?) } else { None };
        let paging_state = if has(query::PAGING_STATE) { reader.bytes()? } else { None };
        if has(query::SERIAL_CONSISTENCY) {
            reader.short()?;
        }
        let timestamp = if has(query::DEFAULT_TIMESTAMP) { Some(long(reader)?) } else { None };
        Ok(Asked { values, skip_metadata: has(query::SKIP_METADATA), page_size, paging_state, timestamp })
    }
}

pub(super) fn long(reader: &mut Reader<'_>) -> Result<i64, Garbage> {
    let (high, low) = (reader.int()?, reader.int()?);
    Ok(i64::from(high) << 32 | i64::from(low))
}
