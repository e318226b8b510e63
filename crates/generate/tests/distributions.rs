//! What holds of distributions whoever else has them.

#![allow(clippy::expect_used, reason = "tests, of which some parts are functions of their own")]

use brownout_generate::distribution::{RatioSpec, Spec, SpecError, print_table};

const ALL: [&str; 12] = [
    "fixed(3)",
    "uniform(1..10)",
    "gaussian(1..1000,5)",
    "exp(1..1M)",
    "extreme(1..500,0.7)",
    "qextreme(1..1000,2,5)",
    "seq(1..10)",
    "zipf(1..1000)",
    "szipf(1..1000,1.2)",
    "latest(1..1000)",
    "hotspot(1..1000,0.1,0.9)",
    "~zipf(1..50,1.5)",
];

fn spec(text: &str) -> Spec {
    text.parse().expect(text)
}

#[test]
fn the_text_of_a_distribution_reads_back_to_it() {
    for text in ALL {
        assert_eq!(spec(&spec(text).to_string()), spec(text), "{text}");
    }
    let ratio: RatioSpec = "~exp(1..5)/2k".parse().unwrap();
    assert_eq!((ratio.divisor, ratio.to_string()), (2000, "~exp(1..5)/2000".to_owned()));
}

#[test]
fn every_draw_lies_in_the_range_and_the_ends_are_met() {
    for text in [
        "uniform(0..9)",
        "gaussian(1..10,1.5)",
        "exp(1..5)",
        "extreme(1..8,1)",
        "qextreme(1..10,1,3)",
        "zipf(4..9)",
        "szipf(4..9)",
        "~exp(1..5)",
    ] {
        let (spec, mut drawn) = (spec(text), spec(text).build(9));
        let draws: Vec<i64> = (0..20_000).map(|_| drawn.next()).collect();
        let met = (draws.iter().min().copied().unwrap(), draws.iter().max().copied().unwrap());
        assert_eq!(met, (spec.min(), spec.max()), "{text}");
        assert_eq!(met, (drawn.min(), drawn.max()), "{text}");
    }
}

#[test]
fn quantiles_agree_with_draws() {
    for text in ALL {
        if text.starts_with("szipf") || text.starts_with('~') || text.starts_with("seq") {
            continue;
        }
        let mut drawn = spec(text).build(4);
        let mut draws: Vec<i64> = (0..50_000).map(|_| drawn.next()).collect();
        draws.sort_unstable();
        let spread = (drawn.max() - drawn.min()) as f64;
        for p in [0.1, 0.25, 0.5, 0.75, 0.9] {
            let (asked, got) = (drawn.inverse_cumulative(p), draws[(p * draws.len() as f64) as usize]);
            assert!((asked - got).abs() as f64 <= 1.0 + 0.02 * spread, "{text} at {p}: {asked} {got}");
        }
    }
}

#[test]
fn averages_agree_with_draws() {
    for text in ALL {
        let mut drawn = spec(text).build(4);
        let mean = (0..100_000).map(|_| drawn.next() as f64).sum::<f64>() / 100_000.0;
        let spread = (drawn.max() - drawn.min()) as f64;
        assert!((mean - drawn.average() as f64).abs() <= 1.0 + 0.02 * spread, "{text}: {mean} {}", drawn.average());
    }
}

#[test]
fn scattered_frequencies_are_those_of_zipf_over_all_of_the_range() {
    let (mut plain, mut scattered) = (spec("zipf(1..200,1.1)").build(1), spec("szipf(1..200,1.1)").build(1));
    let (mut by_rank, mut by_place) = (vec![0u32; 200], vec![0u32; 200]);
    for _ in 0..100_000 {
        by_rank[(plain.next() - 1) as usize] += 1;
        by_place[(scattered.next() - 1) as usize] += 1;
    }
    let hottest = by_place.iter().enumerate().max_by_key(|(_, count)| **count).map(|(place, _)| place).unwrap();
    by_rank.sort_unstable();
    by_place.sort_unstable();
    assert_eq!(by_rank, by_place, "the same draws, at other places");
    assert_ne!(hottest, 0);
}

#[test]
fn a_sequence_goes_round_from_its_seed() {
    let mut sequence = spec("seq(5..7)").build(0);
    assert_eq!([(); 5].map(|()| sequence.next()), [5, 6, 7, 5, 6]);
    sequence.set_seed(2);
    assert_eq!(sequence.next(), 7);
    // As in cassandra-stress, which takes the remainder of a negative number.
    sequence.set_seed(-1);
    assert_eq!(sequence.next(), 4);
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_what_would() {
    let arguments = |text: &str| match text.parse::<Spec>() {
        Err(SpecError::Arguments { remedy, .. }) => remedy,
        other => panic!("{text}: {other:?}"),
    };
    for (text, told) in [
        ("uniform(10..1)", "10 is above 1; it is written uniform(min..max)"),
        ("exp(1..2)", "two values are too few for this shape; uniform takes them"),
        ("zipf(1..10,0)", "the exponent must be above 0, not 0"),
        ("zipf(1..10,NaN)", "`NaN` is not a number"),
        ("hotspot(1..10,1.5,0.5)", "`1.5` is not a share between 0 and 1"),
        ("hotspot(1..10)", "1 arguments"),
        ("fixed(99999999999B)", "`99999999999B` is too large"),
        ("uniform(-9223372036854775808..9223372036854775807)", "holds more values than a number can count"),
        ("uniform(1..2..3)", "`1..2..3` is not a range"),
        ("gaussian(1..10,0)", "standard deviation would be inf"),
        ("gaussian(1..10,5,-1)", "standard deviation would be -1"),
        ("qextreme(1..10,1,0)", "`0` is not a number of bands"),
    ] {
        assert!(arguments(text).contains(told), "{text}: {}", arguments(text));
    }
    assert!("zpif(1..2)".parse::<Spec>().unwrap_err().to_string().contains("one of fixed, uniform"));
    assert!("unifrom(1..2)".parse::<Spec>().unwrap_err().to_string().ends_with("did you mean uniform?"));
    assert!("fixed(1)/0".parse::<RatioSpec>().is_err());
}

#[test]
fn the_new_distributions_print_their_table_too() {
    let table = print_table(&spec("zipf(1..1000)"));
    assert_eq!(table.lines().count(), 13);
    assert!(table.ends_with("100.0           1000               100.0\n"), "{table}");
}
