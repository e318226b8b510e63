//! Links that take only small packets, and links that take none: what senders learn, and what still arrives.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod traffic;

use std::{
    io::{Error, ErrorKind, Read, Write},
    net::UdpSocket,
    thread,
    time::{Duration, Instant},
};

use brownout_network::{Cut, Impairment, LinkControl, Loss};
use brownout_units::Delay;
use common::{PATIENCE, counters, impair, network};
use traffic::{Family, Way, option, send_stream, set_option, settle};

#[test]
fn tcp_finds_the_mtu_of_its_path() {
    for (family, mtu, level, name) in [
        (Family::V4, 1_400, libc::IPPROTO_IP, libc::IP_MTU),
        (Family::V4, 576, libc::IPPROTO_IP, libc::IP_MTU),
        (Family::V6, 1_300, libc::IPPROTO_IPV6, libc::IPV6_MTU),
        (Family::V6, 1_280, libc::IPPROTO_IPV6, libc::IPV6_MTU),
    ] {
        let (network, way) = (network(2), Way::of(family));
        let hit = way.link(&network);
        let _guard = impair(&network, &[hit], Impairment { mtu: Some(mtu), ..Impairment::NONE });
        let (sender, receiver) = way.tcp(&network);
        let path = sender.try_clone().unwrap();
        send_stream((sender, receiver), 4 << 20);
        let counted = counters(&network, hit);
        println!("{family:?} {mtu}: {} packets too big, {} delivered", counted.too_big, counted.delivered_packets);
        assert_eq!(option(&path, level, name), i32::from(mtu), "what the sender takes for the MTU of its path");
        assert!(counted.too_big > 0 && counted.fragments == 0, "{counted:?}");
        assert!(counted.delivered_bytes <= counted.delivered_packets * u64::from(mtu));
        // Full packets: it did not shrink to something far smaller.
        assert!(counted.delivered_bytes > counted.delivered_packets * u64::from(mtu) * 8 / 10, "{counted:?}");
    }
}

#[test]
fn datagrams_that_may_be_fragmented_arrive_whole() {
    for (datagram, mtu) in [(1_472, 1_400), (1_472, 576), (1_473, 700), (20_000, 1_000)] {
        let (network, way) = (network(2), Way::of(Family::V4));
        let hit = way.link(&network);
        let _guard = impair(&network, &[hit], Impairment { mtu: Some(mtu), ..Impairment::NONE });
        let (sender, receiver) = way.udp(&network);
        set_option(&sender, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT);
        for seed in 0..20 {
            let content: Vec<u8> = (0..datagram).map(|at| traffic::content(at * 7 + seed)).collect();
            sender.send(&content).unwrap();
            let mut buffer = vec![0; 65_536];
            receiver.set_read_timeout(Some(PATIENCE)).unwrap();
            let length = receiver.recv(&mut buffer).expect("it arrives, in parts or whole");
            assert!(buffer[..length] == content, "{datagram} through {mtu}");
        }
        let counted = counters(&network, hit);
        assert!(counted.fragments >= 20 && counted.too_big == 0, "{counted:?}");
        assert!(counted.delivered_bytes <= counted.delivered_packets * u64::from(mtu));
        assert_eq!(counted.delivered_packets, counted.offered_packets + counted.fragments);
    }
}

#[test]
fn fragments_are_lost_one_by_one() {
    let (network, way) = (network(2), Way::of(Family::V4));
    let hit = way.link(&network);
    let _guard = impair(
        &network,
        &[hit],
        Impairment { loss: Loss::Independent("20%".parse().unwrap()), mtu: Some(576), ..Impairment::NONE },
    );
    let (sender, receiver) = way.udp(&network);
    set_option(&sender, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT);
    let mut counted = counters(&network, hit);
    let mut arrived = Vec::new();
    for number in 0..3_000u32 {
        sender.send(&traffic::datagram(number)).unwrap();
        settle(&network, hit, &mut counted, u64::from(number) + 1);
        traffic::receive_numbers(&receiver, &mut arrived);
    }
    traffic::receive_until_silence(&receiver, &mut arrived);
    assert_eq!(counted.fragments, 3_000, "each of two");
    traffic::assert_share(counted.lost, 6_000, 0.2, 1.0, "fragments lost");
    // Both have to arrive.
    traffic::assert_share(arrived.len() as u64, 3_000, 0.64, 1.0, "datagrams whole");
}

