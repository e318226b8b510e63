//! Statements on tables: what they do, and what their markers stand for.

use std::ops::Range;

use super::{
    asked::Value,
    schema::Table,
    tokens::{Cursor, Token},
};
use crate::wire::{ColumnType, NativeType, write};

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verb {
    /// Returns these columns.
    Select(Vec<Selected>),
    /// Sets columns; also INSERT.
    Update,
    Delete,
}

/// A column of a SELECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selected {
    /// Of the table, by its index.
    Column(usize),
    /// `count(…)`.
    Count,
    /// Any other function, by its text.
    Function(String),
}

/// A marker: its name and type, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) name: String,
    pub(super) kind: ColumnType,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The key's value or the new value of this column.
    Column(usize),
    /// Is multiplied by this and added to the counter in this column.
    Increment(usize, i64),
    /// The time of the write.
    Timestamp,
    /// Nothing that matters to the stub.
    Other,
}

/// A statement on a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) verb: Verb,
    pub(super) markers: Vec<Marker>,
    /// It has an `IF`.
    pub(super) conditional: bool,
    /// It is executed only if there is no such row.
    pub(super) if_not_exists: bool,
}

fn native(native: NativeType) -> ColumnType {
    ColumnType::Native(native)
}

/// The table that a statement is on: keyspace, if it says so, and name.
pub(super) fn table_of(tokens: &[Token]) -> Option<(Option<&str>, &str)> {
    let mut cursor = Cursor(tokens);
    let before = match cursor.word()? {
        "select" | "delete" => "from",
        "insert" => "into",
        "update" => return cursor.name(),
        _ => return None,
    };
    while !cursor.accept(&[before]) {
        cursor.next()?;
    }
    cursor.name()
}

/// Parses a statement on `table`.
pub(super) fn parse(tokens: &[Token], table: &Table) -> Option<Statement> {
    let mut cursor = Cursor(tokens);
    let verb = cursor.word()?;
    let mut markers = Vec::new();
    let verb = match verb {
        "select" => {
            let columns = selected(&mut cursor, table)?;
            cursor.name()?;
            Verb::Select(columns)
        }
        "insert" => {
            cursor.accept(&["into"]).then_some(())?;
            cursor.name()?;
            inserted(&mut cursor, table, &mut markers)?;
            Verb::Update
        }
        "update" => {
            cursor.name()?;
            Verb::Update
        }
        _ => Verb::Delete,
    };
    let rest = cursor.0;
    conditions(cursor, table, &mut markers);
    let conditional = rest.contains(&Token::Word("if".into()));
    let has = |words: &[&str]| (0..rest.len()).any(|start| Cursor(&rest[start..]).accept(words));
    let if_not_exists = has(&["if", "not", "exists"]);
    Some(Statement { verb, markers, conditional, if_not_exists })
}

/// Columns up to and with FROM.
fn selected(cursor: &mut Cursor<'_>, table: &Table) -> Option<Vec<Selected>> {
    cursor.accept(&["json"]);
    cursor.accept(&["distinct"]);
    let mut columns = Vec::new();
    while !cursor.accept(&["from"]) {
        if cursor.symbol('*') {
            columns.extend((0..table.columns.len()).map(Selected::Column));
        } else if let Some(word) = cursor.word() {
            if cursor.symbol('(') {
                let mut inner = String::new();
                while !cursor.symbol(')') {
                    match cursor.next()? {
                        Token::Word(word) => inner.push_str(word),
                        Token::Symbol(symbol) => inner.push(*symbol),
                        _ => {}
                    }
                }
                let function = Selected::Function(format!("system.{word}({inner})"));
                columns.push(if word == "count" { Selected::Count } else { function });
            } else {
                columns.push(Selected::Column(table.column(word)?));
            }
            if cursor.accept(&["as"]) {
                cursor.word();
            }
        } else {
            cursor.symbol(',').then_some(())?;
        }
    }
    Some(columns)
}

