//! How often equal things are called different, and how often what is there is found: counted over many made-up designs, from the
//! experiment file to the verdict of a cell. The real design says which trials there are and in which order; each trial's figures
//! are made up, and what follows from them is said by the function that findings say it by.
//!
//! `crates/statistics/tests/false_alarms.rs` does the same with the rule alone. Here is what lies between: blocks, arms, attempts,
//! cells that share their trials without a fault, phases against baselines, and many cells and figures at once.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use std::{f64::consts::TAU, path::Path};

use brownout_analysis::{
    CellEffect, DesignFindings, Factor, FactorFindings, FactorOutcome, MARGIN, Outcome, TrialFindings, Validity,
    effects, factors, findings,
};
use brownout_base::random::Random;
use brownout_lab::{Design, experiment::Source, planner::Matrix};
use brownout_record::{Arm, CellRow};
use common::Synthetic;

const FIGURES: [&str; 4] = ["goodput", "delivered", "p50", "p99"];

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (TAU * random.fraction()).cos()
}

/// Student's t with three degrees of freedom, as wide as a standard normal.
fn heavy(random: &mut Random) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (squares / 3.0).sqrt() / 3f64.sqrt()
}

/// What a trial's fault phase has beyond its baseline without any fault, where of the run `at` (0 to 1) is over.
type Noise = fn(&mut Random, at: f64) -> f64;

const MODELS: [(&str, Noise); 4] = [
    ("sd 1 %", |random, _| 0.01 * normal(random)),
    ("sd 5 %", |random, _| 0.05 * normal(random)),
    ("heavy tails", |random, _| 0.02 * heavy(random)),
    // What the order of the phases does by itself fades in the course of the run.
    ("drift", |random, at| 0.01 * normal(random) - 0.05 * at),
];

/// A design of which the trials' values are made up again and again.
struct Simulation {
    design: Design,
    rows: Vec<CellRow>,
    /// Each planned trial once, and behind them those that were not valid and were repeated.
    trials: Vec<TrialFindings>,
    /// What a cell's fault phase has beyond its baseline by itself, with and without its fault: a queue that fills, caches.
    by_itself: fn(&CellRow) -> f64,
}

impl Simulation {
    fn new(cells: usize, blocks: u32, without: u32) -> Simulation {
        let delays: Vec<String> = (1..=cells).map(|cell| format!("{}ms", cell * 20)).collect();
        Simulation::of(&format!("delay: [{}]", delays.join(", ")), "one", blocks, without)
    }

