//! Which columns a table's rows have.

use crate::{
    sizes::PartitionSizes,
    types::{ColumnKind, CqlType, TableDefinition},
    values::{ColumnSettings, Flavour},
};

/// A column and how its values are made.
#[derive(Debug, Clone)]
pub struct Column {
    /// The name as the schema has it.
    pub name: String,
    /// The name as the profile spells it, which is what compat values are seeded with.
    pub spelled: String,
    /// The type.
    pub cql_type: CqlType,
    /// What it is to the table.
    pub kind: ColumnKind,
    /// How its values are made.
    pub settings: ColumnSettings,
}

/// The columns of a table, in the order in which rows hold their cells: partition key, clustering columns, then static
/// and regular columns by name.
#[derive(Debug, Clone)]
pub struct PartitionLayout {
    /// All columns in that order.
    pub columns: Vec<Column>,
    /// By which rules rows are made.
    pub flavour: Flavour,
    /// v2: the number of rows of each partition follows these sizes; otherwise the columns' `cluster` distributions.
    pub sizes: Option<PartitionSizes>,
}

impl PartitionLayout {
    /// The columns of a table; `settings` tells how each is made, and how the profile spells its name (`None`: as the
    /// schema does).
    pub fn new(
        table: &TableDefinition,
        flavour: Flavour,
        mut settings: impl FnMut(&str) -> (Option<String>, ColumnSettings),
    ) -> Self {
        let rank = |kind: ColumnKind| match kind {
            ColumnKind::PartitionKey => 0,
            ColumnKind::Clustering { .. } => 1,
            ColumnKind::Static | ColumnKind::Regular => 2,
        };
        let mut columns: Vec<Column> = table
            .columns
            .iter()
            .map(|column| {
                let (spelled, settings) = settings(&column.name);
                Column {
                    name: column.name.clone(),
                    spelled: spelled.unwrap_or_else(|| column.name.clone()),
                    cql_type: column.cql_type.clone(),
                    kind: column.kind,
                    settings,
                }
            })
            .collect();
        columns.sort_by_key(|column| rank(column.kind));
        PartitionLayout { columns, flavour, sizes: None }
    }

    /// How many columns the partition key has; they come first.
    pub fn key_columns(&self) -> usize {
        self.columns.iter().filter(|column| column.kind == ColumnKind::PartitionKey).count()
    }

    /// How many clustering columns there are; they follow the key.
    pub fn clustering_columns(&self) -> usize {
        self.columns.iter().filter(|column| matches!(column.kind, ColumnKind::Clustering { .. })).count()
    }

    /// The index of the column's cell in a row.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The columns of the partition key.
    pub fn key(&self) -> &[Column] {
        &self.columns[..self.key_columns()]
    }

    /// The clustering columns.
    pub fn clustering(&self) -> &[Column] {
        let key = self.key_columns();
        &self.columns[key..key + self.clustering_columns()]
    }

    /// The static and regular columns.
    pub fn values(&self) -> &[Column] {
        &self.columns[self.key_columns() + self.clustering_columns()..]
    }
}
