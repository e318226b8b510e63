//! Whether the nodes' processes run: by their state, and by the processor time that they use.

use std::{sync::mpsc::Sender, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{ClusterControl, NodeState};
use brownout_record::{Quantity, Subject, WitnessRow};

use super::poller::{Poller, tell};
use crate::LabError;

/// Between two looks at what governors do.
const GOVERNORS_EVERY_NS: u64 = 100_000_000;

/// One node.
struct Watched {
    name: String,
    /// The processor time that it had used when it was last seen to stand still; none if it was not.
    stood_at_ns: Option<u64>,
    /// When its governor was last looked at, and for how long it had held the node until then.
    governed_ns: u64,
    was_held_ns: u64,
}

pub(super) fn start(nodes: ClusterControl, every: Duration, seen: Sender<WitnessRow>) -> Result<Poller, LabError> {
    let watched = |name| Watched { name, stood_at_ns: None, governed_ns: monotonic_ns(), was_held_ns: 0 };
    let mut all: Vec<Watched> = nodes.names().into_iter().map(watched).collect();
    let longest_ns = every.as_nanos() as u64 / 4;
    let look = move || all.iter_mut().for_each(|node| node.look(&nodes, longest_ns, &seen));
    Poller::start("witness-process".to_owned(), every, || Ok(()), look)
}

impl Watched {
    fn look(&mut self, nodes: &ClusterControl, longest_ns: u64, seen: &Sender<WitnessRow>) {
        let at_ns = monotonic_ns();
        let Ok(state) = nodes.state(&self.name) else { return };
        let used_ns = nodes.cpu_ns(&self.name).ok().flatten();
        let runs = runs(state, used_ns, &mut self.stood_at_ns);
        // A look that was interrupted for long may be of either side of a change that it fell on.
        if monotonic_ns() - at_ns <= longest_ns {
            tell(seen, self.row(at_ns, Quantity::Running, "process", f64::from(u8::from(runs))));
        }
        if at_ns - self.governed_ns >= GOVERNORS_EVERY_NS {
            self.governor(at_ns, nodes, seen);
        }
    }

    fn governor(&mut self, at_ns: u64, nodes: &ClusterControl, seen: &Sender<WitnessRow>) {
        let held_ns = nodes.held_ns(&self.name).unwrap_or(self.was_held_ns);
        let (for_ns, of_ns) = (held_ns.saturating_sub(self.was_held_ns), at_ns.saturating_sub(self.governed_ns).max(1));
        (self.governed_ns, self.was_held_ns) = (at_ns, held_ns);
        let share = (for_ns as f64 / of_ns as f64).min(1.0);
        tell(seen, self.row(at_ns, Quantity::ProcessorShare, "held", share));
        if let Ok(Some(share)) = nodes.cpu_share(&self.name) {
            tell(seen, self.row(at_ns, Quantity::ProcessorShare, "governor", share.fraction()));
        }
    }

    fn row(&self, at_ns: u64, quantity: Quantity, source: &str, value: f64) -> WitnessRow {
        let (subject, source) = (Subject::host(self.name.clone()), source.to_owned());
        WitnessRow { at_ns, subject, quantity, source, value, error: 0.0 }
    }
}

/// Whether a process runs. The kernel's letter is that of its first thread; but no thread can run without using processor time, and
/// of that the kernel counts every nanosecond. So one that is shown as stopped, and used some since it was last seen so, did run.
fn runs(state: NodeState, used_ns: Option<u64>, stood_at_ns: &mut Option<u64>) -> bool {
    let before = std::mem::replace(stood_at_ns, used_ns.filter(|_| state == NodeState::Paused));
    match state {
        NodeState::Up => true,
        NodeState::Down => false,
        NodeState::Paused => before.zip(used_ns).is_some_and(|(before, now)| now > before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_shown_as_stopped_but_uses_processor_time_runs() {
        let mut stood = None;
        let mut look = |state, used| runs(state, Some(used), &mut stood);
        assert!(look(NodeState::Up, 100));
        // What it used before it stopped says nothing.
        assert!(!look(NodeState::Paused, 180));
        assert!(!look(NodeState::Paused, 180));
        assert!(look(NodeState::Paused, 181));
        assert!(!look(NodeState::Paused, 181));
        assert!(look(NodeState::Up, 200));
        assert!(!look(NodeState::Paused, 300));
        assert!(!look(NodeState::Down, 300));
    }
}
