//! Labs that worked at once: which of them ran what, on which processors.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{TrialFindings, Validity};

/// One of the labs of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabFindings {
    /// From 1.
    pub lab: u32,
    /// The processors that it had, `0-3,8`, each list once; more than one if sessions had others. Empty where the
    /// record does not tell.
    pub processors: Vec<String>,
    /// Attempts at trials that ran in it.
    pub trials: u32,
    /// Those of them that are valid.
    pub valid: u32,
}

/// Those that have run anything, in order.
pub(crate) fn labs(trials: &[TrialFindings]) -> Vec<LabFindings> {
    let mut labs: BTreeMap<u32, LabFindings> = BTreeMap::new();
    for trial in trials {
        let empty = LabFindings { lab: trial.lab, processors: Vec::new(), trials: 0, valid: 0 };
        let lab = labs.entry(trial.lab).or_insert(empty);
        lab.trials += 1;
        lab.valid += u32::from(trial.validity == Validity::Valid);
        if let Some(processors) = trial.processors.as_ref().filter(|list| !lab.processors.contains(list)) {
            lab.processors.push(processors.clone());
        }
    }
    labs.into_values().collect()
}
