//! The probes of one link that are still open.

use std::collections::VecDeque;

use brownout_base::Link;

/// What became of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSample {
    /// Which way it went.
    pub link: Link,
    /// Counts up by one per probe of this link; one that is no sample leaves a gap.
    pub seq: u64,
    /// When it was sent, on the monotonic clock.
    pub sent_ns: u64,
    /// From sending to arrival at the receiving host's socket; `None` if it did not arrive in time.
    pub delay_ns: Option<u64>,
    /// How often it arrived: within the longest that its link may hold it, but at most a second.
    pub copies: u8,
    /// It arrived after a probe that was sent later.
    pub reordered: bool,
}

/// An answered probe stays open this long at least, to see whether it arrives again.
pub(super) const COPY_GRACE_NS: u64 = 50_000_000;

struct Open {
    sent_ns: u64,
    /// The first arrival.
    arrived_ns: Option<u64>,
    copies: u8,
    reordered: bool,
    /// Nobody knows when it arrived: it is no sample.
    void: bool,
    /// The sending host's kernel did not take it.
    refused: bool,
    settled: bool,
}

/// Consecutive numbers from the oldest open probe on; those that settled before it did are kept
/// until it has.
///
/// What settles next is known without looking at all of them: there may be a minute's worth.
pub(super) struct Window {
    link: Link,
    open: VecDeque<Open>,
    first_seq: u64,
    newest_arrived: Option<u64>,
    /// Numbers of those that arrived and have not settled, in the order of arrival.
    answered: VecDeque<u64>,
    /// Numbers of those of which nobody knows when they arrived, and which have not settled.
    void: Vec<u64>,
    /// All before this number have arrived or settled.
    first_unanswered: u64,
}

impl Window {
    pub(super) fn new(link: Link) -> Self {
        Window {
            link,
            open: VecDeque::new(),
            first_seq: 0,
            newest_arrived: None,
            answered: VecDeque::new(),
            void: Vec::new(),
            first_unanswered: 0,
        }
    }

    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// The number that the next probe will have.
    pub(super) fn next_seq(&self) -> u64 {
        self.first_seq + self.open.len() as u64
    }

    /// Notes that the next probe was sent.
    pub(super) fn sent(&mut self, sent_ns: u64) {
        self.open.push_back(Open {
            sent_ns,
            arrived_ns: None,
            copies: 0,
            reordered: false,
            void: false,
            refused: false,
            settled: false,
        });
    }

    /// Notes that the last one was refused by the sending host's kernel.
    pub(super) fn refused(&mut self) {
        if let Some(last) = self.open.back_mut() {
            last.refused = true;
        }
    }

    /// Leaves out those that were sent since then and have not arrived: one of the two hosts was not there. Says how many these
    /// are, and how many of them were refused.
    pub(super) fn leave_out(&mut self, since_ns: u64) -> (u64, u64) {
        let (mut left, mut refused) = (0, 0);
        for probe in self.open.iter_mut().rev().take_while(|probe| probe.sent_ns >= since_ns) {
            if probe.copies == 0 && !probe.settled {
                probe.settled = true;
                left += 1;
                refused += u64::from(probe.refused);
            }
        }
        (left, refused)
    }

    /// Notes that a probe arrived, at a time that may be unknown; false if it had been settled already, or was never
    /// sent.
    pub(super) fn arrived(&mut self, seq: u64, arrived_ns: Option<u64>) -> bool {
        let index = seq.checked_sub(self.first_seq).and_then(|index| usize::try_from(index).ok());
        let Some(probe) = index.and_then(|index| self.open.get_mut(index)).filter(|probe| !probe.settled) else {
            return false;
        };
        probe.copies = probe.copies.saturating_add(1);
        if probe.arrived_ns.is_none() && !probe.void {
            probe.arrived_ns = arrived_ns;
            probe.void = arrived_ns.is_none();
            probe.reordered = self.newest_arrived.is_some_and(|newest| newest > seq);
            match probe.void {
                true => self.void.push(seq),
                false => self.answered.push_back(seq),
            }
            self.newest_arrived = self.newest_arrived.max(Some(seq));
        }
        true
    }

