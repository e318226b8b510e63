//! The statistics behind the verdicts.

/// Arithmetic mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n − 1); none of fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The share of a rate that is lost from one time to another; negative when it grew, none of nothing.
pub fn loss(before: Option<f64>, during: Option<f64>) -> Option<f64> {
    let (before, during) = (before?, during?);
    (before > 0.0).then(|| (before - during) / before)
}

/// Median (the mean of the middle two of an even number); none of nothing. Reorders the values.
pub fn median(values: &mut [u64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable(middle);
    let upper = *upper as f64;
    let lower = if even { below.iter().max().map_or(upper, |lower| *lower as f64) } else { upper };
    Some((lower + upper) / 2.0)
}

/// Median of numbers (the mean of the middle two of an even number); none of nothing. Reorders the values.
pub fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((lower + upper) / 2.0)
}

/// The smallest value that at least the share `q` of all values does not exceed; none of nothing. Reorders the values.
pub fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    let rank = ((values.len() as f64 * q).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// Probes (or packets) a window needs before it says anything.
pub const ENOUGH: u64 = 30;
/// Quantile of the two-sided normal interval that one true share in 100,000 lies outside of. A run compares hundreds of
/// shares (every pair, every source, during and after every fault), and may not call one of them false by chance.
pub const Z: f64 = 4.4172;

/// The 99 % interval of a share is this much as wide as that of [`share_half_width`]: what tells a share from none has to
/// lie outside of it.
pub const TELLING: f64 = 2.5758 / Z;

/// Half-width of the 99.999 % interval of a share, from `hits` of `count`: Agresti and Coull, "Approximate is better than
/// 'exact'" (The American Statistician 52, 1998). Unlike the textbook's, it is not 0 when nothing was hit.
pub fn share_half_width(hits: u64, count: u64) -> f64 {
    let adjusted = count as f64 + Z * Z;
    let share = (hits as f64 + Z * Z / 2.0) / adjusted;
    Z * (share * (1.0 - share) / adjusted).sqrt()
}

/// The chance that of `count` cases, each hit with the chance `share`, as many as `hits` are hit, or still more of them; or,
/// if `hits` is below what is to be expected, as few or still fewer. Exact, by the binomial distribution.
pub fn chance_of(hits: u64, count: u64, share: f64) -> f64 {
    let share = share.clamp(1e-12, 1.0 - 1e-12);
    let odds = (share / (1.0 - share)).ln();
    let is_more = hits as f64 >= share * count as f64;
    // Of none; the next follows from the one before.
    let mut ln = count as f64 * (1.0 - share).ln();
    let mut chance = 0.0;
    for case in 0..=count {
        if if is_more { case >= hits } else { case <= hits } {
            chance += ln.exp();
        }
        ln += ((count - case) as f64 / (case + 1) as f64).ln() + odds;
    }
    chance
}

/// How many samples before a fault, and as many during it, tell a share from none, nearly always, if what is measured may lie
/// `tolerance` from it: by the same rule as the proof of a fault.
pub fn samples_to_tell(share: f64, tolerance: f64) -> u64 {
    let width = |hits: f64, count: u64| TELLING * share_half_width(hits.round() as u64, count);
    // What is measured lies below the share by half of that width at most, in nine cases of ten.
    let tells = |count: u64| {
        let during = width(share * count as f64, count);
        tolerance + width(0.0, count).hypot(during) + during / 2.0 < share
    };
    let mut count = ENOUGH;
    // Each step is a tenth more: nobody plans more exactly.
    while count < 1 << 50 && !tells(count) {
        count += (count / 10).max(1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&mut [4, 1, 3, 2]), Some(2.5));
        assert_eq!(median(&mut [9, 1, 5]), Some(5.0));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn the_deviation_is_the_samples() {
        assert_eq!(deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).map(|sd| (sd * 1e4).round()), Some(21_381.0));
        assert_eq!(deviation(&[1.0]), None);
    }

    #[test]
    fn a_share_of_nothing_still_has_an_error() {
        assert!((chance_of(4, 5, 0.2) - 0.00672).abs() < 1e-5);
        assert!((chance_of(0, 40, 0.2) - 0.8f64.powi(40)).abs() < 1e-9);
        assert!((chance_of(50, 100, 0.5) - 0.539_795).abs() < 1e-5);
        assert!((chance_of(5, 5, 1.0) - 1.0).abs() < 1e-9 && chance_of(1, 5, 0.0) < 1e-9);
        assert!((share_half_width(0, 1500) - 0.009).abs() < 0.001);
        assert!((share_half_width(150, 1500) - 0.034).abs() < 0.001);
        assert!(share_half_width(0, 30) > 0.1);
    }

    #[test]
    fn the_smaller_a_share_the_more_samples_tell_it() {
        let of = |share: f64| samples_to_tell(share, share * 0.1);
        let counts = [1.0, 0.5, 0.1, 0.01, 0.001].map(of);
        assert!(counts.is_sorted() && counts[0] < 60, "{counts:?}");
        // As 1 ÷ share, nearly.
        assert!((5.0..20.0).contains(&(counts[4] as f64 / counts[3] as f64)), "{counts:?}");
        assert!(samples_to_tell(0.1, 0.1) > 1 << 40, "no number of samples tells what is within the tolerance");
    }
}
