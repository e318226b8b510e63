//! Every output of `brownout stress` tells the same of the same operations, whatever became of them.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

/// Of the directory of that name only what this file needs.
mod common {
    pub mod stress;
}

use std::{collections::BTreeMap, fs, path::Path, process::Command, thread::sleep, time::Duration};

use brownout_load::stub::{Answer, Behaviour, Stub};
use brownout_record::{Latencies, Percentile, Population, Run};
use common::stress::{BROWNOUT, Done, Load, wait_for_operations};
use serde_json::Value;

const RATES: [&str; 3] = ["open=200/s", "threads=4 fixed=200/s", "threads=4"];

/// What becomes of operations: a name, the node, more words, and which outcomes there must be.
fn cases() -> Vec<(&'static str, Behaviour, &'static str, &'static [&'static str])> {
    let slow = |ms| Behaviour::slow(Duration::from_millis(ms));
    let narrow = "maxPending=1 connectionsPerHost=1";
    vec![
        ("ok", Behaviour::default(), "", &["ok"]),
        ("slow", slow(40), "", &["ok"]),
        ("timed out", Behaviour::answering(Answer::Silence), "", &["timed-out"]),
        ("refused", Behaviour::answering(Answer::Error(0x1000)), "", &["unavailable"]),
        ("never sent", Behaviour::answering(Answer::Silence), narrow, &["timed-out", "never-sent"]),
        ("late", slow(450), "", &["timed-out", "late"]),
    ]
}

#[test]
fn every_output_tells_the_same_of_what_became_of_operations() {
    for (name, node, words, outcomes) in cases() {
        for rate in RATES {
            let what = format!("{name}, {rate}");
            let stub = Stub::local(1).unwrap();
            stub.set(0, node);
            let directory = tempfile::tempdir().unwrap();
            let file = |name: &str| directory.path().join(name);
            let graph = file("graph.html");
            let words = format!(
                "write duration=1500ms --record {} -rate {rate} -errors ignore retries=0 -mode requestTimeout=300 {words} \
                 -pop seq=1..1000000 -graph file={}",
                file("run.db").display(),
                graph.display()
            );
            let log = format!("interval=250ms csv={} hdrfile={}", file("s.csv").display(), file("s.hdr").display());
            let done = Load::start(&stub, &words, &log).done();
            done.adds_up();
            done.went_on();
            for outcome in outcomes {
                let count = if *outcome == "late" { done.sheet("late") } else { done.class(outcome) };
                assert!(count > 0, "{what}: nothing is {outcome}: {done}");
            }
            populations(&what, name, rate, &done);
            account(&what, &done);
            rows_and_results(&what, &done);
            csv(&what, &done, &file("s.csv"));
            intervals(&what, &file("s.csv"), &file("run.db"));
            hdr(&what, &done, &file("s.hdr"));
            page(&what, &done, &graph);
            record(&what, &done, &file("run.db"));
        }
    }
}

fn operation(done: &Done) -> &Value {
    &done.json["operations"][0]
}

/// How many operations a population has.
fn count(done: &Done, population: &str) -> u64 {
    operation(done)["populations"][population]["count"].as_u64().unwrap_or_else(|| panic!("{population}: {done}"))
}

/// A percentile of JSON as the account prints it.
fn printed(percentile: &Value) -> String {
    match percentile["value_ns"].as_u64() {
        None => "never".to_owned(),
        Some(ns) => {
            let bound = if percentile["at_least"] == true { "≥" } else { "" };
            format!("{bound}{:.3}", ns as f64 / 1e6)
        }
    }
}

fn populations(what: &str, name: &str, rate: &str, done: &Done) {
    let ok = done.sheet("answered_ok");
    let shown = ok + done.sheet("timed_out");
    let counts = ["ok", "ok+timed-out", "due"].map(|name| count(done, name));
    // What a rate called for and found no user was due, too.
    let due = done.sheet("scheduled") + done.sheet("withheld");
    assert_eq!(counts, [ok, shown, due], "{what}: {done}");
    assert!(done.sheet("withheld") > 0 || name != "timed out" || !rate.contains("fixed"), "{what}: {done}");
    assert_eq!(done.json["population"], "ok+timed-out");
    let requests = operation(done)["requests"].as_u64().unwrap();
    assert_eq!(requests, done.sheet("sent"), "{what}: one request each without retries: {done}");
    // Rates are of the time in which operations were due, however long the last was waited for.
    let due_ns = done.json["due_ns"].as_u64().unwrap();
    assert!(due_ns.abs_diff(1_500_000_000) < 1_000_000, "{what}: {due_ns}");
    let rate = operation(done)["operations_per_second"].as_f64().unwrap();
    assert!((rate - done.sheet("sent") as f64 / 1.5).abs() < 1.0, "{what}: {rate}/s: {done}");
}

