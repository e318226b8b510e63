//! A few hot values and many cold ones, each group uniform: YCSB's "hotspot".

use brownout_base::random::below;

use crate::java::Random;

/// The first values of a range get a share of the draws, the others the rest.
#[derive(Debug, Clone, Copy)]
pub struct Hotspot {
    min: i64,
    items: i64,
    /// How many values are hot.
    hot: i64,
    /// The share of draws that they get.
    draws: f64,
}

impl Hotspot {
    pub(super) fn new(min: i64, max: i64, hot_set: f64, hot_draws: f64) -> Self {
        let items = max - min + 1;
        // As many as asked, but never an empty group that draws go to.
        let least = i64::from(hot_draws > 0.0);
        let most = items - i64::from(hot_draws < 1.0);
        let hot = ((items as f64 * hot_set).round() as i64).clamp(least, most.max(least));
        Hotspot { min, items, hot, draws: hot_draws }
    }

    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> i64 {
        let hot = random.next_f64() < self.draws;
        let word = random.next_i64() as u64;
        let offset = if hot {
            below(word, self.hot as u64) as i64
        } else {
            self.hot + below(word, (self.items - self.hot) as u64) as i64
        };
        self.min + offset
    }

    pub(super) fn range(&self) -> (i64, i64) {
        (self.min, self.min + self.items - 1)
    }

    pub(super) fn inverse(&self, p: f64) -> i64 {
        let within = |share: f64, count: i64| ((share * count as f64).ceil() as i64 - 1).clamp(0, count - 1);
        let cold = self.items - self.hot;
        let offset = if (p <= self.draws && self.hot > 0) || cold == 0 {
            within(p / self.draws, self.hot)
        } else {
            self.hot + within((p - self.draws) / (1.0 - self.draws), cold)
        };
        self.min + offset
    }

    pub(super) fn mean(&self) -> f64 {
        let (hot, cold) = (self.hot as f64, (self.items - self.hot) as f64);
        self.min as f64 + self.draws * (hot - 1.0) / 2.0 + (1.0 - self.draws) * (hot + (cold - 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::distribution::{Spec, SpecError};

    #[test]
    fn the_hot_set_gets_its_share_and_is_uniform_inside() -> Result<(), SpecError> {
        let mut hotspot = "hotspot(101..200,10%,0.8)".parse::<Spec>()?.build(3);
        let mut counts = [0u32; 100];
        let draws = 100_000;
        (0..draws).for_each(|_| counts[(hotspot.next() - 101) as usize] += 1);
        let hot: u32 = counts[..10].iter().sum();
        assert!((f64::from(hot) / f64::from(draws) - 0.8).abs() < 0.005, "{hot}");
        assert!(counts[..10].iter().all(|count| (7_600..8_400).contains(count)), "{counts:?}");
        assert!(counts[10..].iter().all(|count| (150..300).contains(count)), "{counts:?}");
        Ok(())
    }

    #[test]
    fn its_mean_is_that_of_its_draws() -> Result<(), SpecError> {
        let mut hotspot = "hotspot(1..1000,0.2,0.9)".parse::<Spec>()?.build(3);
        let mean = (0..100_000).map(|_| hotspot.next() as f64).sum::<f64>() / 100_000.0;
        assert!((mean - hotspot.average() as f64).abs() < 3.0, "{mean}");
        assert_eq!([0.0, 0.45, 0.9, 1.0].map(|p| hotspot.inverse_cumulative(p)), [1, 100, 200, 1000]);
        Ok(())
    }

    #[test]
    fn a_group_that_gets_nothing_may_be_empty() -> Result<(), SpecError> {
        for text in [
            "hotspot(1..5,0,1)",
            "hotspot(1..5,1,0)",
            "hotspot(1..5,1,1)",
            "hotspot(1..5,0,0)",
            "hotspot(1..2,0.5,0.5)",
        ] {
            let mut hotspot = text.parse::<Spec>()?.build(1);
            assert!((0..1000).all(|_| (1..=5).contains(&hotspot.next())), "{text}");
            assert!([0.0, 0.3, 1.0].iter().all(|p| (1..=5).contains(&hotspot.inverse_cumulative(*p))), "{text}");
        }
        Ok(())
    }
}
