//! Compares the rows of a query with those that were written.

use std::sync::Arc;

use brownout_generate::rows::{Binding, Cells, PartitionGenerator, PartitionLayout, Visit};
use brownout_load::{ErrorClass, Meaning, Rows};

use super::expected::{Columns, Expected};
use crate::{operations::complaints::Why, profile::Selection};

/// How it is done: one for each load thread.
pub(super) struct Check {
    selection: Selection,
    layout: Arc<PartitionLayout>,
    /// Clustering columns for which the query gives values: index in the layout, index among its values.
    given: Vec<(usize, usize)>,
    /// It selects a single row, the one that its values come from.
    single: bool,
    columns: Columns,
}

impl Check {
    pub(super) fn new(selection: &Selection, layout: &Arc<PartitionLayout>, binding: &Binding) -> Self {
        let given = |name: &String| {
            let column = layout.index_of(name)?;
            Some((column, binding.indexes().iter().position(|index| *index == column)?))
        };
        let given: Vec<(usize, usize)> = selection.given.iter().filter_map(given).collect();
        let places = match &selection.columns {
            Some(names) => names.iter().map(|name| layout.index_of(name.as_deref()?)).collect(),
            // Only until an answer shows the order: so far it only matters which columns there are.
            None => (0..layout.columns.len()).map(Some).collect(),
        };
        Check {
            single: binding.rows() == 1 && given.len() == layout.clustering_columns(),
            columns: Columns::new(layout, places),
            selection: selection.clone(),
            layout: Arc::clone(layout),
            given,
        }
    }

    /// Only answers show which column is which.
    pub(super) fn needs_names(&self) -> bool {
        self.selection.columns.is_none()
    }

    /// Whether the rows that a query of this visit must return are known: not while the partition is still being
    /// written.
    pub(super) fn is_known(&self, generator: &mut PartitionGenerator, visit: &Visit) -> bool {
        self.single || generator.validate_again(visit, 0).is_some()
    }

    /// Records what the query with these values must return, right after they were bound.
    pub(super) fn expect(
        &self,
        generator: &mut PartitionGenerator,
        visit: &Visit,
        values: &Cells,
        expected: &mut Expected,
    ) {
        expected.clear();
        if self.single {
            // A partition may be large, and its other rows need not be generated.
            expected.add(generator.row(), &self.layout, self.columns.key_columns());
            return;
        }
        generator.validate_again(visit, 0);
        while let Some(row) = generator.next_row() {
            if self.given.iter().all(|(column, value)| row.get(*column).value() == values.get(*value).value()) {
                expected.add(row, &self.layout, self.columns.key_columns());
            }
        }
        expected.sort();
    }

    /// Checks the rows of a page.
    pub(super) fn check(
        &mut self,
        rows: &Rows<'_>,
        expected: &mut Expected,
        told: Option<&mut Option<Why>>,
    ) -> Option<Meaning> {
        if self.needs_names() {
            let Some(columns) = rows.columns() else { return Some(Meaning::failed(ErrorClass::Unexpected)) };
            let places = columns.iter().map(|column| self.layout.index_of(&column.name)).collect();
            self.columns = Columns::new(&self.layout, places);
        }
        if rows.column_count() != self.columns.len() {
            return Some(Meaning::failed(ErrorClass::Unexpected));
        }
        expected.check(rows, &self.layout, &mut self.columns, self.selection.extent, told)
    }
}
