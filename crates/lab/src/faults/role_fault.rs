//! `host: leader` and `host: follower`: a fault whose host is drawn when it is injected, of a database in which nodes have roles.
//!
//! It holds the same fault for each node, of which one is put in force: so it injects, heals and is proven as any other.

use std::sync::Arc;

use brownout_base::random::Random;
use brownout_cluster::{ClusterError, NodeState};
use brownout_network::Impairment;
use brownout_record::Expectation;
use brownout_units::Delay;

use super::{
    capabilities::Capabilities,
    fault::{ActiveFault, Fault},
    needs::Needs,
    role::Role,
};
use crate::{
    LabError,
    experiment::{Complaint, FaultEntry, Names},
    hosts::Hosts,
};

/// Who has which role, for one trial. A follower that was drawn once stays the one that is meant for as long as it is one and runs.
#[derive(Debug)]
pub struct Roles {
    random: Random,
    follower: Option<String>,
}

impl Roles {
    /// `seed`: which follower it will be.
    pub fn new(seed: u64) -> Roles {
        Roles { random: Random::new(seed), follower: None }
    }

    /// The node that has this role at this moment, of all nodes but those that another fault has `stilled`: one that it is just
    /// starting again runs, too.
    ///
    /// # Errors
    /// [`ClusterError::NoLeader`] when nobody leads, or the one that still counts as the leader does not run; another when nobody
    /// follows.
    pub fn draw(
        &mut self,
        role: Role,
        nodes: &[String],
        stilled: &[String],
        capabilities: &Capabilities,
    ) -> Result<String, LabError> {
        let runs = |node: &str| {
            let up = || capabilities.nodes.state(node).is_ok_and(|state| state == NodeState::Up);
            !stilled.iter().any(|stilled| stilled == node) && up()
        };
        let leader = capabilities.roles.leader()?;
        if !runs(&leader) {
            // The others have not noticed yet.
            let why = format!("the nodes follow {leader}, which does not run, or is just starting again");
            return Err(ClusterError::NoLeader { why }.into());
        }
        if role == Role::Leader {
            return Ok(leader);
        }
        let follows = |node: &&String| **node != leader && runs(node);
        if let Some(kept) = self.follower.as_ref().filter(follows) {
            return Ok(kept.clone());
        }
        let followers: Vec<&String> = nodes.iter().filter(follows).collect();
        let drawn = followers.get(self.random.below((followers.len() as u64).max(1)) as usize);
        let drawn = drawn.ok_or_else(|| LabError::Trial(format!("{leader} leads, and no other node runs for good")))?;
        self.follower = Some((*drawn).clone());
        Ok((*drawn).clone())
    }
}

/// The same fault on each node.
#[derive(Debug, Clone)]
pub struct RoleFault {
    role: Role,
    on: Vec<(String, Arc<dyn Fault>)>,
    /// What it does, with the role in the place of a node's name.
    text: String,
}

