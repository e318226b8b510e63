//! The table of the detectors: there where it says something, whole, and narrow enough.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

#[path = "../../analysis/tests/scenario/mod.rs"]
mod scenario;

use brownout_analysis::{Findings, Validity, findings};
use brownout_record::{Quantity, Run, Subject};
use brownout_report::{Style, html, summary};
use scenario::{MS, Made, Scenario};

const PLAIN: Style = Style { color: false, width: 100 };
const TITLE: &str = "Would anyone have noticed?";

fn with<T>(scenario: &Scenario, look: impl Fn(&Run, Findings) -> T) -> T {
    let directory = tempfile::tempdir().unwrap();
    let run = scenario.run(directory.path());
    let found = findings(&run).unwrap();
    look(&run, found)
}

fn slow_n2() -> Scenario {
    let hits = ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    let slow = Made::new(Quantity::OneWayDelay, hits, 100.0 * MS as f64, 2.0 * MS as f64);
    Scenario { seconds: [30, 20, 20], ..Scenario::of(vec![slow]) }
}

#[test]
fn the_summary_and_the_page_tell_what_each_detector_made_of_the_faults() {
    with(&slow_n2(), |run, found| {
        let text = summary(&found, PLAIN);
        let (_, section) = text.split_once(TITLE).unwrap();
        let line = section.lines().find(|line| line.trim_start().starts_with("row/column")).unwrap();
        let words: Vec<&str> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ["row/column", "1 of 1", "3.0s", "1/0/0", "0 in 25.0s", "0.0, ≤ 431"], "{section}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let page = html(run, &found).unwrap();
        let (_, section) = page.split_once(&format!("<h2>{TITLE}</h2>")).unwrap();
        let (table, _) = section.split_once("</section>").unwrap();
        for part in ["static threshold", "ADR", "peer-relative", "row/column", "heartbeats between all hosts", "1 of 1"]
        {
            assert!(table.contains(part), "{part}: {table}");
        }
    });
}

#[test]
fn many_cells_are_told_apart_by_what_was_noticed_in_each() {
    with(&slow_n2(), |_, mut found| {
        // A second cell, in which nobody noticed anything.
        let mut unnoticed = found.cells[0].clone();
        unnoticed.cell = 2;
        unnoticed.text = "delay 1ms".to_owned();
        for one in &mut unnoticed.detectors {
            (one.detected, one.time_to_detect_ns) = (0, None);
        }
        found.cells.push(unnoticed);
        let text = summary(&found, PLAIN);
        let (_, section) = text.split_once(TITLE).unwrap();
        let heading = section.lines().find(|line| line.contains("peer-relative")).unwrap();
        assert!(heading.contains("static threshold") && heading.contains("row/column"), "{section}");
        let of_second: Vec<&str> =
            section.lines().filter(|line| line.trim_start().starts_with("2: delay 1ms")).collect();
        assert!(of_second[0].contains("0 of 1") && of_second[1].contains("0.0, ≤ 431"), "{of_second:?}");
        assert!(section.contains("1 of 1, 3.0s"), "{section}");
    });
}

#[test]
fn without_a_fault_the_false_alarms_are_told_all_the_same() {
    with(&Scenario { seconds: [30, 20, 20], ..Scenario::default() }, |_, found| {
        let text = summary(&found, PLAIN);
        let (_, section) = text.split_once(TITLE).unwrap();
        assert!(section.contains("0 in 55.0s") && !section.contains("from the injection"), "{section}");
    });
}

#[test]
fn of_trials_that_are_not_valid_and_short_baselines_nothing_is_told() {
    with(&Scenario { seconds: [9, 20, 20], ..slow_n2() }, |_, found| assert!(!summary(&found, PLAIN).contains(TITLE)));
    with(&slow_n2(), |run, mut found| {
        assert_eq!(found.trials[0].validity, Validity::Valid);
        found.cells[0].detectors.clear();
        assert!(!summary(&found, PLAIN).contains(TITLE) && !html(run, &found).unwrap().contains(TITLE));
    });
}
