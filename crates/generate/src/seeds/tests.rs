//! Seeds, against cassandra-stress's own seed manager, and as they ought to be.

use std::collections::{HashMap, HashSet, VecDeque};

use super::*;
use crate::distribution::Spec;

const VECTORS: &str = include_str!("../../golden/seeds/seeds.tsv");

fn spec(text: &str) -> Spec {
    text.parse().expect(text)
}

fn sequence(first: i64, last: i64, wrap: bool, lookback: Option<&str>) -> SeedRange {
    SeedRange::Sequence { first, last, wrap, lookback: lookback.map(spec) }
}

fn settings(range: SeedRange, flavour: Flavour) -> SeedSettings {
    SeedSettings::new(range, flavour, 11)
}

/// The settings that these words of a command line make.
fn compat(options: &str) -> SeedSettings {
    let value = |key: &str| options.split(' ').find_map(|word| word.strip_prefix(key));
    let range = match value("seq=") {
        Some(text) => {
            let (first, last) = text.split_once("..").expect(text);
            let wrap = !options.contains("no-wrap");
            sequence(first.parse().expect(first), last.parse().expect(last), wrap, value("read-lookback="))
        }
        None => SeedRange::Drawn(spec(value("dist=").expect(options))),
    };
    let mut settings = settings(range, Flavour::Compat);
    settings.visits = value("visits=").map_or(settings.visits, spec);
    settings.revisit = value("revisit=").map_or(settings.revisit, spec);
    settings
}

#[test]
fn compat_hands_out_the_seeds_of_cassandra_stress() {
    let (mut cases, mut steps) = (0, 0);
    for case in VECTORS.split("case\t").skip(1) {
        let mut lines = case.lines();
        let (mode, options) = lines.next().and_then(|head| head.split_once('\t')).expect("a case");
        let mut source = SeedManager::new(compat(options)).expect(options).seeded_source(1, 2, 3);
        let manager = source.manager().clone();
        let mut unfinished = VecDeque::new();
        for (number, line) in lines.enumerate() {
            let (kind, expected) = line.split_once('\t').expect(line);
            let got = if kind == "r" {
                source.next_read().map(|seed| seed.value().to_string())
            } else {
                source.next_write().map(|mut seed| {
                    let position = seed.move_forwards(1);
                    let told = format!("{}:{position}", seed.value());
                    unfinished.push_back((position == 0, position + 1 >= seed.visits(), seed));
                    while unfinished.len() > if mode == "late" { 3 } else { 0 } {
                        let (first, last, seed) = unfinished.pop_front().expect("just counted");
                        manager.visited(&seed, first, last);
                    }
                    told
                })
            };
            assert_eq!(got.as_deref().unwrap_or("none"), expected, "{mode} {options}: step {number}");
            steps += 1;
        }
        cases += 1;
    }
    assert_eq!((cases, steps), (14, 483));
}

/// Takes every write until the sequence is through, each visit a part; returns the visits of each partition.
fn drain(settings: SeedSettings, threads: u64) -> HashMap<i64, i32> {
    let manager = SeedManager::new(settings).expect("sound settings");
    let mut visits = HashMap::new();
    std::thread::scope(|scope| {
        let work: Vec<_> = (0..threads)
            .map(|index| {
                let mut source = manager.source(index);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    while let Some(mut seed) = source.next_write() {
                        let position = seed.move_forwards(1);
                        source.manager().visited(&seed, position == 0, position + 1 >= seed.visits());
                        source.manager().written(&seed);
                        if position < seed.visits() {
                            mine.push(seed.value());
                        }
                    }
                    mine
                })
            })
            .collect();
        for seed in work.into_iter().flat_map(|thread| thread.join().expect("no panic")) {
            *visits.entry(seed).or_default() += 1;
        }
    });
    visits
}

#[test]
fn each_seed_of_a_sequence_comes_exactly_once_over_all_threads() {
    for flavour in [Flavour::Compat, Flavour::Fixed] {
        let visits = drain(settings(sequence(-50, 20_000, false, None), flavour), 4);
        assert_eq!(visits.len(), 20_051);
        assert!(visits.values().all(|count| *count == 1));
    }
}

