//! What can go wrong when clocks are asked by NTP, and what to do about it.

use std::{io, net::SocketAddr, time::Duration};

use thiserror::Error;

/// A clock could not be asked, or could not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NtpError {
    /// A socket refused to work.
    #[error("cannot {action}: {source}")]
    Socket {
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },

    /// Nobody answered in time.
    #[error(
        "no answer by NTP from {server} to {sent} requests within {waited:?}{because}; \
         is the link cut, or does nobody answer on that port?"
    )]
    NoAnswer {
        /// Who was asked.
        server: SocketAddr,
        /// How many requests were sent.
        sent: u32,
        /// How long.
        waited: Duration,
        /// What was seen meanwhile that hints at the reason; may be empty.
        because: String,
    },

    /// The server refuses to answer (RFC 5905, section 7.4).
    #[error("{server} refuses to tell the time by NTP: kiss code '{code}'; ask it less often, or ask another")]
    Kiss {
        /// Who was asked.
        server: SocketAddr,
        /// Four letters, such as `RATE` or `DENY`.
        code: String,
    },

    /// The server says that it does not know the time.
    #[error("{server} answers by NTP, but says that its clock is not synchronized; ask another server")]
    Unsynchronized {
        /// Who was asked.
        server: SocketAddr,
    },

    /// Nothing to do.
    #[error("no exchange was asked for; ask for at least one")]
    NoExchanges,

    /// The thread that answers could not be started.
    #[error("cannot start the thread that answers NTP: cannot {action}: {source}")]
    Start {
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