fn line<'a>(done: &'a Done, name: &str) -> Option<&'a str> {
    let line = done.out.lines().find(|line| line.split_once(':').is_some_and(|(found, _)| found.trim() == name));
    line.and_then(|line| line.split_once(':')).map(|(_, text)| text.trim())
}

fn account(what: &str, done: &Done) {
    let counts = ["ok", "ok+timed-out", "due"].map(|name| count(done, name));
    for (name, population, there) in [
        ("WRITE response (both)", "ok+timed-out", counts[1] > 0),
        ("WRITE response, ok", "ok", counts[0] > 0 && counts[0] < counts[1]),
        ("WRITE response, all due", "due", counts[1] < counts[2]),
    ] {
        let Some(text) = line(done, name) else {
            assert!(!there, "{what}: no line {name}: {done}");
            continue;
        };
        assert!(there, "{what}: {name} says what is said already: {done}");
        let times = &operation(done)["populations"][population]["response"];
        let at = |name: &str| printed(&times[name]);
        let expected =
            format!("p50 {} p95 {} p99 {} p99.9 {} max {} ms", at("p50"), at("p95"), at("p99"), at("p999"), at("max"));
        assert_eq!(text, expected, "{what}: {name}: {done}");
    }
    // A node that times everything out has its times, too.
    let node = line(done, "WRITE@127.0.0.1").unwrap_or_else(|| panic!("{what}: no line of the node: {done}"));
    assert_eq!(node.contains("response p50"), counts[1] > 0, "{what}: {node}");
    assert!(node.starts_with(&format!("{} answered", grouped(counts[0]))), "{what}: {node}");
    let requests = line(done, "WRITE requests").unwrap_or_else(|| panic!("{what}: no requests: {done}"));
    assert!(requests.ends_with("1.00 each"), "{what}: {requests}");
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn number(text: &str) -> f64 {
    text.trim().replace(',', "").parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn rows_and_results(what: &str, done: &Done) {
    let rows: Vec<Vec<&str>> = done
        .out
        .lines()
        .filter(|line| line.starts_with("total,"))
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    let total = &done.json["total"];
    let errors: f64 = rows.iter().map(|row| number(row[13])).sum();
    assert_eq!(errors as u64, total["errors"].as_u64().unwrap(), "{what}: {done}");
    let ended = rows.iter().map(|row| number(row[1]) as u64).max().unwrap_or(0);
    assert_eq!(ended, total["ended"].as_u64().unwrap(), "{what}: {done}");
    let measure = done.json["measure"].as_str().unwrap();
    let shown = &total["populations"]["ok+timed-out"][measure];
    for (name, key) in [("Latency median", "p50"), ("Latency 99th percentile", "p99"), ("Latency max", "max")] {
        let text = line(done, name).unwrap();
        let expected = shown[key]["value_ns"].as_u64().unwrap_or(0) as f64 / 1e6;
        let found = number(text.split(" ms").next().unwrap());
        assert!((found - expected).abs() <= 0.051, "{what}: {name} {found}, {expected}: {done}");
    }
    let largest = rows.iter().map(|row| number(row[10])).fold(0.0, f64::max);
    let expected = shown["max"]["value_ns"].as_u64().unwrap_or(0) as f64 / 1e6;
    assert!((largest - expected).abs() <= 0.051, "{what}: rows show {largest}, the whole run {expected}: {done}");
    let rate = number(line(done, "Op rate").unwrap().split(" op/s").next().unwrap());
    let expected = total["operations_per_second"].as_f64().unwrap();
    assert!((rate - expected).abs() <= 1.0, "{what}: {rate} op/s, {expected}: {done}");
}

fn csv(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut sums: BTreeMap<(bool, &str), u64> = BTreeMap::new();
    let mut endless = false;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), head.len(), "{what}: {line}");
        let total = fields[2] == "total";
        for (name, value) in head.iter().zip(&fields) {
            if ["scheduled", "sent", "never_sent", "withheld", "ok", "failed", "timed_out", "late"].contains(name) {
                *sums.entry((total, name)).or_default() += value.parse::<u64>().unwrap_or(0);
            }
        }
        endless |= total && fields.contains(&"inf");
    }
    for (name, sheet) in [
        ("scheduled", "scheduled"),
        ("sent", "sent"),
        ("never_sent", "never_sent"),
        ("withheld", "withheld"),
        ("ok", "answered_ok"),
        ("failed", "failed"),
        ("timed_out", "timed_out"),
        ("late", "late"),
    ] {
        assert_eq!(sums[&(true, name)], done.sheet(sheet), "{what}: {name}: {text}\n{done}");
        if !["scheduled", "sent", "withheld"].contains(&name) {
            assert_eq!(sums[&(false, name)], done.sheet(sheet), "{what}: {name} by operation: {text}\n{done}");
        }
    }
    // Where more than a hundredth is beyond every limit, it is in some interval.
    let (shown, due) = (count(done, "ok+timed-out"), count(done, "due"));
    assert_eq!(endless, shown < due, "{what}: {text}");
}

