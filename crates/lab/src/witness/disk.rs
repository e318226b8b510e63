//! How long do operations on a folder's disk take? Timed on the same mount as the database's own.

use std::time::Duration;

use brownout_disk::{Operation, Probe};
use brownout_record::{Quantity, Subject, WitnessRow};

use crate::{LabError, faults::DiskPlace};

/// Between two rounds of one operation each.
const EVERY: Duration = Duration::from_millis(100);

/// One folder of one node.
pub(super) struct Disk {
    node: String,
    folder: String,
    probe: Probe,
}

impl Disk {
    pub(super) fn start(node: &str, folder: &str, place: &DiskPlace) -> Result<Disk, LabError> {
        let operations = [Operation::Read, Operation::Write, Operation::Sync].into_iter().collect();
        let probe = Probe::start(&place.folder, EVERY, operations)?;
        Ok(Disk { node: node.to_owned(), folder: folder.to_owned(), probe })
    }

    pub(super) fn drain(&self) -> Vec<WitnessRow> {
        let mut rows = Vec::new();
        for sample in self.probe.drain() {
            let (time, errors) = match sample.operation {
                Operation::Read => (Quantity::ReadTime, Quantity::ReadErrors),
                Operation::Write => (Quantity::WriteTime, Quantity::WriteErrors),
                Operation::Sync => (Quantity::SyncTime, Quantity::SyncErrors),
                Operation::Metadata => continue,
            };
            let mut row = |quantity, value| {
                rows.push(WitnessRow {
                    at_ns: sample.at_ns,
                    subject: Subject::folder(self.node.clone(), self.folder.clone()),
                    quantity,
                    source: "disk-probe".to_owned(),
                    value,
                    error: 0.0,
                });
            };
            // One that failed took a time, too, but not that of an operation that did its work.
            row(errors, f64::from(u8::from(sample.took_ns.is_err())));
            if let Ok(took) = sample.took_ns {
                row(time, took as f64);
            }
        }
        rows
    }
}
