//! The rate of links, measured by short bursts of packets.

use std::sync::Arc;

use brownout_base::Mesh;
use brownout_network::Network;
use brownout_probe::{TrainSpec, Trains};
use brownout_record::{Quantity, Subject, WitnessRow};

use crate::{
    LabError,
    faults::{Needs, TrainNeed},
};

/// Packet trains on the links whose rate a fault limits, and on as many that it spares.
pub(super) struct RateWitness {
    trains: Arc<Trains>,
    names: Vec<String>,
}

impl RateWitness {
    pub(super) fn start(needs: &Needs, network: &Network, mesh: &dyn Mesh) -> Result<RateWitness, LabError> {
        let link = |from: &str, to: &str| network.link(from, to).filter(|link| network.carries(*link));
        let mut links = Vec::new();
        for TrainNeed { from, to, expected, .. } in &needs.trains {
            links.extend(link(from, to).map(|link| (link, Some(*expected))));
            // The way back is another link; if it is limited, too, it is in the list itself.
            if !needs.trains.iter().any(|other| other.from == *to && other.to == *from) {
                links.extend(link(to, from).map(|link| (link, None)));
            }
        }
        let whole = TrainSpec::default();
        let packets = needs.trains.iter().map(|need| need.packets).min().unwrap_or(whole.packets).min(whole.packets);
        let names = network.hosts().iter().map(|host| host.name().to_owned()).collect();
        Ok(RateWitness { trains: Arc::new(Trains::start(mesh, &links, TrainSpec { packets, ..whole })?), names })
    }

    /// Who sends them.
    pub(super) fn trains(&self) -> Arc<Trains> {
        Arc::clone(&self.trains)
    }

    /// What there is to tell of trains that are no samples.
    pub(super) fn unseen(&self) -> Option<String> {
        unseen(self.trains.discarded(), self.trains.sent())
    }

    pub(super) fn drain(&self) -> Vec<WitnessRow> {
        let name = |host: brownout_network::HostId| self.names.get(host.index()).cloned().unwrap_or_default();
        let samples = self.trains.drain().into_iter();
        let row = |sample: brownout_probe::TrainSample| {
            Some(WitnessRow {
                at_ns: sample.sent_ns,
                subject: Subject::pair(name(sample.link.from), name(sample.link.to)),
                quantity: Quantity::Rate,
                source: "train".to_owned(),
                value: sample.rate_bps?,
                error: 0.0,
            })
        };
        samples.filter_map(row).collect()
    }
}

/// One in a hundred is nothing to tell.
fn unseen(discarded: u64, sent: u64) -> Option<String> {
    let told = || {
        format!(
            "{discarded} of {sent} trains of packets, which show the rates of links, gave no samples: the sending \
             host's kernel took none of their packets, the receiving one had no room for some, or nobody knows when they \
             arrived"
        )
    };
    (discarded * 100 > sent).then(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_that_are_no_samples_are_told_of_when_they_are_many() {
        assert_eq!(unseen(0, 0), None);
        assert_eq!(unseen(1, 100), None);
        assert!(unseen(2, 100).is_some_and(|told| told.starts_with("2 of 100 trains")));
        assert!(unseen(7, 7).is_some());
    }
}
