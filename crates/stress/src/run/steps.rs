//! How many threads the next step of an automatic run has, and when the steps end.

/// Which tool's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepRule {
    /// ScyllaDB's fork: +100 below 500, × 1.2 below 1,500, then × 1.1.
    #[default]
    Scylla,
    /// Apache: × 2 below 16, then × 1.5.
    Apache,
}

impl StepRule {
    /// The number of threads after this one.
    pub fn next(self, threads: u32) -> u32 {
        // Java truncates the product of int and double.
        let times = |factor: f64| (f64::from(threads) * factor) as u32;
        let next = match self {
            StepRule::Scylla if threads < 500 => threads + 100,
            StepRule::Scylla if threads < 1500 => times(1.2),
            StepRule::Scylla => times(1.1),
            StepRule::Apache if threads < 16 => threads.saturating_mul(2),
            StepRule::Apache => times(1.5),
        };
        next.max(threads + 1)
    }
}

/// Mean improvement of the operation rate over the last `steps` steps; `None`: there have not been that many.
pub fn improvement(rates: &[f64], steps: usize) -> Option<f64> {
    let first = rates.len().checked_sub(steps + 1)?;
    // A step in which nothing ended gives nothing to compare the next one with.
    let gain = |pair: &[f64]| if pair[0] > 0.0 { (pair[1] - pair[0]) / pair[0] } else { 0.0 };
    Some(rates[first..].windows(2).map(gain).sum::<f64>() / steps as f64)
}

/// Whether another step is worthwhile: the last three have not made it worse, and the last five improved it by `target`
/// (the uncertainty aimed at; −1 where there is none).
pub fn goes_on(rates: &[f64], target: f64) -> bool {
    improvement(rates, 3).is_none_or(|mean| mean >= 0.0) && improvement(rates, 5).is_none_or(|mean| mean >= target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_each_tool() {
        let steps = |rule: StepRule, first: u32, most: u32| {
            std::iter::successors(Some(first), |last| Some(rule.next(*last)))
                .take_while(|threads| *threads <= most)
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(StepRule::Apache, 4, 1000), [4, 8, 16, 24, 36, 54, 81, 121, 181, 271, 406, 609, 913]);
        assert_eq!(steps(StepRule::Scylla, 4, 1000), [4, 104, 204, 304, 404, 504, 604, 724, 868]);
        assert_eq!(StepRule::Scylla.next(1500), 1650);
        assert_eq!(StepRule::Apache.next(16), 24);
    }

    #[test]
    fn it_ends_when_three_steps_made_it_no_better() {
        assert!(goes_on(&[1.0, 2.0], -1.0));
        assert_eq!(improvement(&[0.0, 0.0], 1), Some(0.0));
        assert!(goes_on(&[1.0, 2.0, 3.0, 2.9], -1.0));
        assert!(!goes_on(&[1.0, 1.0, 0.9, 0.9, 0.8], -1.0));
        assert!(!goes_on(&[1.0, 1.001, 1.002, 1.003, 1.004, 1.005], 0.02), "five steps below the target");
        assert!(goes_on(&[1.0, 1.001, 1.002, 1.003, 1.004], 0.02));
    }
}
