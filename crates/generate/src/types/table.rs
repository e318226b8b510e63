//! A `CREATE TABLE`, read for its columns and options.

use super::{
    CqlType, TypeError, UserTypes,
    lexer::{Token, Words},
    parse,
};

/// What a column is to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Part of the partition key.
    PartitionKey,
    /// A clustering column; `descending` as `CLUSTERING ORDER BY` says.
    Clustering {
        /// Rows are kept from the largest value to the smallest.
        descending: bool,
    },
    /// One value per partition.
    Static,
    /// One value per row.
    Regular,
}

/// A column as defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name, without quotes.
    pub name: String,
    /// Its type.
    pub cql_type: CqlType,
    /// What it is to the table.
    pub kind: ColumnKind,
}

/// The value of a table's option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A text, number or word.
    Text(String),
    /// `{'key': value, …}`
    Map(Vec<(String, String)>),
}

/// A table as its `CREATE TABLE` defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// The keyspace, where the statement names one.
    pub keyspace: Option<String>,
    /// The table's name, without quotes.
    pub name: String,
    /// The columns: partition key and clustering columns in the key's order, then static and regular ones by name
    /// (the order in which drivers list them, and in which cassandra-stress binds them).
    pub columns: Vec<ColumnDefinition>,
    /// The options after `WITH`, names in lower case.
    pub options: Vec<(String, OptionValue)>,
}

