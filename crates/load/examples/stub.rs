//! A stub cluster to point clients at: `cargo run --release -p brownout-load --example stub -- --port 9042`.
//!
//! It runs until its standard input ends, and answers every line there with how many prepared statements and batches
//! it has received.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a tool of developers may say by panicking what is wrong"
)]

use std::{
    io::BufRead,
    net::{Ipv4Addr, TcpListener},
    time::Duration,
};

use rustix::thread::{CpuSet, sched_setaffinity};

use brownout_load::{
    Credentials, Identity, ServerTls, Version,
    stub::{Answer, Behaviour, Content, Freeze, Stub, StubOptions},
};

const HELP: &str = "\
--port N            CQL port, on 127.0.0.1 and, for more nodes, on the addresses after it (9042)
--nodes N           how many nodes (1)
--cpu N             stay on this CPU
--table CQL         a CREATE TABLE; may be given more than once
--canned ROWS:SIZE  SELECTs give so many rows with texts of this length, and writes are forgotten
--v4                speak version 4 of the protocol only
--password U:P      ask for this user and password
--tls FILE          speak TLS with the certificate and key in this PEM file
--delay MS          answer every prepared statement and batch so late
--freeze MS:EVERY   hold all answers back for so many ms every so many
--error CODE        answer prepared statements and batches with this error, such as 0x1001
--answer HOW        answer them with: silence, garbage, mangled, close, flipped, stale, no-row, wrong-kind, not-applied
--close-after N     close every connection after so many answers to them
--silent-schema     never answer what defines or empties tables";

fn main() {
    let mut options = StubOptions::default();
    let mut behaviour = Behaviour::default();
    let (mut port, mut nodes) = (9042, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} wants a value"));
        let pair = |text: String| {
            let (first, second) = text.split_once(':').expect("two values with a colon between them");
            (first.to_owned(), second.to_owned())
        };
        let ms = |text: &str| Duration::from_secs_f64(text.parse::<f64>().unwrap() / 1e3);
        match argument.as_str() {
            "--port" => port = value().parse().unwrap(),
            "--nodes" => nodes = value().parse().unwrap(),
            "--cpu" => pin(value().parse().unwrap()),
            "--table" => options.tables.push(value()),
            "--canned" => {
                let (rows, size) = pair(value());
                options.content = Content::Canned { rows: rows.parse().unwrap(), size: size.parse().unwrap() };
            }
            "--v4" => options.newest = Version::V4,
            "--password" => {
                let (user, password) = pair(value());
                options.credentials = Some(Credentials { user, password });
            }
            "--tls" => {
                let identity = Identity { file: value().into(), key: None, password: None };
                options.tls = Some(ServerTls::new(&identity, None).unwrap());
            }
            "--delay" => behaviour.delay = ms(&value()),
            "--freeze" => {
                let (lasting, every) = pair(value());
                options.freeze = Some(Freeze { every: ms(&every), lasting: ms(&lasting) });
            }
            "--error" => {
                let code = value();
                behaviour.answer = Answer::Error(u32::from_str_radix(code.trim_start_matches("0x"), 16).unwrap());
            }
            "--answer" => behaviour.answer = answer(&value()),
            "--close-after" => behaviour.close_after = Some(value().parse().unwrap()),
            "--silent-schema" => behaviour.silent_schema = true,
            _ => {
                println!("{HELP}");
                return;
            }
        }
    }
    let listeners = (0..nodes).map(|node| TcpListener::bind((Ipv4Addr::new(127, 0, 0, node + 1), port)).unwrap());
    let stub = Stub::serve(listeners.collect(), options).unwrap();
    (0..usize::from(nodes)).for_each(|node| stub.set(node, behaviour));
    println!("{}", stub.addresses()[0]);
    for _ in std::io::stdin().lock().lines() {
        println!("{}", stub.executed());
    }
}

fn answer(name: &str) -> Answer {
    match name {
        "silence" => Answer::Silence,
        "garbage" => Answer::Garbage,
        "mangled" => Answer::Mangled,
        "close" => Answer::Close,
        "flipped" => Answer::Flipped,
        "stale" => Answer::Stale,
        "no-row" => Answer::NoRow,
        "wrong-kind" => Answer::WrongKind,
        "not-applied" => Answer::NotApplied,
        _ => panic!("no answer is called {name}"),
    }
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}
