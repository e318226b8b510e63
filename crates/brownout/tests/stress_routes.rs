//! Which nodes of a cluster `brownout stress` asks, by `-node` and by what dies meanwhile.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

/// Of the directory of that name only what this file needs.
mod common {
    pub mod stress;
}

use std::collections::BTreeSet;

use brownout_load::stub::{Stub, StubOptions};
use common::stress::{Done, Load, wait_for_operations};

/// Two data centres: three nodes on two racks, and two nodes on one.
fn two_sites() -> Stub {
    let places = [("east", "r1"), ("east", "r1"), ("east", "r2"), ("west", "r1"), ("west", "r1")];
    let places = places.map(|(datacenter, rack)| (datacenter.to_owned(), rack.to_owned())).to_vec();
    Stub::local_with(5, StubOptions { places, ..StubOptions::default() }).unwrap()
}

/// Starts the words against the node in this place, named so by `-node`, with these other words of it.
fn start(stub: &Stub, node: usize, more: &str, words: &str) -> Load {
    let address = stub.addresses()[node];
    Load::start_at(format!("{} {more}", address.ip()).trim_end(), address.port(), words, "")
}

/// The places of the nodes that were asked.
fn asked(stub: &Stub, done: &Done) -> BTreeSet<usize> {
    let coordinators = done.json["operations"][0]["coordinators"].as_object().unwrap();
    let place = |name: &String| stub.addresses().iter().position(|address| address.ip().to_string() == *name);
    coordinators.keys().map(|name| place(name).unwrap_or_else(|| panic!("{name}: {done}"))).collect()
}

fn rerouted(done: &Done) -> u64 {
    done.json["findings"]["rerouted"].as_u64().unwrap()
}

#[test]
fn the_nodes_asked_are_those_of_the_place_and_nobody_else_was_meant() {
    let stub = two_sites();
    let cases: [(usize, &str, &[usize]); 9] = [
        // The local data centre is that of the node named.
        (0, "", &[0, 1, 2]),
        (3, "", &[3, 4]),
        (0, "datacenter=west", &[3, 4]),
        (0, "datacenter=east rack=r2", &[2]),
        (0, "rack=r1", &[0, 1]),
        (1, "whitelist", &[1]),
        (4, "loadbalance=dc-aware", &[3, 4]),
        (0, "loadbalance=rr", &[0, 1, 2, 3, 4]),
        (0, "loadbalance=rr datacenter=west", &[3, 4]),
    ];
    for (node, more, expected) in cases {
        let done = start(&stub, node, more, "write n=200 -rate threads=4").done();
        done.adds_up();
        assert_eq!(done.class("ok"), 200, "{more}: {done}");
        assert_eq!(asked(&stub, &done), expected.iter().copied().collect(), "-node {more}: {done}");
        // Where no replica of a key is among those asked, that is what was asked for.
        assert_eq!(rerouted(&done), 0, "-node {more}: {done}");
        assert!(!done.out.contains("Sent elsewhere"), "-node {more}: {done}");
    }
}

#[test]
fn others_of_the_data_centre_stand_by_for_a_rack_and_remote_ones_only_if_asked_for() {
    // What is named dies: the rest of the data centre, or so many of each other one.
    let cases: [(&str, &str, &[usize], &[usize]); 3] = [
        ("datacenter=east rack=r2", "cl=ONE", &[2], &[0, 1, 2]),
        ("datacenter=west remote-dc=1", "cl=ONE", &[3, 4], &[0, 3, 4]),
        ("datacenter=west remote-dc=2", "cl=ONE", &[3, 4], &[0, 1, 3, 4]),
    ];
    for (more, level, die, expected) in cases {
        let stub = two_sites();
        let words = format!("write duration=3s {level} -rate open=200/s -errors ignore retries=10");
        let load = start(&stub, 0, more, &words);
        wait_for_operations(&stub, 100);
        die.iter().for_each(|node| stub.kill(*node));
        let done = load.done();
        done.adds_up();
        done.went_on();
        assert_eq!(asked(&stub, &done), expected.iter().copied().collect(), "-node {more}: {done}");
        assert!(rerouted(&done) > 0 && done.out.contains("Sent elsewhere"), "-node {more}: {done}");
    }
}

#[test]
fn a_local_consistency_keeps_other_data_centres_out_and_says_so() {
    let stub = two_sites();
    let words = "write duration=2s cl=LOCAL_QUORUM -rate open=200/s -errors ignore retries=0 -mode requestTimeout=400";
    let load = start(&stub, 3, "remote-dc=2", words);
    wait_for_operations(&stub, 100);
    [3, 4].into_iter().for_each(|node| stub.kill(node));
    let done = load.done();
    done.adds_up();
    assert_eq!(asked(&stub, &done), [3, 4].into(), "{done}");
    assert!(done.class("never-sent") > 0, "{done}");
    assert!(done.err.contains("-node remote-dc= has no effect at local-quorum"), "{done}");
}

#[test]
fn a_place_that_is_not_there_is_refused_with_those_that_are() {
    let stub = two_sites();
    for (more, named) in [("datacenter=north", "data centre 'north'"), ("datacenter=west rack=r2", "rack 'r2'")] {
        let done = start(&stub, 0, more, "write n=10 -rate threads=1").done();
        assert_eq!(done.code, Some(2), "{more}: {done}");
        assert!(done.err.contains(named) && done.err.contains("east/r1, east/r2, west/r1"), "{more}: {done}");
    }
}
