//! Trains: the rate of a link, measured by how far packets sent back to back are pulled apart.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use brownout_network::{Impairment, Link, NetworkError, Probes, QueueLimit, RateLimit, TrainSample, TrainSpec, Trains};
use brownout_units::BitRate;
use common::{PATIENCE, impair, link, network};

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

fn median_rate(samples: &[TrainSample], link: Link) -> f64 {
    let of_link = samples.iter().filter(|sample| sample.link == link);
    let mut rates: Vec<f64> = of_link.map(|sample| sample.rate_bps.unwrap_or_else(|| panic!("{sample:?}"))).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
fn a_link_without_a_limit_lets_more_than_500_mbit_through() {
    let network = network(3);
    let links = network.links();
    let often = TrainSpec { every: Duration::from_millis(200), ..TrainSpec::default() };
    let trains = Trains::start(&network, &links.iter().map(|link| (*link, None)).collect::<Vec<_>>(), often).unwrap();
    let all = samples(&trains, &links, 9);
    assert!(all.iter().all(|sample| sample.packets == 200 && sample.arrived == 200), "{all:?}");
    for link in links {
        let rate = median_rate(&all, link);
        println!("{link:?}: {:.0} Mbit/s, {:?}", rate / 1e6, trains.realtime());
        assert!(rate > 500e6, "{rate}");
    }
    assert_eq!(trains.discarded(), 0);
}

#[test]
fn a_delay_changes_no_rate_and_a_cut_leaves_none() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let late = impair(&network, &[there], Impairment::delay("100ms".parse().unwrap()));
    let often = TrainSpec { every: Duration::from_millis(50), ..TrainSpec::default() };
    let trains = Trains::start(&network, &[(there, None)], often).unwrap();
    assert!(median_rate(&samples(&trains, &[there], 9), there) > 500e6);
    late.heal().unwrap();
    let cut = impair(&network, &[there], Impairment::loss("100%".parse().unwrap()));
    let since = cut.change().at_ns + cut.change().error_ns;
    let end = Instant::now() + PATIENCE;
    let mut lost = Vec::new();
    while lost.len() < 5 {
        assert!(Instant::now() < end, "{lost:?}");
        thread::sleep(Duration::from_millis(20));
        lost.extend(trains.drain().into_iter().filter(|sample| sample.sent_ns > since));
    }
    assert!(lost.iter().all(|sample| (sample.rate_bps, sample.arrived, sample.packets) == (None, 0, 200)), "{lost:?}");
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
    assert!(matches!(&error, NetworkError::Trains(reason) if reason.contains("132 links")), "{error}");
    let slow: Vec<_> = links.iter().map(|(link, _)| (*link, Some("1mbit".parse().unwrap()))).collect();
    assert!(Trains::start(&network, &slow, TrainSpec::default()).is_ok());
}

#[test]
fn trains_read_the_rate_of_a_limited_link_from_100_kbit_to_500_mbit() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    for rate in ["100kbit", "1mbit", "10mbit", "100mbit", "500mbit"] {
        let asked: BitRate = rate.parse().unwrap();
        // Releases that a busy machine makes late are in single trains; the median of a few, in the best of three tries.
        for attempt in 1.. {
            let limit = RateLimit { rate: asked, queue: QueueLimit::Bytes("1MiB".parse().unwrap()), overhead_bytes: 0 };
            let _guard = impair(&network, &[there], Impairment { rate: Some(limit), ..Impairment::NONE });
            let often = TrainSpec { every: Duration::from_millis(100), ..TrainSpec::default() };
            let trains = Trains::start(&network, &[(there, Some(asked))], often).unwrap();
            let measured = median_rate(&samples(&trains, &[there], 3), there);
            let error = measured / asked.bits_per_second() as f64 - 1.0;
            println!("{rate}: {:.4} Mbit/s, {:+.2} %", measured / 1e6, error * 100.0);
            if error.abs() <= 0.03 {
                break;
            }
            assert!(attempt < 3, "{rate}: {measured} bit/s");
        }
    }
}
