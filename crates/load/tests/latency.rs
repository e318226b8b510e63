//! Latencies against what can be computed beforehand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{thread::sleep, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Arrivals, Bucket, Engine, EngineConfig, Outcome, Pace,
    stub::{Behaviour, Stub},
};
use brownout_units::Rate;
use common::*;

/// Sleeps until a time on CLOCK_MONOTONIC.
fn sleep_until(at_ns: u64) {
    sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

/// The server freezes for the last of every 3 s, at 500/s. An operation intended at t in a freeze that ends at e is
/// answered at e, so its response is e − t: evenly spread over the length of the freeze, for a third of all. A
/// generator that stops with the server would report the 500 of one freeze as one operation.
///
/// Beginnings and ends are not what was asked for but what was measured, and the end is the time at which the last
/// answer was in the account: however late this machine does things, the bounds hold.
#[test]
fn a_frozen_server_is_charged_for_every_operation_it_kept_waiting() {
    const RATE: f64 = 500.0;
    let stub = Stub::local(1).unwrap();
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let engine = Engine::start(patient(&stub), workload()).unwrap();
        populate(&engine);
        // Shows what this machine itself keeps waiting meanwhile.
        let well = Stub::local(1).unwrap();
        let beside = Engine::start(patient(&well), workload()).unwrap();
        // The population's operations are not part of this.
        sleep(ms(200));
        engine.drain();
        let pace = Pace::Open { rate: Rate::per_second(RATE).unwrap(), arrivals };
        let start = engine.set_pace(pace.clone()).unwrap().at_ns;
        beside.set_pace(pace).unwrap();
        let mut freezes = Vec::new();
        for cycle in 0..2 {
            sleep_until(start + (cycle * 3_000 + 2_000) * MS);
            let begin = Moment::of(|| stub.set(0, Behaviour::frozen()));
            sleep_until(start + (cycle * 3_000 + 3_000) * MS);
            let end = Moment::of(|| {
                stub.set(0, Behaviour::default());
                // Answers come in the order of the questions, on one connection.
                let asked = engine.balance().scheduled;
                wait_until("the frozen are answered", || engine.balance().answered_ok >= asked);
            });
            freezes.push((begin, end));
        }
        let mut book = Book::default();
        let (buckets, balance) = engine.stop(ms(60_000));
        book.add(buckets);
        assert_eq!(balance.failed + balance.timed_out + balance.never_sent, 0, "{balance:#?}");
        let mut others = Book::default();
        stop(beside, &mut others);

        // Poisson arrivals spread; five standard deviations of it are allowed for.
        let spread = if arrivals == Arrivals::Poisson { 5.0 } else { 0.0 };
        for (begin, end) in &freezes {
            let inside =
                |bucket: &&Bucket| bucket.start_ns >= begin.after && bucket.start_ns + bucket.length_ns <= end.before;
            let buckets: Vec<&Bucket> = book.0.values().filter(inside).collect();
            let (first, last) = (buckets[0].start_ns as f64, buckets[buckets.len() - 1]);
            let length = (last.start_ns + last.length_ns) as f64 - first;
            let mut response = brownout_load::histogram();
            let series = buckets.iter().flat_map(|bucket| &bucket.series);
            series.for_each(|series| response.add(&series.response).unwrap());
            let expected = length / 1e9 * RATE;
            let count = response.len() as f64;
            assert!((count - expected).abs() <= 1.0 + spread * expected.sqrt(), "{arrivals:?}: {count} of {expected}");
            for quantile in [0.05, 0.25, 0.5, 0.75, 0.95] {
                let deviation = spread * length * f64::sqrt(quantile * (1.0 - quantile) / expected);
                let slack = deviation + 2e9 / RATE;
                let least = (end.before as f64 - first - length * (1.0 - quantile)) * 0.998 - slack;
                let most = (end.after as f64 - first - length * (1.0 - quantile)) * 1.002 + slack;
                let measured = response.value_at_quantile(quantile) as f64;
                let range = least..=most;
                assert!(range.contains(&measured), "{arrivals:?} quantile {quantile}: {measured}, not in {range:?}");
            }
        }

        // And in the whole: so many operations waited longer than x.
        let response = book.response(|_, outcome| outcome == Outcome::Ok);
        for longer_ns in [250e6, 500e6, 750e6] {
            let waits = freezes.iter().map(|(begin, end)| (end.before - begin.after) as f64 - longer_ns);
            let expected = waits.sum::<f64>() / 1e9 * RATE;
            let counted = response.count_between((longer_ns * 0.998) as u64, u64::MAX) as f64;
            assert!(counted >= expected - 4.0 - spread * expected.sqrt(), "{arrivals:?}: {counted} of {expected}");
        }
        // Two thirds met a well server: half of all waited no longer than nearly all of those whose server never froze.
        let most = others.response(|_, outcome| outcome == Outcome::Ok).value_at_quantile(0.9) as f64;
        let median = response.value_at_quantile(0.5) as f64;
        assert!(median <= most + 2e9 / RATE, "{arrivals:?}: half waited {median} ns, nearly all others {most} ns");
    }
}

