//! The lab by hand, as a person uses it: real Cassandra, real commands, and nothing left in the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod hosts;
mod lab;
mod network;

use std::{fs, os::unix::fs::PermissionsExt};

use common::{
    Processors, STOLEN, TOO_LATE, becomes_quiet, beside_a_sleeper,
    byhand::{Traces, Workspace},
    require_root,
    unjudged::not_judged,
};
use serde_json::Value;

fn host<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["hosts"].as_array().unwrap().iter().find(|host| host["name"] == name).unwrap()
}

fn status(space: &Workspace) -> Value {
    space.json(&["status", "--json"])
}

/// What a short look says of each of these faults (kind, subject) that commands have put in force.
fn checked(space: &Workspace, faults: &[(&str, &str)]) -> Vec<Value> {
    let seen = space.json(&["status", "--check", "--json"]);
    let all = seen["checks"].as_array().unwrap();
    let find = |(kind, subject): &(&str, &str)| {
        let found = all.iter().find(|one| one["kind"] == *kind && one["subject"] == *subject);
        found.unwrap_or_else(|| panic!("{all:?}")).clone()
    };
    faults.iter().map(find).collect()
}

/// One look shows at once all that is in force; unless the machine itself spoiled it, by what a thread that only sleeps has
/// seen of it meanwhile. In the first look that it did not spoil each of these faults has to be proven.
fn assert_proven(space: &Workspace, faults: &[(&str, &str)]) {
    assert_proven_by(&|| checked(space, faults));
}

/// The same of looks beside which something is done.
fn assert_proven_by(look: &dyn Fn() -> Vec<Value>) {
    let mut is_busy = false;
    for _ in 0..4 {
        let before = Processors::now();
        let (mut seen, late) = beside_a_sleeper(look);
        seen.retain(|one| one["verdict"] != "proven");
        if seen.is_empty() {
            return;
        }
        assert!(late > TOO_LATE, "a sleeper was {late:?} late at most: {seen:?}");
        eprintln!("a sleeper was {late:?} late: {seen:?}");
        is_busy |= before.stolen() > STOLEN || !becomes_quiet();
    }
    assert!(is_busy, "four looks were late, and the machine is quiet");
    not_judged("the machine spoiled four looks");
}

#[test]
fn the_whole_tour_with_a_real_cluster() {
    require_root();
    let space = Workspace::new();
    assert_eq!(space.good(&["ls"]), "no lab is running\n");
    assert!(space.bad(&["status"], 2).contains("brownout up"));
    space.up("tour", &[]);
    let traces = Traces::of(&space, "tour");

    let seen = status(&space);
    assert_eq!(seen["links"].as_array().unwrap().len(), 12);
    for name in ["n1", "n2", "n3"] {
        assert_eq!(
            (&host(&seen, name)["state"], &host(&seen, name)["network"]),
            (&"UP".into(), &Value::Array(Vec::new()))
        );
    }
    let directory = space.runtime();
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&directory), mode(&directory.join("tour")), mode(&directory.join("tour/lab.sock"))),
        (0o700, 0o700, 0o600)
    );

    network::links(&space);
    network::partitions(&space);
    // While n3 starts, it is the turn of what does without it.
    let beside = || {
        lab::garbage(&space);
        lab::another_lab(&space);
    };
    hosts::processes(&space, || network::wrong_words(&space), beside);
    hosts::clocks(&space);
    hosts::disks_and_processors(&space);
    lab::programs(&space);
    lab::chaos(&space);
    lab::events(&space);

    space.good(&["destroy", "--name", "tour"]);
    traces.assert_gone(true);
    assert_eq!(space.good(&["ls"]), "no lab is running\n");
}
