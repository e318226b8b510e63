//! Whether the database encrypts what it was told to, by two that know nothing of each other: the emulator, which looks
//! for a marker in all that it carries while the load's own client writes it; and the nodes, whose logs name each of
//! their connections.
//!
//! It is done once in every trial whose file has `cluster.encryption`, before the load begins: looking takes the
//! emulator time. What it shows goes into the record, and [`brownout_analysis`] judges it. With everything off, the
//! same look has to see the marker on every link: so it is known to be able to.

use std::collections::BTreeMap;

use brownout_base::{clock::monotonic_ns, random::scramble};
use brownout_cluster::{
    Encryption, Site,
    cassandra::{Logged, LoggedPeer, logged_connections},
};
use brownout_load::{
    LoadError,
    control::{self, Limit, Marker},
};
use brownout_record::{EvidenceRow, Recorder};

use crate::{
    LabError,
    hosts::{HostPlan, Hosts},
    plan::{Plan, encryption},
    testbed::Testbed,
};

/// The data centre that nodes are in where Cassandra knows of none (`SimpleSnitch`).
const ONLY_CENTRE: &str = "datacenter1";

/// One trial, whose cluster is ready.
pub(crate) struct ClearText<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) testbed: &'a Testbed,
    pub(crate) trial: u32,
    pub(crate) seed: u64,
}

impl ClearText<'_> {
    /// Looks, and records what there was to see; nothing, where the file asks for no such thing or the network is not
    /// ours.
    pub(crate) fn look(&self, recorder: &mut Recorder, limit: Limit<'_>) -> Result<(), LabError> {
        let layout = &self.plan.layout;
        if layout.cluster.encryption.is_none() || layout.is_external() {
            return Ok(());
        }
        let mut rows = self.look_at_links(limit)?;
        rows.extend(self.read_logs()?);
        let at_ns = recorder.at(monotonic_ns());
        let rows: Vec<EvidenceRow> = rows.into_iter().map(|row| EvidenceRow { at_ns, ..row }).collect();
        Ok(recorder.batch(|recorder| rows.iter().try_for_each(|row| recorder.evidence(self.trial, row)))?)
    }

    fn look_at_links(&self, limit: Limit<'_>) -> Result<Vec<EvidenceRow>, LabError> {
        let Plan { layout, .. } = self.plan;
        let encryption = encryption(layout.cluster.encryption.as_ref());
        let marker = Marker { text: text(self.seed), replication: replication(&layout.hosts) };
        let testbed = self.testbed;
        let look = testbed.network.control().look_for(marker.text.as_bytes())?;
        let coordinators = testbed.coordinators(layout.hosts.nodes())?;
        let start = testbed.enters_load(None);
        let written = control::write_marker(&testbed.wire, &coordinators, &start, &marker, limit);
        let written = written.map_err(|error| match error {
            LoadError::Interrupted { .. } => LabError::Interrupted,
            error => error.into(),
        })?;
        let mut rows = vec![row(Hosts::LOAD, "load", "", "marker-writes", f64::from(written))];
        for (link, sightings) in look.sightings()? {
            let host = |id| testbed.network.name(id).and_then(|name| layout.hosts.find(name));
            let (Some(from), Some(to)) = (host(link.from), host(link.to)) else { continue };
            let name = match is_encrypted(encryption, from, to) {
                true => "marker-on-encrypted-link",
                false => "marker-on-open-link",
            };
            rows.push(row(&from.name, "emulator", &to.name, name, sightings as f64));
        }
        Ok(rows)
    }

    fn read_logs(&self) -> Result<Vec<EvidenceRow>, LabError> {
        let hosts = &self.plan.layout.hosts;
        let mut rows = Vec::new();
        for node in hosts.nodes() {
            let path = self.testbed.controls.nodes.log_path(&node.name)?;
            let logged = logged_connections(&path).map_err(|source| LabError::Directory {
                doing: "read",
                path: path.clone(),
                source,
            })?;
            for Logged { peer, encrypted } in logged {
                let subject = match peer {
                    // Whoever it is, it is no node of this cluster.
                    LoggedPeer::Node(address) => match hosts.nodes().find(|other| other.service == address) {
                        Some(other) if other.name == node.name => continue,
                        Some(other) => other.name.clone(),
                        None => continue,
                    },
                    LoggedPeer::Nodes => "nodes".to_owned(),
                    LoggedPeer::Clients => "clients".to_owned(),
                };
                let name = if encrypted { "encrypted-connection" } else { "unencrypted-connection" };
                rows.push(row(&node.name, "system-log", &subject, name, 1.0));
            }
        }
        Ok(rows)
    }
}

fn row(node: &str, source: &str, subject: &str, name: &str, value: f64) -> EvidenceRow {
    EvidenceRow {
        at_ns: 0,
        error_ns: 0,
        node: node.to_owned(),
        source: source.to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    }
}

/// Of each trial another, so that no copy of an earlier one is taken for it; nothing in it compresses.
fn text(seed: u64) -> String {
    format!("{:016x}{:016x}", scramble(seed), scramble(seed ^ u64::MAX))
}

/// A replica on every node.
fn replication(hosts: &Hosts) -> BTreeMap<String, u32> {
    let mut copies = BTreeMap::new();
    for node in hosts.nodes() {
        let centre = node.location.as_ref().map_or(ONLY_CENTRE, |location| location.site.as_str());
        *copies.entry(centre.to_owned()).or_insert(0) += 1;
    }
    copies
}

/// Whether what one host sends to another is to be encrypted.
fn is_encrypted(encryption: Encryption, from: &HostPlan, to: &HostPlan) -> bool {
    if from.name == Hosts::LOAD || to.name == Hosts::LOAD {
        return encryption.clients;
    }
    let site = |host: &HostPlan| {
        let location = host.location.as_ref()?;
        Some(Site { dc: location.site.clone(), rack: location.rack.clone() })
    };
    encryption.is_between(site(from).as_ref(), site(to).as_ref())
}

#[cfg(test)]
mod tests {
    use brownout_cluster::Internode;

    use super::*;

    #[test]
    fn each_trial_has_a_marker_of_its_own_in_plain_letters() {
        let (one, other) = (text(1), text(2));
        assert_eq!(one.len(), 32);
        assert!(one.chars().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(one, other);
        assert_ne!(one[..16], one[16..]);
    }

    #[test]
    fn every_node_holds_a_replica_and_links_are_encrypted_as_their_ends_say() {
        let hosts = Hosts::new(3);
        assert_eq!(replication(&hosts), BTreeMap::from([("datacenter1".to_owned(), 3)]));
        let host = |name: &str| hosts.find(name).unwrap();
        let of = |internode, clients| {
            let encryption = Encryption { internode, clients, optional: false };
            let pairs = [("load", "n1"), ("n1", "load"), ("n1", "n2")];
            pairs.map(|(from, to)| is_encrypted(encryption, host(from), host(to)))
        };
        assert_eq!(of(Internode::All, false), [false, false, true]);
        assert_eq!(of(Internode::None, true), [true, true, false]);
        assert_eq!(of(Internode::Dc, true), [true, true, false], "no data centre lies between");
    }
}
