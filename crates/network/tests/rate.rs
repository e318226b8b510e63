//! Rates and their queues: asked and measured, over both families, UDP and TCP.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod machine;
mod traffic;

use std::{
    io::{Read, Write},
    net::UdpSocket,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use brownout_network::{Impairment, LinkControl, Network, QueueLimit, RateLimit};
use brownout_units::{Bytes, Delay};
use common::{PATIENCE, counters, impair, network, spec, start};
use machine::until_quiet;
use traffic::{Family, Way, send_numbered, set_option, settle};

const TOLERANCE: f64 = 0.03;

fn limit(rate: &str, queue: QueueLimit, overhead_bytes: i32) -> Impairment {
    Impairment { rate: Some(RateLimit { rate: rate.parse().unwrap(), queue, overhead_bytes }), ..Impairment::NONE }
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

/// The median of `rates`: a stall of the machine, and what catches up after it, are in few of them.
fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Whether this machine is fast enough to show a rate: it has to carry half as much again where nothing limits it, in one
/// of many tries. Where it does not, nothing is shown, and the test must not pass.
fn can_show(asked: f64, carried: impl Fn() -> f64) -> Result<(), String> {
    const FAST: f64 = 1e9;
    if asked < FAST {
        return Ok(());
    }
    let mut best: f64 = 0.0;
    for _ in 0..12 {
        best = best.max(carried());
        if best >= 1.5 * asked {
            return Ok(());
        }
    }
    let (best, asked) = (best / 1e6, asked / 1e6);
    Err(format!("without a limit this machine carries but {best:.0} Mbit/s, too little to show {asked:.0} Mbit/s"))
}

/// Nanoseconds of the wall clock.
fn wall_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// When the kernel took in the datagram that was received last, on the wall clock (socket(7)). Asking is what makes it
/// note this, so that one has to ask once before.
fn stamp_ns(receiver: &UdpSocket) -> u64 {
    const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
    let mut stamp = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for what it writes.
    unsafe { libc::ioctl(receiver.as_raw_fd(), SIOCGSTAMPNS, &mut stamp) };
    stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64
}

/// Sends `frames` GSO packets of 40 datagrams of 1,400 bytes as fast as it can: when that began, and when each datagram
/// arrived.
fn arrivals(network: &Network, way: Way, frames: usize) -> (u64, Vec<u64>) {
    let (sender, receiver) = way.udp(network);
    set_option(&sender, libc::SOL_UDP, libc::UDP_SEGMENT, 1_400);
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    stamp_ns(&receiver);
    // The kernel begins to note it a little later.
    thread::sleep(Duration::from_millis(50));
    let receiving = thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let arrival = |_| {
            receiver.recv(&mut buffer).expect("no datagram is dropped");
            stamp_ns(&receiver)
        };
        (0..frames * 40).map(arrival).collect()
    });
    let began = wall_ns();
    for _ in 0..frames {
        sender.send(&vec![7; 40 * 1_400]).unwrap();
    }
    (began, receiving.join().unwrap())
}

#[test]
fn datagrams_leave_at_the_rate_asked_for() {
    const BLOCKS: usize = 20;
    for (rate, family, overhead, frames) in [
        ("1mbit", Family::V4, 0, 2),
        ("1mbit", Family::V6, 38, 2),
        ("10mbit", Family::V6, 0, 10),
        ("100mbit", Family::V4, -28, 100),
        ("100mbit", Family::V6, 0, 100),
        ("1gbit", Family::V4, 0, 500),
    ] {
        let what = format!("UDP {rate} overhead {overhead} {family:?}");
        let asked = rate.parse::<brownout_units::BitRate>().unwrap().bits_per_second() as f64;
        let bits = (1_400 + family.udp_headers() as i32 + overhead) as f64 * 8.0;
        let way = Way::of(family);
        let per_sec = |datagrams: usize, from_ns: u64, to_ns: u64| {
            datagrams as f64 * bits * 1e9 / to_ns.saturating_sub(from_ns).max(1) as f64
        };
        let unlimited = || {
            let (began, arrivals) = arrivals(&network(2), way, frames);
            per_sec(arrivals.len(), began, arrivals[arrivals.len() - 1])
        };
        until_quiet(&what, 5.0, |_| {
            can_show(asked, unlimited)?;
            // The interface holds 500 frames and more until they are read.
            let network = network(2);
            let _guard = impair(&network, &[way.link(&network)], limit(rate, time(60_000), overhead));
            let (began, arrivals) = arrivals(&network, way, frames);
            let last = arrivals.len() - 1;
            // The first takes its time, too. The wall clock may be slewed by 0.05 %.
            let all = per_sec(arrivals.len(), began, arrivals[last]);
            if all > asked * 1.001 {
                return Err(format!("{all} bit/s altogether"));
            }
            let block = |n: usize| {
                let [from, to] = [n, n + 1].map(|n| n * last / BLOCKS);
                per_sec(to - from, arrivals[from], arrivals[to])
            };
            within(&what, asked, median((0..BLOCKS).map(block).collect()))
        });
    }
}

/// What a TCP stream got through a link: for how many seconds at most, and in each window its bytes and its seconds.
struct Stream {
    took: f64,
    windows: Vec<(u64, f64)>,
}

