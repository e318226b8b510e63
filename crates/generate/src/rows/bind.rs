//! The values that a query binds.

use brownout_base::random::derive;

use super::{PartitionGenerator, PartitionLayout, RowError, cells::Cells, roll::Rolls};

/// `fields:` of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fields {
    /// All variables from one row.
    SameRow,
    /// As many rows as there are variables are sampled; each variable is of any of them. Key columns are of the partition.
    #[default]
    MultiRow,
}

/// Which cells a statement binds, by the names of its variables.
#[derive(Debug, Clone)]
pub struct Binding {
    indexes: Vec<usize>,
    fields: Fields,
    key_columns: usize,
    /// The sampled rows, each with the statement's variables as its cells.
    sampled: Cells,
    bound: Cells,
    seed: u64,
}

impl Binding {
    /// For a statement with these variables. `seed`: where the choice among sampled rows starts.
    ///
    /// # Errors
    /// A name that is no column of the table.
    pub fn new(layout: &PartitionLayout, variables: &[&str], fields: Fields, seed: u64) -> Result<Self, RowError> {
        let indexes = variables
            .iter()
            .map(|name| {
                layout.index_of(name).ok_or_else(|| RowError::NoSuchColumn {
                    column: (*name).to_owned(),
                    nearest: layout
                        .columns
                        .iter()
                        .map(|column| (strsim::damerau_levenshtein(&column.name, name), &column.name))
                        .filter(|(distance, _)| *distance <= 2)
                        .min()
                        .map(|(_, name)| name.clone()),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Binding {
            indexes,
            fields,
            key_columns: layout.key_columns(),
            sampled: Cells::new(),
            bound: Cells::new(),
            seed,
        })
    }

    /// How many rows a visit should be asked for ([`PartitionGenerator::read`]).
    pub fn rows(&self) -> usize {
        match self.fields {
            Fields::SameRow => 1,
            Fields::MultiRow => self.indexes.len().max(1),
        }
    }

    /// Where in a row the statement's variables are.
    pub fn indexes(&self) -> &[usize] {
        &self.indexes
    }

    /// The values for the visit that `partition` has begun, the same for the same visit. `None`: it has no row.
    pub fn bind(&mut self, partition: &mut PartitionGenerator) -> Option<&Cells> {
        let variables = self.indexes.len();
        self.bound.truncate(0);
        self.sampled.truncate(0);
        let mut rows = 0;
        while rows < self.rows()
            && let Some(row) = partition.next_row()
        {
            self.indexes.iter().for_each(|index| self.sampled.push_cell(row.get(*index)));
            rows += 1;
        }
        if rows == 0 {
            return None;
        }
        let mut rolls = Rolls::new(derive(self.seed, partition.visit().chance));
        for (place, index) in self.indexes.iter().enumerate() {
            let row = if *index < self.key_columns || rows == 1 { 0 } else { rolls.below(rows) };
            self.bound.push_cell(self.sampled.get(row * variables + place));
        }
        Some(&self.bound)
    }
}
