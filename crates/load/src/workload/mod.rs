//! What is asked of the database: the traits between the engine and those who define operations.
//!
//! The engine knows when an operation is due, where it goes, how long it took and how it ended. A [`Workload`] knows
//! what is asked and what an answer means. One operation is one or more requests, one after another: retries, pages,
//! and whatever else belongs to one visit.
//!
//! The life of an operation, as its [`ThreadWorkload`] sees it:
//!
//! ```text
//! draw → route → request → answer ─┬─ Next::Done, Next::Failed ──────────────→ end → release
//!          ↑        ↑      refused │
//!          │        └── Next::Page ┤ (the same coordinator)
//!          └──────── Next::Request ┤ (a coordinator of its own)
//!          └──────────────── retry ┘ (if configured, after a failure of such a class)
//! ```
//!
//! `end` comes once, as soon as the outcome is certain; `release` comes once, after it, when no late answer can come
//! any more, or none is waited for. Between the two, `answer` may be called with [`Received::late`]. An operation that
//! finds no connection in time goes from `draw` to `end` ([`Ending::NeverSent`]) without a request.
//!
//! That is how Cassandra is asked. An etcd ([`crate::DataPath::Etcd`]) is asked with `call` in the place of `request`, and
//! judged with `reply` in the place of `answer`.

mod fill_progress;
mod filling;
mod key_value;
mod key_value_thread;
mod keys;

pub(crate) use fill_progress::FillProgress;
pub(crate) use filling::Filling;
pub(crate) use key_value::{FILLING, MIX};
pub use key_value::{KeyValue, Timestamps};
pub(crate) use key_value_thread::KeyValueLoad;
pub(crate) use keys::Keys;

use crate::{Answer, Call, ErrorClass, Reply, Request};

/// What is asked of the database; shared by all load threads.
pub trait Workload: Send + Sync + 'static {
    /// Names of the operations, which are the rows of the account: `read`, `insert`, `spec.q1`. At most 65,535.
    fn operations(&self) -> Vec<String>;

    /// The CQL to prepare on every connection; a request names a statement by its index in this list.
    ///
    /// A statement that a coordinator refuses is an error of [`crate::Engine::launch`], with the server's words.
    fn statements(&self) -> Vec<String>;

    /// How many flows of operations there are. Each has a pace of its own ([`crate::Engine::set_paces`]).
    fn flows(&self) -> usize {
        1
    }

    /// The tables whose token rings are read at the start if operations are balanced by token; [`Route::Token`] names
    /// one by its index. Tables of one keyspace share a ring, so one of them is enough.
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    /// The largest body of an answer in bytes. A longer one is garbage, and the connection is closed.
    fn largest_answer(&self) -> usize {
        LARGEST_ANSWER
    }

    /// What is watched of an etcd, and by how many; `None`: nothing is.
    fn watched(&self) -> Option<WatchedRange> {
        None
    }

    /// Creates the part of load thread number `thread` (from 0) of `threads`.
    fn thread(&self, thread: usize, threads: usize) -> Box<dyn ThreadWorkload>;
}

/// The largest frame that the protocol allows: 256 MiB (`native_protocol_v4.spec`, section 2.5).
pub const LARGEST_ANSWER: usize = 256 << 20;

/// One load thread's part of a [`Workload`]: draws operations, writes their requests, judges the answers.
///
/// Only that thread calls it, so it needs no locks. All calls are on the hot path: nothing in them should allocate,
/// wait, or make a system call.
pub trait ThreadWorkload: Send {
    /// A pace other than [`crate::Pace::Idle`] comes into force on `flow`. Operations drawn before may still be open.
    fn begin(&mut self, flow: usize) {
        let _ = flow;
    }

    /// The next operation of `flow`. Called when the operation is due, or when a user of a closed loop is free.
    ///
    /// `None`: there are no more. An open schedule then ends; in a closed loop, so does the user who asked. Neither
    /// asks again until another pace is set.
    fn draw(&mut self, flow: usize) -> Option<Drawn>;

