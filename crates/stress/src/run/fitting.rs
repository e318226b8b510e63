//! Fits rows to a target: the ratio that a compressor reaches, the sizes of partitions.

use brownout_generate::{
    compress::{Compression, calibrate, row_size},
    rows::PartitionLayout,
    sizes::PartitionSizes,
    types::TableDefinition,
};

use super::RunError;
use crate::profile::Profile;

/// The layout with the requirements of `compress:` and `partition_sizes:`, under the table's compression.
///
/// # Errors
/// A target that cannot be met.
pub fn fitted(
    mut layout: PartitionLayout,
    profile: &Profile,
    table: &TableDefinition,
) -> Result<PartitionLayout, RunError> {
    if profile.compress.is_some() || profile.columns.iter().any(|column| column.compress.is_some()) {
        let Some(compression) = Compression::from_table(table)? else {
            return Err(RunError::Unfit {
                what: format!("{}: compress: has no meaning, since the table is not compressed", profile.file),
                remedy: "define the table with a compression, or leave compress: out",
            });
        };
        calibrate(&mut layout, compression, profile.compress)?;
    }
    if let Some(target) = &profile.partition_sizes {
        layout.sizes = Some(PartitionSizes::new(target, row_size(&layout)?)?);
    }
    Ok(layout)
}
