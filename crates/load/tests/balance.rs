//! The balance sheet balances whatever the servers do, and what they did can be read from it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::thread::sleep;

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Balance, Balancing, Engine, EngineConfig, ErrorClass, KeyValue, Outcome, Pace,
    stub::{Answer, Behaviour, Stub},
};
use common::*;

#[test]
fn without_a_fault_every_operation_is_answered_in_time_and_verified() {
    let stub = Stub::local(3).unwrap();
    let engine = Engine::start(patient(&stub), workload()).unwrap();
    populate(&engine);
    let before = engine.balance();
    let start = engine.set_pace(open(1_000.0)).unwrap().at_ns;
    sleep(ms(1_000));
    let mut book = Book::default();
    book.add(engine.drain());
    let live = engine.live();
    assert!(live.delivered > 0 && live.failed == 0 && live.coordinators.len() == 3);
    let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
    assert_eq!((balance.stale, balance.empty, balance.mismatched), (0, 0, 0));
    let scheduled = (balance.scheduled - before.scheduled) as f64;
    assert!((scheduled - due(1_000.0, start, end)).abs() <= 1.0, "{balance:#?}");
    assert_eq!(stub.executed(), balance.sent);
    for node in ["n1", "n2", "n3"] {
        let share = book.count(|_, coordinator, _| coordinator == node);
        assert!(share.abs_diff(balance.sent / 3) <= 2, "round robin gives {node} {share} of {}", balance.sent);
    }
    let reads = book.count(|statement, _, _| statement == "read") as f64;
    assert!((reads - scheduled / 2.0).abs() < 5.0 * scheduled.sqrt() / 2.0, "half of {scheduled}: {reads}");
}

/// What a fault on node n2 must do to the sheet.
struct Case {
    name: &'static str,
    behaviour: Behaviour,
    expect: fn(&Balance, &Book) -> bool,
}

fn failed(balance: &Balance, class: ErrorClass) -> u64 {
    balance.failures.get(&class).copied().unwrap_or(0)
}

#[test]
fn every_fault_of_one_node_is_accounted_for_and_hits_only_that_node() {
    let only_timeouts = |balance: &Balance, _: &Book| balance.timed_out > 50 && balance.failed == 0;
    let cases = [
        Case { name: "silence", behaviour: Behaviour::answering(Answer::Silence), expect: only_timeouts },
        Case { name: "freeze", behaviour: Behaviour::frozen(), expect: only_timeouts },
        Case {
            name: "too slow",
            behaviour: Behaviour::slow(ms(700)),
            expect: |balance, book| {
                let late = book.response(|_, outcome| outcome == Outcome::Late);
                balance.late > 50 && late.min() >= 699 * MS
            },
        },
        Case {
            name: "overloaded",
            behaviour: Behaviour::answering(Answer::Error(0x1001)),
            expect: |balance, _| failed(balance, ErrorClass::Overloaded) > 50 && balance.connections_lost == 0,
        },
        Case {
            name: "unavailable",
            behaviour: Behaviour::answering(Answer::Error(0x1000)),
            expect: |balance, _| failed(balance, ErrorClass::Unavailable) > 50,
        },
        Case {
            name: "server's timeouts",
            behaviour: Behaviour::answering(Answer::Error(0x1200)),
            expect: |balance, _| failed(balance, ErrorClass::ReadTimeout) > 50,
        },
        Case {
            name: "forgotten statements",
            behaviour: Behaviour::answering(Answer::Error(0x2500)),
            // They are prepared again on the same connection, and operations wait for that where they are.
            expect: |balance, _| {
                failed(balance, ErrorClass::Unprepared) > 10 && balance.connections_lost == 0 && balance.rerouted == 0
            },
        },
        Case {
            name: "wrong kind of answer",
            behaviour: Behaviour::answering(Answer::WrongKind),
            // A read answered like a write is unexpected; a write answered by an empty result too.
            expect: |balance, _| failed(balance, ErrorClass::Unexpected) > 50,
        },
        Case {
            name: "garbage",
            behaviour: Behaviour::answering(Answer::Garbage),
            expect: |balance, _| balance.garbage > 0 && failed(balance, ErrorClass::ConnectionLost) >= balance.garbage,
        },
        Case {
            name: "hanging up",
            behaviour: Behaviour::answering(Answer::Close),
            expect: |balance, _| {
                balance.connections_lost > 0
                    && balance.garbage == 0
                    && balance.rerouted > 0
                    && failed(balance, ErrorClass::ConnectionLost) > 0
            },
        },
    ];
    for Case { name, behaviour, expect } in cases {
        let stub = Stub::local(3).unwrap();
        populate_ahead(&stub);
        let engine = engine(&stub);
        let mut book = Book::default();
        engine.set_pace(open(600.0)).unwrap();
        sleep(ms(100));
        stub.set(1, behaviour);
        for _ in 0..9 {
            sleep(ms(100));
            book.add(engine.drain());
            let balance = engine.balance();
            assert!(balance.balances(), "{name}, in the middle: {balance:#?}");
        }
        let balance = stop(engine, &mut book);
        assert!(expect(&balance, &book), "{name}: {balance:#?}");
        // Operations time out at healthy nodes only if this machine stood still, and then they started late, too.
        let lateness = book.0.values().map(|bucket| bucket.lateness.max()).max().unwrap();
        let stalled = lateness > 100 * MS;
        let ill = |outcome| matches!(outcome, Outcome::Failed(_)) || (outcome != Outcome::Ok && !stalled);
        let others = book.count(|_, node, outcome| node != "n2" && ill(outcome));
        assert_eq!(others, 0, "{name}: the other nodes are well, starts were up to {lateness} ns late");
    }
}

