//! The search for a danger zone beside a grid of five trials at each of its places: as exact, with a third of the trials.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::f64::consts::TAU;

use brownout_base::random::Random;
use brownout_statistics::Zone;

const RANGE: (f64, f64) = (-1.0, 3.0);
const THRESHOLDS: [f64; 2] = [0.1, 0.5];
const MOST: usize = 21;

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (TAU * random.fraction()).cos()
}

/// A closed loop loses D ÷ (c + D): ln(1 − that).
fn closed(at: f64, half: f64) -> f64 {
    -(10f64.powf(at) / half).ln_1p()
}

fn zone(random: &mut Random, noise: f64) -> Zone {
    let without: Vec<f64> = (0..6).map(|_| noise * normal(random)).collect();
    Zone::new(RANGE, &THRESHOLDS, &without)
}

fn search(random: &mut Random, noise: f64, curve: impl Fn(f64) -> f64) -> Zone {
    search_in(random, noise, curve, |_| noise)
}

/// The same where trials scatter as `noise_at` says at a level, and by `noise` without a fault.
fn search_in(random: &mut Random, noise: f64, curve: impl Fn(f64) -> f64, noise_at: impl Fn(f64) -> f64) -> Zone {
    let mut zone = zone(random, noise);
    let mut places = zone.scan();
    random.shuffle(&mut places);
    for at in places {
        zone.learn(at, curve(at) + noise_at(at) * normal(random));
    }
    while let Some(at) = (zone.trials() < MOST).then(|| zone.next(MOST - zone.trials())).flatten() {
        zone.learn(at, curve(at) + noise_at(at) * normal(random));
    }
    zone
}

fn grid(random: &mut Random, noise: f64, curve: impl Fn(f64) -> f64) -> Zone {
    let mut zone = zone(random, noise);
    for at in zone.scan().into_iter().flat_map(|at| [at; 5]) {
        zone.learn(at, curve(at) + noise * normal(random));
    }
    zone
}

/// Where a closed loop truly loses so much.
fn truth(half: f64, loss: f64) -> f64 {
    (half * loss / (1.0 - loss)).log10()
}

fn width(zone: &Zone, threshold: usize) -> f64 {
    let found = zone.crossing(threshold);
    found.high.unwrap_or(RANGE.1 + 0.33) - found.low.unwrap_or(RANGE.0 - 0.33)
}

#[test]
fn the_interval_holds_the_crossing_and_a_third_of_the_trials_is_enough() {
    const RUNS: usize = 200;
    let mut random = Random::new(5);
    let (mut held, mut trials, mut searched, mut of_grids) =
        ([0, 0], 0, [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..RUNS {
        let half = 10f64.powf(0.2 + 1.6 * random.fraction());
        let found = search(&mut random, 0.01, |at| closed(at, half));
        let beside = grid(&mut random, 0.01, |at| closed(at, half));
        trials += found.trials();
        for threshold in 0..2 {
            let crossing = found.crossing(threshold);
            let at = truth(half, THRESHOLDS[threshold]);
            held[threshold] +=
                usize::from(crossing.low.is_none_or(|low| low <= at) && crossing.high.is_none_or(|high| high >= at));
            searched[threshold].push(width(&found, threshold));
            of_grids[threshold].push(width(&beside, threshold));
        }
    }
    for threshold in 0..2 {
        assert!(held[threshold] * 100 >= RUNS * 95, "{} of {RUNS} hold the crossing", held[threshold]);
        let of = |widths: &Vec<f64>| brownout_statistics::median(widths);
        let (searched, of_grids) = (of(&searched[threshold]), of(&of_grids[threshold]));
        assert!(searched <= of_grids + 1e-9, "{searched} decades with a third of the trials of {of_grids}");
    }
    assert!(trials <= RUNS * MOST, "{trials} of {} trials of the grids", RUNS * 65);
}

/// Which packets are lost is drawn anew in each trial: the more, the more trials scatter, and not without a fault.
#[test]
fn the_interval_holds_the_crossing_where_the_fault_itself_scatters() {
    const RUNS: usize = 400;
    let mut random = Random::new(9);
    let mut held = [0, 0];
    for _ in 0..RUNS {
        let half = 10f64.powf(0.2 + 1.6 * random.fraction());
        let curve = |at: f64| closed(at, half);
        let found = search_in(&mut random, 0.005, curve, |at| 0.005 + 0.15 * (1.0 - curve(at).exp()));
        for threshold in 0..2 {
            let (crossing, at) = (found.crossing(threshold), truth(half, THRESHOLDS[threshold]));
            held[threshold] +=
                usize::from(crossing.low.is_none_or(|low| low <= at) && crossing.high.is_none_or(|high| high >= at));
        }
    }
    println!("{held:?} of {RUNS}");
    assert!(held.iter().all(|held| held * 100 >= RUNS * 95), "{held:?} of {RUNS} hold the crossing");
}

#[test]
fn a_response_that_goes_back_is_noticed() {
    const RUNS: usize = 100;
    let mut random = Random::new(6);
    // Timeouts shed load: it degrades, seems to heal, and degrades again.
    let curve = |at: f64| -> f64 { -(-(at - 0.4).powi(2) / 0.25).exp() - 0.4 * (at - 2.0).max(0.0) };
    let noticed = (0..RUNS).filter(|_| !search(&mut random, 0.01, curve).crossing(0).back.is_empty()).count();
    assert!(noticed * 100 >= RUNS * 75, "{noticed} of {RUNS}");
}

#[test]
fn where_nothing_passes_the_threshold_nothing_is_found() {
    let mut random = Random::new(8);
    for _ in 0..50 {
        let found = search(&mut random, 0.01, |_| 0.0);
        for threshold in 0..2 {
            assert_eq!(found.crossing(threshold).high, None);
        }
        // Half of nothing is surely not lost anywhere.
        assert_eq!(found.crossing(1).low, Some(RANGE.1), "{} trials", found.trials());
    }
}