#[test]
fn a_closed_loop_obeys_littles_law() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(patient(&stub), workload()).unwrap();
    populate(&engine);
    for (users, delay_ms) in [(1, 20), (16, 20), (16, 50)] {
        stub.set(0, Behaviour::slow(ms(delay_ms)));
        engine.set_pace(Pace::Closed { threads: users }).unwrap();
        sleep(ms(200));
        let begin = Moment::of(|| drop(engine.live()));
        sleep(ms(1_000));
        let mut live = None;
        let end = Moment::of(|| live = Some(engine.live()));
        let live = live.unwrap();
        engine.set_pace(Pace::Idle).unwrap();
        wait_until("all users are back", || engine.exhausted());
        // The times of all users add up to the window, but for the one operation each that reaches over its edges. What
        // was open at the end has been answered since.
        let spent = live.response.mean() * live.delivered as f64;
        let longest = live.response.max().max(engine.live().response.max()) as f64;
        let users_f = f64::from(users);
        let least = users_f * ((end.before - begin.after) as f64 - longest) * 0.998;
        let most = users_f * ((end.after - begin.before) as f64 + longest) * 1.002;
        assert!((least..=most).contains(&spent), "{users} users: {spent} ns, by the law {least} to {most}");
        assert!(live.response.min() as f64 >= delay_ms as f64 * 0.998e6, "{}", live.response.min());
        assert!(live.in_flight <= u64::from(users));
    }
    let (_, balance) = engine.stop(ms(2_000));
    assert!(balance.balances(), "{balance:#?}");
}

#[test]
fn wait_and_service_add_up_to_response() {
    let stub = Stub::local(2).unwrap();
    let engine = engine(&stub);
    stub.set(1, Behaviour::slow(ms(30)));
    engine.set_pace(open(300.0)).unwrap();
    sleep(ms(500));
    let mut book = Book::default();
    stop(engine, &mut book);
    for series in book.0.values().flat_map(|bucket| &bucket.series) {
        let sum = series.wait.mean() + series.service.mean();
        assert!((sum / series.response.mean() - 1.0).abs() < 0.01);
        assert_eq!(series.count, series.response.len());
        if series.coordinator == "n2" {
            assert!(series.service.min() >= 29 * MS, "the delay is the server's: {}", series.service.min());
        }
    }
}

#[test]
fn operations_belong_to_the_bucket_of_their_intended_start() {
    let stub = Stub::local(1).unwrap();
    let config = patient(&stub);
    let epoch = config.epoch_ns;
    let engine = Engine::start(config, workload()).unwrap();
    stub.set(0, Behaviour::frozen());
    let start = engine.set_pace(open(1_000.0)).unwrap().at_ns;
    sleep(ms(1_000));
    let mut book = Book::default();
    book.add(engine.drain());
    assert!(book.0.values().all(|bucket| !bucket.settled), "all are open while the server is frozen");
    stub.set(0, Behaviour::default());
    sleep(ms(100));
    stop(engine, &mut book);
    let first_whole = (start - epoch).div_ceil(100 * MS) * 100 * MS + epoch;
    for bucket in book.0.values().filter(|bucket| bucket.start_ns >= first_whole).take(8) {
        assert_eq!((bucket.start_ns - epoch) % (100 * MS), 0);
        assert_eq!(bucket.length_ns, 100 * MS);
        assert!(bucket.scheduled.abs_diff(100) <= 1, "{}", bucket.scheduled);
    }
}

