//! Packets that come twice.

use super::{Fate, Impairment, Kind, Random, Stage, chance::Draws};
use crate::impairment::Chance;

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| impairment.duplicate != Chance::NEVER,
    make: |random| Box::new(Duplicate { draws: Draws::default(), random, fates: Vec::new() }),
};

/// A copy follows at once, and from here on is a packet like any other.
struct Duplicate {
    draws: Draws,
    random: Random,
    /// Room for the fates before there were copies.
    fates: Vec<Fate>,
}

impl Stage for Duplicate {
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>) {
        std::mem::swap(fates, &mut self.fates);
        fates.clear();
        for fate in &self.fates {
            fates.push(*fate);
            if self.draws.next(asked.duplicate, &mut self.random) && fate.end.is_none() {
                fates.push(Fate { copy: true, ..*fate });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            End,
            testing::{Asked, assert_share, decide, stage},
        },
        *,
    };

    fn duplicates(share: &str) -> Asked {
        stage(&KIND, Impairment { duplicate: Chance::of(share.parse().unwrap()), ..Impairment::NONE })
    }

    #[test]
    fn the_share_asked_for_comes_twice_each_copy_behind_its_packet() {
        let fates = decide(&mut duplicates("10%"), 100_000);
        let copies = fates.iter().filter(|fate| fate.copy).count();
        assert_eq!(fates.len(), 100_000 + copies);
        assert_share(copies, 100_000, 0.1, 1.0);
        for pair in fates.windows(2) {
            assert_eq!(pair[1].segment, pair[0].segment + u32::from(!pair[1].copy));
        }
    }

    #[test]
    fn what_is_lost_does_not_come_twice() {
        let mut fates = vec![Fate { end: Some(End::Lost), ..Fate::new(0, 1, 0) }, Fate::new(1, 1, 0)];
        duplicates("100%").decide(&mut fates);
        assert_eq!(
            fates.iter().map(|fate| (fate.segment, fate.copy)).collect::<Vec<_>>(),
            [(0, false), (1, false), (1, true)]
        );
    }

    #[test]
    fn a_copy_may_itself_come_twice_by_another_impairment() {
        let mut fates = vec![Fate::new(0, 1, 0)];
        duplicates("100%").decide(&mut fates);
        duplicates("100%").decide(&mut fates);
        assert_eq!(fates.iter().filter(|fate| fate.copy).count(), 3);
    }
}
