//! `validate`: a range of a partition's rows, every one compared with what was written.

use brownout_generate::{rows::PartitionGenerator, seeds::SeedSource};
use brownout_load::{Answer, ErrorClass, Next, Parameters, Received, Request, Route, Sending, Verdict};

use super::{
    Common, PATIENCE, bind,
    expected::{Columns, Expected},
};
use crate::{
    operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab},
    profile::Extent,
};

/// The kind: one for every number of clustering columns that bound the range.
#[derive(Clone)]
pub struct Validate {
    /// What it has in common with the others. Its statement selects all columns in the order of `order`.
    pub common: Common,
    /// How many clustering columns bound the range; 0: all rows of the partition.
    pub depth: usize,
    /// For each column of an answer: its place in the layout.
    pub order: Vec<usize>,
    /// Rows in a page.
    pub page_size: i32,
    /// Content is compared; otherwise only counted.
    pub validates: bool,
    /// A generator that was made with success; threads that cannot make theirs (which cannot be) use it.
    pub generator: PartitionGenerator,
}

#[derive(Default)]
struct Open {
    bound: Bound,
    seed: i64,
    token: i64,
    expected: Expected,
    paging_state: Vec<u8>,
    counted: bool,
}

struct ValidateThread {
    kind: Validate,
    generator: PartitionGenerator,
    source: SeedSource,
    open: Slab<Open>,
    columns: Columns,
}

impl Kind for Validate {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(ValidateThread {
            generator: self.common.generator(thread).unwrap_or_else(|_| self.generator.clone()),
            source: self.common.source(thread),
            kind: self.clone(),
            open: Slab::new(),
            columns: Columns::new(&self.common.layout, self.order.iter().copied().map(Some).collect()),
        })
    }
}

impl KindThread for ValidateThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let number = self.open.take();
        let mut range = None;
        for _ in 0..PATIENCE {
            let Some(seed) = self.source.next_read() else { break };
            let found = self.generator.validate(&seed, self.kind.depth);
            if let Some(found) = found.filter(|found| found.depth == self.kind.depth) {
                range = Some((seed, found));
                break;
            }
        }
        let Some((seed, range)) = range else {
            permits.give_back(1);
            self.open.give(number);
            return None;
        };
        let layout = &self.kind.common.layout;
        let key = layout.key_columns();
        let open = &mut self.open[number];
        open.token = self.generator.token();
        open.paging_state.clear();
        open.counted = false;
        open.bound.clear();
        open.seed = seed.value();
        open.expected.clear();
        let mut first = true;
        while let Some(row) = self.generator.next_row() {
            if std::mem::take(&mut first) {
                bind(&mut open.bound, row, 0..key);
            }
            open.expected.add(row, layout, self.columns.key_columns());
        }
        open.expected.sort();
        if first {
            // No row is expected, but the partition is asked for all the same.
            bind(&mut open.bound, self.generator.set_key(seed.value()), 0..key);
        }
        bind(&mut open.bound, &range.lower, 0..self.kind.depth);
        bind(&mut open.bound, &range.upper, 0..self.kind.depth);
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        self.kind.common.route(self.open[place].token, by_token)
    }

    fn request(&mut self, place: u32, _: &Sending, request: Request<'_>) {
        let open = &self.open[place];
        let parameters = Parameters {
            page_size: Some(self.kind.page_size),
            paging_state: (!open.paging_state.is_empty()).then_some(&open.paging_state[..]),
            ..self.kind.common.parameters()
        };
        open.bound.cells().write(&mut self.kind.common.send(request, &parameters));
    }

    fn answer(
        &mut self,
        place: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Verdict {
        let Answer::Rows(rows) = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        // Of a late page nothing follows, and its rows were not counted off.
        if received.late {
            return Verdict::done(0, rows.len() as u32);
        }
        let open = &mut self.open[place];
        let layout = &self.kind.common.layout;
        if self.kind.validates
            && let Some(wrong) = open.expected.check(rows, layout, &mut self.columns, Extent::All, told)
        {
            return wrong;
        }
        let partitions = u32::from(!open.counted && !rows.is_empty());
        open.counted |= partitions > 0;
        let next = match rows.paging_state() {
            Some(state) => {
                open.paging_state.clear();
                open.paging_state.extend_from_slice(state);
                Next::Page
            }
            None => Next::Done,
        };
        Verdict { next, page: true, ..Verdict::done(partitions, rows.len() as u32) }
    }

    fn key(&self, place: u32) -> String {
        self.kind.common.key_text(&self.generator, self.open[place].seed)
    }

    fn statement(&self) -> &str {
        &self.kind.common.cql
    }

    fn release(&mut self, place: u32) {
        self.open.give(place);
    }
}
