//! Losses that arithmetic explains, over several trials.

use crate::{Loss, TrialFindings, stats};

/// The losses of several trials, with what arithmetic says of each: means over those that have a prediction.
pub(crate) fn over_trials(trials: &[&TrialFindings]) -> Vec<Loss> {
    let predicted = trials.iter().filter_map(|trial| trial.explained.as_ref()?.prediction.as_ref());
    let all: Vec<&Loss> = predicted.flat_map(|prediction| &prediction.losses).collect();
    let mut figures: Vec<&str> = all.iter().map(|loss| loss.figure.as_str()).collect();
    figures.sort_unstable();
    figures.dedup();
    let of = |figure: &str| {
        let mean = |value: fn(&Loss) -> Option<f64>| {
            let values = all.iter().filter(|loss| loss.figure == figure).filter_map(|loss| value(loss));
            stats::mean(&values.collect::<Vec<_>>())
        };
        Some(Loss {
            figure: figure.to_owned(),
            measured: mean(|loss| loss.measured),
            least: mean(|loss| Some(loss.least))?,
            most: mean(|loss| Some(loss.most))?,
            by_latency: mean(|loss| loss.by_latency),
            remainder: mean(|loss| loss.remainder),
        })
    };
    figures.into_iter().filter_map(of).collect()
}