#[test]
fn a_freeze_beyond_the_timeout_gives_timeouts_and_then_the_true_latencies() {
    let stub = Stub::local(1).unwrap();
    populate_ahead(&stub);
    let engine = engine(&stub);
    let start = engine.set_pace(open(200.0)).unwrap().at_ns;
    sleep(ms(300));
    let freeze = Moment::of(|| stub.set(0, Behaviour::frozen()));
    sleep(ms(1_500));
    let thaw = Moment::of(|| {
        stub.set(0, Behaviour::default());
        engine.set_pace(Pace::Idle).unwrap();
        wait_until("all is answered", || {
            let balance = engine.balance();
            balance.waiting + balance.in_flight == 0 && balance.late == balance.timed_out
        });
    });
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    // In 1.5 s of freeze, the operations of the first second wait longer than the timeout of 0.5 s.
    let least = due(200.0, start, thaw.before - 500 * MS) - due(200.0, start, freeze.after);
    let most = due(200.0, start, thaw.after - 500 * MS) - due(200.0, start, freeze.before);
    assert!((least - 1.0..=most + 1.0).contains(&(balance.timed_out as f64)), "{least} to {most}: {balance:#?}");
    let timed_out = book.response(|_, outcome| outcome == Outcome::TimedOut);
    // A histogram of three digits keeps 500 ms to within 0.5 ms.
    assert!(timed_out.min() >= 499 * MS && timed_out.max() <= 501 * MS, "response = timeout");
    let late = book.response(|_, outcome| outcome == Outcome::Late);
    assert!(late.min() >= 499 * MS, "{}", late.min());
    // Evenly spread between the timeout and the length of the freeze; one operation and 0.1 % are allowed for.
    let (shortest, longest) = (thaw.before - freeze.after, thaw.after - freeze.before);
    for (quantile, timeout_part) in [(0.5, 0.5), (1.0, 0.0)] {
        let between = |length: u64| 0.5e9 * timeout_part + length as f64 * (1.0 - timeout_part);
        let measured = late.value_at_quantile(quantile) as f64;
        let range = between(shortest) * 0.998 - 5e6..=between(longest) * 1.002 + 5e6;
        assert!(range.contains(&measured), "quantile {quantile} is {measured}, not in {range:?}");
    }
    assert_eq!(balance.connections_lost, 0, "a slow server is not hung up on");
}

#[test]
fn without_any_coordinator_operations_wait_and_are_never_sent() {
    let stub = Stub::local(1).unwrap();
    populate_ahead(&stub);
    let engine = engine(&stub);
    let start = engine.set_pace(open(200.0)).unwrap().at_ns;
    sleep(ms(300));
    let loss = Moment::of(|| {
        stub.set(0, Behaviour::answering(Answer::Close));
        drop(stub);
        wait_until("the connection is lost", || engine.balance().connections_lost > 0);
    });
    sleep(ms(1_000));
    let live = engine.live();
    assert!(live.waiting > 50, "about half a second's worth waits: {}", live.waiting);
    let events = engine.connection_events();
    assert!(events.iter().any(|event| event.coordinator == "n1" && event.lost.is_some()), "{events:?}");
    let mut book = Book::default();
    let mut balance = Balance::default();
    let end = Moment::of(|| balance = stop(engine, &mut book));
    let least = due(200.0, start, end.before) - due(200.0, start, loss.after);
    let most = due(200.0, start, end.after) - due(200.0, start, loss.before);
    assert!((least - 1.0..=most + 1.0).contains(&(balance.never_sent as f64)), "{least} to {most}: {balance:#?}");
    assert_eq!(balance.timed_out, 0);
}

