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
    byhand::{Traces, Workspace},
    kill, require_root,
    unjudged::not_judged,
};
use serde_json::Value;

fn host<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["hosts"].as_array().unwrap().iter().find(|host| host["name"] == name).unwrap()
}

fn status(space: &Workspace) -> Value {
    space.json(&["status", "--json"])
}

/// What a short look says of a fault that a command has put in force there.
fn checked(space: &Workspace, kind: &str, subject: &str) -> Value {
    let seen = space.json(&["status", "--check", "--json"]);
    let all = seen["checks"].as_array().unwrap();
    all.iter().find(|one| one["kind"] == kind && one["subject"] == subject).unwrap_or_else(|| panic!("{all:?}")).clone()
}

/// A look shows at once what is in force; unless the machine itself spoiled it, by what a thread that only sleeps has seen
/// of it meanwhile. The first look that it did not spoil has to be proven.
fn assert_proven(space: &Workspace, kind: &str, subject: &str) {
    assert_proven_by(&|| checked(space, kind, subject));
}

/// The same of looks beside which something is done.
fn assert_proven_by(look: &dyn Fn() -> Value) {
    let mut is_busy = false;
    for _ in 0..4 {
        let before = Processors::now();
        let (seen, late) = beside_a_sleeper(look);
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
    network::wrong_words(&space);
    network::partitions(&space);
    hosts::processes(&space);
    hosts::clocks(&space);
    hosts::disks_and_processors(&space);
    lab::programs(&space);
    lab::garbage(&space);
    lab::chaos(&space);
    lab::events(&space);
    lab::another_lab(&space);

    space.good(&["destroy", "--name", "tour"]);
    traces.assert_gone(true);
    assert_eq!(space.good(&["ls"]), "no lab is running\n");
}

#[test]
fn sigkill_of_keeper_or_first_process_leaves_nothing_and_no_lab() {
    require_root();
    let space = Workspace::new();
    let first = |space: &Workspace| space.first_process("lab");
    let keeper = |space: &Workspace| space.keeper("lab").unwrap();
    // An overlay is carried by the first process, or by processes of its own.
    for (what, overlay, victim) in
        [("first process", "openvpn", &first as &dyn Fn(&Workspace) -> u32), ("keeper", "wireguard+vxlan", &keeper)]
    {
        let set = format!("network.overlay={overlay}");
        space.up("lab", &["--etcd", "--nodes", "1", "--set", &set]);
        space.good(&["slow", "n1", "20ms"]);
        space.good(&["pause", "n1"]);
        let traces = Traces::of(&space, "lab");
        kill(victim(&space), libc::SIGKILL);
        traces.assert_gone(false);
        // What the kernel does not remove, the next command does.
        assert_eq!(space.good(&["ls"]), "no lab is running\n", "{what}");
        traces.assert_gone(true);
    }
}

#[test]
fn an_up_that_is_ended_before_its_lab_is_ready_leaves_nothing() {
    require_root();
    let space = Workspace::new();
    for signal in [libc::SIGKILL, libc::SIGINT] {
        let mut up = space.up_under_way("lab");
        let has_nodes = || space.keeper("lab").is_some_and(|keeper| common::descendants(keeper).len() > 1);
        space.until("the nodes are starting", has_nodes);
        assert!(space.bad(&["status"], 3).contains("is still starting"));
        assert_eq!(space.json(&["ls", "--json"])["labs"][0]["state"], "STARTING");
        let traces = Traces::of(&space, "lab");
        kill(up.id(), signal);
        let code = up.wait().unwrap().code();
        assert_eq!(code, if signal == libc::SIGINT { Some(130) } else { None });
        traces.assert_gone(true);
        assert_eq!(space.good(&["ls"]), "no lab is running\n");
    }
    // One that cannot be made says why, and leaves as little.
    let work = space.work();
    let said = space.bad(&["up", "--dir", work.to_str().unwrap(), "--set", "cluster.heap=64GiB"], 4);
    assert!(said.contains("memory"), "{said}");
    assert!(space.bad(&["up", "--set", "cluster.nodez=1"], 2).contains("nodez"));
    thread::sleep(Duration::from_millis(100));
    assert!(!work.join("lab").exists() && space.good(&["ls"]).contains("no lab"));
}
