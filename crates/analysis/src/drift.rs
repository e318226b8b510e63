//! Whether the system or the machine changed by itself in the course of a run.

use brownout_statistics::{ALPHA, change_point, mann_kendall, median};

use crate::{MARGIN, TrialFindings, evidence::phase};

/// The baseline of one trial.
struct Baseline {
    trial: u32,
    starts_ns: u64,
    p50_ns: f64,
}

/// Tells of a trend of the baselines' p50 over the valid trials, in their order, and where the likeliest change is: no
/// fault was in force in any of them, so what they differ by nobody asked for. Of fewer than five trials the test
/// cannot show a trend at 5 %. (Trials of several cells come in an order of chance, which makes no trend, and hides one
/// where cells differ much.)
pub(crate) fn over_run(trials: &[TrialFindings]) -> Option<String> {
    let valid = trials.iter().filter(|trial| !trial.cut && trial.invalid.is_empty());
    let baselines: Vec<Baseline> = valid
        .filter_map(|trial| {
            let baseline = trial.phases.iter().find(|one| one.name == phase::BASELINE)?;
            let p50_ns = baseline.response?.p50.value_ns.max(1) as f64;
            Some(Baseline { trial: trial.trial, starts_ns: baseline.starts_ns?, p50_ns })
        })
        .collect();
    let values: Vec<f64> = baselines.iter().map(|baseline| baseline.p50_ns.ln()).collect();
    let trend = mann_kendall(&values).filter(|trend| trend.p <= ALPHA)?;
    let at = change_point(&values)?;
    let (before, after) = values.split_at(at);
    let change = (median(after) - median(before)).exp_m1();
    // The change may be a step the other way within a trend: then it says nothing of it.
    if change.abs() < MARGIN || (change > 0.0) != (trend.score > 0) {
        return None;
    }
    Some(format!(
        "the baseline's p50 {} by {:.0}% in the course of the run (a trend over {} trials, p = {:.3}; most of it between trials {} and {}, \
         {:.0} s into the run): what its trials differ by may come from that",
        if change > 0.0 { "rose" } else { "fell" },
        change.abs() * 100.0,
        values.len(),
        trend.p,
        baselines[at - 1].trial,
        baselines[at].trial,
        baselines[at].starts_ns as f64 / 1e9
    ))
}
