//! The data path through the driver keeps the same account as our own; and what bounds and orders nodes on both.

use std::{sync::Arc, thread::sleep};

use crate::common::{
    scripted::{Asking, Plan, Shared},
    *,
};
use brownout_load::{
    Balancing, DataPath, Engine, EngineConfig, ErrorClass, KeyValue, Outcome, Pace, Protocol, Retries, Route, Version,
    WireOptions, control, stay,
    stub::{Answer, Behaviour, Stub, StubOptions},
};

fn driven(stub: &Stub) -> EngineConfig {
    EngineConfig { path: DataPath::Driver, ..config(stub) }
}

fn failed(balance: &brownout_load::Balance, class: ErrorClass) -> u64 {
    balance.failures.get(&class).copied().unwrap_or(0)
}

#[test]
fn without_a_fault_every_operation_is_answered_in_time_and_verified() {
    let stub = Stub::local(3).unwrap();
    control::run_ddl(&WireOptions::default(), &stub.coordinators(), &stay(), &workload().schema(), ms(20_000)).unwrap();
    for balancing in [Balancing::RoundRobin, Balancing::TokenAware] {
        let config = EngineConfig { timeout: ms(60_000), balancing, ..driven(&stub) };
        let engine = Engine::start(config, workload()).unwrap();
        populate(&engine);
        let before = (engine.balance(), stub.executed());
        let start = engine.set_pace(open(500.0)).unwrap().at_ns;
        sleep(ms(1_000));
        let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
        assert_eq!((balance.stale, balance.empty, balance.mismatched), (0, 0, 0));
        let scheduled = balance.scheduled - before.0.scheduled;
        assert!((scheduled as f64 - due(500.0, start, end)).abs() <= 1.0, "{balance:#?}");
        assert_eq!(stub.executed() - before.1, scheduled);
        for node in ["n1", "n2", "n3"] {
            let share = book.count(|_, coordinator, _| coordinator == node);
            assert!(share > balance.sent / 5, "{node} has {share} of {}", balance.sent);
        }
    }
}

#[test]
fn what_the_server_does_has_the_same_class_as_on_our_own_connections() {
    let stub = Stub::local(2).unwrap();
    for (answer, class) in [
        (Answer::Error(0x1000), ErrorClass::Unavailable),
        (Answer::Error(0x1001), ErrorClass::Overloaded),
        (Answer::Error(0x1002), ErrorClass::Bootstrapping),
        (Answer::Error(0x1100), ErrorClass::WriteTimeout),
        (Answer::Error(0x1200), ErrorClass::ReadTimeout),
        (Answer::Error(0x0000), ErrorClass::ServerError),
        (Answer::Error(0x2200), ErrorClass::Invalid),
        (Answer::Close, ErrorClass::ConnectionLost),
        (Answer::Garbage, ErrorClass::ConnectionLost),
        (Answer::Flipped, ErrorClass::Mismatch),
    ] {
        stub.set(1, Behaviour::default());
        let engine = Engine::start(EngineConfig { timeout: ms(60_000), ..driven(&stub) }, workload()).unwrap();
        populate(&engine);
        stub.set(1, Behaviour::answering(answer));
        engine.set_pace(open(500.0)).unwrap();
        sleep(ms(400));
        stub.set(1, Behaviour::default());
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        let of_class = failed(&balance, class);
        assert!(of_class > 0 && of_class == balance.failed, "{answer:?}: {balance:#?}");
        let there = book.count(|_, node, outcome| node == "n2" && outcome == Outcome::Failed(class));
        assert_eq!(there, of_class, "{answer:?} is told of the node that did it");
    }
}

#[test]
fn what_is_answered_after_its_timeout_is_late_and_measured() {
    let stub = Stub::local(1).unwrap();
    populate_ahead(&stub);
    let engine = Engine::start(driven(&stub), workload()).unwrap();
    stub.set(0, Behaviour::slow(ms(700)));
    engine.set_pace(open(300.0)).unwrap();
    sleep(ms(500));
    engine.set_pace(Pace::Idle).unwrap();
    wait_until("the late answers are in", || {
        let balance = engine.balance();
        balance.in_flight == 0 && balance.late == balance.timed_out
    });
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert!(balance.late > 100 && balance.failed == 0, "{balance:#?}");
    assert!(book.response(|_, outcome| outcome == Outcome::Late).min() >= 699 * MS);
}

#[test]
fn a_freeze_is_felt_by_all_that_was_due_in_it() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(EngineConfig { timeout: ms(60_000), ..driven(&stub) }, workload()).unwrap();
    populate(&engine);
    engine.set_pace(open(500.0)).unwrap();
    sleep(ms(200));
    let begin = Moment::of(|| stub.set(0, Behaviour::frozen()));
    sleep(ms(500));
    let end = Moment::of(|| stub.set(0, Behaviour::default()));
    sleep(ms(300));
    let mut book = Book::default();
    stop(engine, &mut book);
    let response = book.response(|_, outcome| outcome == Outcome::Ok);
    let half = (end.before - begin.after) / 2;
    let waited = response.count_between(half, u64::MAX) as f64;
    let expected = 500.0 * half as f64 / 1e9;
    assert!(waited >= 0.95 * expected - 2.0, "{waited} of {expected} waited for half of the freeze");
}