    /// What varies, and the consistency.
    fn of(vary: &str, consistency: &str, blocks: u32, without: u32) -> Simulation {
        let text = format!(
            "load: {{ rate: 400/s, population: 1_000, consistency: \"{consistency}\" }}
phases: {{ warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }}
faults: [{{ slow: {{ host: n2, delay: \"${{delay}}\" }} }}]
objective: {{ p95: 100ms }}
vary: {{ {vary} }}
trials: {blocks}
without-fault: {without}
"
        );
        let design = Design::new(&Source::from_text(Path::new("some.yaml"), text).unwrap()).unwrap();
        let template = template().1;
        let repeated = usize::from(blocks > 2);
        let trials = vec![template; Matrix::new(&design).trials().len() + repeated];
        Simulation { rows: design.cell_rows(|_| String::new()), design, trials, by_itself: |_| 0.0 }
    }

    /// Another order, other values; `effect` is the logarithm of what the faults do to each figure of each cell.
    fn run(&mut self, random: &mut Random, noise: Noise, effect: f64) -> Vec<[CellEffect; 4]> {
        self.design.seed = random.word();
        let planned = Matrix::new(&self.design).trials().to_vec();
        for (trial, made) in planned.iter().zip(&mut self.trials) {
            made.planned = trial.number;
            made.trial = trial.number;
            made.cell = trial.cell as u32 + 1;
            made.block = trial.block;
            made.arm = trial.arm;
            made.attempt = 1;
            made.validity = Validity::Valid;
            let at = f64::from(trial.number - 1) / planned.len() as f64;
            // What a trial has in common with itself, and the machine's own drift.
            let level = 0.02 * normal(random) + 0.1 * at;
            let felt = if trial.arm == Arm::Fault { effect } else { 0.0 };
            let own = 0.01 + felt + (self.by_itself)(&self.rows[trial.cell]);
            put(made, level, [(); 4].map(|()| own + noise(random, at)));
        }
        // One was spoilt, and repeated: its first attempt shows nonsense, and counts for nothing.
        let (planned, repeated) = self.trials.split_at_mut(planned.len());
        for first in repeated {
            let second = &mut planned[random.below(planned.len() as u64) as usize];
            second.attempt = 2;
            (first.planned, first.cell, first.block) = (second.planned, second.cell, second.block);
            (first.arm, first.attempt) = (second.arm, 1);
            first.validity = Validity::Disturbed;
            put(first, 0.0, [3.0; 4]);
        }
        effects(&self.rows, &self.trials, MARGIN)
    }
}

/// A design and a valid trial as findings have them, read from a run; and of the trial only what is looked at here.
fn template() -> (DesignFindings, TrialFindings) {
    let directory = tempfile::tempdir().unwrap();
    let found = findings(&Synthetic { trials: 1, planned_trials: 1, ..Synthetic::default() }.run(directory.path()));
    let mut found = found.unwrap();
    let mut trial = found.trials.remove(0);
    assert_eq!(trial.validity, Validity::Valid, "{:?}", trial.invalid);
    trial.faults.clear();
    trial.phases.retain(|phase| ["baseline", "fault"].contains(&phase.name.as_str()));
    assert_eq!(trial.phases.len(), 2);
    (found.design, trial)
}

/// Gives a trial its figures: the logarithms of its fault phase against its baseline.
fn put(trial: &mut TrialFindings, level: f64, [goodput, delivered, p50, p99]: [f64; 4]) {
    trial.effect.log_ratio = Some(goodput);
    trial.effect.delivered_log_ratio = Some(delivered);
    for phase in &mut trial.phases {
        let during = if phase.name == "fault" { 1.0 } else { 0.0 };
        let response = phase.response.as_mut().unwrap();
        // Of milliseconds to the nanosecond: rounding is no noise.
        response.p50.value_ns = (2e6 * (level + during * p50).exp()) as u64;
        response.p99.value_ns = (9e6 * (level + during * p99).exp()) as u64;
    }
}

/// What was counted over many designs, of all figures: each is a question of its own.
#[derive(Default)]
struct Counted {
    /// Figures of designs.
    families: u32,
    /// Of these with a cell that is called different.
    alarms: u32,
    /// With a cell that is called different, or of which it is said that something has changed.
    noticed: u32,
    /// Cells of all families.
    cells: u32,
    /// Called different, and in the right direction.
    found: u32,
    /// The interval holds the truth.
    held: u32,
}

fn count(
    (cells, blocks, without): (usize, u32, u32),
    noise: Noise,
    effect: f64,
    designs: usize,
    random: &mut Random,
) -> Counted {
    let mut simulation = Simulation::new(cells, blocks, without);
    let mut counted = Counted::default();
    for _ in 0..designs {
        let judged = simulation.run(random, noise, effect);
        assert_eq!(judged.len(), cells);
        for (at, name) in FIGURES.iter().enumerate() {
            let family: Vec<&CellEffect> = judged.iter().map(|cell| &cell[at]).collect();
            let is_alarm = |cell: &&CellEffect| matches!(cell.outcome, Outcome::Worse | Outcome::Better);
            for cell in &family {
                // Otherwise nothing below could fail.
                assert_eq!((cell.figure.as_str(), cell.blocks, cell.without_fault), (*name, blocks, without));
                assert_ne!(cell.outcome, Outcome::NotJudged, "{}", cell.reason);
                let truth = effect.exp_m1();
                let (low, high) = cell.interval.unwrap();
                counted.held += u32::from(low <= truth && truth <= high);
                counted.found += u32::from(is_alarm(cell) && cell.change.unwrap().signum() == truth.signum());
            }
            let has_changed = |cell: &&CellEffect| is_alarm(cell) || cell.outcome == Outcome::Changed;
            counted.cells += family.len() as u32;
            counted.families += 1;
            counted.alarms += u32::from(family.iter().any(is_alarm));
            counted.noticed += u32::from(family.iter().any(has_changed));
        }
    }
    counted
}

fn share(count: u32, of: u32) -> f64 {
    f64::from(count) / f64::from(of)
}

/// Four standard errors of a share that was counted so often: dozens of shares are looked at.
fn error(share: f64, of: u32) -> f64 {
    4.0 * (share * (1.0 - share) / f64::from(of)).sqrt()
}

#[test]
fn equal_things_are_called_different_in_one_of_twenty_designs_at_most_and_intervals_hold_the_truth() {
    const DESIGNS: usize = 200;
    let mut random = Random::new(12);
    let mut beyond = Vec::new();
    for (name, noise) in MODELS {
        for blocks in [2, 3, 5, 10] {
            for without in [1, 3] {
                for cells in [1, 4] {
                    let all = count((cells, blocks, without), noise, 0.0, DESIGNS, &mut random);
                    let alarms = share(all.alarms, all.families);
                    let noticed = share(all.noticed, all.families);
                    let held = share(all.held, all.cells);
                    let told = format!(
                        "{name}, {cells} cells, {blocks} blocks, {without} without a fault: called different {:.1} %, or \
                         changed {:.1} %, interval holds {:.1} %",
                        alarms * 100.0,
                        noticed * 100.0,
                        held * 100.0
                    );
                    println!("{told}");
                    let is_noticed = noticed > 0.058 + error(0.058, all.families);
                    // What cells are compared with they share: their intervals miss together.
                    let is_missed = held < 0.94 - error(0.06, all.families);
                    if alarms > 0.055 + error(0.055, all.families) || is_noticed || is_missed {
                        beyond.push(told);
                    }
                }
            }
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn what_is_there_is_found_and_its_interval_holds_it() {
    const DESIGNS: usize = 200;
    let mut random = Random::new(13);
    // Noise, cells, blocks, trials without a fault, effect, found in at least this share.
    for (model, cells, blocks, without, effect, least) in [
        (0, 1, 3, 1, 0.10f64, 0.98),
        (0, 1, 3, 3, 0.10, 0.98),
        (0, 4, 3, 3, 0.10, 0.98),
        (0, 1, 5, 1, 0.03, 0.85),
        (0, 1, 5, 3, -0.03, 0.90),
        (0, 4, 5, 1, -0.03, 0.80),
        (0, 4, 10, 1, -0.03, 0.98),
        (1, 1, 10, 3, 0.30, 0.98),
        (3, 4, 10, 3, -0.10, 0.95),
    ] {
        let all = count((cells, blocks, without), MODELS[model].1, effect.ln_1p(), DESIGNS, &mut random);
        let (found, held) = (share(all.found, all.cells), share(all.held, all.cells));
        let told = format!(
            "{}, {cells} cells, {blocks} blocks, {without} without a fault, {effect:+}: found in {:.1} %, held by {:.1} %",
            MODELS[model].0,
            found * 100.0,
            held * 100.0
        );
        println!("{told}");
        assert!(found >= least - error(least, all.families), "{told}");
        assert!(held >= 0.94 - error(0.06, all.families), "{told}");
    }
}

/// What a consistency does to both phases of a trial by itself is no effect of the fault on it; and one that is twice as large
/// there is found.
#[test]
fn levels_of_a_factor_that_differ_by_themselves_are_called_different_in_one_of_twenty_designs_at_most() {
    const DESIGNS: usize = 200;
    let mut random = Random::new(14);
    let quorum = |row: &CellRow| if row.levels[1] == "quorum" { 0.05 } else { 0.0 };
    for (name, noise) in MODELS {
        for (blocks, without) in [(2, 1), (3, 3), (5, 1), (10, 3)] {
            let varied = "delay: [20ms, 40ms], consistency: [one, quorum]";
            let mut simulation =
                Simulation { by_itself: quorum, ..Simulation::of(varied, "${consistency}", blocks, without) };
            let factor =
                |name: &str, levels: [&str; 2]| Factor { name: name.into(), levels: levels.map(str::to_owned).into() };
            let mut design = template().0;
            design.factors = vec![factor("delay", ["20ms", "40ms"]), factor("consistency", ["one", "quorum"])];
            design.blocks = blocks;
            let mut alarms = 0;
            for _ in 0..DESIGNS {
                simulation.run(&mut random, noise, -0.1);
                let told = factors(&design, &simulation.rows, &simulation.trials);
                let told: Vec<_> = told.iter().filter(|one| one.figure == "goodput, fault ÷ baseline").collect();
                // Two factors, and the two together.
                assert_eq!((told.len(), told[0].blocks), (3, blocks));
                let differs = |one: &&&FactorFindings| matches!(one.outcome, FactorOutcome::More | FactorOutcome::Less);
                alarms += u32::from(told.iter().any(|one| differs(&one)));
            }
            let alarms = share(alarms, DESIGNS as u32);
            let told = format!("{name}, {blocks} blocks, {without} without a fault: {:.1} %", alarms * 100.0);
            println!("{told}");
            assert!(alarms <= 0.055 + error(0.055, DESIGNS as u32), "{told}");
        }
    }
}

/// What is counted above is what findings say: of whole runs, with trials without a fault and a trial that was repeated.
#[test]
fn findings_of_a_whole_run_say_of_effects_what_is_said_of_its_trials() {
    let made = Synthetic {
        trials: 3,
        planned_trials: 3,
        without: 2,
        levels: &[60, 100],
        spoilt: &[2],
        failing: |block, phase, second| if phase == "fault" && second < u64::from(block) { 0.05 } else { 0.0 },
        failing_without: |number, phase, second| {
            if phase == "fault" && second < u64::from(number % 3) { 0.02 } else { 0.0 }
        },
        ..Synthetic::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let run = made.run(directory.path());
    let found = findings(&run).unwrap();
    assert_eq!(found.trials.len(), 3 * 4 + 1);
    let apart = effects(&run.cells().unwrap(), &found.trials, MARGIN);
    for (cell, apart) in found.cells.iter().zip(&apart) {
        assert_ne!(cell.effect.outcome, Outcome::NotJudged, "{}", cell.effect.reason);
        assert_eq!((&cell.effect, cell.figures.as_slice()), (&apart[0], &apart[1..]));
    }
    // Goodput's logarithm is that of the operations, all phases being as long.
    for trial in found.trials.iter().filter(|trial| trial.validity == Validity::Valid) {
        let good = |name: &str| trial.phases.iter().find(|phase| phase.name == name).unwrap().counts.good as f64 + 0.5;
        let expected = (good("fault") / good("baseline")).ln();
        assert!((trial.effect.log_ratio.unwrap() - expected).abs() < 1e-9, "{expected}: {:?}", trial.effect);
    }
}
