//! The signed-rank test (Wilcoxon, "Individual comparisons by ranking methods", Biometrics 1, 1945), exact, and the interval
//! that belongs to it (Hodges and Lehmann, "Estimates of location based on rank tests", Annals of Mathematical Statistics 34,
//! 1963): of the sorted means of all pairs. A trial that a neighbour spoilt moves it as far as any other, not farther.

use std::{borrow::Cow, sync::OnceLock};

/// P(T⁺ ≤ c) for c from 0 on, T⁺ being the sum of the ranks of the positive ones of `count` values without an effect.
fn cumulative(count: usize) -> Cow<'static, [f64]> {
    /// Of the numbers of blocks that runs have it is computed once.
    static OF_FEW: [OnceLock<Vec<f64>>; 65] = [const { OnceLock::new() }; 65];
    match OF_FEW.get(count) {
        Some(known) => Cow::Borrowed(known.get_or_init(|| chances(count))),
        None => Cow::Owned(chances(count)),
    }
}

fn chances(count: usize) -> Vec<f64> {
    let mut chances = vec![1.0];
    for rank in 1..=count {
        let mut next = chances.clone();
        next.resize(chances.len() + rank, 0.0);
        for (sum, chance) in chances.iter().enumerate() {
            next[sum + rank] += chance;
        }
        chances = next.into_iter().map(|chance| chance / 2.0).collect();
    }
    let mut sum = 0.0;
    chances
        .into_iter()
        .map(|chance| {
            sum += chance;
            sum
        })
        .collect()
}

/// The largest c with P(T⁺ ≤ c) ≤ `alpha` ÷ 2; none if so few values reach no such error.
pub(crate) fn critical(count: usize, alpha: f64) -> Option<usize> {
    // Sums of powers of two come out a hair too large.
    cumulative(count).partition_point(|chance| *chance <= alpha / 2.0 + 1e-12).checked_sub(1)
}

/// The means of all pairs, each value with itself too, ascending.
pub(crate) fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let pairs = values.iter().enumerate().flat_map(|(at, one)| values[at..].iter().map(move |other| one + other));
    let mut averages: Vec<f64> = pairs.map(|sum| sum / 2.0).collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The two-sided p-value: the probability of an effect at least this large if there were none.
pub(crate) fn chance(values: &[f64], averages: &[f64]) -> f64 {
    let count = |is: fn(&f64) -> bool| averages.iter().filter(|value| is(value)).count() as f64;
    let smaller = count(|value| *value < 0.0).min(count(|value| *value > 0.0));
    let rank = (smaller + count(|value| *value == 0.0) / 2.0) as usize;
    cumulative(values.len()).get(rank).map_or(1.0, |below| (2.0 * below).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        let of = |alpha| (6..=30).map(|count| critical(count, alpha).unwrap()).collect::<Vec<_>>();
        // Two-sided 5 % and 10 %, as printed in any table of the test.
        let five = [0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89, 98, 107, 116, 126, 137];
        let ten =
            [2, 3, 5, 8, 10, 13, 17, 21, 25, 30, 35, 41, 47, 53, 60, 67, 75, 83, 91, 100, 110, 119, 130, 140, 151];
        assert_eq!((of(0.05), of(0.10)), (five.to_vec(), ten.to_vec()));
        assert_eq!(critical(5, 0.05), None, "of five values the most extreme comes in one of 16");
    }

    #[test]
    fn all_on_one_side_is_as_unlikely_as_as_many_heads() {
        let values: Vec<f64> = (1..=8).map(f64::from).collect();
        let chance = chance(&values, &walsh_averages(&values));
        assert!((chance - 2.0 / 256.0).abs() < 1e-12, "{chance}");
    }
}
