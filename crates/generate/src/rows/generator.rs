//! Partitions, visit by visit and row by row.

use std::sync::Arc;

use brownout_base::random::{Random, derive};

use super::{
    Column, PartitionLayout, RowError, Visit,
    cells::Cells,
    compat::{Walk, Wanted},
    distinct::{DistinctWalk, is_populated},
    java_value::fold,
    roll::Rolls,
    settings::{self, RowSettings},
};
use crate::{
    distribution::Ratio,
    java,
    seeds::Seed,
    types::ColumnKind,
    values::{ColumnGenerator, Flavour},
};

/// Makes the rows of partitions. One per thread and operation: it keeps its place between calls, and its buffers.
///
/// A visit begins with [`Self::write`], [`Self::read`] or [`Self::validate`]; [`Self::next_row`] gives its rows. What
/// [`Self::visit`] tells then is enough to begin the same visit again, here or in another generator of the same settings.
#[derive(Debug, Clone)]
pub struct PartitionGenerator {
    layout: Arc<PartitionLayout>,
    key: Vec<ColumnGenerator>,
    pub(super) clustering: Vec<ColumnGenerator>,
    values: Vec<ColumnGenerator>,
    is_static: Vec<bool>,
    /// Whether partitions of different seeds may have one key.
    keys_repeat: bool,
    select: Ratio,
    populated: Ratio,
    share_selected: f64,
    share_populated: f64,
    cells: Cells,
    routing: Vec<u8>,
    /// What the rows are made from: the key's fold (compat) or hash (v2).
    pub(super) base: i64,
    pub(super) walk: Steps,
    visit: Visit,
    /// Gives each visit its chance.
    chances: Random,
}

#[derive(Debug, Clone)]
pub(super) enum Steps {
    /// One row: whether it is still to come, and what marks its writer leaves.
    Single {
        left: bool,
        marks: Option<(bool, bool)>,
    },
    Compat(Box<Walk>),
    Distinct(Box<DistinctWalk>),
}

/// The bounds of a range of rows of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// How many clustering columns bound it; 0: it is the whole partition.
    pub depth: usize,
    /// The smallest values of these columns, all rows with them included.
    pub lower: Cells,
    /// The largest, likewise.
    pub upper: Cells,
}

impl PartitionGenerator {
    /// For the table of this layout.
    ///
    /// # Errors
    /// A column that cannot be generated; clustering columns with too few values for their distribution, or with none.
    pub fn new(layout: &Arc<PartitionLayout>, wanted: &RowSettings) -> Result<Self, RowError> {
        if layout.key().is_empty() {
            return Err(RowError::NoKey);
        }
        let generators = |columns: &[Column]| {
            columns
                .iter()
                .map(|column| ColumnGenerator::new(&column.spelled, &column.cql_type, &column.settings))
                .collect::<Result<Vec<_>, _>>()
        };
        settings::check_key(layout)?;
        let (key, clustering) = (generators(layout.key())?, generators(layout.clustering())?);
        settings::check_clustering(layout, &clustering)?;
        // Every visit begins with rolls of its own.
        let rolls = Rolls::new(0);
        let walk = match (clustering.is_empty(), layout.flavour) {
            (true, _) => Steps::Single { left: false, marks: None },
            (false, Flavour::Compat) => Steps::Compat(Box::new(Walk::new(&clustering, wanted.order, rolls))),
            (false, Flavour::V2) => {
                let descending = layout
                    .clustering()
                    .iter()
                    .map(|column| matches!(column.kind, ColumnKind::Clustering { descending: true }))
                    .collect();
                Steps::Distinct(Box::new(DistinctWalk::new(&clustering, descending, wanted.order, rolls)))
            }
        };
        Ok(PartitionGenerator {
            values: generators(layout.values())?,
            is_static: layout.values().iter().map(|column| column.kind == ColumnKind::Static).collect(),
            keys_repeat: layout.key().iter().any(|column| column.settings.population.is_some()),
            layout: Arc::clone(layout),
            key,
            clustering,
            select: wanted.select.build(0),
            populated: wanted.populated.build(0),
            share_selected: 1.0,
            share_populated: 1.0,
            cells: Cells::new(),
            routing: Vec::new(),
            base: 0,
            walk,
            visit: Visit::default(),
            chances: Random::new(wanted.seed),
        })
    }

