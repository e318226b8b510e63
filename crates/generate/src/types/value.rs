//! A value in memory.

use std::net::IpAddr;

/// A duration: three counters that do not convert into each other, all of one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Duration {
    /// Calendar months.
    pub months: i32,
    /// Calendar days.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

/// A value of a CQL type. `Display` writes it as CQL would.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// No bytes where the type would need some; an old feature of Cassandra's.
    Empty,
    /// `ascii` and `text`
    Text(String),
    /// `blob` and custom types
    Blob(Vec<u8>),
    /// `boolean`
    Boolean(bool),
    /// `tinyint`
    TinyInt(i8),
    /// `smallint`
    SmallInt(i16),
    /// `int`
    Int(i32),
    /// `bigint` and `counter`
    BigInt(i64),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `varint`: two's complement, big-endian
    Varint(Vec<u8>),
    /// `decimal`: unscaled (two's complement, big-endian) × 10^−scale
    Decimal {
        /// Digits after the point.
        scale: i32,
        /// The digits as one number.
        unscaled: Vec<u8>,
    },
    /// `uuid` and `timeuuid`
    Uuid(u128),
    /// `timestamp`: milliseconds since 1970
    Timestamp(i64),
    /// `date`: days since 1970
    Date(i32),
    /// `time`: nanoseconds since midnight
    Time(i64),
    /// `inet`
    Inet(IpAddr),
    /// `duration`
    Duration(Duration),
    /// `list` and `vector`
    List(Vec<Value>),
    /// `set`
    Set(Vec<Value>),
    /// `map`
    Map(Vec<(Value, Value)>),
    /// `tuple`
    Tuple(Vec<Value>),
    /// A user-defined type: its fields' values in the type's order; missing ones at the end are null
    Udt(Vec<(String, Value)>),
}