    /// Asked when [`ThreadWorkload::draw`] has just returned `None`: whether there will be more once open operations
    /// are over ([`ThreadWorkload::release`]). Then the next operation is drawn; what falls due in the meantime waits.
    fn more_later(&self, flow: usize) -> bool {
        let _ = flow;
        false
    }

    /// Where the next request of the operation may go. Asked before every request except those for a next page.
    ///
    /// Unless operations are balanced `by_token`, a [`Route::Token`] is the same as [`Route::Any`], and the token need
    /// not be computed.
    fn route(&self, ticket: Ticket, by_token: bool) -> Route;

    /// Writes the request to send now: the first one, the next page, or the same again after a failure. On CQL
    /// connections only.
    fn request(&mut self, ticket: Ticket, sending: &Sending, request: Request<'_>) {
        let _ = (ticket, sending, request);
    }

    /// The same on connections to etcd.
    fn call(&mut self, ticket: Ticket, sending: &Sending, call: Call<'_>) {
        let _ = (ticket, sending, call);
    }

    /// What an answer means. Server errors do not come here ([`ThreadWorkload::refused`]), nor do timeouts and lost
    /// connections ([`ThreadWorkload::end`]).
    ///
    /// Of a late answer only the finding counts: the next step has been decided without it. A paging state that is
    /// needed for the next page must be copied.
    fn answer(&mut self, ticket: Ticket, answer: &Answer<'_>, received: &Received) -> Meaning {
        let _ = (ticket, answer, received);
        Meaning::failed(ErrorClass::Unexpected)
    }

    /// The same of a reply to [`ThreadWorkload::call`].
    fn reply(&mut self, ticket: Ticket, reply: Reply, received: &Received) -> Meaning {
        let _ = (ticket, reply, received);
        Meaning::failed(ErrorClass::Unexpected)
    }

    /// The version that the operation writes, by which watchers know its event; `None`: it writes nothing, or has written
    /// nothing. Asked after [`ThreadWorkload::call`] and after [`ThreadWorkload::reply`], where something is watched.
    /// Later writes of a thread have greater versions.
    fn version(&self, ticket: Ticket) -> Option<u64> {
        let _ = ticket;
        None
    }

    /// The version of a value that a watcher was told of; `None`: none of this workload's.
    fn event(&self, key: &[u8], value: &[u8]) -> Option<u64> {
        let _ = (key, value);
        None
    }

    /// The server has answered with an error, or the request could not be written ([`ErrorClass::Unwritable`], code 0).
    /// The engine decides what follows.
    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        let _ = (ticket, error, received);
    }

    /// The outcome of the operation is final. Called once for every operation drawn.
    fn end(&mut self, ticket: Ticket, ending: &Ending);

    /// No further calls concern this operation, so its slot can be reused. Called once for every operation drawn, after
    /// [`ThreadWorkload::end`].
    fn release(&mut self, ticket: Ticket);
}

/// A table, by names as they stand in the schema (without quotes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
}

impl From<&KeyValue> for Table {
    fn from(workload: &KeyValue) -> Self {
        Table { keyspace: workload.keyspace.clone(), name: workload.table.clone() }
    }
}

/// Keys of an etcd that are watched from the start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRange {
    /// The first of them.
    pub from: Vec<u8>,
    /// The first behind them.
    pub end: Vec<u8>,
    /// How many watches on all of them there are, at most [`crate::EtcdLoad::MOST_WATCHERS`]. They are spread over the
    /// coordinators.
    pub watchers: u32,
}

/// Identifies an operation between engine and workload: its index in a list of the workload's own. The engine only
/// passes it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// An operation that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Identifies it in later calls.
    pub ticket: Ticket,
    /// Its index in [`Workload::operations`].
    pub operation: u16,
    /// How many partitions it visits: it advances the schedule of [`crate::Pace::Limited`] by as many steps.
    pub partitions: u32,
}

