//! `cpu`: a node's process gets only a share of the processors.

use brownout_base::Change;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::{Delay, Share};

use super::{
    capabilities::{Applied, Capabilities, together},
    fault::{ActiveFault, Fault, Healing},
    names::{join, known_nodes, s},
    needs::Needs,
};
use crate::{
    LabError,
    experiment::{Complaint, CpuFault},
    hosts::Hosts,
};

/// A governor cannot keep less.
const LEAST_SHARE: f64 = 0.01;

/// The nodes' processes run for a share of the time of the lab's processors at most.
#[derive(Debug, Clone)]
pub struct Cpu {
    nodes: Vec<String>,
    share: Share,
}

impl Cpu {
    pub(super) fn new(entry: &CpuFault, hosts: &Hosts) -> Result<Cpu, Complaint> {
        if entry.share.fraction() < LEAST_SHARE {
            let least = Share::new(LEAST_SHARE).unwrap_or_default();
            let message = format!(
                "{} of the processors is too small a share to enforce; write at least {least}, or pause: for \
                 none at all",
                entry.share
            );
            return Err(Complaint::at("share", message));
        }
        if entry.share == Share::ALL {
            return Err(Complaint::at("share", "100% of the processors is not a limit; write less"));
        }
        Ok(Cpu { nodes: known_nodes(&entry.host, hosts)?, share: entry.share })
    }
}

impl Fault for Cpu {
    fn kind(&self) -> &'static str {
        "cpu"
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        format!("{} get{} {} of the processors at most", join(&self.nodes), s(&self.nodes), self.share)
    }

    fn effect(&self) -> String {
        "its computation takes longer; network RTTs do not change".to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let of = |node: &str| {
            let hit = self.nodes.iter().any(|hit| hit == node);
            Expectation {
                subject: Subject::host(node),
                quantity: Quantity::ProcessorShare,
                hit,
                asked: if hit { self.share.fraction() } else { 0.0 },
                tolerance: self.share.fraction() * 0.1,
                burst: None,
            }
        };
        hosts.nodes().map(|host| of(&host.name)).collect()
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(brownout_analysis::SETTLE_NS)
    }

    fn needs(&self) -> Needs {
        Needs { process_witness: true, ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let limits = self.nodes.iter().map(|node| capabilities.nodes.limit_cpu(node, self.share));
        Ok(Box::new(Limited(limits.collect::<Result<Vec<_>, _>>()?)))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        // Less of this fault is more of the processors: from all of them down to what was asked.
        let left = 1.0 - (1.0 - self.share.fraction()) * share;
        Some(Box::new(Cpu { share: Share::new(left)?, ..self.clone() }))
    }
}

struct Limited(Vec<Box<dyn Applied<Share>>>);

impl ActiveFault for Limited {
    fn change(&self) -> Change {
        together(self.0.iter().map(|limit| limit.change()))
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        let healed: Vec<_> = self.0.into_iter().map(Applied::heal).collect();
        Ok(Healing::Done(together(healed.into_iter().collect::<Result<Vec<_>, _>>()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(share: &str) -> Result<Cpu, Complaint> {
        Cpu::new(&serde_json::from_str(&format!(r#"{{"host":"n2","share":"{share}"}}"#)).unwrap(), &Hosts::new(3))
    }

    #[test]
    fn a_share_that_no_governor_keeps_is_refused() {
        for share in ["0%", "0.5%", "100%"] {
            assert_eq!(fault(share).unwrap_err().key, "share", "{share}");
        }
        assert!(fault("0%").unwrap_err().message.contains("pause:"));
        assert!(fault("1%").is_ok());
    }
}
