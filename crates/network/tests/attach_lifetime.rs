//! What is attached to hosts of others comes and goes without a trace: connections live on, and nothing stays, however the
//! process ends that did it. In a program of its own, which starts itself again to be stopped and killed.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod others;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_network::{
    Chance, Cut, Impairment, LinkControl, Loss, Network, NetworkError, QueueLimit, RateLimit, Reorder, Way,
};
use brownout_units::{Delay, Share};
use common::{PATIENCE, impair, link};
use others::{LOAD, Others, Talk, await_as_before, links, ways};

/// Where the other process finds the namespaces.
const NAMESPACES: &str = "BROWNOUT_TEST_NAMESPACES";
/// By which way it is to attach.
const WAY: &str = "BROWNOUT_TEST_WAY";
/// Which fault it is to make.
const FAULT: &str = "BROWNOUT_TEST_FAULT";
/// What it says when all that stands.
const STANDS: &str = "it stands";

const SLOW: Duration = Duration::from_millis(60);

/// Each kind of fault.
fn faults() -> Vec<(&'static str, Impairment)> {
    let slow = Impairment::delay(Delay::from_ms(60));
    let rate =
        RateLimit { rate: "10mbit".parse().unwrap(), queue: QueueLimit::Time(Delay::from_ms(50)), overhead_bytes: 0 };
    vec![
        ("delay", slow),
        ("loss", Impairment { loss: Loss::Independent("20%".parse().unwrap()), ..Impairment::NONE }),
        ("rate", Impairment { rate: Some(rate), ..Impairment::NONE }),
        ("mtu", Impairment { mtu: Some(1_000), ..Impairment::NONE }),
        ("drop", Impairment { cut: Some(Cut::Drop), ..Impairment::NONE }),
        ("reject", Impairment { cut: Some(Cut::Reject), ..Impairment::NONE }),
        ("duplicate", Impairment { duplicate: Chance::of("20%".parse().unwrap()), ..Impairment::NONE }),
        ("corrupt", Impairment { corrupt: Chance::of("20%".parse().unwrap()), ..Impairment::NONE }),
        (
            "reorder",
            Impairment { reorder: Reorder { share: "20%".parse().unwrap(), correlation: Share::ZERO, gap: 1 }, ..slow },
        ),
    ]
}

/// Conversations between containers, over both families, and with what is outside, both ways.
fn talks(others: &Others) -> Vec<Talk> {
    let [a, b, c] = &others.containers[..] else { unreachable!() };
    vec![
        Talk::between(a, b, "10.99.0.3"),
        Talk::between(b, a, "fd99::2"),
        Talk::between(c, &others.load, "10.99.0.1"),
        Talk::between(&others.load, a, "fd99::2"),
    ]
}

#[test]
fn connections_survive_attaching_a_fault_and_detaching() {
    for by in ways() {
        let others = Others::of(by);
        let mut talks = talks(&others);
        let before = others.snapshots();
        talks.iter_mut().for_each(|talk| assert!(talk.shortest() < SLOW / 2));
        let network = others.attach_by(by);
        talks.iter_mut().for_each(|talk| assert!(talk.shortest() < SLOW / 2));
        // All that passes from now on is on some link of the network, but for what a way cannot hold.
        let guard = impair(&network, &links(&network), Impairment::delay(Delay::from_ms(60)));
        for (number, talk) in talks.iter_mut().enumerate() {
            let is_with_outside = number >= 2;
            let times = if is_with_outside && by.refuses_outside().is_some() { 1 } else { 2 };
            let took = talk.shortest();
            assert!(took >= SLOW * times, "{by:?}, there and back: {took:?}");
        }
        let counted = network.control().take_counters().unwrap();
        let carried = counted.iter().filter(|counters| counters.delivered_packets > 0).count();
        let expected = if by.refuses_outside().is_none() { 6 } else { 4 };
        assert_eq!(carried, expected, "{by:?}, of each pair that talks both links: {counted:?}");
        // With the fault in force: what is held comes at once.
        let asked = Instant::now();
        drop(network);
        println!("{by:?}: detached within {:?}", asked.elapsed());
        drop(guard);
        talks.iter_mut().for_each(|talk| talk.await_answers("after detaching", |took| took < SLOW / 2));
        await_as_before(&others, &before, "after detaching");
    }
}