/// Where a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To any coordinator.
    Any,
    /// To a replica of this token, if operations are balanced by token, else to any coordinator.
    Token {
        /// Index in [`Workload::tables`].
        table: u16,
        /// See [`crate::murmur3_token`].
        token: i64,
    },
    /// To this one of [`crate::EngineConfig::coordinators`] and to no other: without a connection to it the operation
    /// waits until it is connected or the operation times out.
    Coordinator(u16),
}

/// Context of a request to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Now, on CLOCK_MONOTONIC in ns.
    pub now_ns: u64,
    /// Now, in µs since 1970; unlike the system's clock it never jumps, so later writes have later timestamps.
    pub unix_us: u64,
    /// How often this request was sent before: 0 on the first try.
    pub attempt: u32,
    /// How many requests of this operation were answered before: pages, and those that ended with [`Next::Request`].
    pub step: u32,
}

/// Context of an answer to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// When it came, on CLOCK_MONOTONIC in ns.
    pub at_ns: u64,
    /// The operation, or this attempt, had timed out before.
    pub late: bool,
    /// [`Sending::step`] of the request.
    pub step: u32,
    /// Index of the coordinator that answered in [`crate::EngineConfig::coordinators`].
    pub coordinator: u16,
}

/// An error returned by a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// Its class.
    pub class: ErrorClass,
    /// Its code (section 9 of the protocol specification).
    pub code: u32,
    /// The server's message.
    pub message: &'a str,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// What comes next.
    pub next: Next,
    /// Rows read or written by this request.
    pub rows: u32,
    /// Partitions read or written, unless an earlier answer has reported them.
    pub partitions: u32,
    /// It was one page of rows: its service time counts as that of a page.
    pub page: bool,
    /// A conditional write (LWT) was not applied. That is no failure.
    pub not_applied: bool,
    /// Something about the content that is worth counting.
    pub finding: Option<Finding>,
}

impl Meaning {
    /// The operation is done, and right.
    pub const fn done(partitions: u32, rows: u32) -> Self {
        Meaning { next: Next::Done, rows, partitions, page: false, not_applied: false, finding: None }
    }

    /// The operation has failed.
    pub const fn failed(class: ErrorClass) -> Self {
        Meaning { next: Next::Failed(class), ..Meaning::done(0, 0) }
    }

    /// The content is not what was written: a failure and a finding.
    pub const fn mismatch() -> Self {
        Meaning { finding: Some(Finding::Mismatch), ..Meaning::failed(ErrorClass::Mismatch) }
    }

    /// What was written is not there: a failure and a finding.
    pub const fn missing() -> Self {
        Meaning { finding: Some(Finding::Missing), ..Meaning::failed(ErrorClass::Missing) }
    }
}

/// What comes after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the operation has succeeded.
    Done,
    /// The next page, from the same coordinator.
    Page,
    /// Another request of the same operation, routed separately.
    Request,
    /// Nothing: the operation has failed. It is retried if [`crate::Retries`] allow it; never after
    /// [`ErrorClass::Mismatch`] and [`ErrorClass::Missing`].
    Failed(ErrorClass),
}

/// Something about a read's content that is worth counting whatever the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Older than the newest write acknowledged before it was sent. May be legitimate at a low consistency.
    Stale,
    /// The newest write acknowledged before it was sent, or a newer one; nobody had looked for that write before.
    Seen,
    /// Stale, and the first to look for the newest acknowledged write: what it returned instead had been answered before
    /// that write was sent. So that write is lost, if the consistency promises that reads see what was written.
    Lost,
    /// No row, where no write was known.
    Empty,
    /// No row, although its write had been acknowledged.
    Missing,
    /// Content that nobody wrote.
    Mismatch,
}

/// How an operation ended, for its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// The outcome.
    pub result: Ended,
    /// How many requests of it were sent, retries and pages too.
    pub requests: u32,
}

/// The outcome of an operation, for its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Answered in time and right.
    Ok,
    /// Failed, for the last time.
    Failed(ErrorClass),
    /// Not answered within the timeout.
    TimedOut,
    /// Given up before anything was sent.
    NeverSent,
}
