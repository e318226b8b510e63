//! Flows start as their own paces say, and end when they have no more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    thread::sleep,
    time::Duration,
};

use brownout_load::{Arrivals, Ended, Engine, EngineConfig, Outcome, Pace, RateProfile};
use brownout_units::Rate;
use common::{
    scripted::{Asking, Plan, Reply, Scripted, Shared, ticket},
    *,
};

fn rate(per_second: f64) -> Rate {
    Rate::per_second(per_second).unwrap()
}

fn config(server: &Scripted) -> EngineConfig {
    EngineConfig { timeout: ms(60_000), bucket: ms(100), ..EngineConfig::new(vec![server.coordinator("n1")]) }
}

#[test]
fn every_flow_keeps_its_own_pace() {
    let server = Scripted::start(|_, _| Reply::Void);
    let names = ["constant", "ramp", "closed", "idle"];
    let plans: Vec<Plan> = names.into_iter().map(Plan::new).collect();
    let (asking, diary) = Asking::new(&plans);
    let engine = Engine::launch(EngineConfig { threads: 2, ..config(&server) }, Arc::new(Shared(asking))).unwrap();
    let profile = RateProfile::ramp(rate(100.0), rate(900.0), Duration::from_secs(1)).unwrap();
    let paces = vec![
        Pace::Open { rate: rate(700.0), arrivals: Arrivals::Constant },
        Pace::Varying { profile: profile.clone(), arrivals: Arrivals::Constant },
        Pace::Closed { threads: 3 },
        Pace::Idle,
    ];
    let start = engine.set_paces(paces).unwrap().at_ns;
    sleep(ms(1_500));
    assert!(!engine.exhausted());
    let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
    wait_until("nothing is open", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    let diary = diary.lock().unwrap();
    diary.check();
    let constant = due(700.0, start, end);
    assert!((diary.drawn["constant"] as f64 - constant).abs() <= 1.0, "{} of {constant}", diary.drawn["constant"]);
    let ramp = profile.count(Duration::from_nanos(end - start));
    assert!((diary.drawn["ramp"] as f64 - ramp).abs() <= 2.0, "{} of {ramp}", diary.drawn["ramp"]);
    assert!(diary.drawn["closed"] > 10 && !diary.drawn.contains_key("idle"));
    for name in ["constant", "ramp", "closed"] {
        assert_eq!(book.count(|operation, _, _| operation == name), diary.drawn[name]);
        let counts = |bucket: &brownout_load::Bucket| {
            let of = bucket.operations.iter().filter(|counts| counts.operation == name);
            of.map(|counts| counts.rows).sum::<u64>()
        };
        assert_eq!(book.total(counts), 10 * diary.drawn[name], "ten rows each");
    }
    assert_eq!(balance.answered_ok, balance.scheduled);
}

#[test]
fn an_end_that_is_said_ahead_leaves_exactly_the_operations_before_it() {
    for (threads, late) in [(1, 0), (2, 0), (1, 1_100)] {
        let server = Scripted::start(|_, _| Reply::Void);
        let (asking, diary) = Asking::new(&[Plan::new("constant"), Plan::new("closed")]);
        let engine = Engine::launch(EngineConfig { threads, ..config(&server) }, Arc::new(Shared(asking))).unwrap();
        let open = Pace::Open { rate: rate(1_000.0), arrivals: Arrivals::Constant };
        let start = engine.set_paces(vec![open, Pace::Closed { threads: 1 }]).unwrap().at_ns;
        // So far ahead that it is said in time, also if this machine stands still meanwhile.
        let end = start + 1_000 * MS;
        sleep(ms(late));
        let ended = engine.set_paces_from(end, vec![Pace::Idle; 2]).unwrap().at_ns;
        wait_until("nothing is open", || engine.exhausted());
        assert!(engine.exhausted());
        stop(engine, &mut Book::default());
        if late == 0 {
            assert_eq!((ended, diary.lock().unwrap().drawn["constant"]), (end, 1_000));
        } else {
            assert!(ended > end, "what has begun stays begun");
        }
    }
}

#[test]
fn a_flow_that_has_no_more_ends_and_the_engine_is_exhausted_when_all_have() {
    for threads in [1, 2] {
        let server = Scripted::start(|_, _| Reply::Void);
        let names = ["open", "closed", "limited"];
        let plans: Vec<Plan> = names.into_iter().map(|name| Plan { count: Some(333), ..Plan::new(name) }).collect();
        let (asking, diary) = Asking::new(&plans);
        let engine = Engine::launch(EngineConfig { threads, ..config(&server) }, Arc::new(Shared(asking))).unwrap();
        assert!(engine.exhausted(), "nothing has begun");
        let paces = vec![
            Pace::Open { rate: rate(2_000.0), arrivals: Arrivals::Poisson },
            Pace::Closed { threads: 7 },
            Pace::Limited { threads: 5, rate: rate(3_000.0) },
        ];
        engine.set_paces(paces).unwrap();
        assert!(!engine.exhausted(), "a pace is to come");
        wait_until("all flows have ended", || engine.exhausted());
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        diary.lock().unwrap().check();
        assert_eq!((balance.scheduled, balance.answered_ok), (999, 999), "not one too many: {balance:#?}");
        assert_eq!(balance.withheld, 0);
        for name in names {
            assert_eq!(book.count(|operation, _, _| operation == name), 333);
        }
    }
}

#[test]
fn what_there_is_more_of_later_waits_and_is_not_the_end() {
    // One in ten is answered 60 ms after its timeout, which frees its place only then.
    let server = Scripted::start(|number, _| Reply::After(if number % 10 == 9 { ms(100) } else { ms(1) }));
    let names = ["open", "closed", "limited"];
    let few = |name| Plan { count: Some(60), open: 2, ..Plan::new(name) };
    let (asking, diary) = Asking::new(&names.map(few));
    let config = EngineConfig { timeout: ms(40), ..config(&server) };
    let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
    let paces = vec![
        Pace::Open { rate: rate(2_000.0), arrivals: Arrivals::Constant },
        Pace::Closed { threads: 7 },
        Pace::Limited { threads: 5, rate: rate(3_000.0) },
    ];
    engine.set_paces(paces).unwrap();
    wait_until("all flows have ended", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    diary.lock().unwrap().check();
    assert_eq!(balance.scheduled, 180, "none is left: {balance:#?}");
    assert!(balance.timed_out > 0 && balance.late > 0, "{balance:#?}");
    for name in names {
        assert_eq!(diary.lock().unwrap().drawn[name], 60);
    }
    // What was due while two were open has waited from its own time on.
    let open = book.0.values().flat_map(|bucket| &bucket.series).filter(|series| series.statement == "open");
    let wait = open.map(|series| series.wait.max()).max().unwrap();
    assert!(wait > 5_000_000, "{wait}");
    // But not for the instrument.
    let late = book.0.values().map(|bucket| bucket.lateness.max()).max().unwrap();
    assert!(late < wait, "waited {wait} for others to be over, {late} for the instrument");
}

#[test]
fn a_limited_loop_counts_partitions_and_has_no_more_operations_open_than_users() {
    // The server answers one after the other, at most 200 a second.
    let server = Scripted::start(|_, _| Reply::After(ms(5)));
    let (asking, diary) = Asking::new(&[Plan { partitions: 4, count: Some(50), ..Plan::new("visit") }]);
    let engine = Engine::launch(config(&server), Arc::new(Shared(asking))).unwrap();
    // Of 200 partitions a second, visits of 4 make 50 a second.
    engine.set_paces(vec![Pace::Limited { threads: 2, rate: rate(200.0) }]).unwrap();
    wait_until("it has ended", || {
        let balance = engine.balance();
        assert!(balance.in_flight + balance.waiting <= 2, "{balance:#?}");
        engine.exhausted()
    });
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    diary.lock().unwrap().check();
    assert_eq!((balance.scheduled, balance.answered_ok), (50, 50), "{balance:#?}");
    // One every 20 ms by their intended starts: buckets of 100 ms have 5 each, but for the first and the last.
    let scheduled: Vec<u64> = book.0.values().map(|bucket| bucket.scheduled).filter(|count| *count > 0).collect();
    assert!(scheduled.iter().filter(|count| **count == 5).count() >= 8, "{scheduled:?}");
    let partitions = |bucket: &brownout_load::Bucket| bucket.operations.iter().map(|counts| counts.partitions).sum();
    assert_eq!(book.total(partitions), 4 * balance.answered_ok);
}

#[test]
fn in_a_limited_loop_waiting_for_a_user_is_wait_but_no_lateness_and_no_timeout() {
    let server = Scripted::start(|_, _| Reply::After(ms(10)));
    let (asking, diary) = Asking::new(&[Plan::new("visit")]);
    let config = EngineConfig { timeout: ms(1_500), ..config(&server) };
    let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
    // The server answers one after the other: at most 100 a second of the 1,000 asked for.
    let start = engine.set_paces(vec![Pace::Limited { threads: 3, rate: rate(1_000.0) }]).unwrap().at_ns;
    sleep(ms(3_000));
    let (during, live) = (engine.balance(), engine.live());
    assert!(during.in_flight + during.waiting <= 3 && live.in_flight <= 3, "{during:#?}");
    assert!(during.withheld > 1_500, "{during:#?}");
    let end = engine.set_pace(Pace::Idle).unwrap().at_ns;
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    diary.lock().unwrap().check();
    let due = due(1_000.0, start, end);
    let counted = (balance.scheduled + balance.withheld) as f64;
    assert!((counted - due).abs() <= 2.0, "{counted} are accounted for, {due} were due");
    let response = book.response(|_, outcome| outcome == Outcome::Ok);
    assert!(response.max() > 2_000 * MS, "the backlog is in the response: {}", response.max());
    // What was sent last had waited longer than any timeout, and was answered all the same.
    assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
    let wait = book.0.values().flat_map(|bucket| &bucket.series).map(|series| series.wait.max()).max().unwrap();
    let late = book.0.values().map(|bucket| bucket.lateness.max()).max().unwrap();
    assert!(wait > 1_800 * MS && late < wait, "waited {wait} for users, {late} for the instrument");
}

#[test]
fn a_client_that_stands_still_is_seen_although_all_that_is_due_has_waited_for_a_user_or_a_stream() {
    // The server answers one after the other: at most 200 a second.
    let limited = Pace::Limited { threads: 2, rate: rate(1_000.0) };
    for (pace, max_pending) in [(limited, None), (open(300.0), Some(1))] {
        let server = Scripted::start(|_, _| Reply::After(ms(5)));
        let (asking, diary) = Asking::new(&[Plan::new("visit")]);
        let config = EngineConfig { max_pending, ..config(&server) };
        let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
        engine.set_paces(vec![pace]).unwrap();
        // Most of what is due has no user, or no stream.
        wait_until("there is a backlog", || {
            let balance = engine.balance();
            balance.withheld + balance.waiting > 20
        });
        // The workload wants to write into the diary, so the load's thread cannot go on.
        let held = diary.lock().unwrap();
        sleep(ms(1_000));
        drop(held);
        sleep(ms(100));
        engine.set_pace(Pace::Idle).unwrap();
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        diary.lock().unwrap().check();
        assert_eq!(balance.answered_ok, balance.scheduled, "{balance:#?}");
        let still = book.total(|bucket| bucket.stood_still_ns);
        assert!(still >= 800 * MS, "{still}");
    }
}

#[test]
fn a_limited_loop_with_free_users_starts_as_exactly_as_an_open_one() {
    let server = Scripted::start(|_, _| Reply::Void);
    let (asking, _) = Asking::new(&[Plan { count: Some(500), ..Plan::new("visit") }]);
    let engine = Engine::launch(config(&server), Arc::new(Shared(asking))).unwrap();
    let start = engine.set_paces(vec![Pace::Limited { threads: 200, rate: rate(1_000.0) }]).unwrap().at_ns;
    wait_until("it has ended", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, 500);
    // 500 partitions from `start` on, one every ms: buckets of 100 ms have 100 each, but for the first and the last.
    let last = book.0.values().filter(|bucket| bucket.scheduled > 0).map(|bucket| bucket.start_ns).max().unwrap();
    assert!((start + 399 * MS..start + 500 * MS).contains(&last), "{} after {start}", last - start);
    let full = book.0.values().filter(|bucket| bucket.scheduled == 100).count();
    assert!(full >= 3, "{:?}", book.0.values().map(|bucket| bucket.scheduled).collect::<Vec<_>>());
}

#[test]
fn an_operation_without_a_request_fails_and_is_no_burden() {
    let server = Scripted::start(|_, _| Reply::Void);
    let (asking, diary) = Asking::new(&[Plan { count: Some(50), mute: true, ..Plan::new("mute") }]);
    let engine = Engine::launch(config(&server), Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 4 }]).unwrap();
    wait_until("it has ended", || engine.exhausted());
    let balance = stop(engine, &mut Book::default());
    let diary = diary.lock().unwrap();
    diary.check();
    assert_eq!(balance.failures[&brownout_load::ErrorClass::Unwritable], 50);
    assert_eq!(diary.ended(Ended::Failed(brownout_load::ErrorClass::Unwritable)), 50);
    assert!(diary.refused.iter().all(|(_, words)| words.contains("no request")), "{:?}", diary.refused[0]);
    assert_eq!(server.executed(), 0);
}