#[test]
fn a_sequence_in_parts_ends_when_all_parts_are_written() {
    for threads in [1, 3] {
        let mut settings = settings(sequence(1, 3_000, false, None), Flavour::Fixed);
        settings.visits = spec("uniform(1..6)");
        settings.revisit = spec("uniform(1..50)");
        let visits = drain(settings.clone(), threads);
        assert_eq!(visits.len(), 3_000);
        // Uniform from 1 to 6: 3.5 on average.
        let all: i32 = visits.values().sum();
        assert!((9_500..11_500).contains(&all), "{all}");
        if threads == 1 {
            settings.flavour = Flavour::Compat;
            let fewer: i32 = drain(settings, 1).values().sum();
            assert!(fewer < all, "cassandra-stress leaves partitions half written: {fewer} of {all}");
        }
    }
}

#[test]
fn the_list_of_partitions_in_part_keeps_to_its_limit() {
    let mut settings = settings(sequence(1, 1_000_000, false, None), Flavour::Fixed);
    settings.visits = spec("fixed(1000)");
    settings.revisit = spec("uniform(1..7)");
    let mut source = SeedManager::new(settings).expect("sound settings").source(0);
    let begun: HashSet<i64> = (0..2_000)
        .filter_map(|_| {
            let mut seed = source.next_write()?;
            let position = seed.move_forwards(1);
            source.manager().visited(&seed, position == 0, position + 1 >= seed.visits());
            Some(seed.value())
        })
        .collect();
    assert!(begun.len() <= 7 + 2, "{begun:?}");
}

#[test]
fn readers_look_back_at_ended_writes_of_any_sequence() {
    let manager =
        SeedManager::new(settings(sequence(100, 1_099, true, Some("uniform(1..5)")), Flavour::Fixed)).expect("sound");
    let mut source = manager.source(0);
    assert_eq!(source.next_read().map(|seed| seed.value()), Some(100), "nothing is written yet");
    let writes: Vec<Seed> = (0..20).filter_map(|_| source.next_write()).collect();
    assert_eq!(source.next_read().map(|seed| seed.value()), Some(100), "nothing has ended yet");
    writes.iter().filter(|seed| seed.value() != 110).for_each(|seed| manager.written(seed));
    // 110 has not ended, so the newest of the unbroken row is 109.
    let read: HashSet<i64> = (0..200).filter_map(|_| source.next_read()).map(|seed| seed.value()).collect();
    assert_eq!(read, HashSet::from([105, 106, 107, 108, 109]));
    writes.iter().for_each(|seed| manager.written(seed));
    let read: HashSet<i64> = (0..200).filter_map(|_| source.next_read()).map(|seed| seed.value()).collect();
    assert_eq!(read, HashSet::from([115, 116, 117, 118, 119]));
}

