//! Every kind of fault on a real cluster: proven when it is injected, refuted when it is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{collections::BTreeMap, path::Path, process::Output};

use common::{both, brownout, experiment, json, punctual, require_root};
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
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

/// What the findings say of each fault, by its kind: the verdict and the reasons.
fn verdicts(findings: &Value) -> BTreeMap<String, (String, String)> {
    let faults = findings["trials"][0]["faults"].as_array().unwrap();
    let of = |fault: &Value| (fault["verdict"].as_str().unwrap().to_owned(), fault["reasons"].to_string());
    faults.iter().map(|fault| (fault["kind"].as_str().unwrap().to_owned(), of(fault))).collect()
}

#[test]
fn every_kind_of_fault_is_proven_where_it_hits_and_where_it_must_not() {
    require_root();
    let (_, output, findings) = punctual(|out| run(out, &[]));
    let verdicts = verdicts(&findings);
    assert_eq!(verdicts.len(), KINDS.len(), "{verdicts:?}");
    for kind in KINDS {
        let (verdict, reasons) = &verdicts[kind];
        assert_eq!(verdict, "proven", "{kind}: {reasons}");
    }
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
fn every_kind_of_fault_is_refuted_when_it_was_not_injected() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let output = run(out.path(), &["--sabotage"]);
    let verdicts = verdicts(&json(&output));
    for kind in KINDS {
        let (verdict, reasons) = &verdicts[kind];
        assert_eq!(verdict, "refuted", "{kind}: {reasons}");
    }
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
}
