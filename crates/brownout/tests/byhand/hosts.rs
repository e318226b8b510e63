//! What commands do to processes, clocks, disks and processors.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use super::{
    assert_proven, assert_proven_by, checked,
    common::{self, Over, byhand::Workspace, kill, text},
    host, status,
};

fn unix_us() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().cast_signed()
}

/// Processes stand still, die and come back. While n3 starts, something else is done: `first`, and when it does so again, `second`.
pub fn processes(space: &Workspace, first: impl FnOnce(), second: impl FnOnce()) {
    let state = |name: &str| host(&status(space), name)["state"].as_str().unwrap().to_owned();
    space.good(&["pause", "n3"]);
    assert_eq!(state("n3"), "PAUSED");
    assert_eq!(checked(space, &[("pause", "n3")])[0]["verdict"], "proven");
    assert!(space.bad(&["pause", "n3"], 3).contains("unpause it first"));
    assert!(space.bad(&["cql", "SELECT * FROM tour.kv", "--host", "n3"], 3).contains("PAUSED"));
    space.good(&["unpause", "n3"]);
    assert_eq!(state("n3"), "UP");
    undone_from_outside(space);
    space.good(&["kill", "n3"]);
    assert_eq!(state("n3"), "DOWN");
    // What it was before depends on when it was last looked at.
    let gone = |line: &str| line.contains("n3 was ") && line.contains(" and is DOWN");
    space.until("the lab has seen it, too", || space.good(&["events"]).lines().any(gone));
    // Without waiting, it is seen starting: a process that answers nobody yet.
    space.good(&["start", "n3", "--no-wait"]);
    assert_eq!(state("n3"), "STARTING");
    first();
    space.until("n3 answers", || state("n3") == "UP");
    // Who waits for the answer notes it a moment after the status shows it; a kill before that would be the end of the start.
    let started = || space.good(&["events", "--json"]).lines().any(|line| line.contains("\"kind\":\"start\""));
    space.until("its start is noted", started);
    timers_while_a_node_starts(space, second);
}

/// What somebody else has undone is not seen, and can be asked for again.
fn undone_from_outside(space: &Workspace) {
    space.good(&["pause", "n3"]);
    let nodes = common::descendants(space.first_process("tour"));
    let of_n3 = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&line).contains("/n3/") && text(&line).contains("CassandraDaemon")
    };
    let pid = nodes.iter().map(|(pid, _)| *pid).find(of_n3).unwrap();
    kill(pid, libc::SIGCONT);
    let look = || checked(space, &[("pause", "n3")]).remove(0);
    space.until("it is seen that n3 runs", || look()["verdict"] == "not seen");
    assert!(look()["evidence"].as_str().unwrap().contains("UP"), "{}", look());
    space.good(&["pause", "n3"]);
    assert_eq!(look()["verdict"], "proven");
    space.good(&["unpause", "n3"]);
}

