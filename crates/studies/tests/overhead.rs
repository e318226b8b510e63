//! What trials take beyond their own phases, on stands of their own and on those that have served before.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use brownout_studies::overhead::overheads;
use common::Synthetic;

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_trial_costs_its_set_up_its_end_and_what_lies_between_it_and_the_one_before_on_its_stand() {
    let directory = tempfile::tempdir().unwrap();
    // Two blocks of three trials, of which each has a stand; two seconds of set-up.
    let run = Synthetic { without: 2, ..Synthetic::default() }.run(directory.path());
    let mut findings = brownout_analysis::findings(&run).unwrap();
    let plain = overheads(&findings);
    assert_eq!((plain.fresh.len(), plain.reused.len()), (2, 4));
    for trial in &mut findings.trials {
        // All but the first came three seconds after the one before, and took one more to end.
        let late = 3 * SECOND * u64::from(trial.trial - 1);
        trial.starts_ns += late;
        trial.ends_ns += late + SECOND;
    }
    let later = overheads(&findings);
    assert_eq!(later.fresh, plain.fresh.iter().map(|ns| ns + SECOND).collect::<Vec<_>>());
    // The one before ended a second later, too.
    assert_eq!(later.reused, plain.reused.iter().map(|ns| ns + 3 * SECOND).collect::<Vec<_>>());
    assert!(plain.fresh.iter().all(|ns| (2 * SECOND..3 * SECOND).contains(ns)), "{plain:?}");
    // One that was cut tells nothing, and the next begins the stand.
    findings.trials[0].cut = true;
    let cut = overheads(&findings);
    assert_eq!((cut.fresh.len(), cut.reused.len()), (2, 3));
}
