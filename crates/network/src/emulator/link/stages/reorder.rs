//! Packets that skip the delay.

use super::{Fate, Impairment, Kind, Random, Stage, chance::Draws};
use crate::impairment::{self, Chance};

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| impairment.reorder != impairment::Reorder::NEVER,
    make: |random| Box::new(Reorder { draws: Draws::default(), delayed: 0, random }),
};

/// Says which packets; the delay of the same impairment, which comes next, lets them pass.
struct Reorder {
    draws: Draws,
    /// Packets delayed since the last that was not.
    delayed: u32,
    random: Random,
}

impl Stage for Reorder {
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>) {
        let impairment::Reorder { share, correlation, gap } = asked.reorder;
        for fate in fates.iter_mut().filter(|fate| fate.end.is_none()) {
            if self.delayed.saturating_add(1) >= gap && self.draws.next(Chance { share, correlation }, &mut self.random)
            {
                (fate.skips, fate.overtakes) = (true, true);
                self.delayed = 0;
            } else {
                self.delayed = self.delayed.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{assert_share, decide, stage},
        *,
    };

    fn skipping(share: &str, gap: u32) -> Vec<u32> {
        let reorder = impairment::Reorder { share: share.parse().unwrap(), gap, ..impairment::Reorder::NEVER };
        let fates = decide(&mut stage(&KIND, Impairment { reorder, ..Impairment::NONE }), 100_000);
        assert!(fates.iter().all(|fate| fate.skips == fate.overtakes));
        fates.iter().filter(|fate| fate.skips).map(|fate| fate.segment).collect()
    }

    #[test]
    fn with_a_gap_and_all_of_them_it_is_every_so_manyth() {
        let expected: Vec<u32> = (0..100_000).filter(|n| n % 5 == 4).collect();
        assert_eq!(skipping("100%", 5), expected);
    }

    #[test]
    fn the_share_asked_for_skips_the_delay() {
        assert_share(skipping("25%", 1).len(), 100_000, 0.25, 1.0);
        let gapped = skipping("50%", 4);
        assert!(gapped.windows(2).all(|pair| pair[1] - pair[0] >= 4));
        let mean = impairment::Reorder { share: "50%".parse().unwrap(), gap: 4, ..impairment::Reorder::NEVER }.mean();
        assert_share(gapped.len(), 100_000, mean.unwrap().fraction(), 1.0);
    }
}
