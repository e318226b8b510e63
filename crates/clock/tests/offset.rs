//! How far the monotonic clocks of two machines are apart: two processes, of which one lives in a time namespace whose monotonic
//! clock is another one by a known offset.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    net::{Ipv4Addr, UdpSocket},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use brownout_clock::offset::{Asker, Server};

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} within a minute");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_machine_is_ahead_of_itself_by_nothing() {
    let answering = socket();
    let server = answering.local_addr().unwrap();
    let _server = Server::start(answering, false).unwrap();
    let asker = Asker::start(socket(), server, false).unwrap();
    until("16 exchanges", || asker.exchanges().len() >= 16);
    for exchange in asker.exchanges() {
        let offset = asker.offsets().at(exchange.asked_ns).unwrap();
        assert!(offset.ahead_ns.unsigned_abs() <= offset.error_ns, "{offset:?}");
    }
}

#[test]
fn what_is_no_question_is_ignored_and_so_is_an_answer_from_elsewhere() {
    let answering = socket();
    let server = answering.local_addr().unwrap();
    let _server = Server::start(answering, false).unwrap();
    let other = socket();
    other.send_to(b"what time is it?", server).unwrap();
    let asking = socket();
    let from = asking.local_addr().unwrap();
    // Mark and form are right, and nobody has asked it.
    let mut answer = [0; 40];
    answer[..8].copy_from_slice(b"brownclk");
    other.send_to(&answer, from).unwrap();
    let asker = Asker::start(asking, server, false).unwrap();
    until("16 exchanges", || asker.exchanges().len() >= 16);
    assert!(asker.exchanges().iter().all(|exchange| exchange.asked_ns > 0 && exchange.came_ns > 0));
}

/// The other end, when this program is started again in a time namespace.
#[test]
fn answers_in_a_time_namespace() {
    let Ok(port) = std::env::var("BROWNOUT_TEST_ASKS") else { return };
    let server = (Ipv4Addr::LOCALHOST, port.parse().unwrap()).into();
    let asker = Asker::start(socket(), server, false).unwrap();
    until("40 exchanges", || asker.exchanges().len() >= 40);
    let offset = asker.offsets().at(asker.exchanges().last().unwrap().heard_ns).unwrap();
    println!("ahead {} error {}", offset.ahead_ns, offset.error_ns);
}

#[test]
fn a_machine_whose_clock_began_elsewhere_is_told_by_how_much() {
    const SECONDS: i64 = 100_000;
    let answering = socket();
    let server = answering.local_addr().unwrap();
    let _server = Server::start(answering, false).unwrap();
    let asked = Command::new("unshare")
        .args(["--time", "--fork", "--monotonic", &SECONDS.to_string()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "answers_in_a_time_namespace", "--nocapture"])
        .env("BROWNOUT_TEST_ASKS", server.port().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let number = |word: &str| -> i64 {
        let after =
            said.split(word).nth(1).unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&asked.stderr)));
        after.split_whitespace().next().unwrap().parse().unwrap()
    };
    // The asking one is ahead of us, so we are behind.
    let off = number("ahead ") + SECONDS * 1_000_000_000;
    assert!(off.abs() <= number("error "), "{said}");
    assert!(number("error ") < 20_000_000, "over one loopback: {said}");
}
