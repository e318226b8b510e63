//! Every output of `brownout stress` tells the same of the same operations, whatever became of them.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

mod figures;
mod outputs;
mod scrape;
#[path = "../common/stress.rs"]
mod stress;

use std::{fs, process::Command, thread::sleep, time::Duration};

use brownout_load::stub::{Answer, Behaviour, Stub};
use brownout_record::{Population, Run};
use figures::{Figure, Reference, Told, compare, object_of_percentiles, operation};
use outputs::{found, line, number};
use scrape::Scraper;
use stress::{BROWNOUT, Done, Load, wait_for_operations};

const RATES: [&str; 3] = ["open=200/s", "threads=4 fixed=200/s", "threads=4"];

/// What becomes of operations: a name, the node, more words of `-mode`, `retries=`, and which outcomes there must be.
fn cases() -> Vec<(&'static str, Behaviour, &'static str, u64, &'static [&'static str])> {
    let slow = |ms| Behaviour::slow(Duration::from_millis(ms));
    let narrow = "maxPending=1 connectionsPerHost=1";
    // The first attempt fails after 200 ms; the second would after the time-out.
    let failing = Behaviour { answer: Answer::Error(0x1000), ..slow(200) };
    vec![
        ("ok", Behaviour::default(), "", 0, &["ok"]),
        ("slow", slow(40), "", 0, &["ok"]),
        ("timed out", Behaviour::answering(Answer::Silence), "", 0, &["timed-out"]),
        ("refused", Behaviour::answering(Answer::Error(0x1000)), "", 0, &["unavailable"]),
        ("never sent", Behaviour::answering(Answer::Silence), narrow, 0, &["timed-out", "never-sent"]),
        ("some of each", slow(40), narrow, 0, &["ok"]),
        ("late", slow(450), "", 0, &["timed-out", "late"]),
        ("tried again", failing, "", 2, &["timed-out"]),
    ]
}

#[test]
fn every_output_tells_the_same_of_what_became_of_operations() {
    for (name, node, words, retries, outcomes) in cases() {
        for rate in RATES {
            let what = format!("{name}, {rate}");
            let stub = Stub::local(1).unwrap();
            stub.set(0, node);
            let directory = tempfile::tempdir().unwrap();
            let file = |name: &str| directory.path().join(name);
            let scraper = Scraper::start();
            let words = format!(
                "write duration=1500ms --record {} -rate {rate} -errors ignore retries={retries} -mode requestTimeout=300 \
                 {words} -pop seq=1..1000000 -graph file={}",
                file("run.db").display(),
                file("graph.html").display()
            );
            let log = format!(
                "interval=250ms csv={} hdrfile={} prometheus={}",
                file("s.csv").display(),
                file("s.hdr").display(),
                scraper.address()
            );
            let done = Load::start(&stub, &words, &log).done();
            let scrapes = scraper.end();
            done.adds_up();
            done.went_on();
            for outcome in outcomes {
                let count = if *outcome == "late" { done.sheet("late") } else { done.class(outcome) };
                assert!(count > 0, "{what}: nothing is {outcome}: {done}");
            }
            counts(&what, name, rate, &done);
            outputs::populations(&what, &done);
            outputs::account(&what, &done);
            outputs::attempts(&what, &done, retries);
            outputs::rows_and_results(&what, &done);
            outputs::rows(&what, &done, &file("s.hdr"));
            outputs::csv(&what, &done, &file("s.csv"));
            outputs::intervals(&what, &file("s.csv"), &file("run.db"));
            outputs::hdr(&what, &done, &file("s.hdr"));
            outputs::page(&what, &done, &file("graph.html"));
            outputs::record(&what, &done, &file("run.db"));
            outputs::shown(&what, &done, &file("run.db"));
            outputs::metrics(&what, &done, &scrapes);
        }
    }
}