#[test]
fn the_instruments_own_lateness_is_on_the_record_and_in_the_response() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(EngineConfig { tick: ms(50), ..patient(&stub) }, workload()).unwrap();
    engine.set_pace(open(400.0)).unwrap();
    sleep(ms(800));
    let mut book = Book::default();
    stop(engine, &mut book);
    let mut lateness = brownout_load::histogram();
    book.0.values().for_each(|bucket| lateness.add(&bucket.lateness).unwrap());
    // Held back for 0 to 50 ms, evenly, or longer if this machine stood still.
    let median = lateness.value_at_quantile(0.5);
    assert!(median >= 20 * MS && lateness.max() >= 45 * MS, "{median}, {}", lateness.max());
    // Who asks for so coarse a tick is not told that each start is late.
    let late = book.total(|bucket| bucket.late_starts);
    assert!(late <= lateness.count_between(99 * MS, lateness.max()), "{late}");
    let response = book.response(|_, outcome| outcome == Outcome::Ok);
    assert!(response.value_at_quantile(0.5) >= median - MS, "what was late counts from its intended start");
}

#[test]
fn what_is_due_when_the_run_ends_is_scheduled_even_if_it_was_held_back() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(EngineConfig { tick: ms(300), ..config(&stub) }, workload()).unwrap();
    let start = engine.set_pace(open(1_000.0)).unwrap().at_ns;
    sleep(ms(450));
    let before = monotonic_ns();
    let (_, balance) = engine.stop(ms(2_000));
    let after = monotonic_ns();
    let due = |at: u64| (at - start).div_ceil(MS);
    assert!(balance.balances(), "{balance:#?}");
    assert!((due(before)..=due(after)).contains(&balance.scheduled), "{} due at the end", due(before));
}

#[test]
fn answers_that_lie_unread_until_the_next_send_keep_the_time_at_which_they_came() {
    // With so many connections nothing wakes the engine between two sends, if they come every millisecond. If they come
    // every three, each answer does.
    const UNREAD_NS: u64 = 1_000_000;
    const READ_NS: u64 = 3_000_000;
    let stubs = [Stub::local(1).unwrap(), Stub::local(1).unwrap()];
    // Service times of both at the same time: what this machine delays, it delays for both.
    let services = |behaviour| {
        let begin = |(stub, gap_ns): (&Stub, u64)| {
            stub.set(0, behaviour);
            let engine = Engine::start(EngineConfig { connections: 8, ..patient(stub) }, workload()).unwrap();
            engine.set_pace(open(1e9 / gap_ns as f64)).unwrap();
            engine
        };
        let [unread, read] = &stubs;
        let engines = [(unread, UNREAD_NS), (read, READ_NS)].map(begin);
        sleep(ms(1_500));
        engines.map(|engine| {
            let mut book = Book::default();
            stop(engine, &mut book);
            let mut sum = brownout_load::histogram();
            let series = book.0.values().flat_map(|bucket| &bucket.series);
            series.for_each(|series| sum.add(&series.service).unwrap());
            sum
        })
    };
    for slow in services(Behaviour::slow(ms(2))) {
        assert!(slow.min() as f64 >= 2e6 * 0.998, "nothing is stamped before it was sent: {}", slow.min());
    }
    // Counted until the next send, nearly all would be a gap long.
    let [unread, read] = services(Behaviour::default()).map(|times| times.value_at_quantile(0.1));
    assert!(unread < read + UNREAD_NS / 2, "unread, a tenth came in {unread} ns; read at once, in {read} ns");
}
