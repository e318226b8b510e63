//! A/A pairs use every trial once, are judged as cells are, and see what differs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use std::{collections::BTreeSet, process::Command};

use brownout_base::random::Random;
use brownout_statistics::Outcome;
use brownout_studies::pairs::{BLOCKS, FIGURES, Judged, PAIRS, Pair, at_least, criterion, judge, pairs};
use common::Synthetic;

/// So many trials of nothing: values that scatter evenly by some percent.
fn noise(count: u32, seed: u64) -> Vec<(u32, f64)> {
    let mut random = Random::new(seed);
    (1..=count).map(|trial| (trial, 0.05 * (random.below(1_000_000) as f64 / 1e6 - 0.5))).collect()
}

#[test]
fn every_trial_is_in_one_pair_at_most() {
    for blocks in BLOCKS {
        let pairs = judge(&noise(125, 3), blocks, 1);
        assert_eq!(pairs.len(), PAIRS);
        let used: Vec<u32> =
            pairs.iter().flat_map(|pair| &pair.trials).flat_map(|(one, other)| [*one, *other]).collect();
        assert_eq!(used.iter().collect::<BTreeSet<_>>().len(), used.len());
        assert_eq!(used.len(), PAIRS * blocks * 2);
        // Neighbours: what drifts slowly is in both.
        assert!(pairs.iter().flat_map(|pair| &pair.trials).all(|(one, other)| one.abs_diff(*other) == 1));
    }
    assert_eq!(judge(&noise(79, 3), 2, 1).len(), 19, "too few trials make too few pairs, and are not used again");
}

#[test]
fn who_plays_the_fault_is_drawn_and_the_same_seed_draws_the_same() {
    let values = noise(120, 5);
    assert_eq!(judge(&values, 3, 7), judge(&values, 3, 7));
    let first = |seed| {
        judge(&values, 3, seed).iter().flat_map(|pair| pair.trials.clone()).filter(|(one, other)| one < other).count()
    };
    let counts: BTreeSet<usize> = (0..20).map(first).collect();
    assert!(counts.len() > 3 && counts.iter().all(|count| (10..50).contains(count)), "{counts:?} of 60 are the first");
}

#[test]
fn noise_is_called_different_about_as_rarely_as_the_rule_allows_and_an_effect_is_seen() {
    let counted: usize =
        (0..100).flat_map(|seed| judge(&noise(120, seed), 3, seed)).filter(|pair| pair.is_different()).count();
    // 2,000 pairs at 5 %: 100 expected, four standard errors are 39.
    assert!(counted > 20 && counted < 139, "{counted}");
    // The second of every two is twice as large: always different, whoever plays the fault, if he is the same in both blocks.
    let apart: Vec<(u32, f64)> =
        noise(120, 1).iter().map(|(trial, value)| (*trial, value + f64::from(trial % 2) * 20.0)).collect();
    let same_side = judge(&apart, 2, 1).into_iter().filter(|pair| pair.trials[0].0 % 2 == pair.trials[1].0 % 2);
    let outcomes: Vec<Outcome> = same_side.map(|pair| pair.outcome).collect();
    assert!(
        outcomes.len() > 3 && outcomes.iter().all(|outcome| matches!(outcome, Outcome::More | Outcome::Less)),
        "{outcomes:?}"
    );
}

#[test]
fn only_valid_trials_without_a_fault_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials: 3, planned_trials: 3, without: 4, ..Synthetic::default() }.run(directory.path());
    let findings = brownout_analysis::findings(&run).unwrap();
    let without: BTreeSet<u32> = findings.cells[0].compared_with.iter().copied().collect();
    let judged = pairs(&findings);
    assert_eq!(judged.len(), BLOCKS.len() * FIGURES.len());
    for one in &judged {
        assert_eq!((one.pairs.len(), one.is_complete()), (12 / (2 * one.blocks), false), "{} blocks", one.blocks);
        assert!(
            one.pairs.iter().flat_map(|pair| &pair.trials).all(|(a, b)| without.contains(a) && without.contains(b))
        );
    }
    // So few tell nothing, and the command says so.
    let said = Command::new(env!("CARGO_BIN_EXE_brownout-studies")).arg("noise-floor").arg(directory.path()).output();
    let said = said.unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(3), "{text}");
    assert!(text.contains("too few valid trials for 20 pairs"), "{text}");
}

#[test]
fn the_criterion_is_of_goodput_over_three_blocks_and_allows_one_of_twenty() {
    let pair = |outcome| Pair { trials: vec![(1, 2)], outcome, change: 0.0, smallest_seen: 0.1 };
    let judged = |figure, blocks, different: usize, of: usize| {
        let outcome = |number| if number < different { Outcome::Less } else { Outcome::Inconclusive };
        Judged { figure, blocks, pairs: (0..of).map(|number| pair(outcome(number))).collect() }
    };
    for (different, is_met) in [(0, true), (1, true), (2, false), (20, false)] {
        // What stands beside it may err as it likes.
        let all = [judged("p99", 3, 9, 20), judged("goodput", 2, 9, 20), judged("goodput", 3, different, 20)];
        assert_eq!(criterion(&all).map(Judged::is_met), Some(is_met), "{different} of 20");
    }
    assert_eq!(criterion(&[judged("goodput", 3, 0, 19)]), None, "one pair is missing");
    assert_eq!(criterion(&[judged("goodput", 2, 0, 20)]), None, "another design");
}

#[test]
fn the_binomial_distribution_says_how_much_one_of_twenty_tells() {
    // 1 − 0.95²⁰ − 20 × 0.05 × 0.95¹⁹, and the same of four and more, by hand.
    assert!((at_least(2, 20, 0.05) - 0.264_160).abs() < 1e-6);
    assert!((at_least(4, 20, 0.05) - 0.015_902).abs() < 1e-6);
    assert!((at_least(0, 20, 0.05) - 1.0).abs() < 1e-12);
}
