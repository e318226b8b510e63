//! Faults that cannot be in force on one node at the same time: a node can be paused or ended only once.

use brownout_clock::MAX_DRIFT_PPB;
use brownout_record::{Quantity, Subject};
use brownout_units::Delay;

use super::{PlannedFault, check::Check};
use crate::{
    experiment::FileError,
    faults::{Fault, Role},
    hosts::{HostPlan, Hosts},
};

/// A node that does not run; ns from the start of the phase `fault`.
struct Still<'a> {
    node: &'a str,
    /// The role that it is taken to have, if the fault strikes whoever has it.
    role: Option<Role>,
    /// The fault, by its index.
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

    /// Whom the fault strikes, as the file has it.
    fn struck(&self) -> String {
        match self.role {
            Some(role) => format!("{role} (it may be {})", self.node),
            None => self.node.to_owned(),
        }
    }
}

impl Check<'_> {
    /// `faults`: those of `asked`, with nodes in the places of roles. `entries`: of each, the place of its entry in the file.
    pub(super) fn overlaps(
        &self,
        hosts: &Hosts,
        asked: &[PlannedFault],
        faults: &[PlannedFault],
        entries: &[usize],
    ) -> Result<(), FileError> {
        let role = |at: usize| asked.get(at).and_then(PlannedFault::fault).and_then(Fault::role);
        let stills = faults.iter().enumerate().flat_map(|(at, fault)| stills(at, role(at), fault));
        let mut stills: Vec<Still<'_>> = stills.collect();
        stills.sort_by_key(|still| still.from);
        let key = |still: &Still<'_>| format!("faults.{}", entries[still.fault]);
        for (at, still) in stills.iter().enumerate() {
            let same = stills[..at].iter().filter(|other| other.node == still.node && other.back > still.from);
            if let Some(other) = same.max_by_key(|other| other.back) {
                return self.complain(&key(still), twice(still, other, &key(other)));
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

/// Why one of them cannot begin while the other, of the entry with this key, is in force.
fn twice(still: &Still<'_>, other: &Still<'_>, key: &str) -> String {
    let at = Delay::from_ns;
    let allowance = Delay::from_ns(other.back - other.to);
    let back = if other.ends() { format!(", and may take {allowance} to start again") } else { String::new() };
    let whose = if other.role.is_some() { format!(" of {}", other.struck()) } else { String::new() };
    let follows = still.role.or(other.role).is_some();
    format!(
        "{} of {} cannot begin at {}: {} ({key}){whose} is in force from {} to {}{back}; begin at {} or later, \
         or choose another {}",
        still.kind,
        still.struck(),
        at(still.from),
        other.kind,
        at(other.from),
        at(other.to),
        at(other.back),
        if follows { "host" } else { "node" }
    )
}

fn stills(at: usize, role: Option<Role>, fault: &PlannedFault) -> Vec<Still<'_>> {
    let Some(asked) = fault.fault() else { return Vec::new() };
    let node = |node| {
        fault.periods.iter().map(move |period| Still {
            node,
            role,
            fault: at,
            kind: asked.kind(),
            from: period.starts.ns(),
            to: period.ends.ns(),
            back: period.ends.ns().saturating_add(asked.heals_within().ns()),
        })
    };
    asked.stills().iter().flat_map(|name| node(name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_fault_strikes_is_told_as_it_was_asked_for() {
        const S: u64 = 1_000_000_000;
        let kill = |role| Still { node: "n2", role, fault: 0, kind: "kill", from: 0, to: 2 * S, back: 32 * S };
        let pause = |role| Still { node: "n2", role, fault: 1, kind: "pause", from: 5 * S, to: 9 * S, back: 9 * S };
        for (first, then, said) in [
            (None, None, ["pause of n2 cannot begin at 5s: kill (faults.0) is in force", "another node"]),
            (
                Some(Role::Leader),
                None,
                ["pause of n2 cannot begin at 5s: kill (faults.0) of the leader (it may be n2) is in", "another host"],
            ),
            (
                None,
                Some(Role::Follower),
                ["pause of a follower (it may be n2) cannot begin at 5s: kill (faults.0) is in force", "another host"],
            ),
        ] {
            let told = twice(&pause(then), &kill(first), "faults.0");
            assert!(said.iter().all(|words| told.contains(words)), "{told}");
            assert!(told.contains("may take 30s to start again; begin at 32s or later"), "{told}");
        }
    }
}
