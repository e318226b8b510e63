//! A run on etcd from a file: the same lab, load, proof and record as with Cassandra. What all its faults do is tested by
//! etcd_faults.rs, a lab of etcd by hand by byhand_aside.rs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{collections::BTreeSet, fs};

use brownout_record::{Run, TrialState};
use common::{
    both, brownout, delay_row, experiment, json, leader_at, only_run, require_root, senders, text, undisturbed,
};
use serde_json::Value;
use tempfile::TempDir;

/// All that etcd's load has; whoever leads is slow, which every other way has to be spared of.
const FILE: &str = "\
question: Does a run on etcd hold together, on WireGuard?
network: { overlay: wireguard }
cluster: { etcd: '3', nodes: 3, settings: { heartbeat-interval: 50 }, settings-of: { n2: { snapshot-count: 5000 } } }
load:
  mix: { put: 4, range: 3, serializable: 2, txn: 1 }
  watchers: 3
  population: 500
  value-size: 200B
  rate: 200/s
phases: { warm-up: 16s, baseline: 8s, fault: 9s, recovery: 6s }
faults:
  - slow: { host: leader, delay: 40ms }
trials: 1
without-fault: 0
attempts: 1
objective: { p95: 1s }
";

/// Runs it, with `more` words, until it is valid; none, and it is told, if the machine spoils every try.
fn run(more: &[&str]) -> Option<(TempDir, Value)> {
    let (directory, output, findings) = undisturbed(|out| {
        let file = out.join("etcd.yaml");
        fs::write(&file, FILE).unwrap();
        let runs = out.join("runs");
        let arguments = ["run", file.to_str().unwrap(), "--json", "--out", runs.to_str().unwrap()];
        brownout(&[&arguments[..], more].concat())
    })?;
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    Some((directory, findings))
}

#[test]
#[ignore = "designs.rs has several trials on one stand of Cassandra: make test-long"]
fn what_a_trial_has_put_is_gone_before_the_next_on_the_same_stand() {
    require_root();
    let Some((directory, _)) = run(&["--set=without-fault=1"]) else { return };
    let run = Run::open(&only_run(&directory.path().join("runs"))).unwrap();
    let done: Vec<_> = run.trials().unwrap().into_iter().filter(|row| row.state == TrialState::Done).collect();
    // The members themselves have said so: else the next had another stand. So it has if the first was spoiled.
    let stands: BTreeSet<u32> = done.iter().map(|row| row.stand).collect();
    assert!(done.len() >= 2, "{done:?}");
    assert!(stands.len() < done.len() || done.len() > 2, "each of two trials had a stand of its own: {done:?}");
}