#[test]
fn looking_back_goes_round_with_the_sequence() {
    let manager = SeedManager::new(settings(sequence(1, 10, true, Some("fixed(3)")), Flavour::Fixed)).expect("sound");
    let mut source = manager.source(0);
    let mut read = Vec::new();
    for _ in 0..12 {
        let seed = source.next_write().expect("it wraps");
        manager.written(&seed);
        read.push(source.next_read().map(|seed| seed.value()).expect("a reader always finds one"));
    }
    // With one and two writes ended, three back is taken modulo those.
    assert_eq!(read, [1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn readers_look_past_writes_that_were_given_up() {
    let manager =
        SeedManager::new(settings(sequence(100, 1_099, true, Some("uniform(1..5)")), Flavour::Fixed)).expect("sound");
    let mut source = manager.source(0);
    let mut read = |manager: &SeedManager, from: i64, to: i64, lost: &[i64]| {
        for seed in (from..=to).map(|_| source.next_write().expect("it wraps")) {
            if lost.contains(&seed.value()) { manager.given_up(&seed) } else { manager.written(&seed) }
        }
        let read: HashSet<i64> = (0..200).filter_map(|_| source.next_read()).map(|seed| seed.value()).collect();
        read
    };
    assert_eq!(read(&manager, 100, 101, &[100, 101]), HashSet::from([100, 101]), "nothing was acknowledged");
    assert_eq!(read(&manager, 102, 103, &[103]), HashSet::from([102]), "the next newer, if there is no older");
    // The five newest, of which two were given up; the one before them again was not.
    assert_eq!(read(&manager, 104, 119, &[110, 116, 117]), HashSet::from([115, 118, 119]));
    assert_eq!(read(&manager, 120, 129, &[]), HashSet::from([125, 126, 127, 128, 129]));
    assert_eq!(read(&manager, 130, 1_100, &[1_098]), HashSet::from([1_096, 1_097, 1_099, 100]), "round the sequence");
    assert_eq!(read(&manager, 101, 112, &[]), HashSet::from([108, 109, 110, 111, 112]), "110 was written this time");
}

#[test]
fn compat_counts_a_write_when_it_is_made_whatever_becomes_of_it() {
    let manager = SeedManager::new(settings(sequence(1, 100, true, Some("fixed(1)")), Flavour::Compat)).expect("sound");
    let mut source = manager.source(0);
    for value in 1..=20 {
        let seed = source.next_write().expect("it wraps");
        manager.visited(&seed, true, true);
        manager.given_up(&seed);
        assert_eq!(source.next_read().map(|seed| seed.value()), Some(value));
    }
}

#[test]
fn readers_learn_how_far_a_partition_in_parts_is_written() {
    for (flavour, taken) in [(Flavour::Fixed, Some(30)), (Flavour::Compat, None)] {
        let mut settings = settings(SeedRange::Drawn(Spec::Fixed(5)), flavour);
        settings.visits = spec("fixed(4)");
        let mut source = SeedManager::new(settings).expect("sound").source(0);
        let mut write = source.next_write().expect("drawn");
        write.move_forwards(30);
        source.manager().visited(&write, true, false);
        let read = source.next_read().expect("drawn");
        assert_eq!((read.value(), read.taken()), (5, taken), "{flavour:?}");
        source.manager().visited(&write, false, true);
        assert_eq!(source.next_read().expect("drawn").taken(), None, "it is whole");
    }
}

#[test]
fn readers_of_the_latest_follow_the_writers() {
    let settings = settings(SeedRange::Drawn(spec("latest(1..1000)")), Flavour::Fixed);
    let manager = SeedManager::new(settings).expect("sound");
    let mut source = manager.source(0);
    let favourite = |source: &mut SeedSource| {
        let mut counts = HashMap::new();
        (0..2_000).for_each(|_| *counts.entry(source.next_read().expect("drawn").value()).or_insert(0) += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(seed, _)| seed)
    };
    assert_eq!(favourite(&mut source), Some(1000), "all of the range counts as written, the last as newest");
    let writes: Vec<Seed> = (0..300).filter_map(|_| source.next_write()).collect();
    assert!(writes.iter().map(Seed::value).eq(1..=300), "writers go in order");
    writes.iter().rev().for_each(|seed| manager.written(seed));
    assert_eq!(favourite(&mut source), Some(300), "the newest, in whichever order they ended");
    let lost: Vec<Seed> = (0..50).filter_map(|_| source.next_write()).collect();
    lost.iter().for_each(|seed| manager.given_up(seed));
    assert_eq!(favourite(&mut source), Some(300), "what was given up is not new");
}

#[test]
fn sources_draw_apart_and_a_run_repeats() {
    let draws = |seed, index| {
        let settings = SeedSettings { seed, ..settings(SeedRange::Drawn(spec("uniform(1..1B)")), Flavour::Fixed) };
        let mut source = SeedManager::new(settings).expect("sound").source(index);
        [(); 4].map(|()| source.next_read().map(|seed| seed.value()))
    };
    assert_eq!(draws(1, 0), draws(1, 0));
    assert!(draws(1, 0) != draws(1, 1) && draws(1, 0) != draws(2, 0));
}

#[test]
fn settings_that_cannot_work_say_why() {
    let refusal = |settings| SeedManager::new(settings).expect_err("it cannot work").to_string();
    assert!(refusal(settings(sequence(9, 1, true, None), Flavour::Fixed)).contains("write seq=1..9"));
    let mut parts = settings(sequence(1, 9, true, None), Flavour::Fixed);
    (parts.visits, parts.revisit) = (spec("fixed(2)"), spec("uniform(1..100B)"));
    assert!(refusal(parts).starts_with("sample range is invalid"));
    for (flavour, longest) in [(Flavour::Compat, 105), (Flavour::Fixed, 6)] {
        let words = refusal(settings(sequence(99, 104, true, Some("uniform(1..1000)")), flavour));
        let theirs =
            format!("Invalid lookback distribution; max value is 1000, but series only ranges from 0 to {longest}");
        assert!(words.starts_with(&theirs), "{words}");
    }
}
