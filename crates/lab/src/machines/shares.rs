//! The share of the operations that each load sends: what it has told of them, and how many were due.
//!
//! A load tells what became of its operations as it goes, so that this outlives it. Where it is lost in the middle of a trial, the
//! rest of its share was never sent, and stands so in the record ([`brownout_record::LostLoad`]).

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
    time::Duration,
};

use brownout_load::{Pace, Part};
use brownout_record::{Arm, OperationRows, Recorder, Run};

use super::part::{TRIAL, recorder};
use crate::LabError;

/// Those of all loads of a trial. Times are ns since its intervals began.
pub(super) struct Shares {
    /// Where it lies what they have told.
    directory: PathBuf,
    told: BTreeMap<String, Recorder>,
    /// The load that is measured, of all together, and since when.
    measured: Option<(Vec<Pace>, u64)>,
}

impl Shares {
    /// Keeps what loads tell below a directory.
    pub(super) fn below(directory: &Path) -> Shares {
        Shares { directory: directory.to_owned(), told: BTreeMap::new(), measured: None }
    }

    /// From then on, these are in force.
    pub(super) fn measure(&mut self, paces: Vec<Pace>, from_ns: u64) {
        self.measured = Some((paces, from_ns));
    }

    /// Since when the load is measured; none: not yet.
    pub(super) fn measured_since(&self) -> Option<u64> {
        self.measured.as_ref().map(|(_, from_ns)| *from_ns)
    }

    /// Keeps what a load tells.
    pub(super) fn tells(&mut self, machine: &str, rows: &[OperationRows]) -> Result<(), LabError> {
        let told = self.of(machine)?;
        Ok(told.batch(|recorder| rows.iter().try_for_each(|rows| recorder.operations(TRIAL, rows)))?)
    }

    /// All that one has told that will tell nothing more.
    pub(super) fn left_by(&mut self, machine: &str) -> Result<Run, LabError> {
        // One that has told nothing has left nothing.
        self.of(machine)?;
        if let Some(told) = self.told.remove(machine) {
            told.finish()?;
        }
        Ok(Run::open(&self.path_of(machine))?)
    }

    /// How many of the operations that are measured are due in a time, of those of a load.
    pub(super) fn due(&self, part: Part, from_ns: u64, to_ns: u64) -> u64 {
        let Some((paces, since_ns)) = &self.measured else { return 0 };
        let before = |at_ns: u64| -> u64 {
            let after = Duration::from_nanos(at_ns.saturating_sub(*since_ns));
            paces.iter().map(|pace| part.due(pace, after)).sum()
        };
        before(to_ns).saturating_sub(before(from_ns))
    }

    fn path_of(&self, machine: &str) -> PathBuf {
        self.directory.join(format!("{machine}.told"))
    }

    fn of(&mut self, machine: &str) -> Result<&mut Recorder, LabError> {
        let path = self.path_of(machine);
        Ok(match self.told.entry(machine.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            // Neither its zero nor its seed is looked at.
            Entry::Vacant(new) => new.insert(recorder(&path, 0, 0, Arm::None)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use brownout_load::Arrivals;
    use brownout_record::LoadRow;
    use brownout_units::Rate;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn rows(starts_ns: u64, scheduled: u64) -> OperationRows {
        let load = LoadRow { scheduled, sent: scheduled, ..LoadRow::empty(starts_ns, S) };
        OperationRows { load, latencies: Vec::new(), watches: Vec::new() }
    }

    #[test]
    fn the_newest_that_a_load_has_told_of_an_interval_is_what_it_leaves() {
        let directory = tempfile::tempdir().unwrap();
        let mut shares = Shares::below(directory.path());
        shares.tells("a", &[rows(0, 10), rows(S, 3)]).unwrap();
        shares.tells("b", &[rows(0, 7)]).unwrap();
        shares.tells("a", &[rows(S, 9), rows(2 * S, 2)]).unwrap();
        let left = shares.left_by("a").unwrap().load(TRIAL).unwrap();
        assert_eq!(left, [rows(0, 10), rows(S, 9), rows(2 * S, 2)].map(|rows| rows.load));
        assert!(
            shares.left_by("c").unwrap().load(TRIAL).unwrap().is_empty(),
            "it was lost before it could tell anything"
        );
    }

    #[test]
    fn what_is_due_of_loads_is_dealt_out_to_them() {
        let mut shares = Shares::below(Path::new(""));
        let parts = [0, 1].map(|number| Part { number, of: 2 });
        assert_eq!(shares.due(parts[0], 0, 60 * S), 0, "nothing is measured yet");
        let open =
            |per_second| Pace::Open { rate: Rate::per_second(per_second).unwrap(), arrivals: Arrivals::Constant };
        shares.measure(vec![open(101.0), open(10.0), Pace::Closed { threads: 3 }], 5 * S);
        assert_eq!(parts.map(|part| shares.due(part, 0, 5 * S)), [0, 0]);
        // Of 101 the first sends the one that is left over.
        assert_eq!(parts.map(|part| shares.due(part, 4 * S, 6 * S)), [51 + 5, 50 + 5]);
        let second = parts.map(|part| shares.due(part, 6 * S, 7 * S));
        assert_eq!(second.iter().sum::<u64>(), 111);
    }
}
