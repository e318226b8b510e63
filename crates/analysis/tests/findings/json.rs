//! The JSON object and its documentation say the same.

use std::collections::BTreeSet;

use crate::common::{Synthetic, three_copies};
use crate::scenario::{Made, Scenario};
use brownout_analysis::{compare, findings};
use brownout_record::{EvidenceRow, Quantity, SearchDescription, Subject};
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

/// Something of everything that a database can tell.
fn told() -> Vec<EvidenceRow> {
    let names = [
        "reading",
        "replica-reads",
        "pending",
        "snitch-badness-threshold",
        "pause",
        "marked-down",
        "wal-fsyncs",
        "wal-fsync-time",
    ];
    let row = |(at, name): (u64, &str), subject: &str| EvidenceRow {
        at_ns: at * 1_000_000_000,
        error_ns: 0,
        node: "n1".to_owned(),
        source: "jmx".to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value: at as f64,
    };
    let both = [5, 8].into_iter().flat_map(|at| names.map(|name| (at, name)));
    both.map(|one| row(one, "")).chain([row((8, "snitch-score"), "n2"), row((8, "leader"), "n1")]).collect()
}

#[test]
fn every_field_is_documented() {
    let directory = tempfile::tempdir().unwrap();
    let everything = Synthetic {
        threads: Some(8),
        placement: Some(three_copies()),
        time_outs: 1,
        death: true,
        failing: |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 },
        objective_phases: &["fault"],
        foreign: 0.4,
        queued: 2.0,
        database: told,
        clocks: Some(20_000_000),
        ..Synthetic::default()
    };
    let found = serde_json::to_value(findings(&everything.run(directory.path())).unwrap()).unwrap();
    // A node stands still, and a link loses what nobody asked for.
    let pause = Made::new(Quantity::Running, vec![Subject::host("n2")], -1.0, 0.05).during(&[(0, 0.0, 8.0)]);
    let lossy = Made::new(Quantity::Loss, vec![Subject::pair("n3", "n1")], 0.3, 0.02);
    let harmed = Scenario { faults: vec![pause], outside: vec![lossy], looks: 1_000, ..Scenario::default() };
    let aside = tempfile::tempdir().unwrap();
    let harmed = serde_json::to_value(findings(&harmed.run(aside.path())).unwrap()).unwrap();
    let searched = |search: SearchDescription| {
        let directory = tempfile::tempdir().unwrap();
        let made = Synthetic { levels: &[10, 100], without: 6, search: Some(search), ..Synthetic::default() };
        serde_json::to_value(findings(&made.run(directory.path())).unwrap()).unwrap()
    };
    let ends = ("10ms".to_owned(), "100ms".to_owned());
    let zone = searched(SearchDescription::DangerZone { thresholds: vec![0.1], from: ends.0, to: ends.1 });
    let ends = ("300/s".to_owned(), "3k/s".to_owned());
    let (share, response_ns) = (0.99, 50_000_000);
    let rate = searched(SearchDescription::MaxRate { share, response_ns, from: ends.0, to: ends.1, precision: 0.1 });
    let aside = tempfile::tempdir().unwrap();
    let cells = Synthetic { trials: 2, without: 1, levels: &[5, 10], ..Synthetic::default() };
    let cells = serde_json::to_value(findings(&cells.run(aside.path())).unwrap()).unwrap();
    for (of, there) in [
        (&cells, "/factors/0/smallest_seen"),
        (&cells, "/cells/0/effect/smallest_seen"),
        (&cells, "/cells/0/detectors/0/false_alarms_per_hour"),
        (&zone, "/search/thresholds/0/outcome"),
        (&zone, "/search/levels/0/losses"),
        (&rate, "/search/capacity/outcome"),
        (&harmed, "/trials/0/harm/0/subject"),
        (&harmed, "/trials/0/standstill/quantiles/0/measured_ns"),
        (&found, "/labs/0/processors/0"),
        (&found, "/trials/0/processors"),
        (&found, "/trials/0/instrument/disturbed_by/0/pids"),
        (&found, "/trials/0/closed_loop/measured_loss"),
        (&found, "/trials/0/clocks/1/pairs/0/drift_ppb"),
        (&found, "/trials/0/database/phases/0/by_node/0/scores/0/avoided"),
        (&found, "/trials/0/database/phases/0/by_node/0/counters/0/rise"),
        (&found, "/trials/0/database/phases/0/by_node/0/gauges/0/least"),
        (&found, "/trials/0/database/phases/0/by_node/0/means/0/mean_ns"),
        (&found, "/trials/0/database/phases/0/led/without_ns"),
        (&found, "/trials/0/database/leaders/0/phase"),
        (&found, "/trials/0/database/marks/0/phase"),
        (&found, "/trials/0/explained/touched/0/must"),
        (&found, "/trials/0/explained/floors/0/above_ns"),
        (&found, "/trials/0/explained/prediction/least/delay_ns"),
        (&found, "/trials/0/explained/prediction/losses/0/by_latency"),
        (&found, "/trials/0/explained/prediction/latencies/0/remainder_ns"),
    ] {
        assert!(of.pointer(there).is_some_and(|value| !value.is_null()), "{there}: its fields are not checked");
    }
    let text = include_str!("../../../../docs/json.md");
    let mut names = BTreeSet::new();
    keys(&found, &mut names);
    [&cells, &harmed, &zone, &rate].into_iter().for_each(|of| keys(of, &mut names));
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
