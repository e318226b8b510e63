//! Every kind of fault on a real cluster: proven when it is injected, refuted when it is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{path::Path, process::Output};

use common::{both, brownout, experiment, require_root, undisturbed};
use serde_json::Value;

/// Every kind that a file can name, save `chaos`, which is several of the others.
const KINDS: [&str; 15] = [
    "slow",
    "flaky",
    "duplicate",
    "corrupt",
    "reorder",
    "rate",
    "mtu",
    "link",
    "partition",
    "pause",
    "cpu",
    "disk",
    "clock",
    "stop",
    "kill",
];

fn run(out: &Path, more: &[&str]) -> Output {
    let file = experiment("every-fault.yaml");
    let mut arguments =
        vec!["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap(), "--set=attempts=1"];
    arguments.extend(more);
    brownout(&arguments)
}

/// The findings have faults of each kind, and say this of each.
fn assert_all_are(expected: &str, findings: &Value) {
    let faults = findings["trials"][0]["faults"].as_array().unwrap();
    let mut kinds: Vec<&str> = faults.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
    let mut all = KINDS;
    kinds.sort_unstable();
    // Standing still is there twice: for seconds, and for a fifth of one again and again.
    kinds.dedup();
    all.sort_unstable();
    assert_eq!(kinds, all);
    let other: Vec<String> = (faults.iter().filter(|fault| fault["verdict"] != expected))
        .map(|fault| format!("{}: {}: {}", fault["kind"], fault["verdict"], fault["reasons"]))
        .collect();
    assert!(other.is_empty(), "not {expected}: {}", other.join("; "));
}

#[test]
fn every_kind_of_fault_is_proven_where_it_hits_and_where_it_must_not() {
    require_root();
    let Some((_, output, findings)) = undisturbed(|out| run(out, &[])) else { return };
    assert_all_are("proven", &findings);
    for fault in findings["trials"][0]["faults"].as_array().unwrap() {
        let rows = fault["rows"].as_array().unwrap();
        for hit in [true, false] {
            assert!(rows.iter().any(|row| row["hit"] == hit), "hit and spared places are both judged: {fault}");
        }
    }
    // One trial cannot tell an effect; an objective missed in the baseline of a busy machine is another matter.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
}

#[test]
#[ignore = "repeats for every kind what slow_replica.rs shows for one: make test-long"]
fn every_kind_of_fault_is_refuted_when_it_was_not_injected() {
    require_root();
    let Some((_, output, findings)) = undisturbed(|out| run(out, &["--sabotage"])) else { return };
    assert_all_are("refuted", &findings);
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
}
