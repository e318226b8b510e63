//! Operations of the key-value workload: what each load thread draws, sends and checks.

use std::sync::Arc;

use brownout_base::random::{Random, derive};

use super::{
    Drawn, Ended, Ending, Finding, KeyValue, Received, Route, Sending, ServerError, Table, ThreadWorkload, Ticket,
    Verdict, Workload, keys::Keys, population::Population,
};
use crate::{Answer, ErrorClass, Parameters, Request, murmur3_token, value};

/// The flow of reads and writes by weight.
pub(crate) const MIX: usize = 0;
/// The flow that writes every key once.
pub(crate) const FILLING: usize = 1;
/// The flow of reads alone.
pub(crate) const READS: usize = 2;
/// The flow of writes alone.
pub(crate) const WRITES: usize = 3;
/// How many there are.
pub(crate) const FLOWS: usize = 4;

const READ: u16 = 0;
const WRITE: u16 = 1;

/// A [`KeyValue`] with what an engine adds.
pub(crate) struct KeyValueLoad {
    pub(crate) workload: KeyValue,
    pub(crate) seed: u64,
    pub(crate) population: Arc<Population>,
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
            population: Arc::clone(&self.population),
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
    /// For a write, the version it writes; for a read, the newest version acknowledged before.
    version: u64,
    write: bool,
    /// Number of the filling that it belongs to.
    filling: Option<u64>,
}

/// How far this thread has come in writing every key.
#[derive(Debug, Default)]
struct Filling {
    number: u64,
    /// Index of the next key that was never tried.
    next: u64,
    /// Keys whose write has failed.
    failed: Vec<u64>,
    /// A write was permanently refused.
    over: bool,
}

struct KeyValueThread {
    workload: KeyValue,
    population: Arc<Population>,
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

    fn next_to_fill(&mut self) -> Option<u64> {
        let filling = &mut self.filling;
        if filling.over {
            None
        } else if filling.next < self.keys.count() {
            filling.next += 1;
            Some(self.keys.at(filling.next - 1))
        } else {
            filling.failed.pop()
        }
    }

    fn judge_read(&self, open: &Open, answer: &Answer<'_>) -> Verdict {
        let Answer::Rows(rows) = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        match rows.cells().next() {
            Some(Some(content)) => match value::verify(content, open.key, self.workload.value_size as usize) {
                None => Verdict::mismatch(),
                Some(version) if version < open.version => {
                    Verdict { finding: Some(Finding::Stale), ..Verdict::done(1, 1) }
                }
                Some(_) => Verdict::done(1, 1),
            },
            // The row exists but its value is null, which nobody wrote.
            Some(None) => Verdict::mismatch(),
            None if open.version > 0 => Verdict::missing(),
            None => Verdict { finding: Some(Finding::Empty), ..Verdict::done(1, 0) },
        }
    }
}

impl ThreadWorkload for KeyValueThread {
    fn begin(&mut self, flow: usize) {
        if flow == FILLING {
            self.filling = Filling { number: self.population.tally().number, ..Filling::default() };
        }
    }

    fn draw(&mut self, flow: usize) -> Option<Drawn> {
        let open = if flow == FILLING {
            let key = self.next_to_fill()?;
            Open { key, version: 0, write: true, filling: Some(self.filling.number) }
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
            Open { key: self.keys.draw(random), version: 0, write, filling: None }
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
            open.version = self.keys.acknowledged(open.key);
            let parameters = Parameters { skip_metadata: true, ..parameters };
            request.execute(usize::from(READ), &parameters).value(&open.key.to_be_bytes());
            return;
        }
        // A retry writes the same version.
        if open.version == 0 {
            open.version = self.keys.next_version(sending.unix_us);
        }
        let Open { key, version, .. } = *open;
        let parameters = Parameters { timestamp_us: Some(version as i64), ..parameters };
        request
            .execute(usize::from(WRITE), &parameters)
            .value(&key.to_be_bytes())
            .value_with(|out| value::append(out, key, version, self.workload.value_size as usize));
    }

    fn answer(&mut self, ticket: Ticket, answer: &Answer<'_>, _: &Received) -> Verdict {
        let open = *self.at(ticket);
        if !open.write {
            return self.judge_read(&open, answer);
        }
        if *answer != Answer::Void {
            return Verdict::failed(ErrorClass::Unexpected);
        }
        self.keys.acknowledge(open.key, open.version);
        Verdict::done(1, 1)
    }

    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        if let Some(filling) = self.at(ticket).filling
            && error.class == ErrorClass::Invalid
            && !received.late
        {
            self.filling.over |= filling == self.filling.number;
            let reason = format!("{} (code {:#06x})", error.message, error.code);
            self.population.refuse(filling, received.coordinator, reason);
        }
    }

    fn end(&mut self, ticket: Ticket, ending: &Ending) {
        let Open { key, filling, .. } = *self.at(ticket);
        if let Some(number) = filling {
            let acknowledged = ending.result == Ended::Ok;
            self.population.written(number, acknowledged);
            if !acknowledged && number == self.filling.number {
                self.filling.failed.push(key);
            }
        }
    }

    fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket.0);
    }
}
