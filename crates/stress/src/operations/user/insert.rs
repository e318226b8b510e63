//! `insert`: the rows of a visit, in a batch or one by one.
//!
//! A visit goes to one partition or to several. Its rows are sent in units: all in one batch, in batches of a given
//! size, or one by one. Every unit is an operation of its own, independent of the others; only a batch with more
//! statements than the protocol can count becomes several requests of one operation, one after another.
//!
//! A unit only remembers which rows of which visit it has. The rows themselves are generated every time they are
//! written to a connection: while a database stands still, thousands of operations wait, and their rows would not fit
//! in memory.

use std::ops::Range;

use brownout_generate::{
    distribution::{Distribution, Spec},
    rows::{Cells, PartitionGenerator, Visit},
    seeds::{Seed, SeedSource},
};
use brownout_load::{Answer, BatchKind, ErrorClass, Meaning, Next, Parameters, Received, Request, Route, Sending};

use super::{Common, PATIENCE, write};
use crate::operations::{Kind, KindThread, Permits, Slot, complaints::Why, slab::Slab};

/// The most statements in a batch (section 4.1.7 of the protocol specification).
pub const LARGEST_BATCH: usize = 65_535;
/// Space is reserved for this many partitions of a visit.
const MOST_RESERVED: u32 = 1024;

/// The kind.
#[derive(Clone)]
pub struct Insert {
    /// What it has in common with the others.
    pub common: Common,
    /// Indices of the columns in the layout, in the order of the statement's markers.
    pub columns: Vec<usize>,
    /// Partitions of a visit.
    pub partitions: Spec,
    /// How the rows of a visit are batched; `None`: not at all.
    pub batch: Option<BatchKind>,
    /// Most rows in a batch; `None`: all of the visit.
    pub unit: Option<usize>,
    /// It increments counters: such writes have no client timestamps.
    pub counters: bool,
    /// Seed of the number of partitions.
    pub seed: i64,
    /// A generator known to work, used by threads that cannot make their own (which should not happen).
    pub generator: PartitionGenerator,
}

/// The partition of a visit: not its rows, but what they are generated from when they are sent.
struct Partition {
    seed: Seed,
    visit: Visit,
    rows: usize,
}

/// A visit whose units are being drawn.
#[derive(Default)]
struct Drawing {
    /// Its index among the open visits.
    open: u32,
    rows: usize,
    /// Rows that already belong to units.
    taken: usize,
    partitions: u32,
    token: i64,
}

/// A visit of which not all units have ended.
#[derive(Default)]
struct OpenVisit {
    units: usize,
    all_drawn: bool,
    /// A unit has failed.
    failed: bool,
    partitions: Vec<Partition>,
}

/// A unit, waiting or in flight: these rows of its visit.
#[derive(Default)]
struct Unit {
    rows: Range<usize>,
    visit: u32,
    partitions: u32,
    token: i64,
}

struct InsertThread {
    kind: Insert,
    generator: PartitionGenerator,
    source: SeedSource,
    partitions: Distribution,
    drawing: Drawing,
    visits: Slab<OpenVisit>,
    units: Slab<Unit>,
    sender: Sender,
}

/// Generates the rows of visits when they are sent. Units of a visit are mostly sent one after another, so it remembers
/// its position.
struct Sender {
    generator: PartitionGenerator,
    /// The visit whose rows are being generated, and its current partition.
    at: Option<(u32, usize)>,
    /// Rows of the visit already passed, and rows left in the current partition.
    passed: usize,
    left: usize,
}

impl Sender {
    /// Moves to a row of a visit.
    fn go_to(&mut self, number: u32, visit: &OpenVisit, row: usize) {
        if self.at.is_none_or(|(at, _)| at != number) || self.passed > row {
            (self.at, self.passed, self.left) = (Some((number, 0)), 0, 0);
            if let Some(first) = visit.partitions.first() {
                self.begin(first);
            }
        }
        while self.passed < row && self.enter(visit) {
            // A partition that is skipped entirely need not be walked through.
            if self.passed + self.left <= row {
                self.passed += std::mem::take(&mut self.left);
            } else {
                self.generator.skip_row();
                (self.passed, self.left) = (self.passed + 1, self.left - 1);
            }
        }
    }

    /// The next row of the visit.
    fn next(&mut self, visit: &OpenVisit) -> Option<&Cells> {
        if !self.enter(visit) {
            return None;
        }
        (self.passed, self.left) = (self.passed + 1, self.left - 1);
        self.generator.next_row()
    }

    /// Moves to the next partition if the current one has no more rows. False: there is none.
    fn enter(&mut self, visit: &OpenVisit) -> bool {
        while self.left == 0 {
            let Some((_, partition)) = &mut self.at else { return false };
            *partition += 1;
            let Some(next) = visit.partitions.get(*partition) else { return false };
            self.begin(next);
        }
        true
    }

    fn begin(&mut self, partition: &Partition) {
        self.left = partition.rows;
        if partition.rows > 0 {
            self.generator.write_again(&partition.visit);
        }
    }

    /// A visit has ended: its number may be reused for another.
    fn forget(&mut self, number: u32) {
        self.at = self.at.filter(|(at, _)| *at != number);
    }
}

impl Kind for Insert {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let generator = self.common.generator(thread).unwrap_or_else(|_| self.generator.clone());
        Box::new(InsertThread {
            sender: Sender { generator: generator.clone(), at: None, passed: 0, left: 0 },
            generator,
            source: self.common.source(thread),
            partitions: self.partitions.build(self.seed.wrapping_add(thread as i64)),
            kind: self.clone(),
            drawing: Drawing::default(),
            visits: Slab::new(),
            units: Slab::new(),
        })
    }
}

