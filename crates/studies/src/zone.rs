//! The danger zone of a run in which one severity varies.

use brownout_analysis::{Findings, TrialFindings};
use brownout_statistics as statistics;
use brownout_units::{Delay, Share};

use crate::stored::{Crossing, Zone};

/// The losses between which a severity is dangerous (Lu et al., "One-Size-Fits-None", NSDI 2025, table 2).
const LOSSES: [f64; 2] = [0.1, 0.5];
/// Trials without a fault whose scatter says what a trial tells; fewer say nothing.
const LEAST_WITHOUT: usize = 6;

/// Where the loss of throughput passes 10 % and 50 %, by the rules of a search, from whatever trials there are: of a search, or of
/// a grid. None if more than one thing varies, or something that is no severity.
pub fn zone(findings: &Findings) -> Option<Zone> {
    let [factor] = findings.design.factors.as_slice() else { return None };
    let severities: Vec<f64> =
        findings.cells.iter().map(|cell| severity(cell.levels.first()?)).collect::<Option<_>>()?;
    let values = |numbers: &[u32]| -> Vec<f64> {
        let own = findings.trials.iter().filter(|trial: &&TrialFindings| numbers.contains(&trial.trial));
        own.filter_map(|trial| trial.effect.delivered_log_ratio).collect()
    };
    let without = values(&findings.cells.first()?.compared_with);
    if without.len() < LEAST_WITHOUT || severities.len() < 2 {
        return None;
    }
    let places: Vec<f64> = severities.iter().map(|severity| severity.log10()).collect();
    let ends = (
        places.iter().copied().fold(f64::INFINITY, f64::min),
        places.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let mut zone = statistics::Zone::new(ends, &LOSSES, &without);
    let middle = statistics::median(&without);
    for (cell, place) in findings.cells.iter().zip(&places) {
        values(&cell.valid_trials).into_iter().for_each(|value| zone.learn(*place, value - middle));
    }
    let crossing = |(number, loss): (usize, &f64)| {
        let found = zone.crossing(number);
        let back = |place: f64| 10_f64.powf(place);
        Crossing {
            loss: *loss,
            low: found.low.map(back),
            high: found.high.map(back),
            back: found.back.into_iter().map(back).collect(),
        }
    };
    Some(Zone { factor: factor.name.clone(), crossings: LOSSES.iter().enumerate().map(crossing).collect() })
}

/// A delay in ns, or a share.
fn severity(level: &str) -> Option<f64> {
    let delay = level.parse::<Delay>().ok().map(|delay| delay.ns() as f64);
    delay.or_else(|| level.parse::<Share>().ok().map(Share::fraction)).filter(|value| *value > 0.0)
}
