//! Hosts that others have made: all that links can do to packets of ours, they do to theirs, on the links that are hit and on no
//! other.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod others;
mod traffic;

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use brownout_network::{Chance, Cut, Impairment, LinkControl, Loss, Network, QueueLimit, RateLimit, Reorder};
use brownout_probe::Probes;
use brownout_units::{Delay, Share};
use common::{PATIENCE, counters, delays_ms, impair, link, quantile, samples};
use others::{CONTAINERS, LOAD, Others};
use traffic::{Family, Outcome, Way, assert_share, option, send_numbered, send_stream, settle};

/// Between containers, from one to outside, and from outside.
const WAYS: [[&str; 2]; 4] = [["a", "b"], ["c", "a"], ["b", LOAD], [LOAD, "c"]];

fn way([from, to]: [&'static str; 2], family: Family) -> Way {
    Way { from, to, family }
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

#[test]
fn a_delay_hits_its_ordered_pair_and_no_other() {
    let (others, asked_ms) = (Others::new(), 40.0);
    let network = others.attach();
    assert!(network.is_attached());
    let names: Vec<_> = network.hosts().iter().map(|host| host.name().to_owned()).collect();
    assert_eq!(names, [&CONTAINERS[..], &[LOAD]].concat());
    assert_eq!((network.mtu(), network.links().len()), (1_500, 12));
    let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
    for hit in network.links() {
        let guard = impair(&network, &[hit], Impairment::delay(Delay::from_ms(40)));
        let since = guard.change().at_ns + guard.change().error_ns;
        let count = |all: &[brownout_probe::ProbeSample], link| {
            all.iter().filter(|s| s.link == link && s.sent_ns > since && s.delay_ns.is_some()).count()
        };
        let all = samples(&probes, |all| network.links().iter().all(|link| count(all, *link) >= 20));
        let in_force: Vec<_> = all.into_iter().filter(|sample| sample.sent_ns > since).collect();
        for link in network.links() {
            let expected = if link == hit { asked_ms } else { 0.0 };
            let least = quantile(&delays_ms(&in_force, link), 0.0);
            assert!(least >= expected && least < expected + 20.0, "{hit:?} is hit, {link:?}: {least} ms");
        }
    }
    assert_eq!(network.lapses(), 0);
    let counted = network.control().take_counters().unwrap();
    assert!(counted.iter().all(|counters| counters.dropped_by_emulator() == 0), "{counted:?}");
}

#[test]
fn loss_is_of_the_share_asked_for_and_gso_packets_come_whole() {
    const PACKETS: u32 = 20_000;
    let others = Others::new();
    let network = others.attach();
    for (ends, family) in WAYS.into_iter().zip([Family::V4, Family::V6].into_iter().cycle()) {
        let way = way(ends, family);
        quiet(&network);
        let guard = impair(&network, &[way.link(&network)], lossy("10%"));
        let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, 40);
        assert_share(counters.lost, counters.offered_packets, 0.1, 1.0, &format!("{way:?}"));
        assert_eq!(counters.delivered_packets, arrived.len() as u64, "counted and seen");
        assert!(arrived.is_sorted(), "loss alone reorders nothing");
        for spared in WAYS.into_iter().map(|ends| self::way(ends, family)).filter(|spared| spared.from != way.from) {
            quiet(&network);
            let Outcome { arrived, counters } = send_numbered(&network, spared, 1_000, 40);
            assert_eq!((counters.lost, arrived.len()), (0, 1_000), "{spared:?}");
        }
        drop(guard);
    }
}

#[test]
fn what_is_cut_does_not_arrive_and_a_sender_may_be_told() {
    let others = Others::new();
    let network = others.attach();
    for ends in WAYS {
        let way = way(ends, Family::V4);
        let (sender, receiver) = way.udp(&network);
        quiet(&network);
        let guard = impair(&network, &[way.link(&network)], Impairment { cut: Some(Cut::Drop), ..Impairment::NONE });
        (0..50).for_each(|_| assert_eq!(sender.send(b"?").unwrap(), 1));
        let mut counted = counters(&network, way.link(&network));
        settle(&network, way.link(&network), &mut counted, 50);
        assert_eq!((counted.cut, counted.delivered_packets), (50, 0));
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert_eq!(receiver.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(receiver.send(b"back").unwrap(), 4);
        sender.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(sender.recv(&mut [0; 9]).unwrap(), 4, "the way back is spared");
        guard.heal().unwrap();

        let _guard = impair(&network, &[way.link(&network)], Impairment { cut: Some(Cut::Reject), ..Impairment::NONE });
        let listener = way.listen(&network);
        let refused = way.connect(&network, listener.local_addr().unwrap(), PATIENCE).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EHOSTUNREACH), "{way:?}: {refused}");
    }
}

