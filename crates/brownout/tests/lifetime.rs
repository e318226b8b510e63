//! Nothing is left behind: after Ctrl-C, after SIGKILL of any process of ours, at any moment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use common::{
    Machine, ONE_NODE, Running, SHORT, assert_nothing_is_left, both, brownout, catches, descendants, experiment, json,
    kill, network_namespaces, only_run, require_root, text, with_command_line,
};
use tempfile::TempDir;

/// Nothing of it is judged.
const PHASES: &str = "--set=phases={warm-up: 16s, baseline: 3s, fault: 8s, recovery: 6s}";

/// A short run on one node of Cassandra.
fn start(out: &Path, more: &[&str]) -> Running {
    let file = experiment("slow-replica.yaml");
    let mut arguments = vec![file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    arguments.extend(SHORT);
    arguments.extend(ONE_NODE);
    arguments.push(PHASES);
    arguments.extend(more);
    Running::start(&arguments)
}

/// The same on etcd, which starts in a second: what a killed command leaves is the same.
fn start_on_etcd(out: &Path, more: &[&str]) -> Running {
    let file = experiment("etcd-slow-leader.yaml");
    let mut arguments = vec![file.to_str().unwrap(), "--out", out.to_str().unwrap(), PHASES];
    arguments.extend(["--set=cluster.nodes=1", "--set=load.population=2_000", "--set=trials=1", "--set=attempts=1"]);
    arguments.extend(more);
    Running::start(&arguments)
}

/// The runs below a directory.
fn runs(out: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(out).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// In the middle of the fault.
const FAULT: [&str; 2] = ["fault  4s left", "fault  3s left"];

const STARTING: &str = "starting 1 node";

/// The first load: all that a lab has is there.
const FILLING: &str = "warm-up (filling)";

/// Moments of a run before its phases, by what it says then. The fault has tests of its own.
const MOMENTS: [&str; 3] = ["making the lab's namespaces", STARTING, FILLING];

#[test]
fn sigkill_of_the_command_leaves_nothing_but_files_which_go_with_the_next_run() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let out = tempfile::tempdir().unwrap();
    for moment in MOMENTS {
        let before = runs(out.path());
        let mut running = start_on_etcd(out.path(), &[]);
        running.wait_for(moment);
        assert_eq!(running.seen.contains("removed what a killed run had left"), !before.is_empty(), "{}", running.seen);
        for killed in &before {
            assert!(!killed.join("scratch").exists(), "{} is not removed", killed.display());
        }
        let processes = descendants(running.child.id());
        running.signal(libc::SIGKILL);
        running.child.wait().unwrap();
        assert_nothing_is_left(&processes, &machine, &namespaces);
        let killed = runs(out.path()).difference(&before).next().unwrap().clone();
        assert!(killed.join("scratch").exists(), "nobody could remove it");
    }
}

/// Nobody can reach the host any more, whatever the database makes of that, and in whichever phase: all are watched alike.
#[test]
fn a_host_whose_interface_is_taken_down_ends_the_trial_and_is_named() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let mut running = start_on_etcd(out.path(), &[]);
    running.wait_for_any(&["warm-up (flood)", "warm-up (settling)"]);
    let members = with_command_line(&descendants(running.child.id()), "--name=n1");
    let member = members.first().unwrap_or_else(|| panic!("no member: {}", running.seen)).to_string();
    let words = ["-t", &member, "-n", "ip", "link", "set", brownout_network::INTERFACE, "down"];
    assert!(Command::new("nsenter").args(words).status().unwrap().success());
    let (code, seen) = running.finish();
    assert_eq!(code, Some(3), "{seen}");
    let shown = brownout(&["show", only_run(out.path()).to_str().unwrap(), "--json"]);
    let reasons = json(&shown)["verdict"]["reasons"].to_string();
    assert!(reasons.contains("the network interface of n1 failed"), "{reasons}");
}

/// A run that was to keep its data keeps it when it is killed, too.
#[test]
fn what_a_killed_run_was_to_keep_stays() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let mut killed = start_on_etcd(out.path(), &["--keep"]);
    killed.wait_for(FILLING);
    killed.signal(libc::SIGKILL);
    killed.child.wait().unwrap();
    let data = only_run(out.path()).join("scratch/stand-1/n1");
    assert!(data.is_dir());
    let mut next = start_on_etcd(out.path(), &[]);
    next.wait_for(STARTING);
    assert!(data.is_dir(), "it is kept");
    assert!(!next.seen.contains("removed what a killed run had left"), "{}", next.seen);
    next.signal(libc::SIGINT);
    next.finish();
}

