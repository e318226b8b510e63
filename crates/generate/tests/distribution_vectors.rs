//! Distributions against what cassandra-stress's own classes printed.

#![allow(clippy::expect_used, reason = "tests, of which some parts are functions of their own")]

mod vectors;

use brownout_generate::distribution::{RatioSpec, Spec, print_table};
use vectors::{list, real, rows};

fn spec(text: &str) -> Spec {
    text.parse().expect(text)
}

#[test]
fn draws_after_a_seed_are_those_of_cassandra_stress() {
    for row in rows("distributions/samples.tsv") {
        let mut distribution = spec(&row[0]).build(0);
        let seed = row[1].parse().unwrap();
        distribution.set_seed(seed);
        for (i, drawn) in row[2].split(',').enumerate() {
            let ours = distribution.next();
            // Where cassandra-stress fails, ours is some value of the range.
            if drawn == "fails" {
                assert!((distribution.min()..=distribution.max()).contains(&ours), "{row:?} draw {i}: {ours}");
                break;
            }
            assert_eq!(ours.to_string(), drawn, "{} seed {seed} draw {i}", row[0]);
        }
        if row[3] != "-" {
            distribution.set_seed(seed);
            let reals = list(&row[3], real);
            assert_eq!(
                (0..reals.len()).map(|_| distribution.next_f64()).collect::<Vec<_>>(),
                reals,
                "{} seed {seed}",
                row[0]
            );
        }
        let mut again = spec(&row[0]).build(seed);
        let mut clone = again.clone();
        distribution.set_seed(seed);
        for _ in 0..5 {
            let next = distribution.next();
            assert_eq!((next, next), (again.next(), clone.next()), "built with a seed, {} differs", row[0]);
        }
    }
}

#[test]
fn bounds_averages_and_settings_lines_are_equal() {
    for row in rows("distributions/facts.tsv") {
        let (spec, cell) = (spec(&row[0]), |i: usize| row[i].parse::<i64>().unwrap());
        let distribution = spec.build(1);
        let ends = (distribution.inverse_cumulative(0.0), distribution.inverse_cumulative(1.0));
        assert_eq!((ends.0, ends.1, distribution.average()), (cell(1), cell(2), cell(3)), "{}", row[0]);
        assert_eq!(spec.settings(), row[4]);
    }
}

#[test]
fn quantiles_are_equal() {
    for row in rows("distributions/inverse.tsv") {
        let distribution = spec(&row[0]).build(1);
        let quantiles: Vec<i64> = (0..=64).map(|i| distribution.inverse_cumulative(f64::from(i) / 64.0)).collect();
        assert_eq!(list(&row[1], |q| q.parse::<i64>().unwrap()), quantiles, "{}", row[0]);
    }
}

#[test]
fn the_printed_table_is_equal_to_the_letter() {
    for row in rows("distributions/print.tsv") {
        assert_eq!(print_table(&spec(&row[0])), row[1].replace("\\n", "\n"), "{}", row[0]);
    }
}

#[test]
fn ratios_are_equal() {
    for row in rows("distributions/ratios.tsv") {
        let spec: RatioSpec = row[0].parse().unwrap();
        let mut ratio = spec.build(row[1].parse().unwrap());
        assert_eq!(list(&row[2], real), (0..6).map(|_| ratio.next()).collect::<Vec<_>>(), "{}", row[0]);
        assert_eq!((real(&row[3]), real(&row[4])), (ratio.min(), ratio.max()), "{}", row[0]);
        assert_eq!(spec.settings(), row[5]);
        assert_eq!(spec.to_string().parse::<RatioSpec>().unwrap(), spec);
    }
}

#[test]
fn what_is_refused_is_refused_in_the_same_words() {
    for row in rows("distributions/errors.tsv") {
        let refusal = if row[0] == "ratio" {
            row[1].parse::<RatioSpec>().map(|_| ()).map_err(|e| e.to_string())
        } else {
            row[1].parse::<Spec>().map(|_| ()).map_err(|e| e.to_string())
        };
        if row[1].starts_with("weibull") {
            // cassandra-stress lists this alias in its help and forgets it; here it works.
            assert_eq!(refusal, Ok(()));
            continue;
        }
        let words = refusal.expect_err(&row[1]);
        assert!(words.starts_with(&format!("{}: ", row[2])), "{words}\ninstead of\n{}", row[2]);
    }
}
