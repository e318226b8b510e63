//! What a trial takes beyond its own phases: making a stand, or having one that has served before come to rest; what is done
//! before its first phase and after its last; and, on a stand that goes on, judging the trial before.

use std::collections::BTreeMap;

use brownout_analysis::{Findings, TrialFindings, phase};

/// What trials took beyond their own phases, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Each trial that was the first on its stand, from its own start: the run may have been interrupted before it.
    pub fresh: Vec<u64>,
    /// Each of the others, from the end of the trial before it on the same stand.
    pub reused: Vec<u64>,
}

/// Of all trials that came to their end, whatever they showed.
pub fn overheads(findings: &Findings) -> Overheads {
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = Overheads::default();
    for trial in findings.trials.iter().filter(|trial| !trial.cut) {
        match before.insert(trial.stand, trial.ends_ns) {
            None => all.fresh.push(beyond(trial, trial.starts_ns)),
            Some(ended_ns) => all.reused.push(beyond(trial, ended_ns)),
        }
    }
    all
}

/// From `since_ns` to the trial's end, but for its own phases.
fn beyond(trial: &TrialFindings, since_ns: u64) -> u64 {
    let own = trial.phases.iter().filter(|phase| phase.name != phase::SET_UP);
    let own: u64 = own.map(|phase| phase.duration_ns).sum();
    trial.ends_ns.saturating_sub(since_ns).saturating_sub(own)
}
