//! The lab by hand, as a person uses it: real Cassandra, real commands, and nothing left in the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod hosts;
mod lab;
mod network;

use std::{fs, os::unix::fs::PermissionsExt, thread, time::Duration};

use common::{
    Processors, STOLEN, TOO_LATE, becomes_quiet, beside_a_sleeper,
    byhand::{Place, Traces},
    kill, require_root,
    unjudged::not_judged,
};
use serde_json::Value;

fn host<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["hosts"].as_array().unwrap().iter().find(|host| host["name"] == name).unwrap()
}

fn status(place: &Place) -> Value {
    place.json(&["status", "--json"])
}

/// What a short look says of a fault that a command has put in force there.
fn checked(place: &Place, kind: &str, subject: &str) -> Value {
    let seen = place.json(&["status", "--check", "--json"]);
    let all = seen["checks"].as_array().unwrap();
    all.iter().find(|one| one["kind"] == kind && one["subject"] == subject).unwrap_or_else(|| panic!("{all:?}")).clone()
}

/// A look shows at once what is in force; unless the machine itself spoiled it, by what a thread that only sleeps has seen
/// of it meanwhile. The first look that it did not spoil has to be proven.
fn assert_proven(place: &Place, kind: &str, subject: &str) {
    let mut is_busy = false;
    for _ in 0..4 {
        let before = Processors::now();
        let (seen, late) = beside_a_sleeper(|| checked(place, kind, subject));
        if seen["verdict"] == "proven" {
            return;
        }
        assert!(late > TOO_LATE, "a sleeper was {late:?} late at most: {seen}");
        eprintln!("a sleeper was {late:?} late: {seen}");
        is_busy |= before.stolen() > STOLEN || !becomes_quiet();
    }
    assert!(is_busy, "four looks were late, and the machine is quiet");
    not_judged("the machine spoiled four looks");
}

#[test]
fn the_whole_tour_with_a_real_cluster() {
    require_root();
    let place = Place::new();
    assert_eq!(place.good(&["ls"]), "no lab is running\n");
    assert!(place.bad(&["status"], 2).contains("brownout up"));
    place.up("tour", &[]);
    let traces = Traces::of(&place, "tour");

    let seen = status(&place);
    assert_eq!(seen["links"].as_array().unwrap().len(), 12);
    for name in ["n1", "n2", "n3"] {
        assert_eq!(
            (&host(&seen, name)["state"], &host(&seen, name)["network"]),
            (&"UP".into(), &Value::Array(Vec::new()))
        );
    }
    let directory = place.runtime();
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&directory), mode(&directory.join("tour")), mode(&directory.join("tour/lab.sock"))),
        (0o700, 0o700, 0o600)
    );

    network::links(&place);
    network::wrong_words(&place);
    network::partitions(&place);
    hosts::processes(&place);
    hosts::clocks(&place);
    hosts::disks_and_processors(&place);
    lab::programs(&place);
    lab::garbage(&place);
    lab::chaos(&place);
    lab::events(&place);
    lab::another_lab(&place);

    place.good(&["destroy", "--name", "tour"]);
    traces.assert_gone(true);
    assert_eq!(place.good(&["ls"]), "no lab is running\n");
}

#[test]
fn sigkill_of_keeper_or_first_process_leaves_nothing_and_no_lab() {
    require_root();
    let place = Place::new();
    let first = |place: &Place| place.first_process("lab");
    let keeper = |place: &Place| place.keeper("lab").unwrap();
    for (what, victim) in [("first process", &first as &dyn Fn(&Place) -> u32), ("keeper", &keeper)] {
        place.up("lab", &["--etcd", "--nodes", "1"]);
        place.good(&["slow", "n1", "20ms"]);
        place.good(&["pause", "n1"]);
        let traces = Traces::of(&place, "lab");
        kill(victim(&place), libc::SIGKILL);
        traces.assert_gone(false);
        // What the kernel does not remove, the next command does.
        assert_eq!(place.good(&["ls"]), "no lab is running\n", "{what}");
        traces.assert_gone(true);
    }
}

#[test]
fn an_up_that_is_ended_before_its_lab_is_ready_leaves_nothing() {
    require_root();
    let place = Place::new();
    for signal in [libc::SIGKILL, libc::SIGINT] {
        let mut up = place.up_under_way("lab");
        let has_nodes = || place.keeper("lab").is_some_and(|keeper| common::descendants(keeper).len() > 1);
        place.until("the nodes are starting", has_nodes);
        assert!(place.bad(&["status"], 3).contains("is still starting"));
        assert_eq!(place.json(&["ls", "--json"])["labs"][0]["state"], "STARTING");
        let traces = Traces::of(&place, "lab");
        kill(up.id(), signal);
        let code = up.wait().unwrap().code();
        assert_eq!(code, if signal == libc::SIGINT { Some(130) } else { None });
        traces.assert_gone(true);
        assert_eq!(place.good(&["ls"]), "no lab is running\n");
    }
    // One that cannot be made says why, and leaves as little.
    let work = place.work();
    let said = place.bad(&["up", "--dir", work.to_str().unwrap(), "--set", "cluster.heap=64GiB"], 4);
    assert!(said.contains("memory"), "{said}");
    assert!(place.bad(&["up", "--set", "cluster.nodez=1"], 2).contains("nodez"));
    thread::sleep(Duration::from_millis(100));
    assert!(!work.join("lab").exists() && place.good(&["ls"]).contains("no lab"));
}
