//! The lab by hand, as a person uses it: real Cassandra, real commands, and nothing left in the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::Stdio,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use common::{
    TOO_LATE, beside_a_sleeper,
    byhand::{Place, Traces},
    kill, require_root, text, wait_for_quiet,
};
use serde_json::Value;

/// The round trips that a ping tells, ms, ascending.
fn round_trips(place: &Place, from: &str, to: &str) -> Vec<f64> {
    let said = place.good(&["ping", from, to, "--count", "20", "--interval", "20ms"]);
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
    let mut all: Vec<f64> = said.lines().filter_map(time).collect();
    all.sort_by(f64::total_cmp);
    assert!(!all.is_empty(), "{said}");
    all
}

fn host<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["hosts"].as_array().unwrap().iter().find(|host| host["name"] == name).unwrap()
}

fn status(place: &Place) -> Value {
    place.json(&["status", "--json"])
}

/// What a short look says of a fault that a command has put in force there.
fn checked(place: &Place, kind: &str, subject: &str) -> Value {
    let seen = place.json(&["status", "--check", "--json"]);
    let all = seen["checks"].as_array().unwrap();
    all.iter().find(|one| one["kind"] == kind && one["subject"] == subject).unwrap_or_else(|| panic!("{all:?}")).clone()
}

/// A look shows at once what is in force; unless the machine itself spoiled it, by what a thread that only sleeps has seen
/// of it meanwhile. The first look that it did not spoil has to be proven.
fn assert_proven(place: &Place, kind: &str, subject: &str) {
    for _ in 0..4 {
        let (seen, late) = beside_a_sleeper(|| checked(place, kind, subject));
        if seen["verdict"] == "proven" {
            return;
        }
        assert!(late > TOO_LATE, "a sleeper was {late:?} late at most: {seen}");
        eprintln!("a sleeper was {late:?} late: {seen}");
        wait_for_quiet();
    }
    panic!("this machine spoiled four looks: it is too busy for this test");
}

fn unix_us() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().cast_signed()
}

#[test]
fn the_whole_tour_with_a_real_cluster() {
    require_root();
    let place = Place::new();
    assert_eq!(place.good(&["ls"]), "no lab is running\n");
    assert!(place.bad(&["status"], 2).contains("brownout up"));
    place.up("tour", &[]);
    let traces = Traces::of(&place, "tour");

    let seen = status(&place);
    assert_eq!(seen["links"].as_array().unwrap().len(), 12);
    for name in ["n1", "n2", "n3"] {
        assert_eq!(
            (&host(&seen, name)["state"], &host(&seen, name)["network"]),
            (&"UP".into(), &Value::Array(Vec::new()))
        );
    }
    let directory = place.runtime();
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&directory), mode(&directory.join("tour")), mode(&directory.join("tour/lab.sock"))),
        (0o700, 0o700, 0o600)
    );

    links(&place);
    wrong_words(&place);
    partitions(&place);
    processes(&place);
    clocks(&place);
    disks_and_processors(&place);
    programs(&place);
    garbage(&place);
    chaos(&place);
    events(&place);
    another_lab(&place);

    place.good(&["destroy", "--name", "tour"]);
    traces.assert_gone(true);
    assert_eq!(place.good(&["ls"]), "no lab is running\n");
}