impl TableDefinition {
    /// Read a `CREATE TABLE` (or `CREATE COLUMNFAMILY`) statement.
    pub fn parse(cql: &str, types: &UserTypes) -> Result<Self, TypeError> {
        let mut words = Words::new(cql)?;
        if !words.keywords(&["create", "columnfamily"]) {
            words.expect_keywords(&["create", "table"])?;
        }
        words.keywords(&["if", "not", "exists"]);
        let mut name = words.name("the name of the table")?;
        let mut keyspace = None;
        if words.sign('.') {
            keyspace = Some(name);
            name = words.name("the name of the table")?;
        }
        let mut body = Body::default();
        words.expect_sign('(')?;
        loop {
            if words.keywords(&["primary", "key"]) {
                body.primary_key(&mut words)?;
            } else if *words.peek() != Token::Sign(')') {
                body.column(&mut words, types)?;
            }
            if !words.sign(',') {
                break;
            }
        }
        words.expect_sign(')')?;
        let mut options = Vec::new();
        let mut descending = Vec::new();
        if words.keyword("with") {
            loop {
                option(&mut words, &mut options, &mut descending)?;
                if !words.keyword("and") {
                    break;
                }
            }
        }
        words.end()?;
        let columns = body.columns(&name, &descending)?;
        Ok(TableDefinition { keyspace, name, columns, options })
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&ColumnDefinition> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The value of `key` in the map `option`, such as `compression`'s `class`.
    pub fn option(&self, option: &str, key: &str) -> Option<&str> {
        let (_, value) = self.options.iter().find(|(name, _)| name == option)?;
        let OptionValue::Map(entries) = value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// What stands between the table's brackets.
#[derive(Default)]
struct Body {
    columns: Vec<(String, CqlType, bool)>,
    partition: Vec<String>,
    clustering: Vec<String>,
}

impl Body {
    fn column(&mut self, words: &mut Words<'_>, types: &UserTypes) -> Result<(), TypeError> {
        let name = words.name("the name of a column")?;
        let cql_type = parse::cql_type(words, types)?;
        let is_static = words.keyword("static");
        if words.keywords(&["masked", "with"]) {
            // A masking function says nothing about what is stored.
            while !matches!(words.peek(), Token::Sign(',' | ')') | Token::End)
                && !matches!(words.peek(), Token::Word(w) if w == "primary")
            {
                if words.sign('(') {
                    while !words.sign(')') {
                        if words.take() == Token::End {
                            return Err(words.unexpected("')'"));
                        }
                    }
                } else {
                    words.take();
                }
            }
        }
        if words.keywords(&["primary", "key"]) {
            self.partition = vec![name.clone()];
        }
        self.columns.push((name, cql_type, is_static));
        Ok(())
    }

    fn primary_key(&mut self, words: &mut Words<'_>) -> Result<(), TypeError> {
        words.expect_sign('(')?;
        if words.sign('(') {
            loop {
                self.partition.push(words.name("a column of the partition key")?);
                if !words.sign(',') {
                    break;
                }
            }
            words.expect_sign(')')?;
        } else {
            self.partition.push(words.name("a column of the partition key")?);
        }
        while words.sign(',') {
            self.clustering.push(words.name("a clustering column")?);
        }
        words.expect_sign(')')
    }

    fn columns(mut self, table: &str, descending: &[String]) -> Result<Vec<ColumnDefinition>, TypeError> {
        if self.partition.is_empty() {
            return Err(TypeError::NoKey { table: table.to_owned() });
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        let keys = self.partition.iter().map(|name| (name, ColumnKind::PartitionKey)).chain(
            self.clustering.iter().map(|name| (name, ColumnKind::Clustering { descending: descending.contains(name) })),
        );
        for (name, kind) in keys {
            let Some(place) = self.columns.iter().position(|(column, ..)| column == name) else {
                return Err(TypeError::NoSuchColumn { table: table.to_owned(), column: name.clone() });
            };
            let (name, cql_type, _) = self.columns.swap_remove(place);
            columns.push(ColumnDefinition { name, cql_type, kind });
        }
        self.columns.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        columns.extend(self.columns.into_iter().map(|(name, cql_type, is_static)| ColumnDefinition {
            name,
            cql_type,
            kind: if is_static { ColumnKind::Static } else { ColumnKind::Regular },
        }));
        Ok(columns)
    }
}

fn option(
    words: &mut Words<'_>,
    options: &mut Vec<(String, OptionValue)>,
    descending: &mut Vec<String>,
) -> Result<(), TypeError> {
    if words.keywords(&["clustering", "order", "by"]) {
        words.expect_sign('(')?;
        loop {
            let column = words.name("a clustering column")?;
            if words.keyword("desc") {
                descending.push(column);
            } else {
                words.keyword("asc");
            }
            if !words.sign(',') {
                break;
            }
        }
        return words.expect_sign(')');
    }
    if words.keywords(&["compact", "storage"]) {
        options.push(("compact storage".to_owned(), OptionValue::Text("true".to_owned())));
        return Ok(());
    }
    let name = words.name("an option")?;
    words.expect_sign('=')?;
    let value = if words.sign('{') {
        let mut entries = Vec::new();
        while !words.sign('}') {
            let key = constant(words)?;
            words.expect_sign(':')?;
            entries.push((key, constant(words)?));
            if !words.sign(',') {
                words.expect_sign('}')?;
                break;
            }
        }
        OptionValue::Map(entries)
    } else {
        OptionValue::Text(constant(words)?)
    };
    options.push((name, value));
    Ok(())
}

fn constant(words: &mut Words<'_>) -> Result<String, TypeError> {
    match words.peek() {
        Token::Text(_) | Token::Number(_) | Token::Word(_) | Token::Quoted(_) => {}
        _ => return Err(words.unexpected("a constant")),
    }
    let (Token::Text(text) | Token::Number(text) | Token::Word(text) | Token::Quoted(text)) = words.take() else {
        return Err(words.unexpected("a constant"));
    };
    // A UUID's dashes are signs to the lexer; they only occur as a table's id.
    let mut text = text;
    loop {
        match words.peek() {
            Token::Number(more) if more.starts_with('-') => text.push_str(more),
            Token::Sign('-') => text.push('-'),
            Token::Word(more) | Token::Number(more) if text.ends_with('-') => text.push_str(more),
            _ => return Ok(text),
        }
        words.take();
    }
}
