//! What is asked of the database: the traits between the engine and those who know operations.
//!
//! The engine knows when an operation is due, where it goes, how long it took and how it ended. A [`Workload`] knows
//! what is asked and what an answer means. One operation is one or more requests, one after the other: retries, pages,
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
//! any more, or none is waited for. Between the two, `answer` may be called with [`Received::late`]. An operation that finds no connection in
//! time goes from `draw` to `end` ([`Ending::NeverSent`]) without a request.

mod key_value;
mod key_value_thread;
mod keys;
mod population;

pub use key_value::KeyValue;
pub(crate) use key_value_thread::{FILLING, KeyValueLoad, MIX};
pub(crate) use population::Population;

use crate::{Answer, ErrorClass, Request};

/// What is asked of the database; shared by all load threads.
pub trait Workload: Send + Sync + 'static {
    /// Names of the operations, which are the rows of the account: `read`, `insert`, `spec.q1`. At most 65,535.
    fn operations(&self) -> Vec<String>;

    /// The CQL to prepare on every connection; a request names a statement by its place in this list.
    ///
    /// A statement that a coordinator refuses is an error of [`crate::Engine::launch`], with the server's words.
    fn statements(&self) -> Vec<String>;

    /// How many flows of operations there are. Each has a pace of its own ([`crate::Engine::set_paces`]).
    fn flows(&self) -> usize {
        1
    }

    /// The tables whose token rings are read at the start if operations are balanced by token; [`Route::Token`] names
    /// one by its place. Tables of one keyspace share a ring, so one of them is enough.
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    /// The largest body of an answer in bytes. A longer one is garbage, and the connection is closed.
    fn largest_answer(&self) -> usize {
        LARGEST_ANSWER
    }

    /// The part of load thread number `thread` (from 0) of `threads`.
    fn thread(&self, thread: usize, threads: usize) -> Box<dyn ThreadWorkload>;
}

/// The largest frame that the protocol allows: 256 MiB (`native_protocol_v4.spec`, section 2.5).
pub const LARGEST_ANSWER: usize = 256 << 20;

/// One load thread's part of a [`Workload`]: draws operations, writes their requests, judges the answers.
///
/// Only that thread calls it, so it needs no locks. All calls are on the hot path: nothing in them should allocate,
/// wait, or make a system call.
pub trait ThreadWorkload: Send {
    /// Another pace than [`crate::Pace::Idle`] comes into force on `flow`. Operations drawn before may still be open.
    fn begin(&mut self, flow: usize) {
        let _ = flow;
    }

    /// The next operation of `flow`. Called when the operation is due, or when a user of a closed loop is free.
    ///
    /// `None`: there is no more. An open schedule then ends, and of a closed loop the user who asked; neither asks
    /// again until another pace is set.
    fn draw(&mut self, flow: usize) -> Option<Drawn>;

    /// Asked when [`ThreadWorkload::draw`] has just said that there is no more: whether there will be, once operations
    /// that are open are over ([`ThreadWorkload::release`]). It is drawn again then; what was due meanwhile waits.
    fn more_later(&self, flow: usize) -> bool {
        let _ = flow;
        false
    }

    /// Where the next request of the operation may go. Asked before every request but those for a next page.
    ///
    /// Unless operations are balanced `by_token`, a [`Route::Token`] is the same as [`Route::Any`], and the token need
    /// not be computed.
    fn route(&self, ticket: Ticket, by_token: bool) -> Route;

