//! Options of a stub, and how its nodes behave.

use std::time::Duration;

use crate::{Credentials, ServerTls, Version};

/// What a node answers to prepared statements and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// The correct answer.
    #[default]
    Right,
    /// An error with this code (section 9 of the protocol specification).
    Error(u32),
    /// Nothing, ever.
    Silence,
    /// Bytes that are not CQL.
    Garbage,
    /// A whole frame whose body makes no sense.
    Mangled,
    /// The end of the connection.
    Close,
    /// Rows with one byte of the last value changed.
    Flipped,
    /// Rows as they were before the last write.
    Stale,
    /// No row, whatever was written.
    NoRow,
    /// A write is acknowledged where a row is expected, and the reverse.
    WrongKind,
    /// Conditional writes are not applied; all else is right.
    NotApplied,
}

/// How a node behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behaviour {
    /// What it answers.
    pub answer: Answer,
    /// Delay of each answer to a prepared statement or batch, however many there are at once.
    pub delay: Duration,
    /// It holds back all its answers until this is cleared.
    pub frozen: bool,
    /// It reads nothing until this is taken away: what is sent to it stays with the sender once its kernel has no more
    /// room.
    pub deaf: bool,
    /// It closes a connection instead of answering, once it has answered so many prepared statements and batches on it.
    pub close_after: Option<u64>,
    /// It never answers statements that define or empty anything.
    pub silent_schema: bool,
}

impl Behaviour {
    /// Frozen, otherwise right.
    pub fn frozen() -> Self {
        Behaviour { frozen: true, ..Behaviour::default() }
    }

    /// Deaf, otherwise right.
    pub fn deaf() -> Self {
        Behaviour { deaf: true, ..Behaviour::default() }
    }

    /// Slow, otherwise right.
    pub fn slow(delay: Duration) -> Self {
        Behaviour { delay, ..Behaviour::default() }
    }

    /// Answers at once, but in this way.
    pub fn answering(answer: Answer) -> Self {
        Behaviour { answer, ..Behaviour::default() }
    }
}

/// What SELECTs return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// What was written: bound values, under bound keys. Rows of a partition are ordered by the bytes of their
    /// clustering key, whatever their types; conditions other than on the key are ignored.
    Remembered,
    /// Always the same rows, and writes are forgotten: for benchmarks.
    Canned {
        /// How many rows, over all pages.
        rows: u32,
        /// Length of texts and blobs; all other values are zeros.
        size: u32,
    },
}

/// All nodes hold back their answers for a while, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// From the start of one freeze to the start of the next. Periods count from the first prepared statement or batch,
    /// and each ends with its freeze: whole periods therefore contain whole freezes.
    pub every: Duration,
    /// How long each lasts.
    pub lasting: Duration,
}

/// The options of a stub.
#[derive(Debug, Clone)]
pub struct StubOptions {
    /// `CREATE TABLE` statements of tables that exist from the start. Clients may create more.
    pub tables: Vec<String>,
    /// What SELECTs give.
    pub content: Content,
    /// The newest version of the protocol that it speaks.
    pub newest: Version,
    /// It speaks TLS only.
    pub tls: Option<ServerTls>,
    /// It asks for user and password.
    pub credentials: Option<Credentials>,
    /// It freezes now and then.
    pub freeze: Option<Freeze>,
    /// Data centre and rack of each node; `datacenter1` and `rack1` for nodes that are not listed.
    pub places: Vec<(String, String)>,
}

/// A cluster with a table `stub.kv (key bigint PRIMARY KEY, value blob)` that remembers, unencrypted and without
/// passwords.
impl Default for StubOptions {
    fn default() -> Self {
        StubOptions {
            tables: vec!["CREATE TABLE stub.kv (key bigint PRIMARY KEY, value blob)".to_owned()],
            content: Content::Remembered,
            newest: Version::V5,
            tls: None,
            credentials: None,
            freeze: None,
            places: Vec::new(),
        }
    }
}