#[test]
fn a_workload_is_given_one_pace_for_every_flow() {
    let server = Scripted::start(|_, _| Reply::Void);
    let (asking, _) = Asking::new(&[Plan::new("one"), Plan::new("other")]);
    let engine = Engine::launch(config(&server), Arc::new(Shared(asking))).unwrap();
    assert!(engine.set_paces(vec![Pace::Idle]).is_err());
    assert!(engine.set_pace(Pace::Populate { in_flight: 1 }).is_err(), "it has no population");
    assert!(engine.set_paces(vec![Pace::Limited { threads: 0, rate: rate(1.0) }, Pace::Idle]).is_err());
}

#[test]
fn operations_of_one_turn_share_a_connection_and_turns_go_round_all_of_them() {
    let order = Arc::new(Mutex::new(BTreeMap::new()));
    let asked = Arc::clone(&order);
    // The server has a thread for every connection. After a stall they come in any order; tickets tell that of sending.
    let server = Scripted::start(move |_, body| {
        asked.lock().unwrap().insert(ticket(body), std::thread::current().id());
        Reply::Void
    });
    let config = EngineConfig { connections: 4, tick: ms(40), ..config(&server) };
    let (asking, _diary) = Asking::new(&[Plan { count: Some(500), ..Plan::new("write") }]);
    let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![open(500.0)]).unwrap();
    wait_until("all operations have ended", || engine.exhausted());
    let order: Vec<_> = order.lock().unwrap().values().copied().collect();
    let connections: HashSet<_> = order.iter().collect();
    assert_eq!((order.len(), connections.len()), (500, 4));
    // 17 or 18 are due in a turn; one after the other on four connections they would change it with each.
    let changes = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes < 125, "{changes} times another connection");
}