#[test]
fn a_rate_is_kept_to_and_the_way_back_is_not_limited() {
    const BYTES: usize = 4 << 20;
    let others = Others::new();
    let network = others.attach();
    let limit =
        RateLimit { rate: "40mbit".parse().unwrap(), queue: QueueLimit::Time(Delay::from_ms(50)), overhead_bytes: 0 };
    for (ends, family) in WAYS.into_iter().zip([Family::V6, Family::V4].into_iter().cycle()) {
        let way = way(ends, family);
        let _guard = impair(&network, &[way.link(&network)], Impairment { rate: Some(limit), ..Impairment::NONE });
        let began = Instant::now();
        send_stream(way.tcp(&network), BYTES);
        let took = began.elapsed().as_secs_f64();
        let least = BYTES as f64 * 8.0 / 40e6;
        println!("{way:?}: {BYTES} bytes took {took:.2} s, at least {least:.2}");
        assert!(took >= least * 0.95, "{way:?}: {took} s");
        assert!(took < least * 3.0 + 5.0, "{way:?}: {took} s");
    }
}

#[test]
fn a_stream_arrives_intact_through_loss_and_delay_in_gso_packets() {
    let others = Others::new();
    let network = others.attach();
    for (ends, family) in WAYS.into_iter().zip([Family::V4, Family::V6].into_iter().cycle()) {
        let way = way(ends, family);
        let hit = way.link(&network);
        quiet(&network);
        let asked = Impairment { delay: Delay::from_ms(1), ..lossy("0.1%") };
        let _guard = impair(&network, &[hit], asked);
        send_stream(way.tcp(&network), 16 << 20);
        let counted = counters(&network, hit);
        println!("{way:?}: {} packets in {} frames", counted.offered_packets, counted.frames);
        assert!(counted.offered_packets > 8_000 && counted.lost > 0, "{counted:?}");
        assert!(counted.frames * 2 < counted.offered_packets, "{}", common::NO_GSO_PACKETS);
        assert_eq!(counted.dropped_by_emulator(), 0);
    }
}

#[test]
fn damaged_packets_are_noticed_by_the_receiving_kernel() {
    const PACKETS: u32 = 5_000;
    let others = Others::new();
    let network = others.attach();
    for ends in [["a", "b"], ["b", LOAD]] {
        let way = way(ends, Family::V4);
        let receiver = network.host(way.to).unwrap().id();
        let before = network.checksum_errors(receiver).unwrap();
        let corrupt = Impairment { corrupt: Chance::of(share("10%")), ..Impairment::NONE };
        quiet(&network);
        let _guard = impair(&network, &[way.link(&network)], corrupt);
        // It compares every byte of every datagram that arrives.
        let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, 40);
        assert_share(counters.corrupted, PACKETS.into(), 0.1, 1.0, &format!("{way:?}"));
        assert_eq!(arrived.len() as u64, u64::from(PACKETS) - counters.corrupted);
        let errors = network.checksum_errors(receiver).unwrap();
        assert_eq!(errors.udp - before.udp, counters.corrupted, "{way:?}: {errors:?}");
    }
}

