//! Reads and writes of the key-value workload as two loads, each by its own pace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{collections::BTreeMap, thread::sleep};

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Arrivals, Balance, Engine, EngineConfig, ErrorClass, KeyValue, Outcome, Pace, Part,
    stub::{Answer, Behaviour, Stub},
};
use brownout_units::Rate;
use common::{
    scripted::{Reply, Scripted},
    *,
};

/// Answers writes, and reads never: the first statement that is prepared on a connection is the read's.
fn deaf_to_reads() -> Scripted {
    Scripted::start(|_, body| if body[2] == 1 { Reply::Silence } else { Reply::Void })
}

/// Without a timeout that ends in the test, unless it says so.
fn on(server: &Scripted, timeout_ms: u64) -> Engine {
    let nodes = vec![server.coordinator("n1")];
    let config = EngineConfig { timeout: ms(timeout_ms), bucket: ms(100), threads: 2, ..EngineConfig::new(nodes) };
    Engine::start(config, workload()).unwrap()
}

fn ended(book: &Book, operation: &str, outcome: Outcome) -> u64 {
    book.count(|statement, _, own| statement == operation && own == outcome)
}

#[test]
fn both_keep_their_rates_while_no_read_is_answered() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let server = deaf_to_reads();
        let engine = on(&server, 300);
        let pace = |rate| Pace::Open { rate: Rate::per_second(rate).unwrap(), arrivals };
        let start = engine.set_paces(KeyValue::apart(pace(300.0), pace(100.0))).unwrap().at_ns;
        sleep(ms(1_500));
        let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        let (reads, writes) = (ended(&book, "read", Outcome::TimedOut), ended(&book, "write", Outcome::Ok));
        assert_eq!(reads + writes, balance.scheduled, "each of them, and nothing else: {balance:#?}");
        // Two threads share a schedule; of Poisson's, the count is within five standard deviations of its mean.
        let within = |rate: f64| match arrivals {
            Arrivals::Constant => 2.0,
            Arrivals::Poisson => 5.0 * due(rate, start, end).sqrt(),
        };
        for (count, rate) in [(reads, 300.0), (writes, 100.0)] {
            let due = due(rate, start, end);
            assert!((count as f64 - due).abs() <= within(rate), "{arrivals:?}: {count} of {due}");
        }
    }
}

#[test]
fn users_who_wait_for_reads_hold_back_neither_the_clock_nor_the_users_of_writes() {
    let closed = Pace::Closed { threads: 3 };
    for (writes, rate) in [(open(200.0), Some(200.0)), (closed.clone(), None)] {
        let server = deaf_to_reads();
        let engine = on(&server, 60_000);
        let start = engine.set_paces(KeyValue::apart(closed.clone(), writes)).unwrap().at_ns;
        wait_until("the load has gone on for a while", || engine.balance().answered_ok >= 200);
        let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
        wait_until("only reads are open", || engine.balance().in_flight == 3);
        let balance = engine.balance();
        assert_eq!(balance.scheduled, balance.answered_ok + 3, "each user of reads has one: {balance:#?}");
        if let Some(rate) = rate {
            let due = due(rate, start, end);
            assert!((balance.answered_ok as f64 - due).abs() <= 2.0, "{} of {due}", balance.answered_ok);
        }
        let (buckets, balance) = engine.stop(ms(0));
        assert!(balance.balances(), "{balance:#?}");
        let mut book = Book::default();
        book.add(buckets);
        assert_eq!(ended(&book, "write", Outcome::Ok), balance.answered_ok);
    }
}

fn checked(answer: Answer) -> Balance {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    populate(&engine);
    let mut book = Book::default();
    engine.set_paces(KeyValue::apart(Pace::Closed { threads: 4 }, open(2_000.0))).unwrap();
    // Most rows have an older version by then.
    wait_until("rows were written again", || engine.balance().answered_ok > 4_000);
    book.add(engine.drain());
    stub.set(0, Behaviour::answering(answer));
    sleep(ms(400));
    stop(engine, &mut book)
}

