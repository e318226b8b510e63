//! What counts as good.

use brownout_record::Objective;
use brownout_units::{Delay, Share};

use super::{check::Check, load::PlannedLoad, phase::PlannedPhase};
use crate::experiment::{FileError, one_of};

impl Check<'_> {
    pub(super) fn objective(&self, phases: &[PlannedPhase], load: &PlannedLoad) -> Result<Objective, FileError> {
        let objective = &self.experiment.objective;
        let given = objective.given();
        let [(share, response)] = given[..] else {
            return self.complain(
                "objective",
                "one percentile says what counts as good; write one of p50, p95, p99, p99.9, such as { p99: 50ms }"
                    .to_owned(),
            );
        };
        if response == Delay::ZERO {
            return self.complain("objective", "a response time of 0 is not possible; write one above 0".to_owned());
        }
        for phase in &objective.phases {
            if !phases.iter().any(|planned| planned.phase.name() == phase) {
                let names = one_of("the phases are", phases.iter().map(|planned| planned.phase.name()), phase);
                return self.complain("objective.in", format!("there is no phase '{phase}'; {names}"));
            }
        }
        if let Some(operation) = &objective.operation {
            let known = load.operations();
            if !known.contains(&operation.as_str()) {
                let names = one_of("the operations are", known.into_iter(), operation);
                return self.complain("objective.operation", format!("there is no operation '{operation}'; {names}"));
            }
        }
        Ok(Objective {
            response_ns: response.ns(),
            share: Share::fraction(share),
            phases: objective.phases.clone(),
            operation: objective.operation.clone(),
        })
    }
}
