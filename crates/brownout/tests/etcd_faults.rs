//! Faults on a real etcd: those that follow a role hit whoever has it, and every kind is proven when it is injected and refuted when
//! it is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{path::Path, process::Output};

use common::{SHORT, both, brownout, experiment, leader_at, require_root, undisturbed};
use serde_json::Value;

/// Every kind that a file can name, save `chaos`, which is several of the others, and `clock`, which etcd is refused.
const KINDS: [&str; 14] = [
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
    "stop",
    "kill",
];

fn run(out: &Path, more: &[&str]) -> Output {
    let file = experiment("every-fault-etcd.yaml");
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

/// The same lab with one fault alone.
fn run_one(out: &Path, fault: &str, more: &[&str]) -> Output {
    let fault = format!("--set=faults=[{fault}]");
    let mut arguments = vec![fault.as_str(), "--set=load.rate=300/s"];
    arguments.extend(more);
    run(out, &arguments)
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

/// Faults of every-fault-etcd.yaml that follow a role.
const OF_ROLES: usize = 8;

/// Each fault of a role has struck whoever had it when it came: that is who the members themselves say led, or another one.
fn assert_roles_are_as_members_say(trial: &Value) {
    let mut of_roles = 0;
    for fault in trial["faults"].as_array().unwrap() {
        let text = fault["text"].as_str().unwrap();
        let of_leader = text.contains("the leader (");
        if !of_leader && !text.contains("a follower (") {
            continue;
        }
        for period in fault["periods"].as_array().unwrap() {
            let struck = &fault["severities"][period["severity"].as_u64().unwrap() as usize];
            let leader = leader_at(trial, &period["injected"]);
            assert_eq!(struck == leader, of_leader, "{text} when {leader} led: {}", trial["database"]["leaders"]);
        }
        of_roles += 1;
    }
    assert_eq!(of_roles, OF_ROLES);
}

#[test]
#[ignore = "repeats for roles what slow_replica.rs shows of hosts: make test-long"]
fn a_fault_of_a_role_that_is_not_injected_is_refuted_and_names_whom_it_was_to_hit() {
    require_root();
    let fault = "{slow: {host: follower, delay: 100ms}}";
    let more = [&SHORT[..], &["--sabotage"]].concat();
    let Some((_, output, findings)) = undisturbed(|out| run_one(out, fault, &more)) else { return };
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    let fault = &findings["trials"][0]["faults"][0];
    assert_eq!(fault["verdict"], "refuted", "{fault}");
    let senders = common::senders(fault);
    let [follower] = senders[..] else { panic!("one host was to send late: {senders:?}") };
    assert!(fault["text"].as_str().unwrap().contains(&format!("a follower ({follower})")), "{fault}");
    let leader = leader_at(&findings["trials"][0], &fault["injected"]);
    assert!(leader.is_string() && leader != follower, "{follower} was to follow {leader}");
}

#[test]
#[ignore = "takes four minutes: make test-long"]
fn every_kind_of_fault_is_proven_where_it_hits_and_where_it_must_not() {
    require_root();
    let Some((_, output, findings)) = undisturbed(|out| run(out, &["--set=attempts=1"])) else { return };
    assert_all_are("proven", &findings);
    assert_roles_are_as_members_say(&findings["trials"][0]);
    for fault in findings["trials"][0]["faults"].as_array().unwrap() {
        let rows = fault["rows"].as_array().unwrap();
        for hit in [true, false] {
            assert!(rows.iter().any(|row| row["hit"] == hit), "hit and spared subjects are both judged: {fault}");
        }
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
}

#[test]
#[ignore = "takes four minutes: make test-long"]
fn every_kind_of_fault_is_refuted_when_it_was_not_injected() {
    require_root();
    let Some((_, output, findings)) = undisturbed(|out| run(out, &["--set=attempts=1", "--sabotage"])) else { return };
    assert_all_are("refuted", &findings);
    assert_roles_are_as_members_say(&findings["trials"][0]);
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
}

#[test]
#[ignore = "repeats for an error what every-fault-etcd.yaml shows of a delay: make test-long"]
fn a_server_whose_disk_fails_ends_itself_and_the_trial_is_valid_and_it_is_back_in_the_end() {
    require_root();
    let fault = "{disk: {host: follower, directories: [wal], operations: [sync], error: io}}";
    let more = ["--set=phases={warm-up: 20s, baseline: 11s, fault: 11s, recovery: 45s}", "--set=attempts=1"];
    let Some((_, output, findings)) = undisturbed(|out| run_one(out, fault, &more)) else { return };
    let trial = &findings["trials"][0];
    assert_eq!(trial["faults"][0]["verdict"], "proven", "{}", trial["faults"][0]);
    assert_eq!(trial["deaths"].as_array().unwrap().len(), 1, "{}", trial["deaths"]);
    assert_eq!(trial["deaths"][0]["of_its_disk"], true, "{}", trial["deaths"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
}
