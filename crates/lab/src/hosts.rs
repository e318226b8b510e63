//! The hosts of a lab: their names, addresses and sites.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::Ipv4Addr,
    sync::Arc,
};

use brownout_analysis::Routes;
use brownout_cluster::DatabaseKind;
use brownout_network::overlay::{Overlay, service_address};
use brownout_record::Expectation;

use crate::{
    experiment::{Complaint, LinkEntry, Names, SiteSection, one_of},
    watched,
};

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// `n1`, `n2`, … or `load`; of a container its own: `cassandra-1`.
    pub name: String,
    /// Inside the lab, on the emulated network; of a container its own.
    pub address: Ipv4Addr,
    /// On the overlay, if there is one; else the same.
    pub service: Ipv4Addr,
    /// Where it stands; none if there are no sites.
    pub location: Option<Location>,
    /// The machine that it is on; none if there is but one.
    pub machine: Option<String>,
}

impl HostPlan {
    /// Whether a name means it: its own, that of its site, or that of its machine.
    fn is_meant(&self, name: &str) -> bool {
        let is = |place: Option<&String>| place.is_some_and(|place| place == name);
        self.name == name || is(self.location.as_ref().map(|location| &location.site)) || is(self.machine.as_ref())
    }

    /// Where databases, loads and heartbeats reach it: through the overlay, if there is one.
    pub fn service(&self) -> Ipv4Addr {
        self.service
    }
}

/// Where a host stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The site.
    pub site: String,
    /// The rack in it.
    pub rack: String,
}

/// All hosts of a lab: the nodes in order, then the host of the load. What they are connected by, and what they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    all: Vec<HostPlan>,
    overlay: Option<Overlay>,
    database: DatabaseKind,
    /// Whether the nodes have names of their own, so that n1, n2, … are other names for them.
    are_named: bool,
    /// The pairs that are measured, by places; none: all.
    watched: Option<Arc<Vec<(usize, usize)>>>,
}

/// The rack of hosts of which none is said.
const RACK: &str = "rack1";

impl Hosts {
    /// The host that the load runs on.
    pub const LOAD: &str = "load";

    /// `nodes` nodes, which run Cassandra, and the host of the load, without an overlay.
    pub fn new(nodes: u8) -> Self {
        let host = |name: String, last| HostPlan {
            name,
            address: address(last),
            service: address(last),
            location: None,
            machine: None,
        };
        let nodes = (1..=nodes).map(|index| host(format!("n{index}"), index));
        let all = nodes.chain([host(Self::LOAD.to_owned(), 250)]).collect();
        Hosts { all, overlay: None, database: DatabaseKind::Cassandra, are_named: false, watched: None }
    }

    /// Nodes that were there before, by their names and addresses, and the host of the load, which is this machine as they know it.
    /// The nodes are called n1, n2, … as well, in this order.
    pub fn named(nodes: impl IntoIterator<Item = (String, Ipv4Addr)>, machine: Ipv4Addr) -> Self {
        let host = |(name, address)| HostPlan { name, address, service: address, location: None, machine: None };
        let all = nodes.into_iter().chain([(Self::LOAD.to_owned(), machine)]).map(host).collect();
        Hosts { all, overlay: None, database: DatabaseKind::Cassandra, are_named: true, watched: None }
    }

    /// The same hosts, each on its machine, if that is said of it.
    pub fn on_machines(mut self, machine_of: impl Fn(&str) -> Option<String>) -> Self {
        for host in &mut self.all {
            host.machine = machine_of(&host.name);
        }
        self
    }

    /// The same hosts, whose nodes run this.
    pub fn running(self, database: DatabaseKind) -> Self {
        Hosts { database, ..self }
    }

    /// What its nodes run.
    pub fn database(&self) -> DatabaseKind {
        self.database
    }

