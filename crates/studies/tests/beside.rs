//! A search beside a grid: they agree where their intervals have severities in common and the search's is no wider, and few trials
//! are what a search is for.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use brownout_analysis::{Findings, Validity};
use brownout_record::Arm;
use brownout_studies::beside::{Beside, beside};
use common::Synthetic;

const WITHOUT: u32 = 6;
const OWN_MS: f64 = 30.0;
/// Around the 3.3 ms at which 10 % are lost, and the 30 ms of 50 %.
const AROUND: [f64; 4] = [2.5, 4.2, 27.0, 34.0];

/// A closed loop that takes 30 ms, at delays of 1 ms to 1 s: the grid has five trials at each of 13 places of a decade's quarters.
fn grid() -> Findings {
    made((0..13).map(|place| 10_f64.powf(f64::from(place) / 4.0)).collect(), 5, OWN_MS)
}

/// Trials at these delays, in ms, of a loop that takes `own_ms`.
fn made(delays: Vec<f64>, trials: u32, own_ms: f64) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let mut findings = brownout_analysis::findings(&Synthetic::default().run(directory.path())).unwrap();
    let (cell, trial) = (findings.cells[0].clone(), findings.trials[0].clone());
    findings.design.factors = vec![brownout_analysis::Factor { name: "delay".to_owned(), levels: Vec::new() }];
    findings.cells.clear();
    findings.trials.clear();
    let mut add = |cell: u32, arm: Arm, value: f64| {
        let number = findings.trials.len() as u32 + 1;
        let mut made = trial.clone();
        (made.trial, made.planned, made.cell, made.arm, made.validity) = (number, number, cell, arm, Validity::Valid);
        // Trials scatter by half a percent to both sides.
        made.effect.delivered_log_ratio = Some(value + [0.005, -0.005, 0.0][number as usize % 3]);
        findings.trials.push(made);
    };
    (0..WITHOUT).for_each(|_| add(1, Arm::None, 0.0));
    for (number, delay) in delays.iter().enumerate() {
        let loss = (own_ms / (own_ms + delay)).ln();
        (0..trials).for_each(|_| add(number as u32 + 1, Arm::Fault, loss));
    }
    for (number, delay) in delays.iter().enumerate() {
        let level = format!("{}us", (delay * 1e3).round());
        findings.cells.push(brownout_analysis::CellFindings {
            cell: number as u32 + 1,
            levels: vec![level],
            ..cell.clone()
        });
    }
    findings
}

fn compared(search: &Findings) -> Beside {
    beside(search, &grid()).unwrap()
}

#[test]
fn a_search_that_finds_the_same_with_few_trials_is_what_it_promises() {
    let both = compared(&made(AROUND.to_vec(), 4, OWN_MS));
    assert_eq!(both.crossings.iter().map(|found| found.agree()).collect::<Vec<_>>(), [Some(true); 2], "{both:?}");
    assert_eq!((both.search.fault, both.search.without, both.grid.fault), (16, 6, 65));
    assert_eq!(both.is_met(), Some(true));
}

#[test]
fn a_search_that_takes_as_many_trials_or_finds_another_place_is_not() {
    let many = compared(&made(AROUND.to_vec(), 6, OWN_MS));
    assert_eq!(many.is_met(), Some(false), "24 of 65: {many:?}");
    let elsewhere = compared(&made(vec![9.0, 13.0, 90.0, 110.0], 4, 100.0));
    assert_eq!(elsewhere.is_met(), Some(false), "{elsewhere:?}");
}

#[test]
fn a_search_that_tells_no_more_than_the_whole_range_is_not_either() {
    let wide = compared(&made(vec![1.0, 20.0, 27.0, 34.0], 4, OWN_MS));
    assert_eq!(wide.crossings.iter().map(|found| found.agree()).collect::<Vec<_>>(), [Some(true); 2], "{wide:?}");
    let narrow: Vec<_> = wide.crossings.iter().map(|found| found.is_narrow(wide.place)).collect();
    assert_eq!((narrow, wide.is_met()), (vec![Some(false), Some(true)], Some(false)), "{wide:?}");
    assert!((wide.place - 10_f64.powf(0.25)).abs() < 0.01, "{wide:?}");
}

#[test]
fn an_end_that_is_not_known_is_no_agreement() {
    let open = compared(&made(vec![27.0, 34.0], 4, OWN_MS));
    assert_eq!((open.crossings[0].agree(), open.is_met()), (None, None), "{open:?}");
}

#[test]
fn a_trial_that_never_was_valid_was_made_all_the_same() {
    let mut search = made(AROUND.to_vec(), 6, OWN_MS);
    let of_fault = search.trials.iter_mut().filter(|trial| trial.arm == Arm::Fault && trial.planned % 6 == 0);
    of_fault.for_each(|trial| trial.validity = Validity::Disturbed);
    let both = compared(&search);
    assert_eq!((both.search.fault, both.is_met()), (24, Some(false)), "{both:?}");
}

#[test]
fn an_attempt_that_was_repeated_is_no_second_trial() {
    let mut search = made(AROUND.to_vec(), 4, OWN_MS);
    let last = search.trials.last().cloned().unwrap();
    search.trials.push(brownout_analysis::TrialFindings { trial: last.trial + 1, ..last });
    assert_eq!(compared(&search).search.fault, 16);
}
