//! A link: its impairments, and the packets that it holds.

mod bottleneck;
mod impairments;
mod queue;
mod random;
mod stages;

use brownout_base::Link;

use self::{
    bottleneck::Bottleneck,
    impairments::Impairments,
    queue::{Queue, Replan},
};
pub(in crate::emulator) use self::{
    impairments::Gate,
    queue::{Load, QueuedFrame, Times, memory_of},
    stages::{End, Fate},
};
use super::packet::icmp::Allowance;
use crate::impairment::Impairment;

/// One link as the emulator's thread sees it.
pub(in crate::emulator) struct LinkState {
    /// The receiving host.
    pub(in crate::emulator) to: usize,
    impairments: Impairments,
    bottleneck: Bottleneck,
    queue: Queue,
    /// How often its sender may be told that a packet did not pass.
    pub(in crate::emulator) allowance: Allowance,
}

/// What is to become of the impairments of a link.
#[derive(Debug, Clone, Copy)]
pub(in crate::emulator) enum LinkChange {
    /// One more, which is called by this number from now on.
    Add(u64, Impairment),
    /// Another in its place.
    Amend(u64, Impairment),
    /// It goes.
    Remove(u64),
}

impl LinkState {
    pub(in crate::emulator) fn new(seed: u64, link: Link) -> Self {
        LinkState {
            to: link.to.index(),
            impairments: Impairments::new(seed, link),
            bottleneck: Bottleneck::default(),
            queue: Queue::default(),
            allowance: Allowance::default(),
        }
    }

    /// Impairments that come from now on draw from this.
    pub(in crate::emulator) fn reseed(&mut self, seed: u64) {
        self.impairments.reseed(seed);
    }

    /// True when a packet that comes now leaves now.
    pub(in crate::emulator) fn is_clear(&self) -> bool {
        self.impairments.is_idle() && self.queue.is_empty()
    }

    /// What does not even enter.
    pub(in crate::emulator) fn gate(&self) -> Gate {
        self.impairments.gate()
    }

    /// Decides about packets that enter together.
    pub(in crate::emulator) fn decide(&mut self, fates: &mut Vec<Fate>) {
        let last_release_ns = self.queue.last_release_ns().unwrap_or(0);
        self.impairments.decide(&mut self.bottleneck, last_release_ns, fates);
    }

    /// Holds a frame until it is to leave.
    pub(in crate::emulator) fn hold(&mut self, times: Times, load: Load) {
        self.queue.push(times, load);
    }

    /// The next frame, if its time has come.
    pub(in crate::emulator) fn pop_due(&mut self, now_ns: u64) -> Option<QueuedFrame> {
        self.queue.pop_due(now_ns)
    }

    /// When the next frame is to leave.
    pub(in crate::emulator) fn next_release_ns(&self) -> Option<u64> {
        self.queue.next_release_ns()
    }

    /// Memory that what it holds takes, in bytes.
    pub(in crate::emulator) fn memory(&self) -> u64 {
        self.queue.memory()
    }

    /// Whether it has the impairment of this number.
    pub(in crate::emulator) fn has(&self, id: u64) -> bool {
        self.impairments.has(id)
    }

    /// What its impairments do.
    pub(in crate::emulator) fn effective(&self) -> impl Iterator<Item = Impairment> {
        self.impairments.effective()
    }

    /// Changes the impairments from `now_ns` on, and what is in flight accordingly: see [`Queue::replan`]. What waits for
    /// the bottleneck leaves at the new rate.
    pub(in crate::emulator) fn change(&mut self, now_ns: u64, change: LinkChange) {
        let before = Flight::of(&self.impairments);
        match change {
            LinkChange::Add(id, impairment) => self.impairments.add(id, impairment),
            LinkChange::Amend(id, impairment) => self.impairments.amend(id, impairment),
            LinkChange::Remove(id) => self.impairments.remove(id),
        }
        let after = Flight::of(&self.impairments);
        let factor = self.bottleneck.change(now_ns, self.impairments.rate(), self.queue.mean_bytes());
        let shorter_ns = before.delay_ns.saturating_sub(after.delay_ns);
        if factor != 1.0 || shorter_ns > 0 || after.longest_ns < before.longest_ns {
            self.queue.replan(Replan { now_ns, factor, shorter_ns, longest_ns: after.longest_ns });
        }
    }

    /// The longest that it holds a packet, in nanoseconds.
    pub(in crate::emulator) fn longest_hold_ns(&self) -> u64 {
        let wait_ns = self.impairments.rate().map_or(0, |limit| limit.longest_wait_ns());
        Flight::of(&self.impairments).longest_ns.saturating_add(wait_ns)
    }
}

/// How long packets fly, by all impairments together.
struct Flight {
    /// The constant part, in nanoseconds.
    delay_ns: u64,
    /// With all that jitter can add, in nanoseconds.
    longest_ns: u64,
}

impl Flight {
    fn of(impairments: &Impairments) -> Flight {
        let sum = |part: fn(&Impairment) -> u64| {
            impairments.effective().fold(0u64, |sum, impairment| sum.saturating_add(part(&impairment)))
        };
        Flight { delay_ns: sum(|impairment| impairment.delay.ns()), longest_ns: sum(Impairment::longest_flight_ns) }
    }
}

#[cfg(test)]
mod tests;
