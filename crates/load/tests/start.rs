//! A load that cannot start says where and why.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{
    io::{Error, Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use brownout_load::{Balancing, Coordinator, Engine, EngineConfig, KeyValue, LoadError, Pace, stub::Stub};
use common::{
    scripted::{Reply, Scripted},
    *,
};

fn error_of(config: EngineConfig, workload: KeyValue) -> LoadError {
    Engine::start(config, workload).err().unwrap()
}

/// A server that answers the first bytes it gets with `answer`.
fn impostor(answer: &'static [u8]) -> Coordinator {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 256];
        let _ = socket.read(&mut request);
        let _ = socket.write_all(answer);
        // Until the client hangs up.
        let _ = socket.read(&mut request);
    });
    Coordinator { name: "n9".into(), address }
}

#[test]
fn the_error_names_the_coordinator_the_step_and_the_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = Coordinator { name: "n9".into(), address: closed };
    // What it can do (nothing), and that it wants to know who is there.
    let authenticate = b"\x84\x00\x00\x00\x06\x00\x00\x00\x02\x00\x00\x84\x00\x00\x00\x03\x00\x00\x00\x17\x00\x15PasswordAuthenticator";
    let error = b"\x84\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00\x0a\x00\x04nope";
    for (node, step, reason) in [
        (refused, "connecting", "refused"),
        (impostor(b"HTTP/1.1 400 Bad Request"), "the CQL handshake", "do not begin a CQL response"),
        (impostor(b""), "the CQL handshake", "no answer"),
        (impostor(authenticate), "the CQL handshake", "PasswordAuthenticator"),
        (impostor(error), "the CQL handshake", "nope"),
    ] {
        let stub = Stub::local(1).unwrap();
        let mut nodes = stub.coordinators();
        nodes.push(node);
        let error = error_of(EngineConfig { timeout: ms(1), ..EngineConfig::new(nodes) }, workload()).to_string();
        assert!(error.contains("n9") && error.contains(step) && error.contains(reason), "{error}");
    }
}

#[test]
fn a_server_that_cannot_prepare_yet_is_asked_again_and_one_that_never_can_is_not() {
    let ok = |codes: &[u32]| {
        let server = Scripted::start(|_, _| Reply::Void);
        *server.unprepared.lock().unwrap() = codes.to_vec();
        let started = Engine::start(EngineConfig::new(vec![server.coordinator("n1")]), workload());
        (started.map(drop), server.accepted.load(Ordering::SeqCst))
    };
    // Cassandra 5.0 says the first of a table that was just made.
    let (started, connections) = ok(&[0x0000, 0x1001, 0x1002]);
    assert!(started.is_ok(), "{started:?}");
    assert!(connections > 3, "{connections}");
    let error = ok(&[0x2200]).0.unwrap_err().to_string();
    assert!(error.contains("preparing a statement") && error.contains("0x2200"), "{error}");
}

#[test]
fn a_start_that_waits_can_be_interrupted() {
    for balancing in [Balancing::RoundRobin, Balancing::TokenAware] {
        // Without the interrupt, a step of the handshake would have four hours, and the reading of the ring 15 s.
        let config = EngineConfig { balancing, timeout: ms(3_600_000), ..EngineConfig::new(vec![impostor(b"")]) };
        let asked = AtomicU32::new(0);
        let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= 2;
        let error = Engine::start_unless(config, workload(), &interrupted).err().unwrap();
        assert!(matches!(error, LoadError::Interrupted { .. }), "{error}");
        assert_eq!(asked.into_inner(), 3, "it ends with the first yes");
    }
}

#[test]
fn a_hook_that_fails_ends_the_start() {
    let stub = Stub::local(1).unwrap();
    let thread_start: brownout_load::ThreadStart = Arc::new(|| Err(Error::other("no such place")));
    let error = error_of(EngineConfig { thread_start, ..config(&stub) }, workload());
    assert!(matches!(error, LoadError::ThreadStart(_)), "{error}");
    let thread_start: brownout_load::ThreadStart = Arc::new(|| panic!("on purpose"));
    let error = error_of(EngineConfig { thread_start, ..config(&stub) }, workload());
    assert!(matches!(error, LoadError::ThreadDied { .. }), "{error}");
}

#[test]
fn impossible_configurations_are_refused_with_a_remedy() {
    let stub = Stub::local(1).unwrap();
    let cases: [fn(&mut EngineConfig, &mut KeyValue); 7] = [
        |config, _| config.coordinators.push(config.coordinators[0].clone()),
        |config, _| config.coordinators.clear(),
        |config, _| config.threads = 0,
        |config, _| config.connections = 0,
        |config, _| config.timeout = ms(0),
        |config, _| config.bucket = ms(0),
        |config, workload| (config.threads, workload.population) = (3, 2),
    ];
    for (row, spoil) in cases.iter().enumerate() {
        let (mut config, mut workload) = (config(&stub), workload());
        spoil(&mut config, &mut workload);
        let error = error_of(config, workload);
        assert!(matches!(error, LoadError::Config { .. }), "row {row}: {error}");
    }
    let engine = engine(&stub);
    for pace in [open(1e8), Pace::Closed { threads: 0 }, Pace::Populate { in_flight: u32::MAX }] {
        let error = engine.set_pace(pace.clone()).unwrap_err();
        assert!(matches!(error, LoadError::Config { .. }), "{pace:?}: {error}");
    }
}
