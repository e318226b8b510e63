use std::time::Duration;

use brownout_units::Rate;

use super::*;
use crate::{Pace, Part};

fn rate(per_second: f64) -> Rate {
    Rate::per_second(per_second).unwrap()
}

fn constant(per_second: f64) -> RateProfile {
    RateProfile::constant(rate(per_second))
}

const S: Duration = Duration::from_secs(1);

const HOUR: u64 = 3_600_000_000_000;

fn count(schedule: &mut Schedule, until: u64) -> u64 {
    std::iter::from_fn(|| schedule.take_due(until)).count() as u64
}

#[test]
fn an_hour_of_constant_arrivals_has_no_drift() {
    // 300,001/s has a period of 3333.32…ns: rounded to whole ns it would lose 0.01 %, 360 ms an hour.
    for rate in [0.3, 7.0, 400.0, 300_001.0] {
        let mut schedule = Schedule::new(5, constant(rate), Arrivals::Constant, 0, 1, 0);
        let span = if rate > 1e5 { HOUR / 60 } else { HOUR };
        let expected = (span as f64 / 1e9 * rate).round() as u64;
        assert_eq!(count(&mut schedule, 5 + span - 1), expected, "{rate}/s");
        let ideal = 5.0 + expected as f64 * 1e9 / rate;
        assert!((schedule.next_ns() as f64 - ideal).abs() <= 1.0, "{rate}/s");
    }
}

#[test]
fn threads_share_one_exact_schedule() {
    let all = |threads: usize| {
        let mut starts: Vec<u64> = (0..threads)
            .flat_map(|thread| {
                let mut part = Schedule::new(0, constant(700.0), Arrivals::Constant, thread, threads, 1);
                std::iter::from_fn(move || part.take_due(3_000_000_000)).collect::<Vec<_>>()
            })
            .collect();
        starts.sort_unstable();
        starts
    };
    assert_eq!(all(1), all(3));
}

#[test]
fn what_is_due_of_a_part_is_what_its_schedule_has() {
    let up = RateProfile::ramp(rate(10.0), rate(90.0), 2 * S).unwrap();
    for (profile, pace) in [
        (constant(333.3), Pace::Open { rate: rate(333.3), arrivals: Arrivals::Constant }),
        (up.clone(), Pace::Varying { profile: up, arrivals: Arrivals::Constant }),
    ] {
        for part in (0..3).map(|number| Part { number, of: 3 }) {
            let mut schedule = Schedule::new(0, profile.clone(), Arrivals::Constant, part.number, part.of, 1);
            let mut taken = 0;
            assert_eq!(part.due(&pace, Duration::ZERO), 0, "nothing is due before the beginning");
            for after in [1, 500, 1_000, 3_001].map(Duration::from_millis) {
                taken += count(&mut schedule, after.as_nanos() as u64 - 1);
                assert_eq!(part.due(&pace, after), taken, "{part:?} {pace:?} after {after:?}");
            }
        }
    }
    let poisson = Pace::Open { rate: rate(100.0), arrivals: Arrivals::Poisson };
    assert_eq!(Part { number: 1, of: 2 }.due(&poisson, 10 * S), 500, "in the mean");
    assert_eq!(Part::WHOLE.due(&Pace::Closed { threads: 8 }, 10 * S), 0, "nobody asks");
}