    /// The table's columns.
    pub fn layout(&self) -> &Arc<PartitionLayout> {
        &self.layout
    }

    /// The fewest and the most rows of a partition, as cassandra-stress tells them: products of the clustering
    /// distributions' extremes; or as the partition sizes have them.
    pub fn row_counts(&self) -> (f64, f64) {
        match (&self.walk, &self.layout.sizes) {
            (Steps::Single { .. }, _) => (1.0, 1.0),
            (Steps::Compat(walk), _) => walk.rows(),
            (_, Some(sizes)) => (sizes.rows_at(0.0) as f64, sizes.most_rows() as f64),
            (_, None) => self.clustering.iter().fold((1.0, 1.0), |(least, most), column| {
                let bound = |count: i64| count.max(1) as f64;
                (least * bound(column.cluster().min()), most * bound(column.cluster().max()))
            }),
        }
    }

    /// Make the key of the partition of this seed; the cells hold nothing else then. Beginning a visit does it by itself.
    pub fn set_key(&mut self, seed: i64) -> &Cells {
        self.cells.truncate(0);
        for column in &mut self.key {
            self.cells.push(|out| column.append_key(seed, out));
        }
        self.routing.clear();
        if let [_] = self.key[..] {
            if let Some(bytes) = self.cells.get(0).value() {
                self.routing.extend_from_slice(bytes);
            }
        } else {
            // Cassandra's CompositeType: of each part a length in two bytes, the bytes, and a zero.
            for cell in self.cells.iter() {
                let bytes = cell.value().unwrap_or_default();
                self.routing.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
                self.routing.extend_from_slice(bytes);
                self.routing.push(0);
            }
        }
        self.base = match self.layout.flavour {
            Flavour::Compat => self
                .key
                .iter()
                .zip(self.cells.iter())
                .fold(0, |seed, (column, cell)| fold(seed, cell.value().unwrap_or_default(), column.cql_type())),
            Flavour::V2 => java::hash3_x64_128(&self.routing, 0).0,
        };
        &self.cells
    }

    /// The serialized partition key, as the token is computed from it.
    pub fn routing_key(&self) -> &[u8] {
        &self.routing
    }

    /// The token of the partition key under Cassandra's Murmur3Partitioner.
    pub fn token(&self) -> i64 {
        java::token(&self.routing)
    }

    /// Begin the next visit of a writer to the partition of this seed. False: there is nothing left to write, and
    /// another seed is to be taken. Either way [`Self::marks`] tells afterwards what to report to the seed manager.
    pub fn write(&mut self, seed: &mut Seed) -> bool {
        self.visit = Visit::new(seed, self.chances.word());
        self.begin_write(seed)
    }

    /// Begin a visit of a writer again.
    pub fn write_again(&mut self, visit: &Visit) -> bool {
        self.visit = *visit;
        self.begin_write(&mut visit.seed())
    }

    fn begin_write(&mut self, seed: &mut Seed) -> bool {
        self.set_key(seed.value());
        self.draw_ratios(true);
        let base = self.base;
        let chance = self.share_selected;
        match &mut self.walk {
            Steps::Single { left, marks } => {
                (*left, *marks) = (true, Some((true, true)));
                true
            }
            Steps::Compat(walk) => {
                walk.rolls.begin(self.visit.chance);
                let Some(position) = walk.write(&mut self.clustering, base, seed, chance) else { return false };
                self.visit.position = position;
                true
            }
            Steps::Distinct(walk) => {
                let rows = sized(&self.layout, self.keys_repeat, seed.value(), base);
                walk.partition(base as u64, rows, chance);
                if seed.visits() <= 1 && seed.position() == 0 {
                    // All at once: how many there are shows itself.
                    return walk.write(&mut self.clustering, 0, None, None);
                }
                let total = walk.total(&mut self.clustering);
                let count = total.div_ceil(seed.visits().max(1) as u64).min(i32::MAX as u64);
                // A part in which no row is chosen is passed over.
                loop {
                    let position = seed.move_forwards(count as i32).max(0) as u64;
                    self.visit.position = position as i32;
                    if walk.write(&mut self.clustering, position, Some(count), Some(total)) {
                        return true;
                    }
                    if position.saturating_add(count) >= total {
                        return false;
                    }
                }
            }
        }
    }

