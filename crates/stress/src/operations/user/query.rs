//! A query of a profile: any statement, with values of generated rows.

use brownout_generate::{
    rows::{Binding, PartitionGenerator, Visit},
    seeds::SeedSource,
};
use brownout_load::{Answer, ErrorClass, Meaning, Next, Parameters, Received, Request, Route, Sending};

use super::{Common, PATIENCE, checked::Check, expected::Expected, write_all};
use crate::{
    operations::{Kind, KindThread, Permits, Slot, complaints::Why, slab::Slab},
    profile::Selection,
};

/// The kind.
#[derive(Clone)]
pub struct Query {
    /// What it has in common with the others.
    pub common: Common,
    /// Which values it binds.
    pub binding: Binding,
    /// Rows in a page.
    pub page_size: i32,
    /// Pages are counted even if an operation has only one, because paging was requested.
    pub counts_pages: bool,
    /// It specifies a whole partition key, so its replicas are known.
    pub routed: bool,
    /// It is conditional (LWT): answers tell whether it was applied.
    pub conditional: bool,
    /// It writes, and without a condition: it has a timestamp.
    pub writes: bool,
    /// Its rows are compared with those that were written.
    pub check: Option<Selection>,
    /// A generator known to work, used by threads that cannot make their own (which should not happen).
    pub generator: PartitionGenerator,
}

#[derive(Default)]
struct Open {
    /// What its values are generated from when it is sent.
    visit: Visit,
    token: i64,
    paging_state: Vec<u8>,
    /// Its partition was already counted with an earlier page.
    counted: bool,
    /// Index of the rows that it must return, from when it is first sent.
    expected: Option<u32>,
}

struct QueryThread {
    kind: Query,
    generator: PartitionGenerator,
    source: SeedSource,
    open: Slab<Open>,
    expected: Slab<Expected>,
    check: Option<Check>,
}

impl Kind for Query {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(QueryThread {
            generator: self.common.generator(thread).unwrap_or_else(|_| self.generator.clone()),
            source: self.common.source(thread),
            check: self.check.as_ref().map(|selection| Check::new(selection, &self.common.layout, &self.binding)),
            kind: self.clone(),
            open: Slab::new(),
            expected: Slab::new(),
        })
    }

    fn is_conditional(&self) -> bool {
        self.conditional
    }
}

impl KindThread for QueryThread {
    fn draw(&mut self, permits: &Permits) -> Option<Slot> {
        permits.take(1)?;
        let number = self.open.take();
        let open = &mut self.open[number];
        open.paging_state.clear();
        open.counted = false;
        open.expected = None;
        for _ in 0..PATIENCE {
            let Some(seed) = self.source.next_read() else { break };
            if !self.generator.read(&seed, self.kind.binding.rows()) {
                continue;
            }
            open.token = self.generator.token();
            open.visit = self.generator.visit();
            if self.check.as_ref().is_none_or(|check| check.is_known(&mut self.generator, &open.visit)) {
                return Some(Slot { index: number, partitions: 1 });
            }
        }
        permits.give_back(1);
        self.open.give(number);
        None
    }

    fn route(&self, slot: u32, by_token: bool) -> Route {
        self.kind.common.route(self.open[slot].token, by_token && self.kind.routed)
    }

    fn request(&mut self, slot: u32, sending: &Sending, request: Request<'_>) {
        let QueryThread { kind, generator, open, expected, check, .. } = self;
        let Query { common, binding, page_size, conditional, writes, .. } = kind;
        let open = &mut open[slot];
        // There was such a row when the operation was drawn.
        generator.read_again(&open.visit, binding.rows());
        let Some(values) = binding.bind(generator) else { return };
        if let Some(check) = check
            && open.expected.is_none()
        {
            let number = expected.take();
            check.expect(generator, &open.visit, values, &mut expected[number]);
            open.expected = Some(number);
        }
        let own = common.parameters();
        let parameters = Parameters {
            page_size: Some(*page_size),
            paging_state: (!open.paging_state.is_empty()).then_some(&open.paging_state[..]),
            timestamp_us: writes.then_some(sending.unix_us as i64),
            // The columns of a conditional write's answer depend on whether it was applied; of `*` they tell which is which.
            skip_metadata: own.skip_metadata && !*conditional && !check.as_ref().is_some_and(Check::needs_names),
            ..own
        };
        write_all(values, &mut common.send(request, &parameters));
    }

    fn answer(
        &mut self,
        slot: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Meaning {
        match answer {
            Answer::Void => Meaning::done(0, 0),
            Answer::Rows(rows) if self.kind.conditional => {
                Meaning { not_applied: rows.applied() == Some(false), ..Meaning::done(1, rows.len() as u32) }
            }
            Answer::Rows(rows) => {
                let open = &mut self.open[slot];
                // Nothing follows a late page, and its rows are not ticked off.
                if let Some(check) = self.check.as_mut().filter(|_| !received.late)
                    && let Some(number) = open.expected
                    && let Some(wrong) = check.check(rows, &mut self.expected[number], told)
                {
                    return wrong;
                }
                let partitions = u32::from(!open.counted && !rows.is_empty());
                let next = match rows.paging_state() {
                    Some(state) => {
                        if !received.late {
                            open.paging_state.clear();
                            open.paging_state.extend_from_slice(state);
                        }
                        Next::Page
                    }
                    None => Next::Done,
                };
                open.counted |= partitions > 0;
                let page = self.kind.counts_pages || received.step > 0 || next == Next::Page;
                Meaning { next, page, ..Meaning::done(partitions, rows.len() as u32) }
            }
            _ => Meaning::failed(ErrorClass::Unexpected),
        }
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