#[test]
fn a_lost_connection_comes_back_by_itself() {
    let stub = Stub::local(2).unwrap();
    let engine = engine(&stub);
    populate(&engine);
    engine.set_pace(open(500.0)).unwrap();
    sleep(ms(200));
    stub.disconnect(1);
    wait_until("n2 is connected again", || {
        engine.connection_events().iter().any(|event| event.coordinator == "n2" && event.lost.is_none())
    });
    engine.live();
    wait_until("n2 serves again", || !engine.live().coordinators[1].1.is_empty());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.connections_lost, 1);
    assert_eq!(balance.failed, failed(&balance, ErrorClass::ConnectionLost));
    assert!(balance.rerouted > 0, "meanwhile the other node had it all: {balance:#?}");
}

#[test]
fn out_of_streams_operations_wait_and_the_wait_is_seen() {
    let stub = Stub::local(1).unwrap();
    let config = patient(&stub);
    let engine = Engine::start(config, KeyValue { value_size: 16, ..workload() }).unwrap();
    populate(&engine);
    stub.set(0, Behaviour::frozen());
    engine.set_pace(open(60_000.0)).unwrap();
    sleep(ms(1_000));
    let change = engine.set_pace(Pace::Idle).unwrap();
    wait_until("all is scheduled", || monotonic_ns() > change.at_ns && engine.balance().scheduled > 55_000);
    let balance = engine.balance();
    assert!(balance.balances(), "{balance:#?}");
    assert_eq!(balance.in_flight, 32_767, "every stream is taken");
    assert!(balance.waiting > 10_000, "the others wait, visibly: {balance:#?}");
    stub.set(0, Behaviour::default());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, balance.scheduled, "all are answered in the end");
    let longest = |pick: fn(&brownout_load::Series) -> u64| {
        book.0.values().flat_map(|bucket| &bucket.series).map(pick).max().unwrap()
    };
    assert!(longest(|series| series.wait.max()) > 200 * MS, "the wait of those that found no stream");
    let late = book.0.values().map(|bucket| bucket.lateness.max()).max().unwrap();
    let wait = longest(|series| series.wait.max());
    // If it were, it would be in the lateness whole; that of a thread without a processor is there in any case.
    assert!(late < wait, "waiting for a stream is not the instrument's lateness: {late} < {wait}");
}

#[test]
fn what_waits_because_the_server_reads_no_more_is_not_the_clients_lateness() {
    let stub = Stub::local(1).unwrap();
    // The kernels on both sides have room for a small part of what is written.
    let writes = KeyValue { read: 0, population: 10, value_size: 100_000, ..workload() };
    let engine = Engine::start(patient(&stub), writes).unwrap();
    stub.set(0, Behaviour::deaf());
    engine.set_pace(open(200.0)).unwrap();
    wait_until("the kernel takes no more", || engine.balance().waiting > 20);
    sleep(ms(1_000));
    let balance = engine.balance();
    assert!(balance.balances() && balance.in_flight > 0 && balance.answered_ok == 0, "{balance:#?}");
    engine.set_pace(Pace::Idle).unwrap();
    stub.set(0, Behaviour::default());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, balance.scheduled, "all are answered in the end");
    let wait = book.0.values().flat_map(|bucket| &bucket.series).map(|series| series.wait.max()).max().unwrap();
    let late = book.0.values().map(|bucket| bucket.lateness.max()).max().unwrap();
    assert!(wait >= 999 * MS && late < wait, "waited {wait} for the kernel, {late} for the instrument");
}

#[test]
fn cut_short_operations_are_abandoned_or_never_sent_and_the_sheet_still_balances() {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    populate(&engine);
    stub.set(0, Behaviour::frozen());
    engine.set_pace(open(500.0)).unwrap();
    sleep(ms(200));
    let mut book = Book::default();
    let (buckets, balance) = engine.stop(ms(0));
    book.add(buckets);
    check(&book, &balance);
    assert!(failed(&balance, ErrorClass::Abandoned) > 50, "{balance:#?}");
}

#[test]
fn several_threads_and_connections_keep_one_account() {
    let stub = Stub::local(3).unwrap();
    let config = EngineConfig { threads: 3, connections: 2, balancing: Balancing::RoundRobin, ..patient(&stub) };
    let engine = Engine::start(config, workload()).unwrap();
    populate(&engine);
    assert_eq!(engine.populated().total, 1_000);
    let change = engine.set_pace(open(1_500.0)).unwrap();
    sleep(ms(1_000));
    let mut book = Book::default();
    book.add(engine.drain());
    let idle = engine.set_pace(Pace::Idle).unwrap();
    assert!(engine.cpu_ns() > 0);
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
    let exact = |from: u64, until: u64| (until - from) as f64 * 1_500.0 / 1e9;
    let (least, most) = (exact(change.by_ns, idle.at_ns) - 1.0, exact(change.at_ns, idle.by_ns) + 1.0);
    let scheduled = (balance.scheduled - 1_000) as f64;
    assert!((least..=most).contains(&scheduled), "scheduled {scheduled}, by the clock {least} to {most}");
}
