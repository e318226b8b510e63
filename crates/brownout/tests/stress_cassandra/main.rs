//! `brownout stress` against real Cassandra, version by version: what it prints, what it exports, and what the database
//! holds afterwards. Takes Java and Maven (or a filled cache).

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may")]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod connections;
mod driver;
mod faults;
mod paces;
mod profiles;
mod ran;
mod sizes;
mod tls;
mod writes;

use std::{
    net::Ipv4Addr,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Instant,
};

use common::cassandra::Cassandra;

/// A part of the test, by its name; it has tables of its own.
type Section = (&'static str, fn(&Cassandra));

const SECTIONS: &[&[Section]] = &[
    commands::SECTIONS,
    profiles::SECTIONS,
    writes::SECTIONS,
    sizes::SECTIONS,
    paces::SECTIONS,
    connections::SECTIONS,
    driver::SECTIONS,
];

/// All parts on one node: a start takes longer than most of them. The last one leaves it dead.
fn everything_on(version: &str, address: Ipv4Addr) {
    on(version, address, SECTIONS.iter().copied().flatten().chain(faults::SECTIONS));
}

/// These parts on one node; `SECTION=text` runs those whose names hold it.
fn on<'a>(version: &str, address: Ipv4Addr, sections: impl Iterator<Item = &'a Section>) {
    let node = Cassandra::start(version, address);
    let wanted = std::env::var("SECTION").unwrap_or_default();
    let mut failed = Vec::new();
    for (name, section) in sections {
        if !name.contains(&wanted) {
            continue;
        }
        let begun = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| section(&node)));
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        eprintln!("{version}: {name}: {word} in {:.1} s", begun.elapsed().as_secs_f64());
        failed.extend(result.err());
    }
    // The others have told of themselves.
    if let Some(panic) = failed.pop() {
        resume_unwind(panic);
    }
}

#[test]
fn what_stress_promises_holds_on_cassandra_5_0() {
    everything_on("5.0", Ipv4Addr::new(127, 0, 7, 50));
}

#[test]
#[ignore = "the same on an earlier version: make test-long"]
fn what_stress_promises_holds_on_cassandra_4_1() {
    everything_on("4.1", Ipv4Addr::new(127, 0, 7, 41));
}

#[test]
#[ignore = "each table under every compressor: make test-long"]
fn what_takes_long_holds_on_cassandra_5_0() {
    on("5.0", Ipv4Addr::new(127, 0, 7, 52), sizes::LONG.iter());
}

#[test]
fn a_password_is_asked_for_on_cassandra_5_0() {
    connections::a_password_is_asked_for("5.0", Ipv4Addr::new(127, 0, 7, 51));
}

#[test]
#[ignore = "the same on an earlier version: make test-long"]
fn a_password_is_asked_for_on_cassandra_4_1() {
    connections::a_password_is_asked_for("4.1", Ipv4Addr::new(127, 0, 7, 42));
}

#[test]
fn only_the_right_certificates_come_in_on_cassandra_5_0() {
    tls::only_the_right_certificates_come_in("5.0", Ipv4Addr::new(127, 0, 8, 50));
}

#[test]
#[ignore = "names are refused and accepted in load's own tests, and accepted by the node above: make test-long"]
fn a_certificate_for_another_host_is_refused_on_cassandra_5_0() {
    tls::a_certificate_for_another_host_is_refused_if_names_are_verified("5.0", Ipv4Addr::new(127, 0, 8, 51));
}
