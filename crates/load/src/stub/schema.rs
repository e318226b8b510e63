//! What the stub knows of tables: their columns, types and keys.

use std::collections::BTreeMap;

use super::tokens::{Cursor, Token, tokens};
use crate::wire::{ColumnType, NativeType};

/// A table. Columns are ordered as Cassandra orders them: partition key, clustering key, the others by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) keyspace: String,
    pub(super) name: String,
    pub(super) columns: Vec<(String, ColumnType)>,
    /// Number of partition key columns.
    pub(super) partition: usize,
    /// Number of clustering columns, which follow them.
    pub(super) clustering: usize,
}

impl Table {
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| column == name)
    }

    /// Number of columns in a row's key.
    pub(super) fn key(&self) -> usize {
        self.partition + self.clustering
    }
}

/// User-defined types, by keyspace and name.
pub(super) type UserTypes = BTreeMap<(String, String), Vec<(String, ColumnType)>>;

/// Parses what follows `CREATE TABLE [IF NOT EXISTS]`.
pub(super) fn table(cursor: &mut Cursor<'_>, keyspace: &str, types: &UserTypes) -> Option<Table> {
    let (given, name) = cursor.name()?;
    let keyspace = given.unwrap_or(keyspace).to_owned();
    let mut columns: Vec<(String, ColumnType)> = Vec::new();
    let (mut partition, mut clustering): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    cursor.symbol('(').then_some(())?;
    loop {
        if cursor.accept(&["primary", "key"]) {
            cursor.symbol('(').then_some(())?;
            partition = if cursor.symbol('(') { names(cursor)? } else { vec![cursor.word()?.to_owned()] };
            cursor.symbol(',');
            clustering = names(cursor)?;
        } else {
            let column = cursor.word()?.to_owned();
            let kind = column_type(cursor, &keyspace, types)?;
            cursor.accept(&["static"]);
            if cursor.accept(&["primary", "key"]) {
                partition = vec![column.clone()];
            }
            columns.push((column, kind));
        }
        if !cursor.symbol(',') {
            break;
        }
    }
    (cursor.symbol(')') && !partition.is_empty()).then_some(())?;
    let key: Vec<&String> = partition.iter().chain(&clustering).collect();
    let place = |column: &String| key.iter().position(|part| *part == column);
    columns.sort_by_key(|(column, _)| (place(column).unwrap_or(key.len()), column.clone()));
    let known = key.iter().all(|part| columns.iter().any(|(column, _)| column == *part));
    known.then_some(Table {
        keyspace,
        name: name.to_owned(),
        columns,
        partition: partition.len(),
        clustering: clustering.len(),
    })
}

/// Names up to and including the closing bracket.
fn names(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while !cursor.symbol(')') {
        names.push(cursor.word()?.to_owned());
        cursor.symbol(',');
    }
    Some(names)
}

/// Parses what follows `CREATE TYPE [IF NOT EXISTS]`, into `types`.
pub(super) fn user_type(cursor: &mut Cursor<'_>, keyspace: &str, types: &mut UserTypes) -> Option<()> {
    let (given, name) = cursor.name()?;
    let keyspace = given.unwrap_or(keyspace).to_owned();
    let mut fields = Vec::new();
    cursor.symbol('(').then_some(())?;
    while !cursor.symbol(')') {
        fields.push((cursor.word()?.to_owned(), column_type(cursor, &keyspace, types)?));
        cursor.symbol(',');
    }
    types.insert((keyspace, name.to_owned()), fields);
    Some(())
}

