//! Probes that reached their host and found no room.

use std::collections::VecDeque;

/// What one host's socket had to drop. Which probes these were nobody knows; but as many of those that do not arrive
/// were not lost on the way.
#[derive(Default)]
pub(super) struct Overflow {
    /// The kernel's count when it was last seen.
    seen: u32,
    /// When more were noticed, and how many of them no missing probe was excused by yet.
    open: VecDeque<(u64, u32)>,
}

impl Overflow {
    /// Takes note of the kernel's count, as it was at `at_ns`; how many are new.
    pub(super) fn note(&mut self, count: u32, at_ns: u64) -> u32 {
        let new = count.wrapping_sub(self.seen);
        self.seen = count;
        if new > 0 {
            self.open.push_back((at_ns, new));
        }
        new
    }

    /// Whether a probe of `sent_ns` that did not arrive is one of them, as far as numbers tell.
    pub(super) fn excuses(&mut self, sent_ns: u64) -> bool {
        // One sent after the overflow was noticed was not part of it.
        let Some((_, left)) = self.open.iter_mut().find(|(at_ns, left)| *at_ns >= sent_ns && *left > 0) else {
            return false;
        };
        *left -= 1;
        true
    }

    /// Forgets what was noticed before `ns`: all that were on their way then have settled.
    pub(super) fn forget_before(&mut self, ns: u64) {
        while self.open.front().is_some_and(|(at_ns, _)| *at_ns < ns) {
            self.open.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_missing_probes_are_excused_as_were_dropped_if_they_were_sent_before() {
        let mut overflow = Overflow::default();
        assert!(!overflow.excuses(0));
        assert_eq!((overflow.note(2, 100), overflow.note(2, 200), overflow.note(3, 300)), (2, 0, 1));
        assert!(!overflow.excuses(301), "sent afterwards");
        assert!(overflow.excuses(50) && overflow.excuses(60) && overflow.excuses(70));
        assert!(!overflow.excuses(80), "all were excused");
    }

    #[test]
    fn an_overflow_of_others_excuses_nothing_for_ever() {
        let mut overflow = Overflow::default();
        overflow.note(5, 100);
        overflow.forget_before(101);
        assert!(!overflow.excuses(50));
        assert_eq!(overflow.note(5, 200), 0);
        assert_eq!(Overflow { seen: u32::MAX, ..Overflow::default() }.note(1, 0), 2);
    }
}