/// Where one interval is all of the run, its row shows what JSON tells of the run.
#[test]
fn the_row_of_an_interval_that_is_the_whole_run_shows_the_run() {
    let stub = Stub::local(1).unwrap();
    let slow = |ms| stub.set(0, Behaviour::slow(Duration::from_millis(ms)));
    slow(160);
    // When one user finds no more operations, none is open that would end in a row of its own.
    let load = Load::start(&stub, "write n=1000 -rate threads=1", "interval=3600s");
    // So that percentiles differ.
    for (count, ms) in [(1, 80), (8, 40), (40, 10), (120, 2)] {
        wait_for_operations(&stub, count);
        slow(ms);
    }
    let done = load.done();
    done.adds_up();
    done.went_on();
    outputs::only_row("one user", &done);
}

/// Whoever reads rows and results reads of which operations their times are, in front of the block that scripts read.
#[test]
fn rows_and_results_say_what_their_times_are_of_however_little_is_said() {
    let search = "search(slo=p99<20s,from=50/s,to=50/s,step=1s)";
    for rate in ["threads=2", "threads=2 fixed=200/s", "open=200/s", search] {
        for level in ["minimal", "normal"] {
            let what = format!("{rate}, {level}");
            let stub = Stub::local(1).unwrap();
            let done = Load::start(&stub, &format!("write n=50 -rate {rate}"), &format!("level={level}")).done();
            done.went_on();
            let (before, _) = done.out.split_once("\nResults:\n").unwrap_or_else(|| panic!("{what}: {done}"));
            let named = |name: &str| before.lines().filter(|line| line.starts_with(name)).count();
            assert_eq!(["Times in the rows ", "Times are of "].map(named), [1, 1], "{what}: {done}");
            let times = if rate == "threads=2" { "service times" } else { "response times" };
            assert!(line(&done, "Times in the rows").unwrap().starts_with(times), "{what}: {done}");
            assert!(line(&done, "Times are of").unwrap().contains("ok and those timed out"), "{what}: {done}");
            // Of the rest of the account there is nothing.
            assert_eq!(line(&done, "Account of operations").is_some(), level == "normal", "{what}: {done}");
        }
    }
}

/// The balance sheet counts the populations, and rates are of the time in which operations were due, however long the last
/// was waited for.
fn counts(what: &str, name: &str, rate: &str, done: &Done) {
    let ok = done.sheet("answered_ok");
    // What a rate called for and found no user was due, too.
    let expected = [ok, ok + done.sheet("timed_out"), done.sheet("scheduled") + done.sheet("withheld")];
    let told = Population::ALL.map(|of| operation(done)["populations"][of.name()]["count"].as_u64().unwrap());
    assert_eq!(told, expected, "{what}: {done}");
    assert!(done.sheet("withheld") > 0 || name != "timed out" || !rate.contains("fixed"), "{what}: {done}");
    assert_eq!(done.json["population"], "ok+timed-out");
    let due_ns = done.json["due_ns"].as_u64().unwrap();
    assert!(due_ns.abs_diff(1_500_000_000) < 1_000_000, "{what}: {due_ns}");
    let rate = operation(done)["operations_per_second"].as_f64().unwrap();
    assert!((rate - done.sheet("sent") as f64 / 1.5).abs() < 1.0, "{what}: {rate}/s: {done}");
}