/// What is asked of links is in force, told, replaced, added up and healed.
fn links(place: &Place) {
    let before = round_trips(place, "n1", "n2");
    let said = place.good(&["slow", "n2", "--delay", "100ms", "--jitter", "10ms"]);
    assert!(said.contains("n2: SLOW 100ms ± 10ms out") && said.contains("grows by 100ms"), "{said}");
    let slow = round_trips(place, "n1", "n2");
    assert!(slow[0] >= 89.9, "no packet is earlier than 90 ms: {slow:?}");
    // Half of them meet at most the delay itself, and what a busy machine adds.
    assert!(slow[0] < before[before.len() / 2] + 110.0, "{slow:?} after {before:?}");
    assert!(round_trips(place, "n1", "n3")[0] < 80.0, "n3 is spared");

    let said = place.good(&["duplicate", "n1", "n3", "5%", "--direction", "in"]);
    assert!(said.contains("n1: DUPLICATE 5% in\nn3: DUPLICATE 5% in"), "{said}");
    assert!(place.good(&["fast", "n1,n3"]).contains("n3: NORMAL"));

    // The second replaces the first, and another kind is added.
    place.good(&["slow", "n2", "100ms", "--direction", "both"]);
    place.good(&["flaky", "n2", "30%"]);
    let seen = status(place);
    let network = host(&seen, "n2")["network"].to_string();
    assert!(
        network.contains("SLOW 100ms both") && network.contains("FLAKY 30% out") && !network.contains("10ms out"),
        "{network}"
    );
    let hit = |link: &&Value| !link["impairments"].as_array().unwrap().is_empty();
    let hit: Vec<&Value> = seen["links"].as_array().unwrap().iter().filter(hit).collect();
    assert!(hit.len() == 6 && hit.iter().all(|link| link["from"] == "n2" || link["to"] == "n2"), "{hit:?}");
    let matrix = place.json(&["clock", "--json"]);
    let from_n2 = matrix["pairs"].as_array().unwrap().iter().filter(|pair| pair["from"] == "n2");
    // Of 50 probes or more on each.
    assert!(
        from_n2.clone().count() == 3 && from_n2.clone().all(|pair| pair["loss"].as_f64().unwrap() > 0.0),
        "{matrix}"
    );
    assert!(round_trips(place, "n1", "n2")[0] >= 200.0, "100 ms there, 100 ms back");
    assert_proven(place, "slow", "n2");
    assert_proven(place, "flaky", "n2");
    assert!(place.good(&["fast", "n2"]).contains("n2: NORMAL"));

    for (words, shown) in [
        (&["duplicate", "n2", "5%"][..], "DUPLICATE 5% out"),
        (&["corrupt", "n3", "1%", "--direction", "in"], "CORRUPT 1% in"),
        (&["reorder", "n1", "25%", "50ms"], "REORDER 25%"),
        (&["rate", "n2", "10mbit"], "RATE 10mbit"),
        (&["mtu", "n2", "1000"], "MTU 1000 out"),
        (&["link", "n1", "n3", "50ms", "1%"], "SLOW 50ms + FLAKY 1% to n3"),
        (&["slow", "load", "5ms"], "load: SLOW 5ms out"),
    ] {
        let said = place.good(words);
        assert!(said.contains(shown), "{words:?}: {said}");
    }
    place.good(&["link", "n1", "n3", "fast"]);
    assert!(!host(&status(place), "n1")["network"].to_string().contains("n3"));
    place.good(&["fast", "--all"]);
    place.good(&["flaky", "n3", "30%", "--for", "300ms"]);
    place.until("--for heals", || host(&status(place), "n3")["network"].as_array().unwrap().is_empty());
    let seen = status(place);
    assert!(
        seen["hosts"].as_array().unwrap().iter().all(|host| host["network"].as_array().unwrap().is_empty()),
        "{seen}"
    );
}

