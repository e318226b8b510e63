//! Runs of the same design contradict each other only where both tell, and not the same.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use std::{fs, process::Command};

use brownout_analysis::{Findings, Outcome, findings};
use brownout_studies::same::{Fit, same};
use common::Synthetic;

/// 5 ms, which cost nothing, and 100 ms, which cost a third.
fn made() -> Synthetic {
    Synthetic { trials: 3, planned_trials: 3, without: 1, levels: &[5, 100], ..Synthetic::default() }
}

fn analysed(made: &Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&made.run(directory.path())).unwrap()
}

#[test]
fn only_what_both_tell_can_contradict() {
    let one = analysed(&made());
    let fits = |other: &Findings| same(&one, other).unwrap().iter().map(|both| both.fit()).collect::<Vec<_>>();
    assert_eq!(fits(&one), [Fit::Same, Fit::Same]);
    for (outcome, fit) in [
        (Outcome::Better, Fit::Contradiction),
        (Outcome::NoDifference, Fit::Contradiction),
        (Outcome::Changed, Fit::Open),
        (Outcome::Inconclusive, Fit::Open),
        (Outcome::NotJudged, Fit::Open),
    ] {
        let mut other = one.clone();
        other.cells[1].effect.outcome = outcome;
        assert_eq!(fits(&other), [Fit::Same, fit], "worse, and {outcome:?}");
    }
    // That there is no difference, and that there is one of unknown size.
    let mut other = one.clone();
    other.cells[0].effect.outcome = Outcome::Changed;
    assert_eq!(fits(&other), [Fit::Contradiction, Fit::Same]);
    // Two runs that tell nothing agree on nothing.
    let mut neither = one.clone();
    neither.cells[0].effect.outcome = Outcome::Inconclusive;
    assert_eq!(same(&neither, &neither).unwrap()[0].fit(), Fit::Open);
    assert_eq!(same(&one, &analysed(&Synthetic { levels: &[5, 60], ..made() })), None);
}

#[test]
fn the_command_says_so_by_how_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str, made: &Synthetic| {
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        drop(made.run(&path));
        path
    };
    let (one, again) = (run("one", &made()), run("again", &made()));
    let other = run("other", &Synthetic { levels: &[5, 60], ..made() });
    for (two, code, says) in [(&again, 0, "No cell contradicts"), (&other, 3, "not of the same design")] {
        let done = Command::new(env!("CARGO_BIN_EXE_brownout-studies")).arg("same-verdicts").args([&one, two]).output();
        let done = done.unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
