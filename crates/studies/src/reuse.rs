//! Whether it matters that a cluster has served trials before: the first trials of stands against later ones.
//!
//! Trials without a fault of one run, by the place that they had on their stand; of each stand one value, since trials on the same
//! cluster have that in common. Verdicts rest on the change within a trial, which must not differ; what a trial starts from may, and
//! is told beside it.

use std::collections::BTreeMap;

use brownout_analysis::{Findings, TrialFindings, Validity, phase, trial_effect};
use brownout_record::Arm;
use brownout_statistics::{self as statistics, Difference};

/// One figure, of first trials and of later ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Reused {
    /// What is compared, in words.
    pub what: String,
    /// Whether verdicts rest on it.
    pub is_judged: bool,
    /// Stands with a first trial.
    pub fresh: usize,
    /// Stands with later ones: their mean is one value.
    pub reused: usize,
    /// By how much the logarithm of later ones is larger; none of too few.
    pub difference: Option<Difference>,
}

/// Compares the valid trials without a fault of a run, by the change within each and by what it starts from.
pub fn reuse(findings: &Findings) -> Vec<Reused> {
    let mut firsts: BTreeMap<u32, u32> = BTreeMap::new();
    for trial in &findings.trials {
        let first = firsts.entry(trial.stand).or_insert(trial.trial);
        *first = trial.trial.min(*first);
    }
    let is_first = |trial: &TrialFindings| firsts.get(&trial.stand) == Some(&trial.trial);
    let alike: Vec<&TrialFindings> =
        findings.trials.iter().filter(|trial| trial.arm == Arm::None && trial.validity == Validity::Valid).collect();
    let compared = |what: String, is_judged: bool, value: &dyn Fn(&TrialFindings) -> Option<f64>| {
        let of = |first: bool| -> Vec<f64> {
            let mut stands: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for trial in alike.iter().filter(|trial| is_first(trial) == first) {
                stands.entry(trial.stand).or_default().extend(value(trial));
            }
            let values = stands.into_values().filter(|values| !values.is_empty());
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64).collect()
        };
        let (fresh, reused) = (of(true), of(false));
        let difference = statistics::difference(&fresh, &reused, statistics::FLOOR);
        Reused { what, is_judged, fresh: fresh.len(), reused: reused.len(), difference }
    };
    let within = ["goodput", "p50", "p99"].map(|figure| {
        compared(format!("{figure}, fault phase ÷ baseline"), true, &|trial| trial_effect(trial, figure))
    });
    let starts = ["p50", "p99"].map(|figure| {
        compared(format!("{figure} of the baseline"), false, &|trial| {
            let response = trial.phases.iter().find(|one| one.name == phase::BASELINE)?.response?;
            let quantile = if figure == "p50" { response.p50 } else { response.p99 };
            Some((quantile.value_ns as f64).ln()).filter(|value| value.is_finite())
        })
    });
    within.into_iter().chain(starts).collect()
}

/// What differs of that on which verdicts rest, with an error of 5 % over all of it (Holm).
pub fn differing(told: &[Reused]) -> Vec<&Reused> {
    let mut judged: Vec<(&Reused, f64)> =
        told.iter().filter(|one| one.is_judged).filter_map(|one| Some((one, one.difference?.p))).collect();
    judged.sort_by(|one, other| one.1.total_cmp(&other.1));
    let count = judged.len();
    let is_told = |(place, (_, p)): &(usize, &(&Reused, f64))| *p <= statistics::ALPHA / (count - place) as f64;
    judged.iter().enumerate().take_while(is_told).map(|(_, (one, _))| *one).collect()
}
