//! Delays of every distribution, and how closely they are kept: asked and measured, by probes and by echoes.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod machine;
mod traffic;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_network::{Distribution, Impairment, ImpairmentGuard, Link, LinkControl, Network};
use brownout_probe::{ProbeSample, Probes};
use brownout_units::{Delay, Share};
use common::{delays_ms, impair, link, network, quantile, samples};
use machine::{Sleepers, until_quiet};
use traffic::{Family, Way};

/// At least so many probes of each of these links that were sent since a time.
fn sent_since(probes: &Probes, links: &[Link], since_ns: u64, each: usize) -> Vec<ProbeSample> {
    let counts = |all: &[ProbeSample], link| {
        all.iter().filter(|s| s.link == link && s.sent_ns > since_ns && s.delay_ns.is_some()).count()
    };
    let all = samples(probes, |all| links.iter().all(|link| counts(all, *link) >= each));
    all.into_iter().filter(|sample| sample.sent_ns > since_ns).collect()
}

/// Those of them that did not meet a standstill of the machine. Which are left out depends on when they were sent alone
/// (`longest_ms` before it, or in it), and so not on the delay that was drawn for them.
fn undisturbed(sleepers: &Sleepers, samples: Vec<ProbeSample>, longest_ms: u64) -> Result<Vec<ProbeSample>, String> {
    const STANDSTILL_MS: f64 = 10.0;
    let (stalls, before) = (sleepers.stalls(STANDSTILL_MS), samples.len());
    let meets =
        |sent_ns| stalls.iter().any(|stall| stall.start < sent_ns + longest_ms * 1_000_000 && sent_ns < stall.end);
    let mut rest = samples;
    rest.retain(|sample| !meets(sample.sent_ns));
    println!("{} of {before} probes met none of {} ms at a standstill", rest.len(), stalls.len());
    match rest.len() * 10 >= before * 7 {
        true => Ok(rest),
        false => Err(format!("the machine stood still for {} ms", stalls.len())),
    }
}

#[test]
fn a_delay_is_kept_to_a_tenth_of_a_millisecond_and_its_tail_to_one() {
    // Nothing leaves early. Late it is at most by this, and by what the machine adds to any packet, when it enters and
    // when it leaves: that is no property of ours.
    for asked in ["1ms", "10ms", "100ms"] {
        let delay: Delay = asked.parse().unwrap();
        until_quiet(asked, 2.0, |sleepers| {
            let network = network(3);
            let hit = [link(&network, "h0", "h1"), link(&network, "h2", "h0")];
            let _guard = impair(&network, &hit, Impairment::delay(delay));
            let probes = Probes::start_on(&network, &hit, Duration::from_millis(1)).unwrap();
            let began = monotonic_ns();
            let all = sent_since(&probes, &hit, began, 2_000);
            let machine = sleepers.since(began);
            for link in hit {
                let measured = delays_ms(&all, link);
                let [least, median, most] =
                    [0.0, 0.5, 0.99].map(|share| quantile(&measured, share) - delay.secs() * 1e3);
                println!("{asked} {link:?}: {least:+.3} ms, median {median:+.3} ms, 99 % {most:+.3} ms; {machine:.3?}");
                assert!(least >= 0.0, "{asked}: {least} ms too early");
                if median > 0.1 + 2.0 * machine.usual || most > 1.0 + 2.0 * machine.tail {
                    return Err(format!("median {median:+.3} ms, 99 % {most:+.3} ms"));
                }
            }
            Ok(())
        });
    }
}

/// The largest distance between the share of delays below a value and what the distribution says (Kolmogorov–Smirnov).
fn distance(sorted_ms: &[f64], delay_ms: f64, jitter_ms: f64, distribution: Distribution) -> f64 {
    // The distribution function, from its inverse.
    let below = |value: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            let quantile = delay_ms + jitter_ms * distribution.quantile(middle);
            if quantile < value { low = middle } else { high = middle }
        }
        low
    };
    let count = sorted_ms.len() as f64;
    let apart = (0..).zip(sorted_ms).map(|(place, value)| {
        let expected = below(*value);
        (expected - f64::from(place) / count).abs().max((f64::from(place + 1) / count - expected).abs())
    });
    apart.fold(0.0, f64::max)
}

