//! The rows of a partition in v2.
//!
//! A partition is a tree: under each value of a clustering column the next column has values of its own, and how many is
//! drawn for that place alone. All is hashed from the partition's key, so that any row can be made without those before
//! it, and siblings differ because each has a stratum of the column's values to itself.

use brownout_base::random::{below, derive, fraction};

use super::{cells::Cells, roll::Rolls, settings::Order};
use crate::{permute::permute, values::ColumnGenerator};

/// What is hashed into a partition's or place's number for each use of it, so that no two uses agree.
const SHUFFLE: u64 = scramble_const(1);
const STRATUM: u64 = scramble_const(2);
const COUNT: u64 = scramble_const(3);
const CHOSEN: u64 = scramble_const(4);
const POPULATED: u64 = scramble_const(5);

const fn scramble_const(number: u64) -> u64 {
    number.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where one level stands.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    /// Of the values above.
    hash: u64,
    /// How many siblings there are.
    count: u64,
    /// Which of them is visited, in the order of the visit.
    at: u64,
    /// How many rows the largest sibling has, where that is less than it would have by itself.
    last_rows: Option<u64>,
}

/// What the walk does.
#[derive(Debug, Clone)]
enum Plan {
    /// Rows one after the other, at most so many.
    Forward { left: u64 },
    /// These rows, by number, from the last to the first.
    Picked(Vec<u64>),
    /// Up to the row whose first clustering columns are at these places, all of it.
    UpTo(Vec<u64>),
}

/// The walk through a partition.
#[derive(Debug, Clone)]
pub(super) struct DistinctWalk {
    /// The values that each column can choose from, and whether the table keeps them from large to small.
    domains: Vec<u64>,
    descending: Vec<bool>,
    /// Rows under one value of each column, where that is always the same.
    fixed_below: Vec<Option<u64>>,
    order: Order,
    sorted: bool,
    base: u64,
    /// The number of rows, where partition sizes decide it.
    rows: Option<u64>,
    steps: Vec<Step>,
    plan: Plan,
    has_row: bool,
    select: f64,
    pub(super) marks: Option<(bool, bool)>,
    is_write: bool,
    is_first: bool,
    is_last: bool,
    pub(super) rolls: Rolls,
}

impl DistinctWalk {
    pub(super) fn new(clustering: &[ColumnGenerator], descending: Vec<bool>, order: Order, rolls: Rolls) -> Self {
        let levels = clustering.len();
        let mut fixed_below = vec![Some(1u64); levels];
        for level in (0..levels.saturating_sub(1)).rev() {
            let cluster = clustering[level + 1].cluster();
            let same = cluster.min() == cluster.max();
            fixed_below[level] =
                fixed_below[level + 1].filter(|_| same).map(|rows| rows.saturating_mul(cluster.min().max(1) as u64));
        }
        DistinctWalk {
            domains: clustering.iter().map(ColumnGenerator::domain).collect(),
            descending,
            fixed_below,
            order,
            sorted: false,
            base: 0,
            rows: None,
            steps: vec![Step::default(); levels],
            plan: Plan::Forward { left: 0 },
            has_row: false,
            select: 1.0,
            marks: None,
            is_write: false,
            is_first: false,
            is_last: false,
            rolls,
        }
    }

    /// Choose a partition. `rows`: how many it has, where sizes decide it. `select`: the share of its rows that are ever
    /// written.
    pub(super) fn partition(&mut self, base: u64, rows: Option<u64>, select: f64) {
        self.base = base;
        self.select = select;
        self.marks = None;
        self.has_row = false;
        self.rows = rows;
    }

    /// The rows of the partition.
    pub(super) fn total(&mut self, columns: &mut [ColumnGenerator]) -> u64 {
        match self.rows {
            Some(rows) => rows,
            None => self.rows_under(columns, 0, self.base),
        }
    }

    /// The rows under the values whose hash is `hash`, the next column being that of `level`.
    fn rows_under(&self, columns: &mut [ColumnGenerator], level: usize, hash: u64) -> u64 {
        let Some(below) = self.fixed_below.get(level) else { return 1 };
        let count = self.count(columns, level, hash);
        match below {
            Some(below) => count.saturating_mul(*below),
            None => (0..count).map(|sibling| self.rows_under(columns, level + 1, self.child(hash, sibling))).sum(),
        }
    }

    fn count(&self, columns: &mut [ColumnGenerator], level: usize, hash: u64) -> u64 {
        (columns[level].cluster_count(derive(hash, COUNT)).max(1) as u64).min(self.domains[level])
    }

