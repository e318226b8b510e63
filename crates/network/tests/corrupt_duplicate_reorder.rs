//! Flipped bits, copies and packets that overtake: asked and measured, and what the receiving kernel says of it.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod traffic;

use std::{collections::HashSet, thread, time::Duration};

use brownout_network::{Chance, ChecksumErrors, Impairment, Link, LinkControl, LinkCounters, Loss, Network, Reorder};
use brownout_units::{Delay, Share};
use common::{counters, impair, network};
use traffic::{Family, Outcome, Way, assert_share, ever, gone, send_numbered, send_stream, settle};

const PACKETS: u32 = 100_000;

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

fn checksum_errors(network: &Network, way: Way) -> ChecksumErrors {
    network.checksum_errors(network.host(way.to).unwrap().id()).unwrap()
}

#[test]
fn no_flipped_bit_reaches_a_udp_receiver_and_its_kernel_counts_every_one() {
    for (family, together, asked) in [(Family::V4, 40, "1%"), (Family::V6, 40, "1%"), (Family::V4, 1, "20%")] {
        let network = network(2);
        let way = Way::of(family);
        let corrupt = Impairment { corrupt: Chance::of(share(asked)), ..Impairment::NONE };
        let _guard = impair(&network, &[way.link(&network)], corrupt);
        let packets = if together == 1 { 5_000 } else { PACKETS };
        // It compares every byte of every datagram that arrives.
        let Outcome { arrived, counters } = send_numbered(&network, way, packets, together);
        let what = format!("corrupt {asked} {family:?}, {together} together");
        assert_share(counters.corrupted, u64::from(packets), share(asked).fraction(), 1.0, &what);
        assert_eq!(counters.delivered_packets, u64::from(packets), "damaged packets are delivered, too");
        assert_eq!(arrived.len() as u64, u64::from(packets) - counters.corrupted);
        assert!(arrived.is_sorted());
        let errors = checksum_errors(&network, way);
        assert_eq!((errors.udp, errors.total()), (counters.corrupted, counters.corrupted), "{what}: {errors:?}");
    }
}

/// What was counted until nothing has been offered for a while: TCP may send again what has arrived.
fn counters_of_all(network: &Network, link: Link) -> LinkCounters {
    let mut all = counters(network, link);
    loop {
        let offered = all.offered_packets;
        thread::sleep(Duration::from_millis(200));
        all.add(&counters(network, link));
        if all.offered_packets == offered && gone(&all) == ever(&all) {
            return all;
        }
    }
}

#[test]
fn no_flipped_bit_reaches_a_tcp_receiver_and_its_kernel_counts_every_one() {
    const BYTES: usize = 100 << 20;
    for family in Family::BOTH {
        let network = network(2);
        let way = Way::of(family);
        let hit = way.link(&network);
        let _guard = impair(&network, &[hit], Impairment { corrupt: Chance::of(share("1%")), ..Impairment::NONE });
        let (sender, receiver) = way.tcp(&network);
        // Were it closed, the sender would acknowledge its end at any later time.
        let _open = receiver.try_clone().unwrap();
        send_stream((sender, receiver), BYTES);
        let counted = counters_of_all(&network, hit);
        let offered = counted.offered_packets;
        assert_share(counted.corrupted, offered, 0.01, 1.0, &format!("TCP over {family:?}"));
        let errors = checksum_errors(&network, way);
        assert_eq!((errors.tcp, errors.total()), (counted.corrupted, counted.corrupted), "{errors:?}");
        assert!(offered > 60_000, "{offered} packets");
    }
}

#[test]
fn the_share_asked_for_comes_twice_each_copy_behind_its_packet() {
    for (family, asked, correlation, spread) in
        [(Family::V4, "5%", "0%", 1.0), (Family::V6, "20%", "0%", 1.0), (Family::V4, "20%", "50%", 3.0)]
    {
        let network = network(2);
        let way = Way::of(family);
        let chance = Chance { share: share(asked), correlation: share(correlation) };
        let _guard = impair(&network, &[way.link(&network)], Impairment { duplicate: chance, ..Impairment::NONE });
        let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, 40);
        assert_share(counters.duplicated, u64::from(PACKETS), share(asked).fraction(), spread, &format!("{chance}"));
        assert_eq!(arrived.len() as u64, u64::from(PACKETS) + counters.duplicated);
        assert!(arrived.is_sorted(), "a copy comes right behind its packet");
        assert_eq!(arrived.iter().collect::<HashSet<_>>().len(), PACKETS as usize);
        let twice = arrived.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        assert_eq!(twice, counters.duplicated, "none comes three times");
    }
}

