//! A profile's part of the block of settings.

use super::{Fields, Profile};

/// Before the profiles of a `user` command.
pub const HEADING: &str =
    "\n******************** Profile ********************\n******************** Profile(s) ********************\n";

impl Profile {
    /// What cassandra-stress prints of a profile (`StressProfile.printSettings`), without its last line, which requires
    /// knowledge of the table: [`batches`].
    pub fn block(&self) -> String {
        let cql = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
        let extra = match &self.extra_definitions[..] {
            [] => "null".to_owned(),
            list => format!("[{}]", list.join(", ")),
        };
        let mut text = format!(
            "  Keyspace Name: {}\n  Keyspace CQL: \n***\n{}***\n\n  Table Name: {}\n  Table CQL: \n***\n{}***\n\n  Extra \
             Schema Definitions: {extra}\n  Generator Configs:\n",
            self.keyspace,
            cql(&self.keyspace_definition),
            self.table,
            cql(&self.table_definition)
        );
        let mut names: Vec<(String, &super::ColumnSpec)> =
            self.columns.iter().map(|column| (column.name.to_lowercase(), column)).collect();
        in_java_order(&mut names);
        for (name, column) in names {
            let part = |what: &str, spec: &Option<brownout_generate::distribution::Spec>| {
                spec.as_ref().map(|spec| format!("{what}: {};", spec.settings())).unwrap_or_default()
            };
            text.push_str(&format!(
                "    {name}: {}{}{}\n",
                part("Clustering", &column.cluster),
                part("Size", &column.size),
                part("Identity", &column.population)
            ));
        }
        text.push_str("  Query Definitions:\n");
        for query in &self.queries {
            let [fields, consistency, serial] = &query.written;
            let level = |name: &str, level: &Option<String>| {
                level.as_ref().map(|level| format!("{name}:{level};")).unwrap_or_default()
            };
            text.push_str(&format!(
                "    {}: CQL:{};Fields:{};{}{}\n",
                query.name,
                query.cql,
                fields.as_deref().unwrap_or("null"),
                level("consistencyLevel", consistency),
                level("serialConsistencyLevel", serial)
            ));
        }
        text.push_str("  Token Range Queries:\n");
        for query in &self.token_range_queries {
            text.push_str(&format!("    {}: Columns:{};\n", query.name, query.columns));
        }
        if !self.insert.written.is_empty() {
            text.push_str("  Insert Settings:\n");
            for (key, value) in &self.insert.written {
                text.push_str(&format!("    {key}: {value}\n"));
            }
        }
        text
    }
}

/// The last line of a profile's block: how many partitions a visit has, how many rows are written in it, and how many
/// rows the partitions have. All as (least, most); numbers of rows may be fractions where shares are drawn.
pub fn batches(partitions: (i64, i64), rows: (f64, f64), total: (f64, f64)) -> String {
    let whole = |number: f64| brownout_generate::java::fixed(number, 0);
    format!(
        "Generating batches with [{}..{}] partitions and [{}..{}] rows (of [{}..{}] total rows in the partitions)\n",
        partitions.0,
        partitions.1,
        whole(rows.0),
        whole(rows.1),
        whole(total.0),
        whole(total.1)
    )
}

impl std::fmt::Display for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fields::SameRow => "samerow",
            Fields::MultiRow => "multirow",
        })
    }
}

/// The order in which a `java.util.HashMap` iterates over its keys: by the low bits of their spread hash, and keys that
/// share them in the order of insertion.
fn in_java_order<T>(entries: &mut [(String, T)]) {
    // Sixteen at first, doubled at three quarters full.
    let mut capacity = 16;
    while entries.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    let place = |key: &str| {
        let hash =
            key.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit))) as u32;
        (hash ^ (hash >> 16)) as usize & (capacity - 1)
    };
    entries.sort_by_key(|(key, _)| place(key));
}
