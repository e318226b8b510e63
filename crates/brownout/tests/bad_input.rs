//! Every mistake has a message with the place, the value and the remedy, the right exit code, and leaves nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::fs;

use common::{both, brownout, experiment, in_private_mounts, text};

/// A file that is right, to be spoiled line by line.
const GOOD: &str = "\
load:
  replication: 3
  consistency: quorum
  rate: 400/s
phases: { warm-up: 20s, baseline: 5s, fault: 8s, recovery: 5s }
faults:
  - slow: { host: n2, delay: 100ms }
objective: { p99: 100ms }
";

/// Exchanged for, in the good file; the place of the complaint; and what it has to say.
const TABLE: &[(&str, &str, &str, &[&str])] = &[
    ("replication: 3", "replicaton: 3", ":2:", &["replicaton", "did you mean 'replication'?"]),
    ("host: n2", "host: n4", ":7:", &["unknown host 'n4'", "n1, n2, n3, load", "did you mean"]),
    ("host: n2", "host: 80%", ":7:", &["unknown host '80%'"]),
    ("host: n2, ", "", ":7:", &["missing field `host`"]),
    ("delay: 100ms", "delay: 100", ":7:", &["'100' is not a duration", "2.5ms"]),
    ("delay: 100ms", "delay: 100 parsecs", ":7:", &["'100 parsecs' is not a duration"]),
    ("delay: 100ms", "delay: 0ms", ":7:", &["a delay of 0 does nothing", "A/A"]),
    ("delay: 100ms", "delay: 100ms, jitter: 200ms", ":7:", &["jitter", "exceeds the delay"]),
    ("delay: 100ms }", "delay: 100ms }\n    start: 9s", ":8:", &["after its end", "phase of 8s"]),
    ("delay: 100ms }", "delay: 100ms }\n    start: 5s\n    length: 5s", ":9:", &["can last up to 3s"]),
    ("delay: 100ms }", "delay: 100ms }\n    length: 2s", ":7:", &["2s is too short to prove"]),
    ("delay: 100ms }", "delay: 100ms }\n    flap: { on: 20ms, off: 1s }", ":8:", &["50ms at least"]),
    (
        "delay: 100ms }",
        "delay: 100ms }\n    flap: { on: 50ms, off: 1s }",
        ":7:",
        &["50ms is too short", "however often"],
    ),
    ("delay: 100ms }", "delay: 100ms }\n    flap: { on: 2s }", ":8:", &["missing field `off`"]),
    ("delay: 100ms }", "delay: 100ms }\n    ramp: { steps: 1 }", ":8:", &["a ramp of 1 steps", "2 to 100"]),
    ("delay: 100ms }", "delay: 100ms }\n    ramp: { steps: 50 }", ":7:", &["too short to prove"]),
    (
        "delay: 100ms }",
        "delay: 100ms }\n    ramp: { steps: 2 }\n    flap: { on: 1s, off: 1s }",
        ":8:",
        &["cannot be combined"],
    ),
    ("delay: 100ms", "delay: 100ms, distribution: cauchy", ":7:", &["cauchy", "paretonormal"]),
    ("delay: 100ms", "delay: 100ms, direction: up", ":7:", &["up", "both"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "slow: { host: n2, delay: 50ms }\n    flaky: { host: n1, loss: 5% }",
        ":7:",
        &["one word"],
    ),
    ("slow: { host: n2, delay: 100ms }", "flaky: { host: n2 }", ":7:", &["the loss is missing"]),
    ("slow: { host: n2, delay: 100ms }", "flaky: { host: n2, loss: 0% }", ":7:", &["0% does nothing"]),
    ("slow: { host: n2, delay: 100ms }", "duplicate: { host: n2, share: 0.001% }", ":7:", &["too little to be proven"]),
    ("slow: { host: n2, delay: 100ms }", "reorder: { host: n2, share: 10%, delay: 0ms }", ":7:", &["a delay of 0"]),
    ("slow: { host: n2, delay: 100ms }", "rate: { host: n2, rate: 1kbit }", ":7:", &["cannot be proven", "64kbit"]),
    ("slow: { host: n2, delay: 100ms }", "mtu: { host: n2, bytes: 100 }", ":7:", &["100 bytes", "576"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "link: { from: n1, to: n1, delay: 5ms }",
        ":7:",
        &["not a link between two hosts"],
    ),
    ("slow: { host: n2, delay: 100ms }", "link: { from: n1, to: n2 }", ":7:", &["no impairment is given"]),
    ("slow: { host: n2, delay: 100ms }", "partition: {}", ":7:", &["exactly one of groups"]),
    ("slow: { host: n2, delay: 100ms }", "partition: { groups: [[n1, n2, n3, load]] }", ":7:", &["nothing is cut"]),
    ("slow: { host: n2, delay: 100ms }", "partition: { isolate: n8 }", ":7:", &["unknown host 'n8'", "did you mean"]),
    ("slow: { host: n2, delay: 100ms }", "pause: { host: load }", ":7:", &["unknown host 'load'", "the nodes are n1"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "pause: { host: n2 }\n    flap: { on: 20ms, off: 3s }",
        ":8:",
        &["pause has to last 50ms at least each time"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "pause: { host: n2 }\n    flap: { on: 200ms, off: 3s }",
        ":7:",
        &["3 periods of 200ms leave 300ms", "at least 6 periods (a phase 'fault' of 16.2s)", "one alone takes 4.05s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "pause: { host: n2 }\n    length: 200ms",
        ":7:",
        &["200ms is too short", "or 6 such: flap: { on: 200ms, off: 3s } in a phase 'fault' of at least 16.2s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "slow: { host: n2, delay: 50ms }\n    flap: { on: 300ms, off: 1s }",
        ":7:",
        &["6 periods of 300ms leave 750ms", "at least 15 periods (a phase 'fault' of 18.5s)"],
    ),
    ("slow: { host: n2, delay: 100ms }", "kill: { host: [n1, n2, n3] }", ":7:", &["no cluster is left"]),
    ("slow: { host: n2, delay: 100ms }", "cpu: { host: n2, share: 100% }", ":7:", &["not a limit"]),
    ("slow: { host: n2, delay: 100ms }", "disk: { host: n2 }", ":7:", &["without a delay or an error"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "disk: { host: n2, delay: 5ms, directories: [date] }",
        ":7:",
        &["'date'", "did you mean 'data'?"],
    ),
    ("slow: { host: n2, delay: 100ms }", "clock: { host: n2 }", ":7:", &["without an offset or a drift"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "clock: { host: n2, offset: 1ms }",
        ":7:",
        &["can be injected and proven", "20ms"],
    ),
    ("slow: { host: n2, delay: 100ms }", "clock: { host: n2, drift: 5 }", ":7:", &["not a drift", "100ppm"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "chaos: { pause: 1s..2s, run: 9s..9s, faults: [pause] }",
        ":7:",
        &["no fault of at least", "fits into 8s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "chaos: { pause: 0s..1s, run: 5s..6s, faults: [{ slow: { host: n1, delay: 9ms } }] }",
        ":7:",
        &["draws the hosts itself"],
    ),
    ("slow: { host: n2, delay: 100ms }", "partition: { isolate: n2, to: n3 }", ":7:", &["to: needs from:"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "link: { from: n1, to: n2, delay: 5ms, queue: 9KiB }",
        ":7:",
        &["without rate"],
    ),
    ("slow: { host: n2, delay: 100ms }", "link: { from: n1, to: n2, delay: 9ms, reorder: 90% }", ":7:", &["up to 40%"]),
    ("slow: { host: n2, delay: 100ms }", "link: { from: n1, to: n2, rate: 100gbit }", ":7:", &["cannot be proven"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "rate: { host: n2, rate: 5mbit, queue: 2KiB }",
        ":7:",
        &["too short for the bursts"],
    ),
    ("slow: { host: n2, delay: 100ms }", "mtu: { host: n2, bytes: 1500 }", ":7:", &["network.mtu is 1_500"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "chaos: { pause: 1s..1s, run: 4s..4s, faults: [{ mtu: { bytes: 1500 } }] }",
        ":7:",
        &["network.mtu is 1_500"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "flaky: { host: n2, correlation: 20%, gilbert-elliott: { p: 5%, r: 30% } }",
        ":7:",
        &["a burst model has a correlation of its own"],
    ),
    ("load:", "network: { congestion-control: vegs }\nload:", ":1:", &["no congestion control 'vegs'", "cubic"]),
    ("load:", "network: { links: [{ from: n1, to: n2 }] }\nload:", ":1:", &["no distance is given"]),
    ("load:", "network: { sites: { a: { racks: { 'r 1': [n1, n2, n3] } } } }\nload:", ":1:", &["cannot name a rack"]),
    ("load:", "network: { topology: moon }\nload:", ":1:", &["moon", "wan"]),
    ("load:", "network: { topology: wan }\nload:", ":3:", &["each", "replication-of"]),
    ("load:", "network: { sites: { a: { hosts: [n1, n2] } } }\nload:", ":1:", &["n3 is in no site"]),
    ("load:", "network: { links: [{ from: n1, to: mars, delay: 1ms }] }\nload:", ":1:", &["unknown host 'mars'"]),
    ("load:", "network: { congestion-control-of: { n9: reno } }\nload:", ":1:", &["unknown host 'n9'"]),
    ("delay: 100ms", "delay: 1ns", ":7:", &["1ns is outside of what can be injected and proven"]),
    ("delay: 100ms", "delay: 5s", ":7:", &["8s is too short to prove"]),
    (
        "recovery: 5s }\nfaults:\n  - slow: { host: n2, delay: 100ms",
        "recovery: 3s }\nfaults:\n  - slow: { host: n2, delay: 1s",
        ":5:",
        &["phases.recovery: 3s is too short to prove"],
    ),
    ("slow: { host: n2, delay: 100ms }", "{}", ":7:", &["a fault is one word"]),
    ("slow:", "slwo:", ":7:", &["unknown fault 'slwo'", "did you mean 'slow'?"]),
    ("replication: 3", "replication: 4", ":2:", &["need 4 nodes, and there are 3"]),
    ("replication: 3", "replication: 0", ":2:", &["a replication of 0"]),
    ("replication: 3", "replication: many", ":2:", &["'many' is not a whole number"]),
    (
        "replication: 3\n  consistency: quorum",
        "replication: 2\n  consistency: three",
        ":3:",
        &["three needs 3 replicas"],
    ),
    ("consistency: quorum", "consistency: serial", ":3:", &["serial is a level for reads only"]),
    ("consistency: quorum", "consistency: local-serial", ":3:", &["local-serial is a level for reads only"]),
    ("consistency: quorum", "consistency: any", ":3:", &["any is a level for writes only"]),
    ("consistency: quorum", "consistency: quorom", ":3:", &["'quorom' is not a consistency level", "local-quorum"]),
    ("rate: 400/s", "rate: 400", ":4:", &["'400' is not a rate", "400/s"]),
    ("rate: 400/s", "rate: 0/s", ":4:", &["'0/s' is not a rate above zero"]),
    ("rate: 400/s", "rate: 120%", ":4:", &["'120%' is not a percentage"]),
    ("rate: 400/s", "threads: 0", ":4:", &["0 threads"]),
    ("rate: 400/s", "rate: 400/s\n  threads: 4", ":5:", &["cannot be combined"]),
    ("  rate: 400/s\n", "", ":1:", &["the amount of load is missing"]),
    ("rate: 400/s", "rate: 400/s\n  mix: { read: 0, write: 0 }", ":5:", &["both 0"]),
    ("rate: 400/s", "rate: 400/s\n  value-size: 8B", ":5:", &["8B cannot be written and verified", "16B"]),
    ("rate: 400/s", "rate: 400/s\n  value-size: 5MiB", ":5:", &["5MiB cannot be written"]),
    ("rate: 400/s", "rate: 400/s\n  population: 1_000_000_000", ":5:", &["1_000_000_000 rows"]),
    ("rate: 400/s", "rate: 400/s\n  timeout: 2h", ":5:", &["2h", "up to 60s"]),
    ("fault: 8s, ", "", ":5:", &["no phase 'fault'"]),
    ("warm-up: 20s", "warm-up: 5s", ":5:", &["5s", "a whole number of seconds, at least 16s"]),
    ("baseline: 5s", "baseline: 2500ms", ":5:", &["2.5s is not a valid length; write a whole number of seconds"]),
    ("baseline: 5s, ", "", ":5:", &["missing field `baseline`"]),
    ("{ p99: 100ms }", "{ p99: 100ms, p50: 5ms }", ":8:", &["one percentile"]),
    ("recovery: 5s", "recovery: 2s", ":5:", &["a whole number of seconds, at least 3s"]),
    ("{ p99: 100ms }", "{ p98: 100ms }", ":8:", &["unknown key 'p98'", "did you mean"]),
    ("{ p99: 100ms }", "{ p99: 100ms, in: [fualt] }", ":8:", &["no phase 'fualt'", "did you mean 'fault'?"]),
    ("objective: { p99: 100ms }\n", "", "", &["missing field `objective`"]),
    ("objective:", "trials: 0\nobjective:", ":8:", &["trials: 0 cannot be", "1 to 10000"]),
    ("load:", "load:\n\t- x", ":2:", &["not valid YAML"]),
    ("objective:", "load: {}\nobjective:", "", &["uplicate key", "load"]),
    ("load:", "cluster: { nodes: 0 }\nload:", ":1:", &["0 nodes"]),
    ("load:", "cluster: { heap: 192 }\nload:", ":1:", &["'192' is not an amount of bytes"]),
    ("load:", "cluster: { cassandra: \"5.1\" }\nload:", ":1:", &["'5.1' is not known", "5.0"]),
    ("load:", "cluster: { cassandra: { home: /nowhere } }\nload:", ":1:", &["/nowhere", "unpacked"]),
    ("load:", "cluster: { cassandra: { hom: /x } }\nload:", ":1:", &["unknown key 'hom'"]),
    ("load:", "cluster: { jit: c3 }\nload:", ":1:", &["c3", "c1"]),
    ("load:", "cluster: { heap: 1MiB }\nload:", ":1:", &["1MiB is too small", "128MiB"]),
    ("rate: 400/s", "rate: 400/s\n  mix: { read: 18446744073709551615, write: 1 }", ":5:", &["at most 1_000_000"]),
    ("load:", "network: { mtu: 9 }\nload:", ":1:", &["9 bytes"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "kill: { host: n1 }\n  - pause: { host: [n2, n1] }\n    start: 2s",
        ":8:",
        &["pause of n1 cannot begin at 2s", "kill (faults.0)", "30s to start again"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "pause: { host: n1 }\n  - pause: { host: n1 }",
        ":8:",
        &["pause of n1 cannot begin at 0ns", "pause (faults.0)"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "kill: { host: [n1, n2] }\n  - stop: { host: n3 }\n    start: 1s",
        ":8:",
        &["no cluster is left"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "kill: { host: n1 }\n    flap: { on: 2s, off: 3s }",
        ":8:",
        &["may take 30s to start again", "write off: 30s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "kill: { host: n2 }",
        ":5:",
        &["phases.recovery: 5s is too short", "at least 36s"],
    ),
    ("slow: { host: n2, delay: 100ms }", "stop: { host: n2 }", ":7:", &["8s is too short", "at least 14.05s"]),
    (
        "slow: { host: n2, delay: 100ms }",
        "cpu: { host: n2, share: 0% }",
        ":7:",
        &["too small a share to enforce", "at least 1%", "pause:"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "cpu: { host: n2, share: 0.5% }",
        ":7:",
        &["0.5% of the processors", "at least 1%"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "clock: { host: n2, drift: 95% }",
        ":7:",
        &["more than a clock can drift", "90%"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "clock: { host: n2, drift: 60% }\n  - clock: { host: [n1, n2], drift: 60% }",
        ":7:",
        &["add up to +120%", "90%"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "clock: { host: n2, drift: 1000ppm }",
        ":5:",
        &["phases.baseline: 5s is too short", "12s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "clock: { host: n2, offset: 50ms }\n    ramp: { steps: 5 }",
        ":8:",
        &["cannot be injected in steps"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "disk: { host: n2, error: no-space, operations: read }",
        ":7:",
        &["never fails with ENOSPC"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "disk: { host: n2, delay: 20ms, share: 2% }",
        ":5:",
        &["phases.baseline: 5s is too short"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "chaos: { pause: 0s..1s, run: 3s..6s, faults: [pause] }",
        ":7:",
        &["a round of 3s is too short to prove pause", "4.05s"],
    ),
    (
        "slow: { host: n2, delay: 100ms }",
        "chaos: { pause: 0s..1s, run: 7s..7s, faults: [pause, { flaky: { loss: 0% } }] }",
        ":7:",
        &["0% does nothing"],
    ),
];

#[test]
fn a_wrong_file_is_refused_with_place_value_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.yaml");
    for (good, bad, place, says) in TABLE {
        assert!(GOOD.contains(good), "{good}");
        fs::write(&file, GOOD.replacen(good, bad, 1)).unwrap();
        for command in ["check", "run"] {
            let mut arguments = vec![command, file.to_str().unwrap()];
            let out = directory.path().join("runs");
            if command == "run" {
                arguments.extend(["--out", out.to_str().unwrap()]);
            }
            let output = brownout(&arguments);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{bad}: {}", both(&output));
            assert!(error.contains(&format!("x.yaml{place}")), "{bad}: no place '{place}' in: {error}");
            for part in *says {
                assert!(error.contains(part), "{bad}: '{part}' is not in: {error}");
            }
            assert!(output.stdout.is_empty(), "{bad}: {}", both(&output));
            assert!(!out.exists(), "{bad}: something was begun");
        }
    }
}

#[test]
fn short_stalls_and_periods_are_good_if_there_are_enough_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.yaml");
    for (phase, fault) in [
        ("17s", "pause: { host: n2 }\n    flap: { on: 200ms, off: 3s }"),
        ("40s", "pause: { host: n2 }\n    flap: { on: 50ms, off: 3s }"),
        ("16s", "pause: { host: n2 }\n    flap: { on: 500ms, off: 3s }"),
        ("8s", "pause: { host: n2 }\n    length: 4100ms"),
        ("23s", "slow: { host: n2, delay: 50ms }\n    flap: { on: 300ms, off: 1s }"),
        ("8s", "slow: { host: n2, delay: 50ms }\n    flap: { on: 100ms, off: 500ms }"),
    ] {
        let good = GOOD.replacen("fault: 8s", &format!("fault: {phase}"), 1);
        fs::write(&file, good.replacen("slow: { host: n2, delay: 100ms }", fault, 1)).unwrap();
        let output = brownout(&["check", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{fault}: {}", both(&output));
    }
}

#[test]
fn the_good_file_is_good() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.yaml");
    fs::write(&file, GOOD).unwrap();
    let output = brownout(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
}

#[test]
fn a_wrong_set_is_refused() {
    let file = experiment("slow-replica.yaml");
    for (set, says) in [
        ("faults.0.slow.delay=0ms", "a delay of 0 does nothing"),
        ("faults.0.slow.dealy=1ms", "did you mean 'delay'?"),
        ("faults.1.slow.delay=1ms", "'1' is not an element of 'faults'"),
        ("faults.0.slow.host=n9", "unknown host 'n9'"),
        ("trials.count=3", "has no 'count'"),
        ("trials", "is not KEY=VALUE"),
        ("load.rate=fast", "'fast' is not a rate"),
        ("cluster.cassandra=9.9", "'9.9'"),
        ("cluster.versions.n2=9.9", "'9.9'"),
        ("cluster.versions.n9=4.1", "unknown node 'n9'"),
        ("cluster.settings.cluster_name=x", "the Cassandra setting 'cluster_name' cannot be given"),
        ("cluster.settings.server_encryption_options={enabled: true}", "write cluster.encryption"),
        ("cluster.versions.n2=3.11", "nodes of 3.11 take no schema"),
        ("cluster.encryption.internode=dc", "between data centres, and there are not two"),
        ("cluster.encryption.internode=some", "some"),
        ("cluster.encryption={optional: true}", "nothing is encrypted"),
        ("cluster.settings-of.n9.concurrent_reads=2", "unknown node 'n9'"),
        ("cluster.etcd=3", "a cluster has one database"),
        ("cluster.external=[10.0.0.5]", "the nodes of an external cluster run already"),
        ("cluster.access.user=me", "the lab makes its own"),
        ("load.watchers=1", "Cassandra has no watches"),
        ("load.coordinators=leader", "no node of Cassandra leads"),
        ("load.mix={put: 1}", "put is an operation of etcd"),
        ("network.overlay=ipsec", "ipsec"),
    ] {
        let output = brownout(&["check", file.to_str().unwrap(), "--set", set]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {}", both(&output));
        assert!(error.contains(says), "{set}: '{says}' is not in: {error}");
    }
}

#[test]
fn a_check_says_that_there_is_no_such_etcd_before_a_run_does() {
    let file = experiment("etcd-slow-leader.yaml");
    let output = brownout(&["check", file.to_str().unwrap(), "--set", "cluster.etcd={binary: /nowhere/etcd}"]);
    assert!(!matches!(output.status.code(), Some(0 | 101)), "{}", both(&output));
    assert!(text(&output.stderr).contains("/nowhere/etcd"), "{}", both(&output));
}

#[test]
fn a_set_may_be_a_list_or_a_mapping() {
    let file = experiment("slow-replica.yaml");
    for set in ["objective.in=[baseline, recovery]", "load={threads: 8}", "faults.0={slow: {host: n1, delay: 5ms}}"] {
        let output = brownout(&["check", file.to_str().unwrap(), "--set", set]);
        assert_eq!(output.status.code(), Some(0), "{set}: {}", both(&output));
    }
    let nothing = ["--set", "faults=[]", "--set", "phases={warm-up: 20s, baseline: 5s}"];
    let output = brownout(&[&["check", file.to_str().unwrap()], &nothing[..]].concat());
    assert!(text(&output.stdout).contains("an A/A run"), "{}", both(&output));
}

#[test]
fn files_and_runs_that_are_not_there_are_named() {
    for arguments in [
        &["check", "/nowhere/x.yaml"][..],
        &["run", "/nowhere/x.yaml"],
        &["show", "/nowhere/run"],
        &["report", "/nowhere/run"],
    ] {
        let output = brownout(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", both(&output));
        assert!(text(&output.stderr).contains("/nowhere"), "{}", both(&output));
    }
}

#[test]
fn what_is_added_to_a_run_has_to_be_said_and_counted() {
    for (arguments, said) in [
        (&[][..], "--trials <+N>"),
        (&["--attempts", "some"], "--attempts some: write how many are added, such as --attempts +5"),
        (&["--trials", "+0", "--attempts", "+1"], "--trials +0: write how many are added"),
        (&["--attempts", "+2"], "/nowhere"),
    ] {
        let output = brownout(&[&["extend", "/nowhere"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", both(&output));
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", both(&output));
    }
}

#[test]
fn what_misleads_is_said_loudly() {
    let file = experiment("slow-replica.yaml");
    for (set, says) in [
        ("load.replication=1", "does not measure tolerance"),
        ("load.replication=2", "waits for all 2 replicas"),
        ("load={threads: 64}", "closed loop"),
    ] {
        let output = brownout(&["check", file.to_str().unwrap(), "--set", set]);
        assert_eq!(output.status.code(), Some(0), "{set}: {}", both(&output));
        let text = text(&output.stdout);
        assert!(text.lines().any(|line| line.starts_with("WARNING") && line.contains(says)), "{set}: {text}");
    }
}

/// A command in mounts of its own, in which something is missing; what it has to say.
const LACKING: &[(&str, &str, &[&str])] = &[
    ("no TUN device", "mount -t tmpfs none /dev/net", &["/dev/net/tun", "modprobe tun"]),
    ("a TUN device that is none", "mount --bind /dev/null /dev/net/tun", &["/dev/net/tun"]),
    (
        "no Java that fits",
        "mount -t tmpfs none /usr/lib/jvm; unset JAVA_HOME",
        &["no Java 11 to 17", "openjdk-17-jre-headless"],
    ),
    (
        "no Maven, and nothing in the cache",
        "mkdir \"$OUT/cache\"; export BROWNOUT_CACHE=\"$OUT/cache\"; PATH=/nowhere",
        &["Maven", "apt-get install maven"],
    ),
];

#[test]
fn a_machine_that_lacks_something_is_told_what_and_how_to_remedy_it() {
    for (what, make, says) in LACKING {
        let out = tempfile::tempdir().unwrap();
        let script = format!(
            "OUT={}; {make}; code=0; \"$BROWNOUT\" run {} --out \"$OUT/runs\" || code=$?; exit $code",
            out.path().display(),
            experiment("slow-replica.yaml").display()
        );
        let output = in_private_mounts(&script);
        assert_eq!(output.status.code(), Some(4), "{what}: {}", both(&output));
        for part in *says {
            assert!(text(&output.stderr).contains(part), "{what}: '{part}' is not in: {}", both(&output));
        }
    }
}

#[test]
fn too_little_memory_or_disk_is_told_before_anything_starts() {
    let file = experiment("slow-replica.yaml");
    let out = tempfile::tempdir().unwrap();
    let runs = out.path().join("runs");
    let output =
        brownout(&["run", file.to_str().unwrap(), "--set", "cluster.heap=4000GiB", "--out", runs.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(4), "{}", both(&output));
    assert!(text(&output.stderr).contains("cluster.heap"), "{}", both(&output));
    assert!(!runs.exists());

    let script = format!(
        "mount -t tmpfs -o size=16m none {0}; code=0; \"$BROWNOUT\" run {1} --out {0}/runs || code=$?; exit $code",
        out.path().display(),
        file.display()
    );
    let output = in_private_mounts(&script);
    assert_eq!(output.status.code(), Some(4), "{}", both(&output));
    assert!(text(&output.stderr).contains("--out"), "{}", both(&output));
}
