//! The packet path with real devices, of whose other ends nobody makes use.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
};

use brownout_base::random::Random;
use brownout_units::Delay;

use super::*;
use crate::{
    emulator::packet::frame::NEEDS_CSUM,
    impairment::{Chance, Cut, Impairment, Loss, QueueLimit, RateLimit},
    sys::Tun,
};

const TCP_GSO: u8 = 1;
const UDP_GSO: u8 = 5;

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host + 1)
}

fn address6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xFD77, 0, 0, 0, 0, 0, 0, u16::from(host) + 1)
}

/// An engine with devices in a network namespace of the calling thread's own.
fn engine(hosts: u8) -> Engine {
    sys::unshare_network().expect("this test needs root");
    let tun = |host: u8| {
        let tun = Tun::create(Path::new(sys::TUN_DEVICE), &format!("tun{host}"))
            .unwrap_or_else(|_| panic!("this test needs root and /dev/net/tun"));
        (HostId(host.into()), Port::Tun(tun))
    };
    let addresses = (0..hosts).flat_map(|host| {
        [IpAddr::from(address(host)), IpAddr::from(address6(host))].map(|address| (address, HostId(host.into())))
    });
    let routes = Routes::new(addresses, None);
    Engine::new(hosts.into(), (0..hosts).map(tun).collect(), routes, 7, Limits::within(None))
}

/// A UDP packet, or a GSO packet of such with `size` bytes of payload.
fn udp(to: u8, payload: usize, size: u16) -> Vec<u8> {
    let length = 28 + payload;
    let mut frame = vec![NEEDS_CSUM, if size > 0 { UDP_GSO } else { 0 }, 0, 0];
    [size, 20, 6].iter().for_each(|field| frame.extend(field.to_ne_bytes()));
    frame.resize(VNET, 0);
    frame.extend([0x45, 0]);
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend(address(9).octets());
    frame.extend(address(to).octets());
    frame.extend([0x23, 0x52, 0x9C, 0x40]);
    frame.extend(((8 + payload) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|n| n as u8));
    frame
}

/// The same over TCP.
fn tcp(to: u8, payload: usize, size: u16) -> Vec<u8> {
    let mut frame = udp(to, payload + 12, size);
    (frame[1], frame[8]) = (if size > 0 { TCP_GSO } else { 0 }, 16);
    frame[VNET + 9] = 6;
    frame[VNET + 20 + 12] = 0x50;
    frame
}

/// The same over IPv6.
fn over_ipv6(mut frame: Vec<u8>, to: u8) -> Vec<u8> {
    let carried = frame.split_off(VNET + 20);
    let protocol = frame[VNET + 9];
    frame.truncate(VNET);
    if frame[1] == TCP_GSO {
        frame[1] = 4;
    }
    frame[6..8].copy_from_slice(&40u16.to_ne_bytes());
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((carried.len() as u16).to_be_bytes());
    frame.extend([protocol, 64]);
    frame.extend(address6(9).octets());
    frame.extend(address6(to).octets());
    frame.extend(carried);
    frame
}

const VNET: usize = frame::VNET;

impl Engine {
    fn take(&mut self, from: u16, frame: &[u8], now_ns: u64) {
        self.frame.room()[..frame.len()].copy_from_slice(frame);
        self.frame.set_length(frame.len());
        self.carry(from.into(), now_ns);
    }

    /// Releases all, whenever it is due; then counters balance, and no memory is held.
    fn drain(&mut self) {
        while self.next_release_ns().is_some() {
            self.release_due(u64::MAX);
        }
        assert_eq!(self.memory, 0);
        for counters in &self.counters {
            let LinkCounters { delivered_packets, lost, cut, too_big, dropped_queue, .. } = counters;
            let gone = delivered_packets + lost + cut + too_big + dropped_queue + counters.dropped_by_emulator();
            assert_eq!(gone, counters.offered_packets + counters.duplicated + counters.fragments, "{counters:?}");
        }
    }
}

fn hour() -> Impairment {
    Impairment::delay(Delay::from_secs(3_600))
}

