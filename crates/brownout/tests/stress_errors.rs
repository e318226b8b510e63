//! `brownout stress` against servers that fail in every way: each operation ends in exactly one class of the balance
//! sheet, nothing hangs, and a run ends when it should.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

mod common;
#[path = "common/stress.rs"]
mod stress;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use brownout_load::stub::{Answer, Behaviour, Stub};
use common::{Processors, STOLEN, becomes_quiet, unjudged::not_judged};
use stress::{Done, Load, wait_for_operations};

/// Codes of section 9 of the protocol's specification, and the class of each.
const CODES: [(u32, &str); 14] = [
    (0x0000, "server-error"),
    (0x000A, "invalid"),
    (0x1000, "unavailable"),
    (0x1001, "overloaded"),
    (0x1002, "bootstrapping"),
    (0x1003, "server-error"),
    (0x1100, "write-timeout"),
    (0x1200, "read-timeout"),
    (0x1300, "read-failure"),
    (0x1500, "write-failure"),
    (0x2000, "invalid"),
    (0x2100, "invalid"),
    (0x2200, "invalid"),
    (0x2500, "unprepared"),
];

/// Ways not to answer, or not to be understood.
const FAULTS: [(Answer, &str); 4] = [
    (Answer::Silence, "timed-out"),
    (Answer::Close, "connection-lost"),
    (Answer::Garbage, "connection-lost"),
    (Answer::Mangled, "connection-lost"),
];

const PACES: [&str; 3] = ["threads=4", "threads=4 fixed=200/s", "open=200/s"];

/// Does it for each of these, some at a time.
fn for_each<T: Sync>(all: &[T], test: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    test(one);
                }
            });
        }
    });
}

fn every<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|one| second.iter().map(move |other| (*one, *other))).collect()
}

/// What a rate calls for in so many nanoseconds.
fn at_most(rate: u64, length_ns: u64) -> u64 {
    length_ns * rate / 1_000_000_000 + 2
}

/// A stub of one node that answers so from the start.
fn answering(answer: Answer) -> Stub {
    let stub = Stub::local(1).unwrap();
    stub.set(0, Behaviour::answering(answer));
    stub
}

fn run(stub: &Stub, words: &str) -> Done {
    Load::start(stub, words, "").done()
}

#[test]
fn every_error_of_a_server_is_one_class_in_every_loop() {
    for_each(&every(&CODES, &PACES), |((code, class), pace)| {
        let stub = answering(Answer::Error(*code));
        let done = run(&stub, &format!("write n=24 -rate {pace} -errors ignore retries=0"));
        done.adds_up();
        done.went_on();
        assert_eq!((done.sheet("scheduled"), done.class(class)), (24, 24), "{code:#06x} {pace}: {done}");
    });
}

#[test]
fn whoever_is_not_answered_or_not_understood_is_in_one_class_too() {
    for_each(&every(&FAULTS, &PACES), |((answer, class), pace)| {
        let stub = answering(*answer);
        // What is told at once is told before any stall of this machine makes it time out.
        let timeout = if *answer == Answer::Silence { 400 } else { 10_000 };
        let words = format!("write n=12 -rate {pace} -errors ignore retries=0 -mode requestTimeout={timeout}");
        let done = run(&stub, &words);
        done.adds_up();
        done.went_on();
        assert_eq!(done.sheet("scheduled"), 12, "{answer:?} {pace}: {done}");
        // While no connection stands, an operation may wait until its time is over.
        let unsent = done.class("never-sent");
        assert_eq!(done.class(class) + unsent, 12, "{answer:?} {pace}: {done}");
        assert!(done.class(class) > 0, "{answer:?} {pace}: {done}");
    });
}

