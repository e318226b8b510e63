//! Nothing is left behind: after Ctrl-C, after SIGKILL of any process of ours, at any moment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{path::Path, time::Duration};

use common::{
    Machine, Running, SHORT, assert_nothing_is_left, brownout, descendants, experiment, json, kill, network_namespaces,
    only_run, require_root, text,
};

fn start(out: &Path) -> Running {
    let file = experiment("slow-replica.yaml");
    let mut arguments = vec![file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    arguments.extend(SHORT);
    Running::start(&arguments)
}

/// Moments of a run, by what it says then.
const MOMENTS: [&str; 4] = ["making the lab's namespaces", "starting 3 nodes", "warm-up (filling)", "fault  4s left"];

#[test]
fn sigkill_of_the_command_leaves_nothing() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    for moment in MOMENTS {
        let out = tempfile::tempdir().unwrap();
        let mut running = start(out.path());
        running.wait_for(moment);
        let processes = descendants(running.child.id());
        running.signal(libc::SIGKILL);
        running.child.wait().unwrap();
        assert_nothing_is_left(&processes, &machine, &namespaces);
    }
}

#[test]
fn sigkill_of_the_labs_first_process_leaves_nothing_and_is_told() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let out = tempfile::tempdir().unwrap();
    let mut running = start(out.path());
    running.wait_for("fault  4s left");
    let processes = descendants(running.child.id());
    let first = processes
        .iter()
        .find(|(pid, _)| text(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap()).contains("inside-lab"));
    kill(first.unwrap().0, libc::SIGKILL);
    assert_nothing_is_left(&processes, &machine, &namespaces);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(3), "{seen}");

    // All up to that second is there: the phases before it, the fault in force, and that it ended early.
    let shown = brownout(&["show", only_run(out.path()).to_str().unwrap(), "--json"]);
    let findings = json(&shown);
    let trial = &findings["trials"][0];
    assert_eq!(trial["state"], "running", "nobody could say that it ended");
    let phases = trial["phases"].as_array().unwrap();
    let fault = phases.iter().find(|phase| phase["name"] == "fault").unwrap();
    assert!(fault["counts"]["scheduled"].as_u64().unwrap() >= 2 * 399, "{}", fault["counts"]);
    assert!(trial["faults"][0]["injected"].is_object(), "{}", trial["faults"][0]);
    assert_ne!(shown.status.code(), Some(0));
}

#[test]
fn ctrl_c_heals_ends_the_trial_and_leaves_a_readable_run() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    for moment in ["starting 3 nodes", "fault  4s left"] {
        let out = tempfile::tempdir().unwrap();
        let mut running = start(out.path());
        running.wait_for(moment);
        let processes = descendants(running.child.id());
        running.signal(libc::SIGINT);
        let (code, seen) = running.finish();
        assert_eq!(code, Some(130), "{seen}");
        assert_nothing_is_left(&processes, &machine, &namespaces);
        let folder = only_run(out.path());
        assert!(!folder.join("scratch").exists());
        let shown = brownout(&["show", folder.to_str().unwrap(), "--json"]);
        assert_eq!(shown.status.code(), Some(130), "{}", common::both(&shown));
        let trial = &json(&shown)["trials"][0];
        assert_eq!(trial["state"], "interrupted");
        if moment.starts_with("fault") {
            assert!(trial["faults"][0]["healed"].is_object(), "{}", trial["faults"][0]);
        }
    }
}

#[test]
fn ctrl_c_at_any_moment_of_the_start_is_heard() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    for ms in (5..300).step_by(20) {
        let out = tempfile::tempdir().unwrap();
        let running = start(out.path());
        std::thread::sleep(Duration::from_millis(ms));
        let processes = descendants(running.child.id());
        running.signal(libc::SIGINT);
        // `timeout` and terminals may deliver the same wish twice.
        running.signal(libc::SIGTERM);
        let (code, seen) = running.finish();
        assert_eq!(code, Some(130), "after {ms} ms: {seen}");
        assert_nothing_is_left(&processes, &machine, &namespaces);
    }
}

#[test]
fn what_a_killed_run_left_on_the_disk_goes_with_the_next_run() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let mut killed = start(out.path());
    killed.wait_for("warm-up (filling)");
    killed.signal(libc::SIGKILL);
    killed.child.wait().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let folder = only_run(out.path());
    assert!(folder.join("scratch").exists());
    let mut next = start(out.path());
    next.wait_for("removed what a killed run had left");
    assert!(!folder.join("scratch").exists());
    next.signal(libc::SIGINT);
    next.finish();
}