    /// Reports what has settled by now; how many settled without a report, since it would not be true. Copies of a probe
    /// come within `copies_within_ns` of its being sent.
    pub(super) fn settle(
        &mut self,
        now_ns: u64,
        lost_after_ns: u64,
        copies_within_ns: u64,
        mut report: impl FnMut(ProbeSample),
    ) -> u64 {
        let since = |then| now_ns.saturating_sub(then);
        let voids = self.void.len() as u64;
        while let Some(seq) = self.void.pop() {
            self.settle_one(seq);
        }
        // Arrivals come in rounds, not quite in order: one may wait for another, but no longer than a copy is waited for.
        while let Some(seq) = self.answered.front().copied() {
            let is_over = |probe: &Open| {
                let arrived = probe.arrived_ns.unwrap_or(probe.sent_ns);
                since(arrived) >= COPY_GRACE_NS && since(probe.sent_ns) >= copies_within_ns
            };
            if !self.probe(seq).is_none_or(is_over) {
                break;
            }
            self.answered.pop_front();
            self.settle_one(seq).into_iter().for_each(&mut report);
        }
        while let Some(probe) = self.probe(self.first_unanswered) {
            // One that was left out has settled without having arrived.
            if probe.copies == 0 && !probe.settled {
                if since(probe.sent_ns) < lost_after_ns {
                    break;
                }
                self.settle_one(self.first_unanswered).into_iter().for_each(&mut report);
            }
            self.first_unanswered += 1;
        }
        while self.open.front().is_some_and(|probe| probe.settled) {
            self.open.pop_front();
            self.first_seq += 1;
        }
        voids
    }

    /// One that has not settled long ago.
    fn probe(&self, seq: u64) -> Option<&Open> {
        self.open.get(usize::try_from(seq.checked_sub(self.first_seq)?).ok()?)
    }

