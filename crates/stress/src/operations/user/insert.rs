//! `insert`: the rows of a visit, in a batch, or each by itself.
//!
//! A visit goes to one partition or to several. Its rows travel in units: all in one batch, in batches of a size, or one
//! by one. Every unit is an operation of its own, asynchronous to the others; only a batch that holds more statements
//! than the protocol can count is several requests of one operation, one after the other.

use brownout_generate::{
    distribution::{Distribution, Spec},
    rows::PartitionGenerator,
    seeds::{Seed, SeedSource},
};
use brownout_load::{Answer, BatchKind, ErrorClass, Next, Parameters, Received, Request, Route, Sending, Verdict};

use super::{Common, PATIENCE, bind};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab};

/// Statements that a batch can count (section 4.1.7 of the protocol specification).
pub const LARGEST_BATCH: usize = 65_535;

/// The kind.
#[derive(Clone)]
pub struct Insert {
    /// What it has in common with the others.
    pub common: Common,
    /// Columns by their place in the layout, in the order of the statement's markers.
    pub columns: Vec<usize>,
    /// Partitions of a visit.
    pub partitions: Spec,
    /// What holds the rows of a visit; `None`: nothing.
    pub batch: Option<BatchKind>,
    /// Rows in a batch at the most; `None`: all of the visit.
    pub unit: Option<usize>,
    /// It increments counters: such writes have no timestamps of clients.
    pub counters: bool,
    /// Seed of the number of partitions.
    pub seed: i64,
    /// A generator that was made with success; threads that cannot make theirs (which cannot be) use it.
    pub generator: PartitionGenerator,
}

/// Rows with where each ends.
#[derive(Default)]
struct Rows {
    bound: Bound,
    ends: Vec<usize>,
}

impl Rows {
    fn clear(&mut self) {
        self.bound.clear();
        self.ends.clear();
    }

    fn start(&self, row: usize) -> usize {
        if row == 0 { 0 } else { self.ends[row - 1] }
    }
}

/// A visit: made whole, sent in units.
#[derive(Default)]
struct Visit {
    rows: Rows,
    /// Rows that are units already.
    taken: usize,
    /// Its place among those that are open.
    open: u32,
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
    seeds: Vec<Seed>,
}

/// A unit on its way.
#[derive(Default)]
struct Unit {
    rows: Rows,
    visit: u32,
    partitions: u32,
    token: i64,
}

struct InsertThread {
    kind: Insert,
    generator: PartitionGenerator,
    source: SeedSource,
    partitions: Distribution,
    visit: Visit,
    visits: Slab<OpenVisit>,
    units: Slab<Unit>,
}

impl Kind for Insert {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(InsertThread {
            generator: self.common.generator(thread).unwrap_or_else(|_| self.generator.clone()),
            source: self.common.source(thread),
            partitions: self.partitions.build(self.seed.wrapping_add(thread as i64)),
            kind: self.clone(),
            visit: Visit::default(),
            visits: Slab::new(),
            units: Slab::new(),
        })
    }
}

