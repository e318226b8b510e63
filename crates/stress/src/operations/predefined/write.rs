//! `WRITE`: one row of `standard1`.

use std::ops::Range;

use brownout_generate::seeds::{Seed, SeedSource};
use brownout_load::{Answer, ErrorClass, Parameters, Received, Request, Route, Sending, Verdict};

use super::{Common, key_text};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab};

/// The kind.
pub struct Write(pub Common);

#[derive(Default)]
struct Open {
    bound: Bound,
    key: Range<usize>,
    seed: Option<Seed>,
}

struct WriteThread {
    common: Common,
    seeds: SeedSource,
    open: Slab<Open>,
    scratch: Vec<u8>,
}

impl Kind for Write {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(WriteThread {
            common: self.0.clone(),
            seeds: self.0.source(thread),
            open: Slab::new(),
            scratch: Vec::new(),
        })
    }
}

impl KindThread for WriteThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let Some(seed) = self.seeds.next_write() else {
            permits.give_back(1);
            return None;
        };
        let number = self.open.take();
        let Open { bound, key, seed: own } = &mut self.open[number];
        self.scratch.clear();
        self.common.row.key(seed.value(), &mut self.scratch);
        bound.clear();
        self.common.row.cells(&self.scratch, bound);
        *key = bound.value(&self.scratch);
        self.seeds.manager().visited(&seed, true, true);
        *own = Some(seed);
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        let open = &self.open[place];
        self.common.route(open.bound.at(&open.key), by_token)
    }

    fn request(&mut self, place: u32, sending: &Sending, request: Request<'_>) {
        let parameters = Parameters { timestamp_us: Some(sending.unix_us as i64), ..self.common.parameters() };
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
