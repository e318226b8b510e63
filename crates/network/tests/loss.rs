//! Loss: asked and measured, per wire packet, through real namespaces.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod traffic;

use std::{collections::HashSet, time::Instant};

use brownout_network::{Impairment, Link, LinkCounters, Loss, Network};
use common::{PATIENCE, counters, impair, link, network, settled_counters, start, udp_pair};
use traffic::{Family, Way, set_segmentation_offload};

/// The 99.9 % interval of the binomial distribution (normal approximation, which at these numbers
/// is wider than what is left to chance by less than a packet); none or all exactly.
fn assert_share(lost: u64, packets: u64, share: f64, what: &str) {
    let mean = packets as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    println!(
        "{what}: asked {}%, lost {lost} of {packets} ({:.3}%)",
        share * 100.0,
        lost as f64 / packets as f64 * 100.0
    );
    let room = if deviation == 0.0 { 0.0 } else { 3.29 * deviation + 1.0 };
    assert!((lost as f64 - mean).abs() <= room, "{what}: lost {lost}, expected {mean} ± {deviation}");
}

fn lossy(network: &Network, hit: Link, share: &str) -> brownout_network::ImpairmentGuard {
    impair(network, &[hit], Impairment { loss: Loss::Independent(share.parse().unwrap()), ..Impairment::NONE })
}

/// What happened to numbered datagrams.
struct Outcome {
    /// Their numbers, in order of arrival.
    arrived: Vec<u32>,
    /// What their link counted.
    counters: LinkCounters,
}

/// Sends numbered datagrams in GSO packets of `together`.
fn send_numbered(network: &Network, [from, to]: [&str; 2], datagrams: u32, together: u32) -> Outcome {
    let (sender, receiver) = udp_pair(network, from, to);
    let (link, mut arrived) = (link(network, from, to), Vec::new());
    let mut counted = counters(network, link);
    for first in (0..datagrams).step_by(together as usize) {
        let numbers = first..first + together;
        let batch: Vec<_> = numbers.clone().map(|n| [&n.to_be_bytes()[..], &[n as u8; 996]].concat()).collect();
        sender.send_gso_packet(&batch);
        // One GSO packet at a time: what a socket can hold is limited, and the emulator must not be
        // blamed for what does not fit.
        let end = Instant::now() + PATIENCE;
        while counted.lost + counted.delivered_packets < u64::from(numbers.end) {
            assert!(Instant::now() < end, "{counted:?}");
            counted.add(&counters(network, link));
        }
        for datagram in receiver.receive_all() {
            let number = u32::from_be_bytes(datagram[..4].try_into().unwrap());
            assert!(datagram[4..].iter().all(|byte| *byte == number as u8), "datagram {number} was mangled");
            arrived.push(number);
        }
    }
    let frames = datagrams.div_ceil(together);
    assert_eq!(counted.frames, u64::from(frames), "{together} together: {}", common::NO_GSO_PACKETS);
    Outcome { arrived, counters: counted }
}

#[test]
fn the_share_asked_for_is_lost_on_the_link_it_hits_and_nothing_on_the_others() {
    const PACKETS: u32 = 20_000;
    for (asked, share) in [("0%", 0.0), ("0.5%", 0.005), ("5%", 0.05), ("100%", 1.0)] {
        let network = network(3);
        let hit = link(&network, "h0", "h1");
        let _guard = lossy(&network, hit, asked);
        let Outcome { arrived, counters } = send_numbered(&network, ["h0", "h1"], PACKETS, 10);
        assert_eq!(counters.offered_packets, u64::from(PACKETS));
        assert_share(counters.lost, counters.offered_packets, share, asked);
        assert_eq!(counters.delivered_packets, arrived.len() as u64, "counted and seen");
        assert_eq!(counters.offered_bytes, u64::from(PACKETS) * 1_028);
        assert_eq!(counters.delivered_bytes, arrived.len() as u64 * 1_028);
        assert!(arrived.is_sorted(), "loss alone reorders nothing");
        for spared in [["h1", "h0"], ["h0", "h2"]] {
            let Outcome { arrived, counters } = send_numbered(&network, spared, 2_000, 40);
            assert_eq!((counters.lost, arrived.len()), (0, 2_000), "{spared:?}");
        }
    }
}

#[test]
fn packets_of_a_gso_packet_are_lost_one_by_one() {
    const PACKETS: u32 = 20_000;
    for together in [1, 40] {
        let network = network(2);
        let _guard = lossy(&network, link(&network, "h0", "h1"), "10%");
        let arrived: HashSet<u32> =
            send_numbered(&network, ["h0", "h1"], PACKETS, together).arrived.into_iter().collect();
        let lost = |n: u32| !arrived.contains(&n);
        assert_share((0..PACKETS).filter(|n| lost(*n)).count() as u64, u64::from(PACKETS), 0.1, "datagrams");
        // Neighbours are lost together no more often than by chance; whole GSO packets would be 10 %.
        let pairs = (1..PACKETS).filter(|n| lost(n - 1) && lost(*n)).count() as u64;
        println!("{together} together: {pairs} neighbours lost together, by chance {}", f64::from(PACKETS) * 0.01);
        assert!((120..290).contains(&pairs), "{pairs}");
    }
}

#[test]
fn the_same_seed_loses_the_same_packets_however_they_are_bundled() {
    let arrived = |seed, together| {
        let network = start(brownout_network::NetworkSpec { seed, ..common::spec(2) });
        let _guard = lossy(&network, link(&network, "h0", "h1"), "20%");
        send_numbered(&network, ["h0", "h1"], 2_000, together).arrived
    };
    let first = arrived(1, 1);
    assert_eq!(first, arrived(1, 1));
    assert_eq!(first, arrived(1, 40));
    assert_ne!(first, arrived(2, 1));
}

#[test]
fn a_tcp_stream_arrives_intact_through_loss_with_and_without_gso_packets() {
    const BYTES: usize = 40 << 20;
    for segmentation_offload in [true, false] {
        let network = network(2);
        set_segmentation_offload(&network, "h0", segmentation_offload);
        let hit = link(&network, "h0", "h1");
        let _guard = lossy(&network, hit, "1%");
        traffic::send_stream(Way::of(Family::V4).tcp(&network), BYTES);
        let counters = settled_counters(&network, hit);
        let what = format!("TCP, segmentation offload {segmentation_offload}");
        assert!(counters.offered_packets > 20_000, "{what}: {} packets", counters.offered_packets);
        assert_share(counters.lost, counters.offered_packets, 0.01, &what);
        println!("{what}: {} packets in {} frames", counters.offered_packets, counters.frames);
        match segmentation_offload {
            true => assert!(counters.frames * 2 < counters.offered_packets, "{what}: {}", common::NO_GSO_PACKETS),
            false => assert_eq!(counters.frames, counters.offered_packets, "{what}"),
        }
    }
}