    /// The same hosts, which reach each other through an overlay.
    pub fn over(mut self, overlay: Option<Overlay>) -> Self {
        for host in &mut self.all {
            host.service = if overlay.is_some() { service_address(host.address) } else { host.address };
        }
        Hosts { overlay, ..self }
    }

    /// What carries the packets of databases and loads; none: nothing but the emulated network.
    pub fn overlay(&self) -> Option<Overlay> {
        self.overlay
    }

    /// Which links below the ways through the overlay take.
    pub fn routes(&self) -> Routes {
        let word = self.overlay.map_or("", Overlay::word);
        let names: Vec<String> = self.all.iter().map(|host| host.name.clone()).collect();
        Routes::new(word, &names)
    }

    /// What a fault must show below, and what that means above: its expectations on both layers.
    pub fn with_overlay(&self, mut expectations: Vec<Expectation>) -> Vec<Expectation> {
        let above = self.routes().above(&expectations);
        expectations.extend(above);
        expectations
    }

    /// The same hosts in sites. Every host has to stand in one, once; that of the load stands in the first if it is in none.
    pub fn in_sites(mut self, sites: &BTreeMap<String, SiteSection>) -> Result<Self, Complaint> {
        for (name, section) in sites {
            let at = |message| Complaint::at(format!("sites.{name}"), message);
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) || self.find(name).is_some() {
                let message = "use letters, digits, '-' and '_', and not the name of a host";
                return Err(at(format!("'{name}' cannot name a site; {message}")));
            }
            let of_racks =
                section.racks.iter().flat_map(|(rack, names)| names.iter().map(move |name| (rack.as_str(), name)));
            let listed = section.hosts.iter().flat_map(Names::iter).map(|name| (RACK, name));
            let placed: Vec<(String, String)> =
                listed.chain(of_racks).map(|(rack, host)| (rack.to_owned(), host.to_owned())).collect();
            if placed.is_empty() {
                return Err(at("it has no hosts; write hosts: [n1, n2]".to_owned()));
            }
            if let Some(rack) = section.racks.keys().find(|rack| rack.is_empty() || !rack.chars().all(plain)) {
                return Err(at(format!("'{rack}' cannot name a rack; use letters, digits, '-' and '_'")));
            }
            for (rack, host) in placed {
                let names = one_of("the hosts are", self.all.iter().map(|host| host.name.as_str()), &host);
                let Some(found) = self.all.iter_mut().find(|found| found.name == host) else {
                    return Err(at(format!("unknown host '{host}'; {names}")));
                };
                if let Some(location) = &found.location {
                    return Err(at(format!(
                        "{host} is already in site {}; a host can be in one site only",
                        location.site
                    )));
                }
                found.location = Some(Location { site: name.clone(), rack });
            }
        }
        let first = self.all.first().and_then(|host| host.location.clone());
        if !sites.is_empty()
            && let Some(load) = self.all.iter_mut().find(|host| host.name == Self::LOAD && host.location.is_none())
        {
            load.location = first;
        }
        match self.all.iter().find(|host| host.location.is_none()) {
            Some(host) if !sites.is_empty() => Err(Complaint::at(
                "sites",
                format!("{} is in no site; with sites, every node must be in one", host.name),
            )),
            _ => Ok(self),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &HostPlan> + Clone {
        self.all.iter()
    }

    /// The nodes alone.
    pub fn nodes(&self) -> impl Iterator<Item = &HostPlan> + Clone {
        self.all.iter().filter(|host| host.name != Self::LOAD)
    }

    /// By name, or by the other one that a container has.
    pub fn find(&self, name: &str) -> Option<&HostPlan> {
        let name = self.called(name);
        self.all.iter().find(|host| host.name == name)
    }

    /// What a host is called that is named like this: of a container it may be n1, n2, …. All other names are what they are.
    pub fn called<'a>(&'a self, name: &'a str) -> &'a str {
        if !self.are_named || self.all.iter().any(|host| host.is_meant(name)) {
            return name;
        }
        // As it is written there: n01 is no name.
        let number = name.strip_prefix('n').filter(|digits| !digits.starts_with(['0', '+']));
        let index = number.and_then(|digits| digits.parse::<usize>().ok()?.checked_sub(1));
        index.and_then(|index| self.nodes().nth(index)).map_or(name, |host| host.name.as_str())
    }

    /// Every ordered pair, `from → to`.
    pub fn pairs(&self) -> impl Iterator<Item = (&HostPlan, &HostPlan)> {
        self.all
            .iter()
            .flat_map(|from| self.all.iter().filter(move |to| to.name != from.name).map(move |to| (from, to)))
    }

    /// The same hosts, of whom no more pairs are measured than is reasonable: first those that faults hit, which these are.
    pub fn watching<'a>(self, hit: impl Iterator<Item = &'a (String, String)>) -> Hosts {
        let names = self.all.iter().enumerate();
        let places: HashMap<&str, usize> = names.map(|(place, host)| (host.name.as_str(), place)).collect();
        let both = |(from, to): &(String, String)| Some((*places.get(from.as_str())?, *places.get(to.as_str())?));
        let watched = watched::choose(self.all.len(), &hit.filter_map(both).collect()).map(Arc::new);
        Hosts { watched, ..self }
    }

