//! Packets with a flipped bit.

use super::{Fate, Impairment, Kind, Random, Stage, chance::Draws};
use crate::impairment::Chance;

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| impairment.corrupt != Chance::NEVER,
    make: |random| Box::new(Corrupt { draws: Draws::default(), random }),
};

/// Says which packets, and draws the bit; [`crate::emulator::packet::damage`] flips it.
struct Corrupt {
    draws: Draws,
    random: Random,
}

impl Stage for Corrupt {
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>) {
        for fate in fates {
            if self.draws.next(asked.corrupt, &mut self.random) {
                let draw = self.random.word();
                // One flip, whoever asks for more: two could cancel in the checksum, and reach an application.
                fate.flip = fate.flip.or(Some(draw));
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

    #[test]
    fn the_share_asked_for_is_corrupted_at_places_of_its_own_and_once() {
        let corrupt = || stage(&KIND, Impairment { corrupt: Chance::of("20%".parse().unwrap()), ..Impairment::NONE });
        let mut fates = decide(&mut corrupt(), 100_000);
        let mut places: Vec<_> = fates.iter().filter_map(|fate| fate.flip).collect();
        assert_share(places.len(), 100_000, 0.2, 1.0);
        let before = places.clone();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), before.len(), "64 bits hardly ever come twice");
        corrupt().decide(&mut fates);
        let after = fates.iter().filter_map(|fate| fate.flip).filter(|place| before.contains(place));
        assert_eq!(after.count(), before.len(), "who has been hit before keeps the bit");
    }
}
