//! Alarms beside the truth.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Accused, Alarm, GRACE_NS, Truth, Watched};

/// Whether a detector named what the fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accusation {
    /// A host or link that the fault hits.
    Right,
    /// Another.
    Wrong,
    /// It named none.
    None,
}

/// What a detector made of one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// Its index in the experiment's list.
    pub fault: u32,
    /// From when it first came into force to the first alarm, ns; none: it was not detected.
    pub time_to_detect_ns: Option<u64>,
    /// Whom that alarm accused.
    pub accused: Option<Accused>,
    /// Whether that was right; none if the fault was not detected.
    pub accusation: Option<Accusation>,
}

/// What a detector would have made of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectorFindings {
    /// The detector.
    pub detector: String,
    /// Its alarms, in order of time.
    pub alarms: Vec<Alarm>,
    /// How long it watched while no fault was in force, nor had been within the grace, ns.
    pub quiet_ns: u64,
    /// Alarms in that time.
    pub false_alarms: u64,
    /// The same per hour of it; none if there was no such time.
    pub false_alarms_per_hour: Option<f64>,
    /// What it made of each fault that came into force.
    pub faults: Vec<Detection>,
}

/// Scores alarms. One counts for the step at the end of which it was raised: for a fault that was in force in any of it. With several faults in
/// force it counts for those that it accuses rightly, and for all if it accuses none of them.
pub fn score(detector: &str, alarms: Vec<Alarm>, truths: &[Truth], watched: &Watched) -> DetectorFindings {
    let step_ns = watched.step_ns;
    let within = |end_ns: u64, grace_ns: u64| {
        let start_ns = end_ns.saturating_sub(step_ns);
        let overlaps = move |(from, to): &(u64, u64)| *from < end_ns && start_ns < to.saturating_add(grace_ns);
        truths.iter().filter(move |truth| truth.spells.iter().any(overlaps))
    };
    let quiet = |end_ns: u64| within(end_ns, GRACE_NS).next().is_none();
    let steps = (watched.learnt..watched.steps.len()).filter(|at| quiet(watched.end_of(*at))).count();
    let quiet_ns = steps as u64 * step_ns;
    let false_alarms = alarms.iter().filter(|alarm| quiet(alarm.at_ns)).count() as u64;
    let right = |alarm: &Alarm, truth: &Truth| alarm.accused.as_ref().is_some_and(|one| truth.guilty.contains(one));
    let counts_for = |alarm: &&Alarm, truth: &Truth| {
        let there: Vec<&Truth> = within(alarm.at_ns, 0).collect();
        let named: BTreeSet<u32> = there.iter().filter(|one| right(alarm, one)).map(|one| one.fault).collect();
        there.iter().any(|one| one.fault == truth.fault) && (named.is_empty() || named.contains(&truth.fault))
    };
    let faults = truths.iter().map(|truth| {
        let first = alarms.iter().find(|alarm| counts_for(alarm, truth));
        Detection {
            fault: truth.fault,
            time_to_detect_ns: first.and_then(|alarm| Some(alarm.at_ns.saturating_sub(truth.spells.first()?.0))),
            accused: first.and_then(|alarm| alarm.accused.clone()),
            accusation: first.map(|alarm| match alarm.accused {
                None => Accusation::None,
                Some(_) if right(alarm, truth) => Accusation::Right,
                Some(_) => Accusation::Wrong,
            }),
        }
    });
    DetectorFindings {
        detector: detector.to_owned(),
        quiet_ns,
        false_alarms,
        false_alarms_per_hour: (quiet_ns > 0).then(|| false_alarms as f64 / (quiet_ns as f64 / 3.6e12)),
        faults: faults.collect(),
        alarms,
    }
}
