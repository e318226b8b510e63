//! The system tables that drivers read when they connect.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// A cell, already of its CQL type.
enum Cell {
    Null,
    Text(String),
    Uuid(u128),
    Inet(IpAddr),
    Bool(bool),
    Texts(Vec<String>),
    Map(Vec<(String, String)>),
}

/// What the cluster of stubs knows of itself.
pub(super) struct Cluster {
    pub(super) addresses: Vec<SocketAddr>,
    /// Keyspaces made so far, with their replication factor.
    pub(super) keyspaces: BTreeMap<String, u32>,
}

/// Types by name of the column: no two tables here use one name for two types. Codes as in section 4.2.5.2.
fn column_type(column: &str) -> &'static [u16] {
    const TEXT: u16 = 0x0D;
    match column {
        "host_id" | "schema_version" => &[0x0C],
        "rpc_address" | "broadcast_address" | "listen_address" | "peer" => &[0x10],
        "durable_writes" => &[0x04],
        "position" => &[0x09],
        "tokens" => &[0x22, TEXT],
        "field_names" | "field_types" => &[0x20, TEXT],
        "replication" => &[0x21, TEXT, TEXT],
        _ => &[TEXT],
    }
}

impl Cluster {
    /// The body of the RESULT to a `SELECT` from a system table, as node `node` gives it.
    ///
    /// # Errors
    /// What Cassandra would say about a table it does not have.
    pub(super) fn select(&self, node: usize, text: &str) -> Result<Vec<u8>, String> {
        let lower = text.to_ascii_lowercase();
        let (columns, rest) = lower
            .trim_start()
            .strip_prefix("select")
            .and_then(|text| text.split_once(" from "))
            .ok_or_else(|| format!("the stub cannot answer: {text}"))?;
        let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
        let table = rest.split_whitespace().next().unwrap_or_default();
        let rows = self.rows(node, table).ok_or_else(|| format!("table {table} does not exist"))?;

        let mut out = Vec::new();
        out.extend_from_slice(&crate::wire::kind::ROWS.to_be_bytes());
        out.extend_from_slice(&crate::wire::metadata::GLOBAL_TABLE.to_be_bytes());
        int(&mut out, columns.len());
        let (keyspace, name) = table.split_once('.').unwrap_or(("", table));
        string(&mut out, keyspace);
        string(&mut out, name);
        for column in &columns {
            string(&mut out, column);
            column_type(column).iter().for_each(|code| out.extend_from_slice(&code.to_be_bytes()));
        }
        int(&mut out, rows.len());
        for mut row in rows {
            for column in &columns {
                append(&mut out, row.remove(column).unwrap_or(Cell::Null));
            }
        }
        Ok(out)
    }

    fn rows(&self, node: usize, table: &str) -> Option<Vec<BTreeMap<&'static str, Cell>>> {
        let others = (0..self.addresses.len()).filter(|other| *other != node);
        Some(match table {
            "system.local" => vec![self.node(node)],
            "system.peers" => others.map(|other| self.node(other)).collect(),
            "system_schema.keyspaces" => self.keyspaces.iter().map(|(name, factor)| keyspace(name, *factor)).collect(),
            "system_schema.tables" | "system_schema.columns" | "system_schema.types" | "system_schema.views" => vec![],
            _ => return None,
        })
    }

    fn node(&self, node: usize) -> BTreeMap<&'static str, Cell> {
        let ip = self.addresses[node].ip();
        // Evenly spaced, as `initial_token` would be chosen by hand.
        let token = i64::MIN as i128 + ((1i128 << 64) / self.addresses.len() as i128) * node as i128 + 1;
        let text = |text: &str| Cell::Text(text.to_owned());
        BTreeMap::from([
            ("key", text("local")),
            ("cluster_name", text("stub")),
            ("data_center", text("datacenter1")),
            ("rack", text("rack1")),
            ("release_version", text("5.0.0")),
            ("cql_version", text("3.4.7")),
            ("partitioner", text("org.apache.cassandra.dht.Murmur3Partitioner")),
            ("host_id", Cell::Uuid(0x1000_0000_0000_4000_8000_0000_0000_0001 + node as u128)),
            ("schema_version", Cell::Uuid(0x2000_0000_0000_4000_8000_0000_0000_0000)),
            ("rpc_address", Cell::Inet(ip)),
            ("broadcast_address", Cell::Inet(ip)),
            ("listen_address", Cell::Inet(ip)),
            ("peer", Cell::Inet(ip)),
            ("tokens", Cell::Texts(vec![token.to_string()])),
        ])
    }
}

fn keyspace(name: &str, factor: u32) -> BTreeMap<&'static str, Cell> {
    let replication = [
        ("class".to_owned(), "org.apache.cassandra.locator.NetworkTopologyStrategy".to_owned()),
        ("datacenter1".to_owned(), factor.to_string()),
    ];
    BTreeMap::from([
        ("keyspace_name", Cell::Text(name.to_owned())),
        ("durable_writes", Cell::Bool(true)),
        ("replication", Cell::Map(replication.to_vec())),
    ])
}

fn int(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u32).to_be_bytes());
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a cell as `[bytes]`.
fn append(out: &mut Vec<u8>, cell: Cell) {
    let bytes = |out: &mut Vec<u8>, bytes: &[u8]| {
        int(out, bytes.len());
        out.extend_from_slice(bytes);
    };
    match cell {
        Cell::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Cell::Text(text) => bytes(out, text.as_bytes()),
        Cell::Uuid(uuid) => bytes(out, &uuid.to_be_bytes()),
        Cell::Inet(IpAddr::V4(ip)) => bytes(out, &ip.octets()),
        Cell::Inet(IpAddr::V6(ip)) => bytes(out, &ip.octets()),
        Cell::Bool(value) => bytes(out, &[u8::from(value)]),
        Cell::Texts(texts) => {
            let mut inner = Vec::new();
            int(&mut inner, texts.len());
            texts.iter().for_each(|text| bytes(&mut inner, text.as_bytes()));
            bytes(out, &inner);
        }
        Cell::Map(pairs) => {
            let mut inner = Vec::new();
            int(&mut inner, pairs.len());
            for (key, value) in pairs {
                bytes(&mut inner, key.as_bytes());
                bytes(&mut inner, value.as_bytes());
            }
            bytes(out, &inner);
        }
    }
}
