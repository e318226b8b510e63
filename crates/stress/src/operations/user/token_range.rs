//! Token range queries: the whole table, range by range, page by page. One page is one operation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use brownout_load::{
    Answer, Consistency, ErrorClass, Meaning, Parameters, Received, Request, Route, Sending, SerialConsistency,
};

use crate::operations::{Bound, Kind, KindThread, Permits, Slot, complaints::Why, slab::Slab};

/// The ranges of a ring, handed out one after another to all threads.
#[derive(Debug)]
pub struct Ranges {
    /// Greater than the first, up to and including the second.
    ranges: Vec<(i64, i64)>,
    wrap: bool,
    next: AtomicUsize,
}

impl Ranges {
    /// The ranges between these tokens, each cut into `parts` of equal length; `wrap`: over and over again.
    pub fn new(mut tokens: Vec<i64>, parts: u32, wrap: bool) -> Self {
        tokens.sort_unstable();
        tokens.dedup();
        // No key has the smallest token, so no range misses anything by starting above it.
        let mut bounds = vec![i64::MIN];
        bounds.extend(tokens.into_iter().filter(|token| *token != i64::MIN && *token != i64::MAX));
        bounds.push(i64::MAX);
        let parts = i128::from(parts.max(1));
        let cut = |pair: &[i64]| {
            let (low, high) = (i128::from(pair[0]), i128::from(pair[1]));
            let at = move |part: i128| (low + (high - low) * part / parts) as i64;
            (0..parts).map(move |part| (at(part), at(part + 1))).filter(|(from, to)| from < to)
        };
        let ranges = bounds.windows(2).flat_map(cut).collect();
        Ranges { ranges, wrap, next: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<(i64, i64)> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let place = if self.wrap { place % self.ranges.len() } else { place };
        self.ranges.get(place).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

/// The kind.
#[derive(Clone)]
pub struct TokenRange {
    /// `SELECT token(…), … FROM … WHERE token(…) > ? AND token(…) <= ?`
    pub cql: String,
    /// Its index among the prepared statements.
    pub statement: usize,
    /// Index of the table among those of the workload.
    pub table: u16,
    /// The ranges.
    pub ranges: Arc<Ranges>,
    /// Rows in a page.
    pub page_size: i32,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The same for conditional writes.
    pub serial_consistency: Option<SerialConsistency>,
}

/// Progress within a range, kept from page to page.
#[derive(Default)]
struct Cursor {
    range: (i64, i64),
    bound: Bound,
    paging_state: Vec<u8>,
    last_token: Option<i64>,
    /// The range is finished.
    through: bool,
}

struct TokenRangeThread {
    kind: TokenRange,
    cursors: Slab<Cursor>,
    /// Cursors between two pages.
    idle: Vec<u32>,
    /// Number of cursors whose page is in flight.
    out: usize,
    /// No range was left when the last operation was drawn.
    drawn_empty: bool,
}

impl Kind for TokenRange {
    fn thread(&self, _: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(TokenRangeThread {
            kind: self.clone(),
            cursors: Slab::new(),
            idle: Vec::new(),
            out: 0,
            drawn_empty: false,
        })
    }
}

impl KindThread for TokenRangeThread {
    fn draw(&mut self, permits: &Permits) -> Option<Slot> {
        self.drawn_empty = false;
        permits.take(1)?;
        if let Some(number) = self.idle.pop() {
            self.out += 1;
            return Some(Slot { index: number, partitions: 1 });
        }
        let Some(range) = self.kind.ranges.take() else {
            permits.give_back(1);
            self.drawn_empty = true;
            return None;
        };
        self.out += 1;
        let number = self.cursors.take();
        let cursor = &mut self.cursors[number];
        cursor.range = range;
        cursor.bound.clear();
        cursor.bound.value(&range.0.to_be_bytes());
        cursor.bound.value(&range.1.to_be_bytes());
        cursor.paging_state.clear();
        cursor.last_token = None;
        cursor.through = false;
        Some(Slot { index: number, partitions: 1 })
    }

    /// Ranges whose pages are in flight may have more pages.
    fn more_later(&self) -> bool {
        self.drawn_empty && self.out > 0
    }

    fn route(&self, slot: u32, by_token: bool) -> Route {
        if by_token { Route::Token { table: self.kind.table, token: self.cursors[slot].range.1 } } else { Route::Any }
    }

    fn request(&mut self, slot: u32, _: &Sending, request: Request<'_>) {
        let TokenRange { consistency, serial_consistency, page_size, statement, .. } = self.kind;
        let cursor = &self.cursors[slot];
        let parameters = Parameters {
            serial_consistency,
            page_size: Some(page_size),
            paging_state: (!cursor.paging_state.is_empty()).then_some(&cursor.paging_state[..]),
            skip_metadata: true,
            ..Parameters::new(consistency)
        };
        cursor.bound.cells().write(&mut request.execute(statement, &parameters));
    }

    fn answer(&mut self, slot: u32, answer: &Answer<'_>, received: &Received, _: Option<&mut Option<Why>>) -> Meaning {
        let Answer::Rows(rows) = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        let mut partitions = 0;
        // The next request does not continue from a late page.
        if !received.late {
            let cursor = &mut self.cursors[slot];
            for row in rows.iter() {
                let token = row.cell(0).flatten().and_then(|cell| cell.try_into().ok()).map(i64::from_be_bytes);
                if token != cursor.last_token {
                    partitions += 1;
                    cursor.last_token = token;
                }
            }
            cursor.paging_state.clear();
            cursor.paging_state.extend_from_slice(rows.paging_state().unwrap_or_default());
            cursor.through = rows.paging_state().is_none();
        }
        Meaning { page: true, ..Meaning::done(partitions, rows.len() as u32) }
    }

    fn key(&self, slot: u32) -> String {
        let (from, to) = self.cursors[slot].range;
        format!("[{from}, {to}]")
    }

    fn statement(&self) -> &str {
        &self.kind.cql
    }

    fn release(&mut self, slot: u32) {
        self.out -= 1;
        // The next operation requests a failed page again.
        if self.cursors[slot].through { self.cursors.give(slot) } else { self.idle.push(slot) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ranges: &Ranges) -> Vec<(i64, i64)> {
        std::iter::from_fn(|| ranges.take()).collect()
    }

    #[test]
    fn ranges_cover_the_ring_once_without_a_gap() {
        for parts in [1, 2, 7] {
            let found = all(&Ranges::new(vec![100, -5, 7, 100], parts, false));
            assert_eq!(found.len(), 4 * parts as usize);
            assert_eq!((found[0].0, found[found.len() - 1].1), (i64::MIN, i64::MAX));
            assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].0 && pair[0].0 < pair[0].1), "{found:?}");
        }
        assert_eq!(all(&Ranges::new(vec![], 1, false)), [(i64::MIN, i64::MAX)]);
        assert_eq!(all(&Ranges::new(vec![i64::MIN, 0, i64::MAX], 1, false)), [(i64::MIN, 0), (0, i64::MAX)]);
    }

    #[test]
    fn a_range_narrower_than_its_parts_is_cut_as_far_as_it_goes() {
        let found = all(&Ranges::new(vec![0, 3], 5, false));
        assert_eq!(found.iter().filter(|(from, to)| *from >= 0 && *to <= 3).count(), 3);
    }

    #[test]
    fn wrapping_begins_again() {
        let ranges = Ranges::new(vec![0], 1, true);
        let found: Vec<_> = (0..5).filter_map(|_| ranges.take()).collect();
        assert_eq!((found.len(), found[0]), (5, found[2]));
    }
}