    /// Begin a visit of a reader to the partition of this seed, who wants `target` of its rows. False: there are none.
    pub fn read(&mut self, seed: &Seed, target: usize) -> bool {
        self.visit = Visit::new(seed, self.chances.word());
        self.begin_read(seed, Wanted::Rows(target))
    }

    /// Begin a visit of a reader again.
    pub fn read_again(&mut self, visit: &Visit, target: usize) -> bool {
        self.visit = *visit;
        self.begin_read(&visit.seed(), Wanted::Rows(target))
    }

    pub(super) fn begin_read(&mut self, seed: &Seed, wanted: Wanted) -> bool {
        let target = match wanted {
            Wanted::Rows(target) => target,
            Wanted::Chance(_) => 1,
        };
        self.set_key(seed.value());
        self.draw_ratios(false);
        let base = self.base;
        let select = self.share_selected;
        match &mut self.walk {
            Steps::Single { left, marks } => {
                (*left, *marks) = (target > 0, None);
                *left
            }
            Steps::Compat(walk) => {
                walk.rolls.begin(self.visit.chance);
                walk.read(&mut self.clustering, base, seed, wanted)
            }
            Steps::Distinct(walk) => {
                let rows = sized(&self.layout, self.keys_repeat, seed.value(), base);
                walk.partition(base as u64, rows, select);
                walk.rolls.begin(self.visit.chance);
                let written = seed.taken().map(|taken| taken.max(0) as u64);
                walk.read(&mut self.clustering, target as u64, written)
            }
        }
    }

    /// Begin at all rows of the partition of this seed that lie in a random range, `depth` clustering columns deep (0: all
    /// rows), in sorted order: what a `SELECT` with these bounds must return. `None`: v2 knows of no row there, or the
    /// partition is being written in parts and not yet complete; take another seed.
    pub fn validate(&mut self, seed: &Seed, depth: usize) -> Option<Range> {
        self.visit = Visit::new(seed, self.chances.word());
        self.begin_range(seed, depth)
    }

    /// Begin at a range again, or at one that follows from another visit to the partition.
    pub fn validate_again(&mut self, visit: &Visit, depth: usize) -> Option<Range> {
        self.visit = *visit;
        self.begin_range(&visit.seed(), depth)
    }

    fn begin_range(&mut self, seed: &Seed, depth: usize) -> Option<Range> {
        self.set_key(seed.value());
        self.draw_ratios(false);
        let base = self.base;
        let select = self.share_selected;
        let mut range = Range { depth, lower: Cells::new(), upper: Cells::new() };
        match &mut self.walk {
            Steps::Single { left, marks } => {
                (*left, *marks) = (true, None);
                range.depth = 0;
            }
            Steps::Compat(walk) => {
                range.depth = depth.min(self.clustering.len());
                let mut rolls = Rolls::new(self.visit.chance);
                let pick = |count| rolls.below(count);
                let bounds = [&mut range.lower, &mut range.upper];
                walk.bounds(&mut self.clustering, base, seed, range.depth, pick, bounds);
                // (cassandra-stress expects all columns here at depth 0, and none deeper, whatever was written.)
            }
            Steps::Distinct(walk) => {
                let rows = sized(&self.layout, self.keys_repeat, seed.value(), base);
                walk.partition(base as u64, rows, select);
                if let Some(taken) = seed.taken()
                    && (taken.max(0) as u64) < walk.total(&mut self.clustering)
                {
                    return None;
                }
                walk.rolls.begin(self.visit.chance);
                let bounds = [&mut range.lower, &mut range.upper];
                range.depth = walk.bounds(&mut self.clustering, depth, bounds)?;
            }
        }
        Some(range)
    }

