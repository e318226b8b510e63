//! How often the rules call equal things different, and how often they see what is there: counted over many made-up designs, of
//! noise as trials on a real machine have it.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::f64::consts::TAU;

use brownout_base::random::Random;
use brownout_statistics::{ALPHA, FLOOR, Outcome, benjamini_hochberg, compare, difference, mann_kendall, plan};

/// An effect below one percent is none.
const MARGIN: f64 = 0.00995;

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (TAU * random.fraction()).cos()
}

/// Student's t with three degrees of freedom, as wide as a standard normal.
fn heavy(random: &mut Random) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (squares / 3.0).sqrt() / 3f64.sqrt()
}

/// The noise of a trial: of an arm (0 is the cell), in a block, at its place in the order of the run.
type Noise = fn(&mut Random, Trial) -> f64;

#[derive(Clone, Copy)]
struct Trial {
    arm: usize,
    /// Share of the run that is over, 0 to 1.
    at: f64,
    /// What all trials of its block have in common, standard normal.
    block: f64,
}

const MODELS: &[(&str, Noise)] = &[
    ("sd 1 %", |random, trial| 0.01 * normal(random) + 0.02 * trial.block),
    ("sd 5 %", |random, trial| 0.05 * normal(random) + 0.02 * trial.block),
    ("heavy tails", |random, _| 0.02 * heavy(random)),
    ("one in twenty is spoilt by a neighbour", |random, _| {
        let spoilt = if random.chance(0.05) { 0.1 + 0.4 * random.fraction() } else { 0.0 };
        0.01 * normal(random) + spoilt
    }),
    ("exponential, skewed", |random, _| 0.02 * random.exponential()),
    ("drift of 10 %", |random, trial| 0.01 * normal(random) + 0.1 * trial.at),
    ("a step of 10 % in the middle", |random, trial| 0.01 * normal(random) + if trial.at > 0.5 { 0.1 } else { 0.0 }),
    ("the cell scatters five times as much", |random, trial| {
        0.01 * normal(random) * if trial.arm == 0 { 5.0 } else { 1.0 }
    }),
    ("the cell scatters a fifth as much", |random, trial| {
        0.01 * normal(random) * if trial.arm == 0 { 0.2 } else { 1.0 }
    }),
];

/// Of each arm its values, block by block; the cell is the first. Each block runs its arms in an order of its own.
fn design(random: &mut Random, noise: Noise, arms: usize, blocks: usize) -> Vec<Vec<f64>> {
    let mut values = vec![Vec::with_capacity(blocks); arms];
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..arms).collect();
        random.shuffle(&mut order);
        let common = normal(random);
        for (place, arm) in order.into_iter().enumerate() {
            let at = (block * arms + place) as f64 / (arms * blocks) as f64;
            values[arm].push(noise(random, Trial { arm, at, block: common }));
        }
    }
    values
}

/// The share of designs in which a cell with this effect is called different.
fn called(seed: u64, noise: Noise, (without, blocks): (usize, usize), effect: f64, designs: usize) -> f64 {
    let mut random = Random::new(seed);
    let differs = |random: &mut Random| {
        let mut values = design(random, noise, without + 1, blocks);
        let cell: Vec<f64> = values.remove(0).into_iter().map(|value| value + effect).collect();
        let found = compare(&cell, &values, MARGIN, FLOOR, 1).unwrap();
        matches!(found.outcome, Outcome::More | Outcome::Less)
    };
    (0..designs).filter(|_| differs(&mut random)).count() as f64 / designs as f64
}

/// Three standard errors of a share that was counted so often; there are some 200 counts, so four.
fn error(share: f64, designs: usize) -> f64 {
    4.0 * (share * (1.0 - share) / designs as f64).sqrt()
}