    /// The siblings of `level` under the values whose hash is `hash`, where all of them together have `rows` rows: how many
    /// there are, and what is left for the largest.
    fn span(&self, columns: &mut [ColumnGenerator], level: usize, hash: u64, rows: Option<u64>) -> (u64, Option<u64>) {
        let Some(rows) = rows else { return (self.count(columns, level, hash), None) };
        // The first column has as many values as it takes.
        let most = if level == 0 { self.domains[0] } else { self.count(columns, level, hash) };
        if let Some(below) = self.fixed_below[level] {
            let count = rows.div_ceil(below).clamp(1, most);
            let left = rows - (count - 1).saturating_mul(below).min(rows);
            return (count, (left < below).then_some(left));
        }
        let (mut count, mut left) = (0, rows);
        loop {
            let under = self.rows_under(columns, level + 1, self.child(hash, count));
            count += 1;
            if under > left {
                return (count, Some(left));
            }
            left -= under;
            if left == 0 || count >= most {
                return (count, None);
            }
        }
    }

    fn child(&self, hash: u64, sibling: u64) -> u64 {
        derive(sibling, hash)
    }

    /// Which sibling, counted in ascending order of values, a step stands at.
    fn sibling(&self, level: usize) -> u64 {
        let Step { hash, count, at, .. } = self.steps[level];
        if self.sorted {
            if self.descending[level] { count - 1 - at } else { at }
        } else {
            permute(at, count, hash ^ SHUFFLE)
        }
    }

    fn row_hash(&self) -> u64 {
        let leaf = self.steps.len() - 1;
        self.child(self.steps[leaf].hash, self.sibling(leaf))
    }

    /// Whether the row at hand is one of those that are written.
    fn is_chosen(&self) -> bool {
        self.select >= 1.0 || fraction(derive(self.row_hash(), CHOSEN)) < self.select
    }

    /// Go to the first row under the present values of the columns before `level`.
    fn enter(&mut self, columns: &mut [ColumnGenerator], level: usize) {
        for level in level..self.steps.len() {
            let (hash, rows) = match level.checked_sub(1) {
                None => (self.base, self.rows),
                Some(above) => {
                    let sibling = self.sibling(above);
                    let Step { hash, count, last_rows, .. } = self.steps[above];
                    (self.child(hash, sibling), last_rows.filter(|_| sibling + 1 == count))
                }
            };
            let (count, last_rows) = self.span(columns, level, hash, rows);
            self.steps[level] = Step { hash, count, at: 0, last_rows };
        }
    }

    /// Go to the row of this number, in the order of the walk. It must be below the total.
    fn go_to(&mut self, columns: &mut [ColumnGenerator], mut number: u64) {
        self.enter(columns, 0);
        for level in 0..self.steps.len() {
            let Step { hash, count, last_rows, .. } = self.steps[level];
            match self.fixed_below[level] {
                Some(below) if last_rows.is_none() => {
                    self.steps[level].at = number / below;
                    number %= below;
                }
                below => loop {
                    let sibling = self.sibling(level);
                    let under = match (last_rows.filter(|_| sibling + 1 == count), below) {
                        (Some(rows), _) | (None, Some(rows)) => rows,
                        (None, None) => self.rows_under(columns, level + 1, self.child(hash, sibling)),
                    };
                    if number < under {
                        break;
                    }
                    number -= under;
                    self.steps[level].at += 1;
                },
            }
            self.enter(columns, level + 1);
        }
    }

    /// Go to the next row; false after the last.
    fn step(&mut self, columns: &mut [ColumnGenerator]) -> bool {
        for level in (0..self.steps.len()).rev() {
            self.steps[level].at += 1;
            if self.steps[level].at < self.steps[level].count {
                self.enter(columns, level + 1);
                return true;
            }
        }
        false
    }

    fn set_order(&mut self, sorted: bool) {
        self.sorted = sorted;
    }

    /// Begin a visit that writes `count` rows from the row `position` on. False: there are none.
    pub(super) fn write(
        &mut self,
        columns: &mut [ColumnGenerator],
        position: u64,
        count: Option<u64>,
        total: Option<u64>,
    ) -> bool {
        self.set_order(self.order == Order::Sorted);
        self.is_write = true;
        self.is_first = position == 0;
        let end = count.map(|count| position.saturating_add(count));
        self.is_last = match (end, total) {
            (Some(end), Some(total)) => end >= total,
            _ => true,
        };
        if total.is_some_and(|total| position >= total) {
            self.marks = Some((self.is_first, true));
            return false;
        }
        if position == 0 {
            self.enter(columns, 0)
        } else {
            self.go_to(columns, position)
        }
        self.plan = Plan::Forward { left: count.unwrap_or(u64::MAX) };
        self.settle(columns)
    }

    /// Begin a visit that reads `target` rows, chosen at random among the first `written` that are chosen to be written.
    pub(super) fn read(&mut self, columns: &mut [ColumnGenerator], target: u64, written: Option<u64>) -> bool {
        self.set_order(self.order == Order::Sorted);
        self.is_write = false;
        let total = self.total(columns);
        let rows = written.map_or(total, |written| written.min(total));
        if rows == 0 || target == 0 {
            self.has_row = false;
            return false;
        }
        let mut picks = Vec::with_capacity(target.min(rows) as usize);
        for _ in 0..target.min(rows) {
            if let Some(number) = self.pick(columns, rows) {
                picks.push(number);
            }
        }
        // Read in the order of the walk, and no row twice.
        picks.sort_unstable_by(|left, right| right.cmp(left));
        picks.dedup();
        self.plan = Plan::Picked(picks);
        self.next_pick(columns)
    }

