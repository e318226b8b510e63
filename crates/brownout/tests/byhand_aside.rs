//! Labs by hand beside which others may work, since nothing of them is measured and each test looks at its own alone: one of etcd, and
//! those of which nothing is left, that are killed, or ended before they stand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{thread, time::Duration};

use common::{
    byhand::{Traces, Workspace},
    descendants, kill, require_root,
};

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
        let has_nodes = || space.keeper("lab").is_some_and(|keeper| descendants(keeper).len() > 1);
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

#[test]
fn a_lab_of_etcd_by_hand_is_up_and_says_what_it_does_not_have() {
    require_root();
    let space = Workspace::new();
    space.up("kv", &["--etcd", "--nodes", "3"]);
    let status = space.json(&["status", "--name", "kv", "--json"]);
    assert!(status["system"].as_str().unwrap().starts_with("etcd 3."), "{status}");
    let nodes = status["hosts"].as_array().unwrap().iter().filter(|host| host["role"] == "node");
    assert!(nodes.clone().count() == 3 && nodes.clone().all(|node| node["state"] == "UP"), "{status}");
    let refused = space.bad(&["cql", "--name", "kv", "SELECT 1"], 2);
    assert!(refused.contains("speaks no CQL"), "{refused}");
    let slowed = space.good(&["slow", "--name", "kv", "leader", "100ms"]);
    let is_struck = |node: &&str| slowed.contains(&format!("every RTT to and from {node} grows by 100ms"));
    let leader = ["n1", "n2", "n3"].into_iter().find(is_struck);
    let leader = leader.unwrap_or_else(|| panic!("none of the nodes: {slowed}"));
    let by_role: [&[&str]; 4] =
        [&["fast", "leader"], &["start", "leader"], &["unpause", "follower"], &["cpu", "leader", "full"]];
    for healing in by_role {
        let refused = space.bad(&[healing, &["--name", "kv"][..]].concat(), 2);
        assert!(refused.contains("write the name of the node"), "{healing:?}: {refused}");
    }
    let healed = space.good(&["fast", "--name", "kv", leader]);
    assert!(healed.contains("healed: 1"), "{healed}");
    space.good(&["pause", "--name", "kv", "n2"]);
    space.good(&["unpause", "--name", "kv", "n2"]);
    space.good(&["kill", "--name", "kv", "n3"]);
    space.good(&["start", "--name", "kv", "n3"]);
    // Whatever it was before: it runs again, and nothing is left in force.
    for before in [None, Some("pause"), Some("kill"), Some("stop")] {
        let struck = before.map(|verb| space.good(&[verb, "--name", "kv", "n2"]));
        let said = space.good(&["restart", "--name", "kv", "n2"]);
        assert!(said.starts_with("n2: UP (answers after "), "{struck:?}: {said}");
    }
    space.good(&["pause", "--name", "kv", "n2"]);
    space.good(&["unpause", "--name", "kv", "n2"]);
    let events = space.good(&["events", "--name", "kv", "--json"]);
    assert_eq!(events.matches("\"kind\":\"restart\"").count(), 4, "{events}");
    assert_eq!(events.matches("\"kind\":\"failed\"").count(), 0, "{events}");
    space.good(&["destroy", "kv"]);
    let said = space.bad(&["up", "--set", "cluster.external=[10.0.0.5:9042]", "--set", "network={}"], 2);
    assert!(said.contains("leave cluster.external out"), "{said}");
}
