//! `kill` and `stop`: a node's process ends, and is started again when the fault is healed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_cluster::{ClusterError, NodeState};
use brownout_record::Expectation;
use brownout_units::Delay;

use super::{
    capabilities::{Capabilities, ControlNodes, together},
    fault::{ActiveFault, Fault, Healing},
    names::{are, join, known_nodes},
    needs::Needs,
    pause::silent,
};
use crate::{
    LabError,
    experiment::{Complaint, Names, Signal},
    hosts::Hosts,
};

/// A node that has been asked to end is killed after this.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(20);
/// What it takes a small node to end cleanly.
const ENDS_WITHIN: Delay = Delay::from_secs(8);
/// What the plan leaves for a start: 11 s to 13 s were measured on a quiet machine of two cores.
pub(super) const STARTS_WITHIN: Delay = Delay::from_secs(30);
/// A node that does not answer by then, started again, will not: as patient as a cluster's first start.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(180);

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By a signal; SIGKILL: at once, as by a power cut that spares the disk.
    Kill(Signal),
    /// SIGTERM: cleanly.
    Stop,
}

/// The nodes' processes end.
#[derive(Debug, Clone)]
pub struct Ends {
    nodes: Vec<String>,
    how: How,
}

impl Ends {
    pub(super) fn new(host: &Names, hosts: &Hosts, how: How) -> Result<Ends, Complaint> {
        Ok(Ends { nodes: known_nodes(host, hosts)?, how })
    }

    /// Whether a process ends of this at once, without being asked.
    fn at_once(&self) -> bool {
        matches!(self.how, How::Kill(signal) if signal.number() == libc::SIGKILL)
    }
}

impl Fault for Ends {
    fn kind(&self) -> &'static str {
        match self.how {
            How::Kill(_) => "kill",
            How::Stop => "stop",
        }
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn restarts(&self) -> bool {
        true
    }

    fn text(&self) -> String {
        let how = match self.how {
            How::Kill(signal) => {
                format!("{} killed (SIG{})", are(&self.nodes), signal.name())
            }
            How::Stop => format!("{} stopped cleanly (SIGTERM)", are(&self.nodes)),
        };
        format!("{} {how}, and started again in the end", join(&self.nodes))
    }

    fn effect(&self) -> String {
        "its connections are closed and new ones refused; network RTTs do not change".to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        silent(&self.nodes, hosts)
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(2 * brownout_analysis::SETTLE_NS)
    }

    fn injects_within(&self) -> Delay {
        if self.at_once() { Delay::ZERO } else { ENDS_WITHIN }
    }

    fn heals_within(&self) -> Delay {
        STARTS_WITHIN
    }

    fn stills(&self) -> &[String] {
        &self.nodes
    }

    fn needs(&self) -> Needs {
        Needs { process_witness: true, ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        // All or none: one that is down cannot end, and the others shall not end without it.
        for node in &self.nodes {
            if capabilities.nodes.state(node)? == NodeState::Down {
                let (state, remedy) = ("is down already".to_owned(), "start it first".to_owned());
                return Err(ClusterError::NotNow { node: node.clone(), doing: self.kind(), state, remedy }.into());
            }
        }
        let mut ended = Ended::new(Arc::clone(&capabilities.nodes));
        for node in &self.nodes {
            if let Err(source) = ended.begin(node, self.how) {
                return ended.give_up(LabError::Ground { doing: "start a thread", source });
            }
        }
        // A kill takes a millisecond. To end cleanly takes seconds, and the lab has other things to do meanwhile.
        if self.at_once()
            && let Err(error) = ended.wait()
        {
            return ended.give_up(error.into());
        }
        Ok(Box::new(ended))
    }
}

/// Nodes that end, each in its own time.
struct Ended {
    control: Arc<dyn ControlNodes>,
    nodes: Vec<String>,
    asked_ns: u64,
    /// From asking each of them to its end, once it has come.
    changes: Arc<Mutex<Vec<Change>>>,
    ending: Vec<JoinHandle<Result<(), ClusterError>>>,
}

impl Ended {
    fn new(control: Arc<dyn ControlNodes>) -> Ended {
        let (nodes, changes, ending) = (Vec::new(), Arc::default(), Vec::new());
        Ended { control, nodes, asked_ns: monotonic_ns(), changes, ending }
    }

    fn begin(&mut self, node: &str, how: How) -> std::io::Result<()> {
        let (control, name, changes) = (Arc::clone(&self.control), node.to_owned(), Arc::clone(&self.changes));
        let end = move || {
            let change = match how {
                How::Kill(signal) => control.kill(&name, signal.number())?,
                How::Stop => control.stop(&name, STOP_WITHIN)?,
            };
            // Each push is whole, whoever panicked in between.
            changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            Ok(())
        };
        self.ending.push(thread::Builder::new().name("end".to_owned()).spawn(end)?);
        self.nodes.push(node.to_owned());
        Ok(())
    }

    /// Until all have ended; says what went wrong first.
    fn wait(&mut self) -> Result<(), ClusterError> {
        let ended = |ending: JoinHandle<_>| ending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        std::mem::take(&mut self.ending).into_iter().map(ended).fold(Ok(()), Result::and)
    }

