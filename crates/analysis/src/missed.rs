//! Objectives that are missed only because of what the instrument or the machine did.
//!
//! Some late or disturbed intervals leave a trial valid, since medians hardly move; but what an objective allows may be less than
//! they hold. A miss that goes away without them says nothing of the system.

use std::collections::BTreeSet;

use brownout_record::Description;

use crate::{ObjectiveMiss, TrialEvidence, TrialFindings, sums::PhaseSums};

/// A phase in which an objective is missed, and met without some intervals.
pub(crate) struct DoubtfulMiss {
    /// Others took processors in all of these intervals.
    pub(crate) by_others: bool,
    /// What is to be said of it.
    pub(crate) text: String,
}

/// All of a trial, of the phases in which the objective has to hold.
pub(crate) fn doubtful_misses(
    description: &Description,
    evidence: &TrialEvidence,
    trial: &TrialFindings,
) -> Vec<DoubtfulMiss> {
    let objective = &description.objective;
    let disturbed: BTreeSet<u64> = trial.instrument.disturbed_intervals.iter().copied().collect();
    let bad: BTreeSet<u64> = trial.instrument.late_intervals.iter().copied().chain(disturbed.iter().copied()).collect();
    let mut found = Vec::new();
    for phase in trial.phases.iter().filter(|phase| objective.phases.contains(&phase.name)) {
        let missed = phase.objective_share.filter(|share| *share < objective.share);
        let Some((missed, window)) = missed.zip(evidence.phase(&phase.name)) else { continue };
        let without = |starts: &BTreeSet<u64>| {
            let left = PhaseSums::without(evidence, window, objective, starts).findings(objective);
            // Where nothing is left, nothing is met.
            left.objective_share.filter(|share| *share >= objective.share)
        };
        let (by_others, met) = match (without(&disturbed), without(&bad)) {
            (Some(met), _) => (true, met),
            (None, Some(met)) => (false, met),
            (None, None) => continue,
        };
        let why = if by_others { "other work disturbed" } else { "the instrument was late or other work disturbed" };
        let miss =
            ObjectiveMiss { trial: trial.label(), phase: phase.name.clone(), share: missed, asked: objective.share };
        let (missed, asked) = miss.percents();
        found.push(DoubtfulMiss {
            by_others,
            text: format!(
                "the objective is missed in the {} ({missed} good of {asked} asked) only because of intervals in which {why}: \
                 without them {:.2}% are good",
                phase.name,
                met * 100.0
            ),
        });
    }
    found
}
