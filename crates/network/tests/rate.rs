//! Rates and their queues: asked and measured, over both families, UDP and TCP.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod traffic;

use std::{
    io::{Read, Write},
    net::UdpSocket,
    thread,
    time::{Duration, Instant},
};

use brownout_network::{Impairment, LinkControl, QueueLimit, RateLimit, monotonic_ns};
use brownout_units::{Bytes, Delay};
use common::{PATIENCE, counters, impair, network, spec, start};
use traffic::{Family, Way, send_numbered, set_option, settle, up_to_three_times};

const TOLERANCE: f64 = 0.03;

fn limit(rate: &str, queue: QueueLimit, overhead_bytes: i32) -> Impairment {
    Impairment::rate(RateLimit { rate: rate.parse().unwrap(), queue, overhead_bytes })
}

fn time(ms: u64) -> QueueLimit {
    QueueLimit::Time(Delay::from_ms(ms))
}

fn within(what: &str, asked: f64, measured: f64) -> Result<(), String> {
    println!(
        "{what}: asked {:.3} Mbit/s, measured {:.3} ({:+.2}%)",
        asked / 1e6,
        measured / 1e6,
        (measured / asked - 1.0) * 100.0
    );
    let close = (measured / asked - 1.0).abs() <= TOLERANCE;
    close.then_some(()).ok_or_else(|| format!("{what}: {measured} is not within 3 % of {asked}"))
}

/// When each of these datagrams arrived, in monotonic nanoseconds.
fn arrivals(receiver: &UdpSocket, datagrams: usize) -> Vec<u64> {
    receiver.set_nonblocking(false).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2_048];
    let arrival = |_| {
        receiver.recv(&mut buffer).expect("no datagram is dropped");
        monotonic_ns()
    };
    (0..datagrams).map(arrival).collect()
}

#[test]
fn datagrams_leave_at_the_rate_asked_for() {
    // The receiver stamps; that it may be late, but not early, is why a busy machine gets three chances.
    for (rate, family, overhead, frames) in [
        ("1mbit", Family::V4, 0, 2),
        ("1mbit", Family::V6, 38, 2),
        ("10mbit", Family::V6, 0, 10),
        ("100mbit", Family::V4, -28, 100),
        ("100mbit", Family::V6, 0, 100),
        ("1gbit", Family::V4, 0, 500),
    ] {
        let what = format!("UDP {rate} overhead {overhead} {family:?}");
        up_to_three_times(&what, || {
            // The interface holds 500 frames and more until they are read.
            let (network, way) = (network(2), Way::of(family));
            let _guard = impair(&network, &[way.link(&network)], limit(rate, time(60_000), overhead));
            let (sender, receiver) = way.udp(&network);
            set_option(&sender, libc::SOL_UDP, libc::UDP_SEGMENT, 1_400);
            let receiving = thread::spawn(move || arrivals(&receiver, frames * 40));
            for _ in 0..frames {
                sender.send(&vec![7; 40 * 1_400]).unwrap();
            }
            let arrivals = receiving.join().unwrap();
            let (first, last) = (arrivals[0], arrivals[arrivals.len() - 1]);
            let bytes = (arrivals.len() - 1) as f64 * (1_400 + family.udp_headers() as i32 + overhead) as f64;
            let asked: brownout_units::BitRate = rate.parse().unwrap();
            within(&what, asked.bits_per_second() as f64, bytes * 8.0 / ((last - first) as f64 / 1e9))
        });
    }
}

#[test]
fn a_stream_gets_the_rate_asked_for() {
    const WARM_UP: Duration = Duration::from_millis(1_500);
    for (rate, family, queue) in [
        ("1mbit", Family::V4, time(200)),
        ("10mbit", Family::V6, QueueLimit::Bytes(Bytes(100_000))),
        ("100mbit", Family::V4, time(50)),
        ("1gbit", Family::V4, time(20)),
    ] {
        let what = format!("TCP {rate} queue {queue} {family:?}");
        let asked: brownout_units::BitRate = rate.parse().unwrap();
        up_to_three_times(&what, || {
            let spec = brownout_network::NetworkSpec { congestion_control: Some("cubic".into()), ..spec(2) };
            let (network, way) = (start(spec), Way::of(family));
            let hit = way.link(&network);
            let _guard = impair(&network, &[hit], limit(rate, queue, 0));
            let (mut sender, mut receiver) = way.tcp(&network);
            let writing = thread::spawn(move || while sender.write_all(&[7; 1 << 16]).is_ok() {});
            let reading = thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                let end = Instant::now() + Duration::from_secs(5);
                while Instant::now() < end && receiver.read(&mut buffer).unwrap() > 0 {}
            });
            thread::sleep(WARM_UP);
            network.control().take_counters().unwrap();
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(2_500));
            let counted = counters(&network, hit);
            let took = begin.elapsed().as_secs_f64();
            // The reading end closes, so that writing fails.
            reading.join().unwrap();
            writing.join().unwrap();
            within(&what, asked.bits_per_second() as f64, counted.delivered_bytes as f64 * 8.0 / took)
        });
    }
}

