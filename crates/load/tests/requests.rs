//! Operations of several requests: pages, steps, attempts; and what they do on servers that fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
};

use brownout_load::{
    Attempts, Balance, Ended, Engine, EngineConfig, ErrorClass, Histogram, Next, Outcome, Pace, Retries, RetryDelay,
    Route, histogram,
};
use common::{
    scripted::{Asking, Diary, Plan, Reply, Scripted, Shared},
    *,
};

fn config(server: &Scripted) -> EngineConfig {
    EngineConfig { timeout: ms(60_000), bucket: ms(100), ..EngineConfig::new(vec![server.coordinator("n1")]) }
}

fn retries(tries: u32, classes: &[ErrorClass]) -> Retries {
    Retries { tries, on: classes.iter().copied().collect(), ..Retries::default() }
}

/// Runs so many operations in a closed loop.
fn run(config: EngineConfig, plan: Plan, count: u64) -> (Book, Balance, Diary) {
    let (asking, diary) = Asking::new(&[Plan { count: Some(count), ..plan }]);
    let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 8 }]).unwrap();
    wait_until("all operations have ended", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    let diary = std::mem::take(&mut *diary.lock().unwrap());
    diary.check();
    assert_eq!(balance.scheduled, count);
    (book, balance, diary)
}

fn attempts(book: &Book, count: impl Fn(&Attempts) -> u64) -> u64 {
    book.0.values().flat_map(|bucket| &bucket.operations).map(|counts| count(&counts.attempts)).sum()
}

/// Service times of the attempts that ended so.
fn attempt_times(book: &Book, outcome: Outcome) -> Histogram<u64> {
    let mut all = histogram();
    for counts in book.0.values().flat_map(|bucket| &bucket.operations) {
        counts.attempts.0.get(&outcome).into_iter().for_each(|times| all.add(times).unwrap());
    }
    all
}

#[test]
fn a_request_that_is_answered_before_it_is_wholly_sent_has_taken_the_server_no_time() {
    let server = Scripted::start(|_, _| Reply::Void);
    server.hasty.store(true, Ordering::SeqCst);
    let begun = brownout_base::clock::monotonic_ns();
    // More than the kernels on both sides have room for; nothing is tried again.
    let config = EngineConfig { retries: retries(2, &[ErrorClass::Overloaded]), ..config(&server) };
    let (book, balance, _) = run(config, Plan { padding: 32 << 20, ..Plan::new("write") }, 1);
    let elapsed = brownout_base::clock::monotonic_ns() - begun;
    assert_eq!((balance.failed, balance.failures[&ErrorClass::Invalid]), (1, 1), "{balance:#?}");
    let times = attempt_times(&book, Outcome::Failed(ErrorClass::Invalid));
    assert_eq!((times.len(), attempts(&book, Attempts::ended)), (1, 1));
    let service = times.max();
    assert!(service <= elapsed + elapsed / 500, "{service} of {elapsed}: counted from the machine's start");
}

#[test]
fn an_operation_with_pages_has_one_response_and_its_pages_have_an_account_of_their_own() {
    let server = Scripted::start(|_, _| Reply::Void);
    for next in [Next::Page, Next::Request] {
        let before = server.executed();
        let (book, balance, diary) = run(config(&server), Plan { steps: 5, next, ..Plan::new("scan") }, 100);
        assert_eq!((balance.answered_ok, balance.sent), (100, 100));
        assert_eq!(server.executed() - before, 500);
        let pages: u64 = book.0.values().flat_map(|bucket| &bucket.operations).map(|counts| counts.pages.len()).sum();
        assert_eq!(pages, if next == Next::Page { 500 } else { 0 });
        assert_eq!(book.total(|bucket| bucket.operations.iter().map(|counts| counts.rows).sum()), 5_000);
        assert_eq!(book.total(|bucket| bucket.operations.iter().map(|counts| counts.partitions).sum()), 100);
        for requests in diary.requests.values() {
            let steps: Vec<_> = requests.iter().map(|sending| (sending.step, sending.attempt)).collect();
            assert_eq!(steps, [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]);
        }
        // The response of an operation contains all its pages.
        let slowest = |pick: fn(&brownout_load::OperationCounts) -> u64| {
            book.0.values().flat_map(|bucket| &bucket.operations).map(pick).max().unwrap()
        };
        assert!(book.response(|_, _| true).max() >= slowest(|counts| counts.pages.max()));
        assert_eq!(attempts(&book, Attempts::ended), 0, "nothing is tried twice");
    }
}

