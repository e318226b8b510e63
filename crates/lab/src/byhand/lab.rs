//! A running lab by hand, and the names of its hosts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use brownout_base::random::{Random, derive};
use brownout_cluster::{ClusterControl, ClusterError, NodeState};
use brownout_load::WireOptions;
use brownout_network::{Link, Network};

use super::{
    Failure, attached::AttachedHosts, chaos::Chaos, events::Events, failed_hosts::FailedHosts, ledger::Ledger,
    protocol::Who, timer::Timer,
};
use crate::{
    containers::Attached,
    controls::Controls,
    experiment::{Names, one_of},
    faults::Capabilities,
    host_failures,
    hosts::Hosts,
    plan::Layout,
    testbed::Testbed,
};

/// A running lab.
pub(super) struct Lab {
    pub(super) name: String,
    pub(super) system: String,
    pub(super) started_unix_ms: u64,
    pub(super) seed: u64,
    pub(super) layout: Layout,
    pub(super) testbed: TestbedRef,
    pub(super) control: ClusterControl,
    /// The logs' directory as the lab sees it, and as the machine does.
    pub(super) logs: (PathBuf, PathBuf),
    /// What makes programs see a host's clock.
    pub(super) object: Option<PathBuf>,
    /// Whether it is known what its nodes run. Of containers it may not be.
    pub(super) has_database: bool,
    /// What is kept of its hosts where they are containers.
    pub(super) attached: Option<AttachedHosts>,
    /// Why its disks cannot be slow.
    pub(super) no_disk: Option<String>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) events: Events,
    pub(super) timer: Timer<Arc<Lab>>,
    pub(super) chaos: Mutex<Option<Chaos>>,
    /// Hosts without a network.
    pub(super) failed: FailedHosts,
    /// How often something was drawn.
    pub(super) drawn: AtomicU64,
    /// The processes that were seen listening, by node.
    pub(super) listening: Mutex<BTreeMap<String, u32>>,
    /// Of the programs that were started for clients.
    pub(super) sessions: Mutex<BTreeSet<u32>>,
}

/// What of its [`Testbed`] can be used from all threads at once.
#[derive(Clone, Copy)]
pub(super) struct TestbedRef {
    pub(super) network: &'static Network,
    pub(super) controls: &'static Controls,
    pub(super) capabilities: &'static Capabilities,
    pub(super) wire: &'static WireOptions,
    /// Who looks after containers; none: its hosts are its own.
    pub(super) attached: Option<&'static Attached>,
}

impl TestbedRef {
    /// Never dropped: the lab ends with its first process, and then all of it at once.
    pub(super) fn of(testbed: Testbed) -> TestbedRef {
        let testbed: &'static Testbed = Box::leak(Box::new(testbed));
        let Testbed { network, controls, capabilities, wire, attached, .. } = testbed;
        TestbedRef { network, controls, capabilities, wire, attached: attached.as_ref() }
    }
}