    /// The number of a row that is written, if there is one.
    fn pick(&mut self, columns: &mut [ColumnGenerator], rows: u64) -> Option<u64> {
        let start = self.rolls.number(rows);
        if self.select >= 1.0 {
            return Some(start);
        }
        // Mostly near; in a partition where almost nothing is written the walk goes round once.
        (0..rows).map(|ahead| (start + ahead) % rows).find(|number| {
            self.go_to(columns, *number);
            self.is_chosen()
        })
    }

    fn next_pick(&mut self, columns: &mut [ColumnGenerator]) -> bool {
        let Plan::Picked(picks) = &mut self.plan else { return false };
        let next = picks.pop();
        if let Some(number) = next {
            self.go_to(columns, number);
        }
        self.has_row = next.is_some();
        self.has_row
    }

    /// Begin at a range bounded by two random rows, `depth` clustering columns deep, in the table's order. The values of the
    /// bounds, the smaller first, go into `bounds`. Returns the depth, which is less where the table keeps some of these
    /// columns ascending and others descending: a range over both is not a range of rows. `None`: no rows.
    pub(super) fn bounds(
        &mut self,
        columns: &mut [ColumnGenerator],
        depth: usize,
        bounds: [&mut Cells; 2],
    ) -> Option<usize> {
        self.set_order(true);
        self.is_write = false;
        let uniform = self.descending.iter().take_while(|descending| **descending == self.descending[0]).count();
        let depth = depth.min(uniform);
        let total = self.total(columns);
        if depth == 0 {
            self.enter(columns, 0);
            self.plan = Plan::Forward { left: u64::MAX };
            return self.settle(columns).then_some(0);
        }
        let (one, other) = (self.rolls.number(total), self.rolls.number(total));
        let [lower, upper] = bounds;
        let (first, last) = if self.descending[0] { (upper, lower) } else { (lower, upper) };
        self.go_to(columns, one.max(other));
        self.clustering(columns, depth, last);
        let end = self.steps[..depth].iter().map(|step| step.at).collect();
        self.go_to(columns, one.min(other));
        self.clustering(columns, depth, first);
        self.enter(columns, depth);
        self.plan = Plan::UpTo(end);
        self.settle(columns);
        Some(depth)
    }

    /// From the row at hand on, find one that is chosen and inside the plan.
    fn settle(&mut self, columns: &mut [ColumnGenerator]) -> bool {
        loop {
            let inside = match &self.plan {
                Plan::Forward { left } => *left > 0,
                Plan::UpTo(end) => self.steps.iter().map(|step| step.at).take(end.len()).le(end.iter().copied()),
                Plan::Picked(_) => true,
            };
            if !inside {
                return self.end();
            }
            if self.is_chosen() {
                self.has_row = true;
                return true;
            }
            self.count_down();
            if !self.step(columns) {
                return self.end();
            }
        }
    }

    fn count_down(&mut self) {
        if let Plan::Forward { left } = &mut self.plan {
            *left = left.saturating_sub(1);
        }
    }

    fn end(&mut self) -> bool {
        self.has_row = false;
        if self.is_write {
            self.marks = Some((self.is_first, self.is_last));
        }
        false
    }

    /// Leave the row at hand and find the next.
    pub(super) fn advance(&mut self, columns: &mut [ColumnGenerator]) {
        if matches!(self.plan, Plan::Picked(_)) {
            self.next_pick(columns);
            return;
        }
        self.count_down();
        if self.step(columns) {
            self.settle(columns);
        } else {
            self.end();
        }
    }

    pub(super) fn has_row(&self) -> bool {
        self.has_row
    }

    /// The first `depth` clustering values of the row at hand.
    fn clustering(&self, columns: &mut [ColumnGenerator], depth: usize, cells: &mut Cells) {
        for (level, column) in columns.iter_mut().enumerate().take(depth) {
            let Step { hash, count, .. } = self.steps[level];
            let sibling = self.sibling(level);
            let edge = |sibling: u64| {
                (u128::from(sibling) * u128::from(self.domains[level]) / u128::from(count.max(1))) as u64
            };
            let (from, to) = (edge(sibling), edge(sibling + 1));
            let position = from + below(derive(sibling, hash ^ STRATUM), (to - from).max(1));
            cells.push(|out| column.append_position(position, out));
        }
    }

    /// The clustering values of the row at hand, and the seed of the others.
    pub(super) fn row(&self, columns: &mut [ColumnGenerator], cells: &mut Cells) -> u64 {
        self.clustering(columns, self.steps.len(), cells);
        self.row_hash()
    }
}

/// Whether the column at `place` of the row with this seed is set, where a share `populated` of the columns is.
pub(super) fn is_populated(row: u64, place: usize, populated: f64) -> bool {
    populated >= 1.0 || fraction(derive(place as u64, row ^ POPULATED)) < populated
}
