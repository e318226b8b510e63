//! Delay, constant or with jitter.

use brownout_units::Share;

use super::{Fate, Impairment, Kind, Random, Stage};
use crate::impairment::{Distribution, Reorder, normal_quantile};

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| {
        let Impairment { delay, jitter, distribution, delay_correlation, reorder, .. } = *impairment;
        let asked = (delay, jitter, distribution, delay_correlation) != Default::default();
        // Those that skip a delay need one to skip, or the next impairment's would be skipped.
        asked || reorder != Reorder::NEVER
    },
    make: |random| Box::new(Delay { last: None, random }),
};

/// Holds each packet for a constant time, give or take a drawn one.
struct Delay {
    /// With correlation, what the last packet's delay was made of: a standard normal value.
    last: Option<f64>,
    random: Random,
}

impl Stage for Delay {
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>) {
        for fate in fates {
            // Drawn for lost packets too, so that loss does not change the jitter of the others.
            let flight = self.next(asked);
            if !std::mem::take(&mut fate.skips) {
                fate.flight_ns = fate.flight_ns.saturating_add(flight);
            }
        }
    }
}

impl Delay {
    /// The next packet's delay.
    fn next(&mut self, asked: &Impairment) -> u64 {
        let Impairment { distribution, delay_correlation, .. } = *asked;
        let (delay, jitter) = (asked.delay.ns(), asked.jitter.ns());
        if jitter == 0 {
            return delay;
        }
        let offset = match (delay_correlation == Share::ZERO, distribution) {
            (true, Distribution::Uniform) => {
                return delay.saturating_add(self.random.between(0, jitter.saturating_mul(2))).saturating_sub(jitter);
            }
            (true, _) => distribution.quantile(self.random.open_fraction()),
            (false, _) => distribution.at_normal(self.correlated(distribution, delay_correlation)),
        };
        // A conversion from floating point saturates.
        let away = (offset.abs() * jitter as f64) as u64;
        if offset < 0.0 { delay.saturating_sub(away) } else { delay.saturating_add(away) }
    }

    /// A standard normal value, correlated with the last: a first-order autoregression, z′ = ρ·z + √(1 − ρ²)·n. Through
    /// the quantiles of a distribution (a Gaussian copula) it becomes a delay that is distributed exactly so.
    fn correlated(&mut self, distribution: Distribution, correlation: Share) -> f64 {
        let fresh = normal_quantile(self.random.open_fraction());
        let rho = distribution.underlying_correlation(correlation.fraction());
        let value = match self.last {
            Some(last) => rho * last + (1.0 - rho * rho).max(0.0).sqrt() * fresh,
            None => fresh,
        };
        self.last = Some(value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{assert_share, autocorrelation, decide, stage},
        *,
    };

    const PACKETS: u32 = 100_000;

    fn flights(impairment: Impairment) -> Vec<u64> {
        decide(&mut stage(&KIND, impairment), PACKETS).iter().map(|fate| fate.flight_ns).collect()
    }

    fn jitter(delay: u64, jitter: u64) -> Impairment {
        Impairment {
            delay: brownout_units::Delay::from_ns(delay),
            jitter: brownout_units::Delay::from_ns(jitter),
            ..Impairment::NONE
        }
    }

    #[test]
    fn a_constant_delay_is_constant() {
        assert!(flights(jitter(1_000, 0)).iter().all(|flight| *flight == 1_000));
    }

    #[test]
    fn absurd_delays_saturate_instead_of_wrapping() {
        assert!(flights(jitter(u64::MAX, 0)).iter().all(|flight| *flight == u64::MAX));
        assert!(flights(jitter(u64::MAX, 1_000)).iter().all(|flight| *flight >= u64::MAX - 1_000));
        for distribution in Distribution::ALL {
            flights(Impairment { distribution, ..jitter(u64::MAX, u64::MAX) });
        }
    }

    #[test]
    fn delays_are_distributed_as_asked_with_and_without_correlation() {
        let (mean, spread) = (1_000_000.0, 100_000.0);
        for distribution in Distribution::ALL {
            for (correlation, variance) in [("0%", 1.0), ("50%", 3.0), ("90%", 19.0)] {
                let asked = Impairment { distribution, ..jitter(mean as u64, spread as u64) };
                let flights = flights(Impairment { delay_correlation: correlation.parse().unwrap(), ..asked });
                for q in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
                    let bound = mean + spread * distribution.quantile(q);
                    let below = flights.iter().filter(|flight| (**flight as f64) < bound).count();
                    assert_share(below, flights.len(), q, variance);
                }
            }
        }
    }

    #[test]
    fn successive_delays_resemble_one_another_as_asked() {
        for (distribution, tolerance) in [(Distribution::Uniform, 0.01), (Distribution::Normal, 0.01)] {
            for rho in ["0%", "25%", "90%"] {
                let asked = Impairment { distribution, ..jitter(1_000_000, 100_000) };
                let flights = flights(Impairment { delay_correlation: rho.parse().unwrap(), ..asked });
                let found = autocorrelation(&flights.iter().map(|flight| *flight as f64).collect::<Vec<_>>());
                let expected = rho.parse::<Share>().unwrap().fraction();
                assert!((found - expected).abs() < tolerance, "{distribution} {rho}: {found}");
            }
        }
    }

    #[test]
    fn a_delay_is_never_below_zero() {
        for distribution in Distribution::ALL {
            let flights = flights(Impairment { distribution, ..jitter(100, 400) });
            assert_eq!(flights.iter().min(), Some(&0), "{distribution}");
        }
    }

    #[test]
    fn those_that_skip_it_skip_one_delay_only() {
        let mut fates = vec![Fate { skips: true, ..Fate::new(0, 1, 0) }, Fate::new(1, 1, 0)];
        stage(&KIND, jitter(100, 0)).decide(&mut fates);
        stage(&KIND, jitter(7, 0)).decide(&mut fates);
        assert_eq!([fates[0].flight_ns, fates[1].flight_ns], [7, 107]);
    }
}
