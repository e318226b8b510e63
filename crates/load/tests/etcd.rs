//! The load on a real etcd of three members.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says by panicking that something is wrong"
)]

mod real_etcd;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use brownout_load::{
    Arrivals, Balance, Balancing, Bucket, Engine, EngineConfig, ErrorClass, EtcdLoad, Outcome, Pace, Series,
    WireOptions, control, stay,
};
use brownout_units::Rate;
use real_etcd::Etcd;

const PREFIX: &str = "brownout/";

fn load() -> EtcdLoad {
    EtcdLoad {
        prefix: PREFIX.into(),
        put: 1,
        range: 1,
        serializable: 0,
        txn: 1,
        population: 200,
        value_size: 100,
        watchers: 0,
    }
}

fn config(etcd: &Etcd, timeout: Duration) -> EngineConfig {
    EngineConfig { timeout, bucket: Duration::from_millis(250), ..EngineConfig::new(etcd.coordinators()) }
}

/// No stall of this machine takes as long.
const PATIENT: Duration = Duration::from_secs(60);

fn started(config: EngineConfig, load: EtcdLoad) -> Engine {
    Engine::start_etcd_unless(config, load, &|| false).unwrap()
}

fn open(rate: f64) -> Pace {
    Pace::Open { rate: Rate::per_second(rate).unwrap(), arrivals: Arrivals::Constant }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENT, "waited {PATIENT:?} until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn populate(engine: &Engine) {
    engine.set_pace(Pace::Populate { in_flight: 16 }).unwrap();
    wait_until("all keys are written", || engine.populated().complete());
    engine.set_pace(Pace::Idle).unwrap();
}

fn answered(engine: &Engine, more: u64) {
    let before = engine.balance().answered_ok;
    wait_until("more operations are answered", || engine.balance().answered_ok >= before + more);
}

/// Stops it; the sheet balances, and every bucket is settled.
fn stop(engine: Engine) -> (Vec<Bucket>, Balance) {
    let (buckets, balance) = engine.stop(2 * PATIENT);
    assert!(balance.balances(), "{balance:#?}");
    assert!(buckets.iter().all(|bucket| bucket.settled));
    (buckets, balance)
}

fn series(buckets: &[Bucket]) -> impl Iterator<Item = &Series> {
    buckets.iter().flat_map(|bucket| &bucket.series)
}

#[test]
fn every_operation_is_answered_right_by_every_member_and_every_watcher_is_told_of_every_put() {
    let etcd = Etcd::start(3);
    let engine = started(config(&etcd, PATIENT), EtcdLoad { watchers: 3, ..load() });
    populate(&engine);
    engine.set_pace(open(300.0)).unwrap();
    answered(&engine, 600);
    let (buckets, balance) = stop(engine);
    let wrong = (balance.mismatched, balance.missing, balance.empty, balance.stale);
    assert_eq!((wrong, balance.failed, balance.timed_out), ((0, 0, 0, 0), 0, 0), "{balance:#?}");
    let mut answers: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for one in series(&buckets) {
        *answers.entry((one.statement.as_str(), one.coordinator.as_str())).or_default() += one.count;
    }
    for operation in ["put", "range", "txn"] {
        for member in ["n1", "n2", "n3"] {
            assert!(answers.get(&(operation, member)).is_some_and(|count| *count > 20), "{answers:?}");
        }
    }
    let not_applied: u64 =
        buckets.iter().flat_map(|bucket| &bucket.operations).map(|operation| operation.not_applied).sum();
    let reads: u64 = series(&buckets).filter(|one| one.statement == "range").map(|one| one.count).sum();
    let writes = balance.answered_ok - reads;
    assert_eq!(balance.watch_events, 3 * (writes - not_applied), "{balance:#?}");
    for one in buckets.iter().flat_map(|bucket| &bucket.watches) {
        assert_eq!((&one.statement[..], one.outcome), (Series::WATCH, Outcome::Ok));
        assert!(one.response.min() > 0);
    }

    // Serializable reads ask one member only; what it has may be old, but never wrong.
    let apart = EtcdLoad::apart([open(100.0), Pace::Idle, Pace::Closed { threads: 2 }, Pace::Idle]);
    let engine = started(config(&etcd, PATIENT), load());
    engine.set_paces(apart).unwrap();
    answered(&engine, 400);
    let (buckets, balance) = stop(engine);
    assert_eq!((balance.mismatched, balance.missing, balance.failed), (0, 0, 0), "{balance:#?}");
    assert!(series(&buckets).all(|one| one.statement == "put" || one.statement == "serializable"));

    control::clear_etcd(&WireOptions::default(), &etcd.coordinators(), &stay(), PREFIX, PATIENT).unwrap();
    let engine = started(config(&etcd, PATIENT), EtcdLoad { put: 0, txn: 0, ..load() });
    engine.set_pace(Pace::Closed { threads: 4 }).unwrap();
    answered(&engine, 100);
    let (_, balance) = stop(engine);
    assert_eq!(balance.empty, balance.answered_ok, "nothing is left of the keys");
}

