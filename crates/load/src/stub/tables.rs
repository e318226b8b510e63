//! The system tables that drivers read when they connect.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use super::{
    asked::Asked,
    reply::Head,
    schema::Table,
    statement,
    tokens::{Cursor, Token},
};
use crate::wire::{
    ColumnType, NativeType,
    write::{self, bytes},
};

/// A cell with a value of its CQL type.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Text(String),
    Uuid(u128),
    Inet(IpAddr),
    Bool(bool),
    Int(i32),
    Double(f64),
    Texts(Vec<String>),
    Map(Vec<(String, String)>),
}

type SystemRow = BTreeMap<&'static str, Cell>;

/// What the stub cluster knows about itself.
pub(super) struct Cluster {
    addresses: Vec<SocketAddr>,
    /// Data centre and rack of the first nodes.
    places: Vec<(String, String)>,
    /// Keyspaces made so far, with their replication factor.
    keyspaces: BTreeMap<String, u32>,
    pub(super) tables: Vec<Table>,
}

/// Columns in the order in which `*` gives them.
fn columns_of(table: &str) -> Option<&'static [&'static str]> {
    Some(match table {
        "system.local" => &[
            "key",
            "bootstrapped",
            "broadcast_address",
            "broadcast_port",
            "cluster_name",
            "cql_version",
            "data_center",
            "host_id",
            "listen_address",
            "listen_port",
            "native_protocol_version",
            "partitioner",
            "rack",
            "release_version",
            "rpc_address",
            "rpc_port",
            "schema_version",
            "tokens",
        ],
        "system.peers" => {
            &["peer", "data_center", "host_id", "rack", "release_version", "rpc_address", "schema_version", "tokens"]
        }
        "system.peers_v2" => &[
            "peer",
            "peer_port",
            "data_center",
            "host_id",
            "native_address",
            "native_port",
            "rack",
            "release_version",
            "schema_version",
            "tokens",
        ],
        "system_schema.keyspaces" | "system_virtual_schema.keyspaces" => {
            &["keyspace_name", "durable_writes", "replication"]
        }
        "system_schema.tables" | "system_virtual_schema.tables" => &[
            "keyspace_name",
            "table_name",
            "bloom_filter_fp_chance",
            "caching",
            "comment",
            "compaction",
            "compression",
            "crc_check_chance",
            "dclocal_read_repair_chance",
            "default_time_to_live",
            "extensions",
            "flags",
            "gc_grace_seconds",
            "id",
            "max_index_interval",
            "memtable_flush_period_in_ms",
            "min_index_interval",
            "read_repair_chance",
            "speculative_retry",
        ],
        "system_schema.columns" | "system_virtual_schema.columns" => {
            &["keyspace_name", "table_name", "column_name", "clustering_order", "kind", "position", "type"]
        }
        "system_schema.types" => &["keyspace_name", "type_name", "field_names", "field_types"],
        "system_schema.views" => &["keyspace_name", "view_name", "base_table_name"],
        "system_schema.indexes" => &["keyspace_name", "table_name", "index_name", "kind", "options"],
        "system_schema.functions" => &["keyspace_name", "function_name", "argument_types"],
        "system_schema.aggregates" => &["keyspace_name", "aggregate_name", "argument_types"],
        "system_schema.triggers" => &["keyspace_name", "table_name", "trigger_name"],
        _ => return None,
    })
}

/// Types by name of the column: no two tables here use one name for two types.
fn column_type(column: &str) -> ColumnType {
    use NativeType as Native;
    let native = |native| ColumnType::Native(native);
    let text = || Box::new(native(Native::Text));
    match column {
        "host_id" | "schema_version" | "id" => native(Native::Uuid),
        "rpc_address" | "broadcast_address" | "listen_address" | "peer" | "native_address" => native(Native::Inet),
        "durable_writes" => native(Native::Boolean),
        "bloom_filter_fp_chance" | "crc_check_chance" | "dclocal_read_repair_chance" | "read_repair_chance" => {
            native(Native::Double)
        }
        "position"
        | "default_time_to_live"
        | "gc_grace_seconds"
        | "max_index_interval"
        | "min_index_interval"
        | "memtable_flush_period_in_ms"
        | "rpc_port"
        | "broadcast_port"
        | "listen_port"
        | "native_port"
        | "peer_port" => native(Native::Int),
        "tokens" | "flags" => ColumnType::Set(text()),
        "field_names" | "field_types" | "argument_types" => ColumnType::List(text()),
        "replication" | "caching" | "compaction" | "compression" | "options" => ColumnType::Map(text(), text()),
        "extensions" => ColumnType::Map(text(), Box::new(native(Native::Blob))),
        _ => native(Native::Text),
    }
}