fn column_type(cursor: &mut Cursor<'_>, keyspace: &str, types: &UserTypes) -> Option<ColumnType> {
    if let Some(Token::Text(class)) = cursor.peek() {
        cursor.next();
        return Some(ColumnType::Custom(class.clone()));
    }
    let (given, name) = cursor.name()?;
    let inner = |cursor: &mut Cursor<'_>| column_type(cursor, keyspace, types);
    let of = |cursor: &mut Cursor<'_>| {
        cursor.symbol('<').then_some(())?;
        let kind = inner(cursor)?;
        cursor.symbol('>').then_some(kind)
    };
    Some(match name {
        "frozen" => of(cursor)?,
        "list" => ColumnType::List(Box::new(of(cursor)?)),
        "set" => ColumnType::Set(Box::new(of(cursor)?)),
        "map" => {
            cursor.symbol('<').then_some(())?;
            let key = inner(cursor)?;
            cursor.symbol(',').then_some(())?;
            let value = inner(cursor)?;
            cursor.symbol('>').then_some(ColumnType::Map(Box::new(key), Box::new(value)))?
        }
        "tuple" => {
            cursor.symbol('<').then_some(())?;
            let mut parts = vec![inner(cursor)?];
            while cursor.symbol(',') {
                parts.push(inner(cursor)?);
            }
            cursor.symbol('>').then_some(ColumnType::Tuple(parts))?
        }
        "vector" => {
            cursor.symbol('<').then_some(())?;
            inner(cursor)?;
            cursor.symbol(',').then_some(())?;
            let length = cursor.word()?;
            cursor.symbol('>').then_some(())?;
            // The stub treats vectors as opaque, whatever their elements are.
            let class = "org.apache.cassandra.db.marshal";
            ColumnType::Custom(format!("{class}.VectorType({class}.FloatType , {length})"))
        }
        name => match NativeType::named(name) {
            Some(native) if given.is_none() => ColumnType::Native(native),
            _ => {
                let keyspace = given.unwrap_or(keyspace).to_owned();
                let fields = types.get(&(keyspace.clone(), name.to_owned()))?.clone();
                ColumnType::User { keyspace, name: name.to_owned(), fields }
            }
        },
    })
}

/// The table that a whole `CREATE TABLE` makes.
pub(super) fn parse_table(text: &str) -> Option<Table> {
    let tokens = tokens(text);
    let mut cursor = Cursor(&tokens);
    cursor.accept(&["create", "table"]).then_some(())?;
    cursor.accept(&["if", "not", "exists"]);
    table(&mut cursor, "", &UserTypes::new())
}

/// Bytes that are a value of this type: zeros, or `size` letters.
pub(super) fn sample(kind: &ColumnType, size: usize) -> Vec<u8> {
    use NativeType as Native;
    let fixed = |length: usize| vec![0; length];
    match kind {
        ColumnType::List(_) | ColumnType::Set(_) | ColumnType::Map(..) => fixed(4),
        ColumnType::Tuple(parts) => [0xFF; 4].repeat(parts.len()),
        ColumnType::User { fields, .. } => [0xFF; 4].repeat(fields.len()),
        ColumnType::Custom(_) => vec![b'x'; size],
        ColumnType::Native(native) => match native {
            Native::Ascii | Native::Text | Native::Blob | Native::Unknown(_) => vec![b'x'; size],
            Native::Bigint | Native::Counter | Native::Double | Native::Time | Native::Timestamp => fixed(8),
            Native::Boolean | Native::Tinyint | Native::Varint => fixed(1),
            Native::Decimal => fixed(5),
            Native::Float | Native::Int | Native::Inet => fixed(4),
            // Dates are counted from the middle of the range.
            Native::Date => vec![0x80, 0, 0, 0],
            Native::Smallint => fixed(2),
            Native::Duration => fixed(3),
            Native::Uuid => vec![0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0],
            Native::Timeuuid => vec![0, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0, 0, 0, 0, 0],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> (Vec<String>, usize, usize) {
        let table = parse_table(text).unwrap();
        let columns = table.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        (columns, table.partition, table.clustering)
    }

    #[test]
    fn tables_are_read_with_their_keys_first() {
        let standard = "CREATE TABLE IF NOT EXISTS keyspace1.standard1 (key blob PRIMARY KEY, \"C1\" blob, \"C0\" blob) \
                        WITH COMPACT STORAGE AND compression = {}";
        let columns = ["key blob", "C0 blob", "C1 blob"].map(str::to_owned).to_vec();
        assert_eq!(described(standard), (columns, 1, 0));
        let wide = "create table k.t (v text, a int, b frozen<map<text, list<int>>>, s tuple<int, uuid> static, \
                    c timeuuid, PRIMARY KEY ((b, a), c))";
        let columns = ["b map<text, list<int>>", "a int", "c timeuuid", "s tuple<int, uuid>", "v text"];
        assert_eq!(described(wide), (columns.map(str::to_owned).to_vec(), 2, 1));
        assert_eq!(parse_table("CREATE TABLE k.t (a int, b nonsense, PRIMARY KEY (a))"), None);
        assert_eq!(parse_table("CREATE TABLE k.t (a int, PRIMARY KEY (b))"), None);
    }
}
