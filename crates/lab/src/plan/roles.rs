//! Faults whose host is drawn when they are injected: planned as if each node in turn had the role.

use std::{collections::BTreeMap, sync::Arc};

use brownout_record::Subject;

use super::PlannedFault;
use crate::{
    faults::{Fault, Role},
    hosts::Hosts,
};

impl PlannedFault {
    /// The same with these in their roles; a fault that follows none is as it was.
    fn cast(&self, leader: &str, follower: &str) -> PlannedFault {
        let on = |fault: &Arc<dyn Fault>| {
            let node = match fault.role() {
                None => return Arc::clone(fault),
                Some(Role::Leader) => leader,
                Some(Role::Follower) => follower,
            };
            fault.on_node(node).unwrap_or_else(|| Arc::clone(fault))
        };
        PlannedFault { severities: self.severities.iter().map(on).collect(), periods: self.periods.clone() }
    }

    /// Whether it follows a role.
    fn follows(&self) -> bool {
        self.fault().is_some_and(|fault| fault.role().is_some())
    }
}

/// The faults as they are, or, if some follow a role, once for each node as if that one led and the next one were the follower
/// that is meant.
pub(super) fn casts(hosts: &Hosts, faults: &[PlannedFault]) -> Vec<Vec<PlannedFault>> {
    if !faults.iter().any(PlannedFault::follows) {
        return vec![faults.to_vec()];
    }
    let nodes: Vec<&str> = hosts.nodes().map(|node| node.name.as_str()).collect();
    let cast = |(at, leader): (usize, &&str)| {
        let follower = nodes[(at + 1) % nodes.len()];
        faults.iter().map(|fault| fault.cast(leader, follower)).collect()
    };
    nodes.iter().enumerate().map(cast).collect()
}

/// A warning of faults that strike nodes by name where one of them leads: whether it is that one is then left to chance.
pub(super) fn chance(hosts: &Hosts, faults: &[PlannedFault]) -> Option<String> {
    let database = hosts.database();
    if !database.has_leader() || hosts.nodes().count() < 2 {
        return None;
    }
    let named = faults.iter().filter(|fault| !fault.follows()).filter_map(PlannedFault::fault);
    let uneven = named.filter(|fault| !strikes_all_alike(*fault, hosts)).map(Fault::text).next()?;
    Some(format!(
        "'{uneven}' may strike the leader or a follower, whichever {database} has made of it, and these differ much: compare only \
         trials in which it was the same, or write host: leader or host: follower"
    ))
}

/// Whether each node has the same number of places that are hit.
fn strikes_all_alike(fault: &dyn Fault, hosts: &Hosts) -> bool {
    let mut places: BTreeMap<&str, usize> = hosts.nodes().map(|node| (node.name.as_str(), 0)).collect();
    for one in fault.expectations(hosts).iter().filter(|one| one.hit) {
        let ends = match &one.subject {
            Subject::Pair { from, to } | Subject::Overlay { from, to } => [Some(from), Some(to)],
            Subject::Host { host } | Subject::Directory { host, .. } => [Some(host), None],
        };
        for host in ends.into_iter().flatten() {
            if let Some(count) = places.get_mut(host.as_str()) {
                *count += 1;
            }
        }
    }
    let mut counts = places.into_values();
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

#[cfg(test)]
mod tests {
    use brownout_cluster::DatabaseKind;
    use brownout_units::Delay;

    use super::*;
    use crate::{faults::from_entry, plan::PlannedPeriod};

    fn planned(written: &str, hosts: &Hosts) -> PlannedFault {
        let fault = from_entry(&serde_json::from_str(written).unwrap(), hosts, 1).unwrap();
        let period = PlannedPeriod { severity: 0, starts: Delay::ZERO, ends: Delay::from_secs(10) };
        PlannedFault { severities: vec![Arc::from(fault)], periods: vec![period] }
    }

    #[test]
    fn every_node_is_the_leader_once_and_another_one_the_follower() {
        let hosts = Hosts::new(3).running(DatabaseKind::Etcd);
        let faults =
            [r#"{"kill":{"host":"leader"}}"#, r#"{"pause":{"host":"follower"}}"#, r#"{"pause":{"host":"n3"}}"#]
                .map(|written| planned(written, &hosts));
        let struck: Vec<Vec<String>> = casts(&hosts, &faults)
            .iter()
            .map(|cast| cast.iter().flat_map(|fault| fault.fault().unwrap().stills().to_vec()).collect())
            .collect();
        assert_eq!(struck, [["n1", "n2", "n3"], ["n2", "n3", "n3"], ["n3", "n1", "n3"]]);
        assert_eq!(casts(&hosts, &faults[2..]).len(), 1);
    }

    #[test]
    fn chance_is_told_where_a_node_is_struck_by_name_that_may_lead() {
        let (etcd, cassandra) = (Hosts::new(3).running(DatabaseKind::Etcd), Hosts::new(3));
        let warning = |written: &str, hosts: &Hosts| chance(hosts, &[planned(written, hosts)]);
        let slow = |host: &str| format!(r#"{{"slow":{{"host":{host},"delay":"100ms"}}}}"#);
        assert!(warning(&slow(r#""n2""#), &etcd).is_some_and(|told| told.contains("host: leader or host: follower")));
        assert!(warning(r#"{"kill":{"host":"n1"}}"#, &etcd).is_some());
        assert_eq!(warning(&slow(r#""leader""#), &etcd), None);
        assert_eq!(warning(&slow(r#"["n1","n2","n3"]"#), &etcd), None);
        assert_eq!(warning(&slow(r#""n2""#), &cassandra), None);
        assert_eq!(warning(&slow(r#""n1""#), &Hosts::new(1).running(DatabaseKind::Etcd)), None);
    }
}
