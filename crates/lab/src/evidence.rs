//! What the database itself tells of what it does, for the record.

use std::time::Duration;

use brownout_cluster::{ClusterControl, EvidenceWatch};
use brownout_record::{EvidenceRow, Recorder};

use crate::{LabError, faults::Needs, plan::INTERVAL_NS};

/// Looks at what the nodes tell, until this is dropped.
pub struct DatabaseEvidence(EvidenceWatch);

impl DatabaseEvidence {
    /// Begins to look, once in every interval; those begin at `epoch_ns`, `CLOCK_MONOTONIC`.
    pub fn start(nodes: &ClusterControl, needs: &Needs, epoch_ns: u64) -> Result<DatabaseEvidence, LabError> {
        let wrong_clocks = needs.clocks.iter().cloned().collect();
        let every = Duration::from_nanos(INTERVAL_NS);
        Ok(DatabaseEvidence(EvidenceWatch::start(nodes, epoch_ns, every, &wrong_clocks)?))
    }

    /// Records what was told since the last call.
    pub fn record(&self, recorder: &mut Recorder, trial: u32) -> Result<(), LabError> {
        let seen = self.0.drain();
        let rows = seen.into_iter().map(|one| EvidenceRow {
            at_ns: recorder.at(one.at_ns),
            error_ns: one.error_ns,
            node: one.node,
            source: one.source.to_owned(),
            subject: one.subject,
            name: one.name.to_owned(),
            value: one.value,
        });
        let rows: Vec<EvidenceRow> = rows.collect();
        Ok(recorder.batch(|recorder| rows.iter().try_for_each(|row| recorder.evidence(trial, row)))?)
    }
}
