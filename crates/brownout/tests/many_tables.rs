//! Profiles as the load of an experiment, on real Cassandra: two tables, filled, loaded, distinguished.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{brownout, experiment, only_run, require_root, text, undisturbed};
use serde_json::Value;

/// Short; the file's own phases are for people.
const SHORT: [&str; 3] =
    ["--set=phases={warm-up: 40s, baseline: 11s, fault: 11s, recovery: 11s}", "--set=trials=1", "--set=attempts=1"];

fn phase<'a>(of: &'a Value, name: &str) -> &'a Value {
    of["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap()
}

#[test]
#[ignore = "what each operation is asked is tested by stress_cassandra, and figures by operation in analysis: make test-long"]
fn each_table_has_its_own_figures_and_its_reads_find_what_was_filled() {
    require_root();
    let file = experiment("many-tables.yaml");
    // One operation is judged, and one compares all that it reads with what was written.
    let ops = "--set=load.ops={orders.insert: 40/s, orders.latest: 40/s, stock.validate: 40/s, stock.pieces: 80/s}";
    let Some((out, _, findings)) = undisturbed(|out| {
        let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
        arguments.extend(SHORT);
        arguments.extend([ops, "--set=load.partitions=500", "--set=objective={p95: 100ms, operation: stock.pieces}"]);
        brownout(&arguments)
    }) else {
        return;
    };
    assert_eq!(findings["cells"][0]["objective"]["operation"], "stock.pieces");
    let trial = &findings["trials"][0];
    assert_eq!(trial["faults"][0]["verdict"], "proven");
    assert!(trial["balance"]["balances"].as_bool().unwrap(), "{}", trial["balance"]);
    let baseline = phase(trial, "baseline");
    let names: Vec<&str> =
        baseline["statements"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["orders.insert", "orders.latest", "stock.pieces", "stock.validate"]);
    for (part, rate) in baseline["statements"].as_array().unwrap().iter().zip([40.0, 40.0, 80.0, 40.0]) {
        assert_eq!(part["failed"], 0, "{part}");
        let delivered = part["delivered"].as_f64().unwrap();
        assert!((delivered - rate).abs() <= 1.0, "each by its own clock: {part}");
    }
    // stock is never written after it was filled, so a validation that fails would be a lost or a wrong row.
    let effects = findings["cells"][0]["operations"].as_array().unwrap();
    assert_eq!(effects.len(), 4);
    assert!(effects.iter().all(|effect| effect["baseline"].as_f64().unwrap() > 0.0), "{effects:?}");

    let directory = only_run(out.path());
    let summary = text(&brownout(&["show", directory.to_str().unwrap()]).stdout);
    for part in ["Goodput by operation", "stock.pieces", "operation stock.pieces answered within", "orders.insert"] {
        assert!(summary.contains(part), "'{part}' is not in:\n{summary}");
    }
    // What was asked of each operation stays with the run.
    let profile = brownout_record::Run::open(&directory).unwrap();
    let path = experiment("profiles/shop-stock.yaml");
    assert_eq!(profile.document(&format!("file {}", path.display())).unwrap(), std::fs::read_to_string(path).ok());
}
