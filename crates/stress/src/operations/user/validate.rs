//! `validate`: a range of a partition's rows, each compared with what was written.

use brownout_generate::{
    rows::{PartitionGenerator, Visit},
    seeds::SeedSource,
};
use brownout_load::{Answer, ErrorClass, Meaning, Next, Parameters, Received, Request, Route, Sending};

use super::{
    Common, PATIENCE,
    expected::{Columns, Expected},
    write, write_all,
};
use crate::{
    operations::{Kind, KindThread, Permits, Slot, complaints::Why, slab::Slab},
    profile::Extent,
};

/// The kind: one for every number of clustering columns that bound the range.
#[derive(Clone)]
pub struct Validate {
    /// What it has in common with the others. Its statement selects all columns in the order of `order`.
    pub common: Common,
    /// How many clustering columns bound the range; 0: all rows of the partition.
    pub depth: usize,
    /// For each column of an answer: its index in the layout.
    pub order: Vec<usize>,
    /// Rows in a page.
    pub page_size: i32,
    /// Content is compared; otherwise rows are only counted.
    pub validates: bool,
    /// A generator known to work, used by threads that cannot make their own (which should not happen).
    pub generator: PartitionGenerator,
}

#[derive(Default)]
struct Open {
    /// What its range and its rows are generated from when it is sent.
    visit: Visit,
    token: i64,
    /// Index of the rows that it must return, from when it is first sent.
    expected: Option<u32>,
    paging_state: Vec<u8>,
    counted: bool,
}

struct ValidateThread {
    kind: Validate,
    generator: PartitionGenerator,
    source: SeedSource,
    open: Slab<Open>,
    expected: Slab<Expected>,
    columns: Columns,
}

impl Kind for Validate {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(ValidateThread {
            generator: self.common.generator(thread).unwrap_or_else(|_| self.generator.clone()),
            source: self.common.source(thread),
            kind: self.clone(),
            open: Slab::new(),
            expected: Slab::new(),
            columns: Columns::new(&self.common.layout, self.order.iter().copied().map(Some).collect()),
        })
    }
}

impl KindThread for ValidateThread {
    fn draw(&mut self, permits: &Permits) -> Option<Slot> {
        permits.take(1)?;
        let number = self.open.take();
        for _ in 0..PATIENCE {
            let Some(seed) = self.source.next_read() else { break };
            let found = self.generator.validate(&seed, self.kind.depth);
            if found.is_some_and(|found| found.depth == self.kind.depth) {
                let open = &mut self.open[number];
                open.visit = self.generator.visit();
                open.token = self.generator.token();
                open.paging_state.clear();
                open.counted = false;
                open.expected = None;
                return Some(Slot { index: number, partitions: 1 });
            }
        }
        permits.give_back(1);
        self.open.give(number);
        None
    }

    fn route(&self, slot: u32, by_token: bool) -> Route {
        self.kind.common.route(self.open[slot].token, by_token)
    }

    fn request(&mut self, slot: u32, _: &Sending, request: Request<'_>) {
        let ValidateThread { kind, generator, open, expected, columns, .. } = self;
        let open = &mut open[slot];
        // There was such a range when the operation was drawn.
        let Some(range) = generator.validate_again(&open.visit, kind.depth) else { return };
        let layout = &kind.common.layout;
        if kind.validates && open.expected.is_none() {
            let number = expected.take();
            let expected = &mut expected[number];
            expected.clear();
            while let Some(row) = generator.next_row() {
                expected.add(row, layout, columns.key_columns());
            }
            expected.sort();
            open.expected = Some(number);
        }
        let parameters = Parameters {
            page_size: Some(kind.page_size),
            paging_state: (!open.paging_state.is_empty()).then_some(&open.paging_state[..]),
            ..kind.common.parameters()
        };
        let mut values = kind.common.send(request, &parameters);
        write_all(generator.set_key(open.visit.value()), &mut values);
        write(&range.lower, 0..kind.depth, &mut values);
        write(&range.upper, 0..kind.depth, &mut values);
    }

    fn answer(
        &mut self,
        slot: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Meaning {
        let Answer::Rows(rows) = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        // Nothing follows a late page, and its rows were not ticked off.
        if received.late {
            return Meaning::done(0, rows.len() as u32);
        }
        let open = &mut self.open[slot];
        let layout = &self.kind.common.layout;
        if let Some(number) = open.expected
            && let Some(wrong) = self.expected[number].check(rows, layout, &mut self.columns, Extent::All, told)
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
        Meaning { next, page: true, ..Meaning::done(partitions, rows.len() as u32) }
    }

    fn key(&self, slot: u32) -> String {
        self.kind.common.key_text(&self.generator, self.open[slot].visit.value())
    }

    fn statement(&self) -> &str {
        &self.kind.common.cql
    }

    fn release(&mut self, slot: u32) {
        if let Some(number) = self.open[slot].expected.take() {
            self.expected.give(number);
        }
        self.open.give(slot);
    }
}
