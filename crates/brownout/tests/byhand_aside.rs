//! Labs by hand beside which others may work, since nothing of them is measured and each test looks at its own alone: one of etcd, and
//! those of which nothing is left, that are killed, or ended before they stand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{thread, time::Duration};

use common::{
    byhand::{Place, Traces},
    descendants, kill, require_root,
};

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
        let has_nodes = || place.keeper("lab").is_some_and(|keeper| descendants(keeper).len() > 1);
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

#[test]
fn a_lab_of_etcd_by_hand_is_up_and_says_what_it_does_not_have() {
    require_root();
    let place = Place::new();
    place.up("kv", &["--etcd", "--nodes", "3"]);
    let status = place.json(&["status", "--name", "kv", "--json"]);
    assert!(status["system"].as_str().unwrap().starts_with("etcd 3."), "{status}");
    let nodes = status["hosts"].as_array().unwrap().iter().filter(|host| host["role"] == "node");
    assert!(nodes.clone().count() == 3 && nodes.clone().all(|node| node["state"] == "UP"), "{status}");
    let refused = place.bad(&["cql", "--name", "kv", "SELECT 1"], 2);
    assert!(refused.contains("speaks no CQL"), "{refused}");
    let slowed = place.good(&["slow", "--name", "kv", "leader", "100ms"]);
    let is_struck = |node: &&str| slowed.contains(&format!("every RTT to and from {node} grows by 100ms"));
    let leader = ["n1", "n2", "n3"].into_iter().find(is_struck);
    let leader = leader.unwrap_or_else(|| panic!("none of the nodes: {slowed}"));
    let by_role: [&[&str]; 4] =
        [&["fast", "leader"], &["start", "leader"], &["unpause", "follower"], &["cpu", "leader", "full"]];
    for healing in by_role {
        let refused = place.bad(&[healing, &["--name", "kv"][..]].concat(), 2);
        assert!(refused.contains("write the name of the node"), "{healing:?}: {refused}");
    }
    let healed = place.good(&["fast", "--name", "kv", leader]);
    assert!(healed.contains("healed: 1"), "{healed}");
    place.good(&["pause", "--name", "kv", "n2"]);
    place.good(&["unpause", "--name", "kv", "n2"]);
    place.good(&["kill", "--name", "kv", "n3"]);
    place.good(&["start", "--name", "kv", "n3"]);
    place.good(&["destroy", "kv"]);
    let said = place.bad(&["up", "--set", "cluster.external=[10.0.0.5:9042]", "--set", "network={}"], 2);
    assert!(said.contains("leave cluster.external out"), "{said}");
}
