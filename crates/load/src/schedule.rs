//! The open-loop schedule: when operations are meant to start, decided by the clock alone.

use brownout_units::Rate;

use crate::{Arrivals, random::Random};

/// The intended starts of one thread's part of an open loop.
///
/// Constant arrivals deal the operations out to the threads in turn, so the union over all threads is the exact
/// schedule `start + k ÷ rate`. Each start is computed from its number, never by adding a rounded period, so no
/// error builds up: in f64 it is below 1 ns for 100 days. Poisson arrivals are one independent process per thread
/// with the rate divided; their union is again a Poisson process.
#[derive(Debug)]
pub(crate) struct Schedule {
    start_ns: u64,
    spacing: Spacing,
    next_ns: u64,
}

#[derive(Debug)]
enum Spacing {
    Constant { rate: f64, number: f64, stride: f64 },
    Poisson { mean_gap_ns: f64, elapsed_ns: f64, random: Random },
}

impl Schedule {
    /// Part `thread` of `threads` of a schedule that begins at `start_ns`.
    pub(crate) fn new(start_ns: u64, rate: Rate, arrivals: Arrivals, thread: usize, threads: usize, seed: u64) -> Self {
        let spacing = match arrivals {
            Arrivals::Constant => Spacing::Constant { rate: rate.get(), number: thread as f64, stride: threads as f64 },
            Arrivals::Poisson => {
                let mut random = Random::new(seed, thread as u64);
                let mean_gap_ns = rate.period_ns() * threads as f64;
                Spacing::Poisson { mean_gap_ns, elapsed_ns: mean_gap_ns * random.exponential(), random }
            }
        };
        let mut schedule = Schedule { start_ns, spacing, next_ns: 0 };
        schedule.next_ns = schedule.at();
        schedule
    }

    fn at(&self) -> u64 {
        let offset = match &self.spacing {
            Spacing::Constant { rate, number, .. } => number * 1e9 / rate,
            Spacing::Poisson { elapsed_ns, .. } => *elapsed_ns,
        };
        // Saturates: a rate of once in an aeon is due at the end of time.
        self.start_ns.saturating_add(offset as u64)
    }

    /// The next intended start.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next start if it is due at `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_ns > now_ns {
            return None;
        }
        let due = self.next_ns;
        match &mut self.spacing {
            Spacing::Constant { number, stride, .. } => *number += *stride,
            Spacing::Poisson { mean_gap_ns, elapsed_ns, random } => *elapsed_ns += *mean_gap_ns * random.exponential(),
        }
        self.next_ns = self.at();
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    fn count(schedule: &mut Schedule, until: u64) -> u64 {
        std::iter::from_fn(|| schedule.take_due(until)).count() as u64
    }

    #[test]
    fn an_hour_of_constant_arrivals_has_no_drift() {
        // 300,001/s has a period of 3333.32…ns: rounded to whole ns it would lose 0.01 %, 360 ms an hour.
        for rate in [0.3, 7.0, 400.0, 300_001.0] {
            let mut schedule = Schedule::new(5, Rate::per_second(rate).unwrap(), Arrivals::Constant, 0, 1, 0);
            let span = if rate > 1e5 { HOUR / 60 } else { HOUR };
            let expected = (span as f64 / 1e9 * rate).round() as u64;
            assert_eq!(count(&mut schedule, 5 + span - 1), expected, "{rate}/s");
            let ideal = 5.0 + expected as f64 * 1e9 / rate;
            assert!((schedule.next_ns() as f64 - ideal).abs() <= 1.0, "{rate}/s");
        }
    }

    #[test]
    fn threads_share_one_exact_schedule() {
        let rate = Rate::per_second(700.0).unwrap();
        let all = |threads: usize| {
            let mut starts: Vec<u64> = (0..threads)
                .flat_map(|thread| {
                    let mut part = Schedule::new(0, rate, Arrivals::Constant, thread, threads, 1);
                    std::iter::from_fn(move || part.take_due(3_000_000_000)).collect::<Vec<_>>()
                })
                .collect();
            starts.sort_unstable();
            starts
        };
        assert_eq!(all(1), all(3));
    }

    #[test]
    fn poisson_arrivals_have_the_asked_rate_and_exponential_gaps() {
        let rate = Rate::per_second(1000.0).unwrap();
        for threads in [1, 4] {
            let mut total = 0;
            for thread in 0..threads {
                let mut schedule = Schedule::new(0, rate, Arrivals::Poisson, thread, threads, 9);
                let starts: Vec<u64> = std::iter::from_fn(|| schedule.take_due(600_000_000_000)).collect();
                let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
                let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
                assert!((deviation / mean - 1.0).abs() < 0.02, "an exponential's deviation is its mean");
                total += starts.len();
            }
            // 600,000 expected; five standard deviations of a Poisson count are 3,873.
            assert!((total as i64 - 600_000).abs() < 3_873, "{total}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let starts = |seed| {
            let rate = Rate::per_second(100.0).unwrap();
            let mut schedule = Schedule::new(0, rate, Arrivals::Poisson, 0, 1, seed);
            std::iter::from_fn(move || schedule.take_due(1_000_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
    }

    #[test]
    fn nothing_is_skipped_after_a_stall() {
        let rate = Rate::per_second(1000.0).unwrap();
        let mut schedule = Schedule::new(0, rate, Arrivals::Constant, 0, 1, 0);
        assert_eq!(schedule.take_due(0), Some(0));
        assert_eq!(schedule.take_due(999_999), None);
        assert_eq!(count(&mut schedule, 5_000_000_000), 5_000);
    }
}