/// What is mistyped is an error with the nearest name, and nothing happens.
fn wrong_words(place: &Place) {
    for (words, said) in [
        (&["slow", "n22", "100ms"][..], "unknown host 'n22'; the hosts are n1, n2, n3, load; did you mean 'n2'?"),
        (&["flaky", "n2", "80"], "unknown host '80'"),
        (&["flaky", "n2", "80%", "20%"], "80%, 20%"),
        (&["flaky", "80%"], "which hosts?"),
        (&["slow", "n2"], "slow n2 100ms"),
        (&["slow", "n2", "5m"], "can be injected and proven"),
        (&["mtu", "n2", "9000"], "network.mtu is 1_500"),
        (&["link", "n1", "n2", "50ms", "--mtu", "9000"], "network.mtu is 1_500"),
        (&["chaos", "start", "--faults", "mtu:9000"], "network.mtu is 1_500"),
        (&["pause", "load"], "no database"),
        (&["kill", "n2", "--signal", "STOP"], "not a signal that ends"),
        (&["kill", "n2", "--signal", "QUIT"], "not a signal that ends"),
        (&["partition", "n1,n2,n3,load"], "nothing is cut"),
        (&["ping", "n1", "n1"], "not two different hosts"),
        (&["fast", "n1", "--all"], "cannot be combined"),
        (&["cql", "select 1", "--consistency", "quorom"], "quorum"),
        (&["status", "--name", "tuor"], "did you mean 'tour'?"),
        (&["up", "--name", "tour"], "running already"),
        (&["up", "--name", "../x"], "not a valid lab name"),
        (&["up", "--name", "other", "--set", "load.rate=abc"], "a lab by hand does not use load"),
        (&["chaos", "start", "--faults", "slo:1ms"], "not a fault that chaos knows"),
        (&["link", "n1", "n2", "fast", "--delay", "1s", "--for", "5s"], "takes no --delay and no --for"),
        (&["link", "n1", "n2", "fast", "50ms"], "50ms is a magnitude"),
        (&["disk", "n2", "fast", "--error", "io"], "takes no --error"),
        (&["cpu", "n2", "full", "--share", "20%"], "takes no --share"),
        (&["clock", "n2", "right", "--offset", "5s"], "takes no --offset"),
        (&["clock", "--for", "5s"], "takes no --for"),
        (&["clock", "n2", "+5s", "--json"], "takes no --json"),
    ] {
        let heard = place.bad(words, 2);
        assert!(heard.contains(said), "{words:?}: {heard}");
    }
    let seen = status(place);
    assert!(seen["links"].as_array().unwrap().iter().all(|link| link["impairments"].as_array().unwrap().is_empty()));
}

/// The small side of a partition has no quorum, the large one has.
fn partitions(place: &Place) {
    place
        .good(&["cql", "CREATE KEYSPACE tour WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"]);
    place.good(&["cql", "CREATE TABLE tour.kv (k int PRIMARY KEY, v text)"]);
    let write = |node: &str| {
        let arguments =
            ["cql", "INSERT INTO tour.kv (k, v) VALUES (1, 'one')", "--host", node, "--consistency", "quorum"];
        place.run(&arguments).status.code()
    };
    place.until("the table is known everywhere", || ["n1", "n2", "n3"].iter().all(|node| write(node) == Some(0)));
    place.good(&["partition", "n1,n2", "n3"]);
    let seen = status(place);
    let group = |name| host(&seen, name)["partition"].clone();
    assert!(group("n1") == group("n2") && group("n1") != group("n3") && group("load") != group("n3"), "{seen}");
    assert_eq!(write("n3"), Some(3), "alone, n3 has no quorum");
    place.until("two of three are a quorum", || write("n1") == Some(0));
    assert_eq!(place.run(&["ping", "n1", "n3", "--count", "2"]).status.code(), Some(3));
    assert!(place.good(&["join"]).contains("all hosts reach one another"));
    place.until("the cluster is whole again", || write("n3") == Some(0));
    assert!(place.good(&["random-partition"]).contains("in group 2"));
    assert!(
        place.good(&["partition", "--from", "n1", "--to", "n2"]).contains("CUT to n2 (one way)"),
        "it takes the other's place"
    );
    place.good(&["join"]);
}

/// Processes stand still, die and come back.
fn processes(place: &Place) {
    let state = |name: &str| host(&status(place), name)["state"].as_str().unwrap().to_owned();
    place.good(&["pause", "n3"]);
    assert_eq!(state("n3"), "PAUSED");
    assert_eq!(checked(place, "pause", "n3")["verdict"], "proven");
    assert!(place.bad(&["pause", "n3"], 3).contains("unpause it first"));
    assert!(place.bad(&["cql", "SELECT * FROM tour.kv", "--host", "n3"], 3).contains("PAUSED"));
    place.good(&["unpause", "n3"]);
    assert_eq!(state("n3"), "UP");
    undone_from_outside(place);
    place.good(&["kill", "n3"]);
    assert_eq!(state("n3"), "DOWN");
    // What it was before depends on when it was last looked at.
    let gone = |line: &str| line.contains("n3 was ") && line.contains(" and is DOWN");
    place.until("the lab has seen it, too", || place.good(&["events"]).lines().any(gone));
    // Without waiting, it is seen starting: a process that answers nobody yet.
    place.good(&["start", "n3", "--no-wait"]);
    assert_eq!(state("n3"), "STARTING");
    place.until("n3 answers", || state("n3") == "UP");
    // Who waits for the answer notes it a moment after the status shows it; a kill before that would be the end of the start.
    let started = || place.good(&["events", "--json"]).lines().any(|line| line.contains("\"kind\":\"start\""));
    place.until("its start is noted", started);
    timers_while_a_node_starts(place);
}

