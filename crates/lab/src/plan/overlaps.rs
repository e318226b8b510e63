//! Faults that cannot be in force on one node at the same time: a node can be paused or ended only once.

use brownout_clock::MAX_DRIFT_PPB;
use brownout_record::{Quantity, Subject};
use brownout_units::Delay;

use super::{PlannedFault, check::Check};
use crate::{
    experiment::FileError,
    hosts::{HostPlan, Hosts},
};

/// A node that does not run; ns from the start of the phase `fault`.
struct Still<'a> {
    node: &'a str,
    /// The fault, by its place.
    fault: usize,
    kind: &'static str,
    from: u64,
    to: u64,
    /// When it runs again at the latest.
    back: u64,
}

impl Still<'_> {
    /// Whether it has to start again in the end.
    fn ends(&self) -> bool {
        self.back > self.to
    }
}

impl Check<'_> {
    /// `entries`: of each fault, the place of its entry in the file.
    pub(super) fn overlaps(&self, hosts: &Hosts, faults: &[PlannedFault], entries: &[usize]) -> Result<(), FileError> {
        let mut stills: Vec<Still<'_>> = faults.iter().enumerate().flat_map(|(at, fault)| stills(at, fault)).collect();
        stills.sort_by_key(|still| still.from);
        let key = |still: &Still<'_>| format!("faults.{}", entries[still.fault]);
        for (at, still) in stills.iter().enumerate() {
            let same = stills[..at].iter().filter(|other| other.node == still.node && other.back > still.from);
            if let Some(other) = same.max_by_key(|other| other.back) {
                return self.complain(&key(still), self.twice(still, other, &key(other)));
            }
            let ended = |node: &&HostPlan| {
                let now = |other: &&Still<'_>| other.ends() && other.from <= still.from && other.back > still.from;
                stills[..=at].iter().filter(now).any(|other| other.node == node.name)
            };
            if still.ends() && hosts.nodes().all(|node| ended(&node)) {
                let message = format!(
                    "at {} every node is down or restarting, so no cluster is left; leave one of these faults \
                     out",
                    Delay::from_ns(still.from)
                );
                return self.complain(&key(still), message);
            }
        }
        self.drifts(hosts, faults, entries)
    }

    fn twice(&self, still: &Still<'_>, other: &Still<'_>, key: &str) -> String {
        let at = Delay::from_ns;
        let allowance = Delay::from_ns(other.back - other.to);
        let back = if other.ends() { format!(", and may take {allowance} to start again") } else { String::new() };
        format!(
            "{} of {} cannot begin at {}: {} ({key}) is in force from {} to {}{back}; begin at {} or later, \
             or choose another node",
            still.kind,
            still.node,
            at(still.from),
            other.kind,
            at(other.from),
            at(other.to),
            at(other.back)
        )
    }

    /// No clock can drift more than so much, whoever makes it.
    fn drifts(&self, hosts: &Hosts, faults: &[PlannedFault], entries: &[usize]) -> Result<(), FileError> {
        for host in hosts.nodes() {
            let subject = Subject::host(host.name.clone());
            // Fault, from, to, parts in 10^9.
            let mut drifts: Vec<(usize, u64, u64, f64)> = Vec::new();
            for (at, fault) in faults.iter().enumerate() {
                for period in &fault.periods {
                    let Some(severity) = fault.severities.get(period.severity) else { continue };
                    let asked = severity.expectations(hosts).into_iter();
                    let own =
                        asked.filter(|one| one.subject == subject && one.quantity == Quantity::ClockDrift && one.hit);
                    let span = (period.starts.ns(), period.ends.ns());
                    drifts.extend(own.map(|one| (at, span.0, span.1, one.asked)));
                }
            }
            for (at, from, ..) in &drifts {
                let together = drifts.iter().filter(|(_, starts, ends, _)| starts <= from && ends > from);
                let sum: f64 = together.map(|(.., asked)| asked).sum();
                if sum.abs() > MAX_DRIFT_PPB as f64 {
                    let message = format!(
                        "at {} the drifts of the clock of {} add up to {:+.0}%; a clock can drift by 90% at \
                         most",
                        Delay::from_ns(*from),
                        host.name,
                        sum / 1e7
                    );
                    return self.complain(&format!("faults.{}", entries[*at]), message);
                }
            }
        }
        Ok(())
    }
}

fn stills(at: usize, fault: &PlannedFault) -> Vec<Still<'_>> {
    let Some(asked) = fault.fault() else { return Vec::new() };
    let node = |node| {
        fault.periods.iter().map(move |period| Still {
            node,
            fault: at,
            kind: asked.kind(),
            from: period.starts.ns(),
            to: period.ends.ns(),
            back: period.ends.ns().saturating_add(asked.heals_within().ns()),
        })
    };
    asked.stills().iter().flat_map(|name| node(name.as_str())).collect()
}
