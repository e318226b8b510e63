//! TCP through random loss: its goodput is what theory says of single packets, not of GSO packets.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod machine;
mod traffic;

use std::{
    io::{Read, Write},
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_network::{Impairment, LinkControl, LinkCounters, Loss};
use brownout_probe::Probes;
use brownout_units::Delay;
use common::{impair, network};
use machine::until_quiet;
use traffic::{Family, Way, assert_share_within, option, set_segmentation_offload};

/// C of goodput = MSS ÷ RTT · C ÷ √p (Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion
/// Avoidance Algorithm", 1997, table 1): 0.87 if losses are periodic and every other packet is acknowledged, 1.31 if they
/// are random and each is. Linux counts bytes rather than acknowledgements, as if each were.
const MATHIS: RangeInclusive<f64> = 0.87..=1.31;

const NAMES: [&str; 5] = ["h0", "h1", "h2", "h3", "h4"];

/// Ten connections for twelve seconds, on links of their own, so that their losses are independent and their mean is soon
/// known: C, by what arrived and what was lost.
fn measure(asked: &str, loss: f64, family: Family, gso: bool) -> f64 {
    let network = network(NAMES.len() as u8);
    for name in NAMES {
        set_segmentation_offload(&network, name, gso);
    }
    let way = |from: usize, to: usize| Way { from: NAMES[from], to: NAMES[to], family };
    let ways: Vec<Way> = (0..5).flat_map(|from| (from + 1..5).map(move |to| way(from, to))).collect();
    let _far = impair(&network, &network.links(), Impairment::delay(Delay::from_ms(10)));
    let forth: Vec<_> = ways.iter().map(|way| way.link(&network)).collect();
    let connections: Vec<_> = ways.iter().map(|way| way.tcp(&network)).collect();
    // Bytes of a full packet beside IP, TCP and its time stamps.
    let segment_bits = f64::from(option(&connections[0].0, libc::IPPROTO_TCP, libc::TCP_MAXSEG)) * 8.0;
    let _lossy =
        impair(&network, &forth, Impairment { loss: Loss::Independent(asked.parse().unwrap()), ..Impairment::NONE });
    let (warm_up, measured) = (Duration::from_secs(3), Duration::from_secs(12));
    let is_over = Arc::new(AtomicBool::new(false));
    // What the readers got: neither what was sent again nor what still waits for a gap to be filled.
    let received = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (connections.into_iter())
        .map(|(mut sender, mut receiver)| {
            thread::spawn(move || while sender.write_all(&[7; 1 << 16]).is_ok() {});
            let (received, ends) = (Arc::clone(&received), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut block = vec![0; 1 << 16];
                while !ends.load(Ordering::Relaxed) {
                    let bytes = receiver.read(&mut block).unwrap();
                    if bytes == 0 {
                        break;
                    }
                    received.fetch_add(bytes as u64, Ordering::Relaxed);
                }
            })
        })
        .collect();
    // Slow start ends with the first loss.
    let probes = Probes::start(&network, Duration::from_millis(20)).unwrap();
    thread::sleep(warm_up);
    probes.drain();
    network.control().take_counters().unwrap();
    let (began, before) = (Instant::now(), received.load(Ordering::Relaxed));
    thread::sleep(measured);
    let got = received.load(Ordering::Relaxed) - before;
    let mut all = network.control().take_counters().unwrap();
    let took = began.elapsed().as_secs_f64();
    // There and back, as long as it took on the mean on this machine.
    let delays: Vec<f64> =
        probes.drain().iter().filter_map(|sample| sample.delay_ns).map(|ns| ns as f64 / 1e9).collect();
    let rtt = 2.0 * delays.iter().sum::<f64>() / delays.len() as f64;
    assert!(rtt >= 0.020, "{rtt} s, there and back");
    is_over.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    all.retain(|counters| forth.contains(&counters.link));
    let sum = |what: fn(&LinkCounters) -> u64| all.iter().map(what).sum::<u64>();
    let (offered, lost) = (sum(|c| c.offered_packets), sum(|c| c.lost));
    let what = format!("{asked} in TCP over {family:?}, GSO packets {gso}");
    // Of four such judgements, one in 2,500 runs may fail one.
    assert_share_within(3.89, lost, offered, loss, 1.0, &what);
    assert_eq!(sum(|c| c.frames) < offered, gso, "{what}: {}", common::NO_GSO_PACKETS);
    let goodput = got as f64 * 8.0 / segment_bits / took / ways.len() as f64;
    let constant = goodput * rtt * (lost as f64 / offered as f64).sqrt();
    println!("{what}: {:.2} Mbit/s each, {:.2} ms, C {constant:.2}", goodput * segment_bits / 1e6, rtt * 1e3);
    constant
}

#[track_caller]
fn assert_mathis(asked: &str, loss: f64, family: Family) {
    until_quiet(asked, 15.0, |_| {
        let [bundled, single] = [true, false].map(|gso| measure(asked, loss, family, gso));
        // Loss of whole GSO packets would nearly double it at 0.1 %.
        let is_alike = (bundled / single - 1.0).abs() < 0.2;
        match is_alike && [bundled, single].iter().all(|constant| MATHIS.contains(constant)) {
            true => Ok(()),
            false => Err(format!("C of {bundled} bundled, {single} packet by packet")),
        }
    });
}

#[test]
fn reno_gets_through_random_loss_what_mathis_says_and_no_more_with_gso_packets() {
    assert_mathis("0.1%", 0.001, Family::V6);
}

#[test]
#[ignore = "the same at a loss at which few packets are bundled: make test-long"]
fn reno_gets_through_a_loss_of_one_per_cent_what_mathis_says() {
    assert_mathis("1%", 0.01, Family::V4);
}