#[test]
fn a_request_is_tried_again_only_if_that_is_asked_for() {
    let stub = Stub::local(1).unwrap();
    let retries = Retries { tries: 3, on: [ErrorClass::Overloaded].into_iter().collect(), ..Retries::default() };
    for (retries, each) in [(Retries::default(), 1), (retries, 3)] {
        stub.set(0, Behaviour::default());
        let config = EngineConfig { timeout: ms(60_000), retries, ..driven(&stub) };
        let engine = Engine::start(config, workload()).unwrap();
        stub.set(0, Behaviour::answering(Answer::Error(0x1001)));
        let before = stub.executed();
        engine.set_pace(open(200.0)).unwrap();
        sleep(ms(300));
        let balance = stop(engine, &mut Book::default());
        assert_eq!(stub.executed() - before, each * balance.sent);
        assert_eq!(failed(&balance, ErrorClass::Overloaded), balance.sent);
    }
}

#[test]
fn no_more_is_open_than_may_be_pending_and_the_rest_waits() {
    let stub = Stub::local(1).unwrap();
    for path in [DataPath::Own, DataPath::Driver] {
        stub.set(0, Behaviour::default());
        let config = EngineConfig { path, connections: 2, max_pending: Some(3), ..config(&stub) };
        let engine = Engine::start(config, workload()).unwrap();
        populate(&engine);
        stub.set(0, Behaviour::frozen());
        engine.set_pace(open(1_000.0)).unwrap();
        wait_until("some wait", || engine.balance().waiting > 20);
        assert_eq!(engine.balance().in_flight, 6, "{path:?}");
        sleep(ms(600));
        stub.set(0, Behaviour::default());
        let balance = stop(engine, &mut Book::default());
        assert!(balance.never_sent > 20, "{balance:#?}");
    }
}

#[test]
fn nodes_of_a_farther_tier_are_asked_only_while_no_nearer_one_is_connected() {
    let stub = Stub::local(3).unwrap();
    for path in [DataPath::Own, DataPath::Driver] {
        let config = EngineConfig { path, tiers: vec![2, 1], timeout: ms(60_000), ..config(&stub) };
        let engine = Engine::start(config, workload()).unwrap();
        populate(&engine);
        engine.set_pace(open(500.0)).unwrap();
        sleep(ms(300));
        let mut book = Book::default();
        book.add(engine.drain());
        assert_eq!(book.count(|_, node, _| node == "n3"), 0, "{path:?}");
        assert!(book.count(|_, node, _| node == "n1") > 0 && book.count(|_, node, _| node == "n2") > 0);
        for near in [0, 1] {
            stub.set(near, Behaviour::answering(Answer::Close));
        }
        let far = |engine: &Engine, book: &mut Book| {
            book.add(engine.drain());
            book.count(|_, node, outcome| node == "n3" && outcome == Outcome::Ok) > 10
        };
        let start = std::time::Instant::now();
        while !far(&engine, &mut book) {
            assert!(start.elapsed().as_secs() < 20, "{path:?}: nobody asks the farther node");
            sleep(ms(20));
        }
        for near in [0, 1] {
            stub.set(near, Behaviour::default());
        }
        stop(engine, &mut book);
    }
}

#[test]
fn an_operation_bound_to_a_node_goes_there_and_nowhere_else() {
    let stub = Stub::local(3).unwrap();
    let plan = Plan { count: Some(60), route: Route::Coordinator(1), ..Plan::new("bound") };
    let (asking, _) = Asking::new(&[plan]);
    let engine = Engine::launch(driven(&stub), Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 4 }]).unwrap();
    wait_until("all operations have ended", || engine.exhausted());
    let mut book = Book::default();
    stop(engine, &mut book);
    assert_eq!(book.count(|_, node, _| node == "n2"), 60);
}

#[test]
fn what_the_driver_cannot_do_is_said_at_the_start() {
    let (_directory, server, client) = certificates();
    let (_other, _, stranger) = certificates();
    let sealed = Stub::local_with(1, StubOptions { tls: Some(server), ..StubOptions::default() }).unwrap();
    let wire = |tls| WireOptions { tls: Some(tls), ..WireOptions::default() };
    let start =
        |wire| Engine::start(EngineConfig { wire, ..driven(&sealed) }, KeyValue { population: 10, ..workload() });
    let engine = start(wire(client)).unwrap();
    populate(&engine);
    let balance = stop(engine, &mut Book::default());
    assert!(balance.answered_ok >= 10, "encrypted: {balance:#?}");
    let newest = WireOptions { protocol: Protocol::Exactly(Version::V5), ..WireOptions::default() };
    for (wire, words) in [(wire(stranger), "add who has signed it"), (newest, "version 4")] {
        let error = start(wire).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
    let plain = Stub::local(1).unwrap();
    let missing = KeyValue { table: "nowhere".into(), ..workload() };
    let error = Engine::start(driven(&plain), missing).err().unwrap().to_string();
    assert!(error.contains("preparing") && error.contains("nowhere"), "{error}");
}
