//! Labs by hand that are killed, or ended before they stand: nothing is left of them. Each test looks at its own lab alone, so that
//! others may work beside it.

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