/// Series and record put operations into the same intervals, and their latencies are those of the same operations.
fn intervals(what: &str, csv: &Path, record: &Path) {
    let text = fs::read_to_string(csv).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let mut lines: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .filter(|line: &Vec<&str>| line[2] == "total")
        .collect();
    lines.sort_by(|one, other| number(one[0]).total_cmp(&number(other[0])));
    let run = Run::open(record).unwrap();
    let mut buckets = run.load(1).unwrap();
    buckets.sort_by_key(|bucket| bucket.starts_ns);
    let rows = run.latencies(1, 0..i64::MAX as u64).unwrap();
    assert_eq!(lines.len(), buckets.len(), "{what}: {text}");
    for (line, bucket) in lines.iter().zip(&buckets) {
        let field = |name: &str| line[head.iter().position(|known| *known == name).unwrap()];
        let mut response = Latencies::new();
        for row in rows.iter().filter(|row| row.starts_ns == bucket.starts_ns) {
            match row.outcome.as_str() {
                "ok" => response.add_ok(&row.response),
                "timed-out" => response.add_timed_out(&row.response),
                "late" => {}
                _ => response.add_failed(row.count),
            }
        }
        assert_eq!(field("withheld"), bucket.withheld.to_string(), "{what}: {text}");
        response.add_never_sent(bucket.never_sent + bucket.withheld);
        for (name, of, percent) in [
            ("response_p50_ms", Population::OkAndTimedOut, 50.0),
            ("response_p99_ms", Population::OkAndTimedOut, 99.0),
            ("response_max_ms", Population::OkAndTimedOut, 100.0),
            ("response_ok_p50_ms", Population::Ok, 50.0),
            ("response_ok_p99_ms", Population::Ok, 99.0),
            ("response_due_p50_ms", Population::Due, 50.0),
            ("response_due_p99_ms", Population::Due, 99.0),
        ] {
            let (found, expected) = (field(name), response.percentile(of, percent));
            let same = match expected {
                None => found.is_empty(),
                Some(Percentile::Never) => found == "inf",
                Some(Percentile::Is(ns) | Percentile::AtLeast(ns)) => {
                    found.parse::<f64>().is_ok_and(|ms| (ms - ns as f64 / 1e6).abs() < 0.0011)
                }
            };
            assert!(same, "{what}: {name} is {found}, and by the record {expected:?}: {text}");
        }
    }
}

fn hdr(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("#[Population: ok+timed-out"), "{what}: {text}");
    let beyond: u64 = text
        .lines()
        .filter_map(|line| line.strip_prefix("#[WRITE: "))
        .map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(beyond, count(done, "due") - count(done, "ok+timed-out"), "{what}: {text}");
    let largest = |tag: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("Tag={tag},")));
        lines.map(|line| number(line.split(',').nth(2).unwrap())).fold(0.0, f64::max)
    };
    let populations = &operation(done)["populations"];
    let expected = |population: &str, latency: &str| {
        populations[population][latency]["max"]["value_ns"].as_u64().unwrap_or(0) as f64 / 1e6
    };
    for (tag, latency) in [("WRITE-st", "service"), ("WRITE-rt", "response")] {
        if latency == "service" || text.contains("Tag=WRITE-rt,") {
            let (found, expected) = (largest(tag), expected("ok+timed-out", latency));
            // A histogram keeps three digits; the log prints whole microseconds.
            assert!(
                (found - expected).abs() <= (0.002 * expected).max(0.001),
                "{what}: {tag} {found}, {expected}: {done}"
            );
        }
    }
}

