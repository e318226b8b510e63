//! When and where faults really were: what detectors are scored on.

use std::collections::BTreeSet;

use brownout_record::{FaultRecord, HostDescription, Subject};

use super::Accused;

/// After a healing for so long, ns, alarms are neither right nor false: what the fault left behind may still be felt.
pub const GRACE_NS: u64 = 10_000_000_000;

/// The truth about one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Its index in the experiment's list.
    pub fault: u32,
    /// Whom it is right to accuse.
    pub guilty: BTreeSet<Accused>,
    /// From when to when it was in force, ns since the run's zero; a fault that pauses for no longer than [`GRACE_NS`] goes on.
    pub spells: Vec<(u64, u64)>,
}

impl Truth {
    /// Of all faults that came into force.
    pub(crate) fn all(faults: &[FaultRecord], hosts: &[HostDescription]) -> Vec<Truth> {
        let of = |fault: &FaultRecord| Truth {
            fault: fault.index,
            guilty: guilty(fault, hosts),
            spells: spells(fault.periods.iter().filter_map(|period| {
                let to = period.healed.map_or(u64::MAX, |stamp| stamp.at_ns);
                Some((period.injected?.at_ns, to))
            })),
        };
        faults.iter().map(of).filter(|truth| !truth.spells.is_empty()).collect()
    }
}

/// Stretches of time, in order, put together where no more than the grace lies between.
fn spells(periods: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut periods: Vec<(u64, u64)> = periods.collect();
    periods.sort_unstable();
    let mut spells: Vec<(u64, u64)> = Vec::new();
    for (from, to) in periods {
        match spells.last_mut() {
            Some(last) if from <= last.1.saturating_add(GRACE_NS) => last.1 = last.1.max(to),
            _ => spells.push((from, to)),
        }
    }
    spells
}

/// Whom it is right to accuse: the hosts that it hits, and those of which it hits the links with all others, or with all other nodes where there are
/// two and more; of the links that it hits besides, each.
fn guilty(fault: &FaultRecord, hosts: &[HostDescription]) -> BTreeSet<Accused> {
    let hit = fault.severities.iter().flat_map(|one| &one.expectations).filter(|one| one.hit);
    let mut guilty = BTreeSet::new();
    let mut links: BTreeSet<[&str; 2]> = BTreeSet::new();
    for expectation in hit {
        match &expectation.subject {
            Subject::Pair { from, to } => {
                let mut pair = [from.as_str(), to.as_str()];
                pair.sort_unstable();
                links.insert(pair);
            }
            // Nobody is to be accused of what goes on above, but of its cause below.
            Subject::Overlay { .. } => {}
            Subject::Host { host } | Subject::Directory { host, .. } => {
                guilty.insert(Accused::node(host));
            }
        }
    }
    let is_hit = |one: &str, other: &str| links.contains(&[one.min(other), one.max(other)]);
    let whole = |host: &&HostDescription| {
        let others = || hosts.iter().filter(|other| other.name != host.name);
        let nodes = || others().filter(|other| other.role == "node");
        let hit = |other: &HostDescription| is_hit(&host.name, &other.name);
        others().count() > 1 && others().all(hit) || nodes().count() > 1 && nodes().all(hit)
    };
    let nodes: Vec<&str> = hosts.iter().filter(whole).map(|host| host.name.as_str()).collect();
    guilty.extend(nodes.iter().map(|host| Accused::node(*host)));
    let rest = links.iter().filter(|pair| !pair.iter().any(|host| nodes.contains(host)));
    guilty.extend(rest.map(|[one, other]| Accused::link(*one, *other)));
    guilty
}

#[cfg(test)]
mod tests {
    use brownout_record::{Expectation, Quantity, Severity};

    use super::*;

    fn hits(subjects: &[Subject], names: &[&str]) -> Vec<String> {
        let expectation = |subject: &Subject, hit| Expectation {
            subject: subject.clone(),
            quantity: Quantity::Loss,
            hit,
            asked: 0.1,
            tolerance: 0.01,
            burst: None,
        };
        let mut expectations: Vec<Expectation> = subjects.iter().map(|subject| expectation(subject, true)).collect();
        expectations.push(expectation(&Subject::host("n9"), false));
        let fault = FaultRecord {
            index: 0,
            kind: String::new(),
            text: String::new(),
            effect: String::new(),
            unsettled_ns: 0,
            severities: vec![Severity { text: String::new(), expectations }],
            periods: Vec::new(),
        };
        let role = |name: &str| if name == "load" { "load" } else { "node" };
        let host = |name: &&str| HostDescription {
            name: (*name).to_owned(),
            address: String::new(),
            role: role(name).to_owned(),
        };
        let hosts: Vec<HostDescription> = names.iter().map(host).collect();
        guilty(&fault, &hosts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn whoever_has_all_links_hit_is_slow_itself_and_else_the_link_is() {
        let pair = Subject::pair;
        let hosts = ["n1", "n2", "n3", "load"];
        let from_n2 = [pair("n2", "n1"), pair("n2", "n3"), pair("n2", "load")];
        assert_eq!(hits(&from_n2, &hosts), ["n2"]);
        assert_eq!(hits(&from_n2[..2], &hosts), ["n2"], "of all other nodes");
        assert_eq!(hits(&from_n2[1..], &hosts), ["load – n2", "n2 – n3"]);
        assert_eq!(hits(&[pair("n3", "n1"), pair("n1", "n3")], &hosts), ["n1 – n3"]);
        assert_eq!(hits(&[pair("n1", "n2")], &["n1", "n2", "load"]), ["n1 – n2"], "n1 has but one other node");
        assert_eq!(hits(&[pair("n1", "n2"), pair("load", "n1")], &["n1", "n2", "load"]), ["n1"]);
        let halves = [pair("n1", "n3"), pair("n1", "n4"), pair("n2", "n3"), pair("n2", "n4")];
        assert_eq!(hits(&halves, &["n1", "n2", "n3", "n4"]).len(), 4, "halves are cut apart: links");
        let other = [Subject::host("n3"), Subject::directory("n1", "data")];
        assert_eq!(hits(&other, &hosts), ["n1", "n3"]);
    }

    #[test]
    fn short_pauses_of_a_fault_are_part_of_it() {
        let at = |seconds: u64| seconds * 1_000_000_000;
        let periods = [(at(50), u64::MAX), (at(0), at(1)), (at(3), at(4)), (at(14), at(20)), (at(31), at(32))];
        let expected = vec![(0, at(20)), (at(31), at(32)), (at(50), u64::MAX)];
        assert_eq!(spells(periods.into_iter()), expected);
    }
}