#[test]
fn the_load_follows_the_leader_and_no_acknowledged_write_is_lost_when_it_is_killed() {
    let etcd = Etcd::start(3);
    let leader = EngineConfig { balancing: Balancing::Leader, ..config(&etcd, Duration::from_secs(10)) };
    let engine = started(leader, EtcdLoad { watchers: 3, ..load() });
    populate(&engine);
    drop(engine.drain());
    engine.set_pace(open(200.0)).unwrap();
    let first = leading(&engine);
    etcd.signal(&first, "KILL");
    wait_until("its connection is lost", || engine.balance().connections_lost > 0);
    answered(&engine, 400);
    drop(engine.drain());
    answered(&engine, 200);
    let second = leading(&engine);
    assert_ne!(first, second);
    let (_, balance) = stop(engine);
    assert_eq!((balance.mismatched, balance.missing, balance.stale), (0, 0, 0), "{balance:#?}");
    let expected =
        [ErrorClass::ConnectionLost, ErrorClass::Unavailable, ErrorClass::WriteTimeout, ErrorClass::ReadTimeout];
    assert!(balance.failures.keys().all(|class| expected.contains(class)), "{balance:#?}");
}

/// The one coordinator of what was answered since the last look.
fn leading(engine: &Engine) -> String {
    answered(engine, 100);
    drop(engine.drain());
    answered(engine, 100);
    let newest = engine.drain().into_iter().rfind(|bucket| bucket.series.iter().any(|one| one.outcome == Outcome::Ok));
    let newest = newest.expect("a bucket with answers");
    let names: Vec<String> = newest.series.iter().map(|one| one.coordinator.clone()).collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    names[0].clone()
}

#[test]
fn a_member_that_stands_still_answers_late_and_its_watcher_is_told_late() {
    let etcd = Etcd::start(3);
    let load = EtcdLoad { range: 0, txn: 0, watchers: 3, ..load() };
    let engine = started(config(&etcd, Duration::from_millis(500)), load);
    engine.set_pace(open(200.0)).unwrap();
    answered(&engine, 100);
    etcd.signal("n2", "STOP");
    wait_until("what it was asked for times out", || engine.balance().timed_out >= 20);
    wait_until("so do its events", || engine.balance().watch_timed_out >= 20);
    etcd.signal("n2", "CONT");
    wait_until("it answers after all", || {
        let balance = engine.balance();
        balance.late >= 20 && balance.watch_late >= 20
    });
    let (buckets, balance) = stop(engine);
    assert_eq!(balance.garbage, 0);
    let late = series(&buckets).filter(|one| one.outcome == Outcome::Late && one.coordinator == "n2");
    assert!(late.map(|one| one.count).sum::<u64>() > 0);
}

#[test]
fn values_as_large_as_etcd_takes_go_through_and_come_back() {
    let etcd = Etcd::start(1);
    let large = EtcdLoad { value_size: EtcdLoad::LARGEST_VALUE, population: 8, watchers: 1, ..load() };
    let engine = started(config(&etcd, PATIENT), large);
    populate(&engine);
    engine.set_pace(Pace::Closed { threads: 4 }).unwrap();
    answered(&engine, 40);
    let (_, balance) = stop(engine);
    let wrong = (balance.mismatched, balance.missing, balance.stale);
    assert_eq!((wrong, balance.failed, balance.timed_out), ((0, 0, 0), 0, 0), "{balance:#?}");
    assert_eq!(balance.watch_timed_out, 0);
}