fn page(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("/* stats start */").unwrap();
    let (stats, _) = rest.split_once("/* stats end */").unwrap();
    let stats = stats.trim().trim_start_matches("stats =").trim_end_matches(';');
    let test = &serde_json::from_str::<Value>(stats).unwrap()["stats"][0];
    assert_eq!(test["population"], done.json["population"], "{what}");
    let intervals = test["intervals"].as_array().unwrap();
    let ended = intervals.iter().filter_map(|row| row[1].as_u64()).max().unwrap();
    assert_eq!(ended, done.json["total"]["ended"].as_u64().unwrap(), "{what}: {done}");
    let errors: u64 = intervals.iter().map(|row| row[13].as_u64().unwrap()).sum();
    assert_eq!(errors, done.json["total"]["errors"].as_u64().unwrap(), "{what}: {done}");
    // Latencies are those of the rows: of whatever interval something ended in.
    let printed = done.out.lines().filter(|line| line.starts_with("total,"));
    let printed: Vec<Vec<f64>> = printed.map(|line| line.split(',').skip(1).map(number).collect()).collect();
    let drawn = intervals.iter().map(|row| row.as_array().unwrap().iter().skip(1));
    let drawn: Vec<Vec<f64>> = drawn.map(|row| row.map(|value| value.as_f64().unwrap_or(0.0)).collect()).collect();
    let latencies = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let mut ended = 0.0;
        let mut some = rows.to_vec();
        some.retain(|row| std::mem::replace(&mut ended, row[0]) < row[0]);
        some.into_iter().map(|row| row[4..10].to_vec()).collect()
    };
    let (printed, drawn) = (latencies(&printed), latencies(&drawn));
    assert_eq!(printed.len(), drawn.len(), "{what}: {done}");
    for (printed, drawn) in printed.iter().flatten().zip(drawn.iter().flatten()) {
        assert!((printed - drawn).abs() <= 0.051, "{what}: {drawn} is printed as {printed}: {done}");
    }
}

fn record(what: &str, done: &Done, file: &Path) {
    let run = Run::open(file).unwrap();
    let load = run.load(1).unwrap();
    let sum = |count: fn(&brownout_record::LoadRow) -> u64| load.iter().map(count).sum::<u64>();
    let counts = [sum(|row| row.scheduled), sum(|row| row.sent), sum(|row| row.never_sent), sum(|row| row.withheld)];
    let sheet = ["scheduled", "sent", "never_sent", "withheld"].map(|name| done.sheet(name));
    assert_eq!(counts, sheet, "{what}: {done}");
    let by_operation = load.iter().flat_map(|row| &row.never_sent_by_operation).map(|(_, count)| count).sum::<u64>();
    assert_eq!(by_operation, done.sheet("never_sent"), "{what}: {done}");
    let shown = Command::new(BROWNOUT).args(["show", file.to_str().unwrap(), "--json"]).output().unwrap();
    let findings: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(findings["trials"][0]["balance"]["withheld"], done.sheet("withheld"), "{what}: {findings}");
    let phases = findings["cells"][0]["phases"].as_array().unwrap();
    for phase in phases.iter().filter(|phase| phase["name"] == "baseline") {
        let parts = phase["statements"].as_array().unwrap();
        let never_sent: u64 = parts.iter().map(|part| part["never_sent"].as_u64().unwrap()).sum();
        assert_eq!(phase["counts"]["never_sent"], never_sent, "{what}: {phase}");
    }
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    for row in run.latencies(1, 0..i64::MAX as u64).unwrap() {
        let outcome = row.outcome.split(':').next().unwrap().to_owned();
        *ended.entry(outcome).or_default() += row.count;
    }
    for (outcome, sheet) in [("ok", "answered_ok"), ("failed", "failed"), ("timed-out", "timed_out"), ("late", "late")]
    {
        assert_eq!(ended.get(outcome).copied().unwrap_or(0), done.sheet(sheet), "{what}: {outcome}: {done}");
    }
}

