//! Control work through the driver, and token-aware balancing with the ring it reads.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::common::*;
use brownout_load::{
    Balancing, Coordinator, Credentials, Engine, EngineConfig, KeyValue, LoadError, Table, WireOptions, control,
    murmur3_token, stay,
    stub::{Stub, StubOptions},
};

const LIMIT: Duration = Duration::from_secs(20);

fn plain() -> WireOptions {
    WireOptions::default()
}

#[test]
fn the_schema_is_made_and_agreed_on_and_the_ring_tells_the_replicas() {
    let stub = Stub::local(3).unwrap();
    let nodes = stub.coordinators();
    let workload = KeyValue { replication: 2, ..workload() };
    let missing = control::token_ring(&plain(), &nodes, &stay(), &Table::from(&workload), LIMIT).unwrap_err();
    assert!(matches!(missing, LoadError::Control { .. }), "{missing}");

    control::run_ddl(&plain(), &nodes, &stay(), &workload.schema(), LIMIT).unwrap();
    let ring = control::token_ring(&plain(), &nodes, &stay(), &Table::from(&workload), LIMIT).unwrap();
    assert_eq!(ring.ranges.len(), 3);
    assert!(ring.ranges.is_sorted_by_key(|range| range.end));
    for range in &ring.ranges {
        assert_eq!(range.replicas.len(), 2, "{ring:?}");
    }
}

#[test]
fn token_aware_operations_go_to_the_replica_of_their_key() {
    let stub = Stub::local(3).unwrap();
    let workload = KeyValue { replication: 1, population: 30, read: 0, ..workload() };
    control::run_ddl(&plain(), &stub.coordinators(), &stay(), &workload.schema(), LIMIT).unwrap();
    let ring = control::token_ring(&plain(), &stub.coordinators(), &stay(), &Table::from(&workload), LIMIT).unwrap();
    let config = EngineConfig { balancing: Balancing::TokenAware, ..config(&stub) };
    let engine = Engine::start(config, workload.clone()).unwrap();
    populate(&engine);
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!((balance.answered_ok, balance.rerouted), (30, 0));
    let mut expected = HashMap::new();
    for key in 0..workload.population {
        let token = murmur3_token(&key.to_be_bytes());
        let owner = ring.ranges.iter().find(|range| range.end >= token).unwrap_or(&ring.ranges[0]);
        *expected.entry(owner.replicas[0]).or_insert(0) += 1;
    }
    for node in stub.coordinators() {
        let sent = book.count(|_, coordinator, _| coordinator == node.name);
        assert_eq!(sent, expected.get(&node.address.ip()).copied().unwrap_or(0), "{}", node.name);
    }
}

#[test]
fn the_ring_is_asked_for_with_the_encryption_and_the_password_of_the_load() {
    let (_directory, server, client) = certificates();
    let (_other, _, stranger) = certificates();
    let credentials = Some(Credentials { user: "ada".into(), password: "lovelace".into() });
    let options = StubOptions { tls: Some(server), credentials: credentials.clone(), ..StubOptions::default() };
    let stub = Stub::local_with(1, options).unwrap();
    let refusal = |tls| {
        let wire = WireOptions { tls: Some(tls), credentials: credentials.clone(), ..WireOptions::default() };
        let config = EngineConfig { balancing: Balancing::TokenAware, wire, ..config(&stub) };
        Engine::start(config, workload()).err().unwrap().to_string()
    };
    // Only who is let in learns that the stub has tables, but no keyspaces.
    let error = refusal(client);
    assert!(error.contains("no keyspace 'stub'"), "{error}");
    let error = refusal(stranger);
    assert!(error.contains("add who has signed it"), "{error}");
}

#[test]
fn a_marker_is_written_through_every_coordinator_and_read_back_from_it() {
    let stub = Stub::local(3).unwrap();
    let marker = control::Marker { text: "m4rk".repeat(8), replication: BTreeMap::from([("dc1".to_owned(), 3)]) };
    let written = control::write_marker(&plain(), &stub.coordinators(), &stay(), &marker, LIMIT).unwrap();
    assert_eq!(written, 3 * control::MARKED_ROWS);
    // Again, as in the next trial on the same cluster.
    assert_eq!(control::write_marker(&plain(), &stub.coordinators(), &stay(), &marker, LIMIT).unwrap(), written);
}

#[test]
fn control_work_that_cannot_succeed_ends_at_its_limit_and_says_why() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nodes = [Coordinator { name: "n1".into(), address: closed }];
    let error = control::run_ddl(&plain(), &nodes, &stay(), &workload().schema(), ms(700)).unwrap_err();
    assert!(matches!(error, LoadError::Deadline { .. }));
    assert!(error.to_string().contains("n1"), "{error}");
}

#[test]
fn control_work_ends_when_it_is_interrupted() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nodes = [Coordinator { name: "n1".into(), address: closed }];
    let asked = AtomicU32::new(0);
    let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= 2;
    let limit = control::Limit { time: Duration::from_secs(3_600), interrupted: &interrupted };
    let error = control::run_ddl(&plain(), &nodes, &stay(), &workload().schema(), limit).unwrap_err();
    assert!(matches!(error, LoadError::Interrupted { .. }), "{error}");
}
