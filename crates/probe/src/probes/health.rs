//! How well the thread that probes keeps up.

use std::sync::atomic::{AtomicU64, Ordering};

/// How well the prober itself did since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeHealth {
    /// Probes sent, those that were refused included.
    pub sent: u64,
    /// Of these, sent more than [`Probes::LATE`](crate::Probes::LATE) after their time.
    pub late_sends: u64,
    /// The latest of all, in nanoseconds after its time.
    pub worst_lateness_ns: u64,
    /// Probes not sent because the next of the same link was due already.
    pub skipped: u64,
    /// Probes for which the sending host's kernel had no room at the moment: they are no samples.
    pub send_errors: u64,
    /// Probes that the sending host's kernel refused for another reason, as it does where a packet filter drops what
    /// the host sends, or where it has no way to the receiver: they count as lost.
    pub refused: u64,
    /// Arrivals of probes that had been given up as lost.
    pub late_answers: u64,
    /// Probes that are no samples: nobody drained them in time, or nobody knows when they arrived, because the wall
    /// clock (on which the kernel stamps them) was stepped meanwhile.
    pub discarded: u64,
    /// Probes that arrived where the receiving socket had no room left, because the prober did not run for seconds.
    /// As many that did not arrive are left out of the samples: the network did not lose them.
    pub overflowed: u64,
    /// Probes to or from a host that was away: sent and not seen to arrive, or due and not sent. They are no samples.
    pub absent: u64,
}

/// [`ProbeHealth`], as the thread keeps it.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) sent: AtomicU64,
    pub(super) late_sends: AtomicU64,
    pub(super) worst_lateness_ns: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) send_errors: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) late_answers: AtomicU64,
    pub(super) discarded: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) absent: AtomicU64,
}

impl Health {
    pub(super) fn read(&self) -> ProbeHealth {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Health {
            sent,
            late_sends,
            worst_lateness_ns,
            skipped,
            send_errors,
            refused,
            late_answers,
            discarded,
            overflowed,
            absent,
        } = self;
        ProbeHealth {
            sent: read(sent),
            late_sends: read(late_sends),
            worst_lateness_ns: read(worst_lateness_ns),
            skipped: read(skipped),
            send_errors: read(send_errors),
            refused: read(refused),
            late_answers: read(late_answers),
            discarded: read(discarded),
            overflowed: read(overflowed),
            absent: read(absent),
        }
    }
}
