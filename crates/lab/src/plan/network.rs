//! The network of an experiment: sites and distances, checked.

use std::collections::BTreeMap;

use brownout_cluster::DatabaseKind;
use brownout_network::{Impairment, overlay::Overlay};
use brownout_units::{Count, Share};

use super::{check::Check, profiles::ONLY_DATA_CENTRE, to_u16, to_u32};
use crate::{
    experiment::{Complaint, FileError, Topology, one_of},
    faults::Fault,
    hosts::Hosts,
};

/// What this kernel has (tcp(7)).
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What lies between hosts all the time.
#[derive(Debug, Clone)]
pub struct Distance {
    /// From → to, in words: "us-east → eu-west".
    pub words: String,
    /// The ordered pairs of hosts.
    pub pairs: Vec<(String, String)>,
    /// On each of them.
    pub impairment: Impairment,
}

impl Check<'_> {
    /// The hosts in their sites, and what lies between them.
    pub(super) fn network(&self, nodes: u8) -> Result<(Hosts, Vec<Distance>), FileError> {
        let section = &self.experiment.network;
        let hosts = self.overlay(Hosts::new(nodes))?;
        for name in section.congestion_control_of.keys() {
            if hosts.find(name).is_none() {
                let names = one_of("the hosts are", hosts.iter().map(|host| host.name.as_str()), name);
                let key = format!("network.congestion-control-of.{name}");
                return self.complain(&key, format!("unknown host '{name}'; {names}"));
            }
        }
        self.congestion_controls()?;
        let (sites, links) = match section.topology {
            Some(_) if !section.sites.is_empty() || !section.links.is_empty() => {
                let message = "a ready-made topology has its own sites and links; leave it out, or them".to_owned();
                return self.complain("network.topology", message);
            }
            Some(topology) => {
                let nodes: Vec<String> = hosts.nodes().map(|node| node.name.clone()).collect();
                topology.expand(&nodes, Hosts::LOAD)
            }
            None => (section.sites.clone(), section.links.clone()),
        };
        if section.topology == Some(Topology::Wan) && nodes < 3 {
            let message = format!("wan has three sites, and there are {nodes} nodes; write cluster: {{ nodes: 3 }}");
            return self.complain("network.topology", message);
        }
        let hosts = hosts.in_sites(&sites).or_else(|complaint| self.complain_in("network", complaint))?;
        let mut distances = Vec::new();
        for (index, link) in links.iter().enumerate() {
            let at = format!("network.links.{index}");
            let pairs = hosts.links(link).or_else(|complaint| self.complain_in(&at, complaint))?;
            let impairment = link.impairment().or_else(|complaint| self.complain_in(&at, complaint))?;
            if impairment == Impairment::NONE {
                let message =
                    "no distance is given for these links; write delay: 40ms, loss: 0.1%, rate: 100mbit, …".to_owned();
                return self.complain(&at, message);
            }
            if impairment.loss.mean() == Share::ALL {
                let message = "all that is sent here is lost: that is a partition, a fault, not a distance".to_owned();
                return self.complain(&format!("{at}.loss"), message);
            }
            let message = |message| self.complain(&format!("{at}.mtu"), message);
            mtu_within(impairment.mtu, section.mtu).or_else(message)?;
            let arrow = if link.both { "↔" } else { "→" };
            let words = match (link.from == link.to, hosts.site_of(&link.from)) {
                (true, Some(site)) => format!("within {site}"),
                (true, None) => format!("among {}", link.from),
                _ => format!("{} {arrow} {}", link.from, link.to),
            };
            distances.push(Distance { words, pairs, impairment });
        }
        Ok((hosts, distances))
    }

    /// The hosts, with what carries their packets.
    fn overlay(&self, hosts: Hosts) -> Result<Hosts, FileError> {
        let section = &self.experiment.network;
        let Some(overlay) = section.overlay.kind() else { return Ok(hosts) };
        let all = hosts.iter().count();
        overlay.check(to_u16(section.mtu.0), all).or_else(|message| self.complain("network.mtu", message))?;
        Ok(hosts.over(Some(overlay)))
    }

    /// Those that this kernel has: a lab loads no modules.
    fn congestion_controls(&self) -> Result<(), FileError> {
        let section = &self.experiment.network;
        let of_hosts = section.congestion_control_of.iter();
        let asked = of_hosts.map(|(host, name)| (format!("network.congestion-control-of.{host}"), name));
        let asked = asked.chain([("network.congestion-control".to_owned(), &section.congestion_control)]);
        let Ok(available) = std::fs::read_to_string(CONGESTION_CONTROLS) else { return Ok(()) };
        let available: Vec<&str> = available.split_whitespace().collect();
        for (key, name) in asked {
            if !available.contains(&name.as_str()) {
                let names = one_of("it has", available.iter().copied(), name);
                return self.complain(&key, format!("this kernel has no congestion control '{name}'; {names}"));
            }
        }
        Ok(())
    }

    /// Copies of each row by site: `load.replication` in each of them.
    pub(super) fn copies(&self, hosts: &Hosts) -> Result<BTreeMap<String, u32>, FileError> {
        let asked = &self.experiment.load.replication_of;
        let sites = hosts.sites();
        if let Some(name) = asked.keys().find(|name| !sites.contains_key(name.as_str())) {
            let message = match sites.len() {
                0 => "there are no sites; write load: { replication: 3 }, or network: { sites: … }".to_owned(),
                _ => format!("unknown site '{name}'; {}", one_of("the sites are", sites.keys().copied(), name)),
            };
            return self.complain(&format!("load.replication-of.{name}"), message);
        }
        let mut copies = BTreeMap::new();
        for (site, nodes) in sites.iter().filter(|(_, nodes)| !nodes.is_empty()) {
            let (key, count) = match asked.get(*site) {
                Some(count) => (format!("load.replication-of.{site}"), count.0),
                None => ("load.replication".to_owned(), self.experiment.load.replication()),
            };
            if count > nodes.len() as u64 {
                let message = format!(
                    "with sites, this is the number of copies in each, and {site} has {} nodes; write a smaller one, or \
                     replication-of: {{ {site}: {} }}",
                    nodes.len(),
                    nodes.len()
                );
                return self.complain(&key, message);
            }
            if count > 0 {
                copies.insert((*site).to_owned(), to_u32(count));
            }
        }
        if !sites.is_empty() && copies.is_empty() {
            return self.complain("load.replication-of", "no site has a copy; write at least one".to_owned());
        }
        // Its schema cannot say "so many in each data centre" (CASSANDRA-14303 came with 4.0): there is one, and it has a name.
        if sites.is_empty() && self.has_old_schema()? {
            copies.insert(ONLY_DATA_CENTRE.to_owned(), to_u32(self.experiment.load.replication()));
        }
        Ok(copies)
    }

    /// Whether the cluster is of Cassandra 3.11, all of whose nodes are then.
    fn has_old_schema(&self) -> Result<bool, FileError> {
        match self.experiment.cluster.kind() {
            DatabaseKind::Cassandra => Ok(self.cassandra()?.starts_with("3.11")),
            DatabaseKind::Etcd => Ok(false),
        }
    }
}

