//! Detectors on made-up series: what they see and when, whom they accuse, how often they are wrong, and that they do not know the future.

use crate::watched::{MS, Noise, SECOND, Series, alarms, told};
use brownout_analysis::detectors::{DETECTORS, Heartbeats, Step, Times};

const THRESHOLD: &str = "static threshold";
const ADR: &str = "ADR";
const PEERS: &str = "peer-relative";
const ROWS: &str = "row/column";

/// From the 60th second to the 90th n2 is slow by 100 ms: its answers, and all round trips to and from it.
fn slow_node() -> Series {
    Series {
        slower: |second, node| if (60..90).contains(&second) && node == 1 { 100 * MS } else { 0 },
        farther: |second, pair| (if (60..90).contains(&second) && pair.contains(&1) { 100 * MS } else { 0 }, 0.0),
        ..Series::default()
    }
}

/// From the 60th second to the 90th the way between n2 and n3 takes 10 ms more, which makes both a little slower as coordinators.
fn slow_link() -> Series {
    Series {
        slower: |second, node| if (60..90).contains(&second) && node > 0 { 2 * MS } else { 0 },
        farther: |second, pair| (if (60..90).contains(&second) && pair == [1, 2] { 10 * MS } else { 0 }, 0.0),
        ..Series::default()
    }
}

/// A closed loop in which n2 is slow: all users wait for it most of the time.
fn closed_loop() -> Series {
    Series {
        operations: |second, _| if (60..90).contains(&second) { 2.0 } else { 40.0 },
        slower: |second, node| if (60..90).contains(&second) && node == 1 { 100 * MS } else { 0 },
        ..Series::default()
    }
}

/// Slow by 100 ms in one second of three.
fn flapping() -> Series {
    Series {
        slower: |second, node| if (60..90).contains(&second) && second % 3 == 0 && node == 1 { 100 * MS } else { 0 },
        farther: |second, pair| {
            (if (60..90).contains(&second) && second % 3 == 0 && pair.contains(&1) { 100 * MS } else { 0 }, 0.0)
        },
        ..Series::default()
    }
}

/// Slower by 0.1 ms with every second.
fn drift() -> Series {
    Series {
        slower: |second, node| if node == 1 { second.saturating_sub(60) as u64 * MS / 10 } else { 0 },
        farther: |second, pair| (if pair.contains(&1) { second.saturating_sub(60) as u64 * MS / 10 } else { 0 }, 0.0),
        ..Series::default()
    }
}

fn told_by(detector: &str, series: &Series) -> Vec<(u64, String)> {
    let watched = series.watched();
    told(&watched, &alarms(detector, &watched))
}

/// The first alarm was raised in one of these seconds and accuses this one, for each of ten seeds; so many alarms are there at most.
fn sees(detector: &str, series: fn() -> Series, when: std::ops::RangeInclusive<u64>, whom: &str, most: usize) {
    for seed in 1..=10 {
        let told = told_by(detector, &Series { seed, ..series() });
        let first = told.first().unwrap_or_else(|| panic!("{detector} saw nothing (seed {seed})"));
        assert!(when.contains(&first.0) && first.1 == whom && told.len() <= most, "{detector}, seed {seed}: {told:?}");
    }
}

#[test]
fn a_slow_node_is_seen_within_three_seconds_and_named_by_those_that_look_at_hosts_and_links() {
    sees(THRESHOLD, slow_node, 63..=63, "nobody", 1);
    sees(PEERS, slow_node, 63..=63, "n2", 1);
    sees(ROWS, slow_node, 63..=63, "n2", 1);
}

#[test]
fn a_slow_link_is_told_from_a_slow_node_by_heartbeats_alone() {
    sees(ROWS, slow_link, 63..=63, "n2 – n3", 1);
    for seed in 1..=10 {
        let told = told_by(PEERS, &Series { seed, ..slow_link() });
        assert!(!told.is_empty() && told.iter().all(|(_, accused)| accused == "n2" || accused == "n3"), "{told:?}");
    }
}

#[test]
fn a_node_that_loses_packets_is_named_and_so_is_a_link() {
    let node = || Series {
        farther: |second, pair| (0, if second >= 60 && pair.contains(&1) { 0.3 } else { 0.0 }),
        ..Series::default()
    };
    sees(ROWS, node, 63..=69, "n2", 1);
    let link = || Series {
        farther: |second, pair| (0, if second >= 60 && pair == [0, 3] { 0.3 } else { 0.0 }),
        ..Series::default()
    };
    sees(ROWS, link, 63..=69, "load – n1", 1);
}

