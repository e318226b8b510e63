//! Each way to divert packets of hosts that others have made, as far as this machine has it: what it can do, it does on the links
//! that are hit and on no other; what it cannot do, it refuses.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod others;
mod traffic;

use std::time::{Duration, Instant};

use brownout_network::{
    Chance, Cut, Impairment, LinkControl, Loss, Network, QueueLimit, RateLimit, Reorder, Way as Diverting,
};
use brownout_probe::Probes;
use brownout_units::{Delay, Share};
use common::{PATIENCE, counters, delays_ms, impair, link, quantile, samples};
use others::{LOAD, Others, links, ways};
use traffic::{Family, Outcome, Way, assert_share, option, send_singly, send_stream, settle};

/// Between containers, from one to outside, and from outside; by each family.
const WAYS: [([&str; 2], Family); 4] =
    [(["a", "b"], Family::V4), (["c", "a"], Family::V6), (["b", LOAD], Family::V6), ([LOAD, "c"], Family::V4)];

/// Those of them that can be hit.
fn hit(network: &Network) -> impl Iterator<Item = Way> {
    let links = links(network);
    let all = WAYS.map(|([from, to], family)| Way { from, to, family });
    let can_be: Vec<Way> = all.into_iter().filter(|way| links.contains(&way.link(network))).collect();
    can_be.into_iter()
}

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

/// A link that loses each packet by itself.
fn lossy(text: &str) -> Impairment {
    Impairment { loss: Loss::Independent(share(text)), ..Impairment::NONE }
}

/// Its links, none of which has carried anything that somebody counts.
fn quiet(network: &Network) {
    network.control().take_counters().unwrap();
}

/// Each way, on hosts of its own.
fn each(test: impl Fn(Diverting, &Network)) {
    for by in ways() {
        println!("packets {by}");
        let others = Others::of(by);
        let network = others.attach_by(by);
        assert_eq!(network.way(), Some(by));
        test(by, &network);
    }
}

#[test]
fn a_delay_hits_its_ordered_pair_and_no_other_and_heals() {
    each(|by, network| {
        let probes = Probes::start(network, Duration::from_millis(10)).unwrap();
        for hit in [None].into_iter().chain(links(network).into_iter().map(Some)).chain([None]) {
            let guard = hit.map(|hit| impair(network, &[hit], Impairment::delay(Delay::from_ms(40))));
            let since = brownout_base::clock::monotonic_ns();
            let is_new = |sample: &brownout_probe::ProbeSample| sample.sent_ns > since && sample.delay_ns.is_some();
            let count = |all: &[brownout_probe::ProbeSample], link| {
                all.iter().filter(|sample| sample.link == link && is_new(sample)).count()
            };
            let all = samples(&probes, |all| network.links().iter().all(|link| count(all, *link) >= 20));
            let in_force: Vec<_> = all.into_iter().filter(is_new).collect();
            for link in network.links() {
                let expected = if Some(link) == hit { 40.0 } else { 0.0 };
                let least = quantile(&delays_ms(&in_force, link), 0.0);
                let all = delays_ms(&in_force, link);
                assert!(least >= expected && least < expected + 20.0, "{by:?}, {hit:?} is hit, {link:?}: {all:?} ms");
            }
            drop(guard);
        }
        assert_eq!(network.lapses(), 0);
    });
}

#[test]
fn loss_is_of_the_share_asked_for_packet_by_packet() {
    const PACKETS: u32 = 8_000;
    each(|by, network| {
        // With GSO packets, the first way has a test of its own.
        for way in hit(network) {
            quiet(network);
            let guard = impair(network, &[way.link(network)], lossy("10%"));
            let Outcome { arrived, counters } = send_singly(network, way, PACKETS, 40);
            assert_share(counters.lost, counters.offered_packets, 0.1, 1.0, &format!("{by:?} {way:?}"));
            assert_eq!(counters.delivered_packets, arrived.len() as u64, "counted and seen");
            assert!(arrived.is_sorted(), "loss alone reorders nothing");
            guard.heal().unwrap();
            quiet(network);
            let Outcome { arrived, counters } = send_singly(network, way, 400, 40);
            assert_eq!((counters.lost, arrived.len()), (0, 400), "{by:?} {way:?}: healed");
        }
    });
}