#[test]
fn a_host_whose_interface_is_down_has_failed_whatever_its_link_does_and_is_told_once() {
    let mut engine = engine(3);
    // Of the three devices only this one is brought up.
    sys::interface_index("tun2").and_then(sys::set_up).unwrap();
    let told = |engine: &mut Engine| {
        let failures = engine.take_failures();
        failures.iter().map(|(host, error)| (*host, error.raw_os_error())).collect::<Vec<_>>()
    };
    (0..2).for_each(|to| engine.take(2, &udp(to, 100, 0), 0));
    assert_eq!(told(&mut engine), [(0, Some(libc::EIO)), (1, Some(libc::EIO))]);
    engine.take(0, &udp(1, 100, 0), 0);
    engine.take(0, &udp(2, 100, 0), 0);
    assert!(told(&mut engine).is_empty(), "each is told once, and none that takes its packets");
    assert_eq!(engine.counters[1].delivered_packets, 1);

    let mut later = self::engine(2);
    later.add(1, &[0], hour());
    later.take(0, &udp(1, 100, 0), 0);
    assert!(told(&mut later).is_empty());
    later.drain();
    assert_eq!(told(&mut later), [(1, Some(libc::EIO))], "released to an interface that is down");
}

#[test]
fn a_link_holds_no_more_memory_than_it_may_however_small_its_packets() {
    let mut engine = engine(3);
    engine.limits = Limits { of_link: 1 << 20, of_all: 8 << 20 };
    engine.add(1, &[0, 1, 2, 3, 4, 5], hour());
    let small = udp(1, 1, 0);
    (0..100_000).for_each(|n| engine.take(0, &small, n));
    let (memory, counters) = (engine.links[0].memory(), engine.counters[0].clone());
    assert!((1_000_000..=1 << 20).contains(&memory), "{memory} bytes");
    let held = counters.offered_packets - counters.dropped_memory;
    assert!(held * 128 <= memory && held > 2_000, "{held} packets");
    // The pieces of a GSO packet take more room than it does: they must not go beyond it either.
    let lossy = Impairment { loss: Loss::Independent("50%".parse().unwrap()), ..Impairment::NONE };
    engine.add(2, &[1], lossy);
    (0..1_000).for_each(|n| engine.take(0, &udp(2, 64, 1), n));
    assert!(engine.links[1].memory() <= 1 << 20);
    assert!(engine.counters[1].dropped_memory > 0 && engine.counters[1].lost > 0);
    engine.drain();
}

#[test]
fn what_the_emulator_has_no_memory_for_is_no_drop_of_the_model() {
    let mut engine = engine(2);
    engine.limits = Limits { of_link: 1 << 20, of_all: 8 << 20 };
    let limit = |queue| RateLimit { rate: "1kbit".parse().unwrap(), queue, overhead_bytes: 0 };
    let hour = QueueLimit::Time(Delay::from_secs(1_000_000));
    engine.add(
        1,
        &[0],
        Impairment { rate: Some(limit(QueueLimit::Bytes(brownout_units::Bytes(10_000)))), ..Impairment::NONE },
    );
    engine.add(2, &[1], Impairment { rate: Some(limit(hour)), ..Impairment::NONE });
    for n in 0..2_000 {
        engine.take(0, &udp(1, 1_000, 0), n);
        engine.take(1, &udp(0, 1_000, 0), n);
    }
    let [model, emulator] = [0, 1].map(|link| engine.counters[link].clone());
    assert!(model.dropped_queue > 1_900 && model.dropped_by_emulator() == 0, "{model:?}");
    assert!(emulator.dropped_by_emulator() > 500 && emulator.dropped_queue == 0, "{emulator:?}");
    engine.drain();
}

#[test]
fn a_link_holds_nearly_as_many_bytes_of_frames_as_it_may_take_memory() {
    // GSO packets of 17 KB, which once took 65 KB each.
    let mut engine = engine(2);
    engine.limits = Limits { of_link: 16 << 20, of_all: 64 << 20 };
    engine.add(1, &[0], hour());
    (0..2_000).for_each(|n| engine.take(0, &udp(1, 17_000, 1_448), n));
    let held = (engine.counters[0].offered_packets - engine.counters[0].dropped_memory) / 12 * 17_000;
    assert!(held > (16 << 20) * 4 / 5, "{held} bytes");
    engine.drain();
}