/// The same run on an overlay.
fn start_on_overlay(out: &Path, overlay: &str) -> Running {
    let set = format!("--set=network={{overlay: {overlay}}}");
    start_on_etcd(out, &[set.as_str()])
}

/// The files below a directory that hold a private key in the clear, one a line.
fn keys(below: &Path) -> String {
    let found = Command::new("grep").args(["-rlF", "PRIVATE KEY"]).arg(below).output().unwrap();
    // 1: there is none.
    assert!(matches!(found.status.code(), Some(0 | 1)), "{}", both(&found));
    text(&found.stdout)
}

/// An overlay has more than the network below it: interfaces in every host, a thread or processes of its own, keys.
#[test]
fn sigkill_of_a_lab_on_an_overlay_leaves_no_interface_no_process_and_no_key() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    // The first is carried by a thread of the lab and by the kernel, the second by a process in each host.
    for (overlay, interfaces, openvpns) in
        [("wireguard+vxlan", &["wg0:", "vxlan0:"][..], 0), ("openvpn", &["ovpn0:"][..], 2)]
    {
        // While it is built, and while the load passes through it.
        for moment in [STARTING, FILLING] {
            let out = tempfile::tempdir().unwrap();
            let mut running = start_on_overlay(out.path(), overlay);
            running.wait_for(moment);
            let processes = descendants(running.child.id());
            if moment == FILLING {
                let members = with_command_line(&processes, "--name=n1");
                let member = members.first().unwrap_or_else(|| panic!("no member: {}", running.seen));
                let seen = fs::read_to_string(format!("/proc/{member}/net/dev")).unwrap();
                assert!(interfaces.iter().all(|interface| seen.contains(interface)), "{overlay}: {seen}");
                assert_eq!(with_command_line(&processes, "openvpn\0--config").len(), openvpns, "{overlay}");
            }
            running.signal(libc::SIGKILL);
            running.child.wait().unwrap();
            assert_nothing_is_left(&processes, &machine, &namespaces);
            assert_eq!(keys(out.path()), "", "{overlay}: they were never written to a disk");
        }
    }
}

#[test]
#[ignore = "two of them, without a fault, are tested without it: make test-long"]
fn sigkill_of_a_lab_on_any_overlay_during_a_fault_leaves_nothing() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let (command, first) = (None, Some("inside-lab"));
    for (overlay, victim) in [
        ("vxlan", command),
        ("wireguard", command),
        ("wireguard", first),
        ("wireguard+vxlan", first),
        ("openvpn", command),
        ("openvpn", first),
    ] {
        let out = tempfile::tempdir().unwrap();
        let mut running = start_on_overlay(out.path(), overlay);
        running.wait_for_any(&FAULT);
        let processes = descendants(running.child.id());
        match victim {
            None => {
                running.signal(libc::SIGKILL);
                running.child.wait().unwrap();
            }
            Some(part) => {
                let victims = with_command_line(&processes, part);
                assert!(!victims.is_empty(), "none among {processes:?}");
                victims.iter().for_each(|pid| kill(*pid, libc::SIGKILL));
                let (code, seen) = running.finish();
                assert_eq!(code, Some(3), "{overlay}: {seen}");
            }
        }
        assert_nothing_is_left(&processes, &machine, &namespaces);
        assert_eq!(keys(out.path()), "", "{overlay}");
    }
}

/// Those of the nodes lie where their data lies.
#[test]
fn the_keys_of_a_lab_that_encrypts_go_with_it_and_those_of_a_killed_one_with_the_next_run() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let out = tempfile::tempdir().unwrap();
    let encrypted = ["--set=cluster.encryption={internode: none, clients: true}"];
    let mut killed = start(out.path(), &encrypted);
    killed.wait_for(STARTING);
    let key = only_run(out.path()).join("scratch/stand-1/n1/conf/node.pem");
    let begun = Instant::now();
    while !key.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "there is no key: {}", killed.seen);
        thread::sleep(Duration::from_millis(10));
    }
    let processes = descendants(killed.child.id());
    killed.signal(libc::SIGKILL);
    killed.child.wait().unwrap();
    assert_nothing_is_left(&processes, &machine, &namespaces);
    // So this look can see one.
    assert!(keys(out.path()).contains("node.pem"), "nobody could remove it");
    let mut next = start(out.path(), &encrypted);
    next.wait_for(STARTING);
    assert!(next.seen.contains("removed what a killed run had left") && !key.exists(), "{}", next.seen);
    next.signal(libc::SIGINT);
    let (code, seen) = next.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert_eq!(keys(out.path()), "");
}