#[test]
fn delays_are_distributed_as_asked() {
    const SAMPLES: usize = 4_000;
    let [delay_ms, jitter_ms] = [40.0, 10.0];
    let asked = Impairment { delay: Delay::from_ms(40), jitter: Delay::from_ms(10), ..Impairment::NONE };
    until_quiet("distributions", 5.0, |sleepers| {
        let network = network(3);
        let pairs = [("h0", "h1"), ("h0", "h2"), ("h1", "h0"), ("h1", "h2")].map(|(a, b)| link(&network, a, b));
        let clear = link(&network, "h2", "h0");
        let probed = [pairs[0], pairs[1], pairs[2], pairs[3], clear];
        let _guards: Vec<ImpairmentGuard> = (Distribution::ALL.iter().zip(pairs))
            .map(|(distribution, link)| impair(&network, &[link], Impairment { distribution: *distribution, ..asked }))
            .collect();
        let probes = Probes::start_on(&network, &probed, Duration::from_micros(2_500)).unwrap();
        let began = monotonic_ns();
        let all = undisturbed(sleepers, sent_since(&probes, &probed, began, SAMPLES), 100)?;
        // What the machine adds to any packet: seen on a link without a delay when it enters, and again when it leaves.
        let added = quantile(&delays_ms(&all, clear), 0.5);
        let range = 2.0 * sleepers.since(began).usual + 0.05;
        for (distribution, link) in Distribution::ALL.into_iter().zip(pairs) {
            let apart_by = |shift: f64, from: Distribution| {
                let measured: Vec<f64> = delays_ms(&all, link).into_iter().map(|ms| ms - shift).collect();
                distance(&measured, delay_ms, jitter_ms, from)
            };
            let shifts = (0..=10).map(|tenths| added + range * f64::from(tenths) / 10.0);
            let (apart, shift) =
                shifts.map(|shift| (apart_by(shift, distribution), shift)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
            let measured = delays_ms(&all, link);
            // Of 1,000 true samples of this size one is farther apart; the rest is what timing adds where delays are dense.
            let bound = 1.95 / (measured.len() as f64).sqrt() + 0.01;
            let [p10, p90] =
                [0.1, 0.9].map(|q| (quantile(&measured, q) - shift, delay_ms + jitter_ms * distribution.quantile(q)));
            println!(
                "{distribution}: p10 {:.2} ms (asked {:.2}), p90 {:.2} ms (asked {:.2}); {shift:.3} ms (of {added:.3} to {:.3}) \
                 added by the machine; apart by {apart:.4} of {bound:.4}",
                p10.0,
                p10.1,
                p90.0,
                p90.1,
                added + range
            );
            if apart > bound {
                return Err(format!("{distribution}: apart by {apart}, more than {bound}"));
            }
            // No distribution passes for another.
            for other in Distribution::ALL.into_iter().filter(|other| *other != distribution) {
                let wrong = apart_by(shift, other);
                let alike = [Distribution::Pareto, Distribution::ParetoNormal];
                let least = if alike.contains(&other) && alike.contains(&distribution) { bound } else { 2.0 * bound };
                if wrong <= least {
                    return Err(format!("{distribution} passes for {other}: {wrong}"));
                }
            }
        }
        Ok(())
    });
}

/// How much delays resemble those before them, by sequence number: where one is missing, its neighbours are no pair.
fn autocorrelation(delays: &BTreeMap<u64, f64>) -> f64 {
    let mean = delays.values().sum::<f64>() / delays.len() as f64;
    let variance = delays.values().map(|delay| (delay - mean).powi(2)).sum::<f64>() / delays.len() as f64;
    let pairs = delays.iter().filter_map(|(seq, delay)| Some((delay, delays.get(&(seq + 1))?)));
    let products: Vec<f64> = pairs.map(|(one, next)| (one - mean) * (next - mean)).collect();
    products.iter().sum::<f64>() / products.len() as f64 / variance
}

#[test]
fn successive_delays_resemble_one_another_as_asked() {
    const SAMPLES: usize = 6_000;
    let asked = Impairment { delay: Delay::from_ms(30), jitter: Delay::from_ms(10), ..Impairment::NONE };
    until_quiet("correlation", 5.0, |sleepers| {
        let network = network(3);
        let table = [
            (link(&network, "h0", "h1"), Distribution::Uniform, "80%"),
            (link(&network, "h0", "h2"), Distribution::Normal, "50%"),
            (link(&network, "h1", "h2"), Distribution::Normal, "0%"),
        ];
        let _guards: Vec<ImpairmentGuard> = (table.iter())
            .map(|(link, distribution, correlation)| {
                let jitter = if *distribution == Distribution::Normal {
                    Impairment { jitter: Delay::from_ms(5), ..asked }
                } else {
                    asked
                };
                let impairment = Impairment { distribution: *distribution, ..jitter };
                impair(&network, &[*link], Impairment { delay_correlation: correlation.parse().unwrap(), ..impairment })
            })
            .collect();
        let hit = table.map(|row| row.0);
        let probes = Probes::start_on(&network, &hit, Duration::from_micros(1_500)).unwrap();
        let all = undisturbed(sleepers, sent_since(&probes, &hit, monotonic_ns(), SAMPLES), 60)?;
        for (link, distribution, correlation) in table {
            let of_link = all.iter().filter(|sample| sample.link == link);
            let delays = of_link.filter_map(|sample| Some((sample.seq, sample.delay_ns? as f64))).collect();
            let found = autocorrelation(&delays);
            let expected = correlation.parse::<Share>().unwrap().fraction();
            println!("{distribution} {correlation}: measured {:.1}%", found * 100.0);
            if (found - expected).abs() > 0.05 {
                return Err(format!("{distribution} {correlation}: {found}"));
            }
        }
        Ok(())
    });
}

/// Milliseconds from sending to the echo, of the fastest of many.
fn least_echo_ms(mut exchange: impl FnMut()) -> f64 {
    let echoes = (0..60).map(|_| {
        let sent = monotonic_ns();
        exchange();
        (monotonic_ns() - sent) as f64 / 1e6
    });
    echoes.fold(f64::MAX, f64::min)
}

#[test]
fn udp_and_tcp_over_both_families_are_delayed_by_what_is_asked_each_way() {
    for family in Family::BOTH {
        let (network, way) = (network(2), Way::of(family));
        let forth = way.link(&network);
        let back = link(&network, way.to, way.from);
        // What the machine adds is seen where nothing is asked.
        let mut added = [0.0; 2];
        for (forth_ms, back_ms) in [(0, 0), (5, 0), (0, 5), (2, 7)] {
            let _guards = [(forth, forth_ms), (back, back_ms)]
                .map(|(link, ms)| impair(&network, &[link], Impairment::delay(Delay::from_ms(ms))));
            let (near, far) = way.udp(&network);
            let echo = thread::spawn(move || {
                let mut byte = [0];
                while far.recv(&mut byte).unwrap() > 0 && byte[0] > 0 {
                    far.send(&byte).unwrap();
                }
            });
            let udp = least_echo_ms(|| {
                near.send(&[1]).unwrap();
                near.recv(&mut [0]).unwrap();
            });
            near.send(&[0]).unwrap();
            echo.join().unwrap();

            let (mut near, mut far) = way.tcp(&network);
            near.set_nodelay(true).unwrap();
            let echo = thread::spawn(move || {
                let mut byte = [0];
                while far.read(&mut byte).unwrap() > 0 {
                    far.write_all(&byte).unwrap();
                }
            });
            let tcp = least_echo_ms(|| echo_once(&mut near));
            drop(near);
            echo.join().unwrap();

            let asked = (forth_ms + back_ms) as f64;
            println!("{family:?} {forth_ms} + {back_ms} ms: UDP {udp:.3} ms, TCP {tcp:.3} ms");
            if asked == 0.0 {
                added = [udp, tcp];
                continue;
            }
            for (least, added) in [udp, tcp].into_iter().zip(added) {
                // The fastest of sixty is late only if all are; a queue of one's own adds no millisecond.
                let most = asked + added + 1.0;
                assert!((asked..most).contains(&least), "{family:?}: {least} ms, not {asked} to {most}");
            }
        }
    }
}

fn echo_once(near: &mut TcpStream) {
    near.write_all(&[1]).unwrap();
    near.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_ramp_changes_one_layer_in_place_and_neither_loses_nor_reorders_anything() {
    let (network, way): (Network, Way) = (network(2), Way::of(Family::V4));
    let hit = way.link(&network);
    let control = network.control();
    let (sender, receiver) = way.udp(&network);
    let delay = |ms| Impairment::delay(Delay::from_ms(ms));
    let mut guard = impair(&network, &[hit], delay(0));
    let mut last = guard.change();
    let mut sent = 0u32;
    for ms in (0..=40).chain((0..40).rev()) {
        let change = guard.amend(&delay(ms)).unwrap();
        assert!(change.at_ns > last.at_ns);
        last = change;
        let expected = if ms == 0 { vec![] } else { vec![delay(ms)] };
        assert_eq!(control.effective(hit).unwrap(), expected);
        for _ in 0..10 {
            sender.send(&traffic::datagram(sent)).unwrap();
            sent += 1;
            thread::sleep(Duration::from_micros(200));
        }
    }
    let mut counted = common::counters(&network, hit);
    traffic::settle(&network, hit, &mut counted, u64::from(sent));
    let mut arrived = Vec::new();
    traffic::receive_until(&receiver, &mut arrived, u64::from(sent));
    assert_eq!(arrived, (0..sent).collect::<Vec<_>>());
}