/// The error that a connected socket has for its owner, once it has come.
fn error_of(socket: &UdpSocket) -> Error {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(error) = socket.take_error().unwrap() {
            return error;
        }
        assert!(Instant::now() < end, "no error came");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_datagram_that_must_not_be_fragmented_is_refused_with_the_mtu() {
    for (family, mtu, level, discover, name) in [
        (Family::V4, 1_000, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_MTU),
        (Family::V6, 1_280, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_MTU),
    ] {
        let (network, way) = (network(2), Way::of(family));
        let hit = way.link(&network);
        let _guard = impair(&network, &[hit], Impairment { mtu: Some(mtu), ..Impairment::NONE });
        let (sender, receiver) = way.udp(&network);
        set_option(&sender, level, discover, libc::IP_PMTUDISC_DO);
        sender.send(&[1; 1_400]).unwrap();
        assert_eq!(error_of(&sender).raw_os_error(), Some(libc::EMSGSIZE), "{family:?}");
        assert_eq!(option(&sender, level, name), i32::from(mtu));
        assert_eq!(sender.send(&[2; 1_400]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
        let fits = vec![3; usize::from(mtu) - family.udp_headers()];
        sender.send(&fits).unwrap();
        let mut buffer = [0; 2_048];
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(receiver.recv(&mut buffer).unwrap(), fits.len());
        assert_eq!(buffer[0], 3);
        assert_eq!(counters(&network, hit).too_big, 1);
    }
}

#[test]
fn a_rejected_connection_fails_at_once_and_a_dropped_one_in_silence() {
    for (family, how, expected) in [
        (Family::V4, Cut::Reject, Some(libc::EHOSTUNREACH)),
        (Family::V6, Cut::Reject, Some(libc::EACCES)),
        (Family::V4, Cut::Drop, None),
        (Family::V6, Cut::Drop, None),
    ] {
        let (network, way) = (network(2), Way::of(family));
        let hit = way.link(&network);
        let listener = way.listen(&network);
        let to = listener.local_addr().unwrap();
        let guard = impair(&network, &[hit], Impairment { cut: Some(how), ..Impairment::NONE });
        // A rejection is awaited as long as it takes; silence only for a while.
        let within = if expected.is_some() { PATIENCE } else { Duration::from_millis(500) };
        let error = way.connect(&network, to, within).unwrap_err();
        println!("{family:?} {how}: {error}");
        match expected {
            Some(errno) => assert_eq!(error.raw_os_error(), Some(errno), "{error}"),
            None => assert_eq!(error.kind(), ErrorKind::TimedOut),
        }
        let counted = counters(&network, hit);
        assert!(counted.cut > 0 && counted.cut == counted.offered_packets, "{counted:?}");
        let back = Way { from: "h1", to: "h0", family };
        assert_eq!(counters(&network, back.link(&network)).cut, 0, "the other direction is not cut");
        guard.heal().unwrap();
        way.connect(&network, to, PATIENCE).unwrap();
    }
}

#[test]
fn a_rejected_datagram_is_told_to_its_sender_and_a_dropped_one_is_not() {
    for (family, expected) in [(Family::V4, libc::EHOSTUNREACH), (Family::V6, libc::EACCES)] {
        let (network, way) = (network(2), Way::of(family));
        let hit = way.link(&network);
        let (sender, receiver) = way.udp(&network);
        // Only who asks is told of a single refusal (ip(7), IP_RECVERR).
        match family {
            Family::V4 => set_option(&sender, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
            Family::V6 => set_option(&sender, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        }
        let dropping = impair(&network, &[hit], Impairment { cut: Some(Cut::Drop), ..Impairment::NONE });
        sender.send(b"lost").unwrap();
        let mut counted = counters(&network, hit);
        settle(&network, hit, &mut counted, 1);
        assert!(sender.take_error().unwrap().is_none());
        drop(dropping);
        let _rejecting = impair(&network, &[hit], Impairment { cut: Some(Cut::Reject), ..Impairment::NONE });
        sender.send(b"refused").unwrap();
        assert_eq!(error_of(&sender).raw_os_error(), Some(expected));
        receiver.set_nonblocking(true).unwrap();
        assert_eq!(receiver.recv(&mut [0; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn what_is_on_its_way_when_a_link_is_cut_still_arrives_and_a_connection_outlives_the_cut() {
    let (network, way) = (network(2), Way::of(Family::V4));
    let hit = way.link(&network);
    let (mut sender, mut receiver) = way.tcp(&network);
    let _slow = impair(&network, &[hit], Impairment::delay(Delay::from_ms(300)));
    sender.write_all(b"before").unwrap();
    // It is on its way once the emulator has it.
    let end = Instant::now() + PATIENCE;
    while counters(&network, hit).offered_packets == 0 {
        assert!(Instant::now() < end);
    }
    let cut = impair(&network, &[hit], Impairment { cut: Some(Cut::Drop), ..Impairment::NONE });
    let mut buffer = [0; 16];
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(receiver.read(&mut buffer).unwrap(), 6);
    sender.write_all(b"during").unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(receiver.read(&mut buffer).is_err(), "nothing passes a cut");
    cut.heal().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(receiver.read(&mut buffer).unwrap(), 6, "sent again by TCP");
}

#[test]
fn what_is_amended_to_nothing_leaves_nothing_of_any_kind() {
    let share = |text: &str| text.parse().unwrap();
    let hit_all = brownout_network::Chance::of(share("100%"));
    let burst = Loss::GilbertElliott {
        p: share("100%"),
        r: share("0%"),
        one_minus_h: share("100%"),
        one_minus_k: share("100%"),
    };
    let slow = brownout_network::RateLimit {
        rate: "1kbit".parse().unwrap(),
        queue: brownout_network::QueueLimit::Time(Delay::ZERO),
        overhead_bytes: 0,
    };
    for impairment in [
        Impairment { cut: Some(Cut::Drop), ..Impairment::NONE },
        Impairment { cut: Some(Cut::Reject), ..Impairment::NONE },
        Impairment { mtu: Some(576), ..Impairment::NONE },
        Impairment { loss: Loss::Independent(share("100%")), ..Impairment::NONE },
        Impairment { loss: burst, ..Impairment::NONE },
        Impairment { duplicate: hit_all, ..Impairment::NONE },
        Impairment { corrupt: hit_all, ..Impairment::NONE },
        Impairment { rate: Some(slow), ..Impairment::NONE },
        Impairment::delay(Delay::from_secs(3_600)),
    ] {
        let (network, way) = (network(2), Way::of(Family::V4));
        let hit = way.link(&network);
        let mut guard = impair(&network, &[hit], impairment);
        guard.amend(&Impairment::NONE).unwrap();
        assert_eq!(network.control().effective(hit).unwrap(), [], "{impairment}");
        let outcome = traffic::send_numbered(&network, way, 200, 40);
        assert_eq!(outcome.arrived, (0..200).collect::<Vec<_>>(), "{impairment}");
        let counted = outcome.counters;
        assert_eq!((counted.delivered_packets, counted.corrupted, counted.duplicated), (200, 0, 0));
        guard.amend(&impairment).unwrap();
        assert_eq!(network.control().effective(hit).unwrap(), [impairment]);
    }
}
