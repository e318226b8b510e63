//! A search beside the grid that it saves: whether both find the same severities, as narrowly, and with how many trials.

use std::collections::BTreeSet;

use brownout_analysis::Findings;
use brownout_record::Arm;

use crate::{
    stored::Crossing,
    zone::{severities, zone},
};

/// The search may take so much of the grid's trials with a fault.
pub const MOST_TRIALS: f64 = 1.0 / 3.0;

/// Both, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// Where each loss is passed.
    pub crossings: Vec<Found>,
    /// How far neighbouring severities of the grid are apart at least, as a factor: what it tells, it tells no finer.
    pub place: f64,
    /// Planned trials of the search.
    pub search: Taken,
    /// Those of the grid.
    pub grid: Taken,
}

/// Where one loss is passed, by each.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// By the search.
    pub search: Crossing,
    /// By the grid.
    pub grid: Crossing,
}

/// How many planned trials a run took, by what was done in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Trials with a fault.
    pub fault: usize,
    /// Trials without one.
    pub without: usize,
}

impl Found {
    /// Whether the intervals have severities in common; none if one of them is not known.
    pub fn agree(&self) -> Option<bool> {
        let (search, grid) = (interval(&self.search)?, interval(&self.grid)?);
        Some(search.0 < grid.1 && grid.0 < search.1)
    }

    /// Whether the search's interval is no wider than the grid's and one of its places: one that holds everything agrees
    /// with everything. None if one of them is not known.
    pub fn is_narrow(&self, place: f64) -> Option<bool> {
        let (search, grid) = (interval(&self.search)?, interval(&self.grid)?);
        Some(search.1 / search.0 <= grid.1 / grid.0 * place)
    }
}

impl Beside {
    /// The search's trials with a fault, as a share of the grid's.
    pub fn share(&self) -> f64 {
        self.search.fault as f64 / self.grid.fault as f64
    }

    /// Whether the search has found what the grid finds, as narrowly, and with as few trials as it should; none if one of
    /// them does not tell.
    pub fn is_met(&self) -> Option<bool> {
        let is_found = |found: &Found| Some(found.agree()? && found.is_narrow(self.place)?);
        let found: Vec<bool> = self.crossings.iter().map(is_found).collect::<Option<_>>()?;
        Some(found.iter().all(|found| *found) && self.share() <= MOST_TRIALS)
    }
}

/// Both ends of where a loss is passed.
fn interval(crossing: &Crossing) -> Option<(f64, f64)> {
    Some((crossing.low?, crossing.high?))
}

/// Compares them; none if one is no run of one severity with valid trials without a fault.
pub fn beside(search: &Findings, grid: &Findings) -> Option<Beside> {
    let (found, gridded) = (zone(search)?, zone(grid)?);
    let crossings = found.crossings.into_iter().zip(gridded.crossings);
    let mut places = severities(grid)?;
    places.sort_by(f64::total_cmp);
    places.dedup();
    Some(Beside {
        place: places.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min),
        crossings: crossings.map(|(search, grid)| Found { search, grid }).collect(),
        search: taken(search),
        grid: taken(grid),
    })
}

/// Trials that were repeated are one; those without a valid attempt took their time, too.
fn taken(findings: &Findings) -> Taken {
    let of = |arm: Arm| -> usize {
        let planned = findings.trials.iter().filter(|trial| trial.arm == arm).map(|trial| trial.planned);
        planned.collect::<BTreeSet<_>>().len()
    };
    Taken { fault: of(Arm::Fault), without: of(Arm::None) }
}