impl InsertThread {
    /// Makes the rows of the next visit.
    fn begin(&mut self, permits: &Permits) -> Option<()> {
        let wanted = u32::try_from(self.partitions.next()).ok().filter(|wanted| *wanted > 0)?;
        let wanted = permits.take(wanted)?;
        let open = self.visits.take();
        let seeds = &mut self.visits[open].seeds;
        seeds.clear();
        let rows = &mut self.visit.rows;
        rows.clear();
        let mut token = 0;
        let (mut found, mut empty) = (0, 0);
        while found < wanted && empty < PATIENCE {
            let Some(mut seed) = self.source.next_write() else { break };
            empty += 1;
            if self.generator.write(&mut seed) {
                if found == 0 {
                    token = self.generator.token();
                }
                let before = rows.ends.len();
                while let Some(row) = self.generator.next_row() {
                    bind(&mut rows.bound, row, self.kind.columns.iter().copied());
                    rows.ends.push(rows.bound.len());
                }
                if rows.ends.len() > before {
                    (found, empty) = (found + 1, 0);
                }
            }
            if let Some((first, last)) = self.generator.marks() {
                self.source.manager().visited(&seed, first, last);
            }
            seeds.push(seed);
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
        self.visit.taken = 0;
        self.visit.open = open;
        self.visit.partitions = found;
        self.visit.token = token;
        Some(())
    }
}

impl KindThread for InsertThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        if !self.pending() {
            self.begin(permits)?;
        }
        let visit = &mut self.visit;
        let all = visit.rows.ends.len();
        let size = match (self.kind.batch, self.kind.unit) {
            (None, _) => 1,
            (Some(_), None) => all,
            (Some(_), Some(unit)) => unit.max(1),
        };
        let (from, to) = (visit.taken, (visit.taken + size).min(all));
        let number = self.units.take();
        let unit = &mut self.units[number];
        if from == 0 && to == all {
            std::mem::swap(&mut unit.rows, &mut visit.rows);
        } else {
            let (start, end) = (visit.rows.start(from), visit.rows.ends[to - 1]);
            unit.rows.clear();
            unit.rows.bound.take_from(&visit.rows.bound, start, end);
            unit.rows.ends.extend(visit.rows.ends[from..to].iter().map(|end| end - start));
        }
        unit.visit = visit.open;
        unit.token = visit.token;
        unit.partitions = if from == 0 { visit.partitions } else { 0 };
        visit.taken = to;
        let open = &mut self.visits[visit.open];
        open.units += 1;
        open.all_drawn = to == all;
        if open.all_drawn {
            // Whatever the swap has left is not to be drawn.
            visit.rows.clear();
            visit.taken = 0;
        }
        // Where rows are units of their own, the schedule counts these.
        let whole = from == 0 && to == all;
        Some(Place { number, partitions: if whole { unit.partitions } else { 1 } })
    }

    fn pending(&self) -> bool {
        self.visit.taken < self.visit.rows.ends.len()
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        self.kind.common.route(self.units[place].token, by_token)
    }

    fn request(&mut self, place: u32, sending: &Sending, request: Request<'_>) {
        let timestamp_us = (!self.kind.counters).then_some(sending.unix_us as i64);
        let parameters = Parameters { timestamp_us, ..self.kind.common.parameters() };
        let Rows { bound, ends } = &self.units[place].rows;
        let from = sending.step as usize * LARGEST_BATCH;
        let to = (from + LARGEST_BATCH).min(ends.len());
        let start = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
        match (self.kind.batch, self.kind.common.statement) {
            (Some(batch), statement) if to - from > 1 => {
                let mut request = request.batch(batch, &parameters);
                let mut begin = start(from);
                for end in &ends[from..to] {
                    let mut values = match statement {
                        Some(statement) => request.add(statement),
                        None => request.add_query(&self.kind.common.cql),
                    };
                    bound.between(begin, *end).write(&mut values);
                    begin = *end;
                }
            }
            _ => {
                let mut values = self.kind.common.send(request, &parameters);
                bound.between(start(from), ends[from]).write(&mut values);
            }
        }
    }

    fn answer(&mut self, place: u32, answer: &Answer<'_>, received: &Received, _: Option<&mut Option<Why>>) -> Verdict {
        let Answer::Void = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        let unit = &self.units[place];
        let done = received.step as usize * LARGEST_BATCH;
        let rows = unit.rows.ends.len().saturating_sub(done).min(LARGEST_BATCH);
        let partitions = if received.step == 0 { unit.partitions } else { 0 };
        let next = if done + rows < unit.rows.ends.len() { Next::Request } else { Next::Done };
        Verdict { next, ..Verdict::done(partitions, rows as u32) }
    }

    fn key(&self, place: u32) -> String {
        let seeds = &self.visits[self.units[place].visit].seeds;
        let keys = seeds.iter().map(|seed| self.kind.common.key_text(&self.generator, seed.value()));
        keys.collect::<Vec<_>>().join(", ")
    }

    fn statement(&self) -> &str {
        &self.kind.common.cql
    }

    fn end(&mut self, place: u32, ok: bool) {
        let number = self.units[place].visit;
        let visit = &mut self.visits[number];
        visit.units -= 1;
        visit.failed |= !ok;
        if visit.units == 0 && visit.all_drawn {
            let seeds = self.source.manager();
            for seed in visit.seeds.drain(..) {
                if visit.failed { seeds.given_up(&seed) } else { seeds.written(&seed) }
            }
            self.visits.give(number);
        }
    }

    fn release(&mut self, place: u32) {
        self.units.give(place);
    }
}