/// What somebody else has undone is not seen, and can be asked for again.
fn undone_from_outside(place: &Place) {
    place.good(&["pause", "n3"]);
    let nodes = common::descendants(place.first_process("tour"));
    let of_n3 = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&line).contains("/n3/") && text(&line).contains("CassandraDaemon")
    };
    let pid = nodes.iter().map(|(pid, _)| *pid).find(of_n3).unwrap();
    kill(pid, libc::SIGCONT);
    let look = || checked(place, "pause", "n3");
    place.until("it is seen that n3 runs", || look()["verdict"] == "not seen");
    assert!(look()["evidence"].as_str().unwrap().contains("UP"), "{}", look());
    place.good(&["pause", "n3"]);
    assert_eq!(look()["verdict"], "proven");
    place.good(&["unpause", "n3"]);
}

/// A node that heals by itself takes its time to start: meanwhile the lab answers, and others heal in time.
fn timers_while_a_node_starts(place: &Place) {
    let state = |name: &str| host(&status(place), name)["state"].as_str().unwrap().to_owned();
    place.good(&["slow", "n1", "20ms", "--for", "3s"]);
    place.good(&["kill", "n3", "--for", "100ms"]);
    place.until("n3 starts by itself", || state("n3") == "STARTING");
    place.until("n1 is healed", || host(&status(place), "n1")["network"].as_array().unwrap().is_empty());
    let events = place.good(&["events", "--json"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let killed = events.iter().rposition(|event| event["kind"] == "kill").unwrap();
    let healed = |owner: &str| {
        events[killed..].iter().any(|event| event["text"] == "healed by itself" && event["subject"] == owner)
    };
    assert!(healed("n1") && !healed("n3"), "n1 did not wait for n3 to answer: {events:?}");
    place.until("n3 answers", || state("n3") == "UP");
}

/// A clock that is wrong is seen by the database, by NTP and by programs.
fn clocks(place: &Place) {
    place.good(&["clock", "n2", "+5s"]);
    let before = unix_us();
    place.good(&["cql", "INSERT INTO tour.kv (k, v) VALUES (2, 'two')", "--host", "n2", "--consistency", "all"]);
    let after = unix_us();
    let answer = place.json(&["cql", "SELECT writetime(v) FROM tour.kv WHERE k = 2", "--host", "n1", "--json"]);
    let written: i128 = answer["rows"][0][0].as_str().unwrap().parse().unwrap();
    assert!((before - 100_000..after + 100_000).contains(&(written - 5_000_000)), "{before} {written} {after}");
    let date: i128 = place.good(&["exec", "n2", "--", "date", "+%s"]).trim().parse().unwrap();
    assert!((before / 1_000_000 + 4..unix_us() / 1_000_000 + 7).contains(&date), "{date}");

    let matrix = place.json(&["clock", "--json"]);
    let pairs = matrix["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 12);
    for pair in pairs {
        let ahead = |name: &str| if pair[name] == "n2" { 5_000_000_000_i64 } else { 0 };
        let (offset, error) = (pair["offset_ns"].as_i64().unwrap(), pair["error_ns"].as_i64().unwrap());
        assert!((offset - (ahead("to") - ahead("from"))).abs() <= error + 1_000, "{pair}");
        assert!(pair["one_way_ns"].as_u64().unwrap() <= 1_000_000_000 && pair["rtt_ns"].is_u64(), "{pair}");
    }
    assert_proven(place, "clock", "n2");
    place.good(&["clock", "n2", "-200ms"]);
    // An exchange that a busy machine delayed tells a larger error.
    let assert_ahead_by = |ns: i64| {
        let seen = host(&status(place), "n2")["clock"].clone();
        let (offset, error) = (seen["offset_ns"].as_i64().unwrap(), seen["error_ns"].as_i64().unwrap());
        assert!((offset - ns).abs() <= error + 1_000, "{ns}: {seen}");
    };
    // The second takes the place of the first.
    assert_ahead_by(-200_000_000);
    place.good(&["clock", "n2", "right"]);
    assert_ahead_by(0);
}

fn disks_and_processors(place: &Place) {
    let said = place.good(&["disk", "n2", "20ms"]);
    assert!(said.contains("disk SLOW 20ms (sync)"), "{said}");
    place.good(&["disk", "n3", "--error", "io", "--operations", "read", "--directories", "hints"]);
    place.good(&["cpu", "n1", "50%"]);
    for (kind, node) in [("disk", "n2"), ("disk", "n3"), ("cpu", "n1")] {
        assert_proven(place, kind, node);
    }
    let seen = status(place);
    assert_eq!(host(&seen, "n3")["disk"][0], "FAILING EIO (read) on hints");
    assert_eq!(host(&seen, "n1")["cpu_share"], 0.5);
    for words in [["disk", "n2", "fast"], ["disk", "n3", "fast"], ["cpu", "n1", "full"]] {
        assert!(place.good(&words).contains("NORMAL"));
    }
}

/// Programs run where they should, with the streams and the fate of their client.
fn programs(place: &Place) {
    let output =
        place.with_input(&["exec", "n2", "--", "sh", "-c", "cat; cat /proc/net/fib_trie; echo no >&2; exit 7"], "in\n");
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stdout).starts_with("in\n") && text(&output.stdout).contains("10.77.0.2"));
    assert_eq!(text(&output.stderr), "no\n");
    assert_eq!(place.run(&["exec", "n1", "--", "no-such-program"]).status.code(), Some(127));
    assert!(place.good(&["nodetool", "n1", "status"]).matches("UN ").count() >= 3);
    assert!(place.good(&["logs", "n1"]).contains("Startup complete"));
    assert_eq!(place.good(&["logs", "n1", "--lines", "3"]).lines().count(), 3);

    // What a program leaves behind is nobody's zombie.
    place.good(&["exec", "n1", "--", "sh", "-c", "sleep 0.1 & sleep 0.1 &"]);
    thread::sleep(Duration::from_millis(300));
    let zombies = || place.good(&["exec", "n1", "--", "sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"]);
    place.until("zombies are buried", || zombies().trim() == "0");

    // Ctrl-C reaches the program, and its client tells of its end; a client that dies takes the program along.
    for (signal, code, mark) in [(libc::SIGINT, Some(130), "31.417"), (libc::SIGKILL, None, "31.418")] {
        let mut client = place.command(&["exec", "n1", "--", "sleep", mark]).stdout(Stdio::null()).spawn().unwrap();
        let runs = || processes_with(mark).iter().any(|pid| *pid != client.id());
        place.until("the program runs", runs);
        kill(client.id(), signal);
        assert_eq!(client.wait().unwrap().code(), code);
        place.until("the program has ended", || processes_with(mark).is_empty());
    }
}

/// Processes one of whose arguments this is.
fn processes_with(mark: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| text(&line).split('\0').any(|word| word == mark))
    };
    pids.filter(has).collect()
}