#[test]
fn what_is_cut_does_not_arrive_and_a_sender_may_be_told() {
    each(|by, network| {
        for way in hit(network) {
            let (sender, receiver) = way.udp(network);
            quiet(network);
            let cut = Impairment { cut: Some(Cut::Drop), ..Impairment::NONE };
            let guard = impair(network, &[way.link(network)], cut);
            (0..50).for_each(|_| assert_eq!(sender.send(b"?").unwrap(), 1));
            let mut counted = counters(network, way.link(network));
            settle(network, way.link(network), &mut counted, 50);
            assert_eq!((counted.cut, counted.delivered_packets), (50, 0));
            receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            assert!(receiver.recv(&mut [0; 9]).is_err(), "{by:?} {way:?}: it arrived");
            assert_eq!(receiver.send(b"back").unwrap(), 4);
            sender.set_read_timeout(Some(PATIENCE)).unwrap();
            assert_eq!(sender.recv(&mut [0; 9]).unwrap(), 4, "the way back is spared");
            guard.heal().unwrap();

            let reject = Impairment { cut: Some(Cut::Reject), ..Impairment::NONE };
            let _guard = impair(network, &[way.link(network)], reject);
            let listener = way.listen(network);
            let refused = way.connect(network, listener.local_addr().unwrap(), PATIENCE).unwrap_err();
            let expected = if way.family == Family::V4 { libc::EHOSTUNREACH } else { libc::EACCES };
            assert_eq!(refused.raw_os_error(), Some(expected), "{by:?} {way:?}: {refused}");
        }
    });
}

#[test]
fn a_rate_is_kept_to() {
    const BYTES: usize = 2 << 20;
    let limit =
        RateLimit { rate: "40mbit".parse().unwrap(), queue: QueueLimit::Time(Delay::from_ms(50)), overhead_bytes: 0 };
    each(|by, network| {
        for way in hit(network) {
            let _guard = impair(network, &[way.link(network)], Impairment { rate: Some(limit), ..Impairment::NONE });
            let began = Instant::now();
            send_stream(way.tcp(network), BYTES);
            let (took, least) = (began.elapsed().as_secs_f64(), BYTES as f64 * 8.0 / 40e6);
            println!("{by:?} {way:?}: {BYTES} bytes took {took:.2} s, at least {least:.2}");
            assert!(took >= least * 0.95 && took < least * 3.0 + 5.0, "{by:?} {way:?}: {took} s");
        }
    });
}

#[test]
fn a_stream_arrives_intact_through_loss_and_delay() {
    each(|by, network| {
        for way in hit(network) {
            quiet(network);
            let asked = Impairment { delay: Delay::from_ms(1), ..lossy("0.1%") };
            let _guard = impair(network, &[way.link(network)], asked);
            send_stream(way.tcp(network), 8 << 20);
            let counted = counters(network, way.link(network));
            println!("{by:?} {way:?}: {} packets in {} frames", counted.offered_packets, counted.frames);
            assert!(counted.offered_packets > 4_000 && counted.lost > 0, "{counted:?}");
            assert_eq!(counted.dropped_by_emulator(), 0);
        }
    });
}

#[test]
fn damaged_packets_are_noticed_by_the_receiving_kernel() {
    const PACKETS: u32 = 2_000;
    each(|by, network| {
        for way in hit(network) {
            let receiver = network.host(way.to).unwrap().id();
            let before = network.checksum_errors(receiver).unwrap();
            let corrupt = Impairment { corrupt: Chance::of(share("10%")), ..Impairment::NONE };
            quiet(network);
            let _guard = impair(network, &[way.link(network)], corrupt);
            // It compares every byte of every datagram that arrives.
            let Outcome { arrived, counters } = send_singly(network, way, PACKETS, 40);
            assert_share(counters.corrupted, PACKETS.into(), 0.1, 1.0, &format!("{by:?} {way:?}"));
            assert_eq!(arrived.len() as u64, u64::from(PACKETS) - counters.corrupted);
            let errors = network.checksum_errors(receiver).unwrap();
            assert_eq!(errors.udp - before.udp, counters.corrupted, "{by:?} {way:?}: {errors:?}");
        }
    });
}

