//! Waking up when a packet is due, not later.

use std::thread;

use brownout_machine::Scheduling;

/// A thread that asks to be woken at a time is woken some microseconds later. A real-time thread
/// asks for that much less and spends the rest looking; how much that is, it learns.
///
/// Looking is limited to what waking up costs anyway, so it can at most double the price of a
/// release. Threads that are not real-time, or alone on their processor with everything else, would
/// only take the time from those they wait for.
pub(in crate::emulator) struct Pace {
    lead_ns: u64,
    learns: bool,
}

/// More than this is not the cost of waking up but a busy machine.
const LONGEST_LEAD_NS: u64 = 60_000;
/// How far one late wake-up moves the lead; one in time moves it a third as far back, so that it
/// settles where three of four are in time.
const STEP_NS: u64 = 600;

impl Pace {
    pub(in crate::emulator) fn new(scheduling: Scheduling) -> Self {
        let alone = thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        Pace { lead_ns: 0, learns: matches!(scheduling, Scheduling::Fifo(_)) && !alone }
    }

    /// How long to wait for a release: 0 to look again at once.
    pub(in crate::emulator) fn wait_ns(&self, now_ns: u64, release_ns: u64) -> u64 {
        release_ns.saturating_sub(now_ns).saturating_sub(self.lead_ns)
    }

    /// Learns from a wait that began at `began_ns`, was to last `asked_ns`, and ended at `woke_ns`.
    pub(in crate::emulator) fn waited(&mut self, began_ns: u64, asked_ns: u64, woke_ns: u64) {
        if !self.learns {
            return;
        }
        let late = woke_ns.saturating_sub(began_ns.saturating_add(asked_ns));
        self.lead_ns = if late > self.lead_ns {
            (self.lead_ns + STEP_NS).min(LONGEST_LEAD_NS)
        } else {
            self.lead_ns.saturating_sub(STEP_NS / 3)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_settles_where_waking_up_costs_it() {
        let mut pace = Pace { lead_ns: 0, learns: true };
        for turn in 0..1_000 {
            // Waking up costs 10 to 13 µs.
            pace.waited(0, 1_000_000, 1_010_000 + turn % 4 * 1_000);
        }
        assert!((11_000..14_000).contains(&pace.lead_ns), "{}", pace.lead_ns);
        assert_eq!(pace.wait_ns(0, 100_000), 100_000 - pace.lead_ns);
        assert_eq!(pace.wait_ns(0, 5_000), 0);
        assert_eq!(pace.wait_ns(100, 50), 0);
    }

    #[test]
    fn a_busy_machine_does_not_make_it_spin_for_long() {
        let mut pace = Pace { lead_ns: 0, learns: true };
        (0..10_000).for_each(|_| pace.waited(0, 1, 50_000_000));
        assert_eq!(pace.lead_ns, LONGEST_LEAD_NS);
        let mut pace = Pace::new(Scheduling::Default);
        (0..10_000).for_each(|_| pace.waited(0, 1, 50_000_000));
        assert_eq!(pace.lead_ns, 0);
    }
}
