//! Trains: the rate of a link, measured by how far packets sent back to back are pulled apart.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../network/tests/common/mod.rs"]
mod common;
#[path = "../../network/tests/machine/mod.rs"]
mod machine;

use std::{
    net::UdpSocket,
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_network::{Chance, Impairment, Link, LinkControl, Loss, QueueLimit, RateLimit};
use brownout_probe::{ProbeError, Probes, TrainSample, TrainSpec, Trains};
use brownout_units::BitRate;
use common::{PATIENCE, impair, link, network};
use machine::until_quiet;

/// Packets of a train without an expectation.
const WHOLE: u32 = 200;

/// Drains until every one of `links` has `enough` trains.
fn samples(trains: &Trains, links: &[Link], enough: usize) -> Vec<TrainSample> {
    let end = Instant::now() + PATIENCE;
    let mut all: Vec<TrainSample> = Vec::new();
    while links.iter().any(|link| all.iter().filter(|sample| sample.link == *link).count() < enough) {
        assert!(Instant::now() < end, "only {all:?} within {PATIENCE:?}; {} discarded", trains.discarded());
        thread::sleep(Duration::from_millis(20));
        all.extend(trains.drain());
    }
    all
}

/// Of a link that loses nothing: no packet is missing of what was sent. A train that the machine cut short tells of the
/// machine; most are whole.
fn median_rate(samples: &[TrainSample], link: Link, whole: u32) -> Result<f64, String> {
    let of_link: Vec<_> = samples.iter().filter(|sample| sample.link == link).collect();
    assert!(of_link.iter().all(|sample| sample.arrived == sample.packets), "{of_link:?}");
    let mut rates: Vec<f64> =
        of_link.iter().filter(|sample| sample.packets == whole).filter_map(|sample| sample.rate_bps).collect();
    if rates.len() * 2 <= of_link.len() {
        return Err(format!("most trains have been cut short: {of_link:?}"));
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[rates.len() / 2])
}

#[test]
fn a_link_without_a_limit_lets_more_than_500_mbit_through() {
    until_quiet("no limit", 2.0, |_| {
        let network = network(3);
        let links = network.links();
        let often = TrainSpec { every: Duration::from_millis(200), ..TrainSpec::default() };
        let all_links: Vec<_> = links.iter().map(|link| (*link, None)).collect();
        let trains = Trains::start(&network, &all_links, often).unwrap();
        let all = samples(&trains, &links, 9);
        for link in links {
            let rate = median_rate(&all, link, WHOLE)?;
            println!("{link:?}: {:.0} Mbit/s, {:?}", rate / 1e6, trains.realtime());
            if rate <= 500e6 {
                return Err(format!("{link:?}: {rate} bit/s"));
            }
        }
        match trains.discarded() * 10 <= all.len() as u64 {
            true => Ok(()),
            false => Err(format!("{} discarded", trains.discarded())),
        }
    });
}

#[test]
fn a_delay_changes_no_rate_and_a_cut_leaves_none() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let often = TrainSpec { every: Duration::from_millis(50), ..TrainSpec::default() };
    until_quiet("delayed", 2.0, |_| {
        let _late = impair(&network, &[there], Impairment::delay("100ms".parse().unwrap()));
        let trains = Trains::start(&network, &[(there, None)], often).unwrap();
        let rate = median_rate(&samples(&trains, &[there], 9), there, WHOLE)?;
        (rate > 500e6).then_some(()).ok_or_else(|| format!("{rate} bit/s"))
    });
    let trains = Trains::start(&network, &[(there, None)], often).unwrap();
    let cut =
        impair(&network, &[there], Impairment { loss: Loss::Independent("100%".parse().unwrap()), ..Impairment::NONE });
    let since = cut.change().at_ns + cut.change().error_ns;
    let end = Instant::now() + PATIENCE;
    let mut lost = Vec::new();
    while lost.len() < 5 {
        assert!(Instant::now() < end, "{lost:?}");
        thread::sleep(Duration::from_millis(20));
        lost.extend(trains.drain().into_iter().filter(|sample| sample.sent_ns > since));
    }
    assert!(lost.iter().all(|sample| (sample.rate_bps, sample.arrived) == (None, 0)), "{lost:?}");
    assert!(lost.iter().all(|sample| (1..=WHOLE).contains(&sample.packets)), "{lost:?}");
}

