//! Operations of the key-value workload: what each load thread draws, sends and checks.

use std::sync::Arc;

use brownout_base::random::{Random, derive};

use super::{
    Drawn, Ending, Finding, KeyValue, Meaning, Received, Route, Sending, ServerError, Table, ThreadWorkload, Ticket,
    Timestamps, Workload,
    fill_progress::FillProgress,
    filling::Filling,
    key_value::{FILLING, FLOWS, READS, WRITES},
    keys::Keys,
};
use crate::{Answer, ErrorClass, Parameters, Request, murmur3_token, value};

const READ: u16 = 0;
const WRITE: u16 = 1;

/// A [`KeyValue`] with what an engine adds.
pub(crate) struct KeyValueLoad {
    pub(crate) workload: KeyValue,
    pub(crate) seed: u64,
    pub(crate) progress: Arc<FillProgress>,
}

impl Workload for KeyValueLoad {
    fn operations(&self) -> Vec<String> {
        vec!["read".to_owned(), "write".to_owned()]
    }

    fn statements(&self) -> Vec<String> {
        vec![self.workload.read_statement(), self.workload.write_statement()]
    }

    fn flows(&self) -> usize {
        FLOWS
    }

    fn tables(&self) -> Vec<Table> {
        vec![Table::from(&self.workload)]
    }

    fn largest_answer(&self) -> usize {
        // Error texts and schema metadata are the longest answers besides values.
        self.workload.value_size as usize + (1 << 20)
    }

    fn thread(&self, thread: usize, threads: usize) -> Box<dyn ThreadWorkload> {
        Box::new(KeyValueThread {
            workload: self.workload.clone(),
            progress: Arc::clone(&self.progress),
            keys: Keys::new(thread, threads, self.workload.population),
            // Streams 0 .. threads belong to the schedule; the mix keeps its stream whatever flows there are.
            random: [1, 2, 3].map(|load| Random::new(derive(self.seed, (load * threads + thread) as u64))),
            open: Vec::new(),
            free: Vec::new(),
            filling: Filling::default(),
        })
    }
}

/// An operation that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    key: u64,
    /// For a write, the version it writes; for a read, the newest version acknowledged before it was first sent.
    version: u64,
    write: bool,
    /// For a write: when it was sent, every request to write its key had been answered. For a read: that holds for the
    /// newest version acknowledged before, and nobody had looked for it yet.
    certain: bool,
    /// Number of the filling that it belongs to.
    filling: Option<u64>,
}

struct KeyValueThread {
    workload: KeyValue,
    progress: Arc<FillProgress>,
    keys: Keys,
    /// Of the mix, of reads alone and of writes alone: how fast one load goes is nothing to the keys of another.
    random: [Random; 3],
    /// By ticket.
    open: Vec<Open>,
    free: Vec<u64>,
    filling: Filling,
}

impl KeyValueThread {
    fn insert(&mut self, open: Open) -> Ticket {
        match self.free.pop() {
            Some(place) => {
                self.open[place as usize] = open;
                Ticket(place)
            }
            None => {
                self.open.push(open);
                Ticket(self.open.len() as u64 - 1)
            }
        }
    }

    fn at(&self, ticket: Ticket) -> &Open {
        &self.open[ticket.0 as usize]
    }

    fn judge_read(&mut self, open: &Open, answer: &Answer<'_>) -> Meaning {
        let Answer::Rows(rows) = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        match rows.cells().next() {
            Some(Some(content)) => match value::verify(content, open.key, self.workload.value_size as usize) {
                None => Meaning::mismatch(),
                Some(version) => {
                    let first = open.certain && self.keys.look(open.key, open.version);
                    let finding = match (version < open.version, first) {
                        (true, true) => Some(Finding::Lost),
                        (true, false) => Some(Finding::Stale),
                        (false, true) => Some(Finding::Seen),
                        (false, false) => None,
                    };
                    Meaning { finding, ..Meaning::done(1, 1) }
                }
            },
            // The row exists but its value is null, which nobody wrote.
            Some(None) => Meaning::mismatch(),
            None if open.version > 0 => Meaning::missing(),
            None => Meaning { finding: Some(Finding::Empty), ..Meaning::done(1, 0) },
        }
    }
}

impl ThreadWorkload for KeyValueThread {
    fn begin(&mut self, flow: usize) {
        if flow == FILLING {
            self.filling = Filling::begin(&self.progress);
        }
    }