/// What an overlay means for what happens below it, one line each.
pub(super) fn overlay_words(overlay: Overlay, mtu: u16) -> Vec<String> {
    let inside = overlay.mtu(mtu);
    let envelope = overlay.encapsulated(0);
    let size = match overlay {
        Overlay::Openvpn => format!(
            "packets inside are up to {inside} bytes, {envelope} more below (TCP is told to send less, others are \
             fragmented)"
        ),
        _ => format!("packets inside are up to {inside} bytes, {envelope} more below"),
    };
    let share = f64::from(inside) / f64::from(overlay.encapsulated(inside.into())) * 100.0;
    let copies = if overlay.passes_copies() { "duplicated ones arrive twice" } else { "duplicated ones arrive once" };
    let route = match overlay.has_hub() {
        true => "what hosts send each other goes through n1: a fault on its links is in the way of all others, twice",
        false => "each pair of hosts takes the link between them",
    };
    vec![
        route.to_owned(),
        format!("{size}; of a limit of rate full packets keep {share:.0} %; what exceeds an mtu is fragmented"),
        format!(
            "what is lost below is lost inside, where TCP sends it again; damaged packets are lost there, {copies}"
        ),
    ]
}

/// Refuses a fault that limits the size of packets to more than the network's own.
pub(crate) fn limits_packets(fault: &dyn Fault, most: Count) -> Result<(), Complaint> {
    let limit = fault.impairment().and_then(|impairment| impairment.mtu);
    let key = if fault.kind() == "link" { "link.mtu" } else { "mtu.bytes" };
    mtu_within(limit, most).map_err(|message| Complaint::at(key, message))
}

/// A limit that no packet reaches is none.
fn mtu_within(limit: Option<u16>, most: Count) -> Result<(), String> {
    match limit.filter(|limit| u64::from(*limit) >= most.0) {
        Some(limit) => {
            Err(format!("there are no packets of more than {limit} bytes: network.mtu is {most}; write less"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::from_entry;

    #[test]
    fn what_an_overlay_means_is_said_with_its_figures() {
        let words = |overlay| overlay_words(overlay, 1500).join("\n");
        assert!(words(Overlay::Wireguard).contains("up to 1420 bytes, 60 more below"));
        assert!(words(Overlay::Vxlan).contains("arrive twice") && words(Overlay::Vxlan).contains("keep 97 %"));
        assert!(words(Overlay::Openvpn).contains("through n1") && words(Overlay::Openvpn).contains("fragmented"));
    }

    #[test]
    fn a_limit_that_no_packet_reaches_is_refused_for_hosts_and_for_links() {
        let refused = |written: &str, most: u64| {
            let fault = from_entry(&serde_json::from_str(written).unwrap(), &Hosts::new(3), 1).unwrap();
            limits_packets(fault.as_ref(), Count(most)).err().map(|complaint| complaint.key.into_owned())
        };
        let of_host = r#"{"mtu":{"host":"n2","bytes":"1500"}}"#;
        let of_link = r#"{"link":{"from":"n1","to":"n2","delay":"50ms","mtu":"1500"}}"#;
        assert_eq!(refused(of_host, 1500).as_deref(), Some("mtu.bytes"));
        assert_eq!(refused(of_link, 1500).as_deref(), Some("link.mtu"));
        assert!([of_host, of_link].iter().all(|written| refused(written, 9000).is_none()));
        assert_eq!(refused(r#"{"slow":{"host":"n2","delay":"50ms"}}"#, 1500), None);
    }
}
