use std::{io, net::SocketAddr, time::Duration};

use thiserror::Error;

/// What can go wrong before or besides the operations themselves (those end in an [`crate::Outcome`]).
#[derive(Debug, Error)]
pub enum LoadError {
    /// The configuration contradicts itself or asks for what does not exist.
    #[error("the load cannot run: {what}; {remedy}")]
    Config {
        /// The value that does not fit.
        what: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A connection to a coordinator could not be made ready while the engine was starting.
    #[error("coordinator {coordinator} ({address}): {step} failed: {reason}")]
    Connect {
        /// The coordinator's name.
        coordinator: String,
        /// Where it takes requests.
        address: SocketAddr,
        /// What was tried: connecting, the handshake, preparing a statement.
        step: &'static str,
        /// What happened, in the kernel's or the server's words.
        reason: String,
    },
    /// The hook that every new thread calls first has failed.
    #[error("a load thread could not enter its place (thread-start hook): {0}")]
    ThreadStart(#[source] io::Error),
    /// The kernel refused something the engine cannot do without.
    #[error("the kernel refused {what} to the load: {source}; check the limits on open files and threads (ulimit -a)")]
    System {
        /// What was asked for.
        what: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A load thread ended before it was told to. This is a bug: its operations are missing from the account.
    #[error("load thread {thread} has died: {reason}; its operations are missing from the account, discard this trial")]
    ThreadDied {
        /// Its number, from 0.
        thread: usize,
        /// Its last words.
        reason: String,
    },
    /// Control work (schema, metadata) failed.
    #[error("{what} on {coordinator} failed: {reason}")]
    Control {
        /// What was tried.
        what: String,
        /// The coordinator or coordinators it was tried on.
        coordinator: String,
        /// What happened.
        reason: String,
    },
    /// The server rejects the population's writes for a reason that a retry cannot change.
    #[error("coordinator {coordinator} refuses to write the population: {reason}; nothing more is written")]
    Refused {
        /// The coordinator's name.
        coordinator: String,
        /// The server's words.
        reason: String,
    },
    /// The caller asked for an end.
    #[error("{what} was interrupted")]
    Interrupted {
        /// What was in progress.
        what: String,
    },
    /// Control work was not done in time.
    #[error("{what} was not done within {limit:?}: {state}")]
    Deadline {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// The state when the time was up.
        state: String,
    },
}

impl LoadError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::System { what, source }
    }
}