#[test]
fn a_duration_is_kept_whatever_the_server_does() {
    let mut faults = FAULTS.map(|(answer, _)| Behaviour::answering(answer)).to_vec();
    faults.push(Behaviour::answering(Answer::Error(0x1001)));
    faults.push(Behaviour::slow(Duration::from_millis(50)));
    for_each(&every(&faults, &PACES), |(behaviour, pace)| {
        let stub = Stub::local(1).unwrap();
        stub.set(0, *behaviour);
        let words = format!("write duration=1s -rate {pace} -errors ignore retries=1 -mode requestTimeout=500");
        let done = run(&stub, &words);
        done.adds_up();
        done.went_on();
        let told = format!("{behaviour:?} {pace}: {done}");
        let length = done.json["duration_ns"].as_u64().unwrap();
        assert!(length >= 1_000_000_000, "{told}");
        if pace.contains("200/s") {
            let due = done.sheet("scheduled") + done.sheet("withheld");
            assert!(due >= 198 && due <= at_most(200, length), "{due}: {told}");
        }
    });
}

#[test]
fn a_server_that_freezes_for_ever_leaves_nothing_open() {
    for_each(&PACES, |pace| {
        let stub = Stub::local(1).unwrap();
        let words = format!("write duration=2s -rate {pace} -errors ignore retries=0 -mode requestTimeout=500");
        let load = Load::start(&stub, &words, "");
        wait_for_operations(&stub, 40);
        stub.set(0, Behaviour::frozen());
        let done = load.done();
        done.adds_up();
        done.went_on();
        assert!(done.class("ok") >= 30 && done.class("timed-out") > 0, "{pace}: {done}");
        assert_eq!(
            done.class("ok") + done.class("timed-out") + done.class("never-sent"),
            done.sheet("scheduled"),
            "{done}"
        );
    });
}

#[test]
fn connections_that_close_in_mid_flight_cost_their_operations_and_no_others() {
    for_each(&PACES, |pace| {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour { close_after: Some(7), ..Behaviour::default() });
        let done = run(&stub, &format!("write n=300 -rate {pace} -errors ignore retries=0"));
        done.adds_up();
        done.went_on();
        let (ok, lost, closed) = (done.class("ok"), done.class("connection-lost"), done.sheet("connections_lost"));
        assert_eq!((ok + lost, closed > 0), (300, true), "{pace}: {done}");
        if pace.contains("threads=4") {
            // Of the eight or more that were sent on a connection, no more than one of each thread is under way.
            assert!(lost <= 4 * closed && ok >= 4 * closed, "{pace}: {done}");
        } else {
            // What falls due while this machine stands still goes out together, and is lost together.
            assert!(lost > 0 && ok > 30, "{pace}: {done}");
        }
        // Tried again elsewhere, none is lost.
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour { close_after: Some(7), ..Behaviour::default() });
        let done = run(&stub, &format!("write n=300 -rate {pace} -errors retries=200"));
        done.adds_up();
        assert_eq!((done.class("ok"), done.last()), (300, "END"), "{pace}: {done}");
    });
}

#[test]
fn one_dead_node_of_three_costs_no_operation_that_is_tried_again() {
    for_each(&PACES, |pace| {
        let stub = Stub::local(3).unwrap();
        let load = Load::start(&stub, &format!("write duration=2s -rate {pace} -errors retries=9"), "");
        wait_for_operations(&stub, 60);
        stub.kill(1);
        let done = load.done();
        done.adds_up();
        done.went_on();
        assert_eq!(done.class("ok"), done.sheet("scheduled"), "{pace}: {done}");
        assert!(done.sheet("connections_lost") > 0, "{pace}: {done}");
    });
}

#[test]
fn when_all_nodes_are_gone_operations_are_never_sent_and_the_run_ends_in_time() {
    for_each(&PACES, |pace| {
        let stub = Stub::local(1).unwrap();
        let words = format!("write duration=2s -rate {pace} -errors ignore retries=0 -mode requestTimeout=400");
        let load = Load::start(&stub, &words, "");
        wait_for_operations(&stub, 40);
        stub.kill(0);
        let done = load.done();
        done.adds_up();
        done.went_on();
        assert!(done.class("never-sent") > 0, "{pace}: {done}");
        let by_operation = &done.json["operations"][0];
        assert_eq!(by_operation["never_sent"].as_u64(), Some(done.class("never-sent")), "{pace}: {done}");
        assert!(done.out.contains("never-sent"), "{pace}: {done}");
    });
}