/// What is no request is answered with an error, and who hangs hurts nobody.
fn garbage(place: &Place) {
    let connect = || UnixStream::connect(place.runtime().join("tour/lab.sock")).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[5, 0, 0, 0, b'{', b'}', b'}', b'}', b'}'], &[255; 64]] {
        let mut client = connect();
        client.write_all(bytes).unwrap();
        let mut said = Vec::new();
        // The lab closes without having read all of it, which the kernel tells after the answer.
        let _ = client.read_to_end(&mut said);
        assert!(text(&said).contains("not a brownout request"), "{}", text(&said));
    }
    let hanging: Vec<UnixStream> = (0..20).map(|_| connect()).collect();
    assert_eq!(host(&status(place), "n1")["state"], "UP");
    drop(hanging);
}

fn chaos(place: &Place) {
    place.good(&["chaos", "start", "--faults", "slow:50ms,flaky:20%", "--pause", "0s", "--run", "1s", "--seed", "3"]);
    assert!(place.bad(&["chaos", "start"], 3).contains("already on"));
    let hit = || {
        status(place)["hosts"].as_array().unwrap().iter().any(|host| !host["network"].as_array().unwrap().is_empty())
    };
    place.until("chaos strikes", hit);
    assert!(place.good(&["chaos", "status"]).contains("seed 3"));
    place.good(&["chaos", "stop"]);
    assert!(!hit(), "all is healed");
}