#[test]
fn a_queue_takes_what_it_can_hold_and_drops_the_rest() {
    // One superframe of 40 packets of 1,028 bytes comes at once; one of them takes 8.224 ms at 1 Mbit/s.
    for (queue, overhead, taken) in [
        (QueueLimit::Bytes(Bytes(10_280)), 0, 10),
        (QueueLimit::Bytes(Bytes(10_279)), 0, 9),
        (QueueLimit::Bytes(Bytes(10_660)), 38, 10),
        (time(0), 0, 1),
        (time(8), 0, 1),
        (time(9), 0, 2),
        (time(100), 0, 13),
    ] {
        let (network, way) = (network(2), Way::of(Family::V4));
        let _guard = impair(&network, &[way.link(&network)], limit("1mbit", queue, overhead));
        let outcome = send_numbered(&network, way, 40, 40);
        assert_eq!(outcome.arrived, (0..taken).collect::<Vec<_>>(), "{queue} overhead {overhead}: the first ones");
        assert_eq!(outcome.counters.dropped_queue, u64::from(40 - taken));
    }
}

#[test]
fn a_packet_waits_for_the_bottleneck_and_then_flies() {
    let (network, way) = (network(2), Way::of(Family::V6));
    let impairment = limit("8mbit", time(1_000), 0).with_delay(Delay::from_ms(50));
    let _guard = impair(&network, &[way.link(&network)], impairment);
    let outcome = send_numbered(&network, way, 10, 10);
    // 1,048 bytes take 1.048 ms. The emulator's own histogram is exact to 0.1 %, and nothing leaves early.
    let held = &outcome.counters.held;
    println!("held {} to {} ns", held.min(), held.max());
    assert!(held.min() as f64 >= 51.048e6 * 0.999, "{}", held.min());
    assert!(held.max() as f64 >= 60.48e6 * 0.999, "{}", held.max());
}

#[test]
fn what_waits_leaves_at_the_new_rate_and_nothing_overtakes_it() {
    let (network, way) = (network(2), Way::of(Family::V4));
    let hit = way.link(&network);
    let control = network.control();
    let mut guard = impair(&network, &[hit], limit("100kbit", time(3_600_000), 0));
    let (sender, receiver) = way.udp(&network);
    let mut sent = 0u32;
    let mut send = |datagrams: u32| {
        for number in sent..sent + datagrams {
            sender.send(&traffic::datagram(number)).unwrap();
        }
        sent += datagrams;
        sent
    };
    // 100 of them take 8 s at 100 kbit/s, and 80 ms at 10 Mbit/s. First slower still: nothing more comes at all.
    send(100);
    let began = Instant::now();
    guard.amend(&limit("1kbit", time(3_600_000), 0)).unwrap();
    assert_eq!(control.effective(hit).unwrap(), [limit("1kbit", time(3_600_000), 0)]);
    send(10);
    thread::sleep(Duration::from_millis(300));
    let mut arrived = Vec::new();
    traffic::receive_numbers(&receiver, &mut arrived);
    // At 100 kbit/s, more would have come in that time; asked is only that the rate in force is the new one.
    assert!(arrived.len() <= 1 + began.elapsed().as_millis() as usize / 2_000, "{arrived:?}");
    guard.amend(&limit("10mbit", time(3_600_000), 0)).unwrap();
    send(10);
    drop(guard);
    let all = send(10);
    let mut counted = counters(&network, hit);
    settle(&network, hit, &mut counted, u64::from(all));
    traffic::receive_until(&receiver, &mut arrived, u64::from(all));
    assert_eq!(arrived, (0..all).collect::<Vec<_>>());
    assert_eq!(counted.dropped_queue, 0);
}