#[test]
fn what_is_held_when_it_ends_arrives() {
    for by in ways() {
        let others = Others::of(by);
        let [a, b, _] = &others.containers[..] else { unreachable!() };
        let receiver = b.run(|| std::net::UdpSocket::bind("10.99.0.3:0").unwrap());
        let sender = a.run(|| std::net::UdpSocket::bind("10.99.0.2:0").unwrap());
        let network = others.attach_by(by);
        let guard = impair(&network, &[link(&network, "a", "b")], Impairment::delay(Delay::from_secs(3_600)));
        for n in 0..100u8 {
            sender.send_to(&[n], receiver.local_addr().unwrap()).unwrap();
        }
        let end = Instant::now() + PATIENCE;
        let mut offered = 0;
        while offered < 100 {
            offered += common::counters(&network, link(&network, "a", "b")).offered_packets;
            assert!(Instant::now() < end, "{by:?}: {offered} of 100 came");
        }
        drop(network);
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut byte = [0];
        for n in 0..100u8 {
            assert_eq!((receiver.recv(&mut byte).unwrap(), byte), (1, [n]), "{by:?}: in order");
        }
        drop(guard);
    }
}

#[test]
fn whoever_comes_second_is_told_who_was_first() {
    for by in ways() {
        let others = Others::of(by);
        let network = others.attach_by(by);
        let before = others.snapshots();
        match Network::attach_by(by, others.spec(), None) {
            Err(error @ NetworkError::AlreadyAttached { .. }) => {
                let said = error.to_string();
                let own = format!("process {}", std::process::id());
                let (what, holder) = match by {
                    Way::Forward => ("eth0", own.as_str()),
                    Way::Queue => ("what comes in", own.as_str()),
                    Way::Route => ("eth0", "brownout0"),
                };
                assert!(said.contains("host a") && said.contains(what) && said.contains(holder), "{said}");
            }
            other => panic!("{by:?}: {other:?}"),
        }
        await_as_before(&others, &before, "after being refused");
        let _guard = impair(&network, &[link(&network, "a", "b")], Impairment::delay(Delay::from_ms(60)));
        let [a, b, _] = &others.containers[..] else { unreachable!() };
        assert!(Talk::between(a, b, "10.99.0.3").shortest() >= SLOW, "{by:?}: the first goes on");
    }
}

#[test]
fn a_host_that_was_started_again_is_attached_to_again() {
    for by in ways() {
        println!("packets {by}");
        let mut others = Others::of(by);
        let network = others.attach_by(by);
        let late = [link(&network, "c", "a"), link(&network, LOAD, "c")];
        let late: Vec<_> = late.into_iter().filter(|link| links(&network).contains(link)).collect();
        let guard = impair(&network, &late, Impairment::delay(Delay::from_ms(60)));
        let [a, b, _] = &others.containers[..] else { unreachable!() };
        let mut spared = Talk::between(a, b, "10.99.0.3");
        others.restart(2);
        let [a, _, c] = &others.containers[..] else { unreachable!() };
        if by == Way::Route {
            c.run(|| std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "2").unwrap());
        }
        let mut again = vec![Talk::between(c, a, "10.99.0.2"), Talk::between(&others.load, c, "10.99.0.4")];
        again.truncate(late.len());
        network.reattach(others.container(2)).unwrap();
        network.reattach(others.outside()).unwrap();
        for talk in &mut again {
            talk.await_answers("after reattaching", |took| took >= SLOW);
            assert!(talk.shortest() >= SLOW, "{by:?}");
        }
        assert!(spared.shortest() < SLOW / 2, "{by:?}");
        let inside = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        assert_eq!(network.host("c").unwrap().run(inside).unwrap(), others.containers[2].run(inside));
        guard.heal().unwrap();
        again[0].await_answers("after healing", |took| took < SLOW / 2);
        let unknown = network.reattach(brownout_network::AttachedSpec { name: "d".into(), ..others.container(2) });
        assert!(unknown.unwrap_err().to_string().contains("no host named d"));
    }
}

#[test]
fn a_host_may_come_back_at_another_address() {
    let mut others = Others::new();
    let network = others.attach();
    let _guard = impair(&network, &[link(&network, LOAD, "c")], Impairment::delay(Delay::from_ms(60)));
    others.restart(2);
    others.containers[2].says("ip address add 10.99.0.44/24 dev eth0");
    let moved = || {
        let mut moved = others.container(2);
        moved.addresses = vec!["10.99.0.44".parse().unwrap()];
        moved
    };
    network.reattach(moved()).unwrap();
    network.reattach(others.outside()).unwrap();
    assert_eq!(network.host("c").unwrap().address().to_string(), "10.99.0.44");
    let mut talk = Talk::between(&others.load, &others.containers[2], "10.99.0.44");
    assert!(talk.shortest() >= SLOW, "what goes to the new address is on its link");
}