#[test]
fn a_stream_survives_copies_and_packets_that_overtake() {
    let network = network(2);
    let way = Way::of(Family::V6);
    let impairment = Impairment {
        delay: Delay::from_ms(2),
        duplicate: Chance::of(share("5%")),
        reorder: Reorder { share: share("5%"), ..Reorder::NEVER },
        ..Impairment::NONE
    };
    let _guard = impair(&network, &[way.link(&network)], impairment);
    send_stream(way.tcp(&network), 10 << 20);
    let counted = counters(&network, way.link(&network));
    assert!(counted.duplicated > 100 && counted.reordered > 100, "{counted:?}");
}

#[test]
fn with_a_gap_every_so_manyth_packet_of_a_gso_packet_overtakes_the_others() {
    let network = network(2);
    let way = Way::of(Family::V4);
    let reorder = Reorder { share: Share::ALL, correlation: Share::ZERO, gap: 5 };
    let impairment = Impairment { delay: Delay::from_ms(20), reorder, ..Impairment::NONE };
    let _guard = impair(&network, &[way.link(&network)], impairment);
    let Outcome { arrived, counters } = send_numbered(&network, way, 400, 40);
    assert_eq!(counters.reordered, 80);
    for (frame, order) in (0..).zip(arrived.chunks(40)) {
        let (first, last): (Vec<u32>, Vec<u32>) = (frame * 40..frame * 40 + 40).partition(|number| number % 5 == 4);
        assert_eq!(order, [first, last].concat());
    }
}

#[test]
fn the_share_asked_for_overtakes() {
    for (family, asked) in [(Family::V4, "25%"), (Family::V6, "3%")] {
        let network = network(2);
        let way = Way::of(family);
        let reorder = Reorder { share: share(asked), ..Reorder::NEVER };
        let impairment = Impairment { delay: Delay::from_ms(1), reorder, ..Impairment::NONE };
        let _guard = impair(&network, &[way.link(&network)], impairment);
        let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, 50);
        assert_share(counters.reordered, u64::from(PACKETS), share(asked).fraction(), 1.0, &format!("reorder {asked}"));
        assert_eq!(arrived.len(), PACKETS as usize);
        // Of each GSO packet, those that skip the delay come first, in their order, and then the others in theirs.
        for order in arrived.chunks(50) {
            assert!(order.windows(2).filter(|pair| pair[0] > pair[1]).count() <= 1, "{order:?}");
        }
        let overtaken = arrived.chunks(50).filter(|order| !order.is_sorted()).count();
        assert!(overtaken > 500, "{overtaken} of 2,000 GSO packets");
    }
}

#[test]
fn all_kinds_at_once_still_balance() {
    let network = network(2);
    let way = Way::of(Family::V4);
    let hit = way.link(&network);
    let asked = [
        Impairment {
            delay: Delay::from_ms(3),
            jitter: Delay::from_ms(1),
            loss: Loss::Independent(share("5%")),
            ..Impairment::NONE
        },
        Impairment { duplicate: Chance::of(share("10%")), corrupt: Chance::of(share("5%")), ..Impairment::NONE },
        Impairment {
            delay: Delay::from_ms(1),
            loss: Loss::Independent(share("5%")),
            mtu: Some(600),
            ..Impairment::NONE
        },
        Impairment {
            rate: Some(brownout_network::RateLimit {
                rate: "50mbit".parse().unwrap(),
                queue: brownout_network::QueueLimit::Bytes(brownout_units::Bytes(30_000)),
                overhead_bytes: 38,
            }),
            ..Impairment::NONE
        },
    ];
    let _guards: Vec<_> = asked.iter().map(|one| impair(&network, &[hit], *one)).collect();
    assert_eq!(network.control().effective(hit).unwrap(), asked);
    let (sender, receiver) = way.udp(&network);
    // Without DF, so that what is too large is fragmented.
    traffic::set_option(&sender, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT);
    traffic::set_option(&sender, libc::SOL_UDP, libc::UDP_SEGMENT, 1_000);
    let mut counted = counters(&network, hit);
    let mut arrived = Vec::new();
    for frame in 0..100 {
        let batch: Vec<u8> = (frame * 40..frame * 40 + 40).flat_map(traffic::datagram).collect();
        sender.send(&batch).unwrap();
        settle(&network, hit, &mut counted, u64::from(frame + 1) * 40);
        traffic::receive_numbers(&receiver, &mut arrived);
    }
    println!("{counted:?}");
    assert_eq!(counted.fragments, 4_000, "each of two");
    assert_share(counted.lost, 8_000, 1.0 - 0.95 * 0.95, 1.0, "two impairments with loss");
    assert_share(counted.duplicated, 8_000 - counted.lost, 0.1, 1.0, "copies of what is not lost");
    assert!(counted.dropped_queue > 0 && counted.corrupted > 0 && counted.too_big == 0 && !arrived.is_empty());
    assert_eq!(gone(&counted), 8_000 + counted.duplicated);
}