    /// The next row of the visit: its cells in the layout's order. They hold until the next call.
    pub fn next_row(&mut self) -> Option<&Cells> {
        self.cells.truncate(self.key.len());
        let row = match &mut self.walk {
            Steps::Single { left, .. } => {
                if !std::mem::take(left) {
                    return None;
                }
                match self.layout.flavour {
                    Flavour::Compat => self.base,
                    Flavour::V2 => derive(0, self.base as u64) as i64,
                }
            }
            Steps::Compat(walk) => {
                if !walk.has_next() {
                    return None;
                }
                let seed = walk.row(&self.clustering, &mut self.cells);
                walk.advance(&mut self.clustering);
                seed
            }
            Steps::Distinct(walk) => {
                if !walk.has_row() {
                    return None;
                }
                let seed = walk.row(&mut self.clustering, &mut self.cells);
                walk.advance(&mut self.clustering);
                seed as i64
            }
        };
        self.value_cells(row);
        Some(&self.cells)
    }

    /// Pass over the next row of the visit, without making its values. False: there is none.
    pub fn skip_row(&mut self) -> bool {
        match &mut self.walk {
            Steps::Single { left, .. } => std::mem::take(left),
            Steps::Compat(walk) => {
                let is_there = walk.has_next();
                if is_there {
                    walk.advance(&mut self.clustering);
                }
                is_there
            }
            Steps::Distinct(walk) => {
                let is_there = walk.has_row();
                if is_there {
                    walk.advance(&mut self.clustering);
                }
                is_there
            }
        }
    }

    /// The visit that was begun last.
    pub fn visit(&self) -> Visit {
        self.visit
    }

    /// The row that [`Self::next_row`] gave last.
    pub fn row(&self) -> &Cells {
        &self.cells
    }

    /// What a visit of a writer that has ended had of the partition: its first rows, its last. For
    /// [`crate::seeds::SeedManager::visited`]. `None` while rows are left, and for readers.
    pub fn marks(&self) -> Option<(bool, bool)> {
        match &self.walk {
            Steps::Single { left, marks } => marks.filter(|_| !left),
            Steps::Compat(walk) => walk.marks.filter(|_| !walk.has_next()),
            Steps::Distinct(walk) => walk.marks.filter(|_| !walk.has_row()),
        }
    }

    /// The static and regular cells of the row with this seed.
    fn value_cells(&mut self, row: i64) {
        let total = self.values.len() as f64;
        for (place, column) in self.values.iter_mut().enumerate() {
            match self.layout.flavour {
                Flavour::Compat if (place as f64 + 1.0) / total > self.share_populated => self.cells.push_null(),
                Flavour::V2 if !self.is_static[place] && !is_populated(row as u64, place, self.share_populated) => {
                    self.cells.push_unset();
                }
                Flavour::V2 if self.is_static[place] => {
                    // One value for the whole partition.
                    self.cells.push(|out| column.append(self.base, out));
                }
                _ => self.cells.push(|out| column.append(row, out)),
            }
        }
    }

    /// In v2 the ratios are the partition's, so that readers know what writers did; in compat they are the visit's.
    fn draw_ratios(&mut self, is_write: bool) {
        let start = match self.layout.flavour {
            Flavour::V2 => self.base as u64,
            Flavour::Compat => self.visit.chance,
        };
        self.select.set_seed(derive(1, start) as i64);
        self.populated.set_seed(derive(2, start) as i64);
        self.share_populated = self.populated.next();
        // cassandra-stress draws this one for writers only.
        if is_write || self.layout.flavour == Flavour::V2 {
            self.share_selected = self.select.next();
        }
    }
}

/// The rows that the partition sizes give a partition.
fn sized(layout: &PartitionLayout, keys_repeat: bool, seed: i64, base: i64) -> Option<u64> {
    // Where seeds share keys, the size is the key's.
    layout.sizes.as_ref().map(|sizes| sizes.rows(if keys_repeat { base } else { seed }))
}
