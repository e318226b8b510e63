//! Names and types of columns and bound values (section 4.2.5.2).

use std::{fmt, sync::Arc};

use super::{
    Garbage,
    reader::Reader,
    write::{short, string},
};

/// How deeply nested types may be. Cassandra has no limit; people do.
const DEEPEST: u8 = 32;

/// A column of rows, or a value that a prepared statement takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// The type of a column as the protocol describes it, which does not say what is frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Any type for which the protocol has no code, by the name of its Java class: vectors and users' own.
    Custom(String),
    /// One without parameters.
    Native(NativeType),
    /// A list.
    List(Box<ColumnType>),
    /// A set.
    Set(Box<ColumnType>),
    /// A map, of its keys and its values.
    Map(Box<ColumnType>, Box<ColumnType>),
    /// A tuple.
    Tuple(Vec<ColumnType>),
    /// A user-defined type.
    User {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// Its fields in order.
        fields: Vec<(String, ColumnType)>,
    },
}

macro_rules! native_types {
    ($($code:literal $variant:ident $name:literal,)*) => {
        /// A type without parameters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "they are named as in CQL")]
        pub enum NativeType {
            $($variant,)*
            /// A type that is newer than this program, by its code.
            Unknown(u16),
        }

        impl NativeType {
            /// The code of `[option]`.
            pub const fn code(self) -> u16 {
                match self {
                    $(NativeType::$variant => $code,)*
                    NativeType::Unknown(code) => code,
                }
            }

            /// The type with this name in CQL.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(NativeType::$variant),)*
                    "varchar" => Some(NativeType::Text),
                    _ => None,
                }
            }

            /// The type with this code, unless the code belongs to one with parameters.
            fn from_code(code: u16) -> Self {
                match code {
                    $($code => NativeType::$variant,)*
                    _ => NativeType::Unknown(code),
                }
            }

            /// Its name in CQL.
            pub const fn name(self) -> &'static str {
                match self {
                    $(NativeType::$variant => $name,)*
                    NativeType::Unknown(_) => "unknown",
                }
            }
        }
    };
}

native_types! {
    0x0001 Ascii "ascii",
    0x0002 Bigint "bigint",
    0x0003 Blob "blob",
    0x0004 Boolean "boolean",
    0x0005 Counter "counter",
    0x0006 Decimal "decimal",
    0x0007 Double "double",
    0x0008 Float "float",
    0x0009 Int "int",
    0x000B Timestamp "timestamp",
    0x000C Uuid "uuid",
    0x000D Text "text",
    0x000E Varint "varint",
    0x000F Timeuuid "timeuuid",
    0x0010 Inet "inet",
    0x0011 Date "date",
    0x0012 Time "time",
    0x0013 Smallint "smallint",
    0x0014 Tinyint "tinyint",
    0x0015 Duration "duration",
}

const CUSTOM: u16 = 0x0000;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const USER: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// As in CQL.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Custom(class) => write!(f, "'{class}'"),
            ColumnType::Native(NativeType::Unknown(code)) => write!(f, "type {code:#06x}"),
            ColumnType::Native(native) => f.write_str(native.name()),
            ColumnType::List(of) => write!(f, "list<{of}>"),
            ColumnType::Set(of) => write!(f, "set<{of}>"),
            ColumnType::Map(keys, values) => write!(f, "map<{keys}, {values}>"),
            ColumnType::Tuple(of) => {
                f.write_str("tuple<")?;
                for (place, of) in of.iter().enumerate() {
                    write!(f, "{}{of}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(">")
            }
            ColumnType::User { keyspace, name, .. } => write!(f, "{keyspace}.{name}"),
        }
    }
}

impl ColumnType {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<ColumnType, Garbage> {
        read_type(reader, DEEPEST)
    }

    /// Appends it as an `[option]`.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        match self {
            ColumnType::Custom(class) => {
                short(out, CUSTOM);
                string(out, class);
            }
            ColumnType::Native(native) => short(out, native.code()),
            ColumnType::List(of) => {
                short(out, LIST);
                of.append(out);
            }
            ColumnType::Set(of) => {
                short(out, SET);
                of.append(out);
            }
            ColumnType::Map(keys, values) => {
                short(out, MAP);
                keys.append(out);
                values.append(out);
            }
            ColumnType::Tuple(of) => {
                short(out, TUPLE);
                short(out, of.len() as u16);
                of.iter().for_each(|of| of.append(out));
            }
            ColumnType::User { keyspace, name, fields } => {
                short(out, USER);
                string(out, keyspace);
                string(out, name);
                short(out, fields.len() as u16);
                for (name, kind) in fields {
                    string(out, name);
                    kind.append(out);
                }
            }
        }
    }
}

