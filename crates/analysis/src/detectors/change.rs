//! What detectors share: what is usual, a cumulative sum, and alarms that go on.

use crate::stats;

/// What is usual of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usual {
    mean: f64,
    sd: f64,
}

impl Usual {
    /// From so few values a deviation may come out too small: it is taken 2 ÷ √n larger, and never below `floor`.
    pub(super) fn of(values: &[f64], floor: f64) -> Option<Usual> {
        if values.len() < super::LEAST_LEARNT {
            return None;
        }
        let (mean, sd) = (stats::mean(values)?, stats::deviation(values)?);
        Some(Usual { mean, sd: (sd * (1.0 + 2.0 / (values.len() as f64).sqrt())).max(floor) })
    }

    /// How many deviations a value lies above it.
    pub(super) fn z(&self, value: f64) -> f64 {
        (value - self.mean) / self.sd
    }

    /// How far a value lies above it.
    pub(super) fn above(&self, value: f64) -> f64 {
        value - self.mean
    }
}

/// The cumulative sum of what exceeds an allowance (Page, "Continuous inspection schemes", Biometrika 41, 1954), one-sided: nobody is alarmed
/// by what is fast.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cusum {
    sum: f64,
    up: bool,
}

impl Cusum {
    /// Allowed in each step, in deviations: half of the smallest shift that is to be found.
    const ALLOWANCE: f64 = 1.0;
    /// An alarm is raised above this, and over at half of it.
    const DECISION: f64 = 8.5;
    /// One step counts for no more, so that it takes three.
    pub(super) const MOST: f64 = 5.0;

    /// Takes a step's value in deviations; true if that raises an alarm.
    pub(super) fn raises(&mut self, z: f64) -> bool {
        let sum = self.sum + z.clamp(-Self::MOST, Self::MOST) - Self::ALLOWANCE;
        // Without a bound above, an alarm would outlast a long fault by as long as that lasted.
        self.sum = sum.clamp(0.0, Self::DECISION + Self::ALLOWANCE);
        let was_up = self.up;
        self.up = if was_up { self.sum > Self::DECISION / 2.0 } else { self.sum > Self::DECISION };
        self.up && !was_up
    }

    /// Whether its alarm goes on.
    pub(super) fn up(&self) -> bool {
        self.up
    }
}

/// An alarm of conditions that hold or do not: it is over when they have not held for [`Latch::QUIET`] steps in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latch {
    left: usize,
}

impl Latch {
    /// Steps.
    pub(super) const QUIET: usize = 3;

    /// True if this step raises an alarm.
    pub(super) fn raises(&mut self, holds: bool) -> bool {
        let was_up = self.left > 0;
        self.left = if holds { Self::QUIET } else { self.left.saturating_sub(1) };
        holds && !was_up
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    fn raised(values: &[f64]) -> Vec<usize> {
        let mut cusum = Cusum::default();
        (0..values.len()).filter(|at| cusum.raises(values[*at])).collect()
    }

    #[test]
    fn two_steps_in_a_row_raise_no_alarm_however_far_off_and_three_do() {
        assert_eq!(raised(&[0.0, 1e9, 1e9, 0.0, 0.0, 0.0, 0.0]), [0; 0]);
        assert_eq!(raised(&[0.0, 1e9, 1e9, 1e9, 0.0]), [3]);
    }

    #[test]
    fn what_is_allowed_adds_up_to_nothing_and_twice_that_to_an_alarm() {
        assert_eq!(raised(&[1.0; 10_000]), [0; 0]);
        assert_eq!(raised(&[2.0; 20]), [8]);
    }

    #[test]
    fn an_alarm_goes_on_and_is_over_soon_after_its_cause() {
        let mut values = vec![9.0; 500];
        values.extend([0.0; 10]);
        values.extend([9.0; 3]);
        assert_eq!(raised(&values), [2, 512]);
    }

    #[test]
    fn a_latch_is_raised_again_after_three_quiet_steps() {
        let mut latch = Latch::default();
        let holds = [true, false, false, true, false, false, false, true];
        assert_eq!(holds.map(|holds| latch.raises(holds)), [true, false, false, false, false, false, false, true]);
    }

    #[test]
    fn what_never_varied_has_the_floor_for_its_deviation() {
        let usual = Usual::of(&[3.0; 10], 0.5).unwrap();
        assert_eq!((usual.z(4.0), usual.above(4.0)), (2.0, 1.0));
        assert_eq!(Usual::of(&[1.0; 4], 0.5), None);
    }
}
