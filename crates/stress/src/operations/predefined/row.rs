//! Keys and cells of the predefined tables.

use brownout_generate::{
    distribution::Spec,
    java::fold_bytes,
    types::CqlType,
    values::{ColumnGenerator, ColumnSettings, Flavour, Origin, ValueError},
};

use crate::operations::Bound;

/// Generates keys and rows. A row is a function of its key, so the key suffices to check it.
#[derive(Debug, Clone)]
pub struct PredefinedRow {
    key: ColumnGenerator,
    columns: Vec<ColumnGenerator>,
}

impl PredefinedRow {
    /// Keys of `key_size` bytes, and columns with these names, each of a size that `size` draws.
    ///
    /// # Errors
    /// A size below 0.
    pub fn new(key_size: u64, columns: &[String], size: &Spec, flavour: Flavour) -> Result<Self, ValueError> {
        let settings = |size: Spec, origin| ColumnSettings { size: Some(size), flavour, origin, ..Default::default() };
        let key_size = Spec::Fixed(i64::try_from(key_size).unwrap_or(i64::MAX));
        let key = ColumnGenerator::new("key", &CqlType::Blob, &settings(key_size, Origin::PredefinedKey))?;
        let column =
            |name: &String| ColumnGenerator::new(name, &CqlType::Blob, &settings(size.clone(), Origin::Predefined));
        Ok(PredefinedRow { key, columns: columns.iter().map(column).collect::<Result<_, _>>()? })
    }

    /// Appends the key of a partition.
    #[inline]
    pub fn key(&mut self, seed: i64, out: &mut Vec<u8>) {
        self.key.append_key(seed, out);
    }

    /// Adds the cells of the row of this key, in the order of the columns.
    #[inline]
    pub fn cells(&mut self, key: &[u8], bound: &mut Bound) {
        let seed = fold_bytes(0, key);
        for column in &mut self.columns {
            bound.value_with(|out| column.append(seed, out));
        }
    }

    /// Names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(ColumnGenerator::name)
    }
}