/// Where an entry may name a role, by its key; none where it has nothing of the kind.
fn targets(entry: &mut FaultEntry) -> [(&'static str, Option<&mut Names>); 14] {
    [
        ("slow.host", entry.slow.as_mut().map(|fault| &mut fault.host)),
        ("flaky.host", entry.flaky.as_mut().map(|fault| &mut fault.host)),
        ("duplicate.host", entry.duplicate.as_mut().map(|fault| &mut fault.host)),
        ("corrupt.host", entry.corrupt.as_mut().map(|fault| &mut fault.host)),
        ("reorder.host", entry.reorder.as_mut().map(|fault| &mut fault.host)),
        ("rate.host", entry.rate.as_mut().map(|fault| &mut fault.host)),
        ("mtu.host", entry.mtu.as_mut().map(|fault| &mut fault.host)),
        ("partition.isolate", entry.partition.as_mut().and_then(|fault| fault.isolate.as_mut())),
        ("pause.host", entry.pause.as_mut().map(|fault| &mut fault.host)),
        ("kill.host", entry.kill.as_mut().map(|fault| &mut fault.host)),
        ("stop.host", entry.stop.as_mut().map(|fault| &mut fault.host)),
        ("cpu.host", entry.cpu.as_mut().map(|fault| &mut fault.host)),
        ("disk.host", entry.disk.as_mut().map(|fault| &mut fault.host)),
        ("clock.host", entry.clock.as_mut().map(|fault| &mut fault.host)),
    ]
}

/// The role that an entry names, if it does, and the key at which it does.
fn named(entry: &mut FaultEntry, hosts: &Hosts) -> Result<Option<(&'static str, Role)>, Complaint> {
    for (key, names) in targets(entry) {
        let Some(names) = names else { continue };
        let Some(role) = names.iter().find_map(|name| Role::meant(name, hosts)) else { continue };
        let database = hosts.database();
        if !database.has_leader() {
            return Err(Complaint::at(key, format!("{database} has no {}; write the name of a node", role.word())));
        }
        if names.0.len() > 1 {
            let message = format!(
                "{names} cannot be struck by one fault: whoever has a role is known only when it is injected; write {} \
                 alone, and another fault for the others",
                role.word()
            );
            return Err(Complaint::at(key, message));
        }
        if role == Role::Follower && hosts.nodes().count() < 2 {
            return Err(Complaint::at(key, "a cluster of one node has no follower; write leader, or nodes: 3"));
        }
        return Ok(Some((key, role)));
    }
    Ok(None)
}

/// The fault of an entry that names a role; none if it names none. `make` makes that of an entry that does not.
pub(super) fn fault(
    entry: &FaultEntry,
    hosts: &Hosts,
    make: impl Fn(&FaultEntry) -> Result<Box<dyn Fault>, Complaint>,
) -> Result<Option<RoleFault>, Complaint> {
    let mut entry = entry.clone();
    let Some((key, role)) = named(&mut entry, hosts)? else { return Ok(None) };
    let mut on: Vec<(String, Arc<dyn Fault>)> = Vec::new();
    for node in hosts.nodes() {
        for names in targets(&mut entry).into_iter().filter_map(|(_, names)| names) {
            *names = Names(vec![node.name.clone()]);
        }
        on.push((node.name.clone(), Arc::from(make(&entry)?)));
    }
    let Some((node, one)) = on.first() else { return Ok(None) };
    // A partition tells of all others by name.
    let spares_load = entry.partition.as_ref().is_some_and(|partition| partition.load == Some(false));
    let others = if spares_load { "other nodes" } else { "others" };
    let text = match (key, one.text().rsplit_once(": ")) {
        ("partition.isolate", Some((_, told))) => format!("{role} is cut off from all {others}: {told}"),
        _ => called(&one.text(), node, &role.to_string()),
    };
    Ok(Some(RoleFault { role, text, on }))
}

/// A text about a node, as one about whoever has a role.
fn called(text: &str, node: &str, role: &str) -> String {
    let part_of_a_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut told = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(node) {
        let (before, after) = (&rest[..at], &rest[at + node.len()..]);
        let inside = told.chars().chain(before.chars()).next_back().is_some_and(part_of_a_name)
            || after.chars().next().is_some_and(part_of_a_name);
        told.push_str(before);
        told.push_str(if inside { node } else { role });
        rest = after;
    }
    told.push_str(rest);
    told
}

impl RoleFault {
    /// On any of the nodes, for all that is the same on each.
    fn any(&self) -> &dyn Fault {
        self.on[0].1.as_ref()
    }
}

impl Fault for RoleFault {
    fn kind(&self) -> &'static str {
        self.any().kind()
    }

    fn subject(&self) -> String {
        self.role.to_string()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn effect(&self) -> String {
        let told = self.on.first().map(|(node, one)| called(&one.effect(), node, &self.role.to_string()));
        told.unwrap_or_default()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        // Nobody is hit before somebody is drawn.
        let spared = |one: Expectation| Expectation { hit: false, asked: 0.0, burst: None, ..one };
        self.any().expectations(hosts).into_iter().map(spared).collect()
    }

    fn unsettled(&self) -> Delay {
        self.any().unsettled()
    }

    fn injects_within(&self) -> Delay {
        self.any().injects_within()
    }

    fn heals_within(&self) -> Delay {
        self.any().heals_within()
    }

    fn restarts(&self) -> bool {
        self.any().restarts()
    }

    fn is_stall(&self) -> bool {
        self.any().is_stall()
    }

    fn evidence(&self) -> Delay {
        self.any().evidence()
    }

    fn needs(&self) -> Needs {
        // Whoever it will be has to be ready for it.
        self.on.iter().map(|(_, fault)| fault.needs()).fold(Needs::default(), Needs::and)
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let nodes: Vec<String> = self.on.iter().map(|(node, _)| node.clone()).collect();
        let node = Roles::new(0).draw(self.role, &nodes, &[], capabilities)?;
        let fault = self.on_node(&node).ok_or_else(|| LabError::Trial(format!("{node} is none of the nodes")))?;
        fault.inject(capabilities)
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        let mut on: Vec<(String, Arc<dyn Fault>)> = Vec::new();
        for (node, fault) in &self.on {
            on.push((node.clone(), Arc::from(fault.scaled(share)?)));
        }
        let (node, one) = on.first()?;
        let text = called(&one.text(), node, &self.role.to_string());
        Some(Box::new(RoleFault { role: self.role, text, on }))
    }

    fn unjudged(&self) -> Vec<String> {
        self.any().unjudged()
    }

    fn impairment(&self) -> Option<Impairment> {
        self.any().impairment()
    }

    fn role(&self) -> Option<Role> {
        Some(self.role)
    }

    fn on_node(&self, node: &str) -> Option<Arc<dyn Fault>> {
        self.on.iter().find(|(name, _)| name == node).map(|(_, fault)| Arc::clone(fault))
    }
}

#[cfg(test)]
mod tests {
    use brownout_cluster::DatabaseKind;

    use super::*;
    use crate::faults::from_entry;

    fn etcd(nodes: u8) -> Hosts {
        Hosts::new(nodes).running(DatabaseKind::Etcd)
    }

    fn fault(written: &str) -> Box<dyn Fault> {
        from_entry(&serde_json::from_str(written).unwrap(), &etcd(3), 1).unwrap()
    }

    #[test]
    fn a_fault_of_a_role_speaks_of_the_role_and_hits_whoever_has_it() {
        let slow = fault(r#"{"slow":{"host":"leader","delay":"100ms"}}"#);
        assert_eq!(slow.role(), Some(Role::Leader));
        assert_eq!(slow.text(), "everything the leader sends is delayed by 100ms (direction: out)");
        assert_eq!(slow.effect(), "every RTT to and from the leader grows by 100ms; no other changes");
        assert!(slow.expectations(&etcd(3)).iter().all(|one| !one.hit && one.asked == 0.0));
        for node in ["n1", "n2", "n3"] {
            let on = slow.on_node(node).unwrap();
            assert_eq!((on.subject().as_str(), on.links().len()), (node, 3));
            assert!(on.links().iter().all(|(from, _)| from == node));
        }
        assert!(slow.on_node("load").is_none());
        let half = slow.scaled(0.5).unwrap();
        assert!(half.text().contains("the leader") && half.on_node("n2").unwrap().text().contains("50ms"));
        let killed = fault(r#"{"kill":{"host":"leader"}}"#).text();
        assert_eq!(killed, "the leader is killed (SIGKILL), and started again in the end");
        assert_eq!(fault(r#"{"pause":{"host":"follower"}}"#).text(), "a follower is paused (SIGSTOP)");
        let cut = fault(r#"{"partition":{"isolate":"leader"}}"#);
        assert_eq!(cut.text(), "the leader is cut off from all others: packets vanish");
        assert_eq!(cut.on_node("n3").unwrap().links().len(), 6);
        let spared = fault(r#"{"partition":{"isolate":"leader","load":false}}"#);
        assert_eq!(spared.text(), "the leader is cut off from all other nodes: packets vanish");
        assert_eq!(spared.on_node("n3").unwrap().links().len(), 4);
    }

    #[test]
    fn every_node_is_ready_to_be_drawn() {
        let disk = fault(r#"{"disk":{"host":"leader","delay":"20ms"}}"#);
        let mut disks = disk.needs().disks;
        disks.sort();
        assert_eq!(disks, ["n1", "n2", "n3"]);
    }

    #[test]
    fn a_role_that_nobody_can_have_is_refused_with_what_to_write() {
        let refused =
            |written: &str, hosts: &Hosts| from_entry(&serde_json::from_str(written).unwrap(), hosts, 1).unwrap_err();
        let slow = |host: &str| format!(r#"{{"slow":{{"host":{host},"delay":"100ms"}}}}"#);
        for (written, hosts, said) in [
            (slow(r#""leader""#), Hosts::new(3), "Cassandra has no leader; write the name of a node"),
            (slow(r#"["leader","n2"]"#), etcd(3), "write leader alone"),
            (slow(r#""follower""#), etcd(1), "a cluster of one node has no follower"),
        ] {
            let complaint = refused(&written, &hosts);
            assert_eq!(complaint.key, "slow.host");
            assert!(complaint.message.contains(said), "{complaint}");
        }
        let delay = refused(r#"{"slow":{"host":"leader","delay":"1ns"}}"#, &etcd(3));
        assert_eq!(delay.key, "slow.delay");
    }

    #[test]
    fn a_name_is_taken_for_a_node_only_where_it_is_whole() {
        assert_eq!(called("n1 and n11, n1-n1, (n1)", "n1", "x"), "x and n11, n1-n1, (x)");
        assert_eq!(called("", "n1", "x"), "");
    }
}
