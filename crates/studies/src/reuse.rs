//! Whether it matters that a cluster has served trials before: the first trials of stands against later ones.
//!
//! Trials without a fault of one run, by the place that they had on their stand. Verdicts rest on the change within a trial, which
//! must not differ; what a trial starts from may, and is told beside it.

use std::collections::BTreeMap;

use brownout_analysis::{Findings, TrialFindings, Validity, phase, trial_effect};
use brownout_record::Arm;
use brownout_statistics::{self as statistics, Difference};

/// One figure, of first trials and of later ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Reused {
    /// What is compared, in words.
    pub what: String,
    /// First trials on their stands.
    pub fresh: usize,
    /// Later ones.
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
    let compared = |what: String, value: &dyn Fn(&TrialFindings) -> Option<f64>| {
        let of = |first: bool| -> Vec<f64> {
            alike.iter().filter(|trial| is_first(trial) == first).filter_map(|trial| value(trial)).collect()
        };
        let (fresh, reused) = (of(true), of(false));
        let difference = statistics::difference(&fresh, &reused, statistics::FLOOR);
        Reused { what, fresh: fresh.len(), reused: reused.len(), difference }
    };
    let within = ["goodput", "p50", "p99"]
        .map(|figure| compared(format!("{figure}, fault phase ÷ baseline"), &|trial| trial_effect(trial, figure)));
    let starts = ["p50", "p99"].map(|figure| {
        compared(format!("{figure} of the baseline"), &|trial| {
            let response = trial.phases.iter().find(|one| one.name == phase::BASELINE)?.response?;
            let quantile = if figure == "p50" { response.p50 } else { response.p99 };
            Some((quantile.value_ns as f64).ln()).filter(|value| value.is_finite())
        })
    });
    within.into_iter().chain(starts).collect()
}