    /// The ordered pairs that are measured, in order.
    pub fn watched_pairs(&self) -> Box<dyn Iterator<Item = (&HostPlan, &HostPlan)> + '_> {
        match &self.watched {
            None => Box::new(self.pairs()),
            Some(chosen) => Box::new(chosen.iter().map(|(from, to)| (&self.all[*from], &self.all[*to]))),
        }
    }

    /// That not all pairs are measured, in words; none: they are.
    pub fn unwatched(&self) -> Option<String> {
        let (chosen, all) = (self.watched.as_ref()?.len(), self.pairs().count());
        Some(format!(
            "of {all} ordered pairs of hosts {chosen} are measured and judged: some from and to each host, those that faults hit first; \
             what happens on the others is put in force and not looked at"
        ))
    }

    /// The sites with their nodes, by name; empty if there are none.
    pub fn sites(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut sites: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for host in &self.all {
            if let Some(location) = &host.location {
                let nodes = sites.entry(&location.site).or_default();
                if host.name != Self::LOAD {
                    nodes.push(&host.name);
                }
            }
        }
        sites
    }

    /// The site that these names are all of, or the name of.
    pub fn site_of(&self, names: &Names) -> Option<&str> {
        let site = |name: &str| {
            let named = |host: &&HostPlan| {
                host.name == name || host.location.as_ref().is_some_and(|location| location.site == name)
            };
            Some(self.all.iter().find(named)?.location.as_ref()?.site.as_str())
        };
        let first = names.iter().next().and_then(site)?;
        names.iter().all(|name| site(name) == Some(first)).then_some(first)
    }

    /// The site of the load.
    pub fn load_site(&self) -> Option<&str> {
        Some(&self.find(Self::LOAD)?.location.as_ref()?.site)
    }

    /// The ordered pairs that an entry means; its names are hosts, sites or machines.
    pub fn links(&self, entry: &LinkEntry) -> Result<Vec<(String, String)>, Complaint> {
        let (from, to) = (self.meant("from", &entry.from)?, self.meant("to", &entry.to)?);
        let mut pairs = Vec::new();
        let mut add = |from: &String, to: &String| {
            let pair = (from.clone(), to.clone());
            if from != to && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        };
        for one in &from {
            for other in &to {
                add(one, other);
                if entry.both {
                    add(other, one);
                }
            }
        }
        if pairs.is_empty() {
            return Err(Complaint::at("to", format!("{} → {} is not a link between two hosts", entry.from, entry.to)));
        }
        Ok(pairs)
    }

    /// The hosts that names mean, each once: a site means all of its hosts, and so does a machine.
    pub fn meant(&self, key: &'static str, names: &Names) -> Result<Vec<String>, Complaint> {
        let mut meant: Vec<String> = Vec::new();
        for name in names.iter().map(|name| self.called(name)) {
            // A host of that name comes before a site or a machine of it.
            let own: Vec<&HostPlan> = self.all.iter().filter(|host| host.name == name).collect();
            let found = match own.is_empty() {
                true => self.all.iter().filter(|host| host.is_meant(name)).collect(),
                false => own,
            };
            if found.is_empty() {
                let sites = self.sites();
                let machines: BTreeSet<&str> = self.all.iter().filter_map(|host| host.machine.as_deref()).collect();
                let intro = match (sites.is_empty(), machines.is_empty()) {
                    (true, true) => "the hosts are",
                    (false, _) => "the hosts and sites are",
                    (true, false) => "the hosts and machines are",
                };
                let known = self.all.iter().map(|host| host.name.as_str()).chain(sites.into_keys()).chain(machines);
                return Err(Complaint::at(key, format!("unknown host '{name}'; {}", one_of(intro, known, name))));
            }
            for host in found {
                if !meant.contains(&host.name) {
                    meant.push(host.name.clone());
                }
            }
        }
        Ok(meant)
    }
}

