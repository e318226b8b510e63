//! `COUNTER_WRITE`: adds to every counter of one row of `counter1`.
//!
//! An increment that was not answered may have happened or not; a retry may count it twice. That is so in every client.

use std::ops::Range;

use brownout_generate::{
    distribution::{Distribution, Spec},
    seeds::{Seed, SeedSource},
};
use brownout_load::{Answer, ErrorClass, Received, Request, Route, Sending, Verdict};

use super::{Common, key_text};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab};

/// The kind.
pub struct CounterWrite {
    /// What it has in common with the others.
    pub common: Common,
    /// How much is added to each counter.
    pub add: Spec,
    /// Seed of that.
    pub seed: i64,
}

#[derive(Default)]
struct Open {
    bound: Bound,
    key: Range<usize>,
    seed: Option<Seed>,
}

struct CounterWriteThread {
    common: Common,
    seeds: SeedSource,
    add: Distribution,
    open: Slab<Open>,
}

impl Kind for CounterWrite {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let add = self.add.build(self.seed.wrapping_add(thread as i64));
        Box::new(CounterWriteThread {
            common: self.common.clone(),
            seeds: self.common.source(thread),
            add,
            open: Slab::new(),
        })
    }
}

impl KindThread for CounterWriteThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let Some(seed) = self.seeds.next_write() else {
            permits.give_back(1);
            return None;
        };
        let number = self.open.take();
        let Open { bound, key, seed: own } = &mut self.open[number];
        bound.clear();
        for _ in self.common.row.names() {
            bound.value(&self.add.next().to_be_bytes());
        }
        let row = &mut self.common.row;
        *key = bound.value_with(|out| row.key(seed.value(), out));
        self.seeds.manager().visited(&seed, true, true);
        *own = Some(seed);
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        let open = &self.open[place];
        self.common.route(open.bound.at(&open.key), by_token)
    }

    fn request(&mut self, place: u32, _: &Sending, request: Request<'_>) {
        // Increments have no timestamps of clients.
        let parameters = self.common.parameters();
        self.open[place].bound.cells().write(&mut self.common.send(request, &parameters));
    }

    fn answer(&mut self, _: u32, answer: &Answer<'_>, _: &Received, _: Option<&mut Option<Why>>) -> Verdict {
        match answer {
            Answer::Void => Verdict::done(1, 1),
            _ => Verdict::failed(ErrorClass::Unexpected),
        }
    }

    fn key(&self, place: u32) -> String {
        let open = &self.open[place];
        key_text(&open.bound, &open.key)
    }

    fn statement(&self) -> &str {
        &self.common.cql
    }

    fn end(&mut self, place: u32, _: bool) {
        if let Some(seed) = &self.open[place].seed {
            self.seeds.manager().written(seed);
        }
    }

    fn release(&mut self, place: u32) {
        self.open.give(place);
    }
}
