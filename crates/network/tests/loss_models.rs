//! Every loss model: asked and measured by sequence numbers, over both families, one wire packet at a time or bundled.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod traffic;

use brownout_network::{Impairment, Loss};
use brownout_units::Share;
use common::{impair, network};
use traffic::{Family, Outcome, Way, assert_share, send_numbered};

const PACKETS: u32 = 100_000;

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

fn gilbert_elliott(p: &str, r: &str, bad: &str, good: &str) -> Loss {
    let [p, r, one_minus_h, one_minus_k] = [p, r, bad, good].map(share);
    Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }
}

fn markov(shares: [&str; 5]) -> Loss {
    let [p13, p31, p32, p23, p14] = shares.map(share);
    Loss::Markov { p13, p31, p32, p23, p14 }
}

fn correlated(of: &str, correlation: &str) -> Loss {
    Loss::Correlated { share: share(of), correlation: share(correlation) }
}

/// Which of the datagrams did not arrive.
fn lost(model: Loss, family: Family, together: u32) -> Vec<bool> {
    let network = network(2);
    let way = Way::of(family);
    let _guard = impair(&network, &[way.link(&network)], Impairment { loss: model, ..Impairment::NONE });
    let Outcome { arrived, counters } = send_numbered(&network, way, PACKETS, together);
    assert!(arrived.is_sorted(), "loss alone reorders nothing");
    assert_eq!(counters.delivered_packets, arrived.len() as u64);
    assert_eq!(counters.lost, u64::from(PACKETS) - counters.delivered_packets);
    let mut lost = vec![true; PACKETS as usize];
    arrived.into_iter().for_each(|number| lost[number as usize] = false);
    lost
}

/// Mean length of the runs of losses.
fn mean_burst(lost: &[bool]) -> f64 {
    let runs: Vec<_> = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
    runs.iter().sum::<usize>() as f64 / runs.len() as f64
}

/// How much a loss resembles the one before.
fn autocorrelation(lost: &[bool]) -> f64 {
    let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
    let both = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / (lost.len() - 1) as f64;
    (both - share * share) / (share * (1.0 - share))
}

#[test]
fn every_model_loses_its_mean_in_bursts_of_its_length() {
    // The spread of a chain is that of the sum of its correlations, (1 + ρ) ÷ (1 − ρ), with ρ = 1 − p − r.
    for (model, spread, family, together) in [
        (Loss::Independent(share("1%")), 1.0, Family::V4, 40),
        (Loss::Independent(share("10%")), 1.0, Family::V6, 40),
        (correlated("5%", "50%"), 3.0, Family::V4, 40),
        (correlated("20%", "25%"), 5.0 / 3.0, Family::V6, 25),
        (gilbert_elliott("1%", "10%", "100%", "0%"), 17.2, Family::V4, 40),
        (gilbert_elliott("2%", "20%", "100%", "0%"), 8.1, Family::V6, 40),
        (gilbert_elliott("2%", "25%", "80%", "1%"), 5.0, Family::V4, 25),
        (markov(["2%", "20%", "5%", "30%", "0.5%"]), 8.0, Family::V6, 40),
        (markov(["0%", "100%", "0%", "100%", "5%"]), 1.0, Family::V4, 40),
    ] {
        let lost = lost(model, family, together);
        let hits = lost.iter().filter(|lost| **lost).count() as u64;
        assert_share(hits, u64::from(PACKETS), model.mean().fraction(), spread, &model.to_string());
        let (asked, found) = (model.mean_burst().unwrap(), mean_burst(&lost));
        println!("{model}: asked bursts of {asked:.3}, measured {found:.3}");
        assert!((found / asked - 1.0).abs() < 0.05, "{model}: bursts of {found}, expected {asked}");
    }
}

#[test]
fn losses_are_correlated_as_asked() {
    for (asked, family) in [("0%", Family::V4), ("25%", Family::V6), ("75%", Family::V4)] {
        let found = autocorrelation(&lost(correlated("30%", asked), family, 40));
        let expected = share(asked).fraction();
        println!("asked a correlation of {asked}, measured {:.2}%", found * 100.0);
        // Four standard deviations of such an estimate from 100,000 packets.
        assert!((found - expected).abs() < 0.013, "{asked}: {found}");
    }
}