/// A search tells of each step the same on stdout, in JSON and in the record.
#[test]
fn every_output_tells_the_same_of_the_steps_of_a_search() {
    for (answer, rates, outcome) in [
        (Answer::Right, "from=100/s,to=200/s", "always"),
        (Answer::Silence, "from=8/s,to=16/s", "never"),
        (Answer::Error(0x1000), "from=8/s,to=16/s", "never"),
    ] {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::answering(answer));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.db");
        let words = format!(
            "write n=1 --record {} -rate search(slo=p99<400ms,{rates},step=1s) -errors ignore -mode requestTimeout=500",
            file.display()
        );
        let done = Load::start(&stub, &words, "").done();
        // What is compared is what is told, of a client that this machine made late, too.
        let end = done.json["search"]["found"].as_str().unwrap();
        assert!(end == outcome || (end == "client" && done.code == Some(3)), "{answer:?}: {end}: {done}");
        let steps = done.json["steps"].as_array().unwrap();
        let lines: Vec<&str> = done.out.lines().filter(|line| line.starts_with("search: ")).collect();
        assert!(!steps.is_empty() && lines.len() == steps.len(), "{answer:?}: {done}");
        let findings = found(&file);
        let phases = findings["trials"][0]["phases"].as_array().unwrap();
        for (place, (step, line)) in steps.iter().zip(lines).enumerate() {
            let what = format!("{answer:?}, step {}: {line}", place + 1);
            let (rate, sheet) = (step["name"].as_str().unwrap(), &step["balance"]);
            assert!(line.starts_with(&format!("search: {rate} ")), "{what}: {rate}");
            assert!(line.contains(&format!(": {} operations, ", sheet["scheduled"])), "{what}: {sheet}");
            let own = Reference::of(&step["total"]["outcomes"], sheet["never_sent"].as_u64().unwrap());
            let told = line.split(" answered, ").nth(1).unwrap().split(' ').next().unwrap();
            let of = Population::Due;
            if told == "never" {
                // Who gave up was not served, however soon that was known.
                assert_eq!(own.response.count(Population::Ok), 0, "{what}: {step}");
            } else {
                let told = Told::Ms(number(told), 0.0051);
                compare(&what, &done, &own.response, [Figure { place: "its line".into(), of, percent: 99.0, told }]);
            }
            // The step whose figures stand for the run is the baseline.
            let named = |name: &str| phases.iter().find(|phase| phase["name"] == name);
            let its = named(&format!("step {}, {rate}", place + 1)).or_else(|| named("baseline"));
            let its = its.unwrap_or_else(|| panic!("{what}: the record has no such phase: {phases:#?}"));
            assert_eq!(its["counts"]["scheduled"], sheet["scheduled"], "{what}");
            compare(&what, &done, &own.response, object_of_percentiles("the record", of, &its["due"]));
        }
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

/// What a search may be for: response times contain a pause of the client, errors do not, as nothing fails in it.
const OBJECTIVES: [&str; 2] = ["p99<400ms", "errors<1%"];

#[test]
fn a_search_takes_a_late_client_neither_for_a_slow_database_nor_for_a_good_one() {
    for slo in OBJECTIVES {
        let stub = Stub::local(1).unwrap();
        // No more than this is looked at: whatever misses is the client's pause.
        let words = format!("write n=1 -rate search(slo={slo},from=100/s,to=100/s,step=3s) -errors ignore");
        let load = Load::start(&stub, &words, "");
        wait_for_operations(&stub, 120);
        load.signal(libc::SIGSTOP);
        sleep(Duration::from_millis(1200));
        load.signal(libc::SIGCONT);
        let done = load.done();
        assert!(done.out.contains("search: 100/s is unusable: "), "{slo}: {done}");
        assert!(done.out.contains("the rate is tried again"), "{slo}: {done}");
        // The next step keeps it, or this machine stands still itself, and it is said.
        let found = done.json["search"]["found"].as_str().unwrap();
        assert!(["always", "client"].contains(&found), "{slo}: {done}");
    }
}

#[test]
fn a_client_that_is_late_in_every_try_is_the_limit() {
    for slo in OBJECTIVES {
        let stub = Stub::local(1).unwrap();
        let words = format!("write n=1 -rate search(slo={slo},from=50/s,to=100/s,step=3s) -errors ignore");
        let mut load = Load::start(&stub, &words, "");
        // The first step is made in peace: so much is kept. In all others the client is stopped again and again.
        wait_for_operations(&stub, 170);
        while load.is_running() {
            load.signal(libc::SIGSTOP);
            sleep(Duration::from_millis(1200));
            load.signal(libc::SIGCONT);
            sleep(Duration::from_millis(300));
        }
        let done = load.done();
        let search = &done.json["search"];
        assert_eq!((&search["found"], done.code, done.last()), (&"client".into(), Some(3), "END"), "{slo}: {done}");
        // On a machine that stands still itself the first step may have been made again.
        let rate = search["rate"].as_f64();
        let known = rate.map_or("nothing is known yet".to_owned(), |rate| format!("at least {rate:.0}/s"));
        assert!(done.out.contains(&format!("the client is the limit here: {known} ({slo};")), "{slo}: {done}");
    }
}
