//! Messages about failed operations: in cassandra-stress's words, and no more of them than can be read.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use brownout_load::ErrorClass;

/// Lines per second; further ones are only counted.
const LINES_PER_SECOND: u64 = 10;

/// How an operation failed, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// An error of the server or the connection: class and message.
    Error {
        /// The name of the exception that a Java client would have thrown.
        class: &'static str,
        /// The server's message.
        message: String,
    },
    /// A defect in the answer's content.
    Content(String),
}

impl Why {
    fn text(&self) -> String {
        match self {
            Why::Error { class, message } if message.is_empty() => format!("Error executing: ({class})"),
            Why::Error { class, message } => format!("Error executing: ({class}): {message}"),
            Why::Content(text) => format!("Data returned was not validated: {text}"),
        }
    }
}

/// The name that the Java driver has for an error of this class; scripts look for these names.
pub const fn exception(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Unavailable => "UnavailableException",
        ErrorClass::Overloaded => "OverloadedException",
        ErrorClass::ReadTimeout => "ReadTimeoutException",
        ErrorClass::WriteTimeout => "WriteTimeoutException",
        ErrorClass::ReadFailure => "ReadFailureException",
        ErrorClass::WriteFailure => "WriteFailureException",
        ErrorClass::Bootstrapping => "BootstrappingException",
        ErrorClass::ServerError => "ServerError",
        ErrorClass::Invalid => "InvalidQueryException",
        ErrorClass::Unprepared => "UnpreparedException",
        ErrorClass::ConnectionLost => "ConnectionException",
        ErrorClass::Mismatch | ErrorClass::Missing => "ValidationException",
        ErrorClass::Unexpected | ErrorClass::Unwritable => "DriverInternalError",
        ErrorClass::Abandoned => "AbandonedException",
    }
}

/// The name for an operation that was not answered in time.
pub const TIMED_OUT: &str = "OperationTimedOutException";

/// The name for an operation for which no connection was found.
pub const NEVER_SENT: &str = "NoHostAvailableException";

/// The failures of a run, reported by all load threads.
#[derive(Debug, Default)]
pub struct Complaints {
    /// The second (of CLOCK_MONOTONIC) that `lines` counts.
    second: AtomicU64,
    lines: AtomicU64,
    failed: AtomicBool,
    untold: AtomicU64,
    waiting: Mutex<VecDeque<String>>,
}

impl Complaints {
    /// None yet.
    pub fn new() -> Self {
        Complaints::default()
    }

    /// Whether a line would be printed now; if not, its text need not be built.
    pub fn wants(&self, now_ns: u64) -> bool {
        let second = now_ns / 1_000_000_000;
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.lines.store(0, Ordering::Relaxed);
        }
        self.lines.load(Ordering::Relaxed) < LINES_PER_SECOND
    }

    /// An operation has finally failed, after `tries`. `describe` is called only if somebody will read the line.
    pub fn failed(&self, now_ns: u64, tries: u32, describe: impl FnOnce() -> (String, Why)) {
        self.failed.store(true, Ordering::Relaxed);
        if !self.wants(now_ns) {
            self.untold.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.lines.fetch_add(1, Ordering::Relaxed);
        let (key, why) = describe();
        self.waiting().push_back(line(tries, &key, &why));
    }

    /// A message to be printed once.
    pub fn say(&self, text: String) {
        self.waiting().push_back(text);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any operation has failed.
    pub fn any(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The lines that have not been read yet.
    pub fn take(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.waiting().drain(..).collect();
        let untold = self.untold.swap(0, Ordering::Relaxed);
        if untold > 0 {
            lines.push(format!(
                "... and {untold} more operations failed (at most {LINES_PER_SECOND} are printed a second)"
            ));
        }
        lines
    }
}

/// `Operation x10 on key(s) [4E4F]: Error executing: (WriteTimeoutException): …`
fn line(tries: u32, key: &str, why: &Why) -> String {
    format!("Operation x{tries} on key(s) [{key}]: {}", why.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_as_cassandra_stress_tells_it() {
        let complaints = Complaints::new();
        let why = Why::Error { class: exception(ErrorClass::WriteTimeout), message: "too slow".to_owned() };
        complaints.failed(0, 10, || ("4b4c".to_owned(), why));
        complaints.failed(0, 1, || ("4b".to_owned(), Why::Content("row empty/missing".to_owned())));
        assert_eq!(
            complaints.take(),
            [
                "Operation x10 on key(s) [4b4c]: Error executing: (WriteTimeoutException): too slow",
                "Operation x1 on key(s) [4b]: Data returned was not validated: row empty/missing",
            ]
        );
        assert!(complaints.any() && complaints.take().is_empty());
    }

    #[test]
    fn of_many_failures_in_a_second_ten_are_told_and_the_rest_is_counted() {
        let complaints = Complaints::new();
        let content = || (String::new(), Why::Content(String::new()));
        (0..1000).for_each(|_| complaints.failed(5, 1, content));
        let lines = complaints.take();
        assert_eq!(lines.len(), 11);
        assert!(lines[10].contains(" 990 more "), "{lines:?}");
        complaints.failed(1_000_000_005, 1, content);
        assert_eq!(complaints.take().len(), 1, "a new second");
    }
}