    /// The same; one that ended by itself before it could be asked to has ended, too.
    fn wait_ended(&mut self) -> Result<(), ClusterError> {
        match self.wait() {
            Err(ClusterError::NotNow { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Some did not end: those that did are started again, while the lab goes on.
    fn give_up(self, error: LabError) -> Result<Box<dyn ActiveFault>, LabError> {
        // A start that fails is told by whoever needs the node next.
        let _ = Box::new(self).heal();
        Err(error)
    }
}

/// Starts the nodes that are down, and waits until all of them answer; says what went wrong first. It is over somewhere
/// between the first start and the last answer: until then a process runs that is no use to anyone.
pub(super) fn restart(control: &dyn ControlNodes, nodes: &[String]) -> Result<Change, LabError> {
    let asked_ns = monotonic_ns();
    let start = |node: &String| match control.state(node)? {
        NodeState::Down => control.start(node).map(drop),
        NodeState::Up | NodeState::Paused => Ok(()),
    };
    // One that does not come back must not keep the others down.
    let started = nodes.iter().map(start).fold(Ok(()), Result::and);
    let answers = |node: &String| control.wait_answers(node, BACK_WITHIN);
    let answering = nodes.iter().map(answers).fold(Ok(()), Result::and);
    started.and(answering)?;
    Ok(Change::between(asked_ns, monotonic_ns()))
}

impl ActiveFault for Ended {
    fn change(&self) -> Change {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let until_now = self.is_settling().then(|| Change::between(self.asked_ns, monotonic_ns()));
        together(changes.iter().copied().chain(until_now))
    }

    fn is_settling(&self) -> bool {
        self.ending.iter().any(|ending| !ending.is_finished())
    }

    fn outcome(&mut self) -> Result<(), LabError> {
        if self.is_settling() {
            return Ok(());
        }
        Ok(self.wait_ended()?)
    }

    fn takes_long_to_heal(&self) -> bool {
        true
    }

    fn heal(mut self: Box<Self>) -> Result<Healing, LabError> {
        // A database takes seconds to start, too.
        let back = move || {
            let ended = self.wait_ended();
            let back = restart(&*self.control, &self.nodes);
            ended.map_err(LabError::from).and(back)
        };
        let failed = |source| LabError::Ground { doing: "start a thread", source };
        thread::Builder::new().name("restart".to_owned()).spawn(back).map(Healing::UnderWay).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use brownout_units::Share;

    use super::*;
    use crate::faults::capabilities::Applied;

    /// Nodes that are not seen to end, whatever they are sent.
    struct Immortal;

    fn not_shown<T>(node: &str) -> Result<T, ClusterError> {
        Err(ClusterError::NotShown { node: node.to_owned(), wanted: "as dead".to_owned(), after: STOP_WITHIN })
    }

    impl ControlNodes for Immortal {
        fn state(&self, _: &str) -> Result<NodeState, ClusterError> {
            Ok(NodeState::Up)
        }

        fn pause(&self, node: &str) -> Result<Change, ClusterError> {
            not_shown(node)
        }

        fn unpause(&self, node: &str) -> Result<Change, ClusterError> {
            not_shown(node)
        }

        fn kill(&self, node: &str, _: i32) -> Result<Change, ClusterError> {
            not_shown(node)
        }

        fn stop(&self, node: &str, _: Duration) -> Result<Change, ClusterError> {
            not_shown(node)
        }

        fn start(&self, node: &str) -> Result<Change, ClusterError> {
            not_shown(node)
        }

        fn wait_answers(&self, _: &str, _: Duration) -> Result<(), ClusterError> {
            Ok(())
        }

        fn limit_cpu(&self, node: &str, _: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
            not_shown(node)
        }
    }

    #[test]
    fn an_end_that_did_not_come_is_told() {
        for how in [How::Stop, How::Kill("TERM".to_owned().try_into().unwrap())] {
            let mut ended = Ended::new(Arc::new(Immortal));
            ended.begin("n2", how).unwrap();
            while ended.is_settling() {
                thread::yield_now();
            }
            let error = ended.outcome().unwrap_err();
            assert!(
                matches!(&error, LabError::Cluster(ClusterError::NotShown { node, .. }) if node == "n2"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_node_that_ends_is_given_the_time_to_end_and_to_start() {
        let names = Names(["n1", "n3"].map(str::to_owned).to_vec());
        let made = |how| Ends::new(&names, &Hosts::new(3), how).unwrap();
        let (kill, stop) = (made(How::Kill(Signal::default())), made(How::Stop));
        let asked = made(How::Kill("sigterm".to_owned().try_into().unwrap()));
        assert_eq!((asked.injects_within(), asked.kind()), (ENDS_WITHIN, "kill"));
        assert!(asked.text().contains("SIGTERM") && Signal::try_from("STOP".to_owned()).is_err());
        assert_eq!((kill.injects_within(), stop.injects_within()), (Delay::ZERO, ENDS_WITHIN));
        assert_eq!((kill.heals_within(), stop.heals_within()), (STARTS_WITHIN, STARTS_WITHIN));
        assert_eq!(stop.stills(), ["n1", "n3"]);
        assert!(stop.unsettled() < ENDS_WITHIN, "what the end takes is in the stamp");
    }
}
