//! Java's and commons-math's randomness, against what the Java classes printed.

#![allow(clippy::expect_used, reason = "tests, of which some parts are functions of their own")]

mod vectors;

use brownout_generate::java::{self, Exponential, FasterRandom, Normal, Random, Uniform, Weibull, Weighted};
use vectors::{list, real, rows};

#[test]
fn generators_draw_what_javas_draw() {
    let mut seen = Vec::new();
    for row in rows("random/generators.tsv") {
        let (method, seed, draws) = (row[0].as_str(), row[1].parse::<i64>().unwrap(), &row[2]);
        let mut random = Random::new(seed);
        match method {
            "long" => assert_eq!(list(draws, |d| d.parse::<i64>().unwrap()), [(); 4].map(|()| random.next_i64())),
            "double" => {
                assert_eq!(list(draws, real), [(); 4].map(|()| random.next_f64()));
            }
            "gaussian" => {
                let drawn = list(draws, real);
                assert_eq!(drawn, (0..101).map(|_| random.next_gaussian()).collect::<Vec<_>>());
                random.set_seed(seed);
                assert_eq!(random.next_gaussian(), drawn[0], "the spare value outlived the seed");
            }
            "faster" => {
                let mut faster = FasterRandom::new(seed);
                assert_eq!(
                    list(draws, |d| d.parse::<i64>().unwrap()),
                    (0..70).map(|_| faster.next_i64()).collect::<Vec<_>>()
                );
            }
            below => {
                let bounds = below.split(' ').skip(1).map(|bound| bound.parse::<i32>().unwrap());
                let drawn: Vec<i32> = bounds.map(|bound| random.next_below(bound)).collect();
                assert_eq!(list(draws, |d| d.parse::<i32>().unwrap()), drawn);
            }
        }
        seen.push(method.to_owned());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[test]
fn murmur3_has_cassandras_signs() {
    for row in rows("random/murmur.tsv") {
        let bytes = if row[0] == "empty" { "" } else { &row[0] };
        let bytes: Vec<u8> =
            (0..bytes.len() / 2).map(|i| u8::from_str_radix(&bytes[2 * i..2 * i + 2], 16).unwrap()).collect();
        let hash = java::hash3_x64_128(&bytes, row[1].parse().unwrap());
        assert_eq!((row[2].parse().unwrap(), row[3].parse().unwrap()), hash, "{row:?}");
        if row[1] == "0" {
            assert_eq!(java::token(&bytes), hash.0);
        }
    }
}

/// One of commons-math's distributions, by its name and parameters.
enum Real {
    Normal(Normal),
    Uniform(Uniform),
    Exponential(Exponential),
    Weibull(Weibull),
}

impl Real {
    fn new(name: &str, p: &[f64]) -> Self {
        match name {
            "normal" => Real::Normal(Normal { mean: p[0], deviation: p[1] }),
            "uniform" => Real::Uniform(Uniform { lower: p[0], upper: p[1] }),
            "exponential" => Real::Exponential(Exponential { mean: p[0] }),
            _ => Real::Weibull(Weibull { shape: p[0], scale: p[1] }),
        }
    }

    fn sample(&self, random: &mut Random) -> f64 {
        match self {
            Real::Normal(d) => d.sample(random),
            Real::Uniform(d) => d.sample(random),
            Real::Exponential(d) => d.sample(random),
            Real::Weibull(d) => d.sample(random),
        }
    }

    fn inverse(&self, p: f64) -> f64 {
        match self {
            Real::Normal(d) => d.inverse(p),
            Real::Uniform(d) => d.inverse(p),
            Real::Exponential(d) => d.inverse(p),
            Real::Weibull(d) => d.inverse(p),
        }
    }
}

#[test]
fn real_distributions_draw_and_invert_to_the_bit() {
    for row in rows("random/commons.tsv") {
        let distribution = Real::new(&row[0], &list(&row[1], real));
        let expected = list(&row[3], real);
        if row[2] == "inverse" {
            for pair in expected.chunks(2) {
                assert_eq!(distribution.inverse(pair[0]), pair[1], "{row:?} at {}", pair[0]);
            }
        } else {
            let mut random = Random::new(row[2].parse().unwrap());
            for (i, value) in expected.iter().enumerate() {
                assert_eq!(distribution.sample(&mut random), *value, "{row:?} draw {i}");
            }
        }
    }
}

#[test]
fn logarithms_and_powers_are_those_of_commons_math() {
    for row in rows("random/functions.tsv") {
        let cells: Vec<f64> = row[1..].iter().map(|cell| real(cell)).collect();
        match row[0].as_str() {
            "ln" => assert_eq!(java::ln(cells[0]), cells[1], "ln {}", cells[0]),
            _ => assert_eq!(java::pow(cells[0], cells[1]), cells[2], "{} ^ {}", cells[0], cells[1]),
        }
    }
}

#[test]
fn a_weighted_choice_falls_as_in_commons_math() {
    for row in rows("random/weighted.tsv") {
        let choice = Weighted::new(&list(&row[0], |weight| weight.parse().unwrap())).unwrap();
        let mut random = Random::new(row[1].parse().unwrap());
        let chosen: String = (0..40).map(|_| choice.sample(&mut random).to_string()).collect();
        assert_eq!(row[2], chosen, "{}", row[0]);
    }
    assert!(
        Weighted::new(&[0.0, 0.0]).is_err()
            && Weighted::new(&[1.0, -1.0]).is_err()
            && Weighted::new(&[f64::NAN]).is_err()
    );
}

#[test]
fn a_whole_weibull_draw_is_the_real_one_cut() {
    for (shape, scale) in [(0.3, 6.25), (0.6, 126.617), (1.0, 1e9), (2.5, 461_598.9), (9.0, 3.0)] {
        let weibull = Weibull { shape, scale };
        let (mut whole, mut fraction) = (Random::new(5), Random::new(5));
        for _ in 0..20_000 {
            assert_eq!(weibull.sample_whole(&mut whole), weibull.sample(&mut fraction) as i64);
        }
    }
}