#[test]
fn an_operation_is_tried_again_as_often_as_configured_and_only_after_the_configured_failures() {
    // Every operation is overloaded twice before it is served.
    let server = Scripted::start(|number, _| if number % 3 < 2 { Reply::Error(0x1001) } else { Reply::Void });
    // One at a time, so that the server's numbers are those of one operation.
    let one = |tries, class| {
        let (asking, diary) = Asking::new(&[Plan { count: Some(30), ..Plan::new("write") }]);
        let config = EngineConfig { retries: retries(tries, &[class]), ..config(&server) };
        let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
        engine.set_paces(vec![Pace::Closed { threads: 1 }]).unwrap();
        wait_until("all operations have ended", || engine.exhausted());
        let mut book = Book::default();
        let balance = stop(engine, &mut book);
        diary.lock().unwrap().check();
        (book, balance)
    };
    let (book, balance) = one(3, ErrorClass::Overloaded);
    assert_eq!((balance.answered_ok, balance.failed, balance.sent), (30, 0, 30), "{balance:#?}");
    assert_eq!(attempts(&book, Attempts::ended), 90);
    assert_eq!(attempts(&book, |attempts| attempts.count(Outcome::Ok)), 30);
    let overloaded = Outcome::Failed(ErrorClass::Overloaded);
    assert_eq!(attempts(&book, |attempts| attempts.count(overloaded)), 60);
    let (book, balance) = one(2, ErrorClass::Overloaded);
    // Two tries each: fail, fail; serve; fail, fail; …
    assert_eq!((balance.answered_ok, balance.failed), (15, 15), "{balance:#?}");
    assert_eq!(attempts(&book, Attempts::ended), 45);
    let (book, balance) = one(10, ErrorClass::Unavailable);
    assert_eq!((balance.answered_ok, balance.failed), (10, 20), "{balance:#?}");
    assert_eq!(attempts(&book, Attempts::ended), 30);
}

#[test]
fn the_response_of_an_operation_ends_with_its_last_attempt_and_contains_the_delays() {
    let server = Scripted::start(|number, _| if number % 2 == 0 { Reply::Error(0x1001) } else { Reply::Void });
    let delay = RetryDelay::Constant(ms(40));
    let retries = Retries {
        tries: 9,
        delay,
        delayed: [ErrorClass::Overloaded].into_iter().collect(),
        ..retries(9, &[ErrorClass::Overloaded])
    };
    let (asking, diary) = Asking::new(&[Plan { count: Some(10), ..Plan::new("write") }]);
    let engine = Engine::launch(EngineConfig { retries, ..config(&server) }, Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 1 }]).unwrap();
    wait_until("all operations have ended", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    let diary = diary.lock().unwrap();
    diary.check();
    assert_eq!(balance.answered_ok, 10, "{balance:#?}");
    for requests in diary.requests.values() {
        let [first, second] = requests[..] else { panic!("two attempts: {requests:?}") };
        assert_eq!((first.attempt, second.attempt, second.step), (0, 1, 0));
        assert!(second.now_ns - first.now_ns >= 30 * MS, "three quarters of the delay at least");
    }
    assert!(book.response(|_, outcome| outcome == Outcome::Ok).min() >= 30 * MS);
}

