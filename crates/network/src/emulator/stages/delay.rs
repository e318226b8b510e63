//! Delay, constant or with uniform jitter.

use brownout_units::Delay as Span;

use super::{Fate, Impairment, Random, Stage};

/// Holds each packet for a constant time, give or take a uniformly drawn one.
pub(super) struct Delay {
    delay: Span,
    jitter: Span,
    random: Random,
}

impl Delay {
    pub(super) fn new(random: Random) -> Self {
        Delay { delay: Span::ZERO, jitter: Span::ZERO, random }
    }
}

impl Stage for Delay {
    fn configure(&mut self, impairment: &Impairment) {
        (self.delay, self.jitter) = (impairment.delay, impairment.jitter);
    }

    fn report(&self, into: &mut Impairment) {
        (into.delay, into.jitter) = (self.delay, self.jitter);
    }

    fn decide(&mut self, packets: &mut [Fate]) {
        let (delay, jitter) = (self.delay.ns(), self.jitter.ns());
        for packet in packets {
            let hold = match jitter {
                0 => delay,
                // Drawn for lost packets too, so that loss does not change the jitter of the others.
                _ => delay.saturating_add(self.random.up_to(jitter.saturating_mul(2))).saturating_sub(jitter),
            };
            packet.hold_ns = packet.hold_ns.saturating_add(hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{HostId, Link};

    fn holds(delay: u64, jitter: u64) -> Vec<u64> {
        let mut stage = Delay::new(Random::of(1, Link { from: HostId(0), to: HostId(1) }, 1));
        stage.configure(&Impairment::delay(Span::from_ns(delay)).with_jitter(Span::from_ns(jitter)));
        let mut fates = vec![Fate::default(); 100_000];
        stage.decide(&mut fates);
        fates.iter().map(|fate| fate.hold_ns).collect()
    }

    #[test]
    fn a_constant_delay_is_constant() {
        assert!(holds(1_000, 0).iter().all(|hold| *hold == 1_000));
    }

    #[test]
    fn absurd_delays_saturate_instead_of_wrapping() {
        assert!(holds(u64::MAX, 0).iter().all(|hold| *hold == u64::MAX));
        assert!(holds(u64::MAX, 1_000).iter().all(|hold| *hold >= u64::MAX - 1_000));
    }

    #[test]
    fn jitter_is_uniform_around_the_delay() {
        let holds = holds(1_000_000, 200_000);
        let (least, most) = (holds.iter().min().unwrap(), holds.iter().max().unwrap());
        assert!((800_000..800_100).contains(least), "{least}");
        assert!((1_199_900..=1_200_000).contains(most), "{most}");
        let mean = holds.iter().sum::<u64>() / holds.len() as u64;
        // The mean of 100,000 draws has a standard deviation of 365 ns.
        assert!(mean.abs_diff(1_000_000) < 1_500, "{mean}");
        for quarter in 0..4 {
            let range = 800_000 + quarter * 100_000_u64..900_000 + quarter * 100_000;
            let share = holds.iter().filter(|hold| range.contains(hold)).count();
            assert!((24_500..25_500).contains(&share), "{range:?}: {share}");
        }
    }

    #[test]
    fn a_delay_is_never_below_zero() {
        let holds = holds(100, 200);
        assert_eq!(holds.iter().min(), Some(&0));
        assert!(holds.iter().all(|hold| *hold <= 300));
    }
}