#[test]
fn a_train_is_in_one_piece_again_when_a_fault_of_sizes_is_healed() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    // Somebody whom the path has told that it is narrow: the kernel remembers it for whoever sends there.
    let narrow = impair(&network, &[there], Impairment { mtu: Some(1_000), ..Impairment::NONE });
    let told = || {
        let (host, to) = (&network.hosts()[0], network.hosts()[1].address());
        let sends = || {
            let socket = UdpSocket::bind((host.address(), 0)).unwrap();
            let begun = Instant::now();
            // The first is refused; the kernel cuts the others by itself, and none is too big any more.
            while socket.send_to(&[0; 1_400], (to, 9)).is_ok() && begun.elapsed() < Duration::from_millis(200) {
                thread::sleep(Duration::from_millis(10));
            }
        };
        host.run(sends).unwrap();
    };
    told();
    let counted = || network.control().take_counters().unwrap().into_iter().find(|one| one.link == there).unwrap();
    assert!(counted().too_big > 0, "nobody was told");
    drop(narrow);
    counted();
    let often = TrainSpec { every: Duration::from_millis(50), ..TrainSpec::default() };
    let trains = Trains::start(&network, &[(there, None)], often).unwrap();
    let all = samples(&trains, &[there], 5);
    drop(trains);
    let (counted, arrived) = (counted(), all.iter().map(|sample| u64::from(sample.arrived)).sum::<u64>());
    assert!(arrived > 0 && counted.offered_bytes / counted.offered_packets > 1_200, "{counted:?}");
}

#[test]
fn a_link_that_also_damages_packets_shows_its_rate_all_the_same() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let asked: BitRate = "10mbit".parse().unwrap();
    let limit = RateLimit { rate: asked, queue: QueueLimit::Bytes("2MiB".parse().unwrap()), overhead_bytes: 0 };
    let corrupt = Chance::of("30%".parse().unwrap());
    until_quiet("damaged", 2.0, |_| {
        let _guard = impair(&network, &[there], Impairment { rate: Some(limit), corrupt, ..Impairment::NONE });
        let spec = TrainSpec { every: Duration::from_millis(100), ..TrainSpec::default() };
        let trains = Trains::start(&network, &[(there, Some(asked))], spec).unwrap();
        let all = samples(&trains, &[there], 9);
        assert!(all.iter().any(|sample| sample.arrived < sample.packets), "nothing was damaged: {all:?}");
        let mut rates: Vec<f64> = all.iter().filter_map(|sample| sample.rate_bps).collect();
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
        let error = median / asked.bits_per_second() as f64 - 1.0;
        // 30 % less is what arrives whole.
        match error.abs() <= 0.05 && trains.discarded() == 0 {
            true => Ok(()),
            false => Err(format!("{:+.2} %, {} discarded: {all:?}", error * 100.0, trains.discarded())),
        }
    });
}

#[test]
fn trains_and_probes_run_side_by_side() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let probes = Probes::start(&network, Duration::from_millis(5)).unwrap();
    let trains = Trains::start(&network, &[(there, None)], TrainSpec::default()).unwrap();
    samples(&trains, &[there], 2);
    let all = common::samples(&probes, |all| all.iter().filter(|sample| sample.link == there).count() >= 100);
    assert!(all.iter().all(|sample| sample.delay_ns.is_some()));
}

#[test]
fn trains_that_would_be_a_load_of_their_own_are_refused() {
    let network = network(12);
    let links: Vec<_> = network.links().into_iter().map(|link| (link, None)).collect();
    let error = Trains::start(&network, &links, TrainSpec::default()).unwrap_err();
    assert!(matches!(&error, ProbeError::Trains(reason) if reason.contains("132 links")), "{error}");
    let slow: Vec<_> = links.iter().map(|(link, _)| (*link, Some("1mbit".parse().unwrap()))).collect();
    assert!(Trains::start(&network, &slow, TrainSpec::default()).is_ok());
}

#[test]
fn trains_read_the_rate_of_a_limited_link_from_100_kbit_to_500_mbit() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    for (rate, trains_enough) in [("100kbit", 3), ("1mbit", 9), ("10mbit", 9), ("100mbit", 9), ("500mbit", 9)] {
        let asked: BitRate = rate.parse().unwrap();
        until_quiet(rate, 2.0, |sleepers| {
            let limit = RateLimit { rate: asked, queue: QueueLimit::Bytes("2MiB".parse().unwrap()), overhead_bytes: 0 };
            let _guard = impair(&network, &[there], Impairment { rate: Some(limit), ..Impairment::NONE });
            // Long ones, so that a packet that is late by a wake-up of the machine is but a small error.
            let spec = TrainSpec { packets: 800, every: Duration::from_millis(100), ..TrainSpec::default() };
            let trains = Trains::start(&network, &[(there, Some(asked))], spec).unwrap();
            let began = monotonic_ns();
            let all = samples(&trains, &[there], trains_enough);
            let whole = all.iter().map(|sample| sample.packets).max().unwrap();
            let asked = asked.bits_per_second() as f64;
            let takes_ms = f64::from((whole - 1) * (u32::from(spec.payload) + 28) * 8) / asked * 1e3;
            let error = median_rate(&all, there, whole)? / asked - 1.0;
            let bound = 0.03 + 2.0 * sleepers.since(began).usual / takes_ms;
            println!(
                "{rate}: {whole} packets take {takes_ms:.1} ms; {:+.2} %, of {:.2} %",
                error * 100.0,
                bound * 100.0
            );
            (error.abs() <= bound).then_some(()).ok_or_else(|| format!("{:+.2} %", error * 100.0))
        });
    }
}