#[test]
fn equal_things_are_called_different_in_one_of_twenty_designs_at_most() {
    const DESIGNS: usize = 4_000;
    let mut beyond = Vec::new();
    for (place, (name, noise)) in MODELS.iter().enumerate() {
        for without in [1, 3] {
            for blocks in [2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30] {
                let seed = (place * 1_000 + without * 100 + blocks) as u64;
                let rate = called(seed, *noise, (without, blocks), 0.0, DESIGNS);
                // What goes beyond was counted over 100,000 designs.
                let promised = match (*name, without, blocks) {
                    // A skewed median of three lies beside that of one: many blocks see that, too.
                    ("exponential, skewed", 3, 20..) => 0.062,
                    // Of few blocks whose trials lie far apart for one reason, some orders look like an effect: two of the four of
                    // two blocks.
                    ("drift of 10 %", 1, 2) => 0.078,
                    ("drift of 10 %", 1, 3) => 0.065,
                    _ => 0.055,
                };
                println!("{name}, {blocks} blocks, {without} without a fault: {:.1} %", rate * 100.0);
                if rate > promised + error(promised, DESIGNS) {
                    beyond.push(format!("{name}, {blocks} blocks, {without} without a fault: {:.1} %", rate * 100.0));
                }
            }
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

/// Values of separate runs: nothing lies between them but their noise.
fn runs(random: &mut Random, noise: Noise, arm: usize, count: usize) -> Vec<f64> {
    (0..count).map(|_| noise(random, Trial { arm, at: 0.0, block: 0.0 })).collect()
}

#[test]
fn equal_separate_runs_are_called_different_in_one_of_twenty_comparisons_at_most() {
    const DESIGNS: usize = 4_000;
    let mut random = Random::new(21);
    let mut beyond = Vec::new();
    for (name, noise) in MODELS {
        for (a, b) in [(2, 2), (3, 3), (5, 5), (10, 10), (30, 30), (2, 5), (5, 2), (3, 10), (10, 3)] {
            let alarms = (0..DESIGNS).filter(|_| {
                let (a, b) = (runs(&mut random, *noise, 1, a), runs(&mut random, *noise, 0, b));
                difference(&a, &b, FLOOR).unwrap().p < ALPHA
            });
            let rate = alarms.count() as f64 / DESIGNS as f64;
            // The mean of few skewed values lies elsewhere than that of many, and seldom knows.
            let promised = if *name == "exponential, skewed" && a != b { 0.09 } else { 0.055 };
            if rate > promised + error(promised, DESIGNS) {
                beyond.push(format!("{name}, {a} runs against {b}: {:.1} %", rate * 100.0));
            }
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn many_figures_of_equal_separate_runs_raise_a_false_alarm_in_one_of_twenty_comparisons_at_most() {
    const DESIGNS: usize = 2_000;
    const FIGURES: usize = 40;
    let mut random = Random::new(24);
    for count in [2, 3, 5, 10] {
        let mut alarms = [0, 0];
        for _ in 0..DESIGNS {
            // A run that is slow is slow in all of its figures.
            let common: Vec<f64> = (0..2 * count).map(|_| 0.02 * normal(&mut random)).collect();
            let p: Vec<f64> = (0..FIGURES)
                .map(|_| {
                    let values: Vec<f64> = common.iter().map(|run| run + 0.02 * normal(&mut random)).collect();
                    difference(&values[..count], &values[count..], FLOOR).unwrap().p
                })
                .collect();
            alarms[0] += usize::from(p.iter().any(|p| *p < ALPHA));
            alarms[1] += usize::from(!benjamini_hochberg(&p, ALPHA).selected.is_empty());
        }
        let [uncorrected, selected] = alarms.map(|count| count as f64 / DESIGNS as f64);
        assert!(uncorrected > 0.3, "{count} runs a side: {uncorrected}: what is to be corrected is there");
        assert!(selected <= ALPHA + error(ALPHA, DESIGNS), "{count} runs a side: {selected}");
    }
}

#[test]
fn trials_of_two_separate_runs_are_not_to_be_compared_as_if_they_were_runs() {
    // What a run has in common scatters as its trials do.
    const DESIGNS: usize = 1_000;
    let mut random = Random::new(22);
    let alarms = (0..DESIGNS).filter(|_| {
        let mut run = || {
            let common = 0.01 * normal(&mut random);
            (0..5).map(|_| common + 0.01 * normal(&mut random)).collect::<Vec<f64>>()
        };
        let (a, b) = (run(), run());
        difference(&a, &b, FLOOR).unwrap().p < ALPHA
    });
    let rate = alarms.count() as f64 / DESIGNS as f64;
    assert!((0.30..0.45).contains(&rate), "{rate}");
}

#[test]
fn a_run_that_only_scatters_has_no_drift_in_nineteen_of_twenty() {
    const DESIGNS: usize = 4_000;
    let mut random = Random::new(23);
    // Those in which nothing depends on time.
    for (name, noise) in &MODELS[..5] {
        for trials in [4, 5, 6, 8, 12, 20, 40] {
            let alarms = (0..DESIGNS).filter(|_| {
                let values = runs(&mut random, *noise, 1, trials);
                mann_kendall(&values).unwrap().p <= ALPHA
            });
            let rate = alarms.count() as f64 / DESIGNS as f64;
            assert!(rate <= 0.055 + error(0.055, DESIGNS), "{name}, {trials} trials: {rate}");
            assert!((trials < 5) == (rate == 0.0), "four trials cannot show a trend, five can: {rate}");
        }
    }
}

#[test]
fn designs_of_many_cells_raise_a_false_alarm_in_one_of_twenty_at_most() {
    const DESIGNS: usize = 2_000;
    const CELLS: usize = 20;
    let mut random = Random::new(7);
    let mut alarms = [0, 0];
    for _ in 0..DESIGNS {
        let mut values = design(&mut random, MODELS[0].1, CELLS + 3, 5);
        let without = values.split_off(CELLS);
        let p: Vec<f64> =
            values.iter().map(|cell| compare(cell, &without, MARGIN, FLOOR, CELLS).unwrap().estimate.p).collect();
        alarms[0] += usize::from(p.iter().any(|p| *p < ALPHA));
        alarms[1] += usize::from(!benjamini_hochberg(&p, ALPHA).selected.is_empty());
    }
    let [uncorrected, selected] = alarms.map(|count| count as f64 / DESIGNS as f64);
    assert!(uncorrected > 0.4, "{uncorrected}: what is to be corrected is there");
    assert!(selected <= ALPHA + error(ALPHA, DESIGNS), "{selected}");
}

#[test]
fn effects_are_seen_as_often_as_the_table_says() {
    const DESIGNS: usize = 1_000;
    // Noise, blocks, trials without a fault, effect, seen in at least this share.
    for (model, blocks, without, effect, least) in [
        (0, 5, 3, 0.03f64, 0.95),
        (0, 5, 1, 0.03, 0.88),
        (0, 8, 3, 0.03, 0.98),
        (1, 10, 3, 0.10, 0.97),
        (1, 3, 3, 0.30, 0.90),
        (3, 8, 3, 0.03, 0.90),
    ] {
        let seen = called(99, MODELS[model].1, (without, blocks), effect.ln_1p(), DESIGNS);
        assert!(seen >= least - error(least, DESIGNS), "{}: {effect} in {blocks} blocks: {seen}", MODELS[model].0);
    }
}

#[test]
fn no_difference_is_false_in_one_of_twenty_designs_at_most() {
    const DESIGNS: usize = 4_000;
    let mut random = Random::new(3);
    for (noise, blocks) in [(0.002, 5), (0.005, 10), (0.01, 20), (0.002, 30)] {
        let mut false_ones = 0;
        for _ in 0..DESIGNS {
            // The difference is just as large as what is called none.
            let cell: Vec<f64> = (0..blocks).map(|_| MARGIN + noise * normal(&mut random)).collect();
            let without: Vec<f64> = (0..blocks).map(|_| noise * normal(&mut random)).collect();
            let found = compare(&cell, &[without], MARGIN, FLOOR, 1).unwrap();
            false_ones += usize::from(found.outcome == Outcome::NoDifference);
        }
        let rate = false_ones as f64 / DESIGNS as f64;
        assert!(rate <= ALPHA + error(ALPHA, DESIGNS), "{noise}, {blocks} blocks: {rate}");
    }
}

#[test]
fn a_plan_reaches_its_power_in_four_of_five_pilots() {
    const PILOTS: usize = 200;
    let mut random = Random::new(11);
    let mut enough = 0;
    for _ in 0..PILOTS {
        let pilot: Vec<Vec<f64>> = (0..3).map(|_| (0..3).map(|_| 0.01 * normal(&mut random)).collect()).collect();
        let Some(blocks) = plan(&pilot, 3, 0.02).unwrap().blocks else {
            enough += 1;
            continue;
        };
        let seen = called(random.word(), |random, _| 0.01 * normal(random), (3, blocks), 0.02, 300);
        enough += usize::from(seen >= 0.78);
    }
    let share = enough as f64 / PILOTS as f64;
    assert!(share >= 0.8 - error(0.8, PILOTS), "{share}");
}
