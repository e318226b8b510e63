//! The statements of a profile's table.

use brownout_generate::types::{ColumnDefinition, ColumnKind, CqlType, TableDefinition};

use super::definition::identifier;

/// How rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertStatement {
    /// The CQL.
    pub cql: String,
    /// Indices of the columns in the table, in the order of the markers.
    pub columns: Vec<usize>,
    /// It increments counters.
    pub counters: bool,
}

fn name(table: &TableDefinition) -> String {
    match &table.keyspace {
        Some(keyspace) => format!("{}.{}", identifier(keyspace), identifier(&table.name)),
        None => identifier(&table.name),
    }
}

fn is_key(column: &ColumnDefinition) -> bool {
    matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering { .. })
}

/// The statement that writes a row.
///
/// With `adds`, as in cassandra-stress: an UPDATE that adds to counters and to lists and sets that are not frozen, so
/// that they grow with every write; an INSERT where all columns are key columns. Otherwise: an INSERT, which leaves a
/// row even if it sets none of the other columns, and replaces collections with what was written last. Counters are
/// always added to; and since an UPDATE that sets only static columns cannot name a row, that case is an INSERT, too.
pub fn insert(table: &TableDefinition, adds: bool) -> InsertStatement {
    let columns = &table.columns;
    let values: Vec<usize> = (0..columns.len()).filter(|place| !is_key(&columns[*place])).collect();
    let keys: Vec<usize> = (0..columns.len()).filter(|place| is_key(&columns[*place])).collect();
    let is_counter = |place: &usize| matches!(columns[*place].cql_type.unfrozen(), CqlType::Counter);
    let counters = values.iter().any(is_counter);
    let only_static = values.iter().all(|place| columns[*place].kind == ColumnKind::Static)
        && columns.iter().any(|column| matches!(column.kind, ColumnKind::Clustering { .. }));
    if values.is_empty() || !counters && (!adds || only_static) {
        let all: Vec<usize> = keys.into_iter().chain(values).collect();
        let names: Vec<String> = all.iter().map(|place| identifier(&columns[*place].name)).collect();
        let markers = vec!["?"; all.len()].join(", ");
        let cql = format!("INSERT INTO {} ({}) VALUES ({markers})", name(table), names.join(", "));
        return InsertStatement { cql, columns: all, counters: false };
    }
    let set = |place: &usize| {
        let column = &columns[*place];
        let own = identifier(&column.name);
        let grows = adds && matches!(column.cql_type, CqlType::List(_) | CqlType::Set(_));
        if grows || is_counter(place) { format!("{own} = {own} + ?") } else { format!("{own} = ?") }
    };
    let sets: Vec<String> = values.iter().map(set).collect();
    let keys_text: Vec<String> =
        keys.iter().map(|place| format!("{} = ?", identifier(&columns[*place].name))).collect();
    let cql = format!("UPDATE {} SET {} WHERE {}", name(table), sets.join(", "), keys_text.join(" AND "));
    InsertStatement { cql, columns: values.into_iter().chain(keys).collect(), counters }
}

fn partition(table: &TableDefinition) -> Vec<String> {
    let of = |column: &&ColumnDefinition| column.kind == ColumnKind::PartitionKey;
    table.columns.iter().filter(of).map(|column| identifier(&column.name)).collect()
}

/// The statement that reads the rows of a partition between two inclusive bounds on `depth` clustering columns; 0: all
/// of them. All columns, in the table's order.
pub fn range(table: &TableDefinition, depth: usize) -> String {
    let all: Vec<String> = table.columns.iter().map(|column| identifier(&column.name)).collect();
    let keys: Vec<String> = partition(table).into_iter().map(|key| format!("{key} = ?")).collect();
    let mut cql = format!("SELECT {} FROM {} WHERE {}", all.join(", "), name(table), keys.join(" AND "));
    if depth > 0 {
        let is_clustering = |column: &&ColumnDefinition| matches!(column.kind, ColumnKind::Clustering { .. });
        let names: Vec<String> =
            table.columns.iter().filter(is_clustering).take(depth).map(|column| identifier(&column.name)).collect();
        let (names, markers) = (names.join(", "), vec!["?"; depth].join(", "));
        cql.push_str(&format!(" AND ({names}) >= ({markers}) AND ({names}) <= ({markers})"));
    }
    cql
}

/// The statement that reads a range of tokens, above the first up to and including the second; the token comes first.
/// `columns` as in the profile, `*` for all.
pub fn token_range(table: &TableDefinition, columns: &str) -> String {
    let token = format!("token({})", partition(table).join(", "));
    let columns = match columns.trim() {
        "*" | "" => table.columns.iter().map(|column| identifier(&column.name)).collect::<Vec<_>>().join(", "),
        named => named.to_owned(),
    };
    format!("SELECT {token}, {columns} FROM {} WHERE {token} > ? AND {token} <= ?", name(table))
}

#[cfg(test)]
mod tests {
    use brownout_generate::types::UserTypes;

    use super::*;

    fn table(cql: &str) -> TableDefinition {
        TableDefinition { keyspace: Some("ks".to_owned()), ..TableDefinition::parse(cql, &UserTypes::new()).unwrap() }
    }

    #[test]
    fn writes_are_cassandra_stress_s_where_that_is_asked_and_overwrite_where_not() {
        let all = table("CREATE TABLE t (k int, c int, v text, l list<int>, \"M\" map<int, int>, PRIMARY KEY (k, c))");
        assert_eq!(insert(&all, true).cql, "UPDATE ks.t SET \"M\" = ?, l = l + ?, v = ? WHERE k = ? AND c = ?");
        let plain = insert(&all, false);
        assert_eq!(plain.cql, "INSERT INTO ks.t (k, c, \"M\", l, v) VALUES (?, ?, ?, ?, ?)");
        assert_eq!(plain.columns, [0, 1, 2, 3, 4]);
        assert_eq!(insert(&all, true).columns, [2, 3, 4, 0, 1]);
        let keys = table("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))");
        assert_eq!(insert(&keys, true).cql, "INSERT INTO ks.t (k, c) VALUES (?, ?)");
        let counters = insert(&table("CREATE TABLE t (k int PRIMARY KEY, n counter)"), false);
        assert_eq!((counters.cql.as_str(), counters.counters), ("UPDATE ks.t SET n = n + ? WHERE k = ?", true));
        let frozen = table("CREATE TABLE t (k int PRIMARY KEY, l frozen<list<int>>)");
        assert_eq!(insert(&frozen, true).cql, "UPDATE ks.t SET l = ? WHERE k = ?");
        let only_static = table("CREATE TABLE t (k int, c int, s int static, PRIMARY KEY (k, c))");
        assert!(insert(&only_static, true).cql.starts_with("INSERT"));
    }

    #[test]
    fn ranges_name_as_many_clustering_columns_as_they_are_deep() {
        let table = table("CREATE TABLE t (a int, b int, c int, d int, v int, PRIMARY KEY ((a, b), c, d))");
        assert_eq!(range(&table, 0), "SELECT a, b, c, d, v FROM ks.t WHERE a = ? AND b = ?");
        assert!(range(&table, 1).ends_with(" AND (c) >= (?) AND (c) <= (?)"));
        assert!(range(&table, 2).ends_with(" AND (c, d) >= (?, ?) AND (c, d) <= (?, ?)"));
        assert_eq!(
            token_range(&table, "v"),
            "SELECT token(a, b), v FROM ks.t WHERE token(a, b) > ? AND token(a, b) <= ?"
        );
        assert!(token_range(&table, "*").contains("token(a, b), a, b, c, d, v FROM"));
    }
}