impl Lab {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // What is half done in it heals with the guard that a panic has dropped.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_node(&self, name: &str) -> bool {
        name != Hosts::LOAD && self.layout.hosts.find(name).is_some()
    }

    /// Whether anybody knows its processes: of a container that was named by its network namespace nobody does.
    pub(super) fn knows_processes(&self, node: &str) -> bool {
        !self.is_attached() || self.control.has_hands(node)
    }

    /// What the kernel shows of a node's processes; where nobody knows them, its network is there, and that is all of it.
    pub(super) fn node_state(&self, node: &str) -> Result<NodeState, ClusterError> {
        if self.knows_processes(node) { self.control.state(node) } else { Ok(NodeState::Up) }
    }

    pub(super) fn has_listened(&self, name: &str, pid: u32) -> bool {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).get(name) == Some(&pid)
    }

    pub(super) fn note_listening(&self, name: &str, pid: u32) {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), pid);
    }

    /// Notices hosts whose network interface failed.
    pub(super) fn note_failed_hosts(&self) {
        match &self.attached {
            Some(hosts) => hosts.note_gone(host_failures::gone(self.testbed.network), &self.events),
            None => self.failed.note(host_failures::take(self.testbed.network), &self.events),
        }
    }

    /// The next number that is drawn for a command.
    pub(super) fn draw(&self) -> u64 {
        derive(self.seed, self.drawn.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The name of a host, which has to be one.
    pub(super) fn host(&self, name: &str) -> Result<String, Failure> {
        let hosts = &self.layout.hosts;
        match hosts.find(name) {
            Some(host) => Ok(host.name.clone()),
            None => {
                let names = one_of("the hosts are", hosts.iter().map(|host| host.name.as_str()), name);
                Err(Failure::wrong(format!("unknown host '{name}'; {names}")))
            }
        }
    }

    /// The name of a node, which has to be one.
    pub(super) fn node(&self, name: &str) -> Result<String, Failure> {
        let name = self.host(name)?;
        if self.is_node(&name) {
            return Ok(name);
        }
        let nodes: Vec<&str> = self.layout.hosts.nodes().map(|node| node.name.as_str()).collect();
        Err(Failure::wrong(format!("{name} runs no database; the nodes are {}", nodes.join(", "))))
    }

    /// The hosts that are meant, by name or by site: all are all nodes.
    pub(super) fn hosts(&self, who: &Who) -> Result<Vec<String>, Failure> {
        self.of(who, |name| meant(&self.layout.hosts, name))
    }

    /// The nodes that are meant: the host of the load is none, and a site means its nodes.
    pub(super) fn nodes(&self, who: &Who) -> Result<Vec<String>, Failure> {
        let hosts = &self.layout.hosts;
        self.of(who, |name| match hosts.find(name) {
            Some(_) => Ok(vec![self.node(name)?]),
            None => nodes_of_site(hosts, name),
        })
    }

    fn of(&self, who: &Who, named: impl Fn(&str) -> Result<Vec<String>, Failure>) -> Result<Vec<String>, Failure> {
        let nodes: Vec<String> = self.layout.hosts.nodes().map(|node| node.name.clone()).collect();
        match (who.names.is_empty(), who.all, who.random) {
            (false, false, false) => {
                let mut all: Vec<String> = Vec::new();
                for name in &who.names {
                    let more = match self.in_role(name)? {
                        Some(node) => vec![node],
                        None => named(name)?,
                    };
                    all.extend(more.into_iter().filter(|host| !all.contains(host)).collect::<Vec<_>>());
                }
                Ok(all)
            }
            (true, true, false) => Ok(nodes),
            (true, false, true) => {
                let mut random = Random::new(self.draw());
                let drawn = random.below(nodes.len() as u64) as usize;
                Ok(nodes.into_iter().skip(drawn).take(1).collect())
            }
            (true, false, false) => {
                Err(Failure::wrong("which hosts? Name them, or write --all, or --random for one of the nodes"))
            }
            _ => Err(Failure::wrong("names, --all and --random cannot be combined; give one of them")),
        }
    }

    /// The links between these hosts, for words.
    pub(super) fn links_between(&self, from: &str, to: &str) -> Option<(Link, Link)> {
        let controls = self.testbed.controls;
        Some((controls.link(from, to)?, controls.link(to, from)?))
    }
}

/// The hosts that a name means: one, or all of a site.
fn meant(hosts: &Hosts, name: &str) -> Result<Vec<String>, Failure> {
    hosts.meant("", &Names(vec![name.to_owned()])).map_err(|complaint| {
        let unit = if name.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '.') {
            " (a magnitude is a number with its unit: 100ms, 10%, 10mbit)"
        } else {
            ""
        };
        Failure::wrong(format!("{}{unit}", complaint.message))
    })
}

/// The nodes of a site: the load may stand in it, too.
fn nodes_of_site(hosts: &Hosts, name: &str) -> Result<Vec<String>, Failure> {
    let mut nodes = meant(hosts, name)?;
    nodes.retain(|host| host != Hosts::LOAD);
    if nodes.is_empty() {
        return Err(Failure::wrong(format!("no host of {name} runs a database")));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_its_hosts_and_for_faults_of_nodes_its_nodes() {
        let sites = r#"{"a":{"hosts":["n1","n2","load"]},"b":{"hosts":"n3"}}"#;
        let hosts = Hosts::new(3).in_sites(&serde_json::from_str(sites).unwrap()).unwrap();
        assert_eq!(meant(&hosts, "a").unwrap(), ["n1", "n2", "load"]);
        assert_eq!(meant(&hosts, "n2").unwrap(), ["n2"]);
        assert_eq!(nodes_of_site(&hosts, "a").unwrap(), ["n1", "n2"]);
        assert!(meant(&hosts, "80").is_err_and(|failure| failure.message.contains("a number with its unit")));
        let bare = meant(&Hosts::new(3), "n22").unwrap_err();
        assert_eq!(bare.message, "unknown host 'n22'; the hosts are n1, n2, n3, load; did you mean 'n2'?");
        let load = r#"{"a":{"hosts":["n1","n2","n3"]},"b":{"hosts":"load"}}"#;
        let load = Hosts::new(3).in_sites(&serde_json::from_str(load).unwrap()).unwrap();
        assert!(nodes_of_site(&load, "b").is_err());
    }
}