/// `(names) VALUES (values)`.
fn inserted(cursor: &mut Cursor<'_>, table: &Table, markers: &mut Vec<Marker>) -> Option<()> {
    let mut columns = Vec::new();
    cursor.symbol('(').then_some(())?;
    while !cursor.symbol(')') {
        columns.push(table.column(cursor.word()?)?);
        cursor.symbol(',');
    }
    (cursor.accept(&["values"]) && cursor.symbol('(')).then_some(())?;
    // A value is everything up to a comma outside of brackets.
    let (mut place, mut depth) = (0, 0);
    loop {
        match cursor.next()? {
            Token::Marker if depth == 0 => markers.push(column_marker(table, *columns.get(place)?)),
            Token::Symbol(',') if depth == 0 => place += 1,
            Token::Symbol(')') if depth == 0 => return Some(()),
            Token::Symbol('(' | '[' | '{') => depth += 1,
            Token::Symbol(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
}

fn column_marker(table: &Table, place: usize) -> Marker {
    let (name, kind) = table.columns[place].clone();
    Marker { name, kind, role: Role::Column(place) }
}

/// Markers of the rest: USING, SET, WHERE, IF, LIMIT. The words before a marker tell what it is for.
fn conditions(mut cursor: Cursor<'_>, table: &Table, markers: &mut Vec<Marker>) {
    let mut column: Option<usize> = None;
    let mut before = String::new();
    let (mut sign, mut increment, mut in_list, mut after_if) = (1, false, false, false);
    while let Some(token) = cursor.next() {
        match token {
            Token::Word(word) => {
                match word.as_str() {
                    "and" | "where" | "set" | "using" => (increment, in_list) = (false, false),
                    "if" => after_if = true,
                    "in" => in_list = true,
                    _ => {}
                }
                if let Some(place) = table.column(word) {
                    column = Some(place);
                }
                before.clone_from(word);
            }
            Token::Symbol('+') => (increment, sign) = (true, 1),
            Token::Symbol('-') => (increment, sign) = (true, -1),
            Token::Symbol(',') => increment = false,
            Token::Marker => markers.push(match (before.as_str(), column) {
                ("timestamp", _) => marker("[timestamp]", NativeType::Bigint, Role::Timestamp),
                ("ttl", _) => marker("[ttl]", NativeType::Int, Role::Other),
                ("limit", _) => marker("[limit]", NativeType::Int, Role::Other),
                (_, Some(place)) if in_list => {
                    let (name, kind) = &table.columns[place];
                    let kind = ColumnType::List(Box::new(kind.clone()));
                    Marker { name: format!("in({name})"), kind, role: Role::Other }
                }
                (_, Some(place)) if increment => {
                    Marker { role: Role::Increment(place, sign), ..column_marker(table, place) }
                }
                // Values after IF are compared, not written.
                (_, Some(place)) if after_if => Marker { role: Role::Other, ..column_marker(table, place) },
                (_, Some(place)) => column_marker(table, place),
                _ => marker("[marker]", NativeType::Blob, Role::Other),
            }),
            _ => {}
        }
    }
}

fn marker(name: &str, kind: NativeType, role: Role) -> Marker {
    Marker { name: name.to_owned(), kind: native(kind), role }
}

impl Statement {
    /// For each column of the partition key, the index of its marker; empty if one has none.
    pub(super) fn key_markers(&self, table: &Table) -> Vec<u16> {
        let place = |column: usize| self.markers.iter().position(|marker| marker.role == Role::Column(column));
        let places: Option<Vec<u16>> = (0..table.partition).map(|column| place(column).map(|at| at as u16)).collect();
        places.unwrap_or_default()
    }

    /// Names and types of the columns that it returns.
    pub(super) fn result(&self, table: &Table) -> Vec<(String, ColumnType)> {
        let Verb::Select(columns) = &self.verb else { return Vec::new() };
        let column = |selected: &Selected| match selected {
            Selected::Column(place) => table.columns[*place].clone(),
            Selected::Count => ("count".to_owned(), native(NativeType::Bigint)),
            Selected::Function(text) => (text.clone(), native(NativeType::Bigint)),
        };
        columns.iter().map(column).collect()
    }
    /// The bytes of these columns of the key, if they are all bound: one as it is, more with their lengths.
    pub(super) fn key(&self, values: &[Value<'_>], columns: Range<usize>) -> Option<Vec<u8>> {
        let alone = columns.len() == 1;
        let mut key = Vec::new();
        for column in columns {
            let place = self.markers.iter().position(|marker| marker.role == Role::Column(column))?;
            let bytes = values.get(place)?.bytes()?;
            if alone {
                key.extend_from_slice(bytes);
            } else {
                write::bytes(&mut key, bytes);
            }
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::schema::parse_table, super::tokens::tokens, *};

    fn read(text: &str) -> (Statement, Vec<String>) {
        let table = parse_table("CREATE TABLE k.t (a int, b text, c counter, d blob, PRIMARY KEY ((a), b))").unwrap();
        let tokens = tokens(text);
        assert_eq!(table_of(&tokens), Some((Some("k"), "t")));
        let statement = parse(&tokens, &table).unwrap();
        let markers = statement.markers.iter().map(|m| format!("{} {} {:?}", m.name, m.kind, m.role)).collect();
        (statement, markers)
    }

    #[test]
    fn markers_are_known_by_what_they_stand_for() {
        let (statement, markers) = read("INSERT INTO k.t (d, a, b) VALUES (?, 7, ?) IF NOT EXISTS USING TTL ?");
        assert_eq!(markers, ["d blob Column(3)", "b text Column(1)", "[ttl] int Other"]);
        assert!(statement.conditional && statement.if_not_exists);
        let (statement, markers) =
            read("UPDATE k.t USING TIMESTAMP ? SET c = c + ?, d = ? WHERE a = :a AND b = ? IF d = ?");
        let expected = [
            "[timestamp] bigint Timestamp",
            "c counter Increment(2, 1)",
            "d blob Column(3)",
            "a int Column(0)",
            "b text Column(1)",
            "d blob Other",
        ];
        assert_eq!(markers, expected);
        assert!(statement.conditional && !statement.if_not_exists);
        let (statement, markers) =
            read("SELECT d, \"b\", count(*), writetime(d) FROM k.t WHERE a = ? AND b IN ? LIMIT ?");
        assert_eq!(markers, ["a int Column(0)", "in(b) list<text> Other", "[limit] int Other"]);
        let functions = [Selected::Count, Selected::Function("system.writetime(d)".into())];
        assert_eq!(
            statement.verb,
            Verb::Select([vec![Selected::Column(3), Selected::Column(1)], functions.into()].concat())
        );
        let (statement, _) = read("DELETE FROM k.t WHERE a = ?");
        assert_eq!((statement.verb, statement.conditional), (Verb::Delete, false));
    }
}