#[test]
fn an_attempt_that_is_not_answered_in_its_time_is_followed_by_another() {
    // The first answer of three comes never.
    let server = Scripted::start(|number, _| if number % 3 == 0 { Reply::Silence } else { Reply::Void });
    // Where this machine stands still, attempts are given up that would have been answered, and others follow.
    let retries = Retries { attempt_timeout: Some(ms(50)), ..retries(20, &[]) };
    let (asking, diary) = Asking::new(&[Plan { count: Some(30), ..Plan::new("read") }]);
    let engine = Engine::launch(EngineConfig { retries, ..config(&server) }, Arc::new(Shared(asking))).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 1 }]).unwrap();
    wait_until("all operations have ended", || engine.exhausted());
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    diary.lock().unwrap().check();
    assert_eq!((balance.answered_ok, balance.timed_out), (30, 0), "{balance:#?}");
    // What was given up has taken at least its time-out, and is not left out of the times of attempts.
    let given_up = attempt_times(&book, Outcome::TimedOut);
    assert!(given_up.len() >= 14, "{} attempts had no answer", given_up.len());
    assert!(given_up.max() <= 51 * MS && given_up.value_at_quantile(0.5) >= 45 * MS, "{given_up:?}");
    assert_eq!(attempts(&book, |attempts| attempts.count(Outcome::Ok)), 30);
}

#[test]
fn the_last_attempt_has_as_long_as_its_operation() {
    let server = Scripted::start(|_, _| Reply::Silence);
    let retries = Retries { attempt_timeout: Some(ms(50)), ..retries(3, &[]) };
    // Long enough for the first two attempts, also if this machine stands still meanwhile.
    let config = EngineConfig { retries, timeout: ms(2_000), ..config(&server) };
    let (book, balance, diary) = run(config, Plan::new("read"), 16);
    assert_eq!((balance.timed_out, balance.failed), (16, 0), "{balance:#?}");
    assert!(diary.ended.values().all(|(ended, requests)| (*ended, *requests) == (Ended::TimedOut, 3)));
    assert_eq!(attempts(&book, |attempts| attempts.count(Outcome::TimedOut)), 48);
    let response = book.response(|_, outcome| outcome == Outcome::TimedOut);
    assert!(response.min() >= 1_999 * MS && response.max() <= 2_001 * MS, "response = timeout");
}

#[test]
fn a_pinned_operation_waits_for_its_coordinator_and_goes_to_no_other() {
    let (first, second) = (Scripted::start(|_, _| Reply::Void), Scripted::start(|_, _| Reply::Void));
    let nodes = vec![first.coordinator("n1"), second.coordinator("n2")];
    let config = EngineConfig { timeout: ms(60_000), ..EngineConfig::new(nodes) };
    let (book, balance, _) = run(config, Plan { route: Route::Coordinator(1), ..Plan::new("q") }, 100);
    assert_eq!((first.executed(), second.executed()), (0, 100));
    assert_eq!(book.count(|_, coordinator, _| coordinator == "n2"), 100);
    assert_eq!(balance.rerouted, 0);
}

#[test]
fn a_lost_connection_is_made_anew_and_what_was_on_it_is_tried_again() {
    let server = Scripted::start(|number, _| if number % 40 == 39 { Reply::Close } else { Reply::Void });
    let retries = retries(20, &[ErrorClass::ConnectionLost]);
    let (book, balance, _) = run(EngineConfig { retries, ..config(&server) }, Plan::new("read"), 300);
    assert_eq!((balance.answered_ok, balance.failed), (300, 0), "{balance:#?}");
    assert!(balance.connections_lost >= 7, "{balance:#?}");
    let lost = attempts(&book, |attempts| attempts.count(Outcome::Failed(ErrorClass::ConnectionLost)));
    assert!(lost >= balance.connections_lost, "{lost}");
}