/// The columns that a SELECT requests, and the table with its keyspace.
fn wanted(words: &[Token]) -> Option<(Vec<String>, String)> {
    let (keyspace, name) = statement::table_of(words)?;
    let table = format!("{}.{name}", keyspace.unwrap_or("system"));
    let mut cursor = Cursor(words);
    cursor.accept(&["select"]).then_some(())?;
    let mut columns = Vec::new();
    while !cursor.accept(&["from"]) {
        match cursor.next()? {
            Token::Symbol('*') => columns.extend(columns_of(&table)?.iter().map(|column| (*column).to_owned())),
            Token::Word(word) => columns.push(word.clone()),
            _ => {}
        }
    }
    Some((columns, table))
}

impl Cluster {
    pub(super) fn new(addresses: Vec<SocketAddr>, places: Vec<(String, String)>, tables: Vec<Table>) -> Self {
        Cluster { addresses, places, keyspaces: BTreeMap::new(), tables }
    }

    /// Index of a table.
    pub(super) fn table(&self, keyspace: &str, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.keyspace == keyspace && table.name == name)
    }

    /// Adds a keyspace with the replication factor in `rest`. `false` if it exists already.
    pub(super) fn add_keyspace(&mut self, name: &str, rest: Cursor<'_>) -> bool {
        if self.keyspaces.contains_key(name) {
            return false;
        }
        // The only numbers in a replication map are factors.
        let number = |token: &Token| match token {
            Token::Text(text) | Token::Word(text) => text.parse().ok(),
            _ => None,
        };
        let factor = rest.0.iter().find_map(number).unwrap_or(1);
        self.keyspaces.insert(name.to_owned(), factor);
        true
    }

    /// Names and types of the columns of a SELECT; `None` if there is no such table.
    pub(super) fn columns(&self, words: &[Token]) -> Option<Vec<(String, ColumnType)>> {
        let (columns, table) = wanted(words)?;
        columns_of(&table)?;
        Some(columns.into_iter().map(|column| (column.clone(), column_type(&column))).collect())
    }

    /// Appends the RESULT to a `SELECT` from a system table, as node `node` gives it.
    ///
    /// # Errors
    /// What Cassandra would say about a table it does not have.
    pub(super) fn select(
        &self,
        node: usize,
        words: &[Token],
        asked: &Asked<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let (_, name) = wanted(words).ok_or("the stub cannot answer this question")?;
        let missing = || format!("table {name} does not exist");
        let columns = self.columns(words).ok_or_else(missing)?;
        let mut rows = self.rows(node, &name).ok_or_else(missing)?;
        for (column, value) in conditions(words, asked) {
            rows.retain(|row| match row.get(column) {
                Some(Cell::Text(text)) => *text == value,
                _ => true,
            });
        }
        let (keyspace, table) = name.split_once('.').unwrap_or(("", &name));
        let head = Head { keyspace, table, columns: &columns, skip_metadata: asked.skip_metadata, paging_state: None };
        head.append(out, rows.len() as u32);
        for row in rows {
            columns.iter().for_each(|(column, _)| append(out, row.get(column.as_str())));
        }
        Ok(())
    }

    fn rows(&self, node: usize, table: &str) -> Option<Vec<SystemRow>> {
        let others = (0..self.addresses.len()).filter(|other| *other != node);
        Some(match table {
            "system.local" => vec![self.node(node)],
            "system.peers" | "system.peers_v2" => others.map(|other| self.node(other)).collect(),
            "system_schema.keyspaces" => self.keyspaces.iter().map(|(name, factor)| keyspace(name, *factor)).collect(),
            "system_schema.tables" => {
                self.tables.iter().enumerate().map(|(number, one)| described(number, one)).collect()
            }
            "system_schema.columns" => self.tables.iter().flat_map(columns).collect(),
            table => columns_of(table).map(|_| Vec::new())?,
        })
    }

    fn node(&self, node: usize) -> SystemRow {
        let address = self.addresses[node];
        let (ip, port) = (Cell::Inet(address.ip()), Cell::Int(i32::from(address.port())));
        // Evenly spaced, as `initial_token` would be chosen by hand.
        let place = self.places.get(node);
        let (datacenter, rack) = place.map_or(("datacenter1", "rack1"), |(datacenter, rack)| (datacenter, rack));
        let token = i64::MIN as i128 + ((1i128 << 64) / self.addresses.len() as i128) * node as i128 + 1;
        BTreeMap::from([
            ("key", text("local")),
            ("bootstrapped", text("COMPLETED")),
            ("cluster_name", text("stub")),
            ("data_center", text(datacenter)),
            ("rack", text(rack)),
            ("release_version", text("5.0.0")),
            ("cql_version", text("3.4.7")),
            ("native_protocol_version", text("5")),
            ("partitioner", text("org.apache.cassandra.dht.Murmur3Partitioner")),
            ("host_id", Cell::Uuid(0x1000_0000_0000_4000_8000_0000_0000_0001 + node as u128)),
            ("schema_version", Cell::Uuid(0x2000_0000_0000_4000_8000_0000_0000_0000)),
            ("rpc_address", ip.clone()),
            ("native_address", ip.clone()),
            ("broadcast_address", ip.clone()),
            ("listen_address", ip.clone()),
            ("peer", ip),
            ("rpc_port", port.clone()),
            ("native_port", port),
            ("listen_port", Cell::Int(7000)),
            ("broadcast_port", Cell::Int(7000)),
            ("peer_port", Cell::Int(7000)),
            ("tokens", Cell::Texts(vec![token.to_string()])),
        ])
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// `column = 'text'` and `column = ?` after WHERE.
fn conditions<'a>(words: &'a [Token], asked: &Asked<'_>) -> Vec<(&'a str, String)> {
    let mut values = asked.values.iter();
    let mut conditions = Vec::new();
    for window in words.windows(3) {
        let [first, equals, last] = window else { continue };
        let value = match last {
            Token::Text(text) => text.clone(),
            Token::Marker => {
                let value = values.next().and_then(|value| value.bytes()).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            }
            _ => continue,
        };
        if let (Token::Word(column), Token::Symbol('=')) = (first, equals) {
            conditions.push((column.as_str(), value));
        }
    }
    conditions
}

