//! Runs in steps, searches, and what is brought to disk before them.

use super::{
    Section,
    common::cassandra::Cassandra,
    ran::{Ran, assert_due, ends, good, start},
};

pub const SECTIONS: &[Section] = &[
    ("a run without a number of threads goes up in steps", steps),
    ("a search finds a rate, or says that none keeps the objective", searches),
    ("what is flushed and compacted is read from one SSTable", disks),
    ("a pinned coordinator gets everything, and must be a node", pinned),
    ("an open loop starts operations on time, whatever its arrivals", open_loops),
];

fn rows(node: &Cassandra) {
    good(node, &["write", "n=1000", "no-warmup", "-rate", "threads=8"]);
}

fn steps(node: &Cassandra) {
    rows(node);
    let words = ["read", "n=600", "no-warmup", "-pop", "seq=1..1000", "-rate", "threads>=2", "threads<=8"];
    // Apache's steps: twice as many each time. ScyllaDB's are a hundred more.
    let ran = good(node, &[&words[..], &["--apache"]].concat());
    let names: Vec<&str> =
        ran.json["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["2 threadCount", "4 threadCount", "8 threadCount"], "{}", ran.out);
    for step in ran.json["steps"].as_array().unwrap() {
        assert_eq!(step["total"]["ended"], 600, "{}", step["name"]);
    }
    assert!(ran.out.contains("Thread count was not specified"), "{}", ran.out);
    assert!(ran.out.contains("Improvement over 2 threadCount: "), "{}", ran.out);
    // With auto it goes on as long as more threads bring more, at most that far.
    let auto = good(node, &[&words[..], &["auto", "--apache"]].concat());
    let count = auto.json["steps"].as_array().unwrap().len();
    assert!((2..=3).contains(&count), "{}", auto.out);
}

fn searches(node: &Cassandra) {
    rows(node);
    let words = ["read", "no-warmup", "-pop", "seq=1..1000", "-rate"];
    // Half a minute is never reached, so the end of the range is the answer.
    let keeps = [&words[..], &["search(slo=p99<30s,from=100/s,to=400/s,step=1s)"]].concat();
    let ran = searched(node, &keeps, 0);
    assert!(ran.out.contains("p99<30s was kept up to the highest rate tried, 400/s"), "{}", ran.out);
    assert!(ran.out.matches("keeps it").count() >= 3, "{}", ran.out);
    // No server answers in a microsecond.
    let ran = searched(node, &[&words[..], &["search(slo=p50<1us,from=8/s,to=400/s,step=1s)"]].concat(), 1);
    ran.assert_balances();
    assert!(ran.out.contains("p50<1us was missed even at the lowest rate tried"), "{}", ran.out);
    assert!(ran.out.ends_with("\nFAILURE\n"), "{}", ran.out);
}

/// A search to its end, which is this exit code. One that says that its client was late has found nothing, and is
/// repeated, three times at most.
fn searched(node: &Cassandra, words: &[&str], code: i32) -> Ran {
    let mut ran = start(node, words).end();
    for _ in 0..3 {
        if ran.json["search"]["found"] == "client" {
            ran = start(node, words).end();
        }
    }
    assert_eq!(ran.code, Some(code), "{}\n---- stderr:\n{}", ran.out, ran.err);
    ran
}

fn disks(node: &Cassandra) {
    let nodetool = node.nodetool_program();
    let words = ["read", "n=1000", "no-warmup", "-pop", "seq=1..1000", "-rate", "threads=4"];
    let with = ["--nodetool", nodetool.to_str().unwrap()];
    // Two SSTables, and one out of them.
    rows(node);
    node.nodetool(&["flush", "keyspace1", "standard1"]);
    rows(node);
    let ran = good(node, &[&words[..], &with, &["--flush", "--compact", "--wait-compactions"]].concat());
    for said in ["flushing keyspace1.standard1", "compacting keyspace1.standard1", "no compactions are left after "] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    let told = "reads of keyspace1.standard1 served by memtables alone (no SSTable looked at): ";
    assert!(ran.out.contains(told), "{}{}", ran.out, ran.err);
    let figures = [&ran.json["remarks"], &ran.json["warnings"]].map(|texts| texts.as_array().unwrap().len());
    assert_eq!(figures.iter().sum::<usize>(), 1, "{}", ran.json);
    let stats = node.nodetool(&["tablestats", "keyspace1.standard1"]);
    assert!(stats.lines().any(|line| line.trim() == "SSTable count: 1"), "{stats}");

    // Without nodetool, CQL tells what it can.
    let ran = good(node, &[&words[..], &["--wait-compactions"]].concat());
    assert!(ran.err.contains("no compactions are left after "), "{}", ran.err);
    // Never on disk: a warning.
    node.cql(&["TRUNCATE keyspace1.standard1"]);
    rows(node);
    let ran = good(node, &words);
    assert!(ran.out.contains("its reads were served by memtables, not by disks; use --flush"), "{}", ran.out);
    assert_eq!(ran.json["warnings"].as_array().unwrap().len(), 1, "{}", ran.json["warnings"]);
    // What cannot be run is said before anything is, with the remedy.
    let ran = ends(node, &[&words[..], &["--flush", "--nodetool", "/no/such/nodetool"]].concat(), 2);
    assert!(ran.err.contains("--nodetool 'nodetool -h {host}'"), "{}", ran.err);
    assert!(!ran.out.contains("Connected"), "{}", ran.out);
}

fn pinned(node: &Cassandra) {
    rows(node);
    let words = ["read", "n=200", "no-warmup", "-pop", "seq=1..1000", "-rate", "threads=4"];
    let host = node.host();
    let ran = good(node, &[&words[..], &["-node", &host, &format!("pin={host}")]].concat());
    let coordinators = ran.operation("READ")["coordinators"].as_object().unwrap().clone();
    assert_eq!(coordinators.len(), 1, "{coordinators:?}");
    assert!(coordinators.keys().all(|name| name.starts_with(&host)), "{coordinators:?}");
    let output = node.run(&[&words[..], &["-node", &host, "pin=127.0.7.99"]].concat());
    assert!(!output.status.success());
    let err = super::common::text(&output.stderr);
    assert!(err.contains("127.0.7.99") && err.contains(&host), "it says which there are: {err}");
}

fn open_loops(node: &Cassandra) {
    rows(node);
    let words = ["read", "duration=2s", "no-warmup", "-pop", "seq=1..1000", "-rate"];
    let ran = good(node, &[&words[..], &["open=250/s"]].concat());
    assert_due(ran.of("READ", "ended"), 500, "open");
    assert_eq!(ran.json["measure"], "response");
    // Independent users: 500 ± 5 standard deviations.
    let ran = good(node, &[&words[..], &["open=250/s", "arrivals=poisson"]].concat());
    assert!((388..=612).contains(&ran.of("READ", "ended")), "{}", ran.of("READ", "ended"));
    let ran = good(node, &[&words[..], &["steps(100/s=1s,300/s=1s)"]].concat());
    assert_due(ran.of("READ", "ended"), 400, "steps");
    // Evenly from nothing to the rate: half of it on average.
    let ran = good(node, &[&words[..], &["open=400/s", "ramp=2s"]].concat());
    assert_due(ran.of("READ", "ended"), 400, "ramp");
    // With users, an operation that finds none free is never asked.
    let ran = good(node, &[&words[..], &["threads=8", "fixed=100/s"]].concat());
    assert!(ran.of("READ", "ended") + ran.balance("withheld") <= 225, "{}", ran.out);
}