#[test]
fn without_ignore_the_first_failure_ends_a_run_and_names_its_error() {
    let named = [(0x1000, "UnavailableException"), (0x1001, "OverloadedException"), (0x2200, "InvalidQueryException")];
    for_each(&every(&named, &PACES), |((code, name), pace)| {
        for length in ["n=100000", "duration=5m"] {
            let stub = answering(Answer::Error(*code));
            let done = run(&stub, &format!("write {length} -rate {pace} -errors retries=1"));
            done.adds_up();
            assert_eq!((done.code, done.last()), (Some(1), "FAILURE"), "{done}");
            assert!(done.err.contains(name), "{done}");
        }
    });
}

#[test]
fn retries_are_attempts_and_a_request_at_fault_is_not_tried_again() {
    for_each(&PACES, |pace| {
        for (code, tries) in [(0x1001, 3), (0x1100, 3), (0x2200, 1)] {
            let stub = answering(Answer::Error(code));
            let done = run(&stub, &format!("write n=20 -rate {pace} -errors ignore retries=2"));
            done.adds_up();
            let attempts = &done.json["operations"][0]["attempts"]["count"];
            assert_eq!(attempts.as_u64(), Some(20 * tries), "{code:#06x} {pace}: {done}");
            assert_eq!(stub.executed(), 20 * tries, "{code:#06x} {pace}: {done}");
        }
    });
}

#[test]
fn overloaded_servers_are_given_the_delay_that_was_asked_for() {
    let stub = answering(Answer::Error(0x1001));
    let words =
        "write n=8 -rate threads=4 -errors ignore retries=2 delay-policy=linear min-delay-ms=100 max-delay-ms=400";
    let done = run(&stub, words);
    done.adds_up();
    // 100 ms and 200 ms, each shorter by a quarter at the most.
    let least = &done.json["operations"][0]["outcomes"]["overloaded"]["response"]["min_ns"];
    assert!(least.as_u64().unwrap() >= 175_000_000, "{least}: {done}");
}

#[test]
fn wrong_content_is_an_error_unless_nobody_wants_to_know() {
    let stub = Stub::local(1).unwrap();
    run(&stub, "write n=50 -rate threads=4").went_on();
    for (answer, class) in [(Answer::Flipped, "mismatch"), (Answer::NoRow, "missing")] {
        stub.set(0, Behaviour::answering(answer));
        let done = run(&stub, "read n=50 -rate threads=4 -errors ignore -pop seq=1..50");
        done.adds_up();
        done.went_on();
        assert_eq!(done.class(class), 50, "{answer:?}: {done}");
        let done = run(&stub, "read n=50 -rate threads=4 -pop seq=1..50");
        assert_eq!((done.code, done.last()), (Some(1), "FAILURE"), "{answer:?}: {done}");
        assert!(done.err.contains("Data returned was not validated"), "{done}");
        if answer == Answer::Flipped {
            let done = run(&stub, "read n=50 -rate threads=4 -errors skip-read-validation -pop seq=1..50");
            assert_eq!((done.class("ok"), done.last()), (50, "END"), "{done}");
        }
    }
}

#[test]
fn what_is_only_read_has_to_be_there_before_anything_is_loaded() {
    let stub = Stub::local(1).unwrap();
    for (words, table) in [
        ("read n=5", "keyspace1.standard1"),
        ("counter_read n=5", "keyspace1.counter1"),
        ("read n=5 -schema keyspace=Other", "Other.standard1"),
    ] {
        let done = run(&stub, words);
        assert_eq!(done.code, Some(1), "{done}");
        assert!(done.err.contains(&format!("Unable to find table {table}; create it first")), "{done}");
        assert!(!done.out.contains("Sleeping"), "{words}: {done}");
    }
}

#[test]
fn an_answer_of_the_wrong_kind_is_unexpected() {
    let stub = Stub::local(1).unwrap();
    run(&stub, "write n=20 -rate threads=4").went_on();
    stub.set(0, Behaviour::answering(Answer::WrongKind));
    let done = run(&stub, "mixed n=20 -rate threads=4 -errors ignore -pop seq=1..20");
    done.adds_up();
    assert_eq!(done.class("unexpected"), 20, "{done}");
}

