//! Do the nodes' processes run? As the kernel shows them.

use std::sync::mpsc::Sender;

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{ClusterControl, NodeState};
use brownout_record::{Quantity, Subject, WitnessRow};

use super::{BEAT, Looker, tell};
use crate::LabError;

pub(super) fn start(nodes: ClusterControl, seen: Sender<WitnessRow>) -> Result<Looker, LabError> {
    // When each node was last looked at, and for how long it had been held until then.
    let mut before: Vec<(String, u64, u64)> = nodes.names().into_iter().map(|name| (name, monotonic_ns(), 0)).collect();
    let look = move || {
        for (name, looked_ns, was_held_ns) in &mut before {
            let at_ns = monotonic_ns();
            let Ok(state) = nodes.state(name) else { continue };
            let row = |quantity, source: &str, value| WitnessRow {
                at_ns,
                subject: Subject::host(name.clone()),
                quantity,
                source: source.to_owned(),
                value,
                error: 0.0,
            };
            tell(&seen, row(Quantity::Running, "process", f64::from(u8::from(state == NodeState::Up))));
            let held_ns = nodes.held_ns(name).unwrap_or(*was_held_ns);
            let (for_ns, of_ns) = (held_ns.saturating_sub(*was_held_ns), at_ns.saturating_sub(*looked_ns).max(1));
            (*looked_ns, *was_held_ns) = (at_ns, held_ns);
            tell(&seen, row(Quantity::ProcessorShare, "held", (for_ns as f64 / of_ns as f64).min(1.0)));
            if let Ok(Some(share)) = nodes.cpu_share(name) {
                tell(&seen, row(Quantity::ProcessorShare, "governor", share.fraction()));
            }
        }
    };
    Looker::start("witness-process".to_owned(), BEAT, || Ok(()), look)
}
