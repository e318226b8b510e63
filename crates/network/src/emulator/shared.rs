//! What the handles and the emulator's thread have in common.

use std::sync::{Mutex, OnceLock, PoisonError, atomic::AtomicU64, mpsc::Sender};

use brownout_base::{HostId, Link, clock::monotonic_ns};

use super::{commands::Command, reach::Reach};
use crate::{counters::LinkCounters, sys::Wakeup};

/// A host that can be reached no more, by the emulator or through WireGuard: whatever it sends or should receive there is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// Which host.
    pub host: HostId,
    /// When that was seen, on the monotonic clock.
    pub at_ns: u64,
    /// What the kernel said; of an overlay's interface, also which one it is.
    pub reason: String,
}

/// What the handles and the emulator's thread share.
pub(crate) struct Shared {
    pub(super) commands: Sender<Command>,
    pub(crate) wakeup: Wakeup,
    /// The longest that each link may hold a packet by the impairments in force, in nanoseconds.
    pub(crate) longest_holds_ns: Vec<AtomicU64>,
    /// Hosts that failed since somebody asked.
    pub(super) failures: Mutex<Vec<HostFailure>>,
    pub(super) links: Vec<Link>,
    pub(super) hosts: usize,
    pub(super) next_id: AtomicU64,
    /// A set of counters that the thread has used before: its histograms have grown as far as they had to, so that
    /// the thread, which may be a real-time one, need not allocate while it records.
    pub(super) spare: Mutex<Option<Vec<LinkCounters>>>,
    /// What links cannot do, in a network that others have made.
    pub(super) reach: OnceLock<Reach>,
}

impl Shared {
    /// For so many hosts.
    pub(super) fn new(commands: Sender<Command>, hosts: usize, wakeup: Wakeup) -> Shared {
        let links = Link::all(hosts);
        Shared {
            commands,
            wakeup,
            longest_holds_ns: links.iter().map(|_| AtomicU64::new(0)).collect(),
            failures: Mutex::default(),
            links,
            hosts,
            next_id: AtomicU64::new(0),
            spare: Mutex::new(None),
            reach: OnceLock::new(),
        }
    }

    /// Tells whoever asks that a host has failed.
    pub(crate) fn failed(&self, host: HostId, reason: String) {
        let failure = HostFailure { host, at_ns: monotonic_ns(), reason };
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}
