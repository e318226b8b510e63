//! One load thread's part of a predefined operation: what the four have in common.

use brownout_generate::seeds::{Seed, SeedSource};
use brownout_load::{Answer, ErrorClass, Meaning, Parameters, Received, Request, Route, Sending};

use super::{Common, PredefinedRow, key_text};
use crate::operations::{Bound, KindThread, Permits, Slot, complaints::Why, slab::Slab};

/// What each of them does in its own way.
pub(super) trait RowOperation: Send {
    /// It visits the partitions to be written next; otherwise those already written.
    const WRITES: bool;
    /// Its requests carry the client's time as their timestamp.
    const STAMPED: bool;

    /// Draws what does not follow from the key: amounts that are added to counters.
    fn draw_amounts(&mut self, _: &PredefinedRow, _: &mut Vec<i64>) {}

    /// Binds the values of the statement for the partition of this key.
    fn bind(&mut self, _: &mut PredefinedRow, key: &[u8], _: &[i64], bound: &mut Bound) {
        bound.value(key);
    }

    /// What an answer about the partition of this key means. A defect in its content is described only if `told` is
    /// there to take the text.
    fn judge(
        &mut self,
        row: &mut PredefinedRow,
        key: &[u8],
        answer: &Answer<'_>,
        told: Option<&mut Option<Why>>,
    ) -> Meaning;
}

/// Judges the answer to a write, which has no content to check.
pub(super) fn written(answer: &Answer<'_>) -> Meaning {
    match answer {
        Answer::Void => Meaning::done(1, 1),
        _ => Meaning::failed(ErrorClass::Unexpected),
    }
}

#[derive(Default)]
struct Open {
    /// Only keys, not rows, are kept for operations that wait for a stalled database.
    key: Vec<u8>,
    amounts: Vec<i64>,
    /// For a write, until it has ended.
    seed: Option<Seed>,
}

/// The part of one load thread.
pub(super) struct PredefinedThread<O> {
    common: Common,
    seeds: SeedSource,
    open: Slab<Open>,
    operation: O,
    /// Reused buffer: the values of the current request.
    bound: Bound,
}

impl<O: RowOperation> PredefinedThread<O> {
    /// The part of the thread with this number.
    pub(super) fn new(common: &Common, thread: usize, operation: O) -> Self {
        PredefinedThread {
            common: common.clone(),
            seeds: common.source(thread),
            open: Slab::new(),
            operation,
            bound: Bound::default(),
        }
    }
}

impl<O: RowOperation> KindThread for PredefinedThread<O> {
    fn draw(&mut self, permits: &Permits) -> Option<Slot> {
        permits.take(1)?;
        let Some(seed) = (if O::WRITES { self.seeds.next_write() } else { self.seeds.next_read() }) else {
            permits.give_back(1);
            return None;
        };
        let number = self.open.take();
        let Open { key, amounts, seed: own } = &mut self.open[number];
        key.clear();
        self.common.row.key(seed.value(), key);
        amounts.clear();
        self.operation.draw_amounts(&self.common.row, amounts);
        if O::WRITES {
            self.seeds.manager().visited(&seed, true, true);
            *own = Some(seed);
        }
        Some(Slot { index: number, partitions: 1 })
    }

    fn route(&self, slot: u32, by_token: bool) -> Route {
        self.common.route(&self.open[slot].key, by_token)
    }

    fn request(&mut self, slot: u32, sending: &Sending, request: Request<'_>) {
        let timestamp_us = O::STAMPED.then_some(sending.unix_us as i64);
        let parameters = Parameters { timestamp_us, ..self.common.parameters() };
        let Open { key, amounts, .. } = &self.open[slot];
        self.bound.clear();
        self.operation.bind(&mut self.common.row, key, amounts, &mut self.bound);
        self.bound.cells().write(&mut self.common.send(request, &parameters));
    }

    fn answer(&mut self, slot: u32, answer: &Answer<'_>, _: &Received, told: Option<&mut Option<Why>>) -> Meaning {
        self.operation.judge(&mut self.common.row, &self.open[slot].key, answer, told)
    }

    fn key(&self, slot: u32) -> String {
        key_text(&self.open[slot].key)
    }

    fn statement(&self) -> &str {
        &self.common.cql
    }

    fn end(&mut self, slot: u32, ok: bool) {
        if let Some(seed) = self.open[slot].seed.take() {
            let seeds = self.seeds.manager();
            if ok { seeds.written(&seed) } else { seeds.given_up(&seed) }
        }
    }

    fn release(&mut self, slot: u32) {
        self.open.give(slot);
    }
}