/// A node that heals by itself takes its time to start: meanwhile the lab answers, and others heal in time.
fn timers_while_a_node_starts(space: &Workspace, meanwhile: impl FnOnce()) {
    let state = |name: &str| host(&status(space), name)["state"].as_str().unwrap().to_owned();
    space.good(&["slow", "n1", "20ms", "--for", "3s"]);
    space.good(&["kill", "n3", "--for", "100ms"]);
    space.until("n3 starts by itself", || state("n3") == "STARTING");
    space.until("n1 is healed", || host(&status(space), "n1")["network"].as_array().unwrap().is_empty());
    let events = space.good(&["events", "--json"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let killed = events.iter().rposition(|event| event["kind"] == "kill").unwrap();
    let healed = |owner: &str| {
        events[killed..].iter().any(|event| event["text"] == "healed by itself" && event["subject"] == owner)
    };
    assert!(healed("n1") && !healed("n3"), "n1 did not wait for n3 to answer: {events:?}");
    meanwhile();
    space.until("n3 answers", || state("n3") == "UP");
}

/// A clock that is wrong is seen by the database, by NTP and by programs.
pub fn clocks(space: &Workspace) {
    space.good(&["clock", "n2", "+5s"]);
    let before = unix_us();
    space.good(&["cql", "INSERT INTO tour.kv (k, v) VALUES (2, 'two')", "--host", "n2", "--consistency", "all"]);
    let after = unix_us();
    let answer = space.json(&["cql", "SELECT writetime(v) FROM tour.kv WHERE k = 2", "--host", "n1", "--json"]);
    let written: i128 = answer["rows"][0][0].as_str().unwrap().parse().unwrap();
    assert!((before - 100_000..after + 100_000).contains(&(written - 5_000_000)), "{before} {written} {after}");
    let date: i128 = space.good(&["exec", "n2", "--", "date", "+%s"]).trim().parse().unwrap();
    assert!((before / 1_000_000 + 4..unix_us() / 1_000_000 + 7).contains(&date), "{date}");

    let matrix = space.json(&["clock", "--json"]);
    let pairs = matrix["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 12);
    for pair in pairs {
        let ahead = |name: &str| if pair[name] == "n2" { 5_000_000_000_i64 } else { 0 };
        let (offset, error) = (pair["offset_ns"].as_i64().unwrap(), pair["error_ns"].as_i64().unwrap());
        assert!((offset - (ahead("to") - ahead("from"))).abs() <= error + 1_000, "{pair}");
        assert!(pair["one_way_ns"].as_u64().unwrap() <= 1_000_000_000 && pair["rtt_ns"].is_u64(), "{pair}");
    }
    assert_proven(space, &[("clock", "n2")]);
    // Its NTP server goes on to say so, but that is the lab's own.
    space.good(&["pause", "n2"]);
    assert_not_seen(space, "clock", "n2", "does not report the time");
    space.good(&["unpause", "n2"]);
    space.good(&["clock", "n2", "-200ms"]);
    // An exchange that a busy machine delayed tells a larger error.
    let assert_ahead_by = |ns: i64| {
        let seen = host(&status(space), "n2")["clock"].clone();
        let (offset, error) = (seen["offset_ns"].as_i64().unwrap(), seen["error_ns"].as_i64().unwrap());
        assert!((offset - ns).abs() <= error + 1_000, "{ns}: {seen}");
    };
    // The second takes the place of the first.
    assert_ahead_by(-200_000_000);
    space.good(&["clock", "n2", "right"]);
    assert_ahead_by(0);
}

/// A look does not show it, and says why.
fn assert_not_seen(space: &Workspace, kind: &str, node: &str, why: &str) {
    let seen = checked(space, &[(kind, node)]).remove(0);
    assert!(seen["verdict"] == "not seen" && seen["evidence"].as_str().unwrap().contains(why), "{seen}");
}

/// Looks while clients ask a node one thing after another.
fn beside_clients<T>(space: &Workspace, node: &str, look: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let ask = || {
        while !is_over.load(Ordering::Relaxed) {
            // What is not answered in time has been asked, too.
            let _ = space.run(&["cql", "SELECT key FROM system.local", "--host", node]);
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(ask);
        }
        let _over = Over(&is_over);
        look()
    })
}

pub fn disks_and_processors(space: &Workspace) {
    let said = space.good(&["disk", "n2", "20ms"]);
    assert!(said.contains("disk SLOW 20ms (sync)"), "{said}");
    space.good(&["disk", "n3", "--error", "io", "--operations", "read", "--directories", "hints"]);
    // Nobody asks it for anything.
    space.good(&["cpu", "n1", "80%"]);
    assert_not_seen(space, "cpu", "n1", "used less than its limit");
    space.good(&["cpu", "n1", "5%"]);
    let faults = [("disk", "n2"), ("disk", "n3"), ("cpu", "n1")];
    assert_proven_by(&|| beside_clients(space, "n1", || checked(space, &faults)));
    let seen = status(space);
    assert_eq!(host(&seen, "n3")["disk"][0], "FAILING EIO (read) on hints");
    assert_eq!(host(&seen, "n1")["cpu_share"], 0.05);
    for words in [["disk", "n2", "fast"], ["disk", "n3", "fast"], ["cpu", "n1", "full"]] {
        assert!(space.good(&words).contains("NORMAL"));
    }
}