/// Every change was noted, with its time, its error and the command.
fn events(place: &Place) {
    let said = place.good(&["events", "--json"]);
    let all: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find =
        |kind: &str| all.iter().find(|event| event["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {said}"));
    assert_eq!(find("slow")["who"], "brownout slow n2 --delay 100ms --jitter 10ms");
    assert!(
        find("slow")["error_ns"].as_u64().unwrap() < 5_000_000_000
            && find("slow")["text"].as_str().unwrap().contains("100ms")
    );
    for kind in ["up", "flaky", "heal", "partition", "pause", "kill", "start", "state", "clock", "disk", "cpu", "chaos"]
    {
        find(kind);
    }
    let times: Vec<u64> = all.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
}

/// Two labs do not see one another.
fn another_lab(place: &Place) {
    place.up("other", &["--nodes", "1", "--no-disk", "--set", "network.mtu=1400"]);
    let interface = place.good(&["exec", "n1", "-n", "other", "--", "ip", "link", "show", "lab0"]);
    assert!(interface.contains(" mtu 1400 "), "{interface}");
    let said = place.bad(&["status"], 2);
    assert!(said.contains("other, tour"), "{said}");
    place.good(&["slow", "n1", "20ms", "--name", "other"]);
    let tour = place.json(&["status", "--json", "-n", "tour"]);
    assert!(host(&tour, "n1")["network"].as_array().unwrap().is_empty());
    assert!(place.bad(&["disk", "n1", "20ms", "-n", "other"], 4).contains("--no-disk"));
    let listed = place.json(&["ls", "--json"]);
    assert_eq!(listed["labs"].as_array().unwrap().len(), 2);
    an_interface_that_fails_is_told(place);
    let traces = Traces::of(place, "other");
    place.good(&["destroy", "other"]);
    traces.assert_gone(true);
    assert_eq!(host(&status(place), "n1")["state"], "UP");
}

/// A host that loses its interface is part of `status` from then on, and one event.
fn an_interface_that_fails_is_told(place: &Place) {
    place.good(&["exec", "n1", "-n", "other", "--", "ip", "link", "delete", "lab0"]);
    let seen = || place.json(&["status", "--json", "-n", "other"]);
    place.until("the failure is told", || host(&seen(), "n1")["network"][0] == "FAILED");
    let notes = seen()["notes"].to_string();
    assert!(notes.contains("interface of n1 failed"), "{notes}");
    let events = place.good(&["events", "--json", "-n", "other"]);
    assert_eq!(events.matches("\"kind\":\"host-failed\"").count(), 1, "{events}");
}

#[test]
fn sigkill_of_keeper_or_first_process_leaves_nothing_and_no_lab() {
    require_root();
    let place = Place::new();
    let first = |place: &Place| place.first_process("lab");
    let keeper = |place: &Place| place.keeper("lab").unwrap();
    for (what, victim) in [("first process", &first as &dyn Fn(&Place) -> u32), ("keeper", &keeper)] {
        place.up("lab", &["--nodes", "1"]);
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
        let has_nodes = || place.keeper("lab").is_some_and(|keeper| common::descendants(keeper).len() > 1);
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