#[test]
fn what_no_user_was_free_for_is_told_at_the_end_of_a_duration() {
    for limit in ["fixed", "throttle"] {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::slow(Duration::from_millis(20)));
        let done = run(&stub, &format!("write duration=2s -rate threads=2 {limit}=1000/s"));
        done.adds_up();
        // At most 100 a second can be asked for.
        assert!(done.sheet("withheld") > 1_500, "{limit}: {done}");
        let told = done.out.lines().find(|line| line.starts_with("Never asked")).unwrap_or_else(|| panic!("{done}"));
        assert!(told.contains("no thread was free"), "{told}");
        let due = done.sheet("scheduled") + done.sheet("withheld");
        let length = done.json["duration_ns"].as_u64().unwrap();
        assert!(due >= 1_990 && due <= at_most(1_000, length), "{limit} {due}: {done}");
    }
}

/// A search whose client was not late all the time, as it says itself: the first of four. None if the machine says as well that it
/// is busy; where it is quiet, a client that is always late is a defect.
fn punctual(stub: &Stub, search: &str) -> Option<Done> {
    let before = Processors::now();
    let mut runs = (0..4).map(|_| run(stub, search));
    let done = runs.find(|done| done.json["search"]["found"] != "client");
    if done.is_none() {
        let stolen = before.stolen();
        assert!(stolen > STOLEN || !becomes_quiet(), "four clients were late, and the machine is quiet");
        not_judged("the machine made four clients late");
    }
    done
}

#[test]
fn a_search_takes_failures_for_answers_and_goes_on() {
    let stub = answering(Answer::Error(0x1001));
    let Some(done) = punctual(&stub, "write -rate search(slo=errors<5%,from=40/s,step=1s)") else { return };
    done.adds_up();
    assert_eq!((done.code, done.last()), (Some(1), "FAILURE"), "{done}");
    // 40, 20, 10, 5, 2.5, 1.25 and 1 a second, each twice; what a late client tried is not counted.
    let steps = done.json["steps"].as_array().unwrap();
    let late = done.out.matches("(the client was late; the rate is tried again)").count();
    assert_eq!(steps.len(), 14 + late, "{done}");
    assert!(steps[0]["balance"]["failed"].as_u64().unwrap() > 20, "{done}");
    let search = &done.json["search"];
    assert_eq!((&search["found"], &search["rate"]), (&"never".into(), &1.0.into()), "{search}");
    assert_eq!(search["objectives"][0], "errors<5%");
}

#[test]
fn a_quiet_run_that_fails_says_why() {
    let stub = answering(Answer::Error(0x1001));
    let failing = |words: &str| Load::start(&stub, words, "level=minimal").done();
    let done = failing("write n=20 -rate threads=2");
    assert_eq!(done.last(), "FAILURE", "{done}");
    assert!(done.err.contains("OverloadedException"), "{done}");
    let done = failing("write n=20 -rate threads=2 -errors ignore");
    assert_eq!(done.last(), "END", "{done}");
    assert!(!done.err.contains("OverloadedException"), "{done}");
}

#[test]
fn a_search_accounts_for_every_operation_and_shows_the_best_step() {
    let stub = Stub::local(1).unwrap();
    let search = "write n=1000000 -rate search(slo=p99<20s,from=50/s,to=200/s,step=1s)";
    let Some(done) = punctual(&stub, search) else { return };
    done.adds_up();
    assert_eq!(done.class("ok"), done.sheet("scheduled"), "{done}");
    assert!(done.out.contains("kept up to the highest rate tried, 200/s"), "{done}");
    let search = &done.json["search"];
    assert_eq!((&search["found"], &search["rate"]), (&"always".into(), &200.0.into()), "{search}");
    let results = done.out.split("Results:").nth(1).unwrap_or_else(|| panic!("{done}"));
    assert!(results.contains("Op rate") && done.out.contains("the step at 200/s"), "{done}");
    let steps = done.json["steps"].as_array().unwrap();
    let late = done.out.matches("(the client was late; the rate is tried again)").count();
    assert_eq!(steps.len(), 3 + late, "{done}");
    let last = steps.last().unwrap();
    assert!(last["name"] == "200/s" && last["balance"]["balances"] == true, "{last}");
    let measured = last["balance"]["scheduled"].as_u64().unwrap();
    assert!((130..=152).contains(&measured), "three quarters of a second at 200/s, without buckets cut: {measured}");
}
