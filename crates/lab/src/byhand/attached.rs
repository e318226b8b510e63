//! What differs where the hosts of a lab are containers that run already: who can be waited for, who answers for their clocks, and
//! that others may start them again.

use std::{
    collections::BTreeMap,
    io,
    net::UdpSocket,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use brownout_base::Change;
use brownout_clock::{
    HostClock,
    ntp::{PORT as NTP_PORT, Responder},
};
use brownout_cluster::{ClusterError, NodeState};
use brownout_containers::{Runtime, What};
use brownout_network::Network;
use brownout_units::{Delay, Share};

use super::{Failure, events::Events, lab::Lab};
use crate::{
    LabError,
    containers::Seen,
    faults::{
        Fault,
        capabilities::{Applied, Capabilities, ControlNodes},
    },
    host_failures::FailedHost,
    hosts::Hosts,
};

/// As much of an identifier as runtimes show, and take.
const SHORT_ID: usize = 12;
/// Who did what nobody has asked for.
const SEEN_BY: &str = "seen by the lab";

/// What is kept of containers beside their testbed.
pub(super) struct AttachedHosts {
    /// The machine's, which those have that were started without one of their own.
    clock: HostClock,
    /// Those of the others, by name.
    clocks: BTreeMap<String, HostClock>,
    answers: Mutex<Answers>,
    /// Those that were started again and could not be attached, with the reason.
    lost: Mutex<BTreeMap<String, String>>,
    /// Those of which an interface is gone that was attached, with what that means; until they are attached again.
    gone: Mutex<BTreeMap<String, String>>,
}

/// Who answers for the clocks.
#[derive(Default)]
struct Answers {
    _responder: Option<Responder>,
    /// Where nobody does, and why.
    silent: Vec<String>,
}

impl AttachedHosts {
    /// Has every host answer NTP, as those of a lab of its own do: `ping` and `clock` ask them. `clocks`: those that can be wrong,
    /// by name. The machine's clock lies in this directory.
    pub(super) fn new(
        network: &Network,
        clocks: &BTreeMap<String, HostClock>,
        directory: &Path,
    ) -> Result<AttachedHosts, LabError> {
        let hosts = AttachedHosts {
            clock: HostClock::create(directory.join("machine.clock"))?,
            clocks: clocks.clone(),
            answers: Mutex::default(),
            lost: Mutex::default(),
            gone: Mutex::default(),
        };
        hosts.answer(network);
        Ok(hosts)
    }

    /// From within all of them, where they are now. A port that is taken is answered by whoever has it.
    fn answer(&self, network: &Network) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of before have the ports.
        *answers = Answers::default();
        let mut sockets = Vec::new();
        for host in network.hosts() {
            let address = host.address();
            match host.run(move || UdpSocket::bind((address, NTP_PORT))).and_then(|bound| bound) {
                Ok(socket) => {
                    let own = self.clocks.get(host.name()).unwrap_or(&self.clock);
                    sockets.push((socket, own.clone()));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => {
                    let name = host.name();
                    answers.silent.push(format!("{name} does not answer NTP, which `ping` and `clock` ask: {error}"));
                }
            }
        }
        match Responder::start(sockets) {
            Ok(responder) => answers._responder = Some(responder),
            Err(error) => answers.silent.push(format!("no host answers NTP, which `ping` and `clock` ask: {error}")),
        }
    }

    /// Notes interfaces that are gone: an event each, and told by `status` from then on.
    pub(super) fn note_gone(&self, gone: Vec<FailedHost>, events: &Events) {
        for FailedHost { name, at_ns, text } in gone {
            events.note(Change::between(at_ns, at_ns), FailedHost::GONE, &name, &text, SEEN_BY);
            locked(&self.gone).insert(name, text);
        }
    }

    /// A container is attached again: it has other interfaces, and so has this machine towards it.
    fn is_back(&self, host: &str) {
        locked(&self.lost).remove(host);
        for back in [host, Hosts::LOAD] {
            locked(&self.gone).remove(back);
        }
    }

    /// What does not work of it, for `status`.
    pub(super) fn notes(&self) -> Vec<String> {
        let (gone, lost) = (locked(&self.gone).clone(), locked(&self.lost).clone());
        let silent = self.answers.lock().unwrap_or_else(PoisonError::into_inner).silent.clone();
        gone.into_values().chain(lost.into_values()).chain(silent).collect()
    }
}

/// Texts are put there whole, so a panic of another thread has broken nothing.
fn locked(texts: &Mutex<BTreeMap<String, String>>) -> MutexGuard<'_, BTreeMap<String, String>> {
    texts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same capabilities where nobody knows what the nodes run: one that has a process is all that can be waited for.
pub(super) fn unasked(capabilities: &Capabilities) -> Capabilities {
    Capabilities { nodes: Arc::new(Unasked(Arc::clone(&capabilities.nodes))), ..capabilities.clone() }
}

/// Nodes of no database that is known.
struct Unasked(Arc<dyn ControlNodes>);

impl ControlNodes for Unasked {
    fn state(&self, node: &str) -> Result<NodeState, ClusterError> {
        self.0.state(node)
    }

    fn pause(&self, node: &str) -> Result<Change, ClusterError> {
        self.0.pause(node)
    }

    fn unpause(&self, node: &str) -> Result<Change, ClusterError> {
        self.0.unpause(node)
    }

    fn kill(&self, node: &str, signal: i32) -> Result<Change, ClusterError> {
        self.0.kill(node, signal)
    }

    fn stop(&self, node: &str, within: Duration) -> Result<Change, ClusterError> {
        self.0.stop(node, within)
    }

    fn start(&self, node: &str) -> Result<Change, ClusterError> {
        self.0.start(node)
    }

    /// Nobody knows how to ask it.
    fn wait_answers(&self, _: &str, _: Duration) -> Result<(), ClusterError> {
        Ok(())
    }

    fn limit_cpu(&self, node: &str, share: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
        self.0.limit_cpu(node, share)
    }
}

impl Lab {
    /// Notes containers that others have started again. That one has ended, its state tells.
    pub(super) fn note_restarts(&self) {
        let (Some(attached), Some(hosts)) = (self.testbed.attached, &self.attached) else { return };
        for seen in attached.take() {
            let text = match &seen {
                Seen::Ended { .. } => continue,
                Seen::Reattached { host, gap_ns, missed_ns, moved, .. } => {
                    hosts.is_back(host);
                    let moved = moved.as_ref().map(|moved| format!("; {host} {moved}")).unwrap_or_default();
                    format!(
                        "{host} was started again after {} and is in another network; what is in force on its links was not for {}, \
                         and is again{moved}",
                        Delay::from_ns(*gap_ns),
                        Delay::from_ns(*missed_ns)
                    )
                }
                Seen::Lost { host, .. } => {
                    locked(&hosts.lost).insert(host.clone(), seen.to_string());
                    seen.to_string()
                }
                Seen::Unmeasured { .. } => seen.to_string(),
            };
            self.events.note(Change::between(seen.at_ns(), seen.at_ns()), seen.kind(), seen.host(), &text, SEEN_BY);
            if matches!(seen, Seen::Reattached { .. }) {
                hosts.answer(self.testbed.network);
            }
        }
    }

    /// Refuses a fault that cannot be done in this lab, with the reason.
    pub(super) fn refuse_impossible(&self, fault: &dyn Fault) -> Result<(), Failure> {
        if let Some(why) = self.layout.containers.as_ref().and_then(|found| found.refuses(fault, &self.layout.hosts)) {
            return Err(Failure::cannot(why));
        }
        match &self.no_disk {
            Some(reason) if fault.kind() == "disk" => {
                Err(Failure::cannot(format!("this lab has no disks that can be slowed: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to stop or start containers that nobody here can start: one that is stopped for a restart would stay so.
    pub(super) fn refuse_to_start(&self, nodes: &[String]) -> Result<(), Failure> {
        let Some(found) = &self.layout.containers else { return Ok(()) };
        let containers = nodes.iter().filter_map(|node| found.container(node));
        let mut refused = containers.filter_map(|container| Some((&container.name, container.refusal(What::Restart)?)));
        match refused.next() {
            Some((name, why)) => Err(Failure::cannot(format!("{name} cannot be started from here: {why}"))),
            None => Ok(()),
        }
    }

    /// Refuses what only a node that was started here can be asked, with how a container is: by a verb of its runtime's own
    /// program, before its identifier and what comes behind that.
    pub(super) fn refuse_of_containers(&self, node: &str, what: &str, verb: &str, rest: &str) -> Result<(), Failure> {
        let Some(container) = self.layout.containers.as_ref().and_then(|found| found.container(node)) else {
            return Ok(());
        };
        let id = container.id.get(..SHORT_ID).unwrap_or(&container.id);
        let program = match container.runtime {
            Runtime::Docker => "docker",
            Runtime::Podman => "podman",
            Runtime::Containerd => "crictl",
            Runtime::None => return Err(Failure::wrong(format!("{node} was not started here, and {what} is its own"))),
        };
        let asked = format!("{program} {verb} {id} {rest}");
        Err(Failure::wrong(format!("{node} is a container, and {what} is inside of it; write: {}", asked.trim_end())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes that are paused, and refuse all that is asked of them.
    struct Refusing;

    fn refused<T>(node: &str) -> Result<T, ClusterError> {
        Err(ClusterError::NotOurs { node: node.to_owned() })
    }

    impl ControlNodes for Refusing {
        fn state(&self, _: &str) -> Result<NodeState, ClusterError> {
            Ok(NodeState::Paused)
        }

        fn pause(&self, node: &str) -> Result<Change, ClusterError> {
            refused(node)
        }

        fn unpause(&self, node: &str) -> Result<Change, ClusterError> {
            refused(node)
        }

        fn kill(&self, node: &str, _: i32) -> Result<Change, ClusterError> {
            refused(node)
        }

        fn stop(&self, node: &str, _: Duration) -> Result<Change, ClusterError> {
            refused(node)
        }

        fn start(&self, node: &str) -> Result<Change, ClusterError> {
            refused(node)
        }

        fn wait_answers(&self, node: &str, _: Duration) -> Result<(), ClusterError> {
            refused(node)
        }

        fn limit_cpu(&self, node: &str, _: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
            refused(node)
        }
    }

    #[test]
    fn of_a_node_that_nobody_knows_how_to_ask_only_its_answers_are_not_waited_for() {
        let nodes = Unasked(Arc::new(Refusing));
        assert!(nodes.wait_answers("web-1", Duration::from_secs(60)).is_ok());
        assert_eq!(nodes.state("web-1").unwrap(), NodeState::Paused);
        let refused = [nodes.pause("web-1"), nodes.unpause("web-1"), nodes.kill("web-1", 9), nodes.start("web-1")];
        assert!(refused.iter().all(|one| matches!(one, Err(ClusterError::NotOurs { node }) if node == "web-1")));
        assert!(nodes.stop("web-1", Duration::ZERO).is_err() && nodes.limit_cpu("web-1", Share::ALL).is_err());
    }

    #[test]
    fn a_network_without_hosts_has_nobody_who_answers_and_nothing_to_tell() {
        let directory = tempfile::tempdir().unwrap();
        let network = Network::without_hosts().unwrap();
        let hosts = AttachedHosts::new(&network, &BTreeMap::new(), directory.path()).unwrap();
        assert!(hosts.notes().is_empty());
        hosts.lost.lock().unwrap().insert("db-2".to_owned(), "db-2 cannot be attached".to_owned());
        assert_eq!(hosts.notes(), ["db-2 cannot be attached"]);
        let again = AttachedHosts::new(&network, &BTreeMap::new(), directory.path());
        assert!(again.is_err(), "the clock's file is there already");
    }

    #[test]
    fn an_interface_that_is_gone_is_an_event_and_a_note_until_its_container_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = AttachedHosts::new(&Network::without_hosts().unwrap(), &BTreeMap::new(), directory.path()).unwrap();
        let events = Events::default();
        let gone = |name: &str| FailedHost { name: name.to_owned(), at_ns: 7, text: format!("{name} is gone") };
        hosts.note_gone(vec![gone("db-2"), gone(Hosts::LOAD), gone("db-3")], &events);
        let told = events.after(0, Duration::ZERO);
        let kinds: Vec<(&str, &str)> = told.iter().map(|event| (event.kind.as_str(), event.subject.as_str())).collect();
        assert_eq!(kinds, [("exit-gone", "db-2"), ("exit-gone", "load"), ("exit-gone", "db-3")]);
        assert_eq!(hosts.notes().len(), 3);
        // The other end of its interface is this machine's.
        hosts.is_back("db-2");
        assert_eq!(hosts.notes(), ["db-3 is gone"]);
    }
}
