//! What nobody asked for is found in a real lab, named, and makes the run invalid.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::process::Command;

use common::{Running, SHORT, brownout, descendants, experiment, json, only_run, require_root, text};

/// Cassandra's process on a node of a run.
fn node(running: &Running, name: &str) -> u32 {
    let is_it = |pid: &u32| {
        let line = text(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        line.contains(&format!("/{name}/")) && line.contains("CassandraDaemon")
    };
    descendants(running.child.id()).into_iter().map(|(pid, _)| pid).find(is_it).unwrap()
}

/// The IPv4 address of a host that is not a loopback's.
fn address(pid: u32) -> String {
    let output =
        Command::new("nsenter").args(["-t", &pid.to_string(), "-n", "ip", "-4", "-o", "addr"]).output().unwrap();
    let text = text(&output.stdout);
    let all = text.lines().filter_map(|line| line.split_whitespace().nth(3)?.split('/').next());
    all.map(str::to_owned).find(|address| !address.starts_with("127.")).unwrap_or_else(|| panic!("{text}"))
}

/// Lets a host lose a fifth of what comes from an address, behind the emulator's back.
fn lose_a_fifth(at: u32, from: &str) {
    let rules = format!(
        "table ip harm {{ chain in {{ type filter hook input priority 0; ip saddr {from} numgen random mod 5 0 drop; }}; }}"
    );
    let mut command = Command::new("nsenter");
    let output = command.args(["-t", &at.to_string(), "-n", "nft", &rules]).output().unwrap();
    assert!(output.status.success(), "{}", common::both(&output));
}

#[test]
fn packets_that_vanish_from_outside_make_the_run_invalid_and_the_link_is_named() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let file = experiment("slow-replica.yaml");
    let mut arguments = vec![file.to_str().unwrap(), "--out", out.path().to_str().unwrap()];
    arguments.extend(SHORT);
    let mut running = Running::start(&arguments);
    running.wait_for("fault  ");
    let from = address(node(&running, "n3"));
    for receiver in ["n1", "n2"] {
        lose_a_fifth(node(&running, receiver), &from);
    }
    let (code, seen) = running.finish();
    assert_eq!(code, Some(3), "{seen}");

    let shown = brownout(&["show", only_run(out.path()).to_str().unwrap(), "--json"]);
    let findings = json(&shown);
    assert_ne!(findings["verdict"]["validity"], "valid");
    let trial = &findings["trials"][0];
    let harm = trial["harm"].as_array().unwrap();
    for receiver in ["n1", "n2"] {
        let lost = harm.iter().find(|one| {
            let subject = &one["subject"];
            one["quantity"] == "loss" && subject["from"] == "n3" && subject["to"] == receiver
        });
        let lost = lost.unwrap_or_else(|| panic!("n3 → {receiver} lost a fifth: {harm:?}"));
        let words = lost["text"].as_str().unwrap();
        assert!(words.starts_with(&format!("n3 → {receiver} ")) && words.contains("lost"), "{words}");
    }
    // The links that nobody touched are not accused of it.
    let accused = |one: &&serde_json::Value| one["quantity"] == "loss" && one["subject"]["from"] != "n3";
    assert_eq!(harm.iter().filter(accused).count(), 0, "{harm:?}");
    // The slow replica itself was there all the same.
    assert_eq!(trial["faults"][0]["kind"], "slow");
}