#[test]
fn one_write_that_is_never_answered_makes_no_rate_smaller() {
    for rate in ["open=400/s", "threads=100 fixed=400/s"] {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::slow(Duration::from_millis(50)));
        let words = format!("write n=800 -rate {rate} -errors ignore retries=0 -mode requestTimeout=6000");
        let load = Load::start(&stub, &words, "");
        // So few are left that some users are free for each of them.
        wait_for_operations(&stub, 740);
        stub.set(0, Behaviour::answering(Answer::Silence));
        let done = load.done();
        done.adds_up();
        assert!(done.class("timed-out") > 0, "{rate}: {done}");
        let (due_ns, whole_ns) = (done.json["due_ns"].as_u64().unwrap(), done.json["duration_ns"].as_u64().unwrap());
        let drain = done.json["drain"]["length_ns"].as_u64().unwrap();
        assert_eq!(line(&done, "Drain").is_some(), drain > 1_000_000_000, "{rate}: {done}");
        // Two seconds' worth, and then nothing was due.
        assert!(due_ns + 3_000_000_000 < whole_ns, "{rate}: {due_ns} of {whole_ns}: {done}");
        assert!(drain > 3_000_000_000, "{rate}: {done}");
        let told = done.json["total"]["operations_per_second"].as_f64().unwrap();
        assert!((told * due_ns as f64 / 1e9 - 800.0).abs() < 1.0, "{rate}: {done}");
    }
}

#[test]
fn a_client_that_stood_still_says_for_how_long_and_is_no_evidence() {
    for (rate, takes) in [
        ("open=500/s", 0),
        ("threads=8 fixed=500/s", 0),
        ("threads=8", 0),
        // All users wait for answers when the pause begins, and have them when it ends.
        ("threads=8", 5),
        ("threads=8 -mode driver", 5),
    ] {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::slow(Duration::from_millis(takes)));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.db");
        let series = directory.path().join("s.csv");
        let words = format!("write duration=8s --record {} -rate {rate} -errors ignore", file.display());
        let load = Load::start(&stub, &words, &format!("csv={}", series.display()));
        wait_for_operations(&stub, 500);
        // Users alone have done so many at once; the pause is to begin in an interval that is all of the run.
        sleep(Duration::from_secs(1));
        load.signal(libc::SIGSTOP);
        sleep(Duration::from_secs(4));
        load.signal(libc::SIGCONT);
        let done = load.done();
        done.adds_up();
        let late_ns = done.json["client"]["late_ns"].as_u64().unwrap();
        assert!(late_ns >= 3_900_000_000, "{rate}: late for {late_ns} ns: {done}");
        assert_eq!((done.code, done.last()), (Some(3), "END"), "{rate}: {done}");
        assert!(line(&done, "It was late for").is_some(), "{rate}: {done}");
        let text = fs::read_to_string(&series).unwrap();
        let place = text.lines().next().unwrap().split(',').position(|name| name == "client_stood_still_s").unwrap();
        let still_s: f64 =
            text.lines().skip(1).filter_map(|line| line.split(',').nth(place)?.parse::<f64>().ok()).sum();
        assert!(still_s >= 3.8, "{rate}: stood still for {still_s} s: {text}");
        // The record says the same, and so does who reads it.
        let load = Run::open(&file).unwrap().load(1).unwrap();
        let still_ns: u64 = load.iter().map(|row| row.stood_still_ns).sum();
        assert!(still_ns >= 3_800_000_000, "{rate}: stood still for {still_ns} ns");
        let shown = Command::new(BROWNOUT).args(["show", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(shown.status.code(), Some(3), "{rate}: {}", String::from_utf8_lossy(&shown.stdout));
    }
}

#[test]
fn an_open_loop_does_not_try_again_unless_it_is_told_to() {
    for (rate, more, each) in [("open=200/s", "", 1), ("open=200/s", " retries=3", 4), ("threads=2", "", 10)] {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::answering(Answer::Error(0x1000)));
        let done = Load::start(&stub, &format!("write n=100 -rate {rate} -errors ignore{more}"), "").done();
        done.adds_up();
        assert_eq!(stub.executed(), 100 * each, "{rate}{more}: {done}");
        let told = operation(&done)["requests_per_operation"].as_f64().unwrap();
        assert!((told - each as f64).abs() < 1e-9, "{rate}{more}: {told}: {done}");
    }
}

#[test]
fn a_search_does_not_take_a_late_client_for_a_slow_database() {
    let stub = Stub::local(1).unwrap();
    // No more than this is looked at: whatever misses is the client's pause.
    let words = "write n=1 -rate search(slo=p99<400ms,from=100/s,to=100/s,step=3s) -errors ignore";
    let load = Load::start(&stub, words, "");
    wait_for_operations(&stub, 120);
    load.signal(libc::SIGSTOP);
    sleep(Duration::from_millis(1200));
    load.signal(libc::SIGCONT);
    let done = load.done();
    assert!(done.out.contains("this says nothing, and is tried again"), "{done}");
    // The next step keeps it, or this machine stands still itself, and it is said.
    let found = done.json["search"]["found"].as_str().unwrap();
    assert!(["always", "client"].contains(&found), "{done}");
}