#[test]
fn all_links_together_hold_no_more_memory_than_they_may() {
    let mut engine = engine(4);
    engine.limits = Limits { of_link: 1 << 20, of_all: 2 << 20 };
    engine.add(1, &(0..12).collect::<Vec<_>>(), hour());
    for n in 0..40_000u64 {
        let (from, to) = ((n % 4) as u16, ((n + 1 + n / 4 % 3) % 4) as u8);
        engine.take(from, &udp(to, 1_000, 0), n);
    }
    assert!((2_000_000..=2 << 20).contains(&engine.memory), "{} bytes", engine.memory);
    assert!(engine.links.iter().all(|link| link.memory() < 1 << 20), "no link alone is full");
    assert!(engine.counters.iter().map(|counters| counters.dropped_memory).sum::<u64>() > 30_000);
    assert_eq!(engine.links.iter().map(|link| link.memory()).sum::<u64>(), engine.memory);
    engine.drain();
}

#[test]
fn no_frame_whatever_is_in_it_makes_the_packet_path_fail() {
    take_broken_frames(100_000);
}

#[test]
#[ignore = "the same, ten times as many: make test-long"]
fn no_frame_of_a_million_makes_the_packet_path_fail() {
    take_broken_frames(1_000_000);
}

fn take_broken_frames(frames: u64) {
    let mut engine = engine(3);
    let links: Vec<usize> = (0..6).collect();
    let always = |text: &str| Chance::of(text.parse().unwrap());
    let all = Impairment {
        loss: Loss::Independent("20%".parse().unwrap()),
        duplicate: always("20%"),
        corrupt: always("50%"),
        rate: Some(RateLimit {
            rate: "100gbit".parse().unwrap(),
            queue: QueueLimit::Time(Delay::from_secs(3_600)),
            overhead_bytes: -20,
        }),
        ..hour()
    };
    engine.add(1, &links, all);
    engine.add(2, &[2, 3], Impairment { mtu: Some(600), ..Impairment::NONE });
    engine.add(3, &[4, 5], Impairment { cut: Some(Cut::Reject), ..Impairment::NONE });
    let mut random = Random::new(20_111);
    let mut next = |below: usize| random.below(below as u64) as usize;
    let sizes = [0, 1, 7, 30, 99, 700, 1_448, 65_535];
    for n in 0..frames {
        let (from, to) = (next(3) as u16, next(3) as u8);
        let (payload, size) = ([10, 100, 300, 2_000][next(4)], sizes[next(sizes.len())]);
        let mut frame = if next(2) == 0 { udp(to, payload, size) } else { tcp(to, payload, size) };
        if next(2) == 0 {
            frame = over_ipv6(frame, to);
        }
        for _ in 0..next(5) {
            // Mostly in the headers, and mostly with what a header could hold.
            let at = if next(8) == 0 { next(frame.len()) } else { next(VNET + 60) };
            if let Some(byte) = frame.get_mut(at).filter(|_| !(VNET + 16..VNET + 20).contains(&at)) {
                *byte = [next(256) as u8, 0, 0x45, 0x60, 0xFF, 8, 20][next(7)];
            }
        }
        if next(8) == 0 {
            frame.truncate(next(frame.len() + 1));
        }
        engine.take(from, &frame, n);
        if n % 1_000 == 0 {
            engine.drain();
        }
    }
    engine.drain();
    let sum = |what: fn(&LinkCounters) -> u64| engine.counters.iter().map(what).sum::<u64>();
    // It was worth it: all branches were taken.
    let counted = [sum(|c| c.lost), sum(|c| c.duplicated), sum(|c| c.corrupted), sum(|c| c.cut), sum(|c| c.too_big)];
    assert!(counted.into_iter().chain([sum(|c| c.fragments)]).all(|count| count > frames / 100), "{counted:?}");
    assert!(sum(|c| c.offered_packets) > 2 * sum(|c| c.frames), "GSO packets were cut");
}
