//! The danger zone of a run in which one severity varies.

use brownout_analysis::{Findings, TrialFindings, Validity};
use brownout_record::Arm;
use brownout_statistics as statistics;
use brownout_units::{Delay, Share};

use crate::{
    number::short,
    stored::{Crossing, Zone},
};

/// The losses between which a severity is dangerous (Lu et al., "One-Size-Fits-None", NSDI 2025, table 2).
const LOSSES: [f64; 2] = [0.1, 0.5];
/// With fewer trials without a fault nobody knows how trials scatter.
const LEAST_WITHOUT: usize = 3;

/// Where the loss of throughput passes 10 % and 50 %, by the rules of a search, from whatever trials there are: of a search, or of
/// a grid. None if more than one thing varies, or something that is no severity.
pub fn zone(findings: &Findings) -> Option<Zone> {
    let [factor] = findings.design.factors.as_slice() else { return None };
    let severities = severities(findings)?;
    let valid = || findings.trials.iter().filter(|trial| trial.validity == Validity::Valid);
    let value = |trial: &TrialFindings| trial.effect.delivered_log_ratio;
    let without: Vec<f64> = valid().filter(|trial| trial.arm == Arm::None).filter_map(value).collect();
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
        let own = valid().filter(|trial| trial.cell == cell.cell && trial.arm == Arm::Fault);
        own.filter_map(value).for_each(|value| zone.learn(*place, value - middle));
    }
    let crossing = |(number, loss): (usize, &f64)| {
        let found = zone.crossing(number);
        let back = |place: f64| short(10_f64.powf(place));
        Crossing {
            loss: *loss,
            low: found.low.map(back),
            high: found.high.map(back),
            back: found.back.into_iter().map(back).collect(),
        }
    };
    Some(Zone { factor: factor.name.clone(), crossings: LOSSES.iter().enumerate().map(crossing).collect() })
}

/// Of each cell of a run in which one severity varies: delays in ns, or shares. None if one is neither.
pub(crate) fn severities(findings: &Findings) -> Option<Vec<f64>> {
    findings.cells.iter().map(|cell| severity(cell.levels.first()?)).collect()
}

/// A delay in ns, or a share.
fn severity(level: &str) -> Option<f64> {
    let delay = level.parse::<Delay>().ok().map(|delay| delay.ns() as f64);
    delay.or_else(|| level.parse::<Share>().ok().map(Share::fraction)).filter(|value| *value > 0.0)
}
