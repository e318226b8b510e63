//! Independent loss.

use brownout_units::Share;

use super::{Fate, Impairment, Random, Stage};

/// Each packet vanishes with the same probability, whatever happened before (Bernoulli).
pub(super) struct Loss {
    share: Share,
    random: Random,
}

impl Loss {
    pub(super) fn new(random: Random) -> Self {
        Loss { share: Share::ZERO, random }
    }
}

impl Stage for Loss {
    fn configure(&mut self, impairment: &Impairment) {
        self.share = impairment.loss.mean();
    }

    fn report(&self, into: &mut Impairment) {
        into.loss = crate::impairment::Loss::Independent(self.share);
    }

    fn decide(&mut self, packets: &mut [Fate]) {
        let probability = self.share.fraction();
        if probability > 0.0 {
            packets.iter_mut().for_each(|packet| packet.lost |= self.random.chance(probability));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{HostId, Link};

    /// How many of `packets` are lost.
    fn lost(share: &str, packets: usize) -> usize {
        let mut stage = Loss::new(Random::of(1, Link { from: HostId(0), to: HostId(1) }, 0));
        stage.configure(&Impairment::loss(share.parse().unwrap()));
        let mut fates = vec![Fate::default(); packets];
        stage.decide(&mut fates);
        fates.iter().filter(|fate| fate.lost).count()
    }

    #[test]
    fn the_share_asked_for_is_lost() {
        assert_eq!(lost("0%", 10_000), 0);
        assert_eq!(lost("100%", 10_000), 10_000);
        // Within the 99.9 % interval of the binomial distribution: mean ± 3.29 standard deviations.
        for (share, fraction) in [("0.1%", 0.001_f64), ("1%", 0.01), ("50%", 0.5)] {
            let packets = 1_000_000;
            let mean = packets as f64 * fraction;
            let deviation = (mean * (1.0 - fraction)).sqrt();
            let lost = lost(share, packets) as f64;
            assert!((lost - mean).abs() < 3.29 * deviation, "{share}: {lost}");
        }
    }
}
