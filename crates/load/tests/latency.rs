//! Latencies against what can be computed beforehand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{thread::sleep, time::Duration};

use brownout_load::{
    Arrivals, Engine, EngineConfig, Outcome, Pace, now_ns,
    stub::{Behaviour, Stub},
};
use brownout_units::Rate;
use common::*;

/// Sleeps until a time on CLOCK_MONOTONIC.
fn sleep_until(at_ns: u64) {
    sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())));
}

/// The server freezes for the last of every 5 s, at 500/s. A fifth of the operations fall into a freeze, and of those
/// the wait is evenly spread over 0 … 1 s: quantile q of all responses is (q − 0.8) ÷ 0.2 s. A generator that stops
/// with the server would report the 500 of one freeze as one operation.
#[test]
fn a_frozen_server_is_charged_for_every_operation_it_kept_waiting() {
    let stub = Stub::local(1).unwrap();
    let config = EngineConfig { timeout: ms(5_000), ..config(&stub) };
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let engine = Engine::start(config.clone(), workload()).unwrap();
        populate(&engine);
        engine.drain();
        sleep(ms(200));
        let mut before = Book::default();
        before.add(engine.drain());
        let start = engine.set_pace(Pace::Open { rate: Rate::per_second(500.0).unwrap(), arrivals }).unwrap().at_ns;
        for cycle in 0..2 {
            let begin = start + cycle * 5_000 * MS;
            sleep_until(begin + 4_000 * MS);
            stub.set(0, Behaviour::frozen());
            sleep_until(begin + 5_000 * MS);
            stub.set(0, Behaviour::default());
        }
        engine.set_pace(Pace::Idle).unwrap();
        let mut book = Book::default();
        let (buckets, balance) = engine.stop(ms(2_000));
        // The population's operations are not part of this.
        book.add(buckets.into_iter().filter(|bucket| bucket.start_ns >= start - 100 * MS).collect());
        assert_eq!(balance.failed + balance.timed_out + balance.never_sent, 0, "{balance:#?}");
        let response = book.response(|_, outcome| outcome == Outcome::Ok);
        for (quantile, expected_ms) in [(0.85, 250), (0.90, 500), (0.95, 750), (0.99, 950)] {
            let measured = response.value_at_quantile(quantile) / MS;
            // A Poisson stream of 5,000 spreads more than an even one.
            let tolerance = if arrivals == Arrivals::Constant { 40 } else { 80 };
            assert!(measured.abs_diff(expected_ms) <= tolerance, "{arrivals:?} p{quantile}: {measured} ms");
        }
        let median = response.value_at_quantile(0.5);
        assert!(median < 20 * MS, "half of the operations met a well server: {median} ns");
        let max = response.max() / MS;
        assert!((960..1_100).contains(&max), "{max} ms");
        let spread = response.len() as f64;
        assert!((4_600.0..5_600.0).contains(&spread), "{spread}");
    }
}

#[test]
fn a_closed_loop_obeys_littles_law() {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    populate(&engine);
    engine.set_pace(Pace::Idle).unwrap();
    for (users, delay_ms) in [(1, 20), (16, 20), (16, 50)] {
        stub.set(0, Behaviour::slow(ms(delay_ms)));
        engine.set_pace(Pace::Closed { threads: users }).unwrap();
        sleep(ms(200));
        engine.live();
        let begin = now_ns();
        sleep(ms(1_000));
        let live = engine.live();
        let seconds = (now_ns() - begin) as f64 / 1e9;
        let throughput = live.delivered as f64 / seconds;
        let predicted = f64::from(users) / (live.response.mean() / 1e9);
        assert!(live.response.min() >= delay_ms * MS, "{}", live.response.min());
        assert!((throughput / predicted - 1.0).abs() < 0.1, "{users} users: {throughput}/s, by the law {predicted}/s");
        assert!(live.in_flight <= u64::from(users));
        engine.set_pace(Pace::Idle).unwrap();
        wait_until("all users are back", || engine.balance().in_flight == 0);
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
    let config = EngineConfig { bucket: ms(100), timeout: ms(5_000), ..config(&stub) };
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
    let engine = engine(&stub);
    engine.set_coalescing(ms(50));
    engine.set_pace(open(400.0)).unwrap();
    sleep(ms(800));
    let mut book = Book::default();
    stop(engine, &mut book);
    let mut lateness = brownout_load::histogram();
    book.0.values().for_each(|bucket| lateness.add(&bucket.lateness).unwrap());
    // Held back for 0 to 50 ms, evenly.
    let median = lateness.value_at_quantile(0.5);
    assert!((15 * MS..45 * MS).contains(&median), "{median}");
    assert!(book.total(|bucket| bucket.late_starts) > 200);
    let response = book.response(|_, outcome| outcome == Outcome::Ok);
    assert!(response.value_at_quantile(0.5) >= median - MS, "what was late counts from its intended start");
}

#[test]
fn what_is_due_when_the_run_ends_is_scheduled_even_if_it_was_held_back() {
    let stub = Stub::local(1).unwrap();
    let engine = engine(&stub);
    engine.set_coalescing(ms(300));
    let start = engine.set_pace(open(1_000.0)).unwrap().at_ns;
    sleep(ms(450));
    let before = now_ns();
    let (_, balance) = engine.stop(ms(2_000));
    let after = now_ns();
    let due = |at: u64| (at - start).div_ceil(MS);
    assert!(balance.balances(), "{balance:#?}");
    assert!((due(before)..=due(after)).contains(&balance.scheduled), "{} due at the end", due(before));
}
