//! Operations as the engine needs them: one [`Workload`] made of many [`Kind`]s.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use brownout_base::clock::monotonic_ns;
use brownout_generate::{distribution::Spec, java::WeightsError};
use brownout_load::{
    Answer, Drawn, Ended, Ending, Meaning, Next, Received, Request, Route, Sending, ServerError, Table, ThreadWorkload,
    Ticket, Workload,
};

use super::{
    choice::Choice,
    complaints::{self, Complaints, Why},
    kind::{Kind, KindThread, Slot},
    permits::Permits,
};

/// A kind of operation with the name under which it is counted. Several kinds may share one name.
pub struct Named {
    /// As it is printed: `WRITE`, `insert`, `spec.q1`.
    pub name: String,
    /// What it does.
    pub kind: Box<dyn Kind>,
    /// Index of the only coordinator that it goes to; `None`: it routes itself.
    pub pin: Option<u16>,
}

/// One flow of operations.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Indices of the kinds in [`Operations::kinds`], with their weights.
    pub kinds: Vec<(usize, f64)>,
    /// How many operations of the same kind follow one another.
    pub run: Spec,
}

/// Everything that a run asks of the database.
pub struct Operations {
    /// What it asks.
    pub kinds: Vec<Named>,
    /// In which flows; each has a pace of its own.
    pub flows: Vec<Flow>,
    /// The CQL statements, to which kinds refer by index.
    pub statements: Vec<String>,
    /// The tables, to which routes refer by index.
    pub tables: Vec<Table>,
    /// How many partitions may be visited.
    pub permits: Permits,
    /// A failed operation ends the run.
    pub stop_on_error: bool,
    /// Failures are reported with their statements.
    pub tell_statements: bool,
    /// Seed of the choice.
    pub seed: i64,
}

/// [`Operations`] that can be given to an engine.
pub struct StressWorkload {
    operations: Operations,
    names: Vec<String>,
    choices: Vec<Choice>,
    shared: Arc<Shared>,
}

/// What all threads and the runner look at.
struct Shared {
    permits: Permits,
    complaints: Complaints,
    /// By flow: when users (or schedules) found that there are no more operations.
    dry: Vec<Dry>,
    stop_on_error: bool,
    tell_statements: bool,
}

impl StressWorkload {
    /// Combines kinds and flows.
    ///
    /// # Errors
    /// A flow whose weights are negative or all 0.
    pub fn new(mut operations: Operations) -> Result<Self, WeightsError> {
        let mut names: Vec<String> = Vec::new();
        for named in &operations.kinds {
            if !names.contains(&named.name) {
                names.push(named.name.clone());
            }
        }
        let choice = |(place, flow): (usize, &Flow)| {
            Choice::new(&flow.kinds, &flow.run, operations.seed.wrapping_add(place as i64))
        };
        let choices = operations.flows.iter().enumerate().map(choice).collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared {
            permits: std::mem::replace(&mut operations.permits, Permits::new(None)),
            complaints: Complaints::new(),
            dry: operations.flows.iter().map(|_| Dry::default()).collect(),
            stop_on_error: operations.stop_on_error,
            tell_statements: operations.tell_statements,
        });
        Ok(StressWorkload { operations, names, choices, shared })
    }

    /// Permits of the run.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }

    /// Names of operations with conditional statements.
    pub fn conditional(&self) -> Vec<String> {
        let kinds = self.operations.kinds.iter().filter(|named| named.kind.is_conditional());
        kinds.map(|named| named.name.clone()).collect()
    }

    /// The messages about failures.
    pub fn complaints(&self) -> &Complaints {
        &self.shared.complaints
    }

    /// Whether some user has found no more operations, so that it is worth asking the engine whether all have.
    pub fn may_be_exhausted(&self) -> bool {
        self.shared.dry.iter().any(|dry| dry.count.load(Ordering::Relaxed) > 0)
    }

    /// Until when (CLOCK_MONOTONIC, ns) operations were due, once every flow has reported that there are no more: for a
    /// schedule, when it first called for one in vain; for users, who find out one by one, the mean of those times. A
    /// user whose last operation is never answered has been busy all the time, and the others were not.
    pub fn due_until_ns(&self) -> Option<u64> {
        self.shared.dry.iter().map(Dry::mean_ns).try_fold(0, |latest, flow| Some(flow?.max(latest)))
    }
}

impl Workload for StressWorkload {
    fn operations(&self) -> Vec<String> {
        self.names.clone()
    }

    fn statements(&self) -> Vec<String> {
        self.operations.statements.clone()
    }

    fn flows(&self) -> usize {
        self.choices.len()
    }

    fn tables(&self) -> Vec<Table> {
        self.operations.tables.clone()
    }

    fn thread(&self, thread: usize, threads: usize) -> Box<dyn ThreadWorkload> {
        let name = |named: &Named| self.names.iter().position(|name| *name == named.name).unwrap_or(0);
        // Every thread has its own seed for the choice.
        let reseeded = |(place, flow): (usize, &Flow)| {
            let seed = self.operations.seed.wrapping_add((thread * self.choices.len() + place) as i64);
            Choice::new(&flow.kinds, &flow.run, seed).unwrap_or_else(|_| self.choices[place].clone())
        };
        Box::new(Part {
            kinds: self.operations.kinds.iter().map(|named| named.kind.thread(thread, threads)).collect(),
            names: self.operations.kinds.iter().map(|named| u16::try_from(name(named)).unwrap_or(u16::MAX)).collect(),
            pins: self.operations.kinds.iter().map(|named| named.pin).collect(),
            choices: self.operations.flows.iter().enumerate().map(reseeded).collect(),
            shared: Arc::clone(&self.shared),
            reasons: HashMap::new(),
        })
    }
}

