//! What is shown of a trial while it goes on: what all parts do, as one.

use std::{collections::BTreeMap, time::Duration};

use brownout_base::clock::monotonic_ns;

use super::Running;
use crate::progress::{OperationTick, Tick};

impl Running<'_> {
    pub(super) fn show(&mut self, phase: &str, ends_ns: u64) {
        let left = Duration::from_nanos(ends_ns.saturating_sub(monotonic_ns()));
        let plan = self.trial.plan;
        let now = plan.phases.iter().position(|planned| phase.starts_with(planned.phase.name()));
        let behind: Duration =
            plan.phases.iter().skip(now.map_or(0, |at| at + 1)).map(|one| one.length.duration()).sum();
        let mut coordinators: BTreeMap<String, u64> = BTreeMap::new();
        let mut operations: BTreeMap<String, OperationTick> = BTreeMap::new();
        let mut faults: Vec<String> = Vec::new();
        for tick in self.ticks.values() {
            for (name, median) in &tick.coordinators {
                // Of several medians the largest is shown.
                let known = coordinators.entry(name.clone()).or_default();
                *known = (*known).max(*median);
            }
            for (name, ok, timed_out, p50_ns) in &tick.operations {
                let empty = || OperationTick { name: name.clone(), ok: 0, timed_out: 0, p50_ns: 0 };
                let sum = operations.entry(name.clone()).or_insert_with(empty);
                (sum.ok, sum.timed_out, sum.p50_ns) = (sum.ok + ok, sum.timed_out + timed_out, sum.p50_ns.max(*p50_ns));
            }
            faults.extend(tick.faults.iter().filter(|fault| !faults.contains(fault)).cloned().collect::<Vec<_>>());
        }
        self.progress.tick(&Tick {
            course: self.trial.course,
            left_of_run: left + behind + self.trial.course.behind,
            phase: phase.to_owned(),
            left,
            offered: self.per_second(|tick| tick.offered),
            delivered: self.per_second(|tick| tick.delivered),
            failed: self.ticks.values().map(|tick| tick.failed).sum(),
            p50_ns: self.ticks.values().map(|tick| tick.p50_ns).max().unwrap_or(0),
            p99_ns: self.ticks.values().map(|tick| tick.p99_ns).max().unwrap_or(0),
            coordinators: coordinators.into_iter().collect(),
            operations: operations.into_values().collect(),
            faults,
            busy: self.ticks.values().map(|tick| tick.busy).fold(0.0, f64::max),
        });
    }
}