#[test]
fn poisson_arrivals_have_the_asked_rate_and_exponential_gaps() {
    for threads in [1, 4] {
        let mut total = 0;
        for thread in 0..threads {
            let mut schedule = Schedule::new(0, constant(1000.0), Arrivals::Poisson, thread, threads, 9);
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
        let mut schedule = Schedule::new(0, constant(100.0), Arrivals::Poisson, 0, 1, seed);
        std::iter::from_fn(move || schedule.take_due(1_000_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1), starts(2));
}

#[test]
fn nothing_is_skipped_after_a_stall() {
    let mut schedule = Schedule::new(0, constant(1000.0), Arrivals::Constant, 0, 1, 0);
    assert_eq!(schedule.take_due(0), Some(0));
    assert_eq!(schedule.take_due(999_999), None);
    assert_eq!(count(&mut schedule, 5_000_000_000), 5_000);
}

/// How many operations are due by a time in seconds.
type Integral = fn(f64) -> f64;

/// Profiles with the closed form of their integral.
fn profiles() -> Vec<(&'static str, RateProfile, Integral)> {
    let ramp = |from: f64, to: f64| RateProfile::ramp(rate(from), rate(to), 20 * S).unwrap();
    vec![
        ("up", ramp(100.0, 900.0), |t| if t < 20.0 { 100.0 * t + 20.0 * t * t } else { 10_000.0 + 900.0 * (t - 20.0) }),
        (
            "down",
            ramp(900.0, 100.0),
            |t| if t < 20.0 { 900.0 * t - 20.0 * t * t } else { 10_000.0 + 100.0 * (t - 20.0) },
        ),
        ("steps", RateProfile::steps(&[(rate(50.0), 10 * S), (rate(500.0), 5 * S), (rate(7.0), S)]).unwrap(), |t| {
            50.0 * t.min(10.0) + 500.0 * (t - 10.0).clamp(0.0, 5.0) + 7.0 * (t - 15.0).max(0.0)
        }),
        ("trace", RateProfile::trace(&[(S, 300.0), (10 * S, 0.0), (20 * S, 40.0)]).unwrap(), |t| {
            300.0 * (t - 1.0).clamp(0.0, 9.0) + 40.0 * (t - 20.0).max(0.0)
        }),
        ("sine", RateProfile::sine(rate(400.0), rate(400.0), 7 * S).unwrap(), |t| {
            400.0 * t + 400.0 * 7.0 / std::f64::consts::TAU * (1.0 - (std::f64::consts::TAU * t / 7.0).cos())
        }),
    ]
}

#[test]
fn every_start_lies_where_the_integral_of_the_rate_reaches_its_number() {
    for (name, profile, integral) in profiles() {
        for threads in [1, 3] {
            let mut starts: Vec<u64> = (0..threads)
                .flat_map(|thread| {
                    let mut part = Schedule::new(0, profile.clone(), Arrivals::Constant, thread, threads, 0);
                    std::iter::from_fn(move || part.take_due(60_000_000_000)).collect::<Vec<_>>()
                })
                .collect();
            starts.sort_unstable();
            let expected = integral(60.0);
            assert!((starts.len() as f64 - expected).abs() <= 1.0, "{name}: {} for {expected}", starts.len());
            for (number, at) in starts.iter().enumerate() {
                // A start is a whole number of ns, rounded down: the integral reaches its number within that ns.
                let (before, after) = (integral(*at as f64 / 1e9), integral((*at + 2) as f64 / 1e9));
                let (number, slack) = (number as f64, 1e-6);
                assert!(before <= number + slack && number <= after + slack, "{name}: {number} at {at} ns");
            }
        }
    }
}

#[test]
fn a_profile_tells_its_rate_and_its_integral() {
    for (name, profile, integral) in profiles() {
        for at in [0.5, 3.25, 12.0, 19.0, 33.3] {
            let (here, step) = (Duration::from_secs_f64(at), 1e-3);
            assert!((profile.count(here) - integral(at)).abs() < 1e-6, "{name} at {at}");
            let slope = (integral(at + step) - integral(at - step)) / (2.0 * step);
            assert!((profile.rate(here) - slope).abs() < 1e-2, "{name} at {at}: {} is {slope}", profile.rate(here));
            assert!(profile.rate(here) <= profile.highest());
        }
    }
}

#[test]
fn poisson_arrivals_follow_the_rate_of_their_profile() {
    for (name, profile, integral) in profiles() {
        let starts: Vec<u64> = (0..2)
            .flat_map(|thread| {
                let mut part = Schedule::new(0, profile.clone(), Arrivals::Poisson, thread, 2, 4);
                std::iter::from_fn(move || part.take_due(60_000_000_000)).collect::<Vec<_>>()
            })
            .collect();
        for (from, until) in [(0.0, 10.0), (10.0, 20.0), (20.0, 60.0)] {
            let counted = starts.iter().filter(|at| (from..until).contains(&(**at as f64 / 1e9))).count() as f64;
            let expected = integral(until) - integral(from);
            // Five standard deviations of a Poisson count.
            assert!((counted - expected).abs() <= 5.0 * expected.sqrt(), "{name}: {counted} for {expected}");
        }
    }
}

#[test]
fn a_profile_that_ends_at_rate_zero_is_never_due_again() {
    let profile = RateProfile::trace(&[(Duration::ZERO, 10.0), (S, 0.0)]).unwrap();
    let mut schedule = Schedule::new(7, profile, Arrivals::Constant, 0, 1, 0);
    assert_eq!(count(&mut schedule, 7 + 100 * HOUR), 10);
    assert_eq!(schedule.next_ns(), u64::MAX);
}

#[test]
fn impossible_profiles_are_refused() {
    assert!(RateProfile::ramp(rate(1.0), rate(2.0), Duration::ZERO).is_err());
    assert!(RateProfile::steps(&[]).is_err());
    assert!(RateProfile::steps(&[(rate(1.0), Duration::ZERO), (rate(2.0), S)]).is_err());
    assert!(RateProfile::trace(&[]).is_err());
    assert!(RateProfile::trace(&[(S, 1.0), (S, 2.0)]).is_err());
    assert!(RateProfile::trace(&[(S, -1.0)]).is_err());
    assert!(RateProfile::sine(rate(1.0), rate(2.0), S).is_err());
    assert!(RateProfile::sine(rate(2.0), rate(1.0), Duration::ZERO).is_err());
}