#[test]
fn another_fault_is_seen_while_the_first_goes_on() {
    let both = || Series {
        farther: |second, pair| match (pair, second) {
            ([0, 3], 80..) => (0, 1.0),
            (pair, 60..) if pair.contains(&1) => (20 * MS, 0.0),
            _ => (0, 0.0),
        },
        ..Series::default()
    };
    for seed in 1..=10 {
        let found = told_by(ROWS, &Series { seed, ..both() });
        assert_eq!(found, [(63, "n2".to_owned()), (83, "load – n1".to_owned())], "seed {seed}");
    }
}

#[test]
fn adr_sees_a_slow_node_in_a_closed_loop_at_once_and_in_an_open_one_by_chance() {
    sees(ADR, closed_loop, 61..=61, "n2", 1);
    // Operations come as often as before: it needs a second in which fewer do.
    let seen = (1..=40).filter(|seed| !told_by(ADR, &Series { seed: *seed, ..slow_node() }).is_empty()).count();
    assert!(seen <= 8, "{seen} of 40");
}

#[test]
fn adr_takes_less_load_for_less_load_and_more_than_its_default_for_a_fault() {
    let idle = || Series { operations: |second, _| if second >= 60 { 4.0 } else { 40.0 }, ..Series::default() };
    let slow =
        || Series { slower: |second, node| if second == 60 && node == 2 { 501 * MS } else { 0 }, ..Series::default() };
    for seed in 1..=10 {
        assert_eq!(told_by(ADR, &Series { seed, ..idle() }), []);
    }
    sees(ADR, slow, 61..=61, "n3", 1);
}

#[test]
fn adr_starts_anew_when_the_load_changes() {
    // Counts and times without any noise: n1 answers as many in each second as are listed here.
    let with = |counts: fn(usize) -> f64, slow: usize| {
        let mut watched = Series { seconds: 60, ..Series::default() }.watched();
        for (second, step) in watched.steps.iter_mut().enumerate() {
            let mut times = Times::default();
            let more = if second == slow { 5 * MS } else { 0 };
            times.add(MS + more, 0.9 * counts(second));
            times.add(2 * MS + more, 0.1 * counts(second));
            step.ended.iter_mut().for_each(|ended| ended.ok = Times::default());
            step.ended[0].ok = times;
        }
        told(&watched, &alarms(ADR, &watched))
    };
    let falls = |second| if second == 45 { 50.0 } else { 100.0 };
    assert_eq!(with(falls, 45), [(46, "n1".to_owned())]);
    assert_eq!(with(falls, 46), [], "slow alone is nothing, nor is less load alone");
    let fell_before =
        |second| [(40, 95.0), (45, 50.0)].into_iter().find(|one| one.0 == second).map_or(100.0, |one| one.1);
    assert_eq!(with(fell_before, 45), [], "after less load its windows are empty for ten seconds");
    let rose_before =
        |second| [(40, 105.0), (45, 50.0)].into_iter().find(|one| one.0 == second).map_or(100.0, |one| one.1);
    assert_eq!(with(rose_before, 45), [], "after more load, too");
}

#[test]
fn a_drift_is_seen_as_soon_as_it_matters() {
    // By then n2 takes 1 ms more, as much as an operation takes.
    sees(PEERS, drift, 64..=72, "n2", 1);
    sees(ROWS, drift, 64..=68, "n2", 1);
}

#[test]
fn a_node_that_flaps_adds_up_where_a_threshold_forgets() {
    sees(PEERS, flapping, 67..=76, "n2", 2);
    sees(ROWS, flapping, 67..=76, "n2", 2);
    assert_eq!(told_by(THRESHOLD, &flapping()), []);
}

#[test]
fn what_hits_all_alike_is_nobodys_own() {
    let all = || Series {
        slower: |second, _| if second >= 60 { 100 * MS } else { 0 },
        farther: |second, _| (if second >= 60 { 100 * MS } else { 0 }, 0.0),
        ..Series::default()
    };
    for seed in 1..=10 {
        assert_eq!(told_by(PEERS, &Series { seed, ..all() }), []);
    }
    sees(ROWS, all, 63..=63, "nobody", 1);
}

#[test]
fn a_coordinator_that_answers_nothing_is_missed_by_its_peers() {
    let silent = || Series {
        operations: |second, node| if (60..90).contains(&second) && node == 1 { 0.0 } else { 40.0 },
        ..Series::default()
    };
    sees(PEERS, silent, 63..=63, "n2", 1);
    // Of one that seldom answered nothing is missed.
    let idle = || Series {
        operations: |second, node| match node {
            1 if second >= 60 => 0.0,
            1 => 1.0,
            _ => 40.0,
        },
        ..Series::default()
    };
    assert_eq!(told_by(PEERS, &idle()), []);
    let nothing = || Series { operations: |second, _| if second >= 60 { 0.0 } else { 40.0 }, ..Series::default() };
    sees(THRESHOLD, nothing, 63..=63, "nobody", 1);
}

