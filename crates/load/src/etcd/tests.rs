//! The load of an etcd against one in memory.

use std::time::{Duration, Instant};

use brownout_units::Rate;

use super::{
    stub::{Behaviour, Stub},
    *,
};
use crate::{
    Arrivals, Balance, Balancing, Bucket, Credentials, Engine, EngineConfig, ErrorClass, LoadError, Outcome, Pace,
    Retries, RetryDelay, WireOptions, stay,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn load() -> EtcdLoad {
    EtcdLoad {
        prefix: "brownout/".into(),
        put: 1,
        range: 1,
        serializable: 1,
        txn: 1,
        population: 50,
        value_size: 100,
        watchers: 0,
    }
}

/// With a timeout that no stall of this machine reaches.
fn patient(stub: &Stub) -> EngineConfig {
    EngineConfig { timeout: Duration::from_secs(60), ..hasty(stub) }
}

/// With a timeout that is soon over.
fn hasty(stub: &Stub) -> EngineConfig {
    let bucket = Duration::from_millis(100);
    EngineConfig { timeout: Duration::from_millis(300), bucket, ..EngineConfig::new(stub.coordinators()) }
}

fn started(config: EngineConfig, load: EtcdLoad) -> Result<Engine, LoadError> {
    Engine::start_etcd_unless(config, load, &|| false)
}

fn open(rate: f64) -> Pace {
    Pace::Open { rate: Rate::per_second(rate).unwrap(), arrivals: Arrivals::Constant }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn populate(engine: &Engine) {
    engine.set_pace(Pace::Populate { in_flight: 8 }).unwrap();
    wait_until("all keys are written", || engine.populated().complete());
    engine.set_pace(Pace::Idle).unwrap();
}

/// Stops it, and returns the account, which balances, and all buckets.
fn stop(engine: Engine) -> (Vec<Bucket>, Balance) {
    let (buckets, balance) = engine.stop(Duration::from_secs(70));
    assert!(balance.balances(), "{balance:#?}");
    let scheduled: u64 = buckets.iter().map(|bucket| bucket.scheduled).sum();
    assert_eq!(scheduled, balance.scheduled);
    assert!(buckets.iter().all(|bucket| bucket.settled && bucket.over));
    (buckets, balance)
}

fn count(buckets: &[Bucket], wanted: impl Fn(&crate::Series) -> bool) -> u64 {
    buckets.iter().flat_map(|bucket| &bucket.series).filter(|series| wanted(series)).map(|series| series.count).sum()
}

fn watched(buckets: &[Bucket], outcome: Outcome) -> u64 {
    let all = buckets.iter().flat_map(|bucket| &bucket.watches);
    all.filter(|series| series.outcome == outcome).map(|series| series.count).sum()
}

#[test]
fn the_end_of_a_prefix_is_the_first_key_that_does_not_begin_with_it() {
    for (prefix, end) in [(&b"a/"[..], &b"a0"[..]), (b"a\xff", b"b"), (b"\xff\xff", b"\0"), (b"", b"\0")] {
        assert_eq!(end_of(prefix), end);
    }
}

#[test]
fn all_operations_are_answered_right_on_all_members_and_every_watcher_is_told_of_every_put() {
    let stub = Stub::start(3);
    let engine = started(patient(&stub), EtcdLoad { watchers: 4, ..load() }).unwrap();
    populate(&engine);
    assert_eq!(stub.keys(), 50);
    engine.set_pace(open(2_000.0)).unwrap();
    wait_until("400 operations are answered", || engine.balance().answered_ok >= 400);
    let (buckets, balance) = stop(engine);
    let wrong = (balance.mismatched, balance.missing, balance.stale, balance.empty);
    assert_eq!((wrong, balance.failed, balance.timed_out), ((0, 0, 0, 0), 0, 0), "{balance:#?}");
    for operation in EtcdLoad::OPERATIONS {
        for member in ["n1", "n2", "n3"] {
            let ok = count(&buckets, |series| {
                (&series.statement[..], &series.coordinator[..], series.outcome) == (operation, member, Outcome::Ok)
            });
            assert!(ok > 0, "{operation} on {member}");
        }
    }
    let puts = count(&buckets, |series| series.statement == "put");
    let exchanges = count(&buckets, |series| series.statement == "txn");
    let refused: u64 =
        buckets.iter().flat_map(|bucket| &bucket.operations).map(|operation| operation.not_applied).sum();
    let events = 4 * (puts + exchanges - refused);
    assert_eq!((balance.watch_events, balance.watch_timed_out), (events, 0));
    assert_eq!(watched(&buckets, Outcome::Ok), events);
    let told: Vec<&crate::Series> = buckets.iter().flat_map(|bucket| &bucket.watches).collect();
    assert!(told.iter().any(|series| series.coordinator == "n3"));
    assert!(told.iter().all(|series| series.statement == crate::Series::WATCH && series.response.min() > 0));
}

#[test]
fn each_operation_is_a_load_of_its_own_if_that_is_asked_for() {
    let stub = Stub::start(1);
    let engine = started(patient(&stub), load()).unwrap();
    populate(&engine);
    drop(engine.drain());
    let users = |threads| Pace::Closed { threads };
    let rate = Rate::per_second(500.0).unwrap();
    let limited = Pace::Limited { threads: 2, rate };
    engine.set_paces(EtcdLoad::apart([users(2), Pace::Idle, open(500.0), limited])).unwrap();
    let before = engine.balance().answered_ok;
    wait_until("300 operations are answered", || engine.balance().answered_ok >= before + 300);
    let (buckets, balance) = engine.stop(PATIENCE);
    assert!(balance.balances() && balance.failed == 0, "{balance:#?}");
    let of = |name: &str| count(&buckets, |series| series.statement == name);
    assert_eq!(of("range"), 0);
    assert!(of("put") > 0 && of("serializable") > 0 && of("txn") > 0);
}

#[test]
fn what_is_not_answered_times_out_and_its_late_answer_is_measured() {
    let stub = Stub::start(1);
    let load = EtcdLoad { range: 0, serializable: 0, txn: 0, watchers: 1, ..load() };
    let engine = started(hasty(&stub), load).unwrap();
    stub.behave(0, Behaviour::Silent);
    engine.set_pace(open(100.0)).unwrap();
    wait_until("ten puts have timed out", || engine.balance().timed_out >= 10);
    engine.set_pace(Pace::Idle).unwrap();
    wait_until("all have", || engine.balance().in_flight == 0);
    assert_eq!(engine.balance().late, 0);
    stub.behave(0, Behaviour::Right);
    wait_until("all are answered after all", || engine.balance().late == engine.balance().timed_out);
    let (_, balance) = engine.stop(PATIENCE);
    assert!(balance.balances() && balance.answered_ok == 0, "{balance:#?}");
    assert_eq!(balance.connections_lost, 0);
    assert_eq!((balance.watch_events, balance.watch_timed_out), (0, 0), "none was acknowledged in time");
}

#[test]
fn a_watcher_that_is_told_too_late_has_timed_out_and_is_measured_all_the_same() {
    let stub = Stub::start(1);
    let load = EtcdLoad { range: 0, serializable: 0, txn: 0, watchers: 1, ..load() };
    let engine = started(hasty(&stub), load).unwrap();
    stub.behave(0, Behaviour::Secretive);
    engine.set_pace(Pace::Closed { threads: 1 }).unwrap();
    wait_until("nobody was told of ten puts", || engine.balance().watch_timed_out >= 10);
    engine.set_pace(Pace::Idle).unwrap();
    stub.behave(0, Behaviour::Right);
    let told = |balance: &Balance| balance.watch_events + balance.watch_late;
    wait_until("all were told", || {
        let balance = engine.balance();
        balance.in_flight == 0 && told(&balance) >= balance.answered_ok
    });
    let (buckets, balance) = stop(engine);
    // Only a stall of this machine makes the puts themselves time out.
    if balance.timed_out == 0 {
        assert_eq!(told(&balance), balance.answered_ok, "{balance:#?}");
        assert_eq!(balance.watch_timed_out, balance.watch_late);
    }
    assert_eq!(watched(&buckets, Outcome::TimedOut), balance.watch_timed_out);
    assert_eq!(watched(&buckets, Outcome::Late), balance.watch_late);
}

#[test]
fn what_a_member_refuses_has_its_class_and_is_tried_again_where_that_may_help() {
    let stub = Stub::start(3);
    stub.behave(0, Behaviour::Refusing(14, "etcdserver: no leader"));
    let engine = started(patient(&stub), load()).unwrap();
    engine.set_pace(open(500.0)).unwrap();
    wait_until("twenty are refused", || engine.balance().failed >= 20);
    let (_, balance) = stop(engine);
    assert_eq!(balance.failures.get(&ErrorClass::Unavailable), Some(&balance.failed));
    assert!(balance.answered_ok > 0, "{balance:#?}");

    let retries = Retries { tries: 5, delay: RetryDelay::None, ..Retries::default() };
    let engine = started(EngineConfig { retries, ..patient(&stub) }, load()).unwrap();
    engine.set_pace(open(500.0)).unwrap();
    wait_until("a hundred are answered", || engine.balance().answered_ok >= 100);
    let (buckets, balance) = stop(engine);
    assert!(balance.failed * 4 < balance.answered_ok, "other members answer: {balance:#?}");
    let attempts = buckets.iter().flat_map(|bucket| &bucket.operations).map(|of| &of.attempts);
    let refused = attempts.map(|attempts| attempts.count(Outcome::Failed(ErrorClass::Unavailable))).sum::<u64>();
    assert!(refused >= 10, "{refused}");
}

#[test]
fn a_filling_that_the_server_will_never_take_ends_with_its_words() {
    let stub = Stub::start(1);
    stub.behave(0, Behaviour::Refusing(8, "etcdserver: mvcc: database space exceeded"));
    let engine = started(patient(&stub), load()).unwrap();
    engine.set_pace(Pace::Populate { in_flight: 4 }).unwrap();
    wait_until("that is told", || engine.health().is_err());
    let told = engine.health().unwrap_err().to_string();
    assert!(told.contains("n1") && told.contains("database space exceeded"), "{told}");
}

#[test]
fn a_read_that_finds_nothing_where_something_was_written_is_missing_unless_the_member_may_be_behind() {
    let stub = Stub::start(1);
    let engine = started(patient(&stub), EtcdLoad { put: 0, txn: 0, ..load() }).unwrap();
    populate(&engine);
    stub.behave(0, Behaviour::Forgetful);
    engine.set_pace(open(500.0)).unwrap();
    wait_until("both are seen", || engine.balance().missing >= 5 && engine.balance().stale >= 5);
    let (buckets, balance) = stop(engine);
    assert_eq!(balance.failures.get(&ErrorClass::Missing), Some(&balance.missing));
    let missing = |series: &crate::Series| series.outcome == Outcome::Failed(ErrorClass::Missing);
    assert_eq!(count(&buckets, |series| missing(series) && series.statement != "range"), 0);
}

#[test]
fn a_server_that_takes_its_leave_answers_what_it_has_and_the_load_goes_on_on_another_connection() {
    let stub = Stub::start(2);
    let engine = started(patient(&stub), EtcdLoad { watchers: 2, ..load() }).unwrap();
    populate(&engine);
    engine.set_pace(open(1_000.0)).unwrap();
    for round in 1..=2 {
        let before = engine.balance();
        wait_until("a hundred more are answered", || engine.balance().answered_ok >= before.answered_ok + 100);
        stub.go_away();
        wait_until("all connections were made anew", || engine.balance().connections_lost >= 2 * round);
        let lost = engine.connection_events();
        assert!(lost.iter().all(|event| event.lost.as_ref().is_none_or(|reason| !reason.is_empty())), "{lost:?}");
    }
    let before = engine.balance();
    wait_until("a hundred more are answered", || engine.balance().answered_ok >= before.answered_ok + 100);
    let (_, balance) = stop(engine);
    let lost = balance.failures.get(&ErrorClass::ConnectionLost).copied().unwrap_or(0);
    assert_eq!(balance.failed, lost);
    assert!(lost <= balance.connections_lost, "only what was asked for at that very moment: {balance:#?}");
    let timed_out = (balance.watch_timed_out, balance.timed_out);
    assert_eq!(timed_out, (0, 0), "the watches go on where they ended: {balance:#?}");
}

#[test]
fn a_connection_that_is_cut_fails_what_is_in_flight_and_watches_are_told_what_they_missed() {
    let stub = Stub::start(1);
    let load = EtcdLoad { range: 0, serializable: 0, txn: 0, watchers: 1, ..load() };
    let engine = started(patient(&stub), load).unwrap();
    engine.set_pace(open(1_000.0)).unwrap();
    wait_until("some are answered", || engine.balance().answered_ok >= 50);
    stub.behave(0, Behaviour::Silent);
    wait_until("some are in flight", || engine.balance().in_flight >= 20);
    stub.cut();
    wait_until("that is seen", || engine.balance().connections_lost == 1);
    stub.behave(0, Behaviour::Right);
    let before = engine.balance();
    assert!(before.failures.get(&ErrorClass::ConnectionLost).is_some_and(|lost| *lost >= 20), "{before:#?}");
    wait_until("it goes on", || engine.balance().answered_ok >= before.answered_ok + 50);
    let (_, balance) = stop(engine);
    assert_eq!(balance.watch_timed_out, 0, "{balance:#?}");
    assert!(balance.watch_events >= balance.answered_ok, "also of puts whose answers were lost: {balance:#?}");
}

#[test]
fn operations_follow_the_leader() {
    let stub = Stub::start(3);
    stub.lead(1);
    let config = EngineConfig { balancing: Balancing::Leader, ..patient(&stub) };
    let engine = started(config, load()).unwrap();
    engine.set_pace(open(500.0)).unwrap();
    wait_until("operations are answered", || engine.balance().answered_ok >= 50);
    assert_eq!((stub.asked(0), stub.asked(2)), (0, 0));
    stub.lead(2);
    wait_until("the new leader is asked", || stub.asked(2) >= 50);
    let old = stub.asked(1);
    wait_until("it goes on", || stub.asked(2) >= 200);
    assert_eq!((stub.asked(0), stub.asked(1)), (0, old));
    let (_, balance) = stop(engine);
    assert_eq!((balance.failed, balance.rerouted), (0, 0));
}

#[test]
fn large_values_wait_for_the_servers_window_and_come_whole() {
    let stub = Stub::start(1);
    let load = EtcdLoad { value_size: 300_000, population: 20, serializable: 0, watchers: 1, ..load() };
    let engine = started(patient(&stub), load).unwrap();
    populate(&engine);
    engine.set_pace(Pace::Closed { threads: 8 }).unwrap();
    wait_until("all sorts are answered", || engine.balance().answered_ok >= 100);
    let (_, balance) = stop(engine);
    assert_eq!((balance.failed, balance.timed_out, balance.connections_lost), (0, 0, 0), "{balance:#?}");
    assert_eq!(balance.watch_timed_out, 0);
}

#[test]
fn credentials_are_a_token_that_every_call_carries() {
    let stub = Stub::start(1);
    let wire = |password: &str| WireOptions {
        credentials: Some(Credentials { user: "root".into(), password: password.into() }),
        ..WireOptions::default()
    };
    let config = |password| EngineConfig { wire: wire(password), ..patient(&stub) };
    let works = |config| {
        let engine = started(config, load()).unwrap();
        populate(&engine);
        assert_eq!(stop(engine).1.failed, 0);
    };
    // Who asks nobody to log in says so.
    works(config("whatever"));
    stub.require("right");
    works(config("right"));
    let refused = started(config("wrong"), load()).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|told| told.contains("logging in") && told.contains("authentication failed")));
    let clear = |password| clear_etcd(&wire(password), &stub.coordinators(), &stay(), "brownout/", PATIENCE);
    assert!(matches!(clear("wrong"), Err(LoadError::Control { .. })));
    clear("right").unwrap();
    assert_eq!(stub.keys(), 0);
}

