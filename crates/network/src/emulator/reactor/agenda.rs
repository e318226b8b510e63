//! Which link has a packet due next.

use std::{cmp::Reverse, collections::BinaryHeap};

/// At most one valid entry per link: the release of the first packet that it holds.
pub(in crate::emulator) struct Agenda {
    entries: BinaryHeap<Reverse<(u64, usize)>>,
    /// Per link, the entry that is valid. Others of the same link are leftovers, to be skipped.
    valid: Vec<Option<u64>>,
}

impl Agenda {
    pub(in crate::emulator) fn new(links: usize) -> Self {
        Agenda { entries: BinaryHeap::new(), valid: vec![None; links] }
    }

    /// Says when the first packet that `link` holds is due.
    pub(in crate::emulator) fn set(&mut self, link: usize, release_ns: Option<u64>) {
        if self.valid[link] != release_ns {
            self.valid[link] = release_ns;
            self.entries.extend(release_ns.map(|release| Reverse((release, link))));
            // Leftovers of late releases would lie there until then.
            if self.entries.len() > 2 * self.valid.len() + 64 {
                self.entries.clear();
                let valid = (0..).zip(&self.valid).filter_map(|(link, release)| Some(Reverse(((*release)?, link))));
                self.entries.extend(valid);
            }
        }
    }

    /// The earliest release of all links.
    pub(in crate::emulator) fn next(&mut self) -> Option<u64> {
        self.skip_leftovers();
        self.entries.peek().map(|Reverse((release, _))| *release)
    }

    /// The link with the earliest release, if that is due.
    pub(in crate::emulator) fn due(&mut self, now_ns: u64) -> Option<usize> {
        self.skip_leftovers();
        self.entries.peek().filter(|Reverse((release, _))| *release <= now_ns).map(|Reverse((_, link))| *link)
    }

    fn skip_leftovers(&mut self) {
        while let Some(Reverse((release, link))) = self.entries.peek()
            && self.valid[*link] != Some(*release)
        {
            self.entries.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_all_links_is_next() {
        let mut agenda = Agenda::new(3);
        assert_eq!(agenda.next(), None);
        agenda.set(0, Some(30));
        agenda.set(1, Some(20));
        agenda.set(2, Some(40));
        assert_eq!((agenda.next(), agenda.due(19), agenda.due(20)), (Some(20), None, Some(1)));
    }

    #[test]
    fn leftovers_do_not_pile_up() {
        let mut agenda = Agenda::new(2);
        agenda.set(1, Some(5_000_000));
        for n in 0..1_000_000 {
            // As when a link with a long delay is amended in turn, back and forth.
            agenda.set(0, Some(1_000_000 + n % 3));
        }
        assert!(agenda.entries.len() <= 2 * 2 + 64 + 1, "{} entries", agenda.entries.len());
        assert_eq!(agenda.next(), Some(1_000_000));
        agenda.set(0, None);
        assert_eq!(agenda.due(5_000_000), Some(1));
    }

    #[test]
    fn only_the_last_word_about_a_link_counts() {
        let mut agenda = Agenda::new(2);
        agenda.set(0, Some(10));
        agenda.set(0, Some(50));
        agenda.set(1, Some(20));
        assert_eq!(agenda.due(100), Some(1));
        agenda.set(1, None);
        assert_eq!(agenda.next(), Some(50));
        agenda.set(0, Some(10));
        assert_eq!(agenda.next(), Some(10));
        agenda.set(0, None);
        assert_eq!(agenda.next(), None);
        assert!(agenda.entries.is_empty());
    }
}
