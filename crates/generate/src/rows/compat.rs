//! The rows of a partition as cassandra-stress walks through them.
//!
//! Source: its `PartitionIterator.MultiRowIterator`. A level per clustering column; each holds the values that the column
//! has under the present values of the columns before it. A level's values and the seed below it are made when it is
//! entered, and are the same under every value of the level above. Positions are counted in *expected* rows (products of
//! averages), so a visit's share of a partition is a share of what it holds on average.

use super::{cells::Cells, java_value::fold, level::Level, roll::Rolls, settings::Order};
use crate::{seeds::Seed, values::ColumnGenerator};

/// What `reset` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    EndOfPartition,
    AfterLimit,
    Success,
}

/// The walk through a partition.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    /// Average rows under one value of each column, and average values of it.
    descendants: Vec<i32>,
    averages: Vec<i32>,
    max_rows: f64,
    min_rows: f64,
    default_order: Order,
    order: Order,
    levels: Vec<Level>,
    seeds: Vec<i64>,
    /// The item of each level that the row at hand has. Not always the level's head: see `seek_to_current`.
    row: Vec<usize>,
    current: Vec<i32>,
    last: Vec<i32>,
    use_chance: f64,
    roll_modifier: Vec<f64>,
    chance_modifier: Vec<f64>,
    idseed: i64,
    has_next: bool,
    is_write: bool,
    is_first_write: bool,
    /// Set when a visit of a writer has ended: whether it had the partition's first rows, and its last.
    pub(super) marks: Option<(bool, bool)>,
    pub(super) rolls: Rolls,
}

impl Walk {
    /// `clustering` has at least one column, each with an average above 0.
    pub(super) fn new(clustering: &[ColumnGenerator], default_order: Order, rolls: Rolls) -> Self {
        let levels = clustering.len();
        let averages: Vec<i32> = clustering.iter().map(|column| column.cluster().average() as i32).collect();
        let mut descendants = vec![1i32; levels];
        for level in (0..levels.saturating_sub(1)).rev() {
            descendants[level] = averages[level + 1].wrapping_mul(descendants[level + 1]);
        }
        // What cassandra-stress takes for the extremes, which are swapped for mirrored distributions.
        let product = |p: f64| clustering.iter().map(|column| column.cluster().inverse_cumulative(p) as f64).product();
        Walk {
            descendants,
            averages,
            max_rows: product(1.0),
            min_rows: product(0.0),
            default_order,
            order: default_order,
            levels: vec![Level::default(); levels],
            seeds: vec![0; levels],
            row: vec![0; levels],
            current: vec![0; levels],
            last: vec![0; levels],
            use_chance: 0.0,
            roll_modifier: vec![0.0; levels],
            chance_modifier: vec![0.0; levels],
            idseed: 0,
            has_next: false,
            is_write: false,
            is_first_write: false,
            marks: None,
            rolls,
        }
    }