/// What a server does to every operation, and the one class that all operations must end in.
#[test]
fn whatever_servers_do_every_operation_ends_in_exactly_one_class_and_the_end_of_the_run_is_kept() {
    type Case = (&'static str, fn(u64) -> Reply, u64, fn(&Ended) -> bool);
    // Some wait for the next connection until their timeout, be it for the first attempt or for another.
    fn lost(ended: &Ended) -> bool {
        matches!(ended, Ended::Failed(ErrorClass::ConnectionLost) | Ended::NeverSent | Ended::TimedOut)
    }
    // What is answered at once has a timeout that no stall of this machine reaches.
    let cases: [Case; 6] = [
        ("overloaded", |_| Reply::Error(0x1001), 10_000, |ended| *ended == Ended::Failed(ErrorClass::Overloaded)),
        ("refused", |_| Reply::Error(0x2200), 10_000, |ended| *ended == Ended::Failed(ErrorClass::Invalid)),
        ("closing", |_| Reply::Close, 300, lost),
        ("garbage", |_| Reply::Garbage, 300, lost),
        ("silent", |_| Reply::Silence, 300, |ended| *ended == Ended::TimedOut),
        (
            "slow",
            |_| Reply::After(ms(30)),
            300,
            |ended| matches!(ended, Ended::Ok | Ended::TimedOut | Ended::NeverSent),
        ),
    ];
    for (name, reply, timeout, expected) in cases {
        for tries in [1, 3] {
            let server = Scripted::start(move |number, _| reply(number));
            let plans = [Plan::new("open"), Plan { steps: 2, ..Plan::new("closed") }, Plan::new("limited")];
            let (asking, diary) = Asking::new(&plans);
            let retries = Retries { tries, ..Retries::default() };
            let config = EngineConfig { retries, timeout: ms(timeout), ..config(&server) };
            let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
            let rate = brownout_units::Rate::per_second(200.0).unwrap();
            let paces = vec![open(300.0), Pace::Closed { threads: 5 }, Pace::Limited { threads: 5, rate }];
            engine.set_paces(paces).unwrap();
            let mut book = Book::default();
            for _ in 0..5 {
                sleep(ms(100));
                book.add(engine.drain());
                assert!(engine.balance().balances(), "{name}, in the middle");
            }
            let before = std::time::Instant::now();
            let (buckets, balance) = engine.stop(ms(timeout + 1_000));
            // This machine may stand still, but a stop that hangs hangs for ever.
            assert!(before.elapsed() < ms(20_000), "{name}: the end of the run is kept");
            book.add(buckets);
            check(&book, &balance);
            let diary = diary.lock().unwrap();
            diary.check();
            let wrong = diary.ended.values().find(|(ended, _)| !expected(ended));
            assert!(wrong.is_none(), "{name}, {tries} tries: {wrong:?}, {balance:#?}");
            assert_eq!(diary.ended.len() as u64, balance.scheduled, "{name}");
            assert_eq!(diary.ended(Ended::NeverSent), balance.never_sent, "{name}");
            assert_eq!(diary.ended(Ended::TimedOut), balance.timed_out, "{name}");
            assert_eq!(diary.ended(Ended::Ok), balance.answered_ok, "{name}");
        }
    }
}

/// Has the kernel throw away all that comes for a socket, as a cut cable would: no acknowledgement, no reset.
fn cut(socket: &std::net::TcpStream) {
    // One instruction: accept 0 bytes of every packet.
    let mut drop_all = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut drop_all };
    // SAFETY: the program and its one instruction live across the call; the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_connection_that_was_cut_in_silence_is_replaced_if_so_configured() {
    for dead_peer in [None, Some(ms(400))] {
        let server = Scripted::start(|_, _| Reply::Void);
        let (asking, _) = Asking::new(&[Plan::new("read")]);
        let config = EngineConfig { dead_peer, timeout: ms(200), ..config(&server) };
        let engine = Engine::launch(config, Arc::new(Shared(asking))).unwrap();
        engine.set_paces(vec![open(200.0)]).unwrap();
        wait_until("it serves", || engine.balance().answered_ok > 0);
        // Where this machine stands still, operations time out without the cut, too.
        let before = engine.balance().timed_out;
        cut(&server.sockets.lock().unwrap()[0]);
        let gone = AtomicBool::new(false);
        if dead_peer.is_some() {
            wait_until("it is replaced", || engine.balance().connections_lost > 0);
            engine.live();
            wait_until("it serves again", || engine.live().delivered > 0);
            gone.store(true, Ordering::SeqCst);
        } else {
            sleep(ms(1_500));
            assert_eq!(engine.balance().connections_lost, 0, "the kernel waits for a quarter of an hour");
        }
        let (_, balance) = engine.stop(ms(300));
        assert!(balance.balances() && balance.timed_out > before, "{before} before: {balance:#?}");
        assert_eq!(balance.connections_lost, u64::from(gone.into_inner()));
    }
}
