//! What the tests share: a stub, an engine on it, and sums over what comes out.
#![allow(dead_code, reason = "every test program uses a part of it")]

pub mod scripted;

use std::{
    io::Write,
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Arrivals, Balance, Bucket, Consistency, Engine, EngineConfig, Histogram, Identity, KeyValue, Outcome, Pace,
    ServerTls, Tls, TlsOptions, TrustStore, histogram, stub::Stub,
};
use brownout_units::Rate;

pub const MS: u64 = 1_000_000;

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub fn workload() -> KeyValue {
    KeyValue {
        keyspace: "stub".into(),
        table: "kv".into(),
        replication: 3,
        data_centres: Default::default(),
        consistency: Consistency::Quorum,
        read: 1,
        write: 1,
        population: 1_000,
        value_size: 100,
        timestamps: Default::default(),
    }
}

pub fn config(stub: &Stub) -> EngineConfig {
    EngineConfig { timeout: ms(500), bucket: ms(100), ..EngineConfig::new(stub.coordinators()) }
}

/// With a timeout that no stall of this machine reaches, for tests in which nothing may time out.
pub fn patient(stub: &Stub) -> EngineConfig {
    EngineConfig { timeout: ms(60_000), ..config(stub) }
}

/// The number of the operations of a constant schedule of `rate` from `start` on that are intended before `at`.
pub fn due(rate: f64, start: u64, at: u64) -> f64 {
    (at.saturating_sub(start) as f64 * rate / 1e9).ceil()
}

pub fn engine(stub: &Stub) -> Engine {
    Engine::start(config(stub), workload()).unwrap()
}

pub fn open(rate: f64) -> Pace {
    Pace::Open { rate: Rate::per_second(rate).unwrap(), arrivals: Arrivals::Constant }
}

/// An act that took its effect between two times on CLOCK_MONOTONIC.
pub struct Moment {
    pub before: u64,
    pub after: u64,
}

impl Moment {
    pub fn of(act: impl FnOnce()) -> Moment {
        let before = monotonic_ns();
        act();
        Moment { before, after: monotonic_ns() }
    }
}

/// Writes every key, so that reads find rows.
pub fn populate(engine: &Engine) {
    engine.set_pace(Pace::Populate { in_flight: 64 }).unwrap();
    wait_until("all keys are written", || engine.populated().complete());
    engine.set_pace(Pace::Idle).unwrap();
}

/// The same by an engine of its own with a timeout that no stall reaches, so that nothing has timed out before the test.
pub fn populate_ahead(stub: &Stub) {
    populate(&Engine::start(patient(stub), workload()).unwrap());
}

pub fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited 20 s until {what}");
        sleep(ms(5));
    }
}

/// Puts newer buckets in the place of older ones, as callers do.
#[derive(Default)]
pub struct Book(pub std::collections::BTreeMap<u64, Bucket>);

impl Book {
    pub fn add(&mut self, buckets: Vec<Bucket>) {
        for bucket in buckets {
            if let Some(old) = self.0.insert(bucket.start_ns, bucket.clone()) {
                assert!(!old.settled || bucket.settled, "settled is for ever");
                if old.settled {
                    assert_eq!(old.scheduled, bucket.scheduled, "nothing is scheduled into a settled bucket");
                }
            }
        }
    }

    pub fn count(&self, wanted: impl Fn(&str, &str, Outcome) -> bool) -> u64 {
        let series = self.0.values().flat_map(|bucket| &bucket.series);
        series.filter(|s| wanted(&s.statement, &s.coordinator, s.outcome)).map(|s| s.count).sum()
    }

    pub fn response(&self, wanted: impl Fn(&str, Outcome) -> bool) -> Histogram<u64> {
        let mut sum = histogram();
        for series in self.0.values().flat_map(|bucket| &bucket.series) {
            if wanted(&series.coordinator, series.outcome) {
                sum.add(&series.response).unwrap();
            }
        }
        sum
    }

    pub fn total(&self, count: impl Fn(&Bucket) -> u64) -> u64 {
        self.0.values().map(count).sum()
    }
}

/// Stops the engine and checks that sheet and buckets balance and tell the same.
pub fn stop(engine: Engine, book: &mut Book) -> Balance {
    let (buckets, balance) = engine.stop(ms(70_000));
    book.add(buckets);
    check(book, &balance);
    balance
}

pub fn check(book: &Book, balance: &Balance) {
    assert!(balance.balances(), "{balance:#?}");
    assert_eq!((balance.waiting, balance.in_flight), (0, 0), "{balance:#?}");
    assert!(book.0.values().all(|bucket| bucket.settled));
    assert_eq!(book.total(|bucket| bucket.scheduled), balance.scheduled);
    assert_eq!(book.total(|bucket| bucket.sent), balance.sent);
    assert_eq!(book.total(|bucket| bucket.never_sent), balance.never_sent);
    assert_eq!(book.total(|bucket| bucket.stale), balance.stale);
    assert_eq!(book.total(|bucket| bucket.empty), balance.empty);
    assert_eq!(book.total(|bucket| bucket.missing), balance.missing);
    assert_eq!(book.total(|bucket| bucket.mismatched), balance.mismatched);
    assert_eq!(book.total(|bucket| bucket.looked_for), balance.looked_for);
    assert_eq!(book.total(|bucket| bucket.lost), balance.lost);
    assert_eq!(book.total(|bucket| bucket.rerouted), balance.rerouted);
    assert_eq!(book.count(|_, _, outcome| outcome == Outcome::Ok), balance.answered_ok);
    assert_eq!(book.count(|_, _, outcome| outcome == Outcome::TimedOut), balance.timed_out);
    assert_eq!(book.count(|_, _, outcome| outcome == Outcome::Late), balance.late);
    assert_eq!(book.count(|_, _, outcome| matches!(outcome, Outcome::Failed(_))), balance.failed);
}

/// Certificate and key of 127.0.0.1, and who has signed it: files that live as long as the directory.
pub fn certificates() -> (tempfile::TempDir, ServerTls, Tls) {
    let directory = tempfile::TempDir::new().unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let path = directory.path().join("node.pem");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all((certified.cert.pem() + &certified.signing_key.serialize_pem()).as_bytes()).unwrap();
    let server = ServerTls::new(&Identity { file: path.clone(), key: None, password: None }, None).unwrap();
    let client = Tls::new(&TlsOptions {
        trust: TrustStore { file: path, password: None },
        identity: None,
        verify_hostname: true,
        names: Vec::new(),
        protocols: Vec::new(),
        ciphers: Vec::new(),
    });
    (directory, server, client.unwrap())
}