#[test]
fn reads_of_one_load_check_what_the_other_wrote() {
    let balance = checked(Answer::Right);
    assert_eq!((balance.stale, balance.mismatched, balance.missing), (0, 0, 0), "{balance:#?}");
    let balance = checked(Answer::Stale);
    assert!(balance.stale > 50 && balance.mismatched + balance.missing == 0, "{balance:#?}");
    let balance = checked(Answer::Flipped);
    assert!(balance.failures.get(&ErrorClass::Mismatch).is_some_and(|count| *count > 50), "{balance:#?}");
}

#[test]
fn rows_are_written_once_before_either_load_and_one_pace_for_both_ends_them() {
    let stub = Stub::local(2).unwrap();
    let engine = Engine::start(patient(&stub), workload()).unwrap();
    populate(&engine);
    engine.set_paces(KeyValue::apart(open(500.0), Pace::Idle)).unwrap();
    wait_until("reads were answered", || engine.balance().answered_ok > 1_100);
    engine.set_pace(open(500.0)).unwrap();
    wait_until("the mix was answered", || engine.balance().answered_ok > 1_300);
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    let counts: BTreeMap<&str, u64> =
        ["read", "write"].map(|operation| (operation, ended(&book, operation, Outcome::Ok))).into();
    assert!(counts["read"] > 100 && counts["write"] > 1_000, "{counts:?}");
    assert_eq!(counts.values().sum::<u64>(), balance.answered_ok);
    assert_eq!((balance.empty, balance.missing, balance.failed), (0, 0, 0), "every row was there: {balance:#?}");
}

#[test]
fn engines_that_make_one_load_together_make_that_load_and_no_other() {
    let stub = Stub::local(3).unwrap();
    let engines: Vec<Engine> = (0..3)
        .map(|number| {
            let config = EngineConfig { part: Part { number, of: 3 }, threads: 2, ..patient(&stub) };
            Engine::start(config, workload()).unwrap()
        })
        .collect();
    for engine in &engines {
        engine.set_pace(Pace::Populate { in_flight: 64 }).unwrap();
    }
    wait_until("all keys are written", || engines.iter().all(|engine| engine.populated().complete()));
    // Six threads share them: 167 each of four, and 166 each of two.
    let totals: Vec<u64> = engines.iter().map(|engine| engine.populated().total).collect();
    assert_eq!(totals, [334, 333, 333]);
    let before: Vec<u64> = engines.iter().map(|engine| engine.balance().scheduled).collect();

    let start = monotonic_ns() + 500 * MS;
    let end = start + 1_000 * MS + MS / 2;
    for engine in &engines {
        let from = engine.set_paces_from(start, KeyValue::apart(open(300.0), Pace::Closed { threads: 4 })).unwrap();
        assert_eq!((from.at_ns, from.by_ns), (start, start), "this machine stood still for half a second");
        engine.set_paces_from(end, KeyValue::apart(Pace::Idle, Pace::Idle)).unwrap();
    }
    wait_until("it is over", || {
        monotonic_ns() > end + 100 * MS && engines.iter().all(|one| one.balance().in_flight == 0)
    });
    let (mut reads, mut writers) = (Vec::new(), 0);
    for (engine, before) in engines.into_iter().zip(before) {
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        reads.push(ended(&book, "read", Outcome::Ok));
        writers += usize::from(ended(&book, "write", Outcome::Ok) > 334);
        assert!(balance.scheduled > before && balance.stale == 0, "{balance:#?}");
    }
    // Operations 0 … 300 of the schedule are due: k is engine k mod 3's.
    assert_eq!(reads, [101, 100, 100]);
    assert_eq!(writers, 3, "four users are two, one and one");
}

#[test]
fn a_part_of_a_load_that_cannot_be_is_refused() {
    let stub = Stub::local(1).unwrap();
    let start = |part, threads| Engine::start(EngineConfig { part, threads, ..patient(&stub) }, workload());
    for (part, threads, words) in [
        (Part { number: 3, of: 3 }, 1, "the part of the load is out of range"),
        (Part { number: 0, of: 0 }, 1, "the part of the load is out of range"),
        (Part { number: 0, of: 501 }, 2, "1002 threads cannot share 1000 keys"),
    ] {
        let error = start(part, threads).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}
