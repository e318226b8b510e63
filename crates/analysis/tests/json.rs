//! The JSON object and its documentation say the same.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

mod common;

use std::collections::BTreeSet;

use brownout_analysis::{compare, findings};
use common::Synthetic;
use serde_json::Value;

/// Keys that are names of things in the run, not fields.
const MAPS: [&str; 3] = ["nodes", "failed_by_class", "waited"];

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                found.insert(name.clone());
                if !MAPS.contains(&name.as_str()) {
                    keys(field, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let directory = tempfile::tempdir().unwrap();
    let everything = Synthetic {
        threads: Some(8),
        time_outs: 1,
        death: true,
        failing: |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 },
        objective_phases: &["fault"],
        ..Synthetic::default()
    };
    let found = serde_json::to_value(findings(&everything.run(directory.path())).unwrap()).unwrap();
    let text = include_str!("../../../docs/json.md");
    let mut names = BTreeSet::new();
    keys(&found, &mut names);
    let another = tempfile::tempdir().unwrap();
    let run = [Synthetic::default().run(another.path())];
    keys(&serde_json::to_value(compare(&run, &run).unwrap()).unwrap(), &mut names);
    assert!(names.len() > 100, "{names:?}");
    let missing: Vec<&String> = names.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/json.md: {missing:?}");
}

#[test]
fn the_same_run_gives_the_same_object() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials: 5, planned_trials: 5, ..Synthetic::default() }.run(directory.path());
    let object = || serde_json::to_string(&findings(&run).unwrap()).unwrap();
    assert_eq!(object(), object());
}
