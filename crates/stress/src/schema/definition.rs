//! The statements that create and use the predefined tables, as cassandra-stress writes them.
//!
//! Some texts differ by flavour: ScyllaDB's fork gives the compression as `sstable_compression`, which ScyllaDB and
//! Cassandra up to 4.x understand; Cassandra 5 requires `class`. Both mean the same; [`Flavour`] decides.

use super::SchemaError;

/// The default replication strategy of a keyspace.
pub const NETWORK_TOPOLOGY: &str = "org.apache.cassandra.locator.NetworkTopologyStrategy";

/// A keyspace of the predefined commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyspaceDefinition {
    /// Its name, as it stands in the schema.
    pub name: String,
    /// Class of the replication strategy.
    pub strategy: String,
    /// The strategy's options: `replication_factor`, or a factor per data centre. Empty: one replica.
    pub replication: Vec<(String, String)>,
    /// ScyllaDB's `storage` option: type and options.
    pub storage: Option<(String, Vec<(String, String)>)>,
}

/// The key under which the compressor is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// `class`: Cassandra 3.0 and later.
    #[default]
    Cassandra,
    /// `sstable_compression`: ScyllaDB.
    Scylla,
}

/// What the tables of the predefined commands look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// Names of the columns besides the key.
    pub columns: Vec<String>,
    /// The compressor's class; `None`: no compression.
    pub compression: Option<String>,
    /// The compaction strategy's class and options.
    pub compaction: Option<(String, Vec<(String, String)>)>,
    /// How compression is written.
    pub flavour: Flavour,
}

/// A name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name as it must be written to mean itself: bare if it consists of lower-case letters, digits and underscores.
pub fn identifier(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { quoted(name) }
}

/// A text in single quotes.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn entries(out: &mut String, options: &[(String, String)]) {
    for (key, value) in options {
        out.push_str(&format!(", {} : {}", literal(key), literal(value)));
    }
}

/// `CREATE KEYSPACE IF NOT EXISTS …`.
pub fn keyspace(definition: &KeyspaceDefinition) -> String {
    let mut cql = format!(
        "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': {}",
        quoted(&definition.name),
        literal(&definition.strategy)
    );
    if definition.replication.is_empty() {
        cql.push_str(", 'replication_factor': '1'");
    }
    entries(&mut cql, &definition.replication);
    cql.push('}');
    if let Some((kind, options)) = &definition.storage {
        cql.push_str(&format!(" AND storage = {{'type': {}", literal(kind)));
        entries(&mut cql, options);
        cql.push('}');
    }
    cql.push_str(" AND durable_writes = true");
    cql
}

/// `CREATE TABLE IF NOT EXISTS …` of `standard1` (`blob`) or `counter1` (`counter`).
pub fn table(keyspace: &str, name: &str, cell: &str, options: &TableOptions) -> String {
    let mut cql = format!("CREATE TABLE IF NOT EXISTS {}.{name} (key blob PRIMARY KEY", quoted(keyspace));
    for column in &options.columns {
        cql.push_str(&format!(", {} {cell}", quoted(column)));
    }
    cql.push_str(") WITH compression = {");
    match (&options.compression, options.flavour) {
        (Some(class), Flavour::Cassandra) => cql.push_str(&format!("'class' : {}", literal(class))),
        (Some(class), Flavour::Scylla) => cql.push_str(&format!("'sstable_compression' : {}", literal(class))),
        // An empty map turns compression off.
        (None, _) => {}
    }
    cql.push('}');
    if let Some((class, more)) = &options.compaction {
        cql.push_str(&format!(" AND compaction = {{ 'class' : {}", literal(class)));
        entries(&mut cql, more);
        cql.push('}');
    }
    cql
}

/// The write of `standard1`: every column, then the key; `timestamp` is fixed for all rows.
pub fn write(keyspace: &str, columns: &[String], timestamp: Option<&str>) -> Result<String, SchemaError> {
    let using = match timestamp {
        None => String::new(),
        Some(text) if text.parse::<i64>().is_ok() => format!(" USING TIMESTAMP {text}"),
        Some(text) => {
            return Err(SchemaError::Definition {
                what: format!("-col timestamp={text}"),
                remedy: "write a whole number of microseconds",
            });
        }
    };
    let set: Vec<String> = columns.iter().map(|column| format!("{} = ?", quoted(column))).collect();
    Ok(format!("UPDATE {}.\"standard1\"{using} SET {} WHERE KEY=?", quoted(keyspace), set.join(",")))
}

/// The read of `standard1`: the columns by name, or all (`-col slice`).
pub fn read(keyspace: &str, columns: &[String], slice: bool) -> String {
    let selected =
        if slice { "*".to_owned() } else { columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",") };
    format!("SELECT {selected} FROM {}.\"standard1\" WHERE KEY=?", quoted(keyspace))
}

/// The increment of `counter1`: every counter, then the key.
pub fn counter_write(keyspace: &str, columns: &[String]) -> String {
    let set: Vec<String> = columns.iter().map(|column| format!("{0}={0}+?", quoted(column))).collect();
    format!("UPDATE {}.\"counter1\" SET {} WHERE KEY=?", quoted(keyspace), set.join(","))
}

/// The read of `counter1`.
pub fn counter_read(keyspace: &str) -> String {
    format!("SELECT * FROM {}.\"counter1\" WHERE KEY=?", quoted(keyspace))
}
