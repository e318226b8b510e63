//! Detectors over several trials: those of a cell, and those without a fault that it is compared with.

use serde::Serialize;

use crate::{
    Proof, TrialFindings, Validity,
    detectors::{Accusation, DETECTORS},
    stats,
};

/// The chance with which the true rate of false alarms is larger than its bound.
const DOUBT: f64 = 0.05;

/// One detector over several trials. Of trials that are not valid nothing follows: they are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectorSummary {
    /// The detector.
    pub detector: String,
    /// What it looks at, in words.
    pub looks_at: String,
    /// Valid trials that it watched.
    pub trials: u64,
    /// Faults that were proven, over all trials.
    pub faults: u64,
    /// Of these those that it detected.
    pub detected: u64,
    /// How long each of them took, ns, in ascending order.
    pub times_to_detect_ns: Vec<u64>,
    /// The median of that, ns; none: it detected none.
    pub time_to_detect_ns: Option<u64>,
    /// Accusations: right, wrong, none.
    pub right: u64,
    /// Another host or link.
    pub wrong: u64,
    /// Neither.
    pub nobody: u64,
    /// Alarms without a fault.
    pub false_alarms: u64,
    /// How long it watched without a fault, ns.
    pub quiet_ns: u64,
    /// False alarms per hour of that; none if there was no such time.
    pub false_alarms_per_hour: Option<f64>,
    /// The upper end of the one-sided 95 % interval of that, if false alarms come independently of each other (Garwood, "Fiducial limits for the
    /// Poisson distribution", Biometrika 28, 1936): none in an hour does not say that there is less than one an hour.
    pub false_alarms_per_hour_at_most: Option<f64>,
}

/// Each detector over those of the trials that are valid; none where no valid trial has any.
pub fn summaries<'a>(trials: impl Iterator<Item = &'a TrialFindings>) -> Vec<DetectorSummary> {
    let mut all: Vec<DetectorSummary> = Vec::new();
    for trial in trials.filter(|trial| trial.validity == Validity::Valid) {
        for found in &trial.detectors {
            let at = all.iter().position(|known| known.detector == found.detector).unwrap_or_else(|| {
                all.push(DetectorSummary::none(&found.detector));
                all.len() - 1
            });
            let sum = &mut all[at];
            sum.trials += 1;
            sum.false_alarms += found.false_alarms;
            sum.quiet_ns += found.quiet_ns;
            let proven = |fault: u32| trial.faults.iter().any(|one| one.index == fault && one.verdict == Proof::Proven);
            for fault in found.faults.iter().filter(|one| proven(one.fault)) {
                sum.faults += 1;
                sum.times_to_detect_ns.extend(fault.time_to_detect_ns);
                match fault.accusation {
                    Some(Accusation::Right) => sum.right += 1,
                    Some(Accusation::Wrong) => sum.wrong += 1,
                    Some(Accusation::None) => sum.nobody += 1,
                    None => {}
                }
            }
        }
    }
    all.iter_mut().for_each(DetectorSummary::conclude);
    all
}

impl DetectorSummary {
    fn none(detector: &str) -> Self {
        DetectorSummary {
            detector: detector.to_owned(),
            looks_at: DETECTORS.iter().find(|one| one.name == detector).map_or("", |one| one.looks_at).to_owned(),
            trials: 0,
            faults: 0,
            detected: 0,
            times_to_detect_ns: Vec::new(),
            time_to_detect_ns: None,
            right: 0,
            wrong: 0,
            nobody: 0,
            false_alarms: 0,
            quiet_ns: 0,
            false_alarms_per_hour: None,
            false_alarms_per_hour_at_most: None,
        }
    }

    /// What follows from the counts.
    fn conclude(&mut self) {
        self.times_to_detect_ns.sort_unstable();
        self.detected = self.times_to_detect_ns.len() as u64;
        self.time_to_detect_ns = stats::median(&mut self.times_to_detect_ns.clone()).map(|ns| ns as u64);
        if self.quiet_ns > 0 {
            let hours = self.quiet_ns as f64 / 3.6e12;
            self.false_alarms_per_hour = Some(self.false_alarms as f64 / hours);
            self.false_alarms_per_hour_at_most = Some(largest_mean(self.false_alarms) / hours);
        }
    }
}

/// The largest mean of a Poisson distribution of which so few, or fewer, still have the chance [`DOUBT`].
fn largest_mean(count: u64) -> f64 {
    let chance = |mean: f64| {
        // In ln: of many alarms the first terms are too small for a number.
        let (mut ln_term, mut sum) = (-mean, 0.0);
        for at in 0..=count {
            sum += ln_term.exp();
            ln_term += (mean / (at + 1) as f64).ln();
        }
        sum
    };
    let (mut low, mut high) = (count as f64, 2.0 * count as f64 + 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if chance(middle) > DOUBT { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_a_rate_is_garwoods() {
        // χ²(0.95, 2·(k + 1)) ÷ 2, from tables.
        for (count, bound) in [(0, 2.9957), (1, 4.7439), (3, 7.7537), (10, 16.962), (40, 52.069), (2000, 2075.13)] {
            assert!((largest_mean(count) - bound).abs() < 1e-3 * bound, "{count}: {}", largest_mean(count));
        }
    }
}