#[test]
fn nobody_is_left_behind_where_only_one_host_can_be_attached_to() {
    let others = Others::new();
    let before = others.snapshots();
    let mut spec = others.spec();
    spec.hosts[2].exits[0].interface = "eth7".into();
    let error = Network::attach(spec).unwrap_err().to_string();
    assert!(error.contains("eth7") && error.contains("host c"), "{error}");
    await_as_before(&others, &before, "after an interface that is not there");
}

/// No test by itself: what the other process does.
#[test]
#[ignore = "is started by the tests below, to be stopped and killed"]
fn attaches_and_waits() {
    let [Ok(namespaces), Ok(way), Ok(fault)] = [NAMESPACES, WAY, FAULT].map(std::env::var) else { return };
    let others = Others::at(&namespaces);
    let network = others.attach_by(Way::ALL.into_iter().find(|known| known.name() == way).unwrap());
    let impairment = faults().into_iter().find(|(name, _)| *name == fault).unwrap().1;
    let _guard = impair(&network, &links(&network), impairment);
    println!("{STANDS}");
    thread::sleep(PATIENCE * 2);
}

/// Another process that has attached to these hosts in this way and made a fault of them.
fn attached_elsewhere(others: &Others, by: Way, fault: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attaches_and_waits", "--ignored", "--nocapture"])
        .env(NAMESPACES, others.paths())
        .env(WAY, by.name())
        .env(FAULT, fault)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(STANDS)), "{by:?}, {fault}: it did not attach");
    child
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: takes numbers alone; the child has not been waited for, so that its number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

#[test]
fn a_killed_process_leaves_nothing_and_connections_live_on() {
    for by in ways() {
        let others = Others::of(by);
        let mut talks = talks(&others);
        talks.iter_mut().for_each(|talk| assert!(talk.ask() < PATIENCE));
        let before = others.snapshots();
        for (fault, _) in faults().into_iter().filter(|(_, fault)| by.refuses(fault).is_none()) {
            let what = format!("{by:?}, {fault}");
            let mut child = attached_elsewhere(&others, by, fault);
            assert!(others.snapshots() != before, "{what}: nothing was attached, so that nothing could be left");
            if fault == "delay" {
                talks.iter_mut().for_each(|talk| assert!(talk.shortest() >= SLOW, "{what}"));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            talks.iter_mut().for_each(|talk| talk.await_answers(&what, |took| took < SLOW / 2));
            await_as_before(&others, &before, &what);
        }
    }
}

#[test]
fn while_the_process_hangs_packets_pass_after_two_seconds() {
    for by in ways().into_iter().filter(|by| *by != Way::Route) {
        let others = Others::of(by);
        let [a, b, _] = &others.containers[..] else { unreachable!() };
        let mut talk = Talk::between(a, b, "10.99.0.3");
        let mut child = attached_elsewhere(&others, by, "delay");
        assert!(talk.shortest() >= SLOW * 2);
        signal(&child, libc::SIGSTOP);
        let stopped = Instant::now();
        // The first of these stays with the process, and is sent again when packets pass.
        talk.await_answers("after the process was stopped", |took| took < SLOW / 2);
        let passed = stopped.elapsed();
        println!("{by:?}: packets passed {passed:?} after the process was stopped");
        // Refreshed half a second before at most, and TCP tries again at growing intervals.
        assert!(passed >= Duration::from_millis(1_200) && passed < Duration::from_secs(15), "{by:?}: {passed:?}");
        signal(&child, libc::SIGCONT);
        talk.await_answers("after it went on", |took| took >= SLOW * 2);
        child.kill().unwrap();
        child.wait().unwrap();
        talk.await_answers("after it was killed", |took| took < SLOW / 2);
    }
}

#[test]
fn while_the_process_hangs_routes_still_lead_to_it_until_it_goes_on_or_is_killed() {
    if !ways().contains(&Way::Route) {
        return;
    }
    for ending in [libc::SIGCONT, libc::SIGKILL] {
        let others = Others::of(Way::Route);
        let [a, b, _] = &others.containers[..] else { unreachable!() };
        let mut talk = Talk::between(a, b, "10.99.0.3");
        let mut child = attached_elsewhere(&others, Way::Route, "delay");
        assert!(talk.shortest() >= SLOW * 2);
        signal(&child, libc::SIGSTOP);
        let asking = thread::spawn(move || {
            talk.ask();
            talk
        });
        thread::sleep(Duration::from_secs(4));
        assert!(!asking.is_finished(), "who carried it?");
        signal(&child, ending);
        let mut talk = asking.join().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        talk.await_answers("after it was killed", |took| took < SLOW / 2);
    }
}