#[test]
fn ctrl_c_heals_ends_the_trial_and_leaves_a_readable_run() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    // What heals is the lab, whatever the database.
    type Begin = fn(&Path, &[&str]) -> Running;
    let begun: [(Begin, &[&str]); 2] = [(start, &[STARTING]), (start_on_etcd, &FAULT)];
    for (begin, moment) in begun {
        let out = tempfile::tempdir().unwrap();
        let mut running = begin(out.path(), &[]);
        running.wait_for_any(moment);
        let processes = descendants(running.child.id());
        running.signal(libc::SIGINT);
        let (code, seen) = running.finish();
        assert_eq!(code, Some(130), "{seen}");
        assert_nothing_is_left(&processes, &machine, &namespaces);
        let directory = only_run(out.path());
        assert!(!directory.join("scratch").exists());
        let shown = brownout(&["show", directory.to_str().unwrap(), "--json"]);
        assert_eq!(shown.status.code(), Some(130), "{}", common::both(&shown));
        let trial = &json(&shown)["trials"][0];
        assert_eq!(trial["state"], "interrupted");
        if moment == FAULT {
            assert!(trial["faults"][0]["healed"].is_object(), "{}", trial["faults"][0]);
        }
    }
}

#[test]
fn ctrl_c_at_any_moment_of_the_start_is_heard() {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let (mut heard, mut ms) = (0, 5);
    // Where others have the processors, it can hear later.
    while ms < 300 || heard < 10 {
        assert!(ms < 5_000, "only {heard} came when it could hear them");
        let out = tempfile::tempdir().unwrap();
        let running = start(out.path(), &[]);
        thread::sleep(Duration::from_millis(ms));
        let processes = descendants(running.child.id());
        let listens = catches(running.child.id(), libc::SIGINT) && catches(running.child.id(), libc::SIGTERM);
        running.signal(libc::SIGINT);
        // `timeout` and terminals may deliver the same wish twice.
        running.signal(libc::SIGTERM);
        let (code, seen) = running.finish();
        // Before a program has begun, Ctrl-C ends it as it does any other.
        assert!(code == Some(130) || !listens && code.is_none(), "after {ms} ms: {code:?}, {seen}");
        heard += u32::from(listens);
        ms += 20;
        assert_nothing_is_left(&processes, &machine, &namespaces);
    }
}

/// Everything that can be in force at once, so that whoever is killed, is killed while it is.
const ALL_AT_ONCE: &str = "\
cluster: { jit: c1 }
load: { replication: 3, consistency: one, population: 1_000, rate: 100/s, timeout: 1s }
phases: { warm-up: 16s, baseline: 10s, fault: 24s, recovery: 60s }
faults:
  - slow: { host: n1, delay: 50ms, jitter: 10ms, distribution: pareto, direction: both }
  - flaky: { host: n1, gilbert-elliott: { p: 5%, r: 30% } }
  - duplicate: { host: n2, share: 10% }
  - corrupt: { host: n2, share: 10% }
  - reorder: { host: n2, share: 10%, delay: 10ms }
  - rate: { host: n1, rate: 10mbit }
  - mtu: { host: n1, bytes: 1300 }
  - link: { from: n1, to: n2, delay: 20ms }
    flap: { on: 6s, off: 2s }
  - partition: { from: n3, to: n1, how: reject }
  - cpu: { host: n2, share: 5% }
  - disk: { host: n1, operations: [sync, write], delay: 150ms }
  - disk: { host: n2, directories: [hints], error: no-space, operations: [write] }
  - clock: { host: n2, offset: -5s, drift: 1% }
  - pause: { host: n3 }
  - LAST
objective: { p99: 100ms }
attempts: 1
";

/// The same for etcd, but for a rate and a clock, whose proofs take longer.
const ALL_AT_ONCE_ON_ETCD: &str = "\
cluster: { etcd: '3', nodes: 3 }
load: { mix: { put: 1, range: 1 }, population: 500, rate: 100/s, timeout: 1s, coordinators: round-robin }
phases: { warm-up: 16s, baseline: 8s, fault: 13s, recovery: 60s }
faults:
  - slow: { host: n1, delay: 50ms, jitter: 10ms, distribution: pareto, direction: both }
  - flaky: { host: n1, gilbert-elliott: { p: 5%, r: 30% } }
  - duplicate: { host: n2, share: 10% }
  - corrupt: { host: n2, share: 10% }
  - reorder: { host: n2, share: 10%, delay: 10ms }
  - mtu: { host: n1, bytes: 1300 }
  - link: { from: n1, to: n2, delay: 20ms }
    flap: { on: 6s, off: 2s }
  - partition: { from: n3, to: n1, how: reject }
  - cpu: { host: n2, share: 5% }
  - disk: { host: n1, operations: [sync, write], delay: 150ms }
  - pause: { host: n3 }
  - kill: { host: n2 }
