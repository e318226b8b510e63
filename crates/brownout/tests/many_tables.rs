//! Profiles as the load of an experiment, on real Cassandra: two tables, filled, loaded, distinguished; on one cluster of two sites,
//! whose distance from each other only those operations feel that ask both.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{fs, path::Path, process::Output, sync::OnceLock};

use common::{both, brownout, experiment, only_run, require_root, text, undisturbed};
use serde_json::Value;

/// Short; the file's own phases are for people.
const SHORT: [&str; 3] =
    ["--set=phases={warm-up: 40s, baseline: 11s, fault: 11s, recovery: 11s}", "--set=trials=1", "--set=attempts=1"];

fn phase<'a>(of: &'a Value, name: &str) -> &'a Value {
    of["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap()
}

/// Both tables on two sites, a copy of each row in either. The site of the load answers alone, save one query whose profile says
/// otherwise. There is no fault and little to fill: it takes no longer than it has to.
const TWO_SITES: &str = "\
network:
  sites: { here: { hosts: [n1, load] }, there: { hosts: n2 } }
  links: [{ from: here, to: there, delay: 50ms, both: true }]
cluster: { nodes: 2, jit: c1 }
load:
  profile: [orders.yaml, stock.yaml]
  ops: { orders.insert: 20/s, orders.latest: 20/s, stock.validate: 20/s, stock.pieces: 40/s }
  partitions: 100
  replication: 1
  consistency: local-quorum
  coordinators: local
phases: { warm-up: 16s, baseline: 5s }
trials: 1
attempts: 1
objective: { p95: 1s, operation: stock.pieces }
";
/// One way between the sites.
const FAR_NS: f64 = 50e6;
/// The operation that asks both.
const ASKS_BOTH: &str = "stock.pieces";

/// The file, and the profiles beside it: the repository's own, but that one query of theirs asks both sites.
fn run_on_two_sites(out: &Path) -> Output {
    let profile = |name: &str| fs::read_to_string(experiment(&format!("profiles/shop-{name}.yaml"))).unwrap();
    let stock = profile("stock").replace("consistencyLevel: ONE", "consistencyLevel: QUORUM");
    assert_eq!(stock.matches("QUORUM").count(), 1, "{stock}");
    let (file, runs) = (out.join("two-sites.yaml"), out.join("runs"));
    fs::write(&file, TWO_SITES).unwrap();
    fs::write(out.join("orders.yaml"), profile("orders")).unwrap();
    fs::write(out.join("stock.yaml"), stock).unwrap();
    brownout(&["run", file.to_str().unwrap(), "--json", "--out", runs.to_str().unwrap()])
}

/// The findings of the one run that two tests look at; none if the machine spoiled it.
fn on_two_sites() -> Option<&'static Value> {
    static RUN: OnceLock<Option<Value>> = OnceLock::new();
    let run = || -> Option<Value> {
        require_root();
        let (_, output, findings) = undisturbed(run_on_two_sites)?;
        assert_eq!(findings["verdict"]["validity"], "valid", "{}", both(&output));
        Some(findings)
    };
    RUN.get_or_init(run).as_ref()
}

/// The operations of a baseline are these, in the order of the alphabet, each with its rate, and none of them failed.
fn assert_each_has_its_rate(baseline: &Value, rates: &[(&str, f64)]) {
    let parts = baseline["statements"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, rates.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (part, (_, rate)) in parts.iter().zip(rates) {
        assert_eq!(part["failed"], 0, "{part}");
        let delivered = part["delivered"].as_f64().unwrap();
        assert!((delivered - rate).abs() <= 1.0, "each by its own clock: {part}");
    }
}

#[test]
fn each_operation_of_two_tables_has_a_rate_of_its_own_and_finds_what_was_filled() {
    let Some(findings) = on_two_sites() else { return };
    assert_eq!(findings["cells"][0]["objective"]["operation"], ASKS_BOTH);
    let trial = &findings["trials"][0];
    assert!(trial["balance"]["balances"].as_bool().unwrap(), "{}", trial["balance"]);
    let rates = [("orders.insert", 20.0), ("orders.latest", 20.0), (ASKS_BOTH, 40.0), ("stock.validate", 20.0)];
    // stock is never written after it was filled, so a validation that fails would be a lost or a wrong row.
    assert_each_has_its_rate(phase(trial, "baseline"), &rates);
}

#[test]
fn what_its_own_site_answers_does_not_feel_the_distance_to_the_other_and_what_asks_both_does() {
    let Some(findings) = on_two_sites() else { return };
    for part in phase(&findings["trials"][0], "baseline")["statements"].as_array().unwrap() {
        let p50 = part["response"]["p50"]["value_ns"].as_f64().unwrap_or_else(|| panic!("{part}"));
        // There and back, less the width of a bucket.
        let is_far = p50 > 1.9 * FAR_NS;
        assert!(is_far == (part["name"] == ASKS_BOTH) && (is_far || p50 < FAR_NS), "{part}");
    }
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
    let rates = [("orders.insert", 40.0), ("orders.latest", 40.0), ("stock.pieces", 80.0), ("stock.validate", 40.0)];
    // stock is never written after it was filled, so a validation that fails would be a lost or a wrong row.
    assert_each_has_its_rate(baseline, &rates);
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
