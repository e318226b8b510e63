//! Reads check what writes wrote.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::thread::sleep;

use brownout_load::{
    Bucket, Engine, ErrorClass, KeyValue, Pace, Timestamps,
    stub::{Answer, Behaviour, Stub},
};
use common::*;

fn run_against(answer: Answer) -> brownout_load::Balance {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    let mut book = Book::default();
    populate(&engine);
    book.add(engine.drain());
    // Every key is written often enough that most have an older version.
    engine.set_pace(open(3_000.0)).unwrap();
    sleep(ms(700));
    stub.set(0, Behaviour::answering(answer));
    sleep(ms(500));
    stop(engine, &mut book)
}

#[test]
fn a_flipped_byte_is_a_mismatch() {
    let balance = run_against(Answer::Flipped);
    assert!(balance.mismatched > 200, "{balance:#?}");
    assert_eq!(balance.failures.get(&ErrorClass::Mismatch), Some(&balance.mismatched));
    assert_eq!(balance.stale + balance.missing, 0);
}

#[test]
fn an_older_version_than_the_acknowledged_one_is_stale_but_no_failure() {
    let balance = run_against(Answer::Stale);
    assert!(balance.stale > 100, "{balance:#?}");
    assert_eq!(balance.failed, 0);
    // Each write is missed once, however many reads return an older one.
    assert!(balance.lost > 50 && balance.lost <= balance.stale, "{balance:#?}");
    assert!(balance.looked_for > balance.lost, "before, all were found: {balance:#?}");
}

#[test]
fn an_acknowledged_row_that_is_gone_is_missing() {
    let balance = run_against(Answer::NoRow);
    assert!(balance.missing > 200, "{balance:#?}");
    assert_eq!(balance.failures.get(&ErrorClass::Missing), Some(&balance.missing));
}

#[test]
fn a_true_server_is_never_accused() {
    let stub = Stub::local(3).unwrap();
    // Few keys: reads and writes of the same row are on their way together all the time.
    let engine = Engine::start(config(&stub), KeyValue { population: 5, ..workload() }).unwrap();
    engine.set_pace(open(5_000.0)).unwrap();
    sleep(ms(1_000));
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!((balance.stale, balance.mismatched, balance.missing, balance.failed), (0, 0, 0, 0), "{balance:#?}");
    assert!(balance.looked_for > 20 && balance.lost == 0, "{balance:#?}");
}

#[test]
fn writes_that_were_under_way_together_are_no_lost_ones_whatever_order_the_database_gives_them() {
    let stub = Stub::local(3).unwrap();
    // Without the client's timestamps the write that comes last wins, which need not be the one that was sent last.
    let few = KeyValue { population: 5, timestamps: Timestamps::Coordinator, ..workload() };
    let engine = Engine::start(config(&stub), few).unwrap();
    engine.set_pace(open(5_000.0)).unwrap();
    sleep(ms(1_000));
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert!(balance.looked_for > 20 && balance.lost == 0, "{balance:#?}");
    assert_eq!((balance.mismatched, balance.missing, balance.failed), (0, 0, 0), "{balance:#?}");
}

#[test]
fn a_second_engine_reads_what_the_first_wrote() {
    let stub = Stub::local(1).unwrap();
    let first = engine(&stub);
    populate(&first);
    drop(first);
    let second = Engine::start(patient(&stub), KeyValue { write: 0, ..workload() }).unwrap();
    second.set_pace(open(1_000.0)).unwrap();
    sleep(ms(300));
    let mut book = Book::default();
    let balance = stop(second, &mut book);
    assert!(balance.answered_ok > 200);
    assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
    assert_eq!(balance.empty, 0);
}

#[test]
fn reads_of_what_nobody_wrote_are_counted_as_empty() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(config(&stub), KeyValue { write: 0, ..workload() }).unwrap();
    engine.set_pace(open(500.0)).unwrap();
    sleep(ms(200));
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.empty, balance.answered_ok);
}

#[test]
fn a_population_that_meets_errors_is_completed_all_the_same() {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    stub.set(0, Behaviour::answering(Answer::Error(0x1001)));
    engine.set_pace(Pace::Populate { in_flight: 4 }).unwrap();
    sleep(ms(100));
    stub.set(0, Behaviour::default());
    wait_until("all keys are written", || engine.populated().complete());
    let progress = engine.populated();
    assert_eq!((progress.done, progress.total), (1_000, 1_000));
    // Each of the four users has tried at once, and then at most every 100 ms; until the server was well again, 100 ms
    // and however long this machine stood still.
    assert!((4..400).contains(&progress.retried), "{progress:?}");
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, 1_000);
}

#[test]
fn a_population_that_the_server_refuses_stops_and_tells_the_servers_words() {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    stub.set(0, Behaviour::answering(Answer::Error(0x2200)));
    engine.set_pace(Pace::Populate { in_flight: 4 }).unwrap();
    wait_until("the refusal is told", || engine.populated().refused.is_some());
    let error = engine.health().unwrap_err().to_string();
    assert!(error.contains("n1") && error.contains("as the stub was told") && error.contains("0x2200"), "{error}");
    wait_until("nothing is open", || engine.balance().in_flight == 0);
    assert!(stub.executed() <= 4, "no write is tried again: {}", stub.executed());
    // Another pace is another chance.
    stub.set(0, Behaviour::default());
    populate(&engine);
    engine.health().unwrap();
}

#[test]
fn what_late_reads_find_stands_in_the_bucket_of_their_intended_start() {
    for (answer, wrong) in [
        (Answer::Flipped, (|bucket| bucket.mismatched) as fn(&Bucket) -> u64),
        (Answer::NoRow, |bucket| bucket.missing),
    ] {
        let stub = Stub::local(1).unwrap();
        let engine = Engine::start(config(&stub), KeyValue { write: 0, ..workload() }).unwrap();
        let mut book = Book::default();
        engine.set_pace(Pace::Populate { in_flight: 64 }).unwrap();
        wait_until("all keys are written", || engine.populated().complete());
        book.add(engine.drain());
        // If this machine stood still, writes have timed out, and their answers came late.
        let before = engine.balance().late;
        // The answers come, wrong, when the reads have timed out.
        stub.set(0, Behaviour { answer, ..Behaviour::slow(ms(600)) });
        engine.set_pace(open(500.0)).unwrap();
        wait_until("late answers have come", || engine.balance().late > before + 50);
        let balance = stop(engine, &mut book);
        assert_eq!(balance.failed, 0, "{balance:#?}");
        assert_eq!(book.total(wrong), balance.late - before, "{before} before: {balance:#?}");
    }
}