    /// Writes the request to send now: the first one, the next page, or once more after a failure.
    fn request(&mut self, ticket: Ticket, sending: &Sending, request: Request<'_>);

    /// What an answer means. Errors of the server do not come here ([`ThreadWorkload::refused`]), nor do timeouts and
    /// lost connections ([`ThreadWorkload::end`]).
    ///
    /// Of a late answer only the finding counts: what is to be done next has been decided without it. A paging state
    /// that is needed for the next page must be copied.
    fn answer(&mut self, ticket: Ticket, answer: &Answer<'_>, received: &Received) -> Verdict;

    /// The server has answered with an error, or the request could not be written ([`ErrorClass::Unwritable`], code 0).
    /// The engine decides what comes of it.
    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        let _ = (ticket, error, received);
    }

    /// The outcome of the operation is certain. Called once for every operation drawn.
    fn end(&mut self, ticket: Ticket, ending: &Ending);

    /// Nothing of this operation will be asked or told any more: its place can be used again. Called once for every
    /// operation drawn, after [`ThreadWorkload::end`].
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

/// An operation's name between engine and workload: the place of the operation in a list of the workload's own. The
/// engine only hands it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// An operation that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Its name in the calls that follow.
    pub ticket: Ticket,
    /// Its place in [`Workload::operations`].
    pub operation: u16,
    /// How many partitions it visits: by so many steps it advances the schedule of [`crate::Pace::Limited`].
    pub partitions: u32,
}

/// Where a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To any coordinator.
    Any,
    /// To a replica of this token, if operations are balanced by token, else to any coordinator.
    Token {
        /// Place in [`Workload::tables`].
        table: u16,
        /// See [`crate::murmur3_token`].
        token: i64,
    },
    /// To this one of [`crate::EngineConfig::coordinators`] and to no other: without a connection to it the operation
    /// waits, until it is connected or the operation has timed out.
    Coordinator(u16),
}

/// What is known about a request that is written.
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

/// What is known about an answer that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// When it came, on CLOCK_MONOTONIC in ns.
    pub at_ns: u64,
    /// The operation, or this attempt, had timed out before.
    pub late: bool,
    /// [`Sending::step`] of the request.
    pub step: u32,
    /// Place of the coordinator that answered in [`crate::EngineConfig::coordinators`].
    pub coordinator: u16,
}

/// An error that a server answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// Its class.
    pub class: ErrorClass,
    /// Its code (section 9 of the protocol specification).
    pub code: u32,
    /// The server's words.
    pub message: &'a str,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What comes next.
    pub next: Next,
    /// Rows read or written by this request.
    pub rows: u32,
    /// Partitions read or written, as far as no answer before has told them.
    pub partitions: u32,
    /// It was one page of rows: its service time counts among those of pages.
    pub page: bool,
    /// A conditional write (LWT) was not applied. That is no failure.
    pub not_applied: bool,
    /// Something about the content that is worth counting.
    pub finding: Option<Finding>,
}

impl Verdict {
    /// The operation is done, and right.
    pub const fn done(partitions: u32, rows: u32) -> Self {
        Verdict { next: Next::Done, rows, partitions, page: false, not_applied: false, finding: None }
    }

    /// The operation has failed.
    pub const fn failed(class: ErrorClass) -> Self {
        Verdict { next: Next::Failed(class), ..Verdict::done(0, 0) }
    }

    /// The content is not what was written: a failure and a finding.
    pub const fn mismatch() -> Self {
        Verdict { finding: Some(Finding::Mismatch), ..Verdict::failed(ErrorClass::Mismatch) }
    }

    /// What was written is not there: a failure and a finding.
    pub const fn missing() -> Self {
        Verdict { finding: Some(Finding::Missing), ..Verdict::failed(ErrorClass::Missing) }
    }
}

/// What comes after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the operation has succeeded.
    Done,
    /// The next page, from the same coordinator.
    Page,
    /// Another request of the same operation, routed by itself.
    Request,
    /// Nothing: the operation has failed. It is tried again if [`crate::Retries`] say so; never after
    /// [`ErrorClass::Mismatch`] and [`ErrorClass::Missing`].
    Failed(ErrorClass),
}

/// Something about a read's content that is worth counting whatever the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Older than the newest write acknowledged before it was sent. May be legitimate at a low consistency.
    Stale,
    /// No row, of which no write was known.
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
