//! How long goodput took to come back, over the trials of a run.

use brownout_statistics::median_over_trials;
use serde::Serialize;

use crate::TrialFindings;

/// The middle of the recoveries of several trials. A trial that never came back has taken longer than any other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RecoveryOverTrials {
    /// Valid trials that had something to come back from.
    pub trials: u32,
    /// Those that came back within their recovery phase.
    pub recovered: u32,
    /// The median, ns; none: half of the trials or more did not come back.
    pub median_ns: Option<u64>,
    /// The lower end of its interval, ns; none: no trial that counts for it came back.
    pub low_ns: Option<u64>,
    /// The upper end, ns; none: that trial did not come back.
    pub high_ns: Option<u64>,
    /// How often such an interval holds the median: 95 % or more from six trials on; below that it is the range.
    pub confidence: f64,
}

/// That of some trials; none of fewer than two.
pub(crate) fn over_trials(trials: &[&TrialFindings]) -> Option<RecoveryOverTrials> {
    let valid = trials.iter().filter(|trial| !trial.cut && trial.invalid.is_empty());
    let judged = valid.filter(|trial| trial.effect.recovered.is_some());
    let times: Vec<Option<f64>> = judged.map(|trial| trial.effect.recovery_ns.map(|ns| ns as f64)).collect();
    let found = median_over_trials(&times).filter(|_| times.len() > 1)?;
    let whole = |ns: f64| ns.is_finite().then_some(ns as u64);
    Some(RecoveryOverTrials {
        trials: times.len() as u32,
        recovered: times.iter().flatten().count() as u32,
        median_ns: whole(found.median),
        low_ns: whole(found.low),
        high_ns: whole(found.high),
        confidence: found.confidence,
    })
}
