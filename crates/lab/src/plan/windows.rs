//! Whether a plan leaves enough time to prove its faults: one that could not be proven is refused now, not after minutes.

use brownout_analysis::margin_within;
use brownout_units::Delay;

use super::{Phase, PlannedFault, PlannedPhase, check::Check, probe_interval};
use crate::{experiment::FileError, hosts::Hosts};

/// Probes that each of the windows before, during and after a fault has to have: three times what a verdict takes.
const PROBES: u32 = 3 * brownout_analysis::ENOUGH as u32;
/// The same in time for what witnesses see, who look ten times a second.
const WITNESSES: Delay = Delay::from_secs(5);
/// Bursts come once or twice a second.
const TRAINS: Delay = Delay::from_secs(10);

impl Check<'_> {
    pub(super) fn provable(
        &self,
        hosts: &Hosts,
        phases: &[PlannedPhase],
        faults: &[PlannedFault],
    ) -> Result<(), FileError> {
        let length =
            |wanted: Phase| phases.iter().find(|phase| phase.phase == wanted).map_or(0, |phase| phase.length.ns());
        let refuse = |key: &str, have: u64, need: u64, what: &str| {
            let (have, need) = (Delay::from_ns(have), Delay::from_ns(need));
            self.complain(key, format!("{have} is too short to prove this fault by {what}; it needs at least {need}"))
        };
        // Every moment at which something comes or goes.
        let mut changes: Vec<Change> = Vec::new();
        for fault in faults {
            let (unsettled, early) = (unsettled(fault), early(fault));
            let periods = fault.periods.iter();
            let own: Vec<(u64, u64)> =
                periods.flat_map(|period| [(period.starts.ns(), 0), (period.ends.ns(), early)]).collect();
            // Short stretches, as of a flapping link, leave less out.
            let next = |at| own.iter().map(|(at, _)| *at).filter(|next| *next > at).min().unwrap_or(u64::MAX);
            changes.extend(own.iter().map(|(at, early)| Change {
                at: *at,
                margin: margin_within(next(*at).saturating_sub(*at), unsettled),
                early: *early,
            }));
        }
        changes.sort_by_key(|change| change.at);
        let first = changes.first().map_or(0, |change| change.at);
        for (index, fault) in faults.iter().enumerate() {
            let (need, what) = evidence(fault, hosts);
            let (need, key) = (need.ns(), self.key_of(index));
            let before = length(Phase::Baseline) + first;
            if before < need {
                return refuse("phases.baseline", before, need, what);
            }
            for severity in 0..fault.severities.len() {
                let periods = fault.periods.iter().filter(|period| period.severity == severity);
                let during: u64 = periods.map(|period| quiet(&changes, period.starts.ns(), period.ends.ns())).sum();
                if during < need {
                    let longest = unsettled(fault).saturating_add(early(fault)).saturating_add(need);
                    let have = fault.periods.iter().map(|period| period.ends.ns() - period.starts.ns()).max();
                    return refuse(&key, have.unwrap_or(0), longest, what);
                }
            }
            let end = length(Phase::Fault) + length(Phase::Recovery);
            let healed = fault.ends().ns();
            if quiet(&changes, healed, end) < need {
                let need = unsettled(fault) + need;
                return refuse("phases.recovery", end - healed, need, what);
            }
        }
        Ok(())
    }

    /// The place in the file of the `index`-th planned fault: a chaos plans many.
    fn key_of(&self, index: usize) -> String {
        let entries = &self.experiment.faults;
        let chaos = entries.iter().position(|entry| entry.chaos.is_some());
        format!(
            "faults.{}",
            chaos.filter(|chaos| index >= *chaos).unwrap_or(index).min(entries.len().saturating_sub(1))
        )
    }
}

fn unsettled(fault: &PlannedFault) -> u64 {
    fault.severities.iter().map(|fault| fault.unsettled().ns()).max().unwrap_or(0)
}

/// What is let go early by a healing, so that it shows less than the fault: packets on their way, ns before it.
fn early(fault: &PlannedFault) -> u64 {
    let delays = fault.fault().is_some_and(|fault| fault.impairment().is_some());
    let delay = if delays { unsettled(fault).saturating_sub(brownout_analysis::SETTLE_NS) } else { 0 };
    delay + brownout_analysis::REACH_NS
}

/// A moment at which a fault comes or goes; ns from the start of the phase, and around it.
struct Change {
    at: u64,
    margin: u64,
    early: u64,
}

/// Time between `from` and `to` in which nothing has just changed, or is about to.
fn quiet(changes: &[Change], from: u64, to: u64) -> u64 {
    let mut settled = from;
    let mut quiet = 0;
    for Change { at, margin, early } in changes.iter().filter(|change| change.at >= from && change.at <= to) {
        quiet += at.saturating_sub(*early).saturating_sub(settled);
        settled = settled.max(at + margin);
    }
    quiet + to.saturating_sub(settled)
}

/// How long a window has to be to tell something, and by what.
fn evidence(fault: &PlannedFault, hosts: &Hosts) -> (Delay, &'static str) {
    let needs = fault.fault().map(crate::faults::Fault::needs).unwrap_or_default();
    if !needs.trains.is_empty() {
        (TRAINS, "bursts")
    } else if needs.process_witness
        || needs.clock_witness
        || !needs.disks.is_empty()
        || !needs.largest_packets.is_empty()
    {
        (WITNESSES, "witnesses")
    } else {
        (Delay::from(probe_interval(hosts) * PROBES), "probes")
    }
}