#[test]
fn a_login_that_the_server_does_not_know_any_more_is_made_again_on_another_connection() {
    let stub = Stub::start(1);
    stub.require("right");
    let credentials = Some(Credentials { user: "root".into(), password: "right".into() });
    let wire = WireOptions { credentials, ..WireOptions::default() };
    let engine = started(EngineConfig { wire, ..patient(&stub) }, load()).unwrap();
    populate(&engine);
    stub.behave(0, Behaviour::Refusing(16, "etcdserver: invalid auth token"));
    engine.set_pace(open(200.0)).unwrap();
    wait_until("that is seen", || engine.balance().connections_lost >= 1);
    stub.behave(0, Behaviour::Right);
    let before = engine.balance().answered_ok;
    wait_until("it goes on", || engine.balance().answered_ok >= before + 50);
    let (_, balance) = stop(engine);
    assert!(balance.failed >= 1, "{balance:#?}");
    assert_eq!(balance.failures.get(&ErrorClass::ConnectionLost), Some(&balance.failed), "{balance:#?}");
}

#[test]
fn a_server_that_takes_fewer_calls_at_a_time_than_the_load_needs_is_told_with_both_numbers() {
    let stub = Stub::start(1);
    stub.narrow(3);
    // Without watches there is room for one operation.
    let engine = started(patient(&stub), load()).unwrap();
    populate(&engine);
    stop(engine);
    for watchers in [1, 4] {
        let refused = started(patient(&stub), EtcdLoad { watchers, ..load() }).err();
        let told = refused.map(|error| error.to_string()).unwrap_or_default();
        let both = format!("takes 3 calls at a time (max-concurrent-streams), and the load needs {} for", watchers + 2);
        assert!(told.contains("n1") && told.contains(&both), "{told}");
    }
}

