//! The types of CQL: how they are written, what a value of them looks like on the wire, and how values compare.
//!
//! - [`CqlType`], parsed from the text of `system_schema.columns.type` or of a `CREATE TABLE`;
//! - [`UserTypes`], the user-defined types of a keyspace, which such a text may name;
//! - [`TableDefinition`], a `CREATE TABLE` read for its columns and options;
//! - [`Value`]: a value in memory, [`encode`]d to and [`decode`]d from the native protocol's bytes, printed as CQL;
//! - [`compare`]: the order in which Cassandra keeps values of a type.

mod compare;
mod decode;
mod encode;
mod lexer;
mod parse;
mod table;
mod text;
mod udt;
mod value;
pub mod wire;

pub use compare::compare;
pub use decode::{DecodeError, decode, describe};
pub use encode::{EncodeError, encode};
pub use table::{ColumnDefinition, ColumnKind, OptionValue, TableDefinition};
pub use udt::{UserType, UserTypes};
pub use value::{Duration, Value};

use std::{fmt, sync::Arc};

use thiserror::Error;

/// A text that is not a CQL type, type definition or table definition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TypeError {
    /// The text breaks off or continues in a way that the grammar does not allow.
    #[error("'{text}': {found} at byte {at}, where {expected} was expected")]
    Syntax {
        /// The whole text.
        text: String,
        /// Where, in bytes from its start.
        at: usize,
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// A name that is neither a native type nor a known user-defined one.
    #[error("there is no type '{name}'; define it with CREATE TYPE first{}", nearest.as_ref().map(|near| format!(", or did you mean '{near}'?")).unwrap_or_default())]
    Unknown {
        /// The name as written.
        name: String,
        /// The known name nearest to it.
        nearest: Option<String>,
    },
    /// The definition names a column that it does not have.
    #[error("the key of table '{table}' names the column '{column}', which the table does not define")]
    NoSuchColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A table without a primary key.
    #[error("table '{table}' has no PRIMARY KEY")]
    NoKey {
        /// The table.
        table: String,
    },
    /// A vector without elements, or with more than Cassandra allows.
    #[error("a vector has 1 to 8192 elements, not {0}")]
    Dimension(u64),
    /// Types that hold types, deeper than any table needs.
    #[error("'{text}': types nested deeper than {limit}")]
    Nested {
        /// The whole text.
        text: String,
        /// How deep is allowed.
        limit: usize,
    },
}

/// A CQL type. `Display` writes it as `system_schema.columns.type` has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the natives are the names of CQL itself")]
pub enum CqlType {
    Ascii,
    BigInt,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Duration,
    Float,
    Inet,
    Int,
    SmallInt,
    /// `text`, and its older name `varchar`.
    Text,
    Time,
    Timestamp,
    TimeUuid,
    TinyInt,
    Uuid,
    Varint,
    /// `list<element>`
    List(Box<CqlType>),
    /// `set<element>`
    Set(Box<CqlType>),
    /// `map<key, value>`
    Map(Box<CqlType>, Box<CqlType>),
    /// `tuple<…>`
    Tuple(Vec<CqlType>),
    /// `vector<element, n>`
    Vector(Box<CqlType>, usize),
    /// A user-defined type.
    Udt(Arc<UserType>),
    /// `frozen<…>`: stored as one value.
    Frozen(Box<CqlType>),
    /// A class of the server, `'org.example.Type'`: bytes to us.
    Custom(String),
}

/// The native types by name; `varchar` is the one alias.
pub(crate) const NATIVE: [(&str, CqlType); 21] = [
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("blob", CqlType::Blob),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varchar", CqlType::Text),
    ("varint", CqlType::Varint),
];

impl CqlType {
    /// From CQL text: `map<text, frozen<list<int>>>`, as `system_schema.columns.type` or a `CREATE TABLE` writes it.
    /// User-defined types are looked up in `types`.
    pub fn parse(text: &str, types: &UserTypes) -> Result<CqlType, TypeError> {
        parse::whole_type(text, types)
    }

    /// The type without `frozen<…>` around it.
    pub fn unfrozen(&self) -> &CqlType {
        match self {
            CqlType::Frozen(inner) => inner.unfrozen(),
            other => other,
        }
    }

    /// Whether a column of this type is stored in many cells, so that `c = c + ?` adds to it: a collection or
    /// user-defined type that is not frozen. (Tuples and vectors are always one cell.)
    pub fn is_multi_cell(&self) -> bool {
        matches!(self, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) | CqlType::Udt(_))
    }

    /// The bytes of every value of this type, where Cassandra counts it among the types of fixed length. It does not
    /// so for `tinyint`, `smallint`, `date` and `time`: vectors of these and their cells carry lengths.
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            CqlType::Boolean => Some(1),
            CqlType::Int | CqlType::Float => Some(4),
            CqlType::BigInt | CqlType::Double | CqlType::Timestamp => Some(8),
            CqlType::Uuid | CqlType::TimeUuid => Some(16),
            CqlType::Vector(element, count) => element.fixed_length().map(|length| length * count),
            CqlType::Frozen(inner) => inner.fixed_length(),
            _ => None,
        }
    }

    /// The bytes that every value of this type has on the wire, including the types that Cassandra treats as of
    /// variable length although they are not.
    pub fn exact_length(&self) -> Option<usize> {
        match self {
            CqlType::TinyInt => Some(1),
            CqlType::SmallInt => Some(2),
            CqlType::Date => Some(4),
            CqlType::Time | CqlType::Counter => Some(8),
            other => other.fixed_length(),
        }
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CqlType::List(element) => write!(f, "list<{element}>"),
            CqlType::Set(element) => write!(f, "set<{element}>"),
            CqlType::Map(key, value) => write!(f, "map<{key}, {value}>"),
            CqlType::Vector(element, count) => write!(f, "vector<{element}, {count}>"),
            CqlType::Frozen(inner) => write!(f, "frozen<{inner}>"),
            CqlType::Custom(class) => write!(f, "'{}'", class.replace('\'', "''")),
            CqlType::Udt(udt) => f.write_str(&quote(&udt.name)),
            CqlType::Tuple(fields) => {
                f.write_str("tuple<")?;
                for (place, field) in fields.iter().enumerate() {
                    let separator = if place == 0 { "" } else { ", " };
                    write!(f, "{separator}{field}")?;
                }
                f.write_str(">")
            }
            native => {
                let name = NATIVE.iter().find(|(name, known)| known == native && *name != "varchar");
                f.write_str(name.map_or("?", |(name, _)| name))
            }
        }
    }
}

/// A name as CQL wants it: bare if lower-case letters, digits and `_` will do, in double quotes otherwise.
pub fn quote(name: &str) -> String {
    let bare = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if bare && !lexer::RESERVED.contains(&name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests;