    pub(super) fn rows(&self) -> (f64, f64) {
        (self.min_rows, self.max_rows)
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (&[i32], &[i32]) {
        (&self.descendants, &self.averages)
    }

    #[cfg(test)]
    pub(super) fn last(&self) -> &[i32] {
        &self.last
    }

    /// Begin a visit of a writer, with `chance` for each row. Returns where in the partition it writes; `None`: there is
    /// nothing left to write.
    pub(super) fn write(
        &mut self,
        columns: &mut [ColumnGenerator],
        idseed: i64,
        seed: &mut Seed,
        chance: f64,
    ) -> Option<i32> {
        let first = self.begin(columns, idseed, true);
        let expected = first.wrapping_mul(self.descendants[0]);
        self.set_use_chance(chance);
        loop {
            // A visit may fall where no rows are; then the position moves on and the next part is tried.
            let count = if seed.visits() == 1 {
                1i32.wrapping_add(self.max_rows as i32)
            } else {
                expected.checked_div(seed.visits()).unwrap_or(1).max(1)
            };
            let position = seed.move_forwards(count);
            self.rolls.begin_part(position as u64);
            self.levels.iter_mut().for_each(Level::clear);
            self.fill(columns, 0);
            self.is_first_write = position == 0;
            let last = position.wrapping_add(count).wrapping_sub(1);
            if last < 0 {
                // Beyond 2³¹ rows; cassandra-stress fails here.
                return None;
            }
            self.set_last_row(last);
            match self.seek(columns, position) {
                State::EndOfPartition => return None,
                State::Success => return Some(position),
                State::AfterLimit => {}
            }
        }
    }

    /// Begin a visit of a reader, who wants about `target` rows, or each with a chance.
    pub(super) fn read(&mut self, columns: &mut [ColumnGenerator], idseed: i64, seed: &Seed, wanted: Wanted) -> bool {
        let first = self.begin(columns, idseed, false);
        let expected = self.limit(first, seed);
        let chance = match wanted {
            Wanted::Chance(chance) => chance,
            Wanted::Rows(target) => (target as f64 / f64::from(expected)).clamp(0.0, 1.0),
        };
        self.set_use_chance(chance);
        self.levels.iter_mut().for_each(Level::clear);
        self.fill(columns, 0);
        self.seek(columns, 0) == State::Success
    }

    fn begin(&mut self, columns: &mut [ColumnGenerator], idseed: i64, is_write: bool) -> i32 {
        self.order = self.default_order;
        self.idseed = idseed;
        self.is_write = is_write;
        self.marks = None;
        columns[0].start_siblings(idseed) as i32
    }

    /// How far a reader goes: as far as writers came, if the seed knows. Returns the rows expected there.
    fn limit(&mut self, first: i32, seed: &Seed) -> i32 {
        match seed.position() {
            0 => {
                self.last.fill(i32::MAX);
                first.wrapping_mul(self.descendants[0])
            }
            position => self.set_last_row(position.wrapping_sub(1)),
        }
    }

    /// Begin at a range that `pick` (which of so many) bounds, `depth` clustering columns deep, in sorted order. Fills the
    /// bounds' clustering values in.
    pub(super) fn bounds(
        &mut self,
        columns: &mut [ColumnGenerator],
        idseed: i64,
        seed: &Seed,
        depth: usize,
        mut pick: impl FnMut(usize) -> usize,
        bounds: [&mut Cells; 2],
    ) -> bool {
        let first = self.begin(columns, idseed, false);
        self.order = Order::Sorted;
        self.set_use_chance(1.0);
        if depth == 0 {
            self.limit(first, seed);
            self.levels.iter_mut().for_each(Level::clear);
            self.fill(columns, 0);
            return self.seek(columns, 0) == State::Success;
        }
        self.levels.iter_mut().for_each(Level::clear);
        self.fill(columns, 0);
        let [lower, upper] = bounds;
        let (mut from, mut to) = (vec![0; depth], vec![0; depth]);
        self.bound(columns, &mut from, &mut pick, lower);
        self.bound(columns, &mut to, &mut pick, upper);
        if from > to {
            std::mem::swap(&mut from, &mut to);
            std::mem::swap(lower, upper);
        }
        self.last.fill(0);
        self.last[..depth].copy_from_slice(&to);
        self.current.fill(0);
        self.current[..depth].copy_from_slice(&from);
        self.seek_to_current(columns);
        self.has_next
    }

    fn bound(
        &mut self,
        columns: &mut [ColumnGenerator],
        position: &mut [i32],
        pick: &mut impl FnMut(usize) -> usize,
        cells: &mut Cells,
    ) {
        for (level, place) in position.iter_mut().enumerate() {
            if level > 0 {
                self.fill(columns, level);
            }
            let picked = pick(self.levels[level].len());
            *place = picked as i32;
            let item = self.levels[level].item(picked);
            cells.push(|out| out.extend_from_slice(item));
        }
        self.levels.iter_mut().skip(1).for_each(Level::clear);
    }

    fn set_use_chance(&mut self, chance: f64) {
        if self.use_chance < 1.0 {
            self.roll_modifier.fill(1.0);
            self.chance_modifier.fill(1.0);
        }
        self.use_chance = chance;
    }

    /// Sets the last row to visit. Returns how many rows are expected up to it.
    fn set_last_row(&mut self, position: i32) -> i32 {
        self.last = self.decompose(position);
        let rows = self.last.iter().zip(&self.descendants).map(|(last, rows)| last.wrapping_mul(*rows));
        rows.fold(1, i32::wrapping_add)
    }

    /// A position in expected rows as a position at each level.
    fn decompose(&self, mut position: i32) -> Vec<i32> {
        let mut parts = vec![0i32; self.levels.len()];
        for (part, rows) in parts.iter_mut().zip(&self.descendants) {
            *part = position.checked_div(*rows).unwrap_or(0);
            position = position.checked_rem(*rows).unwrap_or(0);
        }
        for level in (1..parts.len()).rev() {
            let average = self.averages[level].max(1);
            if parts[level] >= average {
                parts[level - 1] += parts[level] / average;
                parts[level] %= average;
            }
        }
        parts
    }

    /// Where the row at hand stands to the last row of the visit: before it (−1), on it or on the last that exists before
    /// it (0), after it (1).
    fn compare_to_last(&self, depth: usize) -> i32 {
        let mut before = 0;
        for level in 0..=depth {
            let (at, last, left) = (self.current[level], self.last[level], self.levels[level].left());
            if before < 0 {
                if left > 1 {
                    return -1;
                }
            } else if at > last {
                return 1;
            } else if at < last {
                if left != 1 {
                    return -1;
                }
                before = at.wrapping_sub(last);
            }
        }
        0
    }

    fn seek(&mut self, columns: &mut [ColumnGenerator], position: i32) -> State {
        if position == 0 {
            self.current[0] = 0;
            let found = self.settle(columns, 0, true);
            return self.set_has_next(found);
        }
        self.current = self.decompose(position);
        self.seek_to_current(columns)
    }

    fn seek_to_current(&mut self, columns: &mut [ColumnGenerator]) -> State {
        for level in 0..self.levels.len() {
            if level != 0 {
                self.fill(columns, level);
            }
            for _ in 0..self.current[level].max(0).min(self.levels[level].len() as i32) {
                self.levels[level].poll();
            }
            if self.levels[level].left() == 0 {
                // No such position: up, and on with the next value that exists.
                let mut above = level;
                loop {
                    let Some(next) = above.checked_sub(1) else { return self.set_has_next(false) };
                    above = next;
                    self.levels[above].poll();
                    if self.levels[above].left() > 0 {
                        break;
                    }
                }
                self.current[above] += 1;
                self.current[above + 1..].fill(0);
                for below in above + 1..=level {
                    self.fill(columns, below);
                }
            }
            // Only this level's value is taken into the row: those above stay what they were before going up. It is what
            // cassandra-stress writes.
            self.row[level] = self.levels[level].head();
        }
        let leaf = self.levels.len() - 1;
        if self.compare_to_last(leaf) > 0 {
            return self.set_has_next(false);
        }
        let found = self.settle(columns, leaf, true);
        self.set_has_next(found)
    }

    /// Leave the row at hand and find the next.
    pub(super) fn advance(&mut self, columns: &mut [ColumnGenerator]) {
        let leaf = self.levels.len() - 1;
        self.levels[leaf].poll();
        self.current[leaf] = self.current[leaf].wrapping_add(1);
        let found = self.settle(columns, leaf, false);
        self.set_has_next(found);
    }

    /// From the present value of a level on, find the next row that is chosen.
    fn settle(&mut self, columns: &mut [ColumnGenerator], mut depth: usize, first: bool) -> bool {
        loop {
            if self.levels[depth].left() == 0 {
                let Some(above) = depth.checked_sub(1) else { return false };
                depth = above;
                self.levels[depth].poll();
                self.current[depth] = self.current[depth].wrapping_add(1);
                if self.current[depth] > self.last[depth] {
                    return false;
                }
                continue;
            }
            let to_last = self.compare_to_last(depth);
            if to_last > 0 {
                return false;
            }
            let forced = first && to_last == 0;
            // The chance of going down: that of a row, times the rows below, divided by the chance of having come here.
            let chance = self.use_chance * self.chance_modifier[depth];
            if forced || chance > f64::from(0.99999f32) || chance >= self.rolls.roll() {
                self.row[depth] = self.levels[depth].head();
                depth += 1;
                if depth == self.levels.len() {
                    return true;
                }
                if self.use_chance < 1.0 {
                    self.roll_modifier[depth] = self.roll_modifier[depth - 1] / chance.min(1.0);
                    self.chance_modifier[depth] = f64::from(self.descendants[depth]) * self.roll_modifier[depth];
                }
                self.current[depth] = 0;
                self.fill(columns, depth);
                continue;
            }
            if to_last >= 0 {
                return false;
            }
            self.levels[depth].poll();
            self.current[depth] = self.current[depth].wrapping_add(1);
        }
    }

    /// Make the values of a level. Those before them must be made, and their seeds known.
    fn fill(&mut self, columns: &mut [ColumnGenerator], depth: usize) {
        let seed = if depth == 0 { self.idseed } else { self.seeds[depth - 1] };
        let column = &mut columns[depth];
        let count = column.start_siblings(seed).max(0);
        let level = &mut self.levels[depth];
        level.clear();
        for _ in 0..count {
            level.push(|bytes| column.append_next(bytes));
        }
        if count > 1 {
            level.arrange(column.cql_type(), self.order, &mut self.rolls);
        }
        self.seeds[depth] = fold(seed, level.item(0), column.cql_type());
    }

    fn set_has_next(&mut self, has_next: bool) -> State {
        self.has_next = has_next;
        if has_next {
            return State::Success;
        }
        let is_last = self.levels[0].left() == 0;
        if self.is_write {
            let had_first = self.marks.is_some_and(|(first, _)| first);
            self.marks = Some((had_first || self.is_first_write, is_last));
        }
        if is_last { State::EndOfPartition } else { State::AfterLimit }
    }

    pub(super) fn has_next(&self) -> bool {
        self.has_next
    }

    /// The clustering values of the row at hand, and the seed of the others.
    pub(super) fn row(&self, columns: &[ColumnGenerator], cells: &mut Cells) -> i64 {
        for (level, item) in self.levels.iter().zip(&self.row) {
            let item = level.item(*item);
            cells.push(|out| out.extend_from_slice(item));
        }
        let leaf = self.levels.len() - 1;
        let level = &self.levels[leaf];
        fold(self.seeds[leaf], level.item(level.head()), columns[leaf].cql_type())
    }
}

/// What a reader asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Each row with this chance.
    #[cfg_attr(not(test), allow(dead_code, reason = "cassandra-stress's readers ask for rows; its vectors hold both"))]
    Chance(f64),
    /// About so many rows.
    Rows(usize),
}
