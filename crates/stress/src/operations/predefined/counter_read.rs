//! `COUNTER_READ`: one row of `counter1`, which has to be there.

use std::ops::Range;

use brownout_generate::seeds::SeedSource;
use brownout_load::{Answer, ErrorClass, Received, Request, Route, Sending, Verdict};

use super::{Common, key_text};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab};

/// The kind.
pub struct CounterRead {
    /// What it has in common with the others.
    pub common: Common,
    /// A row has to be there.
    pub validates: bool,
}

#[derive(Default)]
struct Open {
    bound: Bound,
    key: Range<usize>,
}

struct CounterReadThread {
    common: Common,
    seeds: SeedSource,
    validates: bool,
    open: Slab<Open>,
}

impl Kind for CounterRead {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(CounterReadThread {
            common: self.common.clone(),
            seeds: self.common.source(thread),
            validates: self.validates,
            open: Slab::new(),
        })
    }
}

impl KindThread for CounterReadThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let Some(seed) = self.seeds.next_read() else {
            permits.give_back(1);
            return None;
        };
        let number = self.open.take();
        let Open { bound, key } = &mut self.open[number];
        bound.clear();
        let row = &mut self.common.row;
        *key = bound.value_with(|out| row.key(seed.value(), out));
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        let open = &self.open[place];
        self.common.route(open.bound.at(&open.key), by_token)
    }

    fn request(&mut self, place: u32, _: &Sending, request: Request<'_>) {
        let parameters = self.common.parameters();
        self.open[place].bound.cells().write(&mut self.common.send(request, &parameters));
    }

    fn answer(&mut self, _: u32, answer: &Answer<'_>, _: &Received, told: Option<&mut Option<Why>>) -> Verdict {
        let Answer::Rows(rows) = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        if rows.is_empty() && self.validates {
            if let Some(told) = told {
                *told = Some(Why::Content("row empty/missing (expected a row of counters)".to_owned()));
            }
            return Verdict::missing();
        }
        let found = rows.len() as u32;
        Verdict::done(found.min(1), found)
    }

    fn key(&self, place: u32) -> String {
        let open = &self.open[place];
        key_text(&open.bound, &open.key)
    }

    fn statement(&self) -> &str {
        &self.common.cql
    }

    fn release(&mut self, place: u32) {
        self.open.give(place);
    }
}