objective: { p99: 100ms }
attempts: 1
";

/// Starts it; the processes of the command, of the lab's first process and of the nodes, in that order.
fn start_all_at_once(directory: &Path, experiment: &str) -> Running {
    let file = directory.join("all-at-once.yaml");
    fs::write(&file, experiment).unwrap();
    let out = directory.join("runs");
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    running.wait_for_any(&["fault  8s left", "fault  7s left", "fault  6s left"]);
    what_times_out_is_in_the_live_view(running.seen.lines().last().unwrap());
    running
}

/// A third of the operations go to n3, which stands still: their time-out of a second is far more than one in a hundred.
fn what_times_out_is_in_the_live_view(line: &str) {
    let of_both = line.split_once("ok and timed out p50 ").unwrap_or_else(|| panic!("{line}")).1;
    let p99: brownout_units::Delay = of_both.split_once("p99 ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!(p99 >= brownout_units::Delay::from_secs(1), "{line}");
}

/// Starts it, kills some of its processes in the middle of the fault, and looks at what is left: the run's directory and
/// the exit code.
fn killed_during_every_fault(
    experiment: &str,
    victims: impl Fn(u32, &BTreeSet<(u32, u64)>) -> Vec<u32>,
) -> (TempDir, Option<i32>) {
    require_root();
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let directory = tempfile::tempdir().unwrap();
    let mut running = start_all_at_once(directory.path(), experiment);
    let command = running.child.id();
    let processes = descendants(command);
    let victims = victims(command, &processes);
    assert!(!victims.is_empty(), "none among {processes:?}");
    victims.iter().for_each(|pid| kill(*pid, libc::SIGKILL));
    // Nothing else may hold the output of a command that was killed.
    let code = if victims.contains(&command) { running.child.wait().unwrap().code() } else { running.finish().0 };
    assert_nothing_is_left(&processes, &machine, &namespaces);
    (directory, code)
}

#[test]
#[ignore = "the loss of the command, and of the lab's first process under every fault, are tested without it: make test-long"]
fn sigkill_of_the_command_during_every_kind_of_fault_leaves_nothing() {
    let (_, code) =
        killed_during_every_fault(&ALL_AT_ONCE.replace("LAST", "stop: { host: n2 }"), |command, _| vec![command]);
    assert_eq!(code, None);
}

#[test]
fn sigkill_of_the_labs_first_process_during_every_kind_of_fault_leaves_nothing_and_is_told() {
    let first = |_, processes: &BTreeSet<_>| with_command_line(processes, "inside-lab");
    let (directory, code) = killed_during_every_fault(ALL_AT_ONCE_ON_ETCD, first);
    assert_eq!(code, Some(3));

    // All up to that second is there: the phases before it, the faults in force, and that it ended early.
    let shown = brownout(&["show", only_run(&directory.path().join("runs")).to_str().unwrap(), "--json"]);
    let findings = json(&shown);
    let trial = &findings["trials"][0];
    assert_eq!(trial["state"], "running", "nobody could say that it ended");
    let phases = trial["phases"].as_array().unwrap();
    let fault = phases.iter().find(|phase| phase["name"] == "fault").unwrap();
    assert!(fault["counts"]["scheduled"].as_u64().unwrap() >= 4 * 99, "{}", fault["counts"]);
    for fault in trial["faults"].as_array().unwrap() {
        assert!(fault["injected"].is_object(), "{fault}");
    }
    assert_ne!(shown.status.code(), Some(0));
}

#[test]
#[ignore = "the loss of one node, and of the lab's first process, are tested without it: make test-long"]
fn sigkill_of_every_node_during_every_kind_of_fault_leaves_nothing() {
    let nodes = |_, processes: &BTreeSet<_>| with_command_line(processes, "CassandraDaemon");
    // A lab that has lost its nodes ends by itself, and is no valid run.
    // `stop` and `kill` cannot hit one node at the same time.
    assert_eq!(killed_during_every_fault(&ALL_AT_ONCE.replace("LAST", "kill: { host: n2 }"), nodes).1, Some(3));
}