    /// Closes one, and says what became of it.
    fn settle_one(&mut self, seq: u64) -> Option<ProbeSample> {
        let index = usize::try_from(seq.checked_sub(self.first_seq)?).ok()?;
        let probe = self.open.get_mut(index)?;
        probe.settled = true;
        Some(ProbeSample {
            link: self.link,
            seq,
            sent_ns: probe.sent_ns,
            delay_ns: probe.arrived_ns.map(|arrived| arrived.saturating_sub(probe.sent_ns)),
            copies: probe.copies,
            reordered: probe.reordered,
        })
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::HostId;

    use super::*;

    const LOST: u64 = 2_000_000_000;

    fn window(probes: u64) -> Window {
        let mut window = Window::new(Link { from: HostId(0), to: HostId(1) });
        (0..probes).for_each(|seq| window.sent(seq * 1_000));
        window
    }

    fn settled(window: &mut Window, now_ns: u64) -> Vec<(u64, Option<u64>, u8, bool)> {
        let mut all = Vec::new();
        window.settle(now_ns, LOST, 0, |s| all.push((s.seq, s.delay_ns, s.copies, s.reordered)));
        all
    }

    #[test]
    fn a_probe_settles_once_when_answered_or_too_old() {
        let mut window = window(3);
        assert!(window.arrived(2, Some(7_000)));
        assert_eq!(settled(&mut window, 8_000), []);
        assert_eq!(settled(&mut window, COPY_GRACE_NS + 7_000), [(2, Some(5_000), 1, false)]);
        assert_eq!(settled(&mut window, LOST), [(0, None, 0, false)]);
        assert_eq!(window.next_seq(), 3);
        assert_eq!(settled(&mut window, LOST + 1_000), [(1, None, 0, false)]);
        assert_eq!(window.next_seq(), 3);
        assert!(window.open.is_empty());
    }

    #[test]
    fn copies_and_reordering_are_seen() {
        let mut window = window(2);
        for seq in [1, 0, 0] {
            assert!(window.arrived(seq, Some(10_000)));
        }
        assert_eq!(settled(&mut window, LOST), [(1, Some(9_000), 1, false), (0, Some(10_000), 2, true)]);
    }

    #[test]
    fn a_copy_may_come_as_late_as_the_link_can_hold_it() {
        const HOLD: u64 = 400_000_000;
        let mut window = window(1);
        let mut all = Vec::new();
        window.arrived(0, Some(100_000_000));
        window.settle(100_000_000 + COPY_GRACE_NS, LOST, HOLD, |sample| all.push(sample));
        assert!(window.arrived(0, Some(HOLD - 1)));
        window.settle(HOLD, LOST, HOLD, |sample| all.push(sample));
        assert_eq!(all.iter().map(|sample| sample.copies).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn probes_that_take_a_minute_settle_one_by_one() {
        const MINUTE: u64 = 60_000_000_000;
        let mut window = Window::new(Link { from: HostId(0), to: HostId(1) });
        let mut all = Vec::new();
        // One every 10 ms, each a minute on its way, every tenth lost.
        for turn in 0..7_000 {
            let now = turn * 10_000_000;
            window.sent(now);
            if let Some(seq) = turn.checked_sub(6_000).filter(|seq| seq % 10 != 0) {
                assert!(window.arrived(seq, Some(now)));
            }
            window.settle(now, LOST + MINUTE, 0, |sample| all.push(sample));
        }
        let late = all.iter().filter(|sample| sample.delay_ns == Some(MINUTE)).count();
        let lost: Vec<_> = all.iter().filter(|sample| sample.delay_ns.is_none()).map(|sample| sample.seq).collect();
        assert_eq!((late + lost.len(), all.iter().filter(|sample| sample.reordered).count()), (all.len(), 0));
        // Answered ones after their grace, lost ones two seconds later.
        assert_eq!(lost, (0..80).map(|ten| ten * 10).collect::<Vec<_>>());
        assert_eq!(late, (0..995).filter(|seq| seq % 10 != 0).count());
    }

    #[test]
    fn arrivals_of_settled_or_unsent_probes_are_told_apart() {
        let mut window = window(1);
        settled(&mut window, LOST);
        assert!(!window.arrived(0, Some(LOST)));
        assert!(!window.arrived(1, Some(LOST)));
    }

    #[test]
    fn a_probe_that_arrived_nobody_knows_when_is_neither_a_sample_nor_lost() {
        let mut window = window(2);
        assert!(window.arrived(0, None));
        assert!(window.arrived(0, Some(9_000)), "a copy does not make it known");
        let mut all = Vec::new();
        assert_eq!(window.settle(10_000, LOST, 0, |sample| all.push(sample)), 1);
        assert_eq!(window.settle(2 * LOST, LOST, 0, |sample| all.push(sample)), 0);
        assert_eq!(all.iter().map(|sample| sample.seq).collect::<Vec<_>>(), [1]);
        assert!(window.open.is_empty());
    }

    #[test]
    fn what_was_sent_while_a_host_was_away_is_neither_a_sample_nor_lost() {
        let mut window = window(4);
        window.refused();
        assert!(window.arrived(2, Some(7_000)));
        assert_eq!(window.leave_out(1_000), (2, 1), "the second and the fourth");
        assert_eq!(window.leave_out(1_000), (0, 0));
        assert!(!window.arrived(3, Some(9_000)), "nobody waits for it any more");
        assert_eq!(settled(&mut window, 2 * LOST), [(2, Some(5_000), 1, false), (0, None, 0, false)]);
        assert!(window.open.is_empty());
        window.sent(3 * LOST);
        assert_eq!(settled(&mut window, 4 * LOST), [(4, None, 0, false)], "it goes on");
    }

    #[test]
    fn settling_looks_only_at_what_settles() {
        // Long delays at 2,000 probes a second, settled every 10 ms: looking at all each time would take 10^11 looks.
        const LONG: u64 = 1_000_000_000_000;
        let mut window = Window::new(Link { from: HostId(0), to: HostId(1) });
        let (mut seq, mut all) = (0, 0);
        for round in 0..100_000 {
            let now = round * 10_000_000;
            (0..20).for_each(|_| window.sent(now));
            // One of twenty is answered.
            assert!(window.arrived(seq, Some(now)));
            seq += 20;
            window.settle(now, LONG + LOST, 0, |_| all += 1);
        }
        assert!(all > 99_000);
        window.settle(2 * LONG + LOST, LONG + LOST, 0, |_| all += 1);
        assert_eq!(all, 100_000 * 20);
        assert!(window.open.is_empty() && window.answered.is_empty());
    }
}
