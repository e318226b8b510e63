//! How long operations on a directory's disk take, and how many of them wait: timed on the same mount as the database's own,
//! and counted by the filesystem under both.

use std::sync::mpsc::Sender;

use brownout_base::clock::monotonic_ns;
use brownout_disk::{DiskControl, Operation, Operations, Probe};
use brownout_record::{Quantity, Subject, WitnessRow};

use super::poller::{Poller, tell};
use crate::{LabError, controls::NodeDisk, faults::DISK_LOOK_EVERY as EVERY};

/// One directory of one node.
pub(super) struct DiskWitness {
    node: String,
    directory: String,
    probe: Probe,
}

impl DiskWitness {
    pub(super) fn start(node: &str, directory: &str, place: &NodeDisk) -> Result<DiskWitness, LabError> {
        let probe = Probe::start(&place.directory, EVERY, Operations::ALL)?;
        Ok(DiskWitness { node: node.to_owned(), directory: directory.to_owned(), probe })
    }

    pub(super) fn drain(&self) -> Vec<WitnessRow> {
        let mut rows = Vec::new();
        for sample in self.probe.drain() {
            let (time, errors) = match sample.operation {
                Operation::Read => (Quantity::ReadTime, Quantity::ReadErrors),
                Operation::Write => (Quantity::WriteTime, Quantity::WriteErrors),
                Operation::Sync => (Quantity::SyncTime, Quantity::SyncErrors),
                Operation::Metadata => (Quantity::MetadataTime, Quantity::MetadataErrors),
            };
            let mut row = |quantity, value| {
                rows.push(WitnessRow {
                    at_ns: sample.at_ns,
                    subject: Subject::directory(self.node.clone(), self.directory.clone()),
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

/// What share of the operations waited because of a fault, disk by disk.
pub(super) fn count(disks: Vec<(String, String, DiskControl)>, seen: Sender<WitnessRow>) -> Result<Poller, LabError> {
    let look = move || {
        for (node, directory, control) in &disks {
            let counters = control.take_counters();
            for (operation, counted) in counters.iter().filter(|(_, counted)| counted.received > 0) {
                let quantity = match operation {
                    Operation::Read => Quantity::ReadDelayed,
                    Operation::Write => Quantity::WriteDelayed,
                    Operation::Sync => Quantity::SyncDelayed,
                    Operation::Metadata => Quantity::MetadataDelayed,
                };
                // What waits may have been received before the last look.
                let value = (counted.delayed as f64 / counted.received as f64).min(1.0);
                let subject = Subject::directory(node.clone(), directory.clone());
                let source = "disk".to_owned();
                tell(&seen, WitnessRow { at_ns: monotonic_ns(), subject, quantity, source, value, error: 0.0 });
            }
        }
    };
    Poller::start("witness-disk".to_owned(), EVERY, || Ok(()), look)
}