/// The address of the `index`-th host (from 1) of a lab; the lab's network is its own, so it cannot collide.
const fn address(index: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(text: &str) -> BTreeMap<String, SiteSection> {
        serde_json::from_str(text).unwrap()
    }

    fn link(text: &str) -> LinkEntry {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_host_stands_in_one_site() {
        let hosts = Hosts::new(3).in_sites(&sites(r#"{"a":{"hosts":["n1","n2"]},"b":{"racks":{"r9":"n3"}}}"#)).unwrap();
        assert_eq!(hosts.sites(), BTreeMap::from([("a", vec!["n1", "n2"]), ("b", vec!["n3"])]));
        assert_eq!(hosts.load_site(), Some("a"));
        assert_eq!(hosts.find("n3").unwrap().location.as_ref().unwrap().rack, "r9");
        for (text, words) in [
            (r#"{"a":{"hosts":["n1","n2"]}}"#, "n3 is in no site"),
            (r#"{"a":{"hosts":["n1","n2","n3"]},"b":{"hosts":"n3"}}"#, "already in site a"),
            (r#"{"a":{"hosts":["n1","n2","n4"]}}"#, "did you mean"),
            (r#"{"n1":{"hosts":["n1","n2","n3"]}}"#, "cannot name a site"),
            (r#"{"a":{}}"#, "no hosts"),
        ] {
            let complaint = Hosts::new(3).in_sites(&sites(text)).unwrap_err();
            assert!(complaint.message.contains(words), "{complaint}");
        }
    }

    #[test]
    fn on_an_overlay_hosts_have_an_address_more_and_ways_of_their_own() {
        let plain = Hosts::new(3);
        assert!(plain.iter().all(|host| host.service() == host.address));
        assert_eq!(plain.with_overlay(Vec::new()), []);
        let hosts = plain.over(Some(Overlay::Openvpn));
        let load = hosts.find(Hosts::LOAD).unwrap();
        assert_eq!((load.address, load.service()), ([10, 77, 0, 250].into(), [10, 78, 0, 250].into()));
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(hosts.routes().of("n2", "load"), [pair("n2", "n1"), pair("n1", "load")]);
        assert_eq!(hosts.running(DatabaseKind::Etcd).database(), DatabaseKind::Etcd);
    }

    #[test]
    fn of_few_hosts_all_pairs_are_measured_and_of_many_those_first_that_are_hit() {
        let hosts = |count: u16| {
            let node =
                |number: u16| (format!("p{number}"), Ipv4Addr::new(10, 0, (number / 250) as u8, (number % 250) as u8));
            let hit = [("p3".to_owned(), "p9".to_owned()), ("p3".to_owned(), "nobody".to_owned())];
            Hosts::named((1..=count).map(node), Ipv4Addr::new(10, 0, 9, 9)).watching(hit.iter())
        };
        let few = hosts(50);
        assert_eq!((few.watched_pairs().count(), few.unwatched()), (51 * 50, None));
        let many = hosts(500);
        let watched: Vec<_> = many.watched_pairs().map(|(from, to)| (from.name.as_str(), to.name.as_str())).collect();
        assert!(watched.contains(&("p3", "p9")) && watched.len() <= 51 * 50, "{}", watched.len());
        assert!(
            watched.iter().any(|(from, _)| *from == Hosts::LOAD) && watched.iter().any(|(_, to)| *to == Hosts::LOAD)
        );
        let told = many.unwatched().unwrap();
        assert!(
            told.starts_with(&format!("of 250500 ordered pairs of hosts {} are measured", watched.len())),
            "{told}"
        );
    }

    #[test]
    fn containers_are_hosts_by_their_own_names_and_by_their_numbers() {
        let named = |names: &[&str]| {
            let nodes = (1..).zip(names).map(|(last, name)| ((*name).to_owned(), Ipv4Addr::new(172, 18, 0, last)));
            Hosts::named(nodes.collect::<Vec<_>>(), Ipv4Addr::new(172, 18, 0, 1))
        };
        let hosts = named(&["db-1", "db-2", "n1"]);
        let address = |name: &str| hosts.find(name).map(|host| host.address.octets()[3]);
        assert_eq!((address("db-2"), address("n2"), address("load")), (Some(2), Some(2), Some(1)));
        assert_eq!(address("n1"), Some(3), "its own name comes first");
        assert_eq!([address("n4"), address("n0"), address("n02"), address("n+2")], [None; 4]);
        let meant = |names: &[&str]| hosts.meant("host", &Names(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(meant(&["n2", "db-2", "n3"]).unwrap(), ["db-2", "n1"]);
        let refused = meant(&["db-9"]).unwrap_err().message;
        assert!(refused.contains("unknown host 'db-9'") && refused.contains("db-1"), "{refused}");
        assert_eq!(Hosts::new(3).called("n2"), "n2");
    }

    #[test]
    fn a_machine_means_all_hosts_on_it() {
        let nodes = (1..=3).map(|last| (format!("db-{last}"), Ipv4Addr::new(10, 244, 0, last)));
        let machine = |host: &str| Some(if host == "db-3" { "node2" } else { "node1" }.to_owned());
        let hosts = Hosts::named(nodes, Ipv4Addr::new(10, 0, 0, 1));
        let hosts = hosts.on_machines(|host| machine(host).filter(|_| host != Hosts::LOAD));
        let meant = |name: &str| hosts.meant("host", &Names(vec![name.to_owned()]));
        assert_eq!(meant("node1").unwrap(), ["db-1", "db-2"]);
        assert_eq!(hosts.links(&link(r#"{"from":"node1","to":"node2"}"#)).unwrap().len(), 2);
        assert!(meant("node3").unwrap_err().message.contains("hosts and machines are"));
    }

    #[test]
    fn links_are_between_sites_or_hosts_and_one_way_unless_both() {
        let hosts =
            Hosts::new(3).in_sites(&sites(r#"{"a":{"hosts":["n1","n2"]},"b":{"hosts":["n3","load"]}}"#)).unwrap();
        let count = |text| hosts.links(&link(text)).map(|pairs| pairs.len());
        assert_eq!(count(r#"{"from":"a","to":"b"}"#), Ok(4));
        assert_eq!(count(r#"{"from":"a","to":"b","both":true}"#), Ok(8));
        assert_eq!(count(r#"{"from":"a","to":"a"}"#), Ok(2));
        assert_eq!(count(r#"{"from":"n1","to":["n2","b"]}"#), Ok(3));
        assert!(count(r#"{"from":"n1","to":"n1"}"#).is_err());
        assert!(count(r#"{"from":"n1","to":"c"}"#).is_err());
    }
}