impl InsertThread {
    /// Chooses the partitions of the next visit and counts their rows. Their values are generated when they are sent.
    fn begin(&mut self, permits: &Permits) -> Option<()> {
        let wanted = u32::try_from(self.partitions.next()).ok().filter(|wanted| *wanted > 0)?;
        let wanted = permits.take(wanted)?;
        let open = self.visits.take();
        let partitions = &mut self.visits[open].partitions;
        partitions.clear();
        partitions.reserve_exact(wanted.min(MOST_RESERVED) as usize);
        let (mut token, mut rows) = (0, 0);
        let (mut found, mut empty) = (0, 0);
        while found < wanted && empty < PATIENCE {
            let Some(mut seed) = self.source.next_write() else { break };
            empty += 1;
            let mut count = 0;
            if self.generator.write(&mut seed) {
                if found == 0 {
                    token = self.generator.token();
                }
                while self.generator.skip_row() {
                    count += 1;
                }
            }
            if count > 0 {
                (found, empty) = (found + 1, 0);
                rows += count;
            }
            if let Some((first, last)) = self.generator.marks() {
                self.source.manager().visited(&seed, first, last);
            }
            partitions.push(Partition { seed, visit: self.generator.visit(), rows: count });
        }
        permits.give_back(wanted - found);
        if found == 0 {
            self.visits.give(open);
            return None;
        }
        let visit = &mut self.visits[open];
        visit.units = 0;
        visit.all_drawn = false;
        visit.failed = false;
        self.drawing = Drawing { open, rows, taken: 0, partitions: found, token };
        Some(())
    }
}

impl KindThread for InsertThread {
    fn draw(&mut self, permits: &Permits) -> Option<Slot> {
        if !self.pending() {
            self.begin(permits)?;
        }
        let visit = &mut self.drawing;
        let size = match (self.kind.batch, self.kind.unit) {
            (None, _) => 1,
            (Some(_), None) => visit.rows,
            (Some(_), Some(unit)) => unit.max(1),
        };
        let (from, to) = (visit.taken, visit.taken.saturating_add(size).min(visit.rows));
        visit.taken = to;
        let whole = from == 0 && to == visit.rows;
        let partitions = if from == 0 { visit.partitions } else { 0 };
        let number = self.units.take();
        self.units[number] = Unit { rows: from..to, visit: visit.open, partitions, token: visit.token };
        let open = &mut self.visits[visit.open];
        open.units += 1;
        open.all_drawn = to == visit.rows;
        // Where each row is a unit of its own, the schedule counts rows.
        Some(Slot { index: number, partitions: if whole { partitions } else { 1 } })
    }

    fn pending(&self) -> bool {
        self.drawing.taken < self.drawing.rows
    }

    fn route(&self, slot: u32, by_token: bool) -> Route {
        self.kind.common.route(self.units[slot].token, by_token)
    }

    fn request(&mut self, slot: u32, sending: &Sending, request: Request<'_>) {
        let InsertThread { kind, units, visits, sender, .. } = self;
        let timestamp_us = (!kind.counters).then_some(sending.unix_us as i64);
        let parameters = Parameters { timestamp_us, ..kind.common.parameters() };
        let Unit { rows, visit: number, .. } = &units[slot];
        let visit = &visits[*number];
        let from = rows.start + sending.step as usize * LARGEST_BATCH;
        let to = (from + LARGEST_BATCH).min(rows.end);
        sender.go_to(*number, visit, from);
        match (kind.batch, kind.common.statement) {
            (Some(batch), statement) if to - from > 1 => {
                let mut request = request.batch(batch, &parameters);
                for _ in from..to {
                    let Some(row) = sender.next(visit) else { break };
                    let mut values = match statement {
                        Some(statement) => request.add(statement),
                        None => request.add_query(&kind.common.cql),
                    };
                    write(row, kind.columns.iter().copied(), &mut values);
                }
            }
            _ => {
                let mut values = kind.common.send(request, &parameters);
                if let Some(row) = sender.next(visit) {
                    write(row, kind.columns.iter().copied(), &mut values);
                }
            }
        }
    }

    fn answer(&mut self, slot: u32, answer: &Answer<'_>, received: &Received, _: Option<&mut Option<Why>>) -> Meaning {
        let Answer::Void = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        let unit = &self.units[slot];
        let done = received.step as usize * LARGEST_BATCH;
        let rows = unit.rows.len().saturating_sub(done).min(LARGEST_BATCH);
        let partitions = if received.step == 0 { unit.partitions } else { 0 };
        let next = if done + rows < unit.rows.len() { Next::Request } else { Next::Done };
        Meaning { next, ..Meaning::done(partitions, rows as u32) }
    }

    fn key(&self, slot: u32) -> String {
        let partitions = &self.visits[self.units[slot].visit].partitions;
        let key = |partition: &Partition| self.kind.common.key_text(&self.generator, partition.seed.value());
        partitions.iter().map(key).collect::<Vec<_>>().join(", ")
    }

    fn statement(&self) -> &str {
        &self.kind.common.cql
    }

    fn end(&mut self, slot: u32, ok: bool) {
        let number = self.units[slot].visit;
        let visit = &mut self.visits[number];
        visit.units -= 1;
        visit.failed |= !ok;
        if visit.units == 0 && visit.all_drawn {
            let seeds = self.source.manager();
            for Partition { seed, .. } in visit.partitions.drain(..) {
                if visit.failed { seeds.given_up(&seed) } else { seeds.written(&seed) }
            }
            self.visits.give(number);
            self.sender.forget(number);
        }
    }

    fn release(&mut self, slot: u32) {
        self.units.give(slot);
    }
}