#[test]
fn three_hosts_are_enough_to_tell_a_node_from_a_link_and_two_are_not() {
    let with = |series: Series, kept: &[usize], hosts: usize| {
        let mut watched = series.watched();
        watched.hosts.truncate(hosts);
        watched.pairs = kept.iter().map(|pair| watched.pairs[*pair]).collect();
        for step in &mut watched.steps {
            step.heartbeats = kept.iter().map(|pair| step.heartbeats[*pair].clone()).collect();
        }
        told(&watched, &alarms(ROWS, &watched))
    };
    let mut alone = slow_node().watched();
    assert!(DETECTORS.iter().all(|one| (one.can_watch)(&alone)));
    alone.coordinators.truncate(1);
    alone.steps.iter_mut().for_each(|step| step.heartbeats.clear());
    let can: Vec<bool> = DETECTORS.iter().map(|one| (one.can_watch)(&alone)).collect();
    assert_eq!(can, [true, true, false, false], "silence of who sees nothing is no good sign");
    let accuses = |whom: &str| [(63, whom.to_owned())];
    assert_eq!(with(slow_node(), &[0, 1, 3], 3), accuses("n2"));
    assert_eq!(with(slow_link(), &[0, 1, 3], 3), accuses("n2 – n3"));
    assert_eq!(with(slow_node(), &[0], 2), accuses("nobody"));
}

/// The bound of docs/detectors.md.
const FALSE_ALARMS_PER_HOUR: f64 = 2.0;

#[test]
fn false_alarms_are_rarer_than_two_an_hour_in_every_kind_of_noise() {
    for (learnt, noise) in [(5, Noise::ALL), (15, Noise::ALL)].into_iter().flat_map(|(n, all)| all.map(|one| (n, one)))
    {
        let (mut counts, mut hours) = ([0; DETECTORS.len()], 0.0);
        for seed in 0..100 {
            let series = Series { seed: 1_000 + seed, seconds: 300 + learnt, learnt, noise, ..Series::default() };
            let watched = series.watched();
            hours += 300.0 / 3600.0;
            for (count, one) in counts.iter_mut().zip(&DETECTORS) {
                *count += (one.alarms)(&watched).len();
            }
        }
        for (count, one) in counts.into_iter().zip(&DETECTORS) {
            let per_hour = count as f64 / hours;
            println!("learnt {learnt}s, {noise:?}: {} {per_hour:.2}/h", one.name);
            assert!(per_hour <= FALSE_ALARMS_PER_HOUR, "{noise:?}, learnt {learnt}s: {} {per_hour}/h", one.name);
        }
    }
}

#[test]
fn no_detector_knows_the_future() {
    let all: [fn() -> Series; 5] = [slow_node, slow_link, closed_loop, flapping, drift];
    for (at, series) in all.into_iter().enumerate() {
        for seed in 0..6 {
            let noise = Noise::ALL[seed as usize % Noise::ALL.len()];
            let whole = Series { seed, noise, ..series() }.watched();
            for cut in [0, 7, whole.learnt, 61, 62, 63, 66, 70, 89, 93] {
                let mut shorter = whole.clone();
                shorter.steps.truncate(cut);
                let mut other = whole.clone();
                for step in &mut other.steps[cut..] {
                    *step = upside_down(step);
                }
                for one in &DETECTORS {
                    let before = |alarms: Vec<_>| -> Vec<(u64, String)> {
                        told(&whole, &alarms).into_iter().filter(|(second, _)| *second <= cut as u64).collect()
                    };
                    let known = before((one.alarms)(&whole));
                    let text = format!("{} in series {at}, seed {seed}, cut at {cut}s", one.name);
                    assert_eq!(told(&whole, &(one.alarms)(&shorter)), known, "{text}");
                    if cut >= whole.learnt {
                        assert_eq!(before((one.alarms)(&other)), known, "{text}: another future");
                    }
                }
            }
        }
    }
}

/// A step in which everything is different.
fn upside_down(step: &Step) -> Step {
    let mut step = step.clone();
    step.ended.reverse();
    for ended in &mut step.ended {
        let mut ok = Times::default();
        ended.ok.iter().for_each(|(ns, count)| ok.add(ns * 300, count / 2.0));
        ended.ok = ok;
    }
    step.heartbeats = step.heartbeats.iter().map(|_| Heartbeats { round_trips: vec![SECOND / 2], lost: 3 }).collect();
    step
}
