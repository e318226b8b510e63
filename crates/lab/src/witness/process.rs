//! Do the nodes' processes run? As the kernel shows them.

use std::sync::mpsc::Sender;

use brownout_cluster::{ClusterControl, NodeState};
use brownout_network::monotonic_ns;
use brownout_record::{Quantity, Subject, WitnessRow};

use super::{BEAT, Looker, tell};
use crate::LabError;

pub(super) fn start(nodes: ClusterControl, seen: Sender<WitnessRow>) -> Result<Looker, LabError> {
    let names = nodes.names();
    let look = move || {
        for name in &names {
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
            if let Ok(Some(share)) = nodes.cpu_share(name) {
                tell(&seen, row(Quantity::ProcessorShare, "governor", share.fraction()));
            }
        }
    };
    Looker::start("witness-process".to_owned(), BEAT, || Ok(()), look)
}