#[test]
fn a_run_on_etcd_is_valid_and_recorded_by_operation_and_member_and_its_fault_hits_whoever_leads_below_and_above_wireguard()
 {
    require_root();
    let Some((directory, findings)) = run(&[]) else { return };
    let run = Run::open(&only_run(&directory.path().join("runs"))).unwrap();
    let cells = run.cells().unwrap();
    let plan = &cells[0].description;
    assert!(plan.database.starts_with("etcd 3."), "{}", plan.database);
    assert_eq!((plan.load.consistency.as_str(), plan.load.replication), ("raft", 3));
    assert_eq!(plan.overlay, "wireguard");
    let settings = run.environment().unwrap().unwrap().system_settings;
    assert!(settings.contains("\"system\": \"etcd\"") && settings.contains("heartbeat-interval"), "{settings}");

    let done: Vec<_> = run.trials().unwrap().into_iter().filter(|row| row.state == TrialState::Done).collect();
    assert!(!done.is_empty(), "{done:?}");
    for row in &done {
        let window = 0..u64::MAX >> 1;
        let latencies = run.latencies(row.trial, window.clone()).unwrap();
        let ok = latencies.iter().filter(|latency| latency.outcome == "ok");
        let asked: BTreeSet<(&str, &str)> =
            ok.map(|latency| (latency.statement.as_str(), latency.coordinator.as_str())).collect();
        for operation in ["put", "range", "serializable", "txn"] {
            for member in ["n1", "n2", "n3"] {
                assert!(asked.contains(&(operation, member)), "{operation} at {member} in {asked:?}");
            }
        }
        let events: u64 = run.watches(row.trial, window).unwrap().iter().map(|watched| watched.count).sum();
        assert!(events > 0, "no watch has seen a put");
        let through: usize = run.overlay_probes(row.trial).unwrap().iter().map(|probes| probes.samples.len()).sum();
        assert!(through > 1_000, "{through} probes above WireGuard");
        let cpu = run.cpu(row.trial).unwrap();
        assert!(cpu.iter().any(|row| row.subject == "overlay" && row.busy_ns > 0), "WireGuard took no time");
        let failed = latencies.iter().find(|latency| latency.outcome.starts_with("failed:m"));
        assert!(failed.is_none(), "a value that was read is none that was put: {failed:?}");
    }
    // Everybody knows the same leader, and tells so.
    let evidence = run.evidence(done[0].trial).unwrap();
    let leaders: BTreeSet<&str> = evidence
        .iter()
        .filter(|row| row.name == "leader" && !row.subject.is_empty())
        .map(|row| row.subject.as_str())
        .collect();
    let tellers: BTreeSet<&str> =
        evidence.iter().filter(|row| row.name == "leader").map(|row| row.node.as_str()).collect();
    assert_eq!(tellers, BTreeSet::from(["n1", "n2", "n3"]));
    assert!(leaders.iter().all(|leader| tellers.contains(leader)) && !leaders.is_empty(), "{leaders:?}");

    let trials = findings["trials"].as_array().unwrap();
    let faulty = trials.iter().find(|trial| trial["faults"].as_array().is_some_and(|faults| !faults.is_empty()));
    let trial = faulty.unwrap();
    let fault = &trial["faults"][0];
    assert_eq!(fault["verdict"], "proven", "{fault}");
    // It has hit one member, which the members themselves say led.
    let senders = senders(fault);
    let [leader] = senders[..] else { panic!("one host sends late: {senders:?}") };
    let text = format!("everything the leader ({leader}) sends is delayed by 40ms (direction: out)");
    assert_eq!(fault["text"], text);
    assert_eq!(fault["severities"], serde_json::json!([leader]));
    // Below WireGuard and above it: what the leader sends is late, and what is sent to it is not.
    let other = ["n1", "n2", "n3"].into_iter().find(|node| *node != leader).unwrap();
    for (layer, from, to, asked) in [
        ("pair", leader, other, 40e6),
        ("overlay", leader, other, 40e6),
        ("pair", other, leader, 0.0),
        ("overlay", other, leader, 0.0),
    ] {
        let row = delay_row(fault, layer, from, to);
        assert_eq!((row["asked"].as_f64(), row["verdict"].as_str()), (Some(asked), Some("proven")), "{row}");
    }
    let told = leader_at(trial, &fault["injected"]);
    assert_eq!(told.as_str(), Some(leader), "{}", trial["database"]["leaders"]);
}

#[test]
fn check_says_what_etcd_and_its_load_will_be() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("etcd.yaml");
    fs::write(&file, FILE).unwrap();
    let output = brownout(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let said = text(&output.stdout);
    for words in
        ["etcd 3", "4 put to 3 range to 2 serializable to 1 txn over 500 keys of 200B, watched 3 times", "on 3 members"]
    {
        assert!(said.contains(words), "'{words}' is not in: {said}");
    }
}

#[test]
fn check_says_that_a_fault_of_a_role_hits_whoever_has_it_and_whom_that_may_be() {
    let file = experiment("etcd-slow-leader.yaml");
    let file = file.to_str().unwrap();
    let set = "--set=faults.0.slow.direction=out";
    let output = brownout(&["check", file, set]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let said = text(&output.stdout);
    let among = "n1 → n2, n1 → n3, n1 → load, n2 → n1, n2 → n3, n2 → load, n3 → n1, n3 → n2, n3 → load";
    assert!(said.contains(&format!("hits whoever is leader when it is injected, among {among}")), "{said}");
    assert!(!said.contains("spares") && said.contains("proven if"), "{said}");
    let fault = &json(&brownout(&["check", file, set, "--json"]))["cells"][0]["faults"][0];
    assert_eq!(fault["role"], "leader");
    let expectations = fault["expectations"].as_array().unwrap();
    assert!(expectations.len() == 9 && expectations.iter().all(|one| one["hit"] == true), "{fault}");
}
