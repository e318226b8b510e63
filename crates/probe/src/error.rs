use std::{io, net::Ipv4Addr, time::Duration};

use thiserror::Error;

/// Links could not be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A link between these two does not exist.
    #[error("there is no link from host number {from} to host number {to}: this network has {hosts} hosts")]
    NoSuchLink {
        /// Index of the sending host.
        from: u16,
        /// Index of the receiving host.
        to: u16,
        /// How many hosts there are.
        hosts: usize,
    },

    /// A link begins on another machine.
    #[error("the link from host number {from} to host number {to} begins on another machine; measure it there")]
    BeginsElsewhere {
        /// Index of the sending host.
        from: u16,
        /// Index of the receiving host.
        to: u16,
    },

    /// A host's socket could not be made.
    #[error("cannot probe from host {host} ({address}): {action}: {source}")]
    Socket {
        /// The host.
        host: String,
        /// Its address.
        address: Ipv4Addr,
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },

    /// A thread could not be started.
    #[error("cannot start the thread that {does}: {source}")]
    Thread {
        /// What it is for, as "sends probes".
        does: &'static str,
        /// What the kernel said.
        source: io::Error,
    },

    /// The probes asked for would be a load of their own.
    #[error(
        "probing {links} links every {interval:?} is more than {budget} probes a second; \
         use an interval of at least {shortest:?}"
    )]
    Budget {
        /// How many links there are.
        links: usize,
        /// What was asked for.
        interval: Duration,
        /// The most probes a second in total.
        budget: u32,
        /// The shortest interval that stays within it.
        shortest: Duration,
    },

    /// Trains as asked for would measure nothing, or be a load of their own.
    #[error("rates cannot be measured as asked for: {0}")]
    Trains(String),
}