    fn draw(&mut self, flow: usize) -> Option<Drawn> {
        let open = if flow == FILLING {
            let key = self.filling.next(&self.keys)?;
            Open { key, version: 0, write: true, certain: true, filling: Some(self.filling.number()) }
        } else {
            let [mix, reads, writes] = &mut self.random;
            let (write, random) = match flow {
                READS => (false, reads),
                WRITES => (true, writes),
                _ => {
                    let (read, write) = (u64::from(self.workload.read), u64::from(self.workload.write));
                    (mix.below(read + write) >= read, mix)
                }
            };
            Open { key: self.keys.draw(random), version: 0, write, certain: true, filling: None }
        };
        let ticket = self.insert(open);
        Some(Drawn { ticket, operation: if open.write { WRITE } else { READ }, partitions: 1 })
    }

    fn route(&self, ticket: Ticket, by_token: bool) -> Route {
        if !by_token {
            return Route::Any;
        }
        Route::Token { table: 0, token: murmur3_token(&self.at(ticket).key.to_be_bytes()) }
    }

    fn request(&mut self, ticket: Ticket, sending: &Sending, request: Request<'_>) {
        let open = &mut self.open[ticket.0 as usize];
        let parameters = Parameters::new(self.workload.consistency);
        if !open.write {
            // An answer to the first attempt may come late, when a second one is on its way.
            if sending.attempt == 0 {
                open.version = self.keys.acknowledged(open.key);
                open.certain = self.keys.is_awaited(open.key);
            }
            let parameters = Parameters { skip_metadata: true, ..parameters };
            request.execute(usize::from(READ), &parameters).value(&open.key.to_be_bytes());
            return;
        }
        // A retry writes the same version.
        if open.version == 0 {
            open.version = self.keys.next_version(sending.unix_us);
        }
        // With an attempt before it that nobody has answered, it is not known when the write was made.
        open.certain &= self.keys.asked(open.key);
        let Open { key, version, .. } = *open;
        let timestamp_us = match self.workload.timestamps {
            Timestamps::Client => Some(version as i64),
            Timestamps::Coordinator => None,
        };
        let parameters = Parameters { timestamp_us, ..parameters };
        request
            .execute(usize::from(WRITE), &parameters)
            .value(&key.to_be_bytes())
            .value_with(|out| value::append(out, key, version, self.workload.value_size as usize));
    }

    fn answer(&mut self, ticket: Ticket, answer: &Answer<'_>, _: &Received) -> Meaning {
        let open = *self.at(ticket);
        if !open.write {
            return self.judge_read(&open, answer);
        }
        self.keys.answered(open.key);
        if *answer != Answer::Void {
            return Meaning::failed(ErrorClass::Unexpected);
        }
        self.keys.acknowledge(open.key, open.version, open.certain);
        Meaning::done(1, 1)
    }

    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        let Open { key, write, .. } = *self.at(ticket);
        if write {
            self.keys.answered(key);
        }
        if let Some(number) = self.at(ticket).filling {
            self.filling.refused(number, error, received, &self.progress);
        }
    }

    fn end(&mut self, ticket: Ticket, ending: &Ending) {
        let Open { key, filling, .. } = *self.at(ticket);
        if let Some(number) = filling {
            self.filling.ended(number, key, ending, &self.progress);
        }
    }

    fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        Consistency,
        wire::{Statements, Version, compose},
    };

    fn thread() -> KeyValueThread {
        let workload = KeyValue {
            keyspace: "k".into(),
            table: "t".into(),
            replication: 1,
            data_centres: BTreeMap::new(),
            consistency: Consistency::One,
            read: 1,
            write: 1,
            population: 1,
            value_size: 100,
            timestamps: Timestamps::Client,
        };
        KeyValueThread {
            keys: Keys::new(0, 1, workload.population),
            workload,
            progress: Arc::default(),
            random: [1, 2, 3].map(Random::new),
            open: Vec::new(),
            free: Vec::new(),
            filling: Filling::default(),
        }
    }

    fn send(thread: &mut KeyValueThread, ticket: Ticket, attempt: u32) {
        let mut statements = Statements::new(Version::V4);
        statements.keep(usize::from(READ), &[1], &[]);
        let sending = Sending { now_ns: 0, unix_us: 1_000, attempt, step: 0 };
        compose(&mut Vec::new(), 1, &statements, |request| thread.request(ticket, &sending, request)).unwrap();
    }

    #[test]
    fn a_read_is_judged_by_what_was_acknowledged_before_its_first_attempt_whichever_is_answered() {
        let mut thread = thread();
        thread.keys.acknowledge(0, 10, true);
        let early = thread.draw(READS).unwrap().ticket;
        send(&mut thread, early, 0);
        thread.keys.acknowledge(0, 20, false);
        send(&mut thread, early, 1);
        let judged_by = |thread: &KeyValueThread, ticket| (thread.at(ticket).version, thread.at(ticket).certain);
        assert_eq!(judged_by(&thread, early), (10, true));
        let later = thread.draw(READS).unwrap().ticket;
        send(&mut thread, later, 0);
        assert_eq!(judged_by(&thread, later), (20, false));
    }
}