#[test]
fn packets_overtake_one_another_and_come_twice_where_that_can_be() {
    const PACKETS: u32 = 2_000;
    each(|by, network| {
        for way in hit(network) {
            let reorder = Reorder { share: share("10%"), correlation: Share::ZERO, gap: 1 };
            let asked = Impairment { reorder, ..Impairment::delay(Delay::from_ms(2)) };
            quiet(network);
            let guard = impair(network, &[way.link(network)], asked);
            let Outcome { mut arrived, counters } = send_singly(network, way, PACKETS, 40);
            assert!(counters.reordered > 0 && !arrived.is_sorted(), "{by:?} {way:?}: {counters:?}");
            arrived.sort_unstable();
            assert!(arrived.into_iter().eq(0..PACKETS), "each came once");
            guard.heal().unwrap();

            let twice = Impairment { duplicate: Chance::of(share("10%")), ..Impairment::NONE };
            if by.refuses(&twice).is_some() {
                let error = network.control().impair(&[way.link(network)], &twice).unwrap_err().to_string();
                assert!(error.contains("cannot duplicate") && error.contains(by.name()), "{error}");
                continue;
            }
            quiet(network);
            let _guard = impair(network, &[way.link(network)], twice);
            let Outcome { arrived, counters } = send_singly(network, way, PACKETS, 40);
            assert_share(counters.duplicated, PACKETS.into(), 0.1, 1.0, &format!("{by:?} {way:?}"));
            assert_eq!(arrived.len() as u64, u64::from(PACKETS) + counters.duplicated);
        }
    });
}

#[test]
fn a_sender_learns_the_mtu_of_a_link_where_it_can_be_smaller() {
    each(|by, network| {
        let way = Way { from: "a", to: "b", family: Family::V4 };
        let small = Impairment { mtu: Some(1_300), ..Impairment::NONE };
        if by.refuses(&small).is_some() {
            let error = network.control().impair(&[way.link(network)], &small).unwrap_err().to_string();
            assert!(error.contains("MTU") && error.contains(by.name()), "{error}");
            // Nor can what is in force be made so.
            let late = Impairment::delay(Delay::from_ms(1));
            let mut guard = impair(network, &[way.link(network)], late);
            guard.amend(&small).unwrap_err();
            assert_eq!(network.control().effective(way.link(network)).unwrap(), [late]);
            return;
        }
        quiet(network);
        let _guard = impair(network, &[way.link(network)], small);
        let (sender, receiver) = way.tcp(network);
        let path = sender.try_clone().unwrap();
        send_stream((sender, receiver), 1 << 20);
        let counted = counters(network, way.link(network));
        assert_eq!(option(&path, libc::IPPROTO_IP, libc::IP_MTU), 1_300, "{by:?}");
        assert!(counted.too_big > 0 && counted.delivered_packets > 0, "{counted:?}");
    });
}

#[test]
fn what_comes_from_outside_is_refused_where_it_cannot_be_held() {
    each(|by, network| {
        let asked = network.control().impair(&[link(network, LOAD, "a")], &Impairment::delay(Delay::from_ms(1)));
        match by.refuses_outside().is_none() {
            true => drop(asked.unwrap()),
            false => assert!(asked.unwrap_err().to_string().contains("from outside")),
        }
    });
}

#[test]
fn routes_are_refused_where_answers_would_be_dropped() {
    if !ways().contains(&Diverting::Route) {
        return;
    }
    let others = Others::new();
    for (container, strict) in others.containers.iter().zip(["2", "1", "2"]) {
        let set = |name: &str| std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), strict).unwrap();
        container.run(|| ["all", "eth0"].map(set));
    }
    let before = others.snapshots();
    let error = Network::attach_by(Diverting::Route, others.spec(), None).unwrap_err().to_string();
    assert!(error.contains("host b") && error.contains("rp_filter"), "{error}");
    others::await_as_before(&others, &before, "after being refused");
    // The other ways do not mind.
    for by in ways().into_iter().filter(|by| *by != Diverting::Route) {
        let network = others.attach_by(by);
        let way = Way { from: "b", to: "a", family: Family::V4 };
        send_stream(way.tcp(&network), 1 << 16);
        assert!(counters(&network, way.link(&network)).delivered_packets > 0, "{by:?}");
    }
}
