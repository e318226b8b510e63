//! CPU accounting: what a process may use in each period, what it owes, and when to look again.

/// The period of a limit, ns: as the kernel's own has it by default.
pub const PERIOD_NS: u64 = 100_000_000;
/// The kernel's clock of a process counts a running thread only at its ticks, up to 10 ms apart (4 as Debian builds it).
/// This long before the quota can be used up at the earliest, it is looked at closely.
const CLOSELY_NS: u64 = 5_000_000;
/// Between two close looks.
const LOOK_EVERY_NS: u64 = 1_000_000;
/// What was used too much in a period, because the clock showed it late, is taken off the next ones; at most so many, lest
/// a governor that was held up once keeps the node stopped for longer than a failure detector's patience.
const PERIODS_OF_DEBT: u64 = 10;

/// What a process has used of the CPU time of a period.
#[derive(Debug)]
pub struct Account {
    /// When the period began.
    since_ns: u64,
    /// Used in it, with what was used too much before.
    pub used_ns: u64,
}

impl Account {
    /// Nothing was used yet, in a period that begins now.
    pub fn begin(now_ns: u64) -> Account {
        Account { since_ns: now_ns, used_ns: 0 }
    }

    /// When the period is over, begins the one that `now_ns` lies in. What was not used is lost, what was used too much is
    /// owed.
    pub fn turn(&mut self, now_ns: u64, quota_ns: u64) {
        let periods = now_ns.saturating_sub(self.since_ns) / PERIOD_NS;
        if periods == 0 {
            return;
        }
        self.since_ns += periods * PERIOD_NS;
        let owed_ns = self.used_ns.saturating_sub(quota_ns.saturating_mul(periods));
        self.used_ns = owed_ns.min(quota_ns.saturating_mul(PERIODS_OF_DEBT));
    }

    /// How long nothing has to be looked at: until the next period, or until shortly before the quota can be used up, with
    /// all processors at work.
    pub fn nap_ns(&self, now_ns: u64, quota_ns: u64, processors: u64) -> u64 {
        let period_left_ns = (self.since_ns + PERIOD_NS).saturating_sub(now_ns);
        let earliest_ns = quota_ns.saturating_sub(self.used_ns) / processors.max(1);
        let nap_ns = match earliest_ns {
            0 => period_left_ns,
            soon => soon.saturating_sub(CLOSELY_NS).max(LOOK_EVERY_NS).min(period_left_ns),
        };
        nap_ns.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_too_much_is_owed_and_what_was_not_used_is_lost() {
        let mut account = Account { since_ns: 0, used_ns: 25 };
        account.turn(PERIOD_NS - 1, 20);
        assert_eq!((account.since_ns, account.used_ns), (0, 25));
        account.turn(PERIOD_NS + 7, 20);
        assert_eq!((account.since_ns, account.used_ns), (PERIOD_NS, 5));
        account.turn(2 * PERIOD_NS, 20);
        assert_eq!(account.used_ns, 0, "not -15");
        account.used_ns = 70;
        account.turn(5 * PERIOD_NS, 20);
        assert_eq!(account.used_ns, 10, "three periods' worth was paid back");
        account.used_ns = 1_000_000;
        account.turn(6 * PERIOD_NS, 20);
        assert_eq!(account.used_ns, 200, "the debt is limited");
    }

    #[test]
    fn a_far_quota_is_slept_towards_and_a_near_one_looked_at_closely() {
        let account = |used_ns| Account { since_ns: 1_000, used_ns };
        let (now, quota) = (1_000, 40_000_000);
        assert_eq!(account(0).nap_ns(now, quota, 2), 15_000_000);
        assert_eq!(account(36_000_000).nap_ns(now, quota, 2), LOOK_EVERY_NS);
        assert_eq!(account(40_000_000).nap_ns(now, quota, 2), PERIOD_NS, "held until the next period");
        assert_eq!(account(0).nap_ns(now + PERIOD_NS - 9, quota, 2), 9);
    }
}
