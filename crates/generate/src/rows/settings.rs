//! How rows are visited, and which tables they can be made for.

use super::{PartitionLayout, RowError};
use crate::{
    distribution::{RatioSpec, Spec},
    values::{ColumnGenerator, Flavour},
};

/// In which order the values of a clustering column come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// compat: as they are generated; v2: as [`Order::Shuffled`].
    #[default]
    Arbitrary,
    /// compat: in Java's order of the type; v2: in the table's clustering order.
    Sorted,
    /// compat: in another order at each run, in cassandra-stress; in one that the run's seed decides here. v2: in one that
    /// the partition decides.
    Shuffled,
}

/// How rows are visited.
#[derive(Debug, Clone)]
pub struct RowSettings {
    /// `-pop contents=`.
    pub order: Order,
    /// `insert: select`: the share of a partition's rows that a writer writes. compat: rolled at each visit; v2: the same
    /// rows at each visit, and no others are read.
    pub select: RatioSpec,
    /// `insert: row-population`: the share of the static and regular columns that have a value. compat: the last columns
    /// are null; v2: columns chosen for each row are not set.
    pub populated: RatioSpec,
    /// Where chance that is no part of the data starts: which rows readers pick, which rows compat's writers do. Every
    /// visit has a number of its own that follows from it.
    pub seed: u64,
}

impl RowSettings {
    /// All rows and all columns, in the default order.
    pub fn new(seed: u64) -> Self {
        let all = RatioSpec { spec: Spec::Fixed(1), divisor: 1 };
        RowSettings { order: Order::Arbitrary, select: all.clone(), populated: all, seed }
    }
}

pub(super) fn check_key(layout: &PartitionLayout) -> Result<(), RowError> {
    let name = |flavour| match flavour {
        Flavour::Compat => "compat",
        Flavour::V2 => "v2",
    };
    for column in layout.key().iter().chain(layout.clustering()) {
        if column.settings.flavour != layout.flavour {
            return Err(RowError::MixedKey {
                column: column.name.clone(),
                column_flavour: name(column.settings.flavour),
                table_flavour: name(layout.flavour),
            });
        }
    }
    match (&layout.sizes, layout.flavour) {
        (Some(_), Flavour::Compat) => Err(RowError::SizesNeedV2),
        (Some(_), Flavour::V2) if layout.clustering().is_empty() => Err(RowError::SizesNeedClustering),
        _ => Ok(()),
    }
}

pub(super) fn check_clustering(layout: &PartitionLayout, clustering: &[ColumnGenerator]) -> Result<(), RowError> {
    for (level, (column, generator)) in layout.clustering().iter().zip(clustering).enumerate() {
        let cluster = generator.cluster();
        if layout.flavour == Flavour::Compat && cluster.average() < 1 {
            return Err(RowError::NoRows {
                column: column.name.clone(),
                average: cluster.average(),
                cluster: column.settings.cluster.as_ref().map(ToString::to_string).unwrap_or_default(),
            });
        }
        let asked = match &layout.sizes {
            Some(sizes) if level == 0 => sizes.most_rows(),
            _ => cluster.max().max(1) as u64,
        };
        // Values that are not counted through differ only by chance: so many that a partition hardly has two alike.
        let needed = if generator.counts_through() { asked } else { asked.saturating_mul(asked).saturating_mul(1000) };
        if layout.flavour == Flavour::V2 && asked > 1 && generator.domain() < needed {
            return Err(RowError::TooFewValues {
                column: column.name.clone(),
                cql_type: column.cql_type.to_string(),
                values: generator.domain(),
                asked,
            });
        }
    }
    Ok(())
}