#[test]
fn packets_come_twice_and_overtake_one_another() {
    const PACKETS: u32 = 5_000;
    let others = Others::new();
    let network = others.attach();
    for ends in [["a", "c"], [LOAD, "a"]] {
        let way = way(ends, Family::V6);
        quiet(&network);
        let guard = impair(
            &network,
            &[way.link(&network)],
            Impairment { duplicate: Chance::of(share("10%")), ..Impairment::NONE },
        );
        let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, 40);
        assert_share(counters.duplicated, PACKETS.into(), 0.1, 1.0, &format!("{way:?}"));
        assert_eq!(arrived.len() as u64, u64::from(PACKETS) + counters.duplicated);
        guard.heal().unwrap();

        let reorder = Reorder { share: share("10%"), correlation: Share::ZERO, gap: 1 };
        let asked = Impairment { reorder, ..Impairment::delay(Delay::from_ms(2)) };
        quiet(&network);
        let _guard = impair(&network, &[way.link(&network)], asked);
        let Outcome { mut arrived, counters } = send_numbered(&network, way, PACKETS, 40);
        assert!(counters.reordered > 0 && !arrived.is_sorted(), "{way:?}: {counters:?}");
        arrived.sort_unstable();
        assert!(arrived.into_iter().eq(0..PACKETS), "each came once");
    }
}

#[test]
fn a_sender_learns_the_mtu_of_a_link() {
    let others = Others::new();
    let network = others.attach();
    for (ends, family, mtu, level, name) in [
        (["a", "b"], Family::V4, 1_400, libc::IPPROTO_IP, libc::IP_MTU),
        (["b", "c"], Family::V6, 1_300, libc::IPPROTO_IPV6, libc::IPV6_MTU),
        (["a", LOAD], Family::V4, 1_300, libc::IPPROTO_IP, libc::IP_MTU),
        ([LOAD, "c"], Family::V4, 1_200, libc::IPPROTO_IP, libc::IP_MTU),
    ] {
        let way = way(ends, family);
        let hit = way.link(&network);
        quiet(&network);
        let _guard = impair(&network, &[hit], Impairment { mtu: Some(mtu), ..Impairment::NONE });
        let (sender, receiver) = way.tcp(&network);
        let path = sender.try_clone().unwrap();
        send_stream((sender, receiver), 2 << 20);
        let counted = counters(&network, hit);
        assert_eq!(option(&path, level, name), i32::from(mtu), "{way:?}: what the sender takes for its path's MTU");
        assert!(counted.too_big > 0 && counted.delivered_packets > 0, "{counted:?}");
    }
}

#[test]
fn fragments_of_datagrams_that_may_be_cut_arrive() {
    let others = Others::new();
    let network = others.attach();
    let way = way(["b", "a"], Family::V4);
    let _guard = impair(&network, &[way.link(&network)], Impairment { mtu: Some(576), ..Impairment::NONE });
    let (sender, receiver) = way.udp(&network);
    traffic::set_option(&sender, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT);
    let content: Vec<u8> = (0..1_400).map(traffic::content).collect();
    sender.send(&content).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2_048];
    let length = receiver.recv(&mut buffer).unwrap();
    assert!(buffer[..length] == content);
    assert_eq!(counters(&network, way.link(&network)).fragments, 2);
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let arrived = |seed| {
        let others = Others::new();
        let network = Network::attach(brownout_network::AttachSpec { seed, ..others.spec() }).unwrap();
        let _guard = impair(&network, &[link(&network, "a", "b")], lossy("20%"));
        send_numbered(&network, way(["a", "b"], Family::V4), 2_000, 1).arrived
    };
    let first = arrived(1);
    assert_eq!(first, arrived(1));
    assert_ne!(first, arrived(2));
}
