//! The actual columns of a table, according to the cluster's schema tables.

use brownout_generate::types::{ColumnDefinition, ColumnKind, CqlType, OptionValue, TableDefinition, UserTypes};
use brownout_load::Consistency;

use super::{Control, SchemaError};

/// The name under which the schema stores a name as written: without its double quotes, or else in lower case.
pub fn stored_name(written: &str) -> String {
    let written = written.trim();
    match written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) => inside.replace("\"\"", "\""),
        None => written.to_lowercase(),
    }
}

/// One row of `system_schema.columns`.
struct Column {
    name: String,
    order: String,
    kind: String,
    position: i64,
    type_text: String,
}

impl Control {
    /// Reads a table's columns and types: partition key and clustering columns in the order of the key, then static
    /// and regular columns by name.
    ///
    /// Names are as the schema keeps them.
    ///
    /// # Errors
    /// The table does not exist; it has a type that is not a CQL type; no node answers.
    pub fn table(
        &self,
        keyspace: &str,
        table: &str,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<TableDefinition, SchemaError> {
        let types = self.types(keyspace, interrupt)?;
        let cql = format!(
            "SELECT column_name, clustering_order, kind, position, type FROM system_schema.columns \
             WHERE keyspace_name = '{}' AND table_name = '{}'",
            keyspace.replace('\'', "''"),
            table.replace('\'', "''")
        );
        let rows = self.rows(&cql, Consistency::One, interrupt)?;
        let unreadable = |reason: &str| SchemaError::Unreadable { statement: cql.clone(), reason: reason.to_owned() };
        let mut columns = Vec::new();
        for row in rows {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().ok_or_else(|| unreadable("a row has too few columns"));
            let (name, order, kind, position, type_text) = (next()?, next()?, next()?, next()?, next()?);
            let position = position.parse().map_err(|_| unreadable("a position is no number"))?;
            columns.push(Column { name, order, kind, position, type_text });
        }
        if columns.is_empty() {
            return Err(SchemaError::NoTable { keyspace: keyspace.to_owned(), table: table.to_owned() });
        }
        let rank = |kind: &str| ["partition_key", "clustering"].iter().position(|known| *known == kind).unwrap_or(2);
        columns.sort_by(|a, b| {
            let by_key = (rank(&a.kind), a.position.max(0)).cmp(&(rank(&b.kind), b.position.max(0)));
            by_key.then_with(|| a.name.cmp(&b.name))
        });
        let column = |column: Column| {
            let cql_type = CqlType::parse(&column.type_text, &types).map_err(|source| SchemaError::Type {
                keyspace: keyspace.to_owned(),
                table: table.to_owned(),
                column: column.name.clone(),
                source: Box::new(source),
            })?;
            let kind = match column.kind.as_str() {
                "partition_key" => ColumnKind::PartitionKey,
                "clustering" => ColumnKind::Clustering { descending: column.order.eq_ignore_ascii_case("desc") },
                "static" => ColumnKind::Static,
                _ => ColumnKind::Regular,
            };
            Ok(ColumnDefinition { name: column.name, cql_type, kind })
        };
        let columns = columns.into_iter().map(column).collect::<Result<_, SchemaError>>()?;
        let compression = self.compression(keyspace, table, interrupt)?;
        Ok(TableDefinition {
            keyspace: Some(keyspace.to_owned()),
            name: table.to_owned(),
            columns,
            options: vec![("compression".to_owned(), OptionValue::Map(compression))],
        })
    }

    /// The table's compression options, as the cluster stores them; empty: it is not compressed.
    fn compression(
        &self,
        keyspace: &str,
        table: &str,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<(String, String)>, SchemaError> {
        let cql = format!(
            "SELECT compression FROM system_schema.tables WHERE keyspace_name = '{}' AND table_name = '{}'",
            keyspace.replace('\'', "''"),
            table.replace('\'', "''")
        );
        let rows = self.rows(&cql, Consistency::One, interrupt)?;
        let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        let entry = |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(text.lines().filter_map(entry).collect())
    }

    fn types(&self, keyspace: &str, interrupt: &(dyn Fn() -> bool + Sync)) -> Result<UserTypes, SchemaError> {
        let cql = format!(
            "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = '{}'",
            keyspace.replace('\'', "''")
        );
        let rows = self.rows(&cql, Consistency::One, interrupt)?;
        let lines = |cell: Option<String>| -> Vec<String> {
            cell.unwrap_or_default().split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        let row = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter();
            let name = cells.next().flatten().unwrap_or_default();
            (name, lines(cells.next().flatten()), lines(cells.next().flatten()))
        };
        let rows: Vec<_> = rows.into_iter().map(row).collect();
        UserTypes::from_schema(&rows).map_err(|source| SchemaError::Type {
            keyspace: keyspace.to_owned(),
            table: String::new(),
            column: "a field of a user-defined type".to_owned(),
            source: Box::new(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_the_server_keeps_it() {
        assert_eq!(stored_name("StressCQL"), "stresscql");
        assert_eq!(stored_name("\"StressCQL\""), "StressCQL");
        assert_eq!(stored_name("\"a\"\"b\""), "a\"b");
    }
}