/// Users of a flow that found no more operations: how many, and the sum of the times, ns.
#[derive(Default)]
struct Dry {
    count: AtomicUsize,
    first_ns: AtomicU64,
    /// Relative to the first.
    sum_ns: AtomicU64,
}

impl Dry {
    fn told(&self, now_ns: u64) {
        let first = self.first_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
        let first_ns = first.unwrap_or_else(|known| known);
        let since_ns = if first_ns == 0 { 0 } else { now_ns.saturating_sub(first_ns) };
        self.sum_ns.fetch_add(since_ns, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn mean_ns(&self) -> Option<u64> {
        let count = self.count.load(Ordering::Acquire) as u64;
        let since_ns = self.sum_ns.load(Ordering::Relaxed).checked_div(count)?;
        Some(self.first_ns.load(Ordering::Relaxed) + since_ns)
    }
}

/// One thread's part.
struct Part {
    kinds: Vec<Box<dyn KindThread>>,
    /// The name of each kind.
    names: Vec<u16>,
    pins: Vec<Option<u16>>,
    choices: Vec<Choice>,
    shared: Arc<Shared>,
    /// Why open operations have failed so far; only those that will be reported.
    reasons: HashMap<u64, Why>,
}

/// A ticket holds the kind and the slot.
fn ticket(kind: usize, slot: u32) -> Ticket {
    Ticket((kind as u64) << 32 | u64::from(slot))
}

fn parts(ticket: Ticket) -> (usize, u32) {
    ((ticket.0 >> 32) as usize, ticket.0 as u32)
}

impl Part {
    fn draw_of(&mut self, kind: usize) -> Option<Drawn> {
        let Slot { index, partitions } = self.kinds[kind].draw(&self.shared.permits)?;
        Some(Drawn { ticket: ticket(kind, index), operation: self.names[kind], partitions })
    }
}

impl ThreadWorkload for Part {
    fn draw(&mut self, flow: usize) -> Option<Drawn> {
        let kind = self.choices[flow].draw();
        if let Some(drawn) = self.draw_of(kind) {
            return Some(drawn);
        }
        // Another kind may be in the middle of a visit.
        let begun = self.choices[flow].kinds().iter().copied().find(|kind| self.kinds[*kind].pending());
        let drawn = begun.and_then(|kind| self.draw_of(kind));
        if drawn.is_none() && !self.more_later(flow) {
            self.shared.dry[flow].told(monotonic_ns());
        }
        drawn
    }

    fn more_later(&self, flow: usize) -> bool {
        self.choices[flow].kinds().iter().any(|kind| self.kinds[*kind].more_later())
    }

    fn route(&self, ticket: Ticket, by_token: bool) -> Route {
        let (kind, slot) = parts(ticket);
        match self.pins[kind] {
            Some(pin) => Route::Coordinator(pin),
            None => self.kinds[kind].route(slot, by_token),
        }
    }

    fn request(&mut self, ticket: Ticket, sending: &Sending, request: Request<'_>) {
        let (kind, slot) = parts(ticket);
        self.kinds[kind].request(slot, sending, request);
    }

    fn answer(&mut self, ticket: Ticket, answer: &Answer<'_>, received: &Received) -> Meaning {
        let (kind, slot) = parts(ticket);
        let mut why = None;
        let told = self.shared.complaints.wants(received.at_ns).then_some(&mut why);
        let meaning = self.kinds[kind].answer(slot, answer, received, told);
        if let (Next::Failed(_), Some(why), false) = (meaning.next, why, received.late) {
            self.reasons.insert(ticket.0, why);
        }
        meaning
    }

    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        if !received.late && self.shared.complaints.wants(received.at_ns) {
            let why = Why::Error { class: complaints::exception(error.class), message: error.message.to_owned() };
            self.reasons.insert(ticket.0, why);
        }
    }

    fn end(&mut self, ticket: Ticket, ending: &Ending) {
        let (kind, slot) = parts(ticket);
        let class = match ending.result {
            Ended::Ok => None,
            Ended::Failed(class) => Some(complaints::exception(class)),
            Ended::TimedOut => Some(complaints::TIMED_OUT),
            Ended::NeverSent => Some(complaints::NEVER_SENT),
        };
        let reason = if self.reasons.is_empty() { None } else { self.reasons.remove(&ticket.0) };
        if let Some(class) = class {
            if self.shared.stop_on_error {
                self.shared.permits.stop();
            }
            let timed_out = matches!(ending.result, Ended::TimedOut | Ended::NeverSent);
            let kinds = &self.kinds;
            let tell_statements = self.shared.tell_statements;
            self.shared.complaints.failed(monotonic_ns(), ending.requests, || {
                let mut why = match reason {
                    // The error of an earlier attempt does not explain why the last one was not answered.
                    Some(reason) if !timed_out => reason,
                    _ => Why::Error { class, message: String::new() },
                };
                if let Why::Error { message, .. } = &mut why
                    && tell_statements
                {
                    *message = format!("{}: {message}", kinds[kind].statement());
                }
                (kinds[kind].key(slot), why)
            });
        }
        self.kinds[kind].end(slot, class.is_none());
    }

    fn release(&mut self, ticket: Ticket) {
        let (kind, slot) = parts(ticket);
        self.kinds[kind].release(slot);
    }
}