fn read_type(reader: &mut Reader<'_>, depth: u8) -> Result<ColumnType, Garbage> {
    let inner = |reader: &mut Reader<'_>| match depth {
        0 => Err(TOO_DEEP),
        _ => read_type(reader, depth - 1),
    };
    Ok(match reader.short()? {
        CUSTOM => ColumnType::Custom(reader.string()?.to_owned()),
        LIST => ColumnType::List(Box::new(inner(reader)?)),
        SET => ColumnType::Set(Box::new(inner(reader)?)),
        MAP => ColumnType::Map(Box::new(inner(reader)?), Box::new(inner(reader)?)),
        TUPLE => {
            let count = reader.short()?;
            ColumnType::Tuple((0..count).map(|_| inner(reader)).collect::<Result<_, _>>()?)
        }
        USER => {
            let (keyspace, name) = (reader.string()?.to_owned(), reader.string()?.to_owned());
            let count = reader.short()?;
            let field = |reader: &mut Reader<'_>| Ok((reader.string()?.to_owned(), inner(reader)?));
            let fields = (0..count).map(|_| field(reader)).collect::<Result<_, Garbage>>()?;
            ColumnType::User { keyspace, name, fields }
        }
        code => ColumnType::Native(NativeType::from_code(code)),
    })
}

const TOO_DEEP: Garbage = "a column type nested too deeply";

/// Skips a type without keeping anything.
fn skip_type(reader: &mut Reader<'_>, depth: u8) -> Result<(), Garbage> {
    let inner = |reader: &mut Reader<'_>| match depth {
        0 => Err(TOO_DEEP),
        _ => skip_type(reader, depth - 1),
    };
    match reader.short()? {
        CUSTOM => reader.string().map(drop),
        LIST | SET => inner(reader),
        MAP => inner(reader).and_then(|()| inner(reader)),
        TUPLE => (0..reader.short()?).try_for_each(|_| inner(reader)),
        USER => {
            reader.string()?;
            reader.string()?;
            (0..reader.short()?).try_for_each(|_| {
                reader.string()?;
                inner(reader)
            })
        }
        _ => Ok(()),
    }
}

/// Specifications of columns, validated but not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns<'a> {
    bytes: &'a [u8],
    count: u32,
    /// One table for all columns precedes the first.
    global: bool,
}

impl<'a> Columns<'a> {
    pub(super) const NONE: Columns<'static> = Columns { bytes: &[], count: 0, global: false };

    pub(super) fn read(reader: &mut Reader<'a>, count: u32, global: bool) -> Result<Self, Garbage> {
        let bytes = reader.span(|reader| {
            if global {
                reader.string()?;
                reader.string()?;
            }
            (0..count).try_for_each(|_| {
                if !global {
                    reader.string()?;
                    reader.string()?;
                }
                reader.string()?;
                skip_type(reader, DEEPEST)
            })
        })?;
        Ok(Columns { bytes, count, global })
    }

    /// The first one's name.
    pub(super) fn first_name(self) -> Option<&'a str> {
        let mut reader = Reader(self.bytes);
        (self.count > 0).then_some(())?;
        reader.string().ok()?;
        reader.string().ok()?;
        reader.string().ok()
    }

    pub(super) fn to_vec(self) -> Vec<Column> {
        let mut reader = Reader(self.bytes);
        // They have been decoded once already, so this cannot fail.
        self.columns(&mut reader).unwrap_or_default()
    }

    fn columns(self, reader: &mut Reader<'_>) -> Result<Vec<Column>, Garbage> {
        let table =
            |reader: &mut Reader<'_>| Ok::<_, Garbage>((Arc::from(reader.string()?), Arc::from(reader.string()?)));
        let global = if self.global { Some(table(reader)?) } else { None };
        let column = |reader: &mut Reader<'_>| {
            let (keyspace, table) = global.clone().map_or_else(|| table(reader), Ok)?;
            Ok(Column { keyspace, table, name: reader.string()?.to_owned(), kind: ColumnType::read(reader)? })
        };
        (0..self.count).map(|_| column(reader)).collect()
    }
}