#[test]
fn only_keys_of_the_load_are_deleted_by_whichever_member_can() {
    let stub = Stub::start(2);
    for key in ["brownout", "brownout/a", "brownout/b", "brownout0"] {
        stub.put(key.as_bytes(), b"value");
    }
    stub.behave(0, Behaviour::Refusing(14, "etcdserver: no leader"));
    let wire = WireOptions::default();
    clear_etcd(&wire, &stub.coordinators(), &stay(), "brownout/", PATIENCE).unwrap();
    assert_eq!((stub.keys(), stub.asked(1) > 0), (2, true));

    stub.behave(1, Behaviour::Silent);
    let short = Duration::from_millis(200);
    let gave_up = clear_etcd(&wire, &stub.coordinators(), &stay(), "brownout/", short);
    assert!(matches!(gave_up, Err(LoadError::Deadline { .. })), "{gave_up:?}");
    assert!(clear_etcd(&wire, &[], &stay(), "brownout/", short).is_err());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_asked() {
    let stub = Stub::start(1);
    let refused = |config: EngineConfig, load: EtcdLoad| {
        let told = started(config, load).err();
        assert!(matches!(told, Some(LoadError::Config { .. })), "{told:?}");
    };
    refused(EngineConfig { threads: 2, ..patient(&stub) }, EtcdLoad { watchers: 1, ..load() });
    refused(EngineConfig { threads: 60, ..patient(&stub) }, load());
    refused(EngineConfig { balancing: Balancing::TokenAware, ..patient(&stub) }, load());
    refused(patient(&stub), EtcdLoad { population: 0, ..load() });
    let leaderless = EngineConfig { balancing: Balancing::Leader, ..patient(&stub) };
    assert!(leaderless.check().is_err(), "Cassandra has none");
    assert_eq!(stub.asked(0), 0);
}

#[test]
fn two_threads_share_keys_and_schedule() {
    let stub = Stub::start(1);
    let config = EngineConfig { threads: 2, connections: 2, ..patient(&stub) };
    let engine = started(config, load()).unwrap();
    populate(&engine);
    engine.set_pace(open(1_000.0)).unwrap();
    let before = engine.balance().answered_ok;
    wait_until("200 are answered", || engine.balance().answered_ok >= before + 200);
    let (_, balance) = stop(engine);
    assert_eq!((balance.failed, balance.stale, balance.mismatched), (0, 0, 0));
}

#[test]
fn a_server_that_speaks_something_else_is_told_by_name() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut socket, _) = listener.accept().unwrap();
        let mut room = [0; 24];
        socket.read_exact(&mut room).unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Until the client has closed it.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let coordinators = vec![crate::Coordinator { name: "n1".into(), address }];
    let told = started(EngineConfig::new(coordinators), load()).err().map(|error| error.to_string());
    assert!(told.as_ref().is_some_and(|told| told.contains("n1") && told.contains("HTTP/2")), "{told:?}");
    answers.join().unwrap();
}