fn keyspace(name: &str, factor: u32) -> SystemRow {
    let replication = [
        ("class".to_owned(), "org.apache.cassandra.locator.NetworkTopologyStrategy".to_owned()),
        ("datacenter1".to_owned(), factor.to_string()),
    ];
    BTreeMap::from([
        ("keyspace_name", text(name)),
        ("durable_writes", Cell::Bool(true)),
        ("replication", Cell::Map(replication.to_vec())),
    ])
}

/// Describes a table as created without options.
fn described(number: usize, table: &Table) -> SystemRow {
    let map = |pairs: &[(&str, &str)]| {
        Cell::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    };
    BTreeMap::from([
        ("keyspace_name", text(&table.keyspace)),
        ("table_name", text(&table.name)),
        ("id", Cell::Uuid(0x3000_0000_0000_4000_8000_0000_0000_0000 + number as u128)),
        ("flags", Cell::Texts(vec!["compound".to_owned()])),
        ("comment", text("")),
        ("speculative_retry", text("99p")),
        ("caching", map(&[("keys", "ALL"), ("rows_per_partition", "NONE")])),
        ("compaction", map(&[("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy")])),
        ("compression", map(&[("class", "org.apache.cassandra.io.compress.LZ4Compressor")])),
        ("extensions", Cell::Map(Vec::new())),
        ("bloom_filter_fp_chance", Cell::Double(0.01)),
        ("crc_check_chance", Cell::Double(1.0)),
        ("dclocal_read_repair_chance", Cell::Double(0.0)),
        ("read_repair_chance", Cell::Double(0.0)),
        ("default_time_to_live", Cell::Int(0)),
        ("gc_grace_seconds", Cell::Int(864_000)),
        ("max_index_interval", Cell::Int(2048)),
        ("min_index_interval", Cell::Int(128)),
        ("memtable_flush_period_in_ms", Cell::Int(0)),
    ])
}

fn columns(table: &Table) -> Vec<SystemRow> {
    let column = |(place, (name, kind)): (usize, &(String, ColumnType))| {
        let (role, order, position) = if place < table.partition {
            ("partition_key", "none", place as i32)
        } else if place < table.key() {
            ("clustering", "asc", (place - table.partition) as i32)
        } else {
            ("regular", "none", -1)
        };
        BTreeMap::from([
            ("keyspace_name", text(&table.keyspace)),
            ("table_name", text(&table.name)),
            ("column_name", text(name)),
            ("clustering_order", text(order)),
            ("kind", text(role)),
            ("position", Cell::Int(position)),
            ("type", Cell::Text(kind.to_string())),
        ])
    };
    table.columns.iter().enumerate().map(column).collect()
}

/// Appends a cell as `[bytes]`.
fn append(out: &mut Vec<u8>, cell: Option<&Cell>) {
    match cell {
        None => write::cell(out, None),
        Some(Cell::Text(text)) => bytes(out, text.as_bytes()),
        Some(Cell::Uuid(uuid)) => bytes(out, &uuid.to_be_bytes()),
        Some(Cell::Inet(IpAddr::V4(ip))) => bytes(out, &ip.octets()),
        Some(Cell::Inet(IpAddr::V6(ip))) => bytes(out, &ip.octets()),
        Some(Cell::Bool(value)) => bytes(out, &[u8::from(*value)]),
        Some(Cell::Int(value)) => bytes(out, &value.to_be_bytes()),
        Some(Cell::Double(value)) => bytes(out, &value.to_be_bytes()),
        Some(Cell::Texts(texts)) => {
            let mut inner = Vec::new();
            write::int(&mut inner, texts.len() as u32);
            texts.iter().for_each(|text| bytes(&mut inner, text.as_bytes()));
            bytes(out, &inner);
        }
        Some(Cell::Map(pairs)) => {
            let mut inner = Vec::new();
            write::int(&mut inner, pairs.len() as u32);
            for (key, value) in pairs {
                bytes(&mut inner, key.as_bytes());
                bytes(&mut inner, value.as_bytes());
            }
            bytes(out, &inner);
        }
    }
}