impl Stream {
    fn run(network: &Network, way: Way, warm_up: Duration, window: Duration, windows: usize) -> Stream {
        let hit = way.link(network);
        let (mut sender, mut receiver) = way.tcp(network);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let writing = thread::spawn(move || while sender.write_all(&[7; 1 << 16]).is_ok() {});
        let reading = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !ends.load(Ordering::Relaxed) && receiver.read(&mut buffer).unwrap() > 0 {}
        });
        // Counters are taken some time between asking for them and having them.
        let take = || {
            let (asked, counted, done) = (Instant::now(), counters(network, hit), Instant::now());
            (asked, asked + (done - asked) / 2, done, counted.delivered_bytes)
        };
        thread::sleep(warm_up);
        let mut taken = vec![take()];
        for _ in 0..windows {
            thread::sleep(window);
            taken.push(take());
        }
        is_over.store(true, Ordering::Relaxed);
        // The reading end closes, so that writing fails.
        reading.join().unwrap();
        writing.join().unwrap();
        Stream {
            took: (taken[windows].2 - taken[0].0).as_secs_f64(),
            windows: taken.windows(2).map(|pair| (pair[1].3, (pair[1].1 - pair[0].1).as_secs_f64())).collect(),
        }
    }

    fn bits(&self) -> f64 {
        self.windows.iter().map(|(bytes, _)| *bytes as f64 * 8.0).sum()
    }
}

#[test]
fn a_stream_gets_the_rate_asked_for() {
    const WARM_UP: Duration = Duration::from_millis(1_500);
    // A window is long enough for a hundred packets.
    for (rate, family, queue, queue_secs, window_ms, windows) in [
        ("1mbit", Family::V4, time(200), 0.2, 1_400, 7),
        ("10mbit", Family::V6, QueueLimit::Bytes(Bytes(100_000)), 0.08, 140, 25),
        ("100mbit", Family::V4, time(50), 0.05, 100, 25),
        ("1gbit", Family::V4, time(20), 0.02, 100, 25),
    ] {
        let what = format!("TCP {rate} queue {queue} {family:?}");
        let asked = rate.parse::<brownout_units::BitRate>().unwrap().bits_per_second() as f64;
        let way = Way::of(family);
        let start = || start(brownout_network::NetworkSpec { congestion_control: Some("cubic".into()), ..spec(2) });
        let unlimited = || {
            let short = Duration::from_millis(200);
            let stream = Stream::run(&start(), way, short, short, 1);
            stream.bits() / stream.took
        };
        until_quiet(&what, 5.0, |_| {
            can_show(asked, unlimited)?;
            let network = start();
            let _guard = impair(&network, &[way.link(&network)], limit(rate, queue, 0));
            let stream = Stream::run(&network, way, WARM_UP, Duration::from_millis(window_ms), windows);
            // What waited when it began may have come on top, if the machine let nothing leave just before.
            let most = asked * (stream.took + queue_secs) * (1.0 + TOLERANCE);
            assert!(stream.bits() <= most, "{what}: {} bits in {} s", stream.bits(), stream.took);
            within(
                &what,
                asked,
                median(stream.windows.iter().map(|(bytes, secs)| *bytes as f64 * 8.0 / secs).collect()),
            )
        });
    }
}

#[test]
fn a_queue_takes_what_it_can_hold_and_drops_the_rest() {
    // One GSO packet of 40 packets of 1,028 bytes comes at once; one of them takes 8.224 ms at 1 Mbit/s.
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
fn with_a_rate_jitter_keeps_the_order_of_packets_and_without_one_it_does_not() {
    let (network, way) = (network(2), Way::of(Family::V4));
    let jitter = Impairment { delay: Delay::from_ms(20), jitter: Delay::from_ms(20), ..Impairment::NONE };
    let arrived = |impairment| {
        let network = self::network(2);
        let _guard = impair(&network, &[way.link(&network)], impairment);
        let outcome = send_numbered(&network, way, 400, 40);
        assert_eq!(outcome.counters.delivered_packets, 400);
        outcome.arrived
    };
    // 40 packets of 1,028 bytes take 3.3 ms at 100 Mbit/s: jitter would mix them all.
    let limited = Impairment { rate: limit("100mbit", time(1_000), 0).rate, ..jitter };
    assert_eq!(arrived(limited), (0..400).collect::<Vec<_>>());
    assert!(!arrived(jitter).is_sorted());
    // Nor does it matter which of several impairments has the rate.
    let _guards = [jitter, limit("100mbit", time(1_000), 0)].map(|one| impair(&network, &[way.link(&network)], one));
    assert_eq!(send_numbered(&network, way, 400, 40).arrived, (0..400).collect::<Vec<_>>());
}

#[test]
fn a_packet_waits_for_the_bottleneck_and_then_flies() {
    let (network, way) = (network(2), Way::of(Family::V6));
    let impairment = Impairment { delay: Delay::from_ms(50), ..limit("8mbit", time(1_000), 0) };
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
    let began = Instant::now();
    send(100);
    guard.amend(&limit("1kbit", time(3_600_000), 0)).unwrap();
    let (amended, faster) = (Instant::now(), began.elapsed());
    assert_eq!(control.effective(hit).unwrap(), [limit("1kbit", time(3_600_000), 0)]);
    send(10);
    thread::sleep(Duration::from_millis(300));
    let mut arrived = Vec::new();
    traffic::receive_numbers(&receiver, &mut arrived);
    // At 100 kbit/s, more would have come since; asked is only that the rate in force is the new one.
    let most = 1 + faster.as_millis() / 82 + amended.elapsed().as_millis() / 2_000;
    assert!(arrived.len() as u128 <= most, "{arrived:?}, at most {most}");
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
