//! Whether the system or the machine changed by itself: in the course of a run, or within its baselines.

use brownout_statistics::{ALPHA, FLOOR, change_over, change_point, estimate, mann_kendall, median};

use crate::{
    Latencies, MARGIN, TrialEvidence, TrialFindings, Validity,
    evidence::phase,
    words::{SHOWN, relative_range, share},
};

/// Fewer intervals have no slope worth the name.
const LEAST_INTERVALS: usize = 5;

/// How much ln p50 changes over the baseline of a trial, by least squares over its intervals.
pub(crate) fn of_baseline(evidence: &TrialEvidence) -> Option<f64> {
    let baseline = evidence.phase(phase::BASELINE)?;
    let intervals = evidence.intervals_of(baseline).filter(|interval| interval.settled);
    let p50 = intervals.filter_map(|interval| {
        let mut response = Latencies::new();
        interval.latencies.iter().for_each(|row| response.add_row(row));
        Some(response.quantile(0.5)?.value_ns.max(1) as f64)
    });
    let p50: Vec<f64> = p50.collect();
    (p50.len() >= LEAST_INTERVALS).then(|| change_over(&p50))
}

/// Says whether latencies were still changing in the baselines of the valid trials. Seconds of one trial depend on each other, so no
/// test of one keeps its error: it is judged over trials, by one slope of each.
pub(crate) fn within_baselines(trials: &[TrialFindings]) -> Option<String> {
    let valid = trials.iter().filter(|trial| trial.validity == Validity::Valid);
    let changes: Vec<f64> = valid.filter_map(|trial| trial.baseline_change).collect();
    let found = estimate(&changes, ALPHA, FLOOR, 1)?;
    let is_large = (found.low > 0.0 || found.high < 0.0) && found.effect.exp_m1().abs() >= MARGIN;
    is_large.then(|| {
        let (verb, why) = match found.effect < 0.0 {
            true => ("fell", "the warm-up was too short: give phases.warm-up more time"),
            false => ("rose", "something builds up while the load goes on"),
        };
        format!(
            "p50 of those {SHOWN} {verb} by {} in the course of the baselines (slopes of {} trials; the 95% interval of \
             the change is {}): {why}. What a trial shows against its own baseline has some of that in it; trials without a \
             fault have as much",
            share(found.effect.exp_m1().abs()),
            changes.len(),
            relative_range((found.low.exp_m1(), found.high.exp_m1()))
        )
    })
}

/// The baseline of one trial.
struct Baseline {
    trial: u32,
    starts_ns: u64,
    p50_ns: f64,
}

/// Reports a trend of the baselines' p50 over the valid trials, in their order, and where the likeliest change is: no
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
        "the baseline's p50, of those {SHOWN}, {} by {:.0}% in the course of the run (a trend over {} trials, p = {:.3}; \
         most of it between trials {} and {}, {:.0} s into the run): what its trials differ by may come from that",
        if change > 0.0 { "rose" } else { "fell" },
        change.abs() * 100.0,
        values.len(),
        trend.p,
        baselines[at - 1].trial,
        baselines[at].trial,
        baselines[at].starts_ns as f64 / 1e9
    ))
}
